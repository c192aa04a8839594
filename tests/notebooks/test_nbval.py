"""What nbval sees and what it does not: one small page, spoilt one output at a time."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import nbformat.v4 as v4
import pytest

from notebooks.machine import build
from tests.notebooks.pages import write

SLIDER_VIEW = {"application/vnd.jupyter.widget-view+json":
               {"model_id": "0" * 32, "version_major": 2, "version_minor": 0}}
WIDGETS = "import ipywidgets as widgets\n"


def stream(text, name="stdout"):
    return v4.new_output("stream", name=name, text=text)


def result(text, **more):
    return v4.new_output("execute_result", data={"text/plain": text, **more})


def cell(source, *outputs, **metadata):
    return v4.new_code_cell(source, outputs=list(outputs), execution_count=1,
                            metadata=metadata)


def unrun(source):
    return v4.new_code_cell(source)


IGNORED = {"tags": ["machine", "nbval-ignore-output"]}
HTML = "from IPython.display import HTML\nHTML('<b>0.64</b>')"
PICTURE = ("from IPython.display import display\n"
           "display({'image/png': 'AAAA', 'text/plain': '[picture] a line'}, raw=True)")


def picture(stored):
    return v4.new_output("display_data", data={"image/png": stored,
                                               "text/plain": "[picture] a line"})


# name -> (the cell as it is stored, whether nbval passes it)
CELLS = {
    "a right number": (cell("print(2 ** 10)", stream("1024\n")), True),
    "a wrong number printed": (cell("print(2 ** 10)", stream("1025\n")), False),
    "a wrong last digit": (cell("round(3.14159, 4)", result("3.1415")), False),
    "a wrong number in HTML": (cell(HTML, result("<IPython.core.display.HTML object>",
                                                 **{"text/html": "<b>0.63</b>"})),
                               False),
    "a missing output": (cell("print('here')"), False),
    "an output too many": (cell("x = 1", stream("1\n")), False),
    "a wrong word of an explorer without a kernel": (
        cell("print('[explorer] base 10,000: 6.28 tokens a turn')",
             stream("[explorer] base 10,000: 62.8 tokens a turn\n")), False),
    "a machine cell with another number": (cell("print(7)", stream("8\n"), **IGNORED),
                                           True),
    "the tag machine alone ignores nothing": (
        cell("print(7)", stream("8\n"), tags=["machine"]), False),
    "NB-01 another picture": (cell(PICTURE, picture("BBBB")), True),
    "NB-04 a slider with another id": (
        cell(WIDGETS + "widgets.FloatSlider(1.5)", result("FloatSlider(value=1.5)",
                                                          **SLIDER_VIEW)), True),
    "NB-04 a slider stored without a view": (
        cell(WIDGETS + "widgets.FloatSlider(1.5)", result("FloatSlider(value=1.5)")),
        True),
    "NB-04 a slider with another value": (
        cell(WIDGETS + "widgets.FloatSlider(1.5)", result("FloatSlider(value=2.5)",
                                                          **SLIDER_VIEW)), False),
    "NB-05 a new warning": (
        cell("import sys\nprint('w', file=sys.stderr)\nprint(1)", stream("1\n")),
        False),
    "NB-06 a trailing semicolon": (cell("1 + 1;"), False),
    "NB-08 an object's address": (
        cell("object()", result("<object object at 0x7f0000000000>")), False),
    "NB-08 an unrounded float": (cell("0.1 + 0.2", result("0.3")), False),
    "NB-09 a cell that was not run": (unrun("1 + 1"), True),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """NB-02: the stored kernel has a private name; the current one is taken."""
    folder = tmp_path_factory.mktemp("nbval")
    notebook = v4.new_notebook(cells=[stored for stored, _ in CELLS.values()],
                               metadata={
        "kernelspec": {"name": "apex-lessons-env", "display_name": "x",
                       "language": "python"}})
    page = write(folder / "90-spoilt.ipynb", notebook)
    command = [sys.executable, "-m", "pytest", str(page), "--nbval",
               "--nbval-current-env",
               "--nbval-cell-timeout=120", "-q", "-p", "no:cacheprovider",
               f"--rootdir={folder}", "-c", str(folder / "none.ini"),
               f"--junitxml={folder / 'report.xml'}"]
    (folder / "none.ini").write_text("[pytest]\n", encoding="utf-8")
    subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
    cases = ElementTree.parse(folder / "report.xml").iter("testcase")
    return [case.find("failure") is None and case.find("error") is None
            for case in cases]


def test_each_cell_got_a_verdict(verdicts):
    assert len(verdicts) == len(CELLS)


@pytest.mark.parametrize("name", CELLS)
def test_nbval_says(verdicts, name):
    place = list(CELLS).index(name)
    assert verdicts[place] is CELLS[name][1]


def test_the_build_ignores_no_other_cell_than_machine():
    """nbval compares a page's stored outputs wherever the tag `machine` is not."""
    ignored = [tag for source in build.page_sources()
               for one in build.read_source(source).cells
               for tag in one.metadata.get("tags", [])
               if "machine" not in one.metadata.tags]
    assert [tag for tag in ignored if tag.startswith(("nbval", "raises"))] == []
