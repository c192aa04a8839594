"""Each lint rule rejects a page that was spoilt in one way, and passes the good one."""

import nbformat.v4 as v4
import pytest

from notebooks.machine import build, lint
from tests.notebooks.pages import changed, write_source

PICTURE, MACHINE, SLIDER, LAST = 2, 3, 4, 5  # places of the good page's cells


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    source = write_source(tmp_path_factory.mktemp("good"))
    assert build.main([str(source)]) == 0
    return build.page_of(source)


def broken_rules(page):
    return {line.rsplit("[", 1)[1].rstrip("]") for line in lint.problems(page)}


def test_the_good_page_is_good(good):
    assert lint.problems(good) == []


def code(text, number=LAST):
    def change(notebook):
        notebook.cells[number].source = text
    return change


def words(text):
    def change(notebook):
        notebook.cells[0].source += "\n\n" + text
    return change


def alt(text):
    def change(notebook):
        notebook.cells[PICTURE].outputs[0].metadata["image/png"]["alt"] = text
    return change


def no_alt_at_all(notebook):
    notebook.cells[PICTURE].outputs[0].metadata = {}


def html_picture(notebook):
    notebook.cells[LAST].outputs[1].data["text/html"] = '<img src="x.png" alt="short">'


def no_numbers(notebook):
    del notebook.cells[PICTURE].outputs[1]


def second_title(notebook):
    notebook.cells[0].source += "\n\n# Another title"


def no_title(notebook):
    notebook.cells[0].source = "Words without a heading."


def printed(text):
    def change(notebook):
        notebook.cells[LAST].outputs[0].text = text
    return change


def count(value):
    def change(notebook):
        notebook.cells[LAST].execution_count = value
    return change


def on_stderr(notebook):
    notebook.cells[LAST].outputs[0].name = "stderr"


def failed(notebook):
    notebook.cells[LAST].outputs[0] = v4.new_output("error", ename="ValueError",
                                                    evalue="no")


def meta(number, **values):
    def change(notebook):
        notebook.cells[number].metadata.update(values)
    return change


def no_reason(notebook):
    del notebook.cells[MACHINE].metadata["reason"]


def own_kernel(notebook):
    notebook.metadata.kernelspec["name"] = "apex-lessons-env"


def widget_state(notebook):
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}


def large(notebook):
    notebook.cells[PICTURE].outputs[0].data["image/png"] = "A" * 1_600_000


def long_winded(notebook):
    notebook.cells[0].source += "\n\n" + "word " * 25_000


def edited_by_hand(notebook):
    notebook.cells[0].source += " More."


LONG = "\n".join(f"x{number} = {number}" for number in range(11))
ONE_CALL = "print(\n" + "".join(f"    {number},\n" for number in range(9)) + ")"

SPOILT = [
    ("picture_without_alt", alt("short")),
    ("picture_without_alt", alt(" " * 40)),
    ("picture_without_alt", no_alt_at_all),
    ("picture_without_alt", html_picture),
    ("picture_without_alt", words("![](90-small.py)")),
    ("picture_without_alt", words('<img src="90-small.py">')),
    ("picture_without_numbers", no_numbers),
    ("heading_level_skipped", words("#### Far too deep")),
    ("not_one_title", second_title),
    ("not_one_title", no_title),
    ("broken_link", words("[gone](91-gone.ipynb)")),
    ("broken_link", words("[gone](#No-such-heading)")),
    ("broken_link", words("[gone](90-small.ipynb#no-such-heading)")),
    ("broken_link", words("[elsewhere](ftp://example.org/x.ipynb)")),
    ("absolute_path", words("Look into `/home/me/course`.")),
    ("absolute_path", code("open('C:\\\\Users\\\\me')")),
    ("absolute_path", printed("/Users/me/apex/rope.py:3: warning\n")),
    ("long_cell", code(LONG)),
    ("long_cell", code(ONE_CALL)),
    ("trailing_semicolon", code("1 + 1;")),
    ("trailing_semicolon", code("x = 1;  # quiet\nx")),
    ("forbidden_call", code("widgets.interact(print, x=3)")),
    ("forbidden_call", code("interactive_output(print, {})")),
    ("forbidden_call", code("out = widgets.Output()")),
    ("forbidden_call", code("from IPython.display import clear_output")),
    ("forbidden_call", code("!pip install torch")),
    ("forbidden_call", code("%pip install torch")),
    ("forbidden_call", code("import matplotlib.pyplot as plt")),
    ("not_executed_in_order", count(None)),
    ("not_executed_in_order", count(7)),
    ("noise_in_output", on_stderr),
    ("noise_in_output", failed),
    ("noise_in_output", printed("<object object at 0x7f1c2e4a80>\n")),
    ("unreasoned_ignore", no_reason),
    ("unreasoned_ignore", meta(MACHINE, reason="because")),
    ("unreasoned_ignore", meta(MACHINE, tags=["machine"])),
    ("unreasoned_ignore", meta(LAST, tags=["nbval-ignore-output"])),
    ("unreasoned_ignore", meta(LAST, tags=["nbval-skip"])),
    ("unreasoned_ignore", meta(LAST, tags=["raises-exception"])),
    ("unreasoned_ignore", code("# NBVAL_IGNORE_OUTPUT\nprint(1)")),
    ("wrong_kernel", own_kernel),
    ("stored_widget_state", widget_state),
    ("too_large", large),
    ("too_large", long_winded),
    ("differs_from_its_source", edited_by_hand),
]


@pytest.mark.parametrize(("rule", "change"), SPOILT,
                         ids=[f"{number}-{rule}"
                              for number, (rule, _) in enumerate(SPOILT)])
def test_a_spoilt_page_is_rejected_by_its_rule(good, tmp_path, rule, change):
    """NB-02, NB-05, NB-06, NB-08, NB-09, NB-13, ENV-04: what nbval lets through."""
    assert rule in broken_rules(changed(good, change, tmp_path))


def test_every_rule_is_tried():
    assert {rule.__name__ for rule in lint.RULES} == {rule for rule, _ in SPOILT}


@pytest.mark.parametrize("text", [
    "# a comment\n\n\n" * 20 + "x = 1",
    "\n".join(f"x{number} = {number}" for number in range(10)),
    "text = 'a; b;'\ntext",
    "x = 1; y = 2",
    "text = '# not a comment'",
])
def test_what_the_rules_allow(good, tmp_path, text):
    allowed = broken_rules(changed(good, code(text), tmp_path))
    assert allowed == {"differs_from_its_source"}


def test_links_between_pages_and_to_their_headings(good, tmp_path):
    change = words("[on](90-small.ipynb) and [there](90-small.ipynb#A-second-heading), "
                   "[far](https://example.org/x#y) "
                   "![one dot, black, alone in the middle](90-small.py)")
    assert broken_rules(changed(good, change, tmp_path)) == {"differs_from_its_source"}


def test_the_program_counts_problems_and_exits_with_one(good, tmp_path, capsys):
    assert lint.main([str(good)]) == 0
    assert capsys.readouterr().out == "1 pages, 0 problems\n"
    assert lint.main([str(changed(good, no_title, tmp_path))]) == 1
    said = capsys.readouterr().out
    assert "90-small.ipynb, page: a page has one title" in said
    assert "[not_one_title]" in said
    assert lint.main([str(tmp_path / "91-new.ipynb")]) == 1
    assert "91-new.ipynb: not built yet" in capsys.readouterr().out
