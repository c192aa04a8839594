"""A real JupyterLab, as `make lab` opens it: the copy, its links, every explorer."""

import ast
import json
import math
import time

import nbformat
import nbformat.v4 as v4
import pytest
from jupyter_client import BlockingKernelClient

from notebooks.machine import build
from tests.browser.measure import latency
from tests.browser.test_static_page import (
    CLASSES, downloaded, facts_in, picture, words)
from tests.notebooks.exercises import stands_on


def shows_explorer(cell):
    return cell.cell_type == "code" and any(f"{name}(" in cell.source
                                            for name in CLASSES)


def cells_of(source):
    return build.read_source(source).cells


PAGES = [one for one in build.page_sources() if any(map(shows_explorer, cells_of(one)))]


def explorers_alone(cells):
    """The cells with an explorer, each after the lines of the page that it needs."""
    before, kept = [], []
    for cell in cells:
        if shows_explorer(cell):
            needed = ast.Module(stands_on(before, cell.source), type_ignores=[])
            kept += [v4.new_code_cell(ast.unparse(needed)),
                     v4.new_code_cell(cell.source)]
        before += [cell.source] if cell.cell_type == "code" else []
    return kept


def put(lab, name, cells):
    """A page as Lab shall find it, without stored outputs; its place in Lab."""
    page = v4.new_notebook(cells=cells, metadata={"kernelspec": build.KERNELSPEC})
    (lab.folder / "pages").mkdir(exist_ok=True)
    nbformat.write(page, lab.folder / "pages" / name)
    return f"pages/{name}"


def test_the_copy_opens_and_links_lead_to_the_next_page(lab, open_page):
    copies = (lab.folder / "my-course").glob("*.ipynb")
    assert sorted(path.name for path in copies) == [
        build.page_of(page).name for page in build.page_sources()[:2]]
    page = open_page("about:blank")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{lab.url}/")  # the address that the reader's browser opens
    page.get_by_role("heading", name="Start here").first.wait_for(timeout=90_000)
    page.get_by_role("tab", name="00-start-here.ipynb").first.wait_for()
    page.locator(".jp-RenderedMarkdown a", has_text="01").first.click()
    page.get_by_role("tab", name="01-embedding-scaling.ipynb").first.wait_for(
        timeout=60_000)
    page.get_by_role("heading", name="Embedding scaling").first.wait_for(timeout=60_000)
    assert page.locator(".jp-Dialog").count() == 0
    assert page.get_by_text("official Jupyter news").count() == 0
    outside = [one for one in asked
               if one.startswith("http") and not one.startswith(lab.url)]
    assert outside == []


FOUND = """
import json
from apex_lessons.explorers.base import Explorer
from ipywidgets.widgets.widget import _instances
print(json.dumps([[type(w).__name__, w.facts(), w.scales]
                  for w in _instances.values() if isinstance(w, Explorer)]))
"""


def ask(lab, name, code):
    """What the notebook's own kernel prints when it runs ``code``."""
    client = BlockingKernelClient(connection_file=str(lab.kernel_of(name)))
    client.load_connection_file()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=20)
        printed = []
        reply = client.execute_interactive(code, timeout=30, output_hook=printed.append)
    finally:
        client.stop_channels()
    assert reply["content"]["status"] == "ok", reply["content"]
    return "".join(m["content"].get("text", "") for m in printed)


OPEN = """async (path) => {
  const { commands, shell } = window.jupyterapp;
  for (const old of [...shell.widgets("main")]) {
    await old.sessionContext?.shutdown();
    old.dispose();
  }
  const opened = await commands.execute("docmanager:open", { path });
  const { context, sessionContext } = opened;
  await context.ready;
  await sessionContext.ready;
  await sessionContext.session.kernel.info;
  await commands.execute("notebook:run-all-cells");
}"""


@pytest.fixture(scope="module")
def tab(lab, open_pages):
    """One JupyterLab in the browser; the pages are opened in it one after the other."""
    page = open_pages(f"{lab.url}/lab?reset")
    page.set_default_timeout(120_000)
    page.wait_for_function("window.jupyterapp?.shell.isEmpty !== undefined")
    page.evaluate("window.jupyterapp.restored.then(() => true)")
    return page


ALL_NUMBERED = r"""() => {
  const prompts = document.querySelectorAll(".jp-CodeCell .jp-InputPrompt");
  return [...prompts].every((prompt) => /\[\d+\]/.test(prompt.textContent));
}"""


