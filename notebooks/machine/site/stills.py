"""Pictures and badges for README.md: ``python notebooks/machine/site/stills.py``.

Run it after ``make site``: each lesson's first explorer is photographed in a browser as
the site shows it. The badges say what pyproject.toml and the Makefile say. All of it
lies in ``stills/``; tests/site/test_stills.py compares words and sizes.
"""

from __future__ import annotations

import html
import io
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from notebooks.machine import browser, build  # noqa: E402

SITE, STILLS = ROOT / "_site", Path(__file__).resolve().parent / "stills"
WIDTH, COLOURS = 1060, 96
FRAME = "article .live .apx-frame"
BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="22" role="img" \
aria-label="{name}: {value}"><title>{name}: {value}</title>\
<rect width="{width}" height="22" rx="4" fill="#0067a3"/>\
<path d="M4 0h{left}v22H4a4 4 0 0 1-4-4V4a4 4 0 0 1 4-4" fill="#3b4148"/>\
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\
<text x="8" y="15" textLength="{name_length}">{name}</text>\
<text x="{right}" y="15" textLength="{value_length}">{value}</text></g></svg>
"""


def badge(name: str, value: str) -> str:
    """A small SVG: what it is about on the left, what is so on the right."""
    name_length, value_length = 6.6 * len(name), 6.6 * len(value)
    left = name_length + 12
    return BADGE.format(name=html.escape(name), value=html.escape(value),
                        name_length=round(name_length), left=round(left),
                        value_length=round(value_length), right=round(left + 12),
                        width=round(left + value_length + 20))


def badges() -> dict[str, str]:
    """file -> SVG, from what the project itself says."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    oldest = project["requires-python"].removeprefix(">=")
    tried = (ROOT / "Makefile").read_text(encoding="utf-8")
    newest = ".".join(re.search(r"<= \((3), (\d+)\)", tried).groups())
    return {"python.svg": badge("Python", f"{oldest} to {newest}"),
            "licence.svg": badge("licence", project["license"]),
            "network.svg": badge("network at run time", "none")}


def photograph(chromium, page: Path) -> bytes | None:
    """The page's first explorer as a PNG; None where it has none."""
    view = chromium.new_page(viewport={"width": 1480, "height": 1000},
                             color_scheme="light")
    view.goto(page.as_uri())
    view.wait_for_selector("html[data-ready]", state="attached")
    view.add_style_tag(content=f".live {{ width: {WIDTH}px; }}")
    frame = view.locator(FRAME).first
    picture = frame.screenshot() if frame.count() else None
    view.close()
    return picture


def fewer_colours(picture: bytes) -> bytes:
    from PIL import Image, PngImagePlugin

    buffer = io.BytesIO()
    image = PngImagePlugin.PngImageFile(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def main() -> int:
    from playwright.sync_api import sync_playwright

    if not (SITE / "index.html").exists():
        print("there is no site to photograph: make site", file=sys.stderr)
        return 2
    STILLS.mkdir(exist_ok=True)
    for file, svg in badges().items():
        build.write_whole(STILLS / file, svg)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.find(),
                                              args=["--no-sandbox", "--disable-gpu"])
        for page in sorted(SITE.glob("[0-9][0-9]-*.html")):
            picture = photograph(chromium, page)
            if picture:
                (STILLS / f"{page.stem}.png").write_bytes(fewer_colours(picture))
        chromium.close()
    print(*(f"{file.name}: {file.stat().st_size / 1e3:.0f} kB"
            for file in sorted(STILLS.iterdir())), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
