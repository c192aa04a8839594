"""Explorers in a page from a file, without kernel: they move, speak, download."""

import csv
import importlib
import io
import json

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.measure import latency
from tests.browser.static_page import static_page
from tests.explorers.page import LESSONS

CLASSES = {name: cls for lesson in LESSONS for name, cls in importlib.import_module(
    f"apex_lessons.explorers.{lesson}").explorers().items()}
every_explorer = pytest.mark.parametrize("name", CLASSES)
# What all explorers have from one script is tried on the largest; on each when slow.
LARGEST = "RegimesLaboratory"
one_explorer = pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name != LARGEST))
    for name in CLASSES])
# Until what was set is drawn and laid out.
DRAWN = """() => new Promise((done) => requestAnimationFrame(
  () => requestAnimationFrame(done)))"""

@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static")
    for name, cls in CLASSES.items():
        (folder / f"{name}.html").write_text(static_page([cls()]), encoding="utf-8")
    return folder


@pytest.fixture
def show(open_page, files):
    """A fresh page with one explorer."""
    def show_one(name, link="", **options):
        page = open_page((files / f"{name}.html").as_uri() + link, **options)
        page.wait_for_function("window.ready")
        page.wait_for_selector(".apx-words p")
        return page
    return show_one


@pytest.fixture(scope="module")
def kept(open_pages, files):
    """The same page again, put back to the default: for tests that break nothing."""
    pages = {}

    def show_again(name):
        if name not in pages:
            pages[name] = open_pages((files / f"{name}.html").as_uri())
            pages[name].wait_for_function("window.ready")
        page = pages[name]
        page.complaints.clear()
        page.set_viewport_size({"width": 1180, "height": 900})
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.get_by_role("button", name="Reset all settings").click()
        return page
    return show_again


def sliders(page):
    return page.locator(".apx-range:enabled").all()


def words(page):
    return page.locator(".apx-words").inner_text()


def picture(page):
    return page.locator(".apx-stage").inner_html()


def settings_of(page, cls):
    return page.evaluate("names => Object.fromEntries(names.map(n => "
                         "[n, document.querySelector('[data-model]').model.get(n)]))",
                         list(cls.ranges))


def downloaded(page, label, place=None):
    with page.expect_download() as arriving:
        (place or page).get_by_role("button", name=label).click()
    return arriving.value.path().read_bytes()


def facts_in(table):
    rows = csv.DictReader(io.StringIO(table.decode("utf-8")))
    return {row["name"]: float(row["value"]) for row in rows if row["part"] == "fact"}


@every_explorer
def test_every_slider_moves_by_keyboard_and_agrees_with_python(name, kept):
    page = kept(name)
    moved = 0
    for slider in sliders(page):
        before, said = picture(page), words(page)
        slider.focus()
        for key in ("ArrowRight", "ArrowRight", "PageUp", "ArrowLeft"):
            page.keyboard.press(key)
        page.evaluate(DRAWN)
        moved += picture(page) != before and words(page) != said
    assert moved >= 1
    explorer = CLASSES[name]()
    explorer.set(**settings_of(page, CLASSES[name]))
    assert page.locator(".apx").get_attribute("data-state") == ""
    facts = explorer.facts()
    for key, value in facts_in(downloaded(page, "Save the numbers as CSV")).items():
        size = explorer.scales.get(key, 0.0)
        assert abs(facts[key] - value) <= 1e-12 * max(abs(value), size), key
    assert page.complaints == []


CHIPS = """async () => {
  const seen = [];
  for (const chip of document.querySelectorAll(".apx-chip")) {
    chip.click();
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    seen.push([chip.getAttribute("aria-pressed"),
      document.querySelector(".apx-alarm").innerText]);
  }
  return seen;
}"""


@every_explorer
def test_reset_presets_and_links(name, kept, show):
    page, cls = kept(name), CLASSES[name]
    defaults, said = settings_of(page, cls), words(page)
    chips = page.evaluate(CHIPS)
    assert all(pressed == "true" for pressed, _ in chips)
    assert not any(alarm for _, alarm in chips)
    sliders(page)[0].focus()
    page.keyboard.press("End")
    changed = settings_of(page, cls)
    explorer = cls()
    explorer.set(**changed)
    page.get_by_role("button", name="Reset all settings").click()
    assert settings_of(page, cls) == defaults and words(page) == said
    other = show(name, link=f"#{explorer.link}")
    assert settings_of(other, cls) == changed
    assert page.complaints == [] and other.complaints == []


