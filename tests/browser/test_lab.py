"""Each page with explorers in a real JupyterLab: run all, move, compare with the kernel."""

import json
import math
import time

import nbformat
import pytest
from jupyter_client import BlockingKernelClient

from tests.browser.conftest import ROOT
from tests.browser.measure import latency
from tests.browser.test_static_page import CLASSES, downloaded, facts_in, picture, words


def has_explorer(path):
    cells = nbformat.read(path, as_version=4).cells
    return any(f"{name}(" in cell.source for cell in cells if cell.cell_type == "code"
               for name in CLASSES)


PAGES = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if has_explorer(path)]

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
  const { context, sessionContext } = await commands.execute("docmanager:open", { path });
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


def put(path, lab):
    """The page as Lab shall find it: its sources, without stored outputs."""
    page = nbformat.read(path, as_version=4)
    for cell in page.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(page, lab.pages / path.name)


def run_all(page, name):
    """Open a page and run all, until every cell has its number and nothing went wrong."""
    page.evaluate(OPEN, name)
    page.wait_for_function("""() => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
      .every((prompt) => /\\[\\d+\\]/.test(prompt.textContent))""", timeout=20_000)
    for kind in ("stderr", "error"):
        output = page.locator(f'[data-mime-type="application/vnd.jupyter.{kind}"]')
        assert output.count() == 0, output.first.inner_text()
    page.wait_for_selector(".apx-words p", timeout=20_000)


def agreed(lab, name, kind, seen, seconds=5):
    """Wait until the kernel's explorer of this class has the facts that the page shows."""
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
        math.isclose(number, fact, rel_tol=6e-4, abs_tol=0.51 if abs(fact) >= 1000 else 0)
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


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_explorers_of_a_page(path, lab, tab, capsys):
    page = tab
    put(path, lab)
    run_all(page, path.name)
    page.complaints.clear()
    explorers = page.locator(".apx").all()
    assert explorers
    for explorer in explorers:
        explorer.scroll_into_view_if_needed()
        move_all(page, lab, path.name, explorer)
        slider = explorer.locator(".apx-range:enabled").first.element_handle()
        found = latency(page, slider, rounds=3, moves=15)
        python_moves(page, lab, path.name, explorer)
        with capsys.disabled():
            print(f"\n{path.stem}, {explorer.get_attribute('data-explorer')}: {found}")
        assert found.within(16)
    assert page.complaints == []


def test_some_page_has_an_explorer():
    assert PAGES
