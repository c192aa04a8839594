"""Training: deterministic, resumable, and as the shipped logs say."""

import dataclasses

import pytest
import torch

from apex_lessons.extrapolation import (
    DecoderSettings,
    Trainer,
    TrainingSettings,
    left_out,
    load_checkpoint,
    seeds,
    training_log,
    training_record,
)
from apex_lessons.extrapolation.checkpoints import save_checkpoints
from apex_lessons.extrapolation.finetuning import FineTuning, fine_tune
from apex_lessons.extrapolation.training import Stopped, state_file, train

SMALL = DecoderSettings(
    d_model=32, n_heads=2, head_dim=16, n_layers=1, d_hidden=32, trained_length=64
)
SHORT = TrainingSettings(steps=30, rows=2)


def trained(until=None, seed=0):
    trainer = Trainer(seed, SMALL, SHORT)
    for _ in trainer.run(until):
        pass
    return trainer


def same(one, two):
    pairs = zip(one.decoder.parameters(), two.decoder.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_a_stopped_training_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole = trained()
    trained(until=13).save(tmp_path / "state.pt")
    resumed = Trainer(0, SMALL, SHORT)
    resumed.load(tmp_path / "state.pt")
    assert resumed.step == 13
    assert list(resumed.run())[-1] == 30
    assert same(whole, resumed) and whole.log == resumed.log


def test_a_training_told_to_stop_saves_after_the_step_and_goes_on_from_it(tmp_path):
    steps = []

    def seven():
        steps.append(1)
        if len(steps) == 7:
            raise Stopped

    with pytest.raises(Stopped):
        train(Trainer(0, SMALL, SHORT), tmp_path, on_step=seven)
    resumed = Trainer(0, SMALL, SHORT)
    resumed.load(state_file(tmp_path, 0))
    assert resumed.step == 7 and resumed.seconds > 0
    train(resumed, tmp_path)
    assert same(trained(), resumed)


@pytest.mark.parametrize("content", [b"", b"no state", "cut", {"step": 3}])
def test_a_file_that_is_no_state_is_refused(tmp_path, content):
    path = tmp_path / "state.pt"
    if content == "cut":
        trained(until=1).save(path)
        content = path.read_bytes()[:1000]
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(ValueError, match=r"state\.pt .*delete it to start anew"):
        Trainer(0, SMALL, SHORT).load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 0},
        {"warmup": 0},
        {"rows": -1},
        {"first_reach": 0},
        {"learning_rate": 0.0},
        {"clip": float("nan")},
        {"weight_decay": -0.1},
        {"grow_from": -0.5},
        {"grow_from": 0.65},
        {"grow_to": 0.1},
        {"steps": 2.5},
    ],
)
def test_unusable_training_settings_are_refused(change):
    with pytest.raises((ValueError, TypeError), match="grow_to|" + next(iter(change))):
        TrainingSettings(**change)


@pytest.mark.parametrize("change", [{"steps": 0}, {"warmup": 0}, {"factor": 0.5}])
def test_unusable_fine_tunings_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        FineTuning(**change)


@pytest.mark.parametrize("seed", ["a", 1.5, True, -1, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises((ValueError, TypeError), match="seed must be"):
        Trainer(seed, SMALL, SHORT)


def test_another_seed_is_another_model():
    assert same(trained(5), trained(5))
    assert not same(trained(5), trained(5, seed=1))


def test_a_state_of_other_settings_is_refused(tmp_path):
    trained(until=2).save(tmp_path / "state.pt")
    other = Trainer(0, SMALL, TrainingSettings(steps=31, rows=2))
    with pytest.raises(ValueError, match="other settings"):
        other.load(tmp_path / "state.pt")


def test_rate_and_reach_follow_their_formulas():
    plan = TrainingSettings()
    assert plan.rate(0) == pytest.approx(plan.learning_rate / plan.warmup)
    assert plan.rate(plan.steps) == pytest.approx(plan.learning_rate / 20)
    assert max(map(plan.rate, range(plan.steps))) < plan.learning_rate
    reaches = [plan.reach(step, 512) for step in range(plan.steps)]
    assert reaches[0] == 8 and reaches[-1] == 512 and reaches == sorted(reaches)


def test_the_first_steps_give_the_logged_losses():
    """The shipped models' own beginning, made again (natural text may be another)."""
    trainer = Trainer(seeds()[0])
    assert list(trainer.run(until=25))[-1] == 25
    (line,), logged = trainer.log, training_log(seeds()[0])[0]
    assert line.step == logged.step
    assert line.recall == pytest.approx(logged.recall, abs=0.03)
    assert line.natural == pytest.approx(logged.natural, abs=0.15)
    assert line.recall < 5.2  # it began at ln 256 = 5.55


@pytest.mark.slow
def test_the_first_hundred_steps_fall_as_logged():
    trainer = Trainer(seeds()[0])
    assert list(trainer.run(until=100))[-1] == 100
    for line, logged in zip(trainer.log, training_log(seeds()[0]), strict=False):
        assert line.recall == pytest.approx(logged.recall, abs=0.1)
        assert line.natural == pytest.approx(logged.natural, abs=0.3)


@pytest.mark.parametrize("seed", seeds())
def test_every_shipped_model_learned_as_its_log_says(seed):
    log, plan = training_log(seed), training_record()["training"]
    assert [line.step for line in log] == list(range(25, plan["steps"] + 1, 25))
    assert log[-1].recall < log[0].recall - 2 and log[-1].natural < log[0].natural - 2
    assert log[0].accuracy < 0.2 and log[-1].accuracy > 0.8


def test_a_seed_that_only_guesses_is_left_out_with_its_log(tmp_path):
    guessing, learned = trained(), trained(seed=1)
    learned.log[-1] = dataclasses.replace(learned.log[-1], accuracy=0.5)
    save_checkpoints([guessing, learned], {}, tmp_path)
    assert seeds(tmp_path) == (1,)
    assert left_out(tmp_path) == {0: guessing.log}
    assert not (tmp_path / "seed-0.safetensors").exists()
    again = load_checkpoint(1, folder=tmp_path)
    for name, weight in learned.decoder.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight.half().float())


def test_fine_tuning_is_the_same_twice_and_not_the_same_for_two_methods():
    def tuned(method):
        decoder = trained(5).decoder
        settings = FineTuning(steps=2)
        assert list(fine_tune(decoder, method, 0, settings)) == [1, 2]
        return torch.cat([weight.flatten() for weight in decoder.parameters()])

    assert torch.equal(tuned("yarn"), tuned("yarn"))
    assert not torch.equal(tuned("yarn"), tuned("none"))