@every_explorer
def test_downloads_hold_what_is_shown(name, kept):
    page = kept(name)
    drawing = downloaded(page, "Save the picture as SVG").decode("utf-8")
    assert drawing.startswith("<svg")
    assert "var(--" not in drawing and "NaN" not in drawing
    assert downloaded(page, "Save the picture as PNG").startswith(b"\x89PNG")
    numbers = downloaded(page, "Save the numbers as CSV").decode("utf-8")
    table = list(csv.reader(io.StringIO(numbers)))
    assert table[0] == ["part", "name", "x", "value"] and len(table) > 30
    assert page.complaints == []


@pytest.mark.parametrize("label", ["Save the numbers as CSV",
                                   "Save the picture as SVG",
                                   "Save the picture as PNG"])
def test_refused_settings_are_not_saved(label, kept):
    """No file that says head_dim 7 beside the facts of 128."""
    page, saved = kept("WavelengthClock"), []
    page.on("download", lambda one: saved.append(one))
    page.evaluate("document.querySelector('[data-model]').model.set('head_dim', 7)")
    page.evaluate(DRAWN)
    alarm = page.locator(".apx-alarm").inner_text()
    page.get_by_role("button", name=label).click()
    note = page.locator(".apx-done")
    assert alarm and note.inner_text() == f"Nothing to save: {alarm}"
    page.get_by_role("button", name="Reset all settings").click()
    page.evaluate(DRAWN)
    assert downloaded(page, label) and len(saved) == 1


def settings_in(table):
    rows = csv.DictReader(io.StringIO(table.decode("utf-8")))
    return {row["name"]: row["value"] for row in rows if row["part"] == "setting"}


@every_explorer
def test_a_wrong_number_is_answered_in_words(name, kept):
    page = kept(name)
    box, said = page.locator(".apx-box:enabled").first, words(page)
    complaint = page.locator(".apx-complaint").first
    too_small = str(float(box.get_attribute("min")) - 1)
    for wrong in ("", too_small, "1e99"):
        box.fill(wrong)
        assert complaint.inner_text().startswith("Type a number from")
        assert box.get_attribute("aria-invalid") == "true"
        assert words(page) == said
    box.blur()
    assert complaint.inner_text() == "" and box.input_value() != ""
    page.evaluate("document.querySelector('[data-model]').model.set"
                  f"({json.dumps(next(iter(CLASSES[name].ranges)))}, -77777)")
    assert "choose" in page.locator(".apx-alarm").inner_text()
    assert page.complaints == []


@one_explorer
def test_an_error_is_shown(name, show):
    page = show(name)
    page.evaluate("""() => { const { model } = document.querySelector('[data-model]');
      Math.log = () => { throw new Error("the test broke it"); };
      Math.cos = Math.log; Math.sqrt = Math.log; Math.exp = Math.log; }""")
    page.get_by_role("button", name="Reset all settings").click()
    slider = sliders(page)[0]
    slider.focus()
    page.keyboard.press("Home")
    assert "the test broke it" in page.locator(".apx-alarm").inner_text()
    assert any("the test broke it" in said for said in page.complaints)


@every_explorer
def test_axe_finds_nothing_in_light_and_dark(name, kept):
    page = kept(name)
    for scheme, paper, ink in (("light", "#fff", "#111"), ("dark", "#111", "#eee")):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.evaluate("([paper, ink]) => { document.body.style.background = paper;"
                      "document.querySelector('h1').style.color = ink; }", [paper, ink])
        # The explorer hears of the scheme by an event: the wait fails if it does not.
        page.wait_for_selector(f'.apx[data-theme="{scheme}"]', timeout=5000)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
    assert page.complaints == []


CUT = """() => [...document.querySelectorAll(".apx-svg text")].filter((node) => {
  const box = node.getBoundingClientRect();
  const frame = node.ownerSVGElement.getBoundingClientRect();
  return node.textContent && (box.left < frame.left - 1 || box.right > frame.right + 1
    || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
}).map((node) => node.textContent)"""


@every_explorer
def test_no_width_scrolls_sideways_or_cuts_a_word(name, kept):
    page = kept(name)
    for width in (320, 360, 590, 720, 1024, 1400):
        page.set_viewport_size({"width": width, "height": 760})
        page.evaluate(DRAWN)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == [], width


