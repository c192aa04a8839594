"""``make train`` and ``make measure``: another, tiny model from start to results."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from apex_lessons.extrapolation import (
    checkpoints,
    load_checkpoint,
    measure,
    provenance,
    select,
    stored,
    text_for,
    training_record,
)
from apex_lessons.extrapolation.remake import main
from apex_lessons.extrapolation.training import state_file

SIZES = ["--d-model", "16", "--n-heads", "1", "--head-dim", "8", "--n-layers", "1",
         "--d-hidden", "16", "--trained-length", "32", "--base", "500000"]
TINY = [*SIZES, "--steps", "25", "--processes", "2", "--seeds", "0", "1"]


def command(*words):
    return [sys.executable, "-m", "apex_lessons.extrapolation", *map(str, words)]


def test_a_tiny_model_is_trained_in_two_processes(tmp_path):
    given = command("train", *TINY, "--out", tmp_path)
    done = subprocess.run(given, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    record = training_record(tmp_path)
    assert record["decoder"]["base"] == 500_000 and record["decoder"]["head_dim"] == 8
    # neither finds anything after 25 steps, so both are left out, and nothing remains
    assert list(record["left_out"]) == ["0", "1"] and record["models"] == {}
    assert [path.name for path in tmp_path.iterdir()] == ["training.json"]
    made_with = record["made_with"]
    assert {"torch", "python", "machine", "natural_text_sha256"} <= made_with.keys()
    assert made_with["device"] == "cpu" and min(made_with["seconds"].values()) > 0
    with pytest.raises(ValueError, match="has no model"):
        load_checkpoint(0, folder=tmp_path)


def test_a_tiny_model_is_trained_measured_and_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "LEARNED", 0.0)
    one = ["--processes", "1", "--out", str(tmp_path)]
    assert main(["train", *SIZES, "--steps", "25", "--seeds", "3", *one]) == 0
    less = ["--text-bytes", "256", "--tuning-steps", "1"]
    assert main(["measure", *less, *one]) == 0
    assert {r.length for r in stored(tmp_path)} == {32, 64, 128, 256}
    assert {r.length for r in stored(tmp_path) if r.tuned} == {32, 128, 256}
    decoder = load_checkpoint(3, folder=tmp_path)
    for length, read_with in ((32, "none"), (64, "yarn")):
        (found,) = select(method="yarn", length=length, folder=tmp_path)
        wanted = measure(decoder, text_for("recall", length, size=256), read_with)
        assert (found.seed, found.method) == (3, read_with)
        assert found.loss == pytest.approx(wanted.loss, abs=1e-3)
    made_with = provenance(tmp_path)
    assert made_with["checkpoints_sha256"] == {
        "3": training_record(tmp_path)["models"]["3"]["sha256"]
    }
    assert made_with["device"] == "cpu" and made_with["seconds"]["3"] > 0
    assert (made_with["text_bytes"], made_with["tuning_steps"]) == (256, 1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--head-dim", "7"], "even"),
        (["--steps", "10"], "--steps must be a multiple of 25"),
        (["--steps", "0"], "--steps"),
        (["--processes", "0"], "--processes"),
        (["--seeds", "0", "1", "0"], "--seeds must differ"),
        (["--seeds", "-1"], "--seeds"),
        (["--device", "foo"], "--device foo cannot be used"),
        (["--device", "meta"], "--device meta cannot be used"),
        (["--tuning-steps", "0"], "--tuning-steps"),
    ],
)
def test_unusable_options_are_refused_before_anything_is_done(
    given, says, tmp_path, capsys
):
    assert main(["train", *given, "--out", str(tmp_path)]) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_measuring_where_nothing_was_trained_is_refused(tmp_path, capsys):
    assert main(["measure", "--out", str(tmp_path / "nowhere")]) == 2
    assert "training.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("models", "says"), [({}, "has no model"), (None, "seed must be one of")]
)
def test_measuring_a_model_that_is_not_there_is_refused(
    models, says, tmp_path, capsys
):
    record = training_record()
    models = record["models"] if models is None else models
    record = json.dumps(record | {"models": models})
    (tmp_path / "training.json").write_text(record, encoding="utf-8")
    assert main(["measure", "--seeds", "99", "--out", str(tmp_path)]) == 2
    assert says in capsys.readouterr().err


# --- interrupted --------------------------------------------------------------------


LONG = [*SIZES, "--steps", "400", "--processes", "1", "--seeds", "0"]


def started(folder):
    """A training in a process group of its own, at least 100 steps done."""
    process = subprocess.Popen(
        command("train", *LONG, "--out", folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    while not state_file(folder / "unfinished", 0).exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    return process


@pytest.mark.slow
def test_an_interrupted_training_goes_on_to_the_same_model(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "LEARNED", 0.0)
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    process = started(stopped)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal's Ctrl-C: to all of them
    _, said = process.communicate(timeout=60)  # ends once no worker holds the pipe
    assert process.returncode == 130
    assert "stopped; the same command goes on from there" in said
    assert "Traceback" not in said
    assert state_file(stopped / "unfinished", 0).exists()
    assert main(["train", *LONG, "--out", str(stopped)]) == 0
    assert main(["train", *LONG, "--out", str(whole)]) == 0
    weights = [(f / "seed-0.safetensors").read_bytes() for f in (stopped, whole)]
    assert weights[0] == weights[1]


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_its_parent(sent, tmp_path):
    process = started(tmp_path)
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if sent == signal.SIGTERM else -sent)
    assert "Traceback" not in said
    assert state_file(tmp_path / "unfinished", 0).exists()
