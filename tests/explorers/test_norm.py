"""NormExplorer: roundings against torch, closed forms against the measurement."""

import math
import random
import warnings

import pytest
import torch

from apex_lessons import norm
from apex_lessons.explorers import norm as explorer_norm
from apex_lessons.explorers.norm import NormExplorer, all_in_dtype, rounded, wide_inside
from apex_lessons.figures import norm as figures
from apex_lessons.figures import png
from tests.explorers.page import run_states

HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def with_settings(**settings):
    explorer = NormExplorer()
    explorer.set(**settings)
    return explorer


def shown(tmp_path, **settings):
    state = {**NormExplorer().defaults(), **settings}
    (page,) = run_states(tmp_path, NormExplorer, [state])
    return page


@pytest.mark.parametrize("dtype", HALF)
def test_rounding_is_torchs_for_every_kind_of_float32_number(dtype):
    pick = random.Random(dtype)
    values = [pick.choice([-1, 1]) * math.exp(pick.uniform(-95, 88))
              for _ in range(4000)]
    values += [pick.uniform(-1e-7, 1e-7) for _ in range(500)]  # subnormal in float16
    values += [1 + k / 2**12 for k in range(33)]
    values += [65519.0, 65520.0, 65504.0, 2.0**-25, 0.0]
    numbers = torch.tensor(values, dtype=torch.float32)
    wanted = numbers.to(HALF[dtype]).double().tolist()
    assert [rounded(value, dtype) for value in numbers.tolist()] == wanted


def test_rounding_to_float32_and_of_no_numbers():
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0),
                         dtype=torch.float64) * 1e30
    assert [rounded(v, "float32") for v in values.tolist()] == values.float().tolist()
    assert rounded(1e39, "float32") == math.inf
    assert math.isnan(rounded(math.nan, "float16"))


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("size", [1e-4, 1.0, 200.0])
def test_all_in_dtype_is_the_printed_code_up_to_one_step(dtype, size):
    generator = torch.Generator().manual_seed(1)
    x = (size * torch.randn(200, 8, generator=generator)).to(HALF[dtype])
    wanted = figures.printed_rms_norm(x, eps=1e-6).double()
    ours = torch.tensor([all_in_dtype(row, 1e-6, dtype) for row in x.double().tolist()],
                        dtype=torch.float64)
    assert torch.equal(ours.isfinite(), wanted.isfinite())
    assert torch.allclose(ours, wanted, rtol=2 * torch.finfo(HALF[dtype]).eps, atol=0)
    assert (ours == wanted).double().mean() > 0.9


@pytest.mark.parametrize("dtype", HALF)
def test_wide_inside_is_the_package_s_norm_up_to_one_step(dtype):
    x = torch.randn(200, 8, generator=torch.Generator().manual_seed(2)).to(HALF[dtype])
    wanted = norm.rms_norm(x, eps=1e-6).double()
    ours = torch.tensor([wide_inside(row, 1e-6, dtype) for row in x.double().tolist()],
                        dtype=torch.float64)
    assert torch.allclose(ours, wanted, rtol=torch.finfo(HALF[dtype]).eps, atol=0)
    assert (ours == wanted).double().mean() > 0.99


def test_the_gain_is_what_the_page_measures():
    start = figures.through_depth("pre").size[0]
    for blocks in (18, 36, 72):
        measured = figures.through_depth("pre").size[blocks]
        closed = figures.stream_rms(2 * blocks, explorer_norm.GAIN, "pre", start)
        assert closed == pytest.approx(measured, rel=0.3)
        grown = math.log10(figures.through_depth("none").size[blocks])
        closed = math.log10(figures.stream_rms(2 * blocks, explorer_norm.GAIN, "none"))
        assert closed == pytest.approx(grown, rel=0.1)


def test_the_base_has_mean_zero_and_then_the_norms_agree():
    assert sum(explorer_norm.BASE) == pytest.approx(0, abs=1e-12)
    vectors = with_settings(shift=0.0).vectors()
    assert vectors["layer"] == pytest.approx(vectors["output"], abs=1e-6)
    apart = with_settings(shift=2.0).vectors()
    assert max(abs(a - b) for a, b in zip(apart["layer"], apart["output"])) > 0.5