@every_explorer
def test_the_picture_can_be_read_by_keyboard_and_by_touch(name, show):
    page = show(name, has_touch=True)
    surface = page.locator(".apx-surface").first
    where = page.locator(".apx-where").first
    surface.focus()
    page.keyboard.press("End")
    last = where.inner_text()
    page.keyboard.press("Home")
    assert where.inner_text() != last
    assert where.inner_text() in page.locator(".apx-live").inner_text()
    page.keyboard.press("Escape")
    surface.scroll_into_view_if_needed()
    box = surface.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    assert where.inner_text() not in ("", last)


@one_explorer
def test_facts_are_spoken_after_the_hand_rests(name, kept):
    page = kept(name)
    sliders(page)[0].focus()
    page.keyboard.press("End")
    first = words(page).split(".")[0]
    page.wait_for_function("first => document.querySelector('.apx-live').innerText"
                           ".startsWith(first)", arg=first, timeout=3000)
    assert page.locator(".apx-live").get_attribute("aria-live") == "polite"


@one_explorer
def test_elements_are_kept_and_leave_with_the_view(name, show):
    page = show(name)
    kept = page.evaluate("""() => {
      const slider = document.querySelector(".apx-range:enabled");
      const nodes = new Set(document.querySelectorAll(".apx-stage *"));
      for (const share of [0.3, 0.5, 0.7]) {
        slider.value = Number(slider.min) + share * (slider.max - slider.min);
        slider.dispatchEvent(new Event("input"));
      }
      const now = [...document.querySelectorAll(".apx-stage *")];
      return now.filter((node) => nodes.has(node)).length / nodes.size; }""")
    assert kept > 0.6
    page.evaluate("document.querySelector('[data-model]').unmount()")
    said = words(page)
    page.evaluate("document.querySelector('[data-model]').model.set("
                  f"{json.dumps(next(iter(CLASSES[name].ranges)))}, -7)")
    assert words(page) == said and page.complaints == []


@one_explorer
def test_messages_to_a_kernel_are_few(name, kept):
    page = kept(name)
    moves, saved, passed = page.evaluate("""async () => { window.saved = 0;
      const slider = document.querySelector(".apx-range:enabled");
      const start = performance.now();
      let moves = 0;
      while (moves < 50 || performance.now() - start < 300) {
        const share = (moves++ % 50) / 50;
        slider.value = Number(slider.min) + share * (slider.max - slider.min);
        slider.dispatchEvent(new Event("input"));
        if (moves % 5 === 0) await new Promise((done) => setTimeout(done, 4));
      }
      await new Promise((done) => setTimeout(done, 400));
      return [moves, window.saved, performance.now() - start]; }""")
    assert moves >= 50 and 1 <= saved <= 1 + passed / 250


@one_explorer
def test_a_move_is_drawn_within_a_frame(name, kept, capsys):
    page = kept(name)
    slider = page.query_selector(".apx-range:enabled")
    found = latency(page, slider)
    with capsys.disabled():
        print(f"\n{name}: {found}")
    assert found.within(16)


def test_an_explorer_that_needs_a_kernel_says_so(open_page, tmp_path):
    """Lesson 05's live one: a sign while it waits, words when nothing answered."""
    live = importlib.import_module("apex_lessons.explorers.extrapolation")
    (tmp_path / "live.html").write_text(static_page([live.LiveExtrapolation()]),
                                        encoding="utf-8")
    page = open_page((tmp_path / "live.html").as_uri(), reduced_motion="reduce")
    page.wait_for_function("window.ready")
    said, sign = words(page), page.locator(".apx-sign")
    assert "needs a kernel" not in said and sign.inner_text() == ""
    sliders(page)[0].focus()
    page.keyboard.press("ArrowRight")
    page.evaluate(DRAWN)
    assert sign.inner_text().startswith("Reading 2,176 bytes")
    table = downloaded(page, "Save the numbers as CSV")
    assert settings_in(table)["length"] == "2048"  # those of the picture
    assert facts_in(table)["length"] == 2048
    assert page.locator(".apx").get_attribute("aria-busy") == "true"
    page.wait_for_function("document.querySelector('.apx-words').innerText"
                           ".includes('needs a kernel')", timeout=9000)
    assert sign.inner_text() == "" and said.split("\n")[0] in words(page)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": 320, "height": 760})
    page.evaluate(DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.evaluate(CUT) == [] and page.complaints == []
