"""The site's explorers: from a folder, without a kernel, with Python's numbers.

A program that these tests reject: an explorer that shows other numbers than Python; a
link that leads to another explorer of the page; a slider that needs two frames.
"""

import csv
import io
import json
import random

import pytest

from tests.browser.measure import latency
from tests.explorers.test_explorers import (
    close,
    end_states,
    python_side,
    random_states,
)
from tests.site.explorers import CLASSES, PLACES

every_explorer = pytest.mark.parametrize("name", PLACES)


def downloaded(page, explorer, label):
    with page.expect_download() as arriving:
        explorer.get_by_role("button", name=label).click()
    return arriving.value.path().read_bytes()


def facts_in(table):
    rows = csv.DictReader(io.StringIO(table.decode("utf-8")))
    return {row["name"]: float(row["value"]) for row in rows if row["part"] == "fact"}


# The explorer hears of the new address by an event, and draws at the next frame.
OPEN_LINK = """(link) => new Promise((done) => {
  if (location.hash === `#${link}`) done();
  addEventListener("hashchange", () =>
    requestAnimationFrame(() => requestAnimationFrame(done)), { once: true });
  location.hash = link;
})"""


def states_to_try(cls):
    """The default, some at random, and some where settings stand at their ends."""
    ends = end_states(cls)
    return [{}, *random_states(cls, 3), *random.Random(cls.__name__).sample(ends, 4)]


@every_explorer
def test_a_link_shows_what_python_computes(name, visit):
    """Settings from a link, at their ends as well; numbers as the CSV has them."""
    page, explorer = visit(f"{PLACES[name]}.html"), CLASSES[name]()
    shown = page.locator(f'.apx[data-explorer="{name}"]')
    others = page.locator(f'.apx:not([data-explorer="{name}"]) .apx-words')
    untouched, drawn = others.all_inner_texts(), 0
    for state in states_to_try(CLASSES[name]):
        explorer.set(**{**explorer.defaults(), **state})
        page.evaluate(OPEN_LINK, explorer.link)
        facts, problem = python_side(explorer, {})
        refused = shown.locator(".apx-alarm").inner_text()
        assert bool(refused) == bool(problem), (state, refused, problem)
        if facts is not None:
            drawn += 1
            table = downloaded(page, shown, "Save the numbers as CSV")
            for key, value in facts_in(table).items():
                gap, terms = abs(facts[key] - value), explorer.scales.get(key, 0)
                assert close(value, facts[key]) or gap <= 1e-12 * terms, (key, state)
    assert drawn >= 3 and others.all_inner_texts() == untouched
    assert page.complaints == []


@every_explorer
def test_every_slider_moves_by_keyboard(name, visit):
    """The link leads there; each slider changes picture or words within a frame."""
    page = visit(f"{PLACES[name]}.html#{name}?")
    shown = page.locator(f'.apx[data-explorer="{name}"]')
    top = shown.evaluate("(one) => one.getBoundingClientRect().top")
    assert -5 <= top < 700  # in sight
    moved = []
    for slider in shown.locator(".apx-range:enabled").all():
        before = shown.inner_html()
        slider.focus()
        page.keyboard.press("PageUp")
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(30)
        moved.append(shown.locator(".apx-stage, .apx-words, .apx-alarm").count() == 3
                     and shown.inner_html() != before)
    assert moved and all(moved) and page.complaints == []


@every_explorer
def test_a_drag_is_drawn_within_a_frame(name, visit, capsys):
    page = visit(f"{PLACES[name]}.html#{name}?")
    slider = page.query_selector(f'.apx[data-explorer="{name}"] .apx-range:enabled')
    found = latency(page, slider)
    with capsys.disabled():
        print(f"\n{PLACES[name]}, {name}: {found}")
    assert found.within(16)


@every_explorer
def test_pictures_are_saved(name, visit):
    page = visit(f"{PLACES[name]}.html", color_scheme="dark")
    shown = page.locator(f'.apx[data-explorer="{name}"]')
    drawing = downloaded(page, shown, "Save the picture as SVG").decode("utf-8")
    assert drawing.startswith("<svg") and "var(--" not in drawing
    assert downloaded(page, shown, "Save the picture as PNG").startswith(b"\x89PNG")


def test_a_pasted_config_moves_the_laboratory(visit):
    """A config.json of the reader's own, against what Python reads from it."""
    name = "RegimesLaboratory"
    config = {"head_dim": 64, "rope_theta": 50_000.0, "max_position_embeddings": 8192,
              "rope_scaling": {"rope_type": "yarn", "factor": 8.0,
                               "original_max_position_embeddings": 1024}}
    page = visit(f"{PLACES[name]}.html")
    shown = page.locator(f'.apx[data-explorer="{name}"]')
    shown.locator(".apx-text").first.fill(json.dumps(config))
    explorer = CLASSES[name](config=json.dumps(config))
    facts = facts_in(downloaded(page, shown, "Save the numbers as CSV"))
    expected = explorer.facts()
    assert facts["pairs"] == expected["pairs"] == 32
    assert all(close(value, expected[key]) for key, value in facts.items())
    shown.locator(".apx-text").first.fill("{not json")
    assert shown.locator(".apx-alarm").inner_text() != ""
