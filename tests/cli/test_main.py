"""The command line: exit status, streams, JSON, figures, hostile files."""

import json
import os
import stat
import subprocess
import sys

import pytest

from apex_lessons.cli import main
from apex_lessons.cli.terminal import paint
from apex_lessons.models.released import released_names

LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
         "max_position_embeddings": 32768, "rope_theta": 10000.0,
         "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                          "original_max_position_embeddings": 8192}}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    return str(path)


def run(capsys, *words):
    status = main(list(words))
    streams = capsys.readouterr()
    return status, streams.out, streams.err


def test_explain_in_words(config, capsys):
    status, out, err = run(capsys, "explain", config)
    assert (status, err) == (0, "")
    for word in ("layout half", "128 dimensions", "base        10000", "8192 tokens",
                 "beta_fast 32 (default)", "1.13863", "1.29648", "always on",
                 "14 of 64 pairs never complete a turn"):
        assert word in out, word
    assert max(map(len, out.splitlines())) <= 100 and "\x1b" not in out


def test_explain_as_json_has_full_precision_and_stable_keys(config, capsys):
    status, out, err = run(capsys, "explain", config, "--json")
    data = json.loads(out)
    assert (status, err) == (0, "")
    assert list(data)[:10] == ["schema", "source", "model_type", "family",
                               "family_source",
                               "rotary", "positions", "why", "length", "layers"]
    assert data["attention_factor"] == 1.138629436111989
    assert data["inv_freq"][-1] == 2.8869549617236455e-05
    for name in ("inv_freq", "wavelengths", "regimes"):
        assert len(data[name]) == 64
    assert data["defaults"] == {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": True,
                                "attention_factor": "0.1 ln factor + 1"}


def test_a_directory_with_a_config_is_read(config, capsys):
    assert run(capsys, "explain", os.path.dirname(config))[0] == 0


def test_standard_input(monkeypatch, capsys):
    class Stream:
        buffer = __import__("io").BytesIO(json.dumps(LLAMA).encode())
    monkeypatch.setattr(sys, "stdin", Stream)
    assert "64, layout half" in run(capsys, "explain", "-")[1]


def test_length_option(config, capsys):
    assert "looks" not in run(capsys, "explain", config)[1]
    out = run(capsys, "explain", config, "--length", "100")[1]
    assert "A text of 100 tokens" in out
    for wrong in ("0", "-5", "1e3", "x", "9" * 30):
        status, out, err = run(capsys, "explain", config, "--length", wrong)
        assert status == 2 and "tokens" in err and out == ""


def test_figure(config, capsys, tmp_path):
    target = tmp_path / "bands.png"
    assert run(capsys, "explain", config, "--figure", str(target))[0] == 0
    assert target.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("target", ["no/such/folder/x.png", "x.unknown"])
def test_a_figure_that_cannot_be_written_is_refused(config, capsys, tmp_path, target):
    status, _, err = run(capsys, "explain", config, "--figure", str(tmp_path / target))
    assert status == 2 and err.startswith("apex_lessons: the picture cannot be written")


def test_no_figure_of_a_model_without_rotary_positions(capsys, tmp_path):
    status, _, err = run(capsys, "explain", "GPT-2", "--figure",
                         str(tmp_path / "x.png"))
    assert status == 2 and "nothing to draw" in err


@pytest.mark.parametrize("name", released_names())
def test_every_released_name_is_explained_or_refused_with_the_reason(name, capsys):
    status, out, err = run(capsys, "explain", name, "--json")
    if name.startswith(("PaLM", "Phi-3")):
        assert status == 2 and ("no head size" in err or "config.json" in err)
    else:
        assert status == 0 and json.loads(out)["source"] == name


def test_numbers_of_released_names(capsys):
    data = json.loads(run(capsys, "explain", "deepseek-v3", "--json")[1])
    assert round(data["score_factor"], 6) == 1.873854
    assert data["layout"] == "interleaved"
    data = json.loads(run(capsys, "explain", "gemma-3-4b", "--json")[1])
    assert data["base"] == 1e6
    assert data["per_layer_type"]["sliding_attention"]["base"] == 1e4
    data = json.loads(run(capsys, "explain", "apex-1 medium", "--json")[1])
    assert data["rope_type"] == "apex1" and data["counts"]["interpolated"] == 28


def test_unknown_name_is_refused_with_the_nearest(capsys):
    status, out, err = run(capsys, "explain", "gpt-os-20b")
    assert status == 2 and "did you mean gpt-oss-20b?" in err and out == ""
    assert "begin like that" in run(capsys, "explain", "Llama-3")[2]


def test_warnings_go_to_stderr_and_exit_status_is_zero(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "rope_tetha": 1}), encoding="utf-8")
    status, out, err = run(capsys, "explain", str(path))
    assert status == 0 and err.startswith("warning: 'rope_tetha'")
    assert "tetha" not in out


def test_compare(config, capsys):
    status, out, err = run(capsys, "compare", config, "Llama-2-7B")
    assert (status, err) == (0, "")
    assert "Largest disagreement: pair" in out and "half a turn apart after" in out
    data = json.loads(run(capsys, "compare", config, "Llama-2-7B", "--json")[1])
    assert data["largest_ratio"]["ratio"] == 4.0
    assert [row["pair"] for row in data["pairs"]] == list(range(64))
    assert data["settings"]["method"] == {"a": "yarn", "b": "default"}


def test_compare_with_a_model_that_does_not_turn(config, capsys):
    status, out, err = run(capsys, "compare", config, "GPT-2")
    assert status == 2 and "nothing to compare" in err and out == ""