def run_all(page, name):
    """Open a page and run all: every cell gets its number, nothing goes wrong."""
    page.evaluate(OPEN, name)
    page.wait_for_function(ALL_NUMBERED)
    for kind in ("stderr", "error"):
        output = page.locator(f'[data-mime-type="application/vnd.jupyter.{kind}"]')
        assert output.count() == 0, output.first.inner_text()
    page.wait_for_selector(".apx-words p", timeout=20_000)


def agreed(lab, name, kind, seen, seconds=5):
    """Wait until the kernel's explorer of this class has the facts of the page."""
    end = time.monotonic() + seconds
    while True:
        rows = json.loads(ask(lab, name, FOUND))
        ours = [(facts, scales) for cls, facts, scales in rows if cls == kind]
        for facts, scales in ours:
            if set(facts) == set(seen) and all(math.isclose(
                    facts[key], seen[key], rel_tol=1e-12,
                    abs_tol=1e-12 * scales.get(key, 0.0)) for key in facts):
                return facts
        assert time.monotonic() < end, (kind, seen, ours)
        time.sleep(0.1)


def words_have(said, facts):
    """The bold numbers of the words that are facts, to the digits shown."""
    numbers = [float(text.replace(",", "").replace("−", "-")) for text in said
               if text.replace(",", "").replace(".", "").replace("−", "").isdigit()]
    return [number for number in numbers if any(
        math.isclose(number, fact, rel_tol=6e-4,
                     abs_tol=0.51 if abs(fact) >= 1000 else 0)
        for fact in facts.values())]


def move_all(page, lab, name, explorer):
    kind = explorer.get_attribute("data-explorer")
    moved = 0
    for slider in explorer.locator(".apx-range:enabled").all()[:2]:
        before, said = picture(explorer), words(explorer)
        slider.focus()
        for key in ("ArrowRight", "PageUp", "ArrowRight"):
            page.keyboard.press(key)
        end = time.monotonic() + 3
        while time.monotonic() < end and (picture(explorer) == before
                                          or words(explorer) == said):
            page.wait_for_timeout(20)
        moved += picture(explorer) != before and words(explorer) != said
    assert moved >= 1, kind
    seen = facts_in(downloaded(page, "Save the numbers as CSV", explorer))
    facts = agreed(lab, name, kind, seen)
    bold = explorer.locator(".apx-words strong").all_inner_texts()
    assert words_have(bold, facts), (bold, facts)


def python_moves(page, lab, name, explorer):
    """A setting that Python changes is drawn as well."""
    said, kind = words(explorer), explorer.get_attribute("data-explorer")
    ask(lab, name, FOUND + f"""
for w in _instances.values():
    if isinstance(w, Explorer) and type(w).__name__ == {kind!r}:
        w.reset()
""")
    page.wait_for_function("([node, said]) => node.innerText !== said",
                           arg=[explorer.locator(".apx-words").element_handle(), said])
    assert explorer.locator(".apx-alarm").inner_text() == ""


LIVE = "LiveExtrapolation"


def move_each(page, lab, name, capsys):
    """Run a page of Lab, and move every explorer on it by hand and from Python."""
    run_all(page, name)
    page.complaints.clear()
    kinds = []
    for explorer in page.locator(".apx").all():
        kinds.append(explorer.get_attribute("data-explorer"))
        explorer.scroll_into_view_if_needed()
        move_all(page, lab, name, explorer)
        if kinds[-1] == LIVE:  # its picture waits for Python
            continue
        slider = explorer.locator(".apx-range:enabled").first.element_handle()
        found = latency(page, slider, rounds=3, moves=15)
        python_moves(page, lab, name, explorer)
        with capsys.disabled():
            print(f"\n{name}, {kinds[-1]}: {found}")
        assert found.within(16)
    assert page.complaints == []
    return set(kinds)


def test_every_explorer_beside_a_kernel(lab, tab, capsys):
    """The explorers of all pages on one; `make test-slow` runs each page whole."""
    cells = [cell for source in PAGES for cell in explorers_alone(cells_of(source))]
    assert move_each(tab, lab, put(lab, "explorers.ipynb", cells),
                     capsys) == set(CLASSES)


@pytest.mark.slow
@pytest.mark.parametrize("source", PAGES, ids=[source.stem for source in PAGES])
def test_explorers_of_a_page(source, lab, tab, capsys):
    name = put(lab, f"{source.stem}.ipynb", cells_of(source))
    assert move_each(tab, lab, name, capsys)


def test_some_page_has_an_explorer():
    assert PAGES
