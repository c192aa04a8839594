"""Methods and measurements, against formulas written out and what is stored."""

import dataclasses
import hashlib
import itertools
import json
import math
import shutil

import pytest
import torch
from torch.nn import functional as F

from apex_lessons import yarn
from apex_lessons.extrapolation import (
    LENGTHS,
    METHODS,
    DecoderSettings,
    attention_entropy,
    load_checkpoint,
    measure,
    natural_text,
    provenance,
    read_by,
    reading,
    seeds,
    select,
    stored,
    text_for,
    training_record,
)
from apex_lessons.extrapolation.checkpoints import DATA
from apex_lessons.extrapolation.checkpoints import training_record as record_in
from apex_lessons.extrapolation.measuring import DISTANCES, TEXTS, TextRows
from apex_lessons.extrapolation.study import (
    Job,
    after_tuning,
    all_tunings,
    measured,
    static_scaling,
    tuned_results,
    zero_shot,
)

SETTINGS = DecoderSettings()


@pytest.fixture(scope="module")
def decoder():
    return load_checkpoint(seeds()[0])


@pytest.mark.parametrize("method", METHODS)
def test_at_the_trained_length_every_method_is_plain(method):
    how = reading(method, SETTINGS, 512)
    assert torch.equal(how.scaled.inv_freq, SETTINGS.plain.inv_freq)
    assert how.scaled.attention_factor == how.score_factor == 1.0


@pytest.mark.parametrize("method", [m for m in METHODS if m != "none"])
def test_past_it_every_method_but_none_changes_something(method):
    how = reading(method, SETTINGS, 2048)
    assert not torch.equal(how.scaled.inv_freq, SETTINGS.plain.inv_freq)


def test_methods_are_the_lesson_s_own_functions():
    common = {"base": 10_000.0, "factor": 4.0, "trained_length": 512}
    four = {name: reading(name, SETTINGS, 2048) for name in METHODS}
    assert torch.equal(four["yarn"].scaled.inv_freq, yarn.yarn(64, **common).inv_freq)
    assert four["yarn"].scaled.attention_factor == 0.1 * math.log(4) + 1
    assert four["ntk_by_parts"].scaled.attention_factor == 1.0
    assert torch.equal(
        four["yarn"].scaled.inv_freq, four["ntk_by_parts"].scaled.inv_freq
    )
    assert four["apex1"].score_factor == 1.0
    assert four["apex1_scores"].score_factor == 0.1 * math.log(4) + 1
    assert torch.equal(
        four["llama3"].scaled.inv_freq, yarn.llama3(64, **common).inv_freq
    )


def test_all_three_regimes_have_several_pairs():
    """Why the heads are 64 wide and 512 bytes were trained."""
    scaled = reading("yarn", SETTINGS, 2048).scaled.inv_freq
    regimes = yarn.regimes(SETTINGS.plain.inv_freq, scaled, 4.0)
    assert torch.bincount(regimes.long()).tolist() == [4, 12, 16]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "linear"}, "method must be"),
        ({"length": 0}, "length"),
        ({"factor": 0.25}, "factor"),
    ],
)
def test_unusable_requests_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        reading(**({"method": "yarn", "settings": SETTINGS, "length": 9} | given))


def test_a_loss_is_what_its_formula_says(decoder):
    text = text_for("recall", 512, size=1024)
    got = measure(decoder, text, "none")
    with torch.inference_mode():
        logits = decoder(text.ids)
    losses = F.cross_entropy(logits[:, :-1].mT, text.ids[:, 1:], reduction="none")
    assert got.loss == pytest.approx(losses.mean().item(), abs=1e-5)
    bins = [
        losses[:, max(0, at - 1) : at + 127].mean().item() for at in range(0, 512, 128)
    ]
    assert got.by_position == pytest.approx(bins, abs=1e-5)
    answers = text.distance[:, 1:] > 0
    right = (logits[:, :-1].argmax(-1) == text.ids[:, 1:])[answers]
    assert got.accuracy == pytest.approx(right.double().mean().item())
    assert sum(n for _, n in got.by_distance) == int(answers.sum())
    assert sum(r for r, _ in got.by_distance) == int(right.sum())


def test_dynamic_scaling_reads_each_part_with_the_length_so_far(decoder):
    ids = text_for("recall", 1536, size=1).ids[0]
    losses, _ = read_by(decoder, ids, "dynamic_ntk")
    assert len(losses) == len(ids) - 1
    for end in (512, 1024, 1536):
        scaled = yarn.dynamic_ntk(
            64, base=10_000.0, factor=1.0, trained_length=512, length=end
        )
        with torch.inference_mode():
            logits = decoder(ids[None, :end], scaled)[0, :-1]
        wanted = F.cross_entropy(logits, ids[1:end], reduction="none")
        start = max(0, end - 513)
        torch.testing.assert_close(losses[start : end - 1], wanted[start:])