@pytest.mark.parametrize("words", [[], ["explain"], ["nonsense"], ["explain", "a", "b"],
                                   ["compare", "a"], ["explain", "--nonsense", "x"],
                                   ["explain", ""], ["explain", "\x00"],
                                   ["explain", "a" * 5000]])
def test_wrong_words_give_two_and_no_traceback(words, capsys):
    status, out, err = run(capsys, *words)
    assert status == 2 and err and "Traceback" not in err and len(err) < 3000


def test_help(capsys):
    for words in (["--help"], ["explain", "--help"], ["compare", "--help"]):
        status, out, _ = run(capsys, *words)
        assert status == 0 and "usage" in out


# --- hostile files --------------------------------------------------------------------

def refused(capsys, path):
    status, out, err = run(capsys, "explain", str(path))
    assert status == 2 and out == "" and err.startswith("apex_lessons: ")
    assert err.count("\n") == 1 and len(err) < 1200
    return err


def test_missing_file(tmp_path, capsys):
    assert "no file" in refused(capsys, tmp_path / "x.json")


def test_directory_without_config(tmp_path, capsys):
    assert "directory" in refused(capsys, tmp_path)


def test_endless_device(capsys):
    assert "no regular file" in refused(capsys, "/dev/zero")


def test_pipe_that_nobody_writes_to(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert "no regular file" in refused(capsys, tmp_path / "pipe")


@pytest.mark.parametrize("data,word", [
    (b"", "empty"), (b" \n\t ", "empty"), (b"\xff\xfe{\x00}\x00", "UTF-16"),
    (b"\x00" * 1000, "no JSON"), (b"\x89PNG\r\n\x1a\n", "no UTF-8"),
    (b"GGUF\x03", "no JSON"),
    (b"[]", "object"), (b"3", "object"), (b"true", "object"), (b"{}", "hidden_size"),
    (b'{"a": 1,}', "line 1"), (b"// hello\n{}", "line 1"), (b'{"a": 1} x', "line 1"),
    (b'{"weight_map": {}}', "index of the weights"), (b'{"peft_type": "LORA"}', "LoRA"),
    (b'{"do_sample": true, "temperature": 1}', "generation_config"),
    (b"{" * 200_000, "no JSON"), (b"[" * 200_000, "nested"),
    (b'"' + b"x" * 10**7, "stops"),
    (b" " * (17 * 2**20), "MiB"), (b'{"a":' * 3000 + b"1" + b"}" * 3000, ""),
    (b"<html>", "web page"), (b"{'model_type': 'llama'}", "Python"),
])
def test_files_that_are_no_config(data, word, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    assert word in refused(capsys, path)


def test_byte_order_mark_is_a_warning(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    status, _, err = run(capsys, "explain", str(path))
    assert status == 0 and "byte order mark" in err


def test_repeated_key_is_a_warning(tmp_path, capsys):
    path = tmp_path / "config.json"
    text = json.dumps(LLAMA)[:-1] + ', "rope_theta": 500000.0}'
    path.write_text(text, encoding="utf-8")
    status, out, err = run(capsys, "explain", str(path))
    assert status == 0 and "stands twice" in err and "500000" in out


def test_a_reader_that_closes_the_pipe(config):
    """`... | head -1`: no traceback, no complaint."""
    code = ("import subprocess, sys\n"
            "p = subprocess.Popen([sys.executable, '-m', 'apex_lessons', 'explain',"
            f" {config!r}, '--json'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
            "p.stdout.close()\n"
            "err = p.stderr.read()\n"
            "print(p.wait(), len(err))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          encoding="utf-8", timeout=120, check=True)
    assert done.stdout.split() == ["0", "0"], done.stdout


def test_module_entry_and_plain_output_in_a_narrow_locale(config):
    done = subprocess.run([sys.executable, "-m", "apex_lessons", "explain", config],
                          capture_output=True, timeout=120,
                          env={**os.environ, "PYTHONIOENCODING": "ascii",
                               "LC_ALL": "C"})
    assert done.returncode == 0 and done.stderr == b""
    assert b"\x1b" not in done.stdout and max(done.stdout) < 127


def test_importing_pulls_in_no_matplotlib():
    code = ("import sys, apex_lessons.models, apex_lessons.cli\n"
            "from apex_lessons.cli import explain, compare\n"
            "print(sorted(set(sys.modules) & {'matplotlib', 'IPython', 'anywidget',"
            " 'transformers', 'numpy.testing'}))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          encoding="utf-8", timeout=120, check=True)
    assert done.stdout.strip() == "[]"


# --- colours --------------------------------------------------------------------------

def test_colours_only_where_asked_for(config, capsys, monkeypatch):
    assert "\x1b" in run(capsys, "explain", config, "--colour", "always")[1]
    assert "\x1b" not in run(capsys, "explain", config, "--colour", "never")[1]
    plain = run(capsys, "explain", config)[1]
    coloured = run(capsys, "explain", config, "--color", "always")[1]
    import re
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_terminal_decides(monkeypatch):
    from apex_lessons.cli import terminal

    class Terminal:
        def isatty(self):
            return True
    monkeypatch.setattr(terminal.sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert terminal.wants_colour("auto")
    monkeypatch.setenv("NO_COLOR", "")
    assert not terminal.wants_colour("auto")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not terminal.wants_colour("auto")


def test_paint_keeps_the_text():
    import re
    for style in ("title", "head", "warning", "note", "plain", "strip"):
        line = "      0  ..::##"
        assert re.sub(r"\x1b\[[0-9;]*m", "", paint(style, line)) == line
