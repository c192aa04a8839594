"""Where the site's explorers come from: stored pages made live, or pages run anew."""

import nbformat
import pytest

from notebooks.machine import build
from notebooks.machine.site import collect, front, pages
from tests.site.explorers import PAGES, how_many

ALT = ("Wavelengths of 64 pairs on a log axis, from 6.283 to 54,410 tokens; 18 pairs "
       "never finish a turn in 4,096 tokens. A dial shows each pair at position 100; "
       "pair 19 has made 1.034 turns.")


def page_with(*cells):
    """A notebook whose last cell shows an explorer in the given words."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    return notebook


def shows(cell, words):
    data = {"text/plain": words, "image/png": ""}
    cell.outputs = [nbformat.v4.new_output("execute_result", data)]
    return cell.outputs[0]


def test_an_explorer_gets_its_settings_and_its_script():
    page = page_with("from apex_lessons import explorers",
                     "explorers.rope.WavelengthClock()")
    output = shows(page.cells[1], f"[explorer] {ALT}")
    state = collect.state_of_explorer(page.cells[1], output, collect.imports_of(page),
                                      "03")
    assert state["head_dim"] == 128 and "export default" in state["_esm"]
    assert state["_spec"]["name"] == "WavelengthClock"
    assert not {"layout", "_view_name"} & set(state)


def test_a_stored_picture_that_is_no_longer_right_is_refused():
    page = page_with("from apex_lessons import explorers",
                     "explorers.rope.WavelengthClock()")
    output = shows(page.cells[1], "[explorer] Wavelengths of 32 pairs.")
    with pytest.raises(collect.Stale, match="make notebooks"):
        collect.state_of_explorer(page.cells[1], output, collect.imports_of(page), "03")


def test_a_picture_made_on_another_machine_may_differ():
    page = page_with("from apex_lessons import explorers",
                     "explorers.rope.WavelengthClock()")
    page.cells[1].metadata.tags = [build.MACHINE]
    output = shows(page.cells[1], "[explorer] Wavelengths of 32 pairs.")
    names = collect.imports_of(page)
    assert collect.state_of_explorer(page.cells[1], output, names, "05")["base"] == 1e4


def test_an_explorer_that_needs_more_than_imports_is_refused():
    page = page_with("from apex_lessons import explorers\nwidth = 64",
                     "explorers.rope.WavelengthClock(head_dim=width)")
    output = shows(page.cells[1], f"[explorer] {ALT}")
    with pytest.raises(collect.Stale, match="imports only"):
        collect.state_of_explorer(page.cells[1], output, collect.imports_of(page), "03")


def test_a_page_is_run_again_when_something_changes(tmp_path):
    source = tmp_path / "09-a-page.py"
    source.write_text("# %%\nprint(1)\n", encoding="utf-8")
    first = collect.digest_of(source)
    assert collect.digest_of(source) == first
    source.write_text("# %%\nprint(2)\n", encoding="utf-8")
    assert collect.digest_of(source) != first


def test_a_widget_without_a_kernel_is_explained(tmp_path):
    page = page_with("widgets.VBox([slider, picture])", "1 + 1")
    shows(page.cells[0], "VBox(children=(IntSlider(value=3),))").data.pop("image/png")
    shows(page.cells[1], "2").data.pop("image/png")
    assert pages.for_sphinx(page, pages.Assets(tmp_path)) == []
    assert "ipywidgets" in page.cells[0].outputs[0].data["text/html"]
    assert page.cells[1].outputs[0].data == {"text/plain": "2"}


def test_a_page_that_the_readme_does_not_list_is_refused(tmp_path):
    page = page_with("1 + 1")
    with pytest.raises(ValueError, match="does not list 99-unknown"):
        front.front_page({tmp_path / "99-unknown.py": page}, {"99-unknown": []})


def test_the_readme_lists_every_page_for_the_front():
    assert set(front.rows(front.readme())) >= set(PAGES)


def without_what_was_measured(notebook):
    """A ``machine`` cell's state is another one at every run."""
    for cell, output in collect.outputs_of(notebook):
        if build.MACHINE in cell.metadata.get("tags", []):
            output.data.pop(collect.STATE, None)
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_run_anew_a_page_is_the_stored_one(name, tmp_path, monkeypatch):
    """make site runs the pages; make test takes them as stored: the same site."""
    monkeypatch.setattr(collect, "KEPT", tmp_path)
    source = build.FOLDER / f"{name}.py"
    anew, stored = collect.run_anew(source), collect.as_stored(source)
    live = sum(collect.STATE in output.data for _, output in collect.outputs_of(anew))
    assert live == how_many(name)
    assert without_what_was_measured(anew) == without_what_was_measured(stored)
    kept, = tmp_path.glob("*.ipynb")
    before = kept.stat().st_mtime_ns
    collect.run_anew(source)
    assert kept.stat().st_mtime_ns == before
