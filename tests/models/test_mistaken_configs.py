"""64 mistaken files through the command line: answer, words, and no harm done."""

import time

import pytest

from apex_lessons.cli import main
from tests.models.cases import MISTAKEN, file_bytes


def answer(tmp_path, capsys, case, *options):
    path = tmp_path / "config.json"
    path.write_bytes(file_bytes(case))
    begin = time.perf_counter()
    status = main(["explain", str(path), *options])
    seconds = time.perf_counter() - begin
    streams = capsys.readouterr()
    kind = "error" if status == 2 else "warning" if streams.err else "ok"
    return kind, streams.out, streams.err, seconds


@pytest.mark.parametrize("name", MISTAKEN)
def test_answer(name, tmp_path, capsys):
    case = MISTAKEN[name]
    kind, out, err, seconds = answer(tmp_path, capsys, case)
    assert kind in (case["expect"], *case.get("also_acceptable", ()))
    assert seconds < 5
    assert len(out) + len(err) < 20_000
    assert all(31 < ord(letter) < 127 or letter == "\n" for letter in out + err)
    assert "Traceback" not in err
    if kind != "ok":
        for word in case.get("message_should_name", ()):
            assert word in err
    if kind == "error":
        assert out == "" and err.startswith("apex_lessons: ") and err.count("\n") == 1


@pytest.mark.parametrize("name", [name for name, case in MISTAKEN.items()
                                  if case.get("numbers")])
def test_numbers_where_the_answer_is_no_error(name):
    from apex_lessons.models import explain

    case = MISTAKEN[name]
    data = explain(case["config"]).data()
    for key, value in case["numbers"].items():
        if key == "per_layer_type":
            for label, own in value.items():
                for inner, number in own.items():
                    assert data[key][label][inner] == number
        else:
            assert data[key] == value, key


@pytest.mark.parametrize("name", MISTAKEN)
def test_every_refusal_names_its_rule(name):
    from apex_lessons.models import ConfigError, explain
    from apex_lessons.models.remarks import RULES

    case = MISTAKEN[name]
    if "config" not in case:
        return
    try:
        report = explain(case["config"])
    except ConfigError as error:
        assert error.rule in RULES
    else:
        assert {item.rule for item in report.settings.remarks} <= set(RULES)
