"""The small decoder: causal, relative, tied, made of the course's own parts."""

import dataclasses
import math

import pytest
import torch

from apex_lessons.extrapolation import (
    Decoder,
    DecoderSettings,
    attention_entropy,
    read_by,
    reading,
    recall,
)
from apex_lessons.extrapolation.training import step
from apex_lessons.norm import RMSNorm
from apex_lessons.rope import RotaryEmbedding
from apex_lessons.yarn import ScaledFrequencies, position_interpolation
from tests.pretend_device import PretendDevice

SMALL = DecoderSettings(
    d_model=32, n_heads=2, head_dim=16, n_layers=2, d_hidden=48, trained_length=64
)


def made(settings=SMALL, seed=0):
    return Decoder(settings, torch.Generator().manual_seed(seed)).double()


def some_ids(length=40, batch=2):
    return torch.randint(
        256, (batch, length), generator=torch.Generator().manual_seed(1)
    )


def test_a_later_byte_changes_no_earlier_logit():
    ids, decoder = some_ids(), made()
    changed = ids.clone()
    changed[:, 20] = (changed[:, 20] + 1) % 256
    before, after = decoder(ids), decoder(changed)
    assert torch.equal(before[:, :20], after[:, :20])
    assert not torch.allclose(before[:, 20:], after[:, 20:])


def test_attention_is_what_its_formula_says():
    """Against RotaryEmbedding and a softmax written out."""
    attention, x = (
        made().blocks[0].attention,
        torch.randn(
            1, 12, 32, generator=torch.Generator().manual_seed(2), dtype=torch.float64
        ),
    )
    cos, sin = made().tables(12)
    q, k, v = attention.qkv(x).view(1, 12, 3, 2, 16).permute(2, 0, 3, 1, 4)
    q, k = RotaryEmbedding(16)(q, k, torch.arange(12))
    scores = q @ k.mT / math.sqrt(16)
    weights = scores.masked_fill(torch.ones(12, 12).triu(1).bool(), -torch.inf).softmax(
        -1
    )
    wanted = attention.out((weights @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, cos, sin, 0.25), wanted)
    torch.testing.assert_close(attention.log_weights(x, cos, sin, 0.25).exp(), weights)


def test_the_table_is_tied_and_scaled():
    decoder = made()
    names = [
        name for name, weight in decoder.named_parameters() if weight.shape[0] == 256
    ]
    assert names == ["embedding.weight"]
    ids = some_ids(5)
    hidden = decoder.hidden(ids)
    torch.testing.assert_close(decoder(ids), hidden @ decoder.embedding.weight.T)
    rows = decoder.embedding.weight[ids] * math.sqrt(32)
    torch.testing.assert_close(decoder.embedding(ids), rows)


def test_every_norm_is_the_course_s_own():
    norms = [m for m in made().modules() if "Norm" in type(m).__name__]
    assert len(norms) == 2 * SMALL.n_layers + 1
    assert {type(norm) for norm in norms} == {RMSNorm}


def test_a_scaling_changes_the_tables_and_a_factor_the_scores():
    decoder, ids = made(), some_ids()
    scaled = position_interpolation(16, base=10_000.0, factor=4.0)
    assert not torch.allclose(decoder(ids), decoder(ids, scaled))
    plain = SMALL.plain.inv_freq
    by_table = decoder(ids, ScaledFrequencies(plain, 1.2))
    by_score = decoder(ids, score_factor=1.44)
    torch.testing.assert_close(by_table, by_score)


def test_the_same_seed_gives_the_same_weights():
    one, two, other = made(seed=3), made(seed=3), made(seed=4)
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, two.state_dict()[name])
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_weights_are_drawn_as_the_docstring_says():
    """0.02 for the table, 1/sqrt(inputs), and less for what adds to the residual."""
    settings = DecoderSettings(d_hidden=64)
    decoder = Decoder(settings, torch.Generator().manual_seed(0))
    wanted = {
        "attention.qkv": 1 / math.sqrt(128),
        "attention.out": 1 / math.sqrt(128 * 8),
        "mlp.gate_up": 1 / math.sqrt(128),
        "mlp.down": 1 / math.sqrt(64 * 8),
    }
    for name, deviation in wanted.items():
        weights = [block.get_submodule(name).weight for block in decoder.blocks]
        found = torch.stack(weights)
        assert found.std().item() == pytest.approx(deviation, rel=0.02)
        assert abs(found.mean().item()) < 0.02 * deviation
    assert decoder.embedding.weight.std().item() == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize("shape", [(5,), (2, 0), (0, 5), (1, 2, 3), ()])
def test_ids_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"token_ids must be \[batch, length\]"):
        made()(torch.zeros(shape, dtype=torch.int64))


def test_ids_that_are_no_tensor_are_refused():
    with pytest.raises(TypeError, match="token_ids must be a tensor"):
        made()([[1, 2]])


@pytest.mark.parametrize(
    ("head_dim", "base"), [(8, 10_000.0), (32, 500_000.0), (2, 100.0)]
)
def test_other_widths_and_bases_run(head_dim, base):
    settings = dataclasses.replace(SMALL, head_dim=head_dim, base=base)
    logits = made(settings)(some_ids())
    assert logits.shape == (2, 40, 256) and bool(logits.isfinite().all())
    if head_dim > 2:
        scaled = reading("yarn", settings, 256).scaled
        assert bool(made(settings)(some_ids(), scaled).isfinite().all())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"head_dim": 7}, "even"),
        ({"base": 1.0}, "base"),
        ({"n_layers": 0}, "n_layers"),
        ({"d_model": 1.5}, "d_model"),
        ({"trained_length": -1}, "trained_length"),
    ],
)
def test_unusable_settings_are_refused(change, says):
    with pytest.raises((ValueError, TypeError), match=says):
        dataclasses.replace(SMALL, **change)


def test_it_runs_on_meta_and_in_bfloat16():
    decoder = Decoder(SMALL, torch.Generator().manual_seed(0))
    assert decoder.bfloat16()(some_ids()).dtype == torch.bfloat16
    assert decoder.to("meta")(some_ids().to("meta")).shape == (2, 40, 256)


@pytest.mark.parametrize("device", ["mps", "cuda"])
def test_training_and_measuring_work_where_float64_does_not_exist(device):
    """The same numbers on a pretended device that has no float64 and no complex."""
    text = recall(128, 2, torch.Generator().manual_seed(0))
    how = reading("yarn", SMALL, 128)
    here = Decoder(SMALL, torch.Generator().manual_seed(0))
    wanted = read_by(here, text.ids[0], "yarn")[0]
    with PretendDevice(device) as pretend:
        there = Decoder(SMALL, torch.Generator().manual_seed(0)).to(device)
        losses, right = read_by(there, text.ids[0], "yarn")
        assert losses.device.type == right.device.type == "cpu"
        assert attention_entropy(there, text.ids[0], how).device.type == "cpu"
        optimiser = torch.optim.AdamW(there.parameters())
        rows = torch.cat([text.ids, text.ids])
        means = step(there, optimiser, rows, text.distance, 1e-3, 1.0)
        assert pretend.made > 100
    torch.testing.assert_close(losses, wanted)
    assert means[0] == pytest.approx(math.log(256), abs=0.2)
