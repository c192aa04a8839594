"""The scaled table, and the tie of its two uses through every move of a module."""

import copy
import io
import math
import pickle

import pytest
import safetensors.torch
import torch
from torch.autograd import gradcheck

from apex_lessons.embedding import ScaledEmbedding
from tests import oracles

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def table_of(rows, **kwargs):
    """A table that holds exactly these rows."""
    rows = torch.as_tensor(rows)
    table = ScaledEmbedding(*rows.shape, dtype=rows.dtype, **kwargs)
    with torch.no_grad():
        table.weight.copy_(rows)
    return table


def assert_tied(table):
    """One tensor in both uses: a change through the parameter shows in both."""
    assert isinstance(table.weight, torch.nn.Parameter)
    assert len(list(table.parameters())) == 1 and list(table.state_dict()) == ["weight"]
    rows, width = table.weight.shape
    with torch.no_grad():
        table.weight.copy_(torch.arange(rows * width).view(rows, width) % 7 - 2)
    hidden = torch.ones(1, width, dtype=table.weight.dtype)
    looked_up = table(torch.arange(rows, device=table.weight.device))
    scale = torch.tensor(table.scale).to(table.weight.dtype)
    assert torch.equal(looked_up, table.weight * scale)
    assert torch.equal(table.logits(hidden)[0], table.weight.sum(-1))
    looked_up.sum().backward()
    once = table.weight.grad.clone()
    table.logits(hidden).sum().backward()
    assert torch.equal(
        table.weight.grad, once + 1
    )  # gradients of both uses, in one place
    table.weight.grad = None


# --- forward ---


@pytest.mark.parametrize("d_model", [1, 4, 64, 512, 7168])
def test_scale_is_the_square_root_of_the_width(d_model):
    table = ScaledEmbedding(3, d_model)
    assert isinstance(table.scale, float)
    assert table.scale == pytest.approx(math.sqrt(d_model), rel=1e-12)
    torch.testing.assert_close(
        table(torch.arange(3)), table.weight * math.sqrt(d_model)
    )


@pytest.mark.parametrize("scale", [1, 1.0, 0.5, 48.0, 3])
def test_scale_given_by_hand(scale):
    table = ScaledEmbedding(3, 4, scale=scale)
    assert isinstance(table.scale, float) and table.scale == scale
    assert torch.equal(table(torch.arange(3)), table.weight * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 3, 4), (0,), (2, 0), (0, 5)])
