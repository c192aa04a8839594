"""Released models: our numbers are those that their libraries give."""

import copy
import math
import re

import pytest

from apex_lessons.models import explain, rope_from_config
from tests.models.cases import RELEASED

TURNING = {name: case for name, case in RELEASED.items() if case["expected"]["rotary"]}
STANDING = {name: case for name, case in RELEASED.items() if name not in TURNING}
EXACT = ("layout", "rope_type", "head_dim", "rotary_dims", "pairs", "original_length",
         "query_key_dims", "longer_than_original", "longer_than_original_after_scaling",
         "counts", "longer_than_original_after_scaling_long", "counts_long",
         "score_factor_covers")
CLOSE = ("base", "factor", "attention_factor", "score_factor")


def check(data, expected):
    for key in EXACT:
        if key in expected:
            assert data[key] == expected[key], key
    for key in CLOSE:
        assert math.isclose(data[key], expected[key], rel_tol=1e-12), key
    for key in ("inv_freq", "inv_freq_long"):
        for pair, value in expected.get(key, {}).items():
            assert math.isclose(data[key][int(pair)], value, rel_tol=1e-9), (key, pair)


@pytest.mark.parametrize("name", TURNING)
def test_numbers(name):
    case = TURNING[name]
    data = explain(case["config"]).data()
    expected = case["expected"]
    check(data, expected)
    for label, own in expected.get("per_layer_type", {}).items():
        check(data["per_layer_type"][label], own)
    if "top_level_is" in expected:
        assert data["top_level_is"] == expected["top_level_is"]
    assert data["layers_without_rotary"] == expected.get("layers_without_rotary", [])
    for position, factor in expected.get("query_factor_on_layers_without_rotary",
                                         {}).items():
        assert math.isclose(data["query_factor"]["at"][position], factor, rel_tol=1e-12)


@pytest.mark.parametrize("name", [name for name in TURNING
                                  if "at_length" in TURNING[name]["expected"]])
def test_numbers_at_a_length(name):
    case = TURNING[name]
    for length, expected in case["expected"]["at_length"].items():
        data = explain(case["config"], int(length)).data()
        for pair, value in expected["inv_freq"].items():
            assert math.isclose(data["inv_freq"][int(pair)], value, rel_tol=1e-9)
        assert math.isclose(data["parameters"]["base_at_length"], expected["base"],
                            rel_tol=1e-9)


@pytest.mark.parametrize("name", STANDING)
def test_models_without_rotary_positions_invent_no_frequencies(name):
    case = STANDING[name]
    result = rope_from_config(case["config"])
    assert result == {} and result.positions == case["expected"]["positions"]
    assert result.notes and "no rotary positions" in result.notes[-1]
    data = explain(case["config"]).data()
    assert data["rotary"] is False and "inv_freq" not in data


@pytest.mark.parametrize("name", RELEASED)
def test_released_settings_are_no_mistakes(name):
    config = RELEASED[name]["config"]
    before = copy.deepcopy(config)
    assert rope_from_config(config).warnings == ()
    assert config == before  # never changed


@pytest.mark.parametrize("name", [name for name, case in TURNING.items()
                                  if "should_mention" in case["expected"]])
def test_surprises_are_mentioned(name):
    """Each surprise has a sentence that shares its numbers and most of its words."""
    case = TURNING[name]
    report = explain(case["config"])
    said = re.split(r"\n(?=- |  )", report.text()) + [
        item.text for item in report.settings.remarks]
    stated = str(case["config"])
    for mention in case["expected"]["should_mention"]:
        key = mention.split()[0]
        if ("not in the file" in mention) == (f"'{key}'" in stated) and "_" in key:
            continue  # the sentence is about the other spelling of this model
        if mention.startswith("rope_scaling null is fine"):
            assert report.settings.warnings == ()
            continue
        assert best_match(mention, said) >= 0.5, mention


def best_match(mention, sentences):
    wanted = words(mention)
    return max(len(wanted & words(sentence)) / len(wanted) for sentence in sentences)


def words(text):
    return {word.rstrip("s")
            for word in re.findall(r"[a-z_]{3,}|\d[\d.]*\d|\d", text.lower())}


def test_both_spellings_give_the_same_numbers():
    for name in TURNING:
        if name.endswith("(old spelling)"):
            other = name.replace("(old", "(new")
            left, right = (explain(TURNING[key]["config"]).data()
                           for key in (name, other))
            assert left["inv_freq"] == right["inv_freq"]
            assert left["score_factor"] == right["score_factor"]
