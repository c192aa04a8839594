"""The regimes laboratory: the page's reader of config.json, and the facts."""

from __future__ import annotations

import json
import math
import random

import pytest

from apex_lessons import rope, yarn
from apex_lessons.explorers.yarn import METHODS, RegimesLaboratory, family_table
from apex_lessons.models.families import families
from tests.explorers.page import READER, close, run_node

YARN = {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 4096}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
SIZES = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 12,
         "max_position_embeddings": 65536}
LLAMA = {"model_type": "llama", **SIZES}
DEFAULTS = RegimesLaboratory().defaults()

# The numbers and words of each state, without its pictures.
READS = READER + """
const { default: module } = await import(given.script);
const laboratory = module.definitions.RegimesLaboratory;
console.log(written(given.states.map((state) => answer(() => {
  const problem = laboratory.problem(state);
  if (problem) return { problem };
  const facts = laboratory.facts(state);
  return { problem, facts, words: laboratory.words(state, facts) };
}))));
"""

# What each variant adds to a family's sizes.
VARIANTS = {
    "bare": {},
    "base": {"rope_theta": 250_000.0},
    "old yarn": {"rope_theta": 50_000.0, "rope_scaling": {**YARN, "type": "yarn"}},
    "new yarn": {"rope_parameters": {**YARN, "rope_theta": 70_000.0, "beta_fast": 16}},
    "unrounded": {"rope_scaling": {**YARN, "truncate": False,
                                   "attention_factor": 1.25}},
    "deepseek": {"rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.7}},
    "linear": {"rope_scaling": {"type": "linear", "factor": 4}},
    "dynamic": {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
    "llama3": {"rope_scaling": LLAMA3},
    "partial": {"partial_rotary_factor": 0.5, "head_dim": 128},
    "inside": {"text_config": {"model_type": "qwen2", **SIZES, "rope_scaling": YARN}},
    "two sets": {"rope_parameters": {
        "full_attention": {**YARN, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}},
}
ODD = {
    "empty": "{}", "no JSON": "rope_theta: 10000", "a list": "[1, 2]", "a number": "7",
    "cut off": '{"model_type": "llama", "hidd', "Python": "{'model_type': 'llama'}",
    "NaN": '{"model_type": "llama", "rope_theta": NaN}', "deep": "[" * 5000,
    "1e400": json.dumps(LLAMA)[:-1] + ', "rope_theta": 1e400}',
    "no rotary": {"model_type": "gpt2", "n_embd": 768, "n_head": 12},
    "unknown family": {"model_type": "brand-new", **SIZES, "rope_theta": 1e5},
    "unknown and silent": {"model_type": "brand-new", **SIZES},
    "by architecture": {"architectures": ["Qwen3ForCausalLM"], **SIZES},
    "unknown method": {**LLAMA, "rope_scaling": {"type": "magic", "factor": 4}},
    "two names": {**LLAMA, "rope_scaling": {**YARN, "type": "linear"}},
    "factor 0.25": {**LLAMA, "rope_scaling": {"type": "linear", "factor": 0.25}},
    "factor text": {**LLAMA, "rope_scaling": {"type": "linear", "factor": "4"}},
    "factor true": {**LLAMA, "rope_scaling": {"type": "linear", "factor": True}},
    "no factor": {**LLAMA, "rope_scaling": {"type": "linear"}},
    "swapped betas": {**LLAMA, "rope_scaling": {**YARN, "beta_fast": 1,
                                                "beta_slow": 32}},
    "equal betas": {**LLAMA, "rope_scaling": {**YARN, "beta_fast": 1, "beta_slow": 1}},
    "swapped cuts": {**LLAMA, "rope_scaling": {**LLAMA3, "low_freq_factor": 9}},
    "short training": {**LLAMA, "rope_scaling": {
        **YARN, "original_max_position_embeddings": 4}},
    "truncate text": {**LLAMA, "rope_scaling": {**YARN, "truncate": "false"}},
    "no original": {**LLAMA, "rope_scaling": {"type": "yarn", "factor": 4.0}},
    "odd width": {**LLAMA, "head_dim": 63}, "width 2": {**LLAMA, "head_dim": 2},
    "no division": {**LLAMA, "num_attention_heads": 30},
    "lists": {"model_type": "phi3", **SIZES, "original_max_position_embeddings": 4096,
              "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 64,
                               "long_factor": [1.0 + i / 2 for i in range(64)]}},
    "short lists": {"model_type": "phi3", **SIZES, "rope_scaling": {
        "type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}},
    "proportional": {"model_type": "gemma4_text", **SIZES, "head_dim": 128},
    "params.json": {"dim": 4096, "n_heads": 32, "rope_theta": 5e5,
                    "use_scaled_rope": True},
}


def texts(named):
    return {name: given if isinstance(given, str) else json.dumps(given)
            for name, given in named.items()}


def read_by_the_page(folder, states):
    """What the page makes of each state; an error of the script fails the test."""
    script = folder / "laboratory.mjs"
    script.write_text(RegimesLaboratory._esm, encoding="utf-8")
    answers = run_node(READS, {"script": script.as_uri(), "states": states})
    for answer, state in zip(answers, states):
        assert "error" not in answer, (answer["error"], state["config"][:200])
    return [answer["value"] for answer in answers]


def compared(folder, named, length):
    """(name, facts or None, Python's problem, what the page shows) for each text."""
    states = [{**DEFAULTS, "length": length, "config": text} for text in named.values()]
    explorer = RegimesLaboratory()
    for name, state, shown in zip(named, states, read_by_the_page(folder, states)):
        explorer.set(**state)
        try:
            yield name, explorer.facts(), None, shown
        except ValueError as problem:
            yield name, None, str(problem), shown


def assert_agreement(name, facts, problem, shown):
    theirs = shown["problem"]
    assert (problem is None) == (theirs is None), (name, problem, theirs)
    if problem is None:
        for key, value in facts.items():
            assert close(shown["facts"][key], value), (name, key, value)
        assert "Read from the file" in " ".join(shown["words"])
    else:
        assert len(shown["problem"]) > 15


@pytest.mark.parametrize("length", [2048, 200_000])
def test_odd_and_broken_files_are_answered_alike(tmp_path, length):
    answers = list(compared(tmp_path, texts(ODD), length))
    for answer in answers:
        assert_agreement(*answer)
    refused = {name for name, _, problem, _ in answers if problem}
    assert {"empty", "no JSON", "NaN", "factor 0.25", "swapped betas", "no rotary",
            "short training", "odd width", "unknown and silent"} <= refused
    assert not {"equal betas", "lists", "by architecture", "proportional"} & refused


# What both must say: the key, what is allowed, the value seen, and what to do.
SAID = {
    "factor 0.25": ("factor", "at least 1", "0.25", "did you mean 4?"),
    "a percentage": ("partial_rotary_factor", "above 0", "at most 1", "25",
                     "did you mean 0.25?"),
    "a base of 0": ("rope_theta", "must be above", "0"),
    "a base of NaN": ("rope_theta", "no number that a computer holds"),
    "truncate text": ("truncate", "must be true or false", "false",
                      "a string that is not empty counts as true"),
    "unknown method": ("magic", "is no scaling method",
                       "default, linear, dynamic, yarn, longrope, llama3"),
    "tokenizer": ("looks like tokenizer_config.json", "config.json"),
    "two names": ("yarn", "linear", "type"),
    "head 65": ("head_dim", "65"),
    "apex1 elsewhere": ("apex1", "is no scaling method"),
}
FURTHER = {
    "a percentage": {**LLAMA, "head_dim": 128, "partial_rotary_factor": 25,
                     "model_type": "phi3"},
    "a base of 0": {**LLAMA, "rope_theta": 0},
    "a base of NaN": json.dumps(LLAMA)[:-1] + ', "rope_theta": NaN}',
    "tokenizer": {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>"},
    "head 65": {**LLAMA, "head_dim": 65},
    "apex1 elsewhere": {**LLAMA, "rope_scaling": {"type": "apex1", "factor": 8.0}},
}


def test_a_refusal_names_key_value_range_and_advice_in_both(tmp_path):
    named = texts({name: {**ODD, **FURTHER}[name] for name in SAID})
    for name, _, problem, shown in compared(tmp_path, named, 2048):
        for words in SAID[name]:
            assert words.lower() in problem.lower(), (name, problem)
            assert words.lower() in shown["problem"].lower(), (name, shown)


def test_the_page_blames_what_is_to_blame(tmp_path):
    """No share where the width is odd; no "null" where there is no family."""
    named = texts({"head 65": FURTHER["head 65"], "silent": SIZES,
                   "unread NaN": '{"note": NaN, ' + json.dumps(LLAMA)[1:],
                   "no set": {"model_type": "gemma3_text", **SIZES, "rope_parameters": {
                       "full_attention": {"rope_type": "default"}}}})
    shown = {name: page["problem"] for name, _, _, page in compared(
        tmp_path, named, 2048)}
    assert "partial_rotary_factor" not in shown["head 65"]
    assert "no model_type" in shown["silent"] and "null" not in shown["silent"]
    assert shown["unread NaN"] is None
    assert "for sliding_attention;" in shown["no set"]


def test_every_family_is_read_as_python_reads_it(tmp_path):
    """All families, each bare and in three of the other variants, turn by turn."""
    variants = list(VARIANTS)[1:]
    configs = {}
    for turn, family in enumerate(families()):
        steps = [variants[(turn + step) % len(variants)] for step in (0, 4, 7)]
        for variant in ("bare", *steps):
            given = {"model_type": family, **SIZES, **VARIANTS[variant]}
            configs[f"{family}, {variant}"] = given
    agreed = left = 0
    for name, facts, problem, shown in compared(tmp_path, texts(configs), 200_000):
        # which layers there are is for Python to find out; the page takes the first set
        if "this page does not know" in (shown["problem"] or "") \
                or "no layer type of this file" in (problem or ""):
            left += 1
            continue
        assert_agreement(name, facts, problem, shown)
        agreed += problem is None
    assert agreed > 700 and left < len(configs) / 30


def test_only_a_few_families_are_left_to_python():
    table = family_table()["families"]
    assert sum(line is None for line in table.values()) < len(table) / 25
    assert table["gpt2"] == "learned absolute" and table["llama"] == {
        "sizes": (4096, 32, 32, 2048)}


def test_the_page_carries_the_table_and_not_the_placeholder():
    script = RegimesLaboratory()._esm
    assert "/* families */" not in script and '"deepseek_v3":{' in script


# Facts against the course's own functions


@pytest.mark.parametrize("method", METHODS)
def test_each_method_is_the_one_of_the_course(method):
    explorer = RegimesLaboratory(method=method, other="none")
    settings = {"base": 10_000.0, "factor": 32.0, "trained_length": 4096}
    wanted = {
        "yarn": lambda: yarn.yarn(128, **settings),
        "yarn-other": lambda: yarn.yarn(128, **settings, ramp="rotations"),
        "none": lambda: yarn.ScaledFrequencies(rope.inverse_frequencies(128), 1.0),
        "linear": lambda: yarn.position_interpolation(128, base=1e4, factor=32.0),
        "ntk": lambda: yarn.ntk_aware(128, base=1e4, factor=32.0),
        "dynamic": lambda: yarn.dynamic_ntk(128, **settings, length=131072),
        "llama3": lambda: yarn.llama3(128, **settings),
        "proportional": lambda: yarn.proportional(128, base=1e4,
                                                  partial_rotary_factor=0.25),
        "apex1": lambda: yarn.apex1(128, base=1e4, factor=32.0),
    }[method]()
    _, first, second, _ = explorer.sides()
    assert first.inv_freq.tolist() == wanted.inv_freq.tolist()
    assert first.attention_factor == wanted.attention_factor
    assert second.inv_freq.tolist() == rope.inverse_frequencies(128).tolist()


def test_the_default_state_tells_the_lesson():
    facts = RegimesLaboratory().facts()
    assert (facts["unchanged"], facts["blended"], facts["divided"]) == (21, 25, 18)
    assert facts["never_turned"] == 18
    assert (facts["new_angles"], facts["new_angles_other"]) == (0, 17)
    assert facts["score_factor"] == pytest.approx(1.8132604340394958)
    ramps = RegimesLaboratory(other="yarn-other").facts()
    assert (ramps["pair_1"], round(ramps["ratio_1"], 2)) == (40, 3.96)
    printed = RegimesLaboratory(method="apex1", other="yarn").facts()
    assert (printed["unchanged"], printed["divided"]) == (12, 52)
    assert printed["fast_slowed"] == 9


@pytest.mark.parametrize("preset, counts, score", [
    ("Llama 2 128K", (21, 25, 18), 1.8132604340394958),
    ("gpt-oss-20b", (9, 9, 14), 1.8132604340394958),
    ("DeepSeek-V3", (11, 12, 9), 1.8738542070926265),
    ("Kimi-K2-0905 (width inferred)", (20, 0, 12), 2.004739701682487),
    ("Qwen2.5-7B, opt-in", (24, 16, 24), 1.2964769927807063),
    ("Olmo-3.1-32B", (19, 16, 29), 1.2079441541679836 ** 2),
    ("Llama-3.1-8B", (29, 6, 29), 1.0), ("APEX-1 Large", (8, 0, 56), 1.0),
])
def test_presets_give_the_numbers_of_their_models(preset, counts, score):
    explorer = RegimesLaboratory()
    explorer.set(**RegimesLaboratory.presets[preset])
    facts = explorer.facts()
    assert (facts["unchanged"], facts["blended"], facts["divided"]) == counts
    assert facts["score_factor"] == pytest.approx(score, rel=1e-12)


def test_a_temperature_like_deepseek_v2s():
    facts = RegimesLaboratory(factor=40.0, head_dim=64, mscale=0.707,
                              temperature="softmax").facts()
    assert facts["attention_factor"] == 1.0
    assert facts["score_factor"] == pytest.approx(1.5896261651208734, rel=1e-12)


def test_the_three_largest_disagreements_are_the_largest():
    pick = random.Random(3)
    explorer = RegimesLaboratory()
    for _ in range(40):
        method, other = pick.choices(list(METHODS), k=2)
        explorer.set(method=method, other=other, factor=pick.uniform(1, 100),
                     head_dim=2 * pick.randint(4, 100))
        _, first, second, _ = explorer.sides()
        ratios = [1.0 if a == b else max(a, b) / min(a, b) if min(a, b) else math.inf
                  for a, b in zip(first.inv_freq.tolist(), second.inv_freq.tolist())]
        facts = explorer.facts()
        shown = [facts[f"ratio_{place}"] for place in (1, 2, 3)]
        assert shown == [ratios[facts[f"pair_{place}"]] for place in (1, 2, 3)]
        assert all(math.isclose(a, b, rel_tol=1e-6) or a == b
                   for a, b in zip(shown, sorted(ratios, reverse=True)))


def test_settings_that_do_not_go_together_say_so():
    for settings, words in (({"beta_fast": 1.0, "beta_slow": 2.0}, "beta_fast"),
                            ({"trained_length": 64, "beta_slow": 20.0,
                              "beta_fast": 30.0}, "too short"),
                            ({"head_dim": 11}, "even"),
                            ({"method": "llama3", "high_freq_factor": 0.5,
                              "low_freq_factor": 3.0}, "high_freq_factor")):
        with pytest.raises(ValueError, match=words):
            RegimesLaboratory(**settings).facts()
    # the betas do not matter where no method asks for them
    RegimesLaboratory(method="linear", other="none", beta_fast=1.0,
                      beta_slow=2.0).facts()
