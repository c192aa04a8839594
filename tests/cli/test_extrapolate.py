"""``python -m apex_lessons extrapolate``: the shipped models, live."""

import json
import shutil

import pytest

from apex_lessons.cli import main
from apex_lessons.extrapolation import METHODS, seeds, select, training_record
from apex_lessons.extrapolation.checkpoints import DATA


def test_one_cell_as_json(capsys):
    given = ["extrapolate", "--length", "1024", "--method", "yarn", "--seed", "0"]
    assert main([*given, "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    kept = next(r for r in select(method="yarn", length=1024) if r.seed == 0)
    assert list(table) == ["yarn"] and list(table["yarn"]) == ["1024"]
    assert table["yarn"]["1024"]["0"] == pytest.approx(kept.loss, abs=1e-3)


def test_the_table_names_methods_and_gives_the_range(capsys):
    given = [
        "extrapolate",
        "--length",
        "16",
        "--method",
        "ntk-aware",
        "--method",
        "none",
    ]
    assert main([*given, "--seed", "0", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].startswith("NTK-aware") and lines[4].startswith("no scaling")
    low, high = lines[4].split("(")[1].rstrip(")").split(" to ")
    assert float(low) < float(high)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--seed", "99"], "seed must be one of"),
        (["--method", "linear"], "--method must be"),
        (["--length", "1"], "--length"),
        (["--length", "99999999"], "at most"),
        (["--device", "nowhere"], "cannot be used"),
        (["--device", "meta"], "cannot be used"),
        (["--device", ""], "cannot be used"),
        (["--models", "nowhere"], "training.json"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_reason(given, says, capsys):
    assert main(["extrapolate", *given]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("content", ["{}", "no JSON", '{"models": {}}'])
def test_a_folder_without_a_record_of_training_is_refused(content, tmp_path, capsys):
    (tmp_path / "training.json").write_text(content, encoding="utf-8")
    assert main(["extrapolate", "--models", str(tmp_path)]) == 2
    assert "training.json is not what" in capsys.readouterr().err


def test_models_of_which_none_learned_are_refused(tmp_path, capsys):
    record = training_record() | {"models": {}}
    (tmp_path / "training.json").write_text(json.dumps(record), encoding="utf-8")
    assert main(["extrapolate", "--models", str(tmp_path)]) == 2
    assert "has no model" in capsys.readouterr().err


def test_the_lengths_are_those_of_the_models_own_training(tmp_path, capsys):
    record = training_record()
    short = record | {"decoder": record["decoder"] | {"trained_length": 16}}
    (tmp_path / "training.json").write_text(json.dumps(short), encoding="utf-8")
    shutil.copy(DATA / "seed-0.safetensors", tmp_path)
    given = ["--seed", "0", "--method", "none", "--json", "--models", str(tmp_path)]
    assert main(["extrapolate", *given]) == 0
    table = json.loads(capsys.readouterr().out)
    assert list(table["none"]) == ["16", "32", "64", "128"]


def test_help_and_the_refusal_name_every_method(capsys):
    assert main(["extrapolate", "--help"]) == 0
    assert main(["extrapolate", "--method", "?"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in METHODS) and seeds()
