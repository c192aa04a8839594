"""RMSNorm: released outputs and gradients, hard inputs, cast orders, the module."""

import copy
import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from apex_lessons.norm import RMSNorm, rms_norm
from tests import oracles

GOLDEN = oracles.golden("rotation-and-norm.json")
INPUTS = GOLDEN["rmsnorm_inputs"]
CASES = {n: c for n, c in GOLDEN["rmsnorm"].items() if "dw" in c}
EPS_NONE = {n: c for n, c in GOLDEN["rmsnorm"].items() if "dw" not in c}
HARD = GOLDEN["rmsnorm_hard"]
ORDERS = ["cast-last", "cast-first", "cast-to-weight"]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
NAMED = {
    "torch.float32": torch.float32,
    "torch.bfloat16": torch.bfloat16,
    "torch.float16": torch.float16,
}


def how_it_casts(name):
    """The order of the library's own code."""
    first = "Llama" in name or "meta-llama" in name
    return {
        "order": "cast-first" if first else "cast-last",
        "weight_offset": 1.0 if "Gemma" in name else 0.0,
    }


def case_tensors(case):
    dtype = NAMED[case["dtype"]]
    suffix = "_bf16" if dtype == torch.bfloat16 else ""
    x = torch.tensor(INPUTS["x" + suffix]).to(dtype).view(INPUTS["shape"])
    weight = torch.tensor(case["stored_weight"]).to(dtype)
    grad = torch.tensor(INPUTS["grad_y"]).to(dtype).view(INPUTS["shape"])
    return x, weight, grad


def run_case(name):
    x, weight, grad = case_tensors(CASES[name])
    x.requires_grad_(), weight.requires_grad_()
    y = rms_norm(x, weight, CASES[name]["eps"], **how_it_casts(name))
    y.backward(grad)
    return y.detach(), x.grad, weight.grad


# --- golden outputs and gradients ---


@pytest.mark.parametrize("name", CASES)
def test_golden_forward(name):
    case = CASES[name]
    y, _, _ = run_case(name)
    want = torch.tensor(case["y"], dtype=torch.float64).view(y.shape)
    assert y.dtype == NAMED[case["dtype"]]
    if y.dtype == torch.float32:
        torch.testing.assert_close(y.double(), want, rtol=4e-7, atol=0)
    else:
        assert torch.equal(y.double(), want)  # bit for bit, in the library's cast order