def test_entropy_is_minus_sum_p_ln_p(decoder):
    ids = text_for("recall", 64, size=1).ids[0]
    got = attention_entropy(decoder, ids, reading("none", SETTINGS, 64))
    cos, sin = decoder.tables(64)
    block = decoder.blocks[0]
    x = block.attention_norm(decoder.embedding(ids[None]))
    p = block.attention.log_weights(x, cos, sin, 1 / 8).exp()[0]
    torch.testing.assert_close(p.sum(-1), torch.ones_like(p.sum(-1)))
    wanted = torch.special.entr(p)[:, -16:].sum(-1).mean(-1)
    torch.testing.assert_close(got[0], wanted)
    assert got.shape == (4, 2) and 0 < got.min() and got.max() < math.log(64)


# --- what is stored -----------------------------------------------------------------


def test_everything_that_was_planned_is_stored_once():
    planned = [*zero_shot(seeds()), *static_scaling(seeds())]
    for seed, method in all_tunings(seeds()):
        planned += after_tuning(seed, method)
    kept = [
        Job(r.seed, r.text, r.method, r.factor, r.length, r.tuned) for r in stored()
    ]
    assert len(kept) == len(set(kept)) == len(planned)
    assert set(kept) == set(planned)


def test_the_results_are_of_the_shipped_models():
    models = training_record()["models"]
    hashes = {seed: model["sha256"] for seed, model in models.items()}
    assert provenance()["checkpoints_sha256"] == hashes
    assert {"torch", "python", "natural_text_sha256"} <= provenance().keys()


SAMPLE = [("none", 512), ("yarn", 1024), ("position_interpolation", 1024)]


@pytest.mark.parametrize(("method", "length"), SAMPLE)
@pytest.mark.parametrize("seed", seeds()[:2])
def test_a_stored_result_comes_out_again(seed, method, length):
    """Recall text only: natural text is another in another version of Python."""
    again = measured(Job(seed, "recall", method, None, length))
    kept = next(r for r in select(method=method, length=length) if r.seed == seed)
    assert round(again.loss, 3) == pytest.approx(round(kept.loss, 3), abs=1.01e-3)
    assert again.by_position == pytest.approx(kept.by_position, abs=2e-3)
    assert again.entropy == pytest.approx(kept.entropy, abs=2e-3)
    for (right, n), (kept_right, kept_n) in zip(
        again.by_distance, kept.by_distance, strict=True
    ):
        assert n == kept_n and abs(right - kept_right) <= max(2, 0.01 * n)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_far_results_come_out_again(method):
    again = measured(Job(seeds()[-1], "recall", method, None, LENGTHS[-1]))
    kept = next(
        r for r in select(method=method, length=LENGTHS[-1]) if r.seed == seeds()[-1]
    )
    assert again.loss == pytest.approx(kept.loss, abs=2e-3)
    assert again.by_position == pytest.approx(kept.by_position, abs=5e-3)


def assert_as_stored(again, kept):
    """Exactly, unless this Python's library is another text than was read."""
    same_text = natural_text().sha256 == provenance()["natural_text_sha256"]
    # a tuned model has learned from natural text too, and moves with it
    moves = again.tuned or again.text == "natural"
    loosely = moves and not same_text
    assert again.loss == pytest.approx(kept.loss, abs=0.2 if loosely else 1e-3)
    if not loosely:
        assert again.by_position == pytest.approx(kept.by_position, abs=2e-3)
        assert again.entropy == pytest.approx(kept.entropy, abs=2e-3)
        assert [n for _, n in again.by_distance] == [n for _, n in kept.by_distance]


def kept_as(job):
    found = select(
        method=job.method,
        length=job.length,
        text=job.text,
        factor=job.factor,
        tuned=job.tuned,
    )
    return next(r for r in found if r.seed == job.seed)


def test_natural_text_reads_as_stored():
    job = Job(seeds()[0], "natural", "none", None, 512)
    assert_as_stored(measured(job), kept_as(job))


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_static_results_come_out_again(text):
    job = static_scaling(seeds()[1:2])[0]
    job = dataclasses.replace(job, text=text, method="yarn")
    assert job.factor == 4.0 and job.length == 512
    assert_as_stored(measured(job), kept_as(job))


@pytest.mark.slow
def test_tuned_results_come_out_again():
    """A hundred steps of one model with one method, measured short and far."""
    method = "position_interpolation"
    planned = after_tuning(seeds()[0], method)[:2]
    again = itertools.islice(tuned_results(seeds()[0], method), 2)
    for result, job in zip(again, planned, strict=True):
        assert_as_stored(result, kept_as(job))