def test_shapes_and_dtypes(dtype, shape):
    table = ScaledEmbedding(7, 6, dtype=dtype)
    ids = torch.randint(0, 7, shape, generator=oracles.generator())
    out = table(ids)
    assert out.shape == (*shape, 6) and out.dtype == dtype
    logits = table.logits(out)
    assert logits.shape == (*shape, 7) and logits.dtype == dtype
    (out.sum() + logits.sum()).backward()
    assert table.weight.grad.shape == (7, 6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d_model", [512, 768, 3072])
def test_scale_is_rounded_once_to_the_tables_dtype(dtype, d_model):
    """A float32 scale on a bfloat16 table is another model: 55.4256 is not 55.5."""
    table = ScaledEmbedding(50, d_model, dtype=dtype)
    scale = torch.tensor(math.sqrt(d_model), dtype=torch.float64).to(dtype)
    want = (table.weight.double() * scale.double()).to(dtype)
    assert torch.equal(table(torch.arange(50)), want)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rounding_of_the_scale_follows_a_cast(dtype):
    table = ScaledEmbedding(50, 768).to(dtype)
    scale = torch.tensor(math.sqrt(768), dtype=torch.float64).to(dtype)
    want = (table.weight.double() * scale.double()).to(dtype)
    assert torch.equal(table(torch.arange(50)), want)
    back = table.double()
    torch.testing.assert_close(
        back(torch.arange(50)), back.weight * math.sqrt(768), rtol=1e-15, atol=0
    )


def test_lookup_is_the_one_hot_product():
    table = ScaledEmbedding(7, 4, dtype=torch.float64)
    ids = torch.tensor([[3, 0], [6, 3]])
    one_hot = torch.nn.functional.one_hot(ids, 7).double()
    torch.testing.assert_close(table(ids), one_hot @ table.weight * 2.0)


def test_logits_are_the_product_with_the_transpose_and_carry_no_scale():
    table = ScaledEmbedding(7, 4, dtype=torch.float64)
    hidden = oracles.normal(2, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(table.logits(hidden), hidden @ table.weight.T)


@pytest.mark.parametrize("std", [0.02, 1.0, 512**-0.5, 0.0])
def test_init_std(std):
    torch.manual_seed(0)
    table = ScaledEmbedding(2000, 128, init_std=std)
    assert table.weight.std().item() == pytest.approx(std, rel=0.01)
    assert table.weight.mean().abs().item() <= 0.01 * std + 1e-12


def test_default_init_std_is_the_references():
    torch.manual_seed(0)
    assert ScaledEmbedding(2000, 128).weight.std().item() == pytest.approx(
        0.02, rel=0.01
    )


def test_same_seed_same_table():
    tables = []
    for _ in range(2):
        torch.manual_seed(3)
        tables.append(ScaledEmbedding(5, 4).weight)
    assert torch.equal(*tables)


@pytest.mark.parametrize("ids_dtype", [torch.int64, torch.int32])
def test_ids_of_both_integer_types(ids_dtype):
    table = ScaledEmbedding(5, 4)
    ids = torch.tensor([4, 0, 2])
    assert torch.equal(table(ids.to(ids_dtype)), table(ids))


@pytest.mark.parametrize("ids_dtype", [torch.int16, torch.uint8, torch.int8])
def test_small_integers_are_looked_up_or_refused_never_misread(ids_dtype):
    table, ids = ScaledEmbedding(5, 4), torch.tensor([4, 0, 2])
    try:
        got = table(ids.to(ids_dtype))
    except (TypeError, ValueError) as error:
        assert "int64" in str(error) or "long" in str(error)
    else:
        assert torch.equal(got, table(ids))


@pytest.mark.parametrize("bad", [5, 6, -1, -5, 2**40])
@pytest.mark.parametrize("shape", [(1,), (2, 3)])
def test_id_out_of_range_is_an_index_error_that_names_it(bad, shape):
    table = ScaledEmbedding(5, 4)
    ids = torch.zeros(shape, dtype=torch.long)
    ids[..., -1] = bad
    with pytest.raises(IndexError) as caught:
        table(ids)
    assert str(bad) in str(caught.value) and "5" in str(caught.value)


def test_both_ends_of_the_table_are_legal():
    table = ScaledEmbedding(5, 4)
    assert torch.equal(table(torch.tensor([0, 4])), table.weight[[0, 4]] * 2)


# --- padding ---


@pytest.mark.parametrize("padding_idx", [0, 3, 6])
def test_padding_row_starts_at_zero_and_learns_only_through_the_output(padding_idx):
    table = ScaledEmbedding(7, 4, padding_idx=padding_idx)
    assert table.padding_idx == padding_idx
    assert table(torch.tensor([padding_idx])).abs().sum() == 0
    others = [row for row in range(7) if row != padding_idx]
    assert bool((table.weight[others].abs().sum(-1) > 0).all())
    table(torch.arange(7)).sum().backward()
    assert table.weight.grad[padding_idx].abs().sum() == 0
    assert torch.equal(table.weight.grad[others], torch.full((6, 4), 2.0))
    table.logits(torch.ones(1, 4)).sum().backward()
    assert torch.equal(table.weight.grad[padding_idx], torch.ones(4))


def test_padding_row_is_not_masked_once_it_holds_numbers():
    table = ScaledEmbedding(3, 4, padding_idx=0)
    with torch.no_grad():
        table.weight[0] = 0.5
    assert table(torch.tensor([0])).tolist() == [[1.0, 1.0, 1.0, 1.0]]


def test_without_padding_every_row_learns():
    table = ScaledEmbedding(7, 4)
    assert table.padding_idx is None
    table(torch.arange(7)).sum().backward()
    assert torch.equal(table.weight.grad, torch.full((7, 4), 2.0))


# --- gradients ---


def test_gradcheck_of_both_uses():
    table = ScaledEmbedding(5, 3, dtype=torch.float64)
    ids = torch.tensor([[1, 4, 1]])

    def both(weight):
        return torch.func.functional_call(table, {"weight": weight}, (ids,))

    def out(weight, hidden):
        again = copy.copy(table)
        again._parameters = {"weight": weight}
        return again.logits(hidden)

    weight = table.weight.detach().clone().requires_grad_()
    hidden = oracles.normal(2, 3, dtype=torch.float64).requires_grad_()
    assert gradcheck(both, (weight,))
    assert gradcheck(out, (weight, hidden))


def test_repeated_ids_add_their_gradients():
    table = ScaledEmbedding(3, 4)
    table(torch.tensor([1, 1, 1, 2])).sum().backward()
    assert table.weight.grad[:, 0].tolist() == [0.0, 6.0, 2.0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_values_with_and_without_gradients(dtype):
    table, ids = ScaledEmbedding(5, 4, dtype=dtype), torch.tensor([[1, 4, 1]])
    tracked, logits = table(ids), table.logits(table(ids))
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            assert torch.equal(table(ids), tracked)
            assert torch.equal(table.logits(table(ids)), logits)
    assert_tied(table)


# --- the tie ---


def by_torch_save(table):
    stream = io.BytesIO()
    torch.save(table.state_dict(), stream)
    stream.seek(0)
    fresh = ScaledEmbedding(7, 4, dtype=table.weight.dtype)
    fresh.load_state_dict(torch.load(stream))
    return fresh


def by_torch_save_of_the_module(table):
    stream = io.BytesIO()
    torch.save(table, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=False)


def by_safetensors(table):
    """Refuses tensors that share memory under two names: ours has one name."""
    data = safetensors.torch.save(table.state_dict())
    assert list(safetensors.torch.load(data)) == ["weight"]
    fresh = ScaledEmbedding(7, 4)
    fresh.load_state_dict(safetensors.torch.load(data))
    return fresh


def by_assignment(table):
    fresh = ScaledEmbedding(7, 4, device="meta")
    fresh.load_state_dict(table.state_dict(), assign=True)
    return fresh


def by_loading(table):
    fresh = ScaledEmbedding(7, 4)
    fresh.load_state_dict(table.state_dict())
    return fresh


def by_meta(table):
    kept = table.weight.detach().clone()
    table = table.to("meta").to_empty(device="cpu")
    with torch.no_grad():
        table.weight.copy_(kept)
    return table


MOVES = {
    "nothing": lambda t: t,
    "to(float64)": lambda t: t.to(torch.float64),
    "half and back": lambda t: t.half().float(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda t: pickle.loads(pickle.dumps(t)),
    "torch.save": by_torch_save,
    "torch.save of the module": by_torch_save_of_the_module,
    "safetensors": by_safetensors,
    "load_state_dict": by_loading,
    "load_state_dict(assign=True)": by_assignment,
    "meta and to_empty": by_meta,
    "share_memory": lambda t: t.share_memory(),
}


@pytest.mark.parametrize("move", MOVES)
def test_tie_survives(move):
    table = ScaledEmbedding(7, 4)
    with torch.no_grad():  # numbers that every dtype holds exactly
        table.weight.copy_(torch.arange(28).view(7, 4) / 8)
    kept = table.weight.detach().clone()
    moved = MOVES[move](table)
    assert torch.equal(moved.weight.detach().float(), kept)
    assert (
        moved.weight.requires_grad and sum(p.numel() for p in moved.parameters()) == 28
    )
    assert moved.scale == 2.0
    assert_tied(moved)


def test_deepcopy_is_independent():
    table = ScaledEmbedding(7, 4)
    twin = copy.deepcopy(table)
    with torch.no_grad():
        twin.weight.zero_()
    assert table.weight.abs().sum() > 0


def test_tie_survives_inside_a_model():
    """Two attributes for one module: still one tensor, once in the optimiser."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = ScaledEmbedding(7, 4)
            self.head = self.embed

        def forward(self, ids):
            return self.head.logits(self.embed(ids))

    model = Model()
    assert sum(p.numel() for p in model.parameters()) == 28
    before = model.embed.weight.detach().clone()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.tensor([[1, 2]])).sum().backward()
    optimiser.step()
    assert not torch.equal(model.embed.weight, before)
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embed.weight
    twin.load_state_dict(model.state_dict(), assign=True)
    assert_tied(twin.embed)


def test_replacing_the_parameter_changes_both_uses():
    table = ScaledEmbedding(7, 4)
    table.weight = torch.nn.Parameter(torch.ones(7, 4))
    assert torch.equal(table(torch.tensor([2])), torch.full((1, 4), 2.0))
    assert torch.equal(table.logits(torch.ones(4)), torch.full((7,), 4.0))
    assert_tied(table)


def test_a_grown_table_keeps_its_rows_and_its_tie():
    """Resizing: a larger table, the old rows copied in; no second matrix to forget."""
    old = ScaledEmbedding(7, 4)
    new = ScaledEmbedding(9, 4)
    with torch.no_grad():
        new.weight[:7] = old.weight
    assert torch.equal(new(torch.arange(7)), old(torch.arange(7)))
    hidden = oracles.normal(1, 4)
    assert new.logits(hidden).shape == (1, 9)
    torch.testing.assert_close(new.logits(hidden)[:, :7], old.logits(hidden))
    assert_tied(new)


def test_growing_the_parameter_in_place_moves_the_legal_range():
    """The id check follows the table that is there, not the size it was built with."""
    table = ScaledEmbedding(7, 4)
    table.weight = torch.nn.Parameter(
        torch.cat([table.weight.detach(), torch.ones(2, 4)])
    )
    assert torch.equal(table(torch.tensor([8])), torch.full((1, 4), 2.0))
    with pytest.raises(IndexError):
        table(torch.tensor([9]))


def test_optimiser_sees_one_parameter():
    table = ScaledEmbedding(7, 4)
    optimiser = torch.optim.AdamW(table.parameters())
    assert [p is table.weight for p in optimiser.param_groups[0]["params"]] == [True]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_looks_up_in_the_tables_dtype(dtype):
    table = ScaledEmbedding(7, 4)
    with torch.autocast("cpu", dtype=dtype):
        out = table(torch.arange(7))
        logits = table.logits(out)
    assert torch.equal(out, table(torch.arange(7)))
    assert logits.shape == (7, 7)


def test_repr_names_the_settings():
    text = repr(ScaledEmbedding(7, 4, padding_idx=0))
    assert "7" in text and "4" in text and "padding_idx=0" in text
