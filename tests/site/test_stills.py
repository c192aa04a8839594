"""README's pictures and badges: words, sizes and numbers are those of the course."""

import html
import re
import struct

import pytest

from notebooks.machine import build
from notebooks.machine.site import stills
from tests.site.explorers import CLASSES, PLACES

README = (stills.ROOT / "README.md").read_text(encoding="utf-8")
PLACE = "notebooks/machine/site/stills/"
FIRST = {page: next(name for name, at in PLACES.items() if at == page)
         for page in dict.fromkeys(PLACES.values())}


def shown_in_readme():
    """file -> alt text of the pictures in README.md."""
    found = re.findall(r'<img src="([^"]+)"[^>]*?alt="([^"]+)">', README, re.S)
    return {file: html.unescape(alt) for file, alt in found}


def test_the_readme_shows_explorers_in_the_words_they_say_themselves():
    shown = shown_in_readme()
    assert len(shown) >= 4
    for file, alt in shown.items():
        page = file.removeprefix(PLACE).removesuffix(".png")
        assert alt == CLASSES[FIRST[page]]().alt()


FILES = sorted(path.name for path in stills.STILLS.glob("*.png"))


@pytest.mark.parametrize("file", FILES)
def test_a_still_is_small_and_of_a_page_that_exists(file):
    content = (stills.STILLS / file).read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert len(content) <= 150_000 and width == stills.WIDTH + 1 and height > 400
    assert file.removesuffix(".png") in FIRST


def test_badges_say_what_the_project_says():
    """A licence or a Python that changed in pyproject.toml, and not in the picture."""
    made = stills.badges()
    assert "MIT" in made["licence.svg"] and "3.11 to 3.14" in made["python.svg"]
    for file, svg in made.items():
        assert (stills.STILLS / file).read_text(encoding="utf-8") == svg
        assert f"{PLACE}{file}" in README


def test_a_badge_is_as_wide_as_its_words():
    short, long = stills.badge("a", "b"), stills.badge("a & b", "a longer one")
    widths = [int(re.search(r'width="(\d+)"', one).group(1)) for one in (short, long)]
    assert widths[0] < widths[1] and "a &amp; b" in long


def test_pages_with_explorers_are_in_the_folder_of_pages():
    assert set(FIRST) <= {source.stem for source in build.page_sources()}