@pytest.mark.parametrize("name", CASES)
def test_golden_gradients(name):
    """A dw summed in bf16 is off by several steps; ours is one rounding away."""
    case = CASES[name]
    for got, key in zip(run_case(name)[1:], ("dx", "dw"), strict=True):
        exact = torch.tensor(case[key + "_f64"], dtype=torch.float64).view(got.shape)
        library = torch.tensor(case[key], dtype=torch.float64).view(got.shape)
        if got.dtype == torch.float32:
            torch.testing.assert_close(got.double(), exact, rtol=2e-6, atol=2e-7)
            torch.testing.assert_close(got.double(), library, rtol=2e-6, atol=4e-7)
        else:
            steps = (got.double() - exact).abs() / oracles.half_step(exact, got.dtype)
            assert steps.max() <= 1.02 + 1e-6
            torch.testing.assert_close(got.double(), library, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", CASES)
def test_golden_forward_against_float64(name):
    case = CASES[name]
    y, _, _ = run_case(name)
    exact = torch.tensor(case["y_f64"], dtype=torch.float64).view(y.shape)
    if y.dtype == torch.float32:
        torch.testing.assert_close(y.double(), exact, rtol=4e-7, atol=0)
    elif how_it_casts(name)["order"] == "cast-last":
        oracles.assert_rounded_once(y, exact, slack=5e-7)
    else:  # two roundings
        assert (
            (y.double() - exact).abs() <= 2.1 * oracles.half_step(exact, y.dtype)
        ).all()


def test_golden_eps_of_none_is_a_number_of_its_own():
    """torch 2.13's eps=None is finfo(float32).eps; ours is never left to the dtype."""
    x = torch.tensor(INPUTS["x"]).view(INPUTS["shape"])
    case = EPS_NONE["torch.nn.RMSNorm eps=None fp32"]
    got = rms_norm(x, eps=torch.finfo(torch.float32).eps)
    want = torch.tensor(case["y"]).view(x.shape)
    torch.testing.assert_close(got, want, rtol=4e-7, atol=0)
    half = torch.tensor(INPUTS["x_bf16"]).bfloat16().view(INPUTS["shape"])
    case = EPS_NONE["torch.nn.RMSNorm eps=None bf16"]
    got = rms_norm(half, eps=1.1920929e-07)
    assert torch.equal(got.float(), torch.tensor(case["y"]).view(x.shape))


# --- hard inputs ---

MIXED = "bf16 x, fp32 weight (who decides the output dtype?)"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", [name for name in HARD if name != MIXED])
def test_golden_hard_input_gives_the_float64_truth(name, order):
    """Released norms give 0 for 1e20 and 3e38, and nan for half zeros with eps 1e-8."""
    case = HARD[name]
    dtype = NAMED[case["dtype"]]
    x = torch.tensor([float(v) for v in case["x"]], dtype=torch.float64).to(dtype)
    weight = torch.ones(4, dtype=NAMED[case["w_dtype"]])
    truth = torch.tensor([float(v) for v in case["float64"]], dtype=torch.float64)
    for w in (weight, None):
        got = rms_norm(x, w, case["eps"], order=order)
        assert got.dtype == dtype
        if dtype == torch.float32:
            torch.testing.assert_close(got.double(), truth, rtol=2e-7, atol=0)
        else:
            assert torch.equal(got, truth.to(dtype))


@pytest.mark.parametrize("order", ["cast-last", "cast-to-weight"])
def test_golden_float32_weight_on_a_bfloat16_stream(order):
    """Llama's own norm turns the stream into float32 here; ours stays bfloat16."""
    truth = torch.tensor(
        [float(v) for v in HARD[MIXED]["float64"]], dtype=torch.float64
    )
    x = torch.tensor([1.0, 2.0, 3.0, 4.0]).bfloat16()
    weight = torch.tensor([1.001, 1.002, 1.003, 1.004])
    got = rms_norm(x, weight, HARD[MIXED]["eps"], order=order)
    assert got.dtype == torch.bfloat16 and torch.equal(got, truth.bfloat16())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("value", [1e19, 1e20, 1e30, 3e38, 1e-20, 1e-30, 1e-38])
@pytest.mark.parametrize("width", [4, 4096])
def test_any_size_of_input(dtype, value, width):
    x = torch.full((2, width), value).to(dtype)
    x[:, ::3] *= -1
    for eps in (1e-6, 0.0):
        got = rms_norm(x, eps=eps)
        exact = oracles.rms_norm(x, eps=eps)
        # A float32 sum of 4096 equal squares in order is itself off by 2e-6.
        rtol = (1e-6 if width == 4 else 4e-6) if dtype == torch.float32 else 4e-3
        torch.testing.assert_close(got.double(), exact, rtol=rtol, atol=0)


@pytest.mark.parametrize("width", [64, 512, 4096, 16384])
def test_float32_result_is_right_to_the_last_bits(width):
    x = oracles.normal(8, width)
    torch.testing.assert_close(
        rms_norm(x).double(), oracles.rms_norm(x), rtol=5e-7, atol=0
    )


def test_one_huge_row_leaves_its_neighbours_alone():
    x = oracles.normal(3, 8)
    alone = rms_norm(x)
    x[1] *= 1e25
    mixed = rms_norm(x)
    torch.testing.assert_close(mixed[0::2], alone[0::2], rtol=3e-7, atol=0)
    torch.testing.assert_close(mixed[1], alone[1], rtol=3e-6, atol=0)


def test_one_huge_entry_in_a_row():
    x = torch.tensor([1e30, 1.0, -1e30, 1e10])
    torch.testing.assert_close(
        rms_norm(x).double(), oracles.rms_norm(x), rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("scale", [1.0, 1e20, 1e-20, 1e30])
def test_gradient_of_huge_and_tiny_inputs(scale):
    """dx shrinks as x grows: 1e-20 for 1e20, not nan and not 0."""
    x = (oracles.normal(3, 8) * scale).requires_grad_()
    grad = oracles.normal(3, 8, seed=1)
    weight = torch.ones(8, requires_grad=True)
    rms_norm(x, weight).backward(grad)
    exact = x.detach().double().requires_grad_()
    exact_weight = torch.ones(8, dtype=torch.float64, requires_grad=True)
    oracles.rms_norm(exact, exact_weight).backward(grad.double())
    size = exact.grad.abs().max().item()
    torch.testing.assert_close(x.grad.double(), exact.grad, rtol=1e-5, atol=1e-6 * size)
    torch.testing.assert_close(
        weight.grad.double(),
        exact_weight.grad,
        rtol=1e-5,
        atol=1e-6 * exact_weight.grad.abs().max().item(),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_rows_and_their_gradient(dtype):
    x = torch.zeros(2, 4, dtype=dtype).requires_grad_()
    y = rms_norm(x, torch.ones(4, dtype=dtype), 1e-6)
    assert torch.equal(y, torch.zeros_like(y))
    y.sum().backward()
    torch.testing.assert_close(
        x.grad.double(),
        torch.full((2, 4), 1000.0, dtype=torch.float64),
        rtol=1e-2,
        atol=0,
    )


# --- values ---


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_half_type_result_is_one_rounding_of_float64(dtype, offset):
    """Any arithmetic in the half type, or Llama's order, fails here."""
    x = oracles.normal(64, 256, dtype=dtype)
    weight = (0.3 * oracles.normal(256, seed=1) + 1 - offset).to(dtype)
    got = rms_norm(x, weight, weight_offset=offset)
    exact = oracles.rms_norm(x, weight, offset=offset)
    oracles.assert_rounded_once(got, exact, slack=1e-6)


def test_half_type_weight_gradient_sums_in_float32():
    """8192 ones: a bfloat16 running sum stops at 256."""
    x = torch.ones(8192, 4, dtype=torch.bfloat16)
    weight = torch.ones(4, dtype=torch.bfloat16, requires_grad=True)
    rms_norm(x, weight).sum().backward()
    assert weight.grad.tolist() == [8192.0] * 4


def test_cast_orders_differ_and_are_the_published_ones():
    x = oracles.normal(100, 256, dtype=torch.bfloat16)
    weight = (0.3 * oracles.normal(256, seed=1) + 1).bfloat16()
    unit = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
    want = {
        "cast-last": (weight.float() * unit).bfloat16(),
        "cast-first": weight * unit.bfloat16(),
        "cast-to-weight": weight * unit.bfloat16(),
    }
    for order in ORDERS:
        got = rms_norm(x, weight, order=order)
        assert (got != want[order]).float().mean() < 1e-3, order
    differ = (
        (rms_norm(x, weight, order="cast-first") != want["cast-last"]).float().mean()
    )
    assert 0.2 < differ < 0.3  # a quarter of all elements


def test_t5_order_rounds_only_to_a_half_weight():
    x = oracles.normal(100, 64, dtype=torch.bfloat16)
    weight = 0.3 * oracles.normal(64, seed=1) + 1  # float32
    got = rms_norm(x, weight, order="cast-to-weight")
    assert got.dtype == torch.bfloat16
    oracles.assert_rounded_once(got, oracles.rms_norm(x, weight), slack=1e-6)


def test_t5_order_does_not_round_float64_to_a_float32_weight():
    x = oracles.normal(5, 16, dtype=torch.float64)
    weight = oracles.normal(16, seed=1)
    got = rms_norm(x, weight, order="cast-to-weight")
    torch.testing.assert_close(got, oracles.rms_norm(x, weight), rtol=1e-13, atol=0)


@pytest.mark.parametrize("order", ORDERS)
def test_orders_are_one_function_in_float32(order):
    x, weight = oracles.normal(5, 16), oracles.normal(16, seed=1)
    assert torch.equal(rms_norm(x, weight, order=order), rms_norm(x, weight))


@pytest.mark.parametrize("x_dtype", DTYPES)
@pytest.mark.parametrize("w_dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_output_has_the_dtype_of_x_and_gradients_that_of_their_tensor(
    x_dtype, w_dtype, order
):
    x = oracles.normal(3, 8, dtype=x_dtype).requires_grad_()
    weight = oracles.normal(8, seed=1, dtype=w_dtype).requires_grad_()
    y = rms_norm(x, weight, order=order)
    assert y.dtype == x_dtype
    y.sum().backward()
    assert x.grad.dtype == x_dtype and weight.grad.dtype == w_dtype
    torch.testing.assert_close(
        y.double(), oracles.rms_norm(x, weight), rtol=1.5e-2, atol=1e-3
    )


@pytest.mark.parametrize("eps", [0.0, 1e-8, 1e-6, 1e-5, 0.1])
def test_eps_stands_inside_the_root(eps):
    x = 1e-3 * oracles.normal(4, 16, dtype=torch.float64)
    torch.testing.assert_close(
        rms_norm(x, eps=eps), oracles.rms_norm(x, eps=eps), rtol=1e-13, atol=0
    )


def test_worked_example_of_the_reference():
    x = torch.tensor([2.0, -1.0, 0.5, 1.5], dtype=torch.float64)
    want = [
        1.4605930971890022,
        -0.7302965485945011,
        0.36514827429725055,
        1.0954448228917517,
    ]
    assert rms_norm(x).tolist() == pytest.approx(want, rel=1e-14)


def test_scale_of_the_input_does_not_matter_shift_does():
    x = oracles.normal(4, 64, dtype=torch.float64)
    torch.testing.assert_close(rms_norm(x * 1000, eps=0.0), rms_norm(x, eps=0.0))
    assert (rms_norm(x + 1) - rms_norm(x)).abs().max() > 0.1


@pytest.mark.parametrize(
    "shape", [(8,), (1, 8), (0, 8), (2, 0, 8), (2, 3, 8), (2, 3, 4, 8)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_and_empty_input(shape, dtype):
    x = oracles.normal(*shape, dtype=dtype).requires_grad_()
    weight = oracles.normal(8, seed=1, dtype=dtype).requires_grad_()
    y = rms_norm(x, weight)
    assert y.shape == shape and y.dtype == dtype
    y.sum().backward()
    assert x.grad.shape == shape and weight.grad.shape == (8,)
    if 0 in shape:
        assert weight.grad.abs().sum() == 0


def test_a_single_number_a_row():
    x = torch.tensor([[3.0], [-0.5]])
    torch.testing.assert_close(
        rms_norm(x), torch.tensor([[1.0], [-1.0]]), rtol=1e-5, atol=0
    )


def memories(x):
    joined = torch.stack([x, x], dim=-1)
    return {
        "transposed": x.transpose(0, 1).contiguous().transpose(0, 1),
        "every second number": joined[..., 0],
        "last axis first": x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
        "slice": torch.cat([x, x], dim=1)[:, : x.shape[1]],
    }


@pytest.mark.parametrize("memory", memories(torch.zeros(1, 1, 1)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_memory_layout_does_not_change_the_result(memory, dtype):
    x, weight = (
        oracles.normal(3, 5, 16, dtype=dtype),
        oracles.normal(16, seed=1, dtype=dtype),
    )
    grad = oracles.normal(3, 5, 16, seed=2, dtype=dtype)
    results = []
    for held in (x, memories(x)[memory]):
        leaf, w = held.detach().requires_grad_(), weight.clone().requires_grad_()
        y = rms_norm(leaf, w)
        y.backward(grad)
        results.append((y.detach(), leaf.grad, w.grad))
    rtol = 1e-6 if dtype == torch.float32 else 1e-2
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(other, one, rtol=rtol, atol=1e-6)


def test_expanded_input_and_gradient():
    row = oracles.normal(1, 16)
    x = row.expand(4, 16).requires_grad_()
    y = rms_norm(x, torch.ones(16))
    torch.testing.assert_close(y, rms_norm(row, torch.ones(16)).expand(4, 16))
    (g,) = torch.autograd.grad(y.sum(), x)  # the gradient of a sum is itself expanded
    (h,) = torch.autograd.grad(rms_norm(x, torch.ones(16)), x, torch.ones(4, 16))
    torch.testing.assert_close(g, h)


def test_input_is_not_written_to():
    for dtype in DTYPES:
        for order in ORDERS:
            x, weight = (
                oracles.normal(3, 8, dtype=dtype),
                oracles.normal(8, dtype=dtype),
            )
            kept = x.clone(), weight.clone()
            y = rms_norm(x, weight, order=order)
            assert torch.equal(x, kept[0]) and torch.equal(weight, kept[1])
            assert y.data_ptr() != x.data_ptr()


def test_backward_leaves_its_inputs_alone_and_can_run_again():
    x = oracles.normal(3, 8).requires_grad_()
    weight = oracles.normal(8, seed=1).requires_grad_()
    grad = oracles.normal(3, 8, seed=2)
    kept = x.detach().clone(), grad.clone()
    y = rms_norm(x, weight)
    first = torch.autograd.grad(y, (x, weight), grad, retain_graph=True)
    assert torch.equal(x.detach(), kept[0]) and torch.equal(grad, kept[1])
    second = torch.autograd.grad(y, (x, weight), grad)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)


# --- gradients ---


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_gradcheck(order, offset, eps):
    x = oracles.normal(2, 2, 4, dtype=torch.float64).requires_grad_()
    weight = oracles.normal(4, seed=1, dtype=torch.float64).requires_grad_()

    def norm(x, weight):
        return rms_norm(x, weight, eps, weight_offset=offset, order=order)

    assert gradcheck(norm, (x, weight))
    assert gradgradcheck(norm, (x, weight))


def test_gradcheck_without_weight_and_of_each_alone():
    x = oracles.normal(3, 4, dtype=torch.float64)
    weight = oracles.normal(4, seed=1, dtype=torch.float64)
    leaf, weight_leaf = x.clone().requires_grad_(), weight.clone().requires_grad_()
    assert gradcheck(rms_norm, (leaf,)) and gradgradcheck(rms_norm, (leaf,))
    assert gradcheck(rms_norm, (leaf, weight)) and gradgradcheck(
        rms_norm, (leaf, weight)
    )
    assert gradcheck(rms_norm, (x, weight_leaf)) and gradgradcheck(
        rms_norm, (x, weight_leaf)
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_first_gradient_is_the_same_when_a_second_is_wanted(order, dtype):
    """gradgradcheck cannot see this: it compares that path with itself."""
    x = oracles.normal(5, 32, dtype=dtype).requires_grad_()
    weight = oracles.normal(32, seed=1, dtype=dtype).requires_grad_()
    grad = oracles.normal(5, 32, seed=2, dtype=dtype)
    results = [
        torch.autograd.grad(
            rms_norm(x, weight, order=order), (x, weight), grad, create_graph=wanted
        )
        for wanted in (False, True)
    ]
    step = torch.finfo(dtype).eps
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(other, one, rtol=4 * step, atol=16 * step)


def test_gradcheck_of_strided_memory():
    x = oracles.normal(4, 3, dtype=torch.float64).requires_grad_()
    assert gradcheck(lambda x: rms_norm(x.T), (x,))
    assert gradgradcheck(lambda x: rms_norm(x.T), (x,))


def test_forward_mode_gradients():
    x = oracles.normal(3, 4, dtype=torch.float64)
    weight = oracles.normal(4, seed=1, dtype=torch.float64)
    assert gradcheck(
        rms_norm,
        (x.requires_grad_(), weight.requires_grad_()),
        check_forward_ad=True,
        check_backward_ad=False,
    )
    tangent = oracles.normal(3, 4, seed=2, dtype=torch.float64)
    _, got = torch.func.jvp(rms_norm, (x.detach(),), (tangent,))
    _, want = torch.func.jvp(oracles.rms_norm, (x.detach(),), (tangent,))
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_values_with_and_without_gradients(order, dtype):
    x, weight = (
        oracles.normal(7, 33, dtype=dtype),
        oracles.normal(33, seed=1, dtype=dtype),
    )
    plain = rms_norm(x, weight, order=order)
    leaf, weight_leaf = x.clone().requires_grad_(), weight.clone().requires_grad_()
    for a, b in ((leaf, weight), (x, weight_leaf), (leaf, weight_leaf)):
        tracked = rms_norm(a, b, order=order)
        assert tracked.requires_grad and torch.equal(tracked, plain)
    with torch.no_grad():
        assert torch.equal(rms_norm(leaf, weight_leaf, order=order), plain)
    with torch.inference_mode():
        assert torch.equal(rms_norm(x.clone(), weight, order=order), plain)


def test_inference_mode_first_then_training():
    module, x = RMSNorm(8), oracles.normal(3, 8)
    with torch.inference_mode():
        module(x)
    module(x).square().sum().backward()
    assert module.weight.grad is not None


def test_vmap_and_grad():
    x = oracles.normal(5, 3, 8, dtype=torch.float64)
    weight = oracles.normal(8, seed=1, dtype=torch.float64)
    want = rms_norm(x, weight)
    torch.testing.assert_close(torch.func.vmap(lambda r: rms_norm(r, weight))(x), want)

    def loss(row, weight):
        return rms_norm(row, weight).pow(3).sum()

    per_row = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)), (0, None))(
        x, weight
    )
    leaf, weight_leaf = x.clone().requires_grad_(), weight.clone().requires_grad_()
    rms_norm(leaf, weight_leaf).pow(3).sum().backward()
    torch.testing.assert_close(per_row[0], leaf.grad)
    torch.testing.assert_close(per_row[1].sum(0), weight_leaf.grad)


def test_batch_of_one_row_at_a_time_equals_the_whole_exactly():
    for dtype in DTYPES:
        x, weight = (
            oracles.normal(6, 48, dtype=dtype),
            oracles.normal(48, seed=1, dtype=dtype),
        )
        whole = rms_norm(x, weight)
        for row in range(6):
            assert torch.equal(rms_norm(x[row : row + 1], weight)[0], whole[row])


def test_autocast_leaves_the_norm_alone():
    """The statistics, and the sums of the backward, stay in float32 under autocast."""
    x, weight = oracles.normal(64, 48), oracles.normal(48, seed=1)
    results = []
    for enabled in (False, True):
        leaf, weight_leaf = x.clone().requires_grad_(), weight.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            y = rms_norm(leaf, weight_leaf)
            y.square().sum().backward()
        assert y.dtype == torch.float32
        results.append((y.detach(), leaf.grad, weight_leaf.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-6, atol=1e-5)


# --- the module ---


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_module_starts_with_a_scale_of_one(offset):
    module = RMSNorm(8, weight_offset=offset)
    x = oracles.normal(3, 8)
    assert torch.equal(module.weight.detach(), torch.full((8,), 1 - offset))
    torch.testing.assert_close(module(x), rms_norm(x), rtol=2e-7, atol=0)
    assert list(module.state_dict()) == ["weight"]


def test_module_without_weight():
    module = RMSNorm(8, elementwise_affine=False)
    x = oracles.normal(3, 8)
    assert module.weight is None and list(module.state_dict()) == []
    assert torch.equal(module(x), rms_norm(x))


def test_module_passes_its_settings_on():
    x = 0.01 * oracles.normal(3, 8, dtype=torch.bfloat16)
    module = RMSNorm(8, 1e-5, weight_offset=1.0, dtype=torch.bfloat16)
    torch.nn.init.normal_(module.weight, generator=oracles.generator(4))
    want = rms_norm(x, module.weight, 1e-5, weight_offset=1.0)
    assert torch.equal(module(x), want)
    assert not torch.equal(
        module(x), rms_norm(x, module.weight, 1e-6, weight_offset=1.0)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_module_moves_copies_and_loads(dtype):
    module = RMSNorm(8).to(dtype)
    assert module.weight.dtype == dtype
    twin = copy.deepcopy(module)
    with torch.no_grad():
        twin.weight.mul_(2)
    assert module.weight[0] == 1
    module.load_state_dict(twin.state_dict())
    assert module.weight[0] == 2


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_module_on_meta_then_filled(offset):
    """to_empty leaves garbage by design; reset_parameters must exist and fill it."""
    module = RMSNorm(8, weight_offset=offset, device="meta").to_empty(device="cpu")
    module.reset_parameters()
    assert torch.equal(module.weight.detach(), torch.full((8,), 1 - offset))


def test_repr_names_the_settings_with_and_without_weight():
    assert "eps=1e-05" in repr(RMSNorm(8, 1e-5)).replace("1e-5", "1e-05")
    assert "8" in repr(RMSNorm(8, elementwise_affine=False))


def test_unit_rms_not_unit_norm():
    y = rms_norm(oracles.normal(5, 512, dtype=torch.float64), eps=0.0)
    torch.testing.assert_close(y.square().mean(-1), torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(
        y.norm(dim=-1), torch.full((5,), math.sqrt(512), dtype=torch.float64)
    )