def test_a_spoilt_checkpoint_is_refused(tmp_path):
    (tmp_path / "training.json").write_bytes((DATA / "training.json").read_bytes())
    weights = bytearray((DATA / "seed-0.safetensors").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "seed-0.safetensors").write_bytes(weights)
    assert record_in(tmp_path) == training_record()
    with pytest.raises(ValueError, match="hash differs"):
        load_checkpoint(0, folder=tmp_path)


def shipped_record():
    return json.loads((DATA / "training.json").read_bytes())


def without(*keys):
    record = shipped_record()
    part = record
    for key in keys[:-1]:
        part = part[key]
    del part[keys[-1]]
    return record


def escaping():
    record = shipped_record()
    record["models"]["0"]["file"] = "../seed-0.safetensors"
    return record


@pytest.mark.parametrize(
    "record",
    [
        {},
        [],
        None,
        "no JSON",
        without("decoder"),
        without("models"),
        without("left_out"),
        without("models", "0", "sha256"),
        without("models", "1", "log"),
        escaping(),
        shipped_record() | {"decoder": {"head_dim": 7}},
        shipped_record() | {"decoder": {"width": 7}},
        shipped_record() | {"models": {"a": {"log": []}}},
    ],
)
def test_a_record_that_is_none_is_refused(tmp_path, record):
    path = tmp_path / "training.json"
    content = record if record == "no JSON" else json.dumps(record)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"training\.json is not what .*make it anew"):
        load_checkpoint(0, folder=tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "training.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"training\.json is not what"):
        seeds(tmp_path)


def test_weights_of_other_sizes_are_refused(tmp_path):
    record = shipped_record()
    record["decoder"]["d_hidden"] = 128
    (tmp_path / "training.json").write_text(json.dumps(record), encoding="utf-8")
    shutil.copy(DATA / "seed-0.safetensors", tmp_path)
    with pytest.raises(ValueError, match=r"seed-0\.safetensors does not hold weights"):
        load_checkpoint(0, folder=tmp_path)


def test_a_file_of_weights_that_is_gone_is_named(tmp_path):
    shutil.copy(DATA / "training.json", tmp_path)
    with pytest.raises(ValueError, match=r"there is no .*seed-0\.safetensors, which"):
        load_checkpoint(0, folder=tmp_path)


def test_a_file_that_holds_no_weights_is_refused(tmp_path):
    record = shipped_record()
    record["models"]["0"]["sha256"] = hashlib.sha256(b"nothing").hexdigest()
    (tmp_path / "training.json").write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "seed-0.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"seed-0\.safetensors does not hold weights"):
        load_checkpoint(0, folder=tmp_path)


@pytest.mark.parametrize("content", ["{}", "[", '{"results": [{}], "made_with": {}}'])
def test_results_that_are_none_are_refused(tmp_path, content):
    (tmp_path / "results.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"results\.json is not what .*make it anew"):
        stored(tmp_path)


@pytest.mark.parametrize("seed", [99, -1, True, "0", 1.5])
def test_a_seed_that_was_not_trained_is_refused(seed):
    with pytest.raises(ValueError, match="seed must be one of"):
        load_checkpoint(seed)


def test_what_was_not_measured_is_refused():
    with pytest.raises(ValueError, match="nothing was measured"):
        select(method="llama3", length=2048, tuned=True)


def test_short_texts_have_no_more_rows_than_long_ones():
    assert text_for("recall", 2).ids.shape == (64, 2)
    assert text_for("recall", 511).ids.shape == text_for("natural", 511).ids.shape
    assert text_for("recall", 512).ids.shape == (64, 512)
    assert text_for("recall", 4096).ids.shape == (8, 4096)
    assert text_for("recall", 512, size=8192).ids.shape == (16, 512)


def test_jobs_for_another_trained_length_are_multiples_of_it():
    jobs = zero_shot([0], trained_length=64) + static_scaling([0], 64)
    jobs += after_tuning(0, "yarn", 64)
    assert {job.length for job in jobs} == {64, 128, 256, 512}
    assert {job.method for job in jobs if job.length == 64 and not job.factor} == {
        "none"
    }
    assert {job.length for job in jobs if job.factor and not job.tuned} == {64}
    tuned = {(job.length, job.factor) for job in jobs if job.tuned}
    assert tuned == {(64, 4.0), (256, 4.0), (512, 8.0)}


@pytest.mark.parametrize(("method", "passes"), [("yarn", [640]), ("dynamic_ntk", 0)])
def test_what_was_read_is_told(decoder, method, passes):
    told = []
    ids = text_for("recall", 640, size=1).ids[0]
    read_by(decoder, ids, method, on_read=told.append)
    assert told == (passes or [512, 128])


def test_a_text_of_answers_in_every_bin():
    text = text_for("recall", 4096)
    assert isinstance(text, TextRows) and text.ids.shape == (8, 4096)
    edges = zip(DISTANCES[:-1], DISTANCES[1:], strict=True)
    assert all(((text.distance >= a) & (text.distance < b)).any() for a, b in edges)
