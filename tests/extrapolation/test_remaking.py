"""``make train`` and ``make measure``: another, tiny model from start to results."""

import pytest

from apex_lessons.extrapolation import load_checkpoint, training_record
from apex_lessons.extrapolation.__main__ import main

TINY = ["--steps", "25", "--d-model", "16", "--n-heads", "1", "--head-dim", "8",
        "--n-layers", "1", "--d-hidden", "16", "--trained-length", "32",
        "--base", "500000", "--processes", "2", "--seeds", "0", "1"]


def test_a_tiny_model_is_trained_in_two_processes(tmp_path):
    assert main(["train", *TINY, "--out", str(tmp_path)]) == 0
    record = training_record(tmp_path)
    assert record["decoder"]["base"] == 500_000 and record["decoder"]["head_dim"] == 8
    # neither finds anything after 25 steps, so both are left out, and nothing remains
    assert list(record["left_out"]) == ["0", "1"] and record["models"] == {}
    assert [path.name for path in tmp_path.iterdir()] == ["training.json"]
    assert {"torch", "python", "machine", "natural_text_sha256"} <= record[
        "made_with"].keys()
    with pytest.raises(ValueError, match="seed must be one of"):
        load_checkpoint(0, folder=tmp_path)


def test_unusable_settings_are_refused_with_a_reason(tmp_path, capsys):
    assert main(["train", "--head-dim", "7", "--out", str(tmp_path)]) == 2
    assert "even" in capsys.readouterr().err


def test_measuring_where_nothing_was_trained_is_refused(tmp_path, capsys):
    assert main(["measure", "--out", str(tmp_path / "nowhere")]) == 2
    assert "training.json" in capsys.readouterr().err
