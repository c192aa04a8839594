"""The build: the same bytes every time, nothing of the machine, a clear failure."""

import contextlib
import io
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from notebooks.machine import build
from tests.notebooks.pages import GOOD, HEADER, read, write_source



def run(*arguments, **settings):
    """The program, without a process of its own: its status and what it printed."""
    said, complained = io.StringIO(), io.StringIO()
    with (mock.patch.dict(os.environ, settings), contextlib.redirect_stdout(said),
          contextlib.redirect_stderr(complained)):
        status = build.main(list(map(str, arguments)))
    return SimpleNamespace(returncode=status, stdout=said.getvalue(),
                           stderr=complained.getvalue())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    source = write_source(tmp_path_factory.mktemp("built"))
    done = run(source)
    assert done.returncode == 0, done.stderr
    return source


def test_a_second_build_elsewhere_gives_the_same_bytes(built, tmp_path):
    first = build.page_of(built).read_bytes()
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    again = write_source(folder)
    build.page_of(again).write_bytes(first)  # for the `machine` cell
    done = run(again, PYTHONPATH=str(tmp_path), MPLBACKEND="Agg", PYTHONHASHSEED="7")
    assert done.returncode == 0 and "unchanged" in done.stdout
    assert build.page_of(again).read_bytes() == first


def test_machine_outputs_stay_until_they_are_renewed(built, tmp_path):
    source = write_source(tmp_path)
    build.page_of(source).write_bytes(build.page_of(built).read_bytes())
    kept = read(build.page_of(built)).cells[3].outputs
    assert run(source).returncode == 0
    assert read(build.page_of(source)).cells[3].outputs == kept
    assert run(source, "--fresh").returncode == 0
    assert read(build.page_of(source)).cells[3].outputs != kept


def test_only_machine_cells_get_the_ignore_tag(built):
    tags = [cell.metadata.get("tags") for cell in read(build.page_of(built)).cells]
    assert tags[3] == ["machine", "nbval-ignore-output"]
    assert not any(tags[:3] + tags[4:])


def test_nothing_of_machine_clock_or_widgets_is_stored(built):
    """NB-13 and NB-14: no widget state, so GitHub shows the page and it stays small."""
    notebook = read(build.page_of(built))
    assert notebook.metadata == {"kernelspec": build.KERNELSPEC,
                                 "language_info": {"name": "python"}}
    text = build.page_of(built).read_text(encoding="utf-8")
    assert "widget-view" not in text and "model_id" not in text and "iopub" not in text
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2, 3, 4, 5]


def test_what_was_flushed_in_pieces_is_one_output(built):
    last = read(build.page_of(built)).cells[-1]
    assert [output.output_type for output in last.outputs] == ["stream",
                                                               "execute_result"]
    assert last.outputs[0].text == "flushed\nlater\n"
    assert last.outputs[1].data["text/plain"] == "0.01"


def test_ids_follow_the_source_and_survive_an_insertion(tmp_path):
    before = build.read_source(write_source(tmp_path))
    more = GOOD.replace("# %%\nimport base64", "# %%\nprint(1)\n\n# %%\nprint(1)\n\n"
                        "# %%\nimport base64")
    after = build.read_source(write_source(tmp_path, more, "91-more.py"))
    ids = [cell.id for cell in after.cells]
    assert [cell.id for cell in before.cells] == ids[:1] + ids[3:]
    assert ids[2] == f"{ids[1]}-2" and len(set(ids)) == len(ids)


def test_text_on_the_line_of_a_mark_is_refused(tmp_path):
    """Readers would not see it: jupytext takes it for the cell's name."""
    text = HEADER + "# %% [markdown] Lost words.\n# and the rest\n"
    with pytest.raises(ValueError, match="Lost words"):
        build.read_source(write_source(tmp_path, text))


def test_a_failing_cell_is_shown_and_the_page_left_alone(tmp_path):
    source = write_source(tmp_path, HEADER + "# %%\nx = 1\n\n# %%\nx / 0\n")
    build.page_of(source).write_text("the page of yesterday", encoding="utf-8")
    done = run(source)
    assert done.returncode == 1
    assert "cell 2 failed" in done.stderr and "x / 0" in done.stderr
    assert "ZeroDivisionError" in done.stderr and "\x1b[" not in done.stderr
    assert build.page_of(source).read_text(encoding="utf-8") == "the page of yesterday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["90-small.ipynb",
                                                                "90-small.py"]


def test_a_dead_kernel_is_a_failure_too(tmp_path):
    source = write_source(tmp_path, HEADER + "# %%\nimport os\nos._exit(3)\n")
    done = run(source)
    assert done.returncode == 1 and "cell 1 failed" in done.stderr
    assert not build.page_of(source).exists()


def test_the_kernel_is_this_python_and_sees_no_other_packages(tmp_path):
    text = HEADER + ("# %%\nimport os, sys\nprint(sys.executable)\n"
                     "print(os.environ['PYTHONPATH'])\n"
                     "print(os.environ['OMP_NUM_THREADS'])\n")
    source = write_source(tmp_path, text)
    assert run(source, PYTHONPATH="elsewhere", OMP_NUM_THREADS="5").returncode == 0
    printed = read(build.page_of(source)).cells[0].outputs[0].text.split("\n")
    assert printed[:3] == [sys.executable, str(build.ROOT), "1"]


def test_kernels_talk_over_files_not_ports():
    expected = "ipc" if os.name == "posix" else "tcp"  # Windows has no such files
    with build.private_kernel() as one, build.private_kernel() as other:
        assert {one.transport, other.transport} == {expected}
        assert one.connection_file != other.connection_file
        assert os.path.isabs(one.ip) == (expected == "ipc")


def test_unknown_pages_are_named(tmp_path):
    done = run(tmp_path / "92-none.py")
    assert done.returncode == 2 and "92-none.py" in done.stderr


def test_a_page_can_be_named_by_its_number():
    for source in build.page_sources():
        number = re.match(r"\d+", source.name).group(0)
        assert build.named(Path(number)) == [source]
        assert build.named(source.with_suffix(".ipynb")) == [source]


def test_fonts_are_looked_for_in_silence_on_a_fresh_machine(tmp_path):
    """NB-10: an empty font cache and a home that cannot be written leave no words."""
    text = HEADER + ("# %%\nimport io\nfrom matplotlib.figure import Figure\n"
                     "figure = Figure()\nfigure.suptitle('words')\n"
                     "figure.savefig(io.BytesIO())\nprint('drawn')\n")
    source = write_source(tmp_path, text)
    nowhere = str(tmp_path / "90-small.py" / "home")  # a folder inside a file
    done = run(source, MPLCONFIGDIR=str(tmp_path / "empty"), HOME=nowhere,
               USERPROFILE=nowhere)
    assert done.returncode == 0, done.stderr
    outputs = read(build.page_of(source)).cells[0].outputs
    assert [output.name for output in outputs] == ["stdout"]


def test_blank_lines_of_the_text_leave_no_trace(tmp_path):
    text = HEADER + ("# %%\ndef f():\n    ...\n# %%\nf()\n\n\n\n"
                     "# %% [markdown]\n# words\n")
    assert [dict(cell.metadata)
            for cell in build.read_source(write_source(tmp_path, text)).cells
            ] == [{}, {}, {}]
