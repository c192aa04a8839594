"""Plain values as JSON and back: all that passes between a sandbox and its judge.

=============================== =====================================================
value                           JSON
=============================== =====================================================
None, bool, number, str, list   itself; whole numbers of 64 bits at most
tuple, dict, dtype, complex     ``{"tuple": [..]}``, ``{"dict": [[key, value], ..]}``,
                                ``{"dtype": "float32"}``, ``{"complex": [re, im]}``
tensor                          ``{"tensor": base64 of its bytes, "dtype", "shape",
                                "grad": requires_grad}``
anything else                   ``{"other": what it is}``, see ``Other``
=============================== =====================================================

Nothing is executed on reading: no pickle, no object of a foreign class, and a tensor is
made only when its bytes are as many as its shape and dtype say.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import torch

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64,
    torch.complex128, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool)}
DEEPEST = 6  # levels of lists in lists
LARGEST = 1 << 20  # bytes of one tensor
LONGEST = 10_000  # items of a list, characters of a string
AXES = 8


@dataclass(frozen=True)
class Other:
    """What came back is no plain value; ``what`` says in a word or two what it is."""

    what: str


def encode(value: Any, depth: int = 0) -> Any:
    """A value as JSON's own types. Never fails: what is not plain is an ``Other``.

    >>> encode([1, 2.5, None]), encode(torch.ones(1, dtype=torch.int8))["tensor"]
    ([1, 2.5, None], 'AQ==')
    >>> encode(object())
    {'other': 'object'}
    """
    kind = type(value)
    if value is None or kind in (bool, float):
        return value
    if kind is int:
        return value if abs(value) < 2**63 else {"other": "a huge whole number"}
    if kind is str:
        return value if len(value) <= LONGEST else {"other": "a very long text"}
    if kind in (torch.Tensor, torch.nn.Parameter):
        return _encode_tensor(value)
    if kind is torch.dtype:
        return {"dtype": str(value).removeprefix("torch.")}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        return encode(value.item(), DEEPEST)
    return _encode_group(value, kind, depth)


def _encode_group(value: Any, kind: type, depth: int) -> Any:
    if kind not in (list, tuple, dict, torch.Size):
        return {"other": str(kind.__name__)[:60]}
    if depth >= DEEPEST or len(value) > LONGEST:
        return {"other": "too many lists in lists, or too long a list"}
    if kind is dict:
        return {"dict": [[encode(key, depth + 1), encode(item, depth + 1)]
                         for key, item in value.items()]}
    items = [encode(item, depth + 1) for item in value]
    return items if kind is list else {"tuple": items}


def _encode_tensor(value: torch.Tensor) -> dict:
    dtype = str(value.dtype).removeprefix("torch.")
    if value.layout is not torch.strided or value.is_quantized:
        return {"other": "sparse tensor"}
    if value.device.type != "cpu":
        return {"other": "tensor without numbers"}  # the meta device
    if dtype not in DTYPES or value.dim() > AXES:
        return {"other": "tensor of an unusual dtype"}
    if value.numel() * value.element_size() > LARGEST:
        return {"other": "huge tensor"}
    plain = value.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    data = plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return {"tensor": base64.b64encode(data).decode("ascii"), "dtype": dtype,
            "shape": list(value.shape), "grad": value.requires_grad}


def decode(data: Any, depth: int = 0) -> Any:
    """The value that JSON data stands for; ``Other`` where it stands for none.

    Fit for data from anyone: what is malformed gives an ``Other``, no exception.

    >>> decode(encode({"x": torch.arange(3)}))
    {'x': tensor([0, 1, 2])}
    >>> decode({"tensor": "AAAA", "dtype": "float32", "shape": [5], "grad": False})
    Other(what='a malformed value')
    """
    try:
        return _decode(data, depth)
    except (ValueError, TypeError, KeyError, RuntimeError, OverflowError):
        return Other("a malformed value")


def _decode(data: Any, depth: int) -> Any:
    if type(data) is int and abs(data) >= 2**63:
        return Other("a huge whole number")
    if data is None or type(data) in (bool, int, float, str):
        return data
    if depth > DEEPEST:
        return Other("too many lists in lists")
    if type(data) is list:
        return [_decode(item, depth + 1) for item in data]
    if "tensor" in data:
        return _decode_tensor(data)
    ((kind, held),) = data.items()
    if kind == "tuple":
        return tuple(_decode(item, depth + 1) for item in held)
    if kind == "dict":
        return {_decode(key, depth + 1): _decode(item, depth + 1) for key, item in held}
    if kind == "dtype":
        return DTYPES[held]
    if kind == "complex":
        return complex(*held)
    return Other(str(held)[:60])


def _decode_tensor(data: dict) -> torch.Tensor:
    dtype, shape = DTYPES[data["dtype"]], data["shape"]
    raw = base64.b64decode(data["tensor"], validate=True)
    if len(shape) > AXES or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise ValueError("not a shape")
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise ValueError("bytes and shape do not agree")
    flat = torch.frombuffer(bytearray(raw), dtype=dtype) if raw \
        else torch.empty(0, dtype=dtype)
    if dtype is torch.bool:  # a byte other than 0 and 1 is no bool
        flat = flat.view(torch.uint8) != 0
    return flat.reshape(shape).requires_grad_(data["grad"] is True)