@pytest.mark.parametrize("shift", [-10.0, -0.3, 0.0, 4.0])
@pytest.mark.parametrize("outlier", [1.0, 30.0])
def test_facts_follow_the_identities(shift, outlier):
    facts = with_settings(shift=shift, outlier=outlier).facts()
    for name in ("", "output_", "layer_"):
        mean, variance, rms = (facts[name + fact]
                               for fact in ("mean", "variance", "rms"))
        assert rms**2 == pytest.approx(variance + mean**2, rel=1e-9)
    assert facts["output_rms"] == pytest.approx(1, abs=1e-5)
    assert facts["layer_mean"] == pytest.approx(0, abs=1e-6)
    assert facts["lost"] == facts["infinite"] == 0


def test_scale_changes_nothing_and_epsilon_does():
    plain, large = with_settings().vectors(), with_settings(scale=1000.0).vectors()
    assert plain["output"] == pytest.approx(large["output"], abs=1e-6)
    facts = with_settings(scale=1e-3, eps=1e-6).facts()
    wanted = figures.output_rms(facts["rms"], 1e-6).item()
    assert facts["right_rms"] == pytest.approx(wanted) and wanted < 0.75


@pytest.mark.parametrize("name, fact, wanted", [
    ("float16, too large", "output_rms", 0.0),
    ("float16, too large", "squares_infinite", 4),
    ("float16, too small", "lost", 8), ("72 blocks, no norm", "infinite", 8),
    ("72 blocks, no norm", "lost_layer", 8), ("Llama 2 7B", "lost", 0)])
def test_presets_show_what_their_names_say(name, fact, wanted):
    assert with_settings(**NormExplorer.presets[name]).facts()[fact] == wanted


def test_the_wide_dtype_saves_the_silenced_token():
    preset = {**NormExplorer.presets["float16, too large"], "inside": True}
    assert with_settings(**preset).facts()["output_rms"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("preset", NormExplorer.presets)
def test_every_preset_has_a_picture_and_a_sentence(preset):
    explorer = with_settings(**NormExplorer.presets[preset])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(png(explorer.figure())) > 5000
    assert "nan" not in explorer.alt() and len(explorer.alt()) > 100


@pytest.mark.parametrize("settings, phrase", [
    ({"dtype": "float16", "inside": False, "scale": 300.0}, "silenced"),
    ({"dtype": "float16", "inside": False, "scale": 1e-4, "eps": 1e-8}, "divisor is 0"),
    ({"dtype": "float16", "inside": False, "scale": 3e-4}, "vanish"),
    ({"dtype": "float16", "placement": "none", "depth": 72}, "comes too late"),
    ({"dtype": "float16", "inside": True, "scale": 300.0}, "nothing happens"),
    ({"scale": 1e-4}, "Epsilon is felt"), ({}, "Epsilon is not felt"),
    ({"depth": 10}, "After **10** blocks with pre-norm")])
def test_the_words_say_what_happened(tmp_path, settings, phrase):
    assert phrase in " ".join(shown(tmp_path, **settings)["words"])


def test_the_picture_holds_the_same_numbers_as_python(tmp_path):
    settings = {"shift": 1.3, "outlier": 7.0, "dtype": "bfloat16", "inside": False}
    frames = shown(tmp_path, **settings)["frames"]
    vectors = with_settings(**settings).vectors()
    marks = {mark["key"]: mark for mark in frames["after"]["marks"]
             if mark["kind"] == "dots"}
    for key in ("output", "layer"):
        assert marks[key]["y"] == vectors[key]
    assert marks["right"]["y"] == pytest.approx(vectors["right"], rel=1e-12)
    lines = {mark["key"]: mark["y"] for mark in frames["stream"]["marks"]
             if mark["kind"] == "line"}
    assert lines["pre"][72] == pytest.approx(
        with_settings(**settings, depth=72).facts()["stream_pre"], rel=1e-12)


def test_placement_rests_until_there_are_blocks(tmp_path):
    states = [{**NormExplorer().defaults(), "depth": depth} for depth in (0, 1)]
    pages = run_states(tmp_path, NormExplorer, states, "facts")
    assert [page["enabled"]["placement"] for page in pages] == [False, True]
