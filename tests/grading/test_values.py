"""Plain values there and back, and data that is none."""

import json

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from apex_lessons.grading.judge import same
from apex_lessons.grading.values import DTYPES, Other, decode, encode

PLAIN = [None, True, 3, -2.5, float("inf"), "θ", [1, [2]], (1, 2), {"a": 1, 2: [3]}, {},
         torch.float32, 1 + 2j, torch.Size([2, 3])]


def there_and_back(value):
    return decode(json.loads(json.dumps(encode(value))))


@pytest.mark.parametrize("value", PLAIN, ids=str)
def test_plain_values_come_back(value):
    assert there_and_back(value) == value


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (2, 3, 4)], ids=str)
def test_tensors_come_back_bit_by_bit(dtype, shape):
    tensor = (100 * torch.randn(shape, dtype=torch.float64)).to(dtype)
    back = there_and_back(tensor)
    assert back.dtype == dtype and back.shape == tensor.shape
    assert torch.equal(back, tensor)


@pytest.mark.parametrize("view", [
    torch.arange(6.0).reshape(2, 3).T, torch.ones(1).expand(4), torch.arange(9.0)[::2],
    torch.arange(3).to(torch.complex64).mul(1j).conj()], ids=range(4))
def test_views_come_back(view):
    assert torch.equal(there_and_back(view), view.clone())


def test_a_wish_for_gradients_comes_back():
    assert there_and_back(torch.ones(2, requires_grad=True)).requires_grad
    assert there_and_back(torch.nn.Parameter(torch.ones(2))).requires_grad
    assert not there_and_back(torch.ones(2)).requires_grad


@pytest.mark.parametrize("number", [numpy.float32(2.5), numpy.float64(2.5)])
def test_numbers_of_numpy_are_numbers(number):
    assert there_and_back(number) == 2.5


class Sub(torch.Tensor):
    pass


class Number(float):
    pass


@pytest.mark.parametrize("value", [
    object(), Number(1), torch.ones(2).as_subclass(Sub), numpy.ones(2), {1, 2}, len,
    2**63, "a" * 10_001, [0] * 10_001, torch.ones(1).expand(10**12),
    torch.ones(1).to("meta"), torch.ones(2).to_sparse(), torch.ones((1,) * 9)],
    ids=lambda value: str(type(value)))
def test_what_is_not_plain_is_other(value):
    assert isinstance(there_and_back(value), Other)


def test_lists_in_lists_have_an_end():
    held = []
    held.append(held)
    assert "too many" in str(there_and_back(held))


TENSOR = encode(torch.arange(2.0))


@pytest.mark.parametrize("data", [
    {"tensor": "AAAA"}, TENSOR | {"shape": [3]}, TENSOR | {"shape": [-2]},
    TENSOR | {"shape": [2**40] * 2}, TENSOR | {"shape": 2}, TENSOR | {"shape": [True]},
    TENSOR | {"dtype": "object"}, TENSOR | {"dtype": []}, TENSOR | {"tensor": "?"},
    TENSOR | {"tensor": 7}, TENSOR | {"shape": [1] * 9 + [2]}, {"dict": [[1]]},
    {"dict": [[[], 1]]}, {"dtype": "float1"}, {"complex": [1, 2, 3]}, {"tuple": 3}, {},
    {"a": 1, "b": 2}, 10**400], ids=lambda data: str(data)[:40])
def test_malformed_data_is_other(data):
    assert isinstance(decode(data), Other)


def test_a_bool_holds_true_or_false():
    """A byte of 2 in a bool would make == and arithmetic disagree."""
    forged = decode({"tensor": "Ag==", "dtype": "bool", "shape": [1], "grad": False})
    assert forged.view(torch.uint8).item() == 1


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(
        some.sampled_from(["tensor", "dtype", "shape", "grad", "tuple", "dict",
                           "complex", "other"]) | some.text(), inner, max_size=4),
    max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_any_json_is_read_and_compared_without_an_exception(data):
    value = decode(data)
    for right in (*PLAIN, torch.ones(2), torch.ones(()), Other("list")):
        assert same(value, right) in (True, False)
