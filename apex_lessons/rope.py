"""RoPE: position enters by turning pairs of dimensions of q and k.

The data goes one way: settings -> inverse frequencies -> cos and sin tables -> rotated
q and k. Frequencies and angles are float64 on the CPU until the last step, because a
float32 angle is off by 0.06 at position one million; finished tables are moved.

Reference, section 4. Paper: RoFormer (arXiv:2104.09864), Eq. 13-16 and 34.
Shapes: B batch, H heads, S sequence, D head_dim, P pairs (rotary_dim / 2).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from apex_lessons.errors import (
    floating_dtype,
    floating_tensor,
    one_of,
    real_number,
    tensor,
    values_can_be_seen,
    whole_number,
)

LAYOUTS = ("interleaved", "half")
FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
MAX_CACHED_ROWS = 2**20


def inverse_frequencies(head_dim: int, base: float = 10_000.0) -> Tensor:
    """The angle that each pair turns per token: inv_freq_i = base^(-2i / head_dim).

    Returns float64 [head_dim/2] on the CPU, radians per token, from 1 downwards.
    Raises ValueError for an odd head_dim, head_dim < 2 and base <= 1.
    Source: RoFormer, Eq. 15 (which counts pairs from 1); reference, section 4.3.

    >>> [round(value, 6) for value in inverse_frequencies(8).tolist()]
    [1.0, 0.1, 0.01, 0.001]
    """
    head_dim = whole_number(
        "head_dim", head_dim, at_least=2, even=True, hint="dimensions turn in pairs"
    )
    base = real_number("base", base, above=1.0, hint="the usual one is 10000")
    exponent = (
        torch.arange(0, head_dim, 2, dtype=torch.float64, device="cpu") / head_dim
    )
    # inv_freq_i = base^(-2i / head_dim)
    return base**-exponent  # [P]


def wavelengths(inv_freq: Tensor) -> Tensor:
    """Tokens that each pair needs for one turn: 2 pi / inv_freq; inf where it stands
    still.

    Same shape as ``inv_freq``, float64. Raises ValueError for a frequency that is
    negative or not finite and TypeError for anything that is not a floating-point
    tensor. Source: YaRN (arXiv:2309.00071), Eq. 13.

    >>> [round(value, 2) for value in wavelengths(inverse_frequencies(8)).tolist()]
    [6.28, 62.83, 628.32, 6283.19]
    """
    _check_frequencies(inv_freq)
    # Float64 is made on the CPU only: MPS has none.
    on_cpu = inv_freq if inv_freq.device.type in ("cpu", "meta") else inv_freq.cpu()
    # wavelength = 2 pi / inv_freq
    return 2 * math.pi / on_cpu.double()


def rotary_tables(
    positions: Tensor,
    inv_freq: Tensor,
    *,
    attention_factor: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """cos and sin of position * inv_freq, for each position and pair.

    ``positions``: integer tensor [seq] or [batch, seq], never negative, in tokens;
    ``inv_freq``: float64 [P], radians per token; ``attention_factor`` multiplies both
    tables. Returns (cos, sin), each [seq, P] or [batch, seq, P], of ``dtype``, on the
    positions' device; right to the last bit of float32 up to position 10 million,
    because angles are float64 on the CPU. Raises TypeError for positions that are not
    integers, ValueError for negative positions and wrong shapes. Source: RoFormer, Eq.
    34; reference, section 4.7.

    >>> cos, sin = rotary_tables(torch.arange(4), inverse_frequencies(4))
    >>> [round(value, 4) for value in cos[3].tolist() + sin[3].tolist()]
    [-0.99, 0.9996, 0.1411, 0.03]
    """
    _check_positions(positions)
    _check_frequencies(inv_freq)
    if inv_freq.ndim != 1:
        raise ValueError(f"inv_freq must be [pairs], got shape {tuple(inv_freq.shape)}")
    attention_factor = real_number("attention_factor", attention_factor, above=0.0)
    floating_dtype("dtype", dtype)
    if positions.is_meta:
        shape = (*positions.shape, len(inv_freq))
        return (
            torch.empty(shape, dtype=dtype, device="meta"),
            torch.empty(shape, dtype=dtype, device="meta"),
        )
    # angle = position * inv_freq, radians
    angles = (
        positions.cpu().double().unsqueeze(-1) * inv_freq.cpu().double()
    )  # [..., S, P]
    cos, sin = angles.cos() * attention_factor, angles.sin() * attention_factor
    return (cos.to(dtype).to(positions.device), sin.to(dtype).to(positions.device))


def rotate_pairs(x: Tensor) -> Tensor:
    """A quarter turn of every neighbouring pair: [x0, x1, x2, x3] -> [-x1, x0, -x3,
    x2].

    Same shape and dtype as x. The reference calls it "rotate-half"; in Hugging Face's
    Llama that name means another map (pairs i, i + D/2), GPT-J says rotate_every_two.
    Raises ValueError for an odd last dimension. Source: RoFormer, Eq. 34.

    >>> rotate_pairs(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist()
    [-2.0, 1.0, -4.0, 3.0]
    """
    if tensor("x", x).ndim == 0 or x.shape[-1] % 2:
        raise ValueError(
            f"x must have an even last dimension, got shape {tuple(x.shape)}"
        )
    return torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)


def apply_rotary(
    x: Tensor, cos: Tensor, sin: Tensor, *, layout: str = "interleaved"
) -> Tensor:
    """Turn each pair of x by its angle: (x0, x1) -> (x0 cos - x1 sin, x1 cos + x0 sin).

    ``x``: [B, H, S, D] (any leading dimensions do with [S, P] tables); ``cos``,
    ``sin``: [S, P] or [B, S, P], row by row the positions of x. Where 2P < D the first
    2P dimensions turn and the rest passes through. ``layout``: which two dimensions
    make a pair: "interleaved" (2i, 2i+1) as in RoFormer, Meta's Llama, GPT-J and
    APEX-1, or "half" (i, i+P) as in GPT-NeoX and Hugging Face's Llama. Returns x's
    shape and dtype, worked out in float32 or wider and rounded once. Raises ValueError
    for tables that do not fit x or an unknown layout, TypeError for x of a dtype that
    is not floating. Source: RoFormer, Eq. 34; reference, section 4.4.

    >>> cos, sin = rotary_tables(torch.tensor([3]), inverse_frequencies(4))
    >>> q = torch.tensor([[1.0, 0.5, 0.3, -0.2]])
    >>> [round(value, 3) for value in apply_rotary(q, cos, sin)[0].tolist()]
    [-1.061, -0.354, 0.306, -0.191]
    """
    one_of("layout", layout, LAYOUTS)
    _check_tables(x, cos, sin)
    if cos.ndim == 3:
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)  # [B, 1, S, P]
    rotary_dim = 2 * cos.shape[-1]
    if rotary_dim < x.shape[-1]:
        turned = _rotated(x[..., :rotary_dim], cos, sin, layout)
        return torch.cat((turned, x[..., rotary_dim:]), dim=-1)
    return _rotated(x, cos, sin, layout)


def rotate_plain(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """The formula itself, on x of the tables' width; the fast paths are held to it."""
    if layout == "interleaved":
        x0, x1 = x[..., 0::2], x[..., 1::2]  # pairs (2i, 2i+1)
    else:
        x0, x1 = x.chunk(2, dim=-1)  # pairs (i, i+P)
    # (x0, x1) -> (x0 cos - x1 sin, x1 cos + x0 sin)
    y0, y1 = x0 * cos - x1 * sin, x1 * cos + x0 * sin
    if layout == "interleaved":
        y = torch.stack((y0, y1), dim=-1).flatten(-2)  # [..., S, D]
    else:
        y = torch.cat((y0, y1), dim=-1)  # [..., S, D]
    return y.to(x.dtype)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """The fast path where it serves, the plain formula elsewhere."""
    if cos.dtype not in (torch.float32, torch.float64):
        cos, sin = cos.float(), sin.float()
    if torch.compiler.is_compiling() or cos.requires_grad or sin.requires_grad:
        return rotate_plain(x, cos, sin, layout)
    if x.requires_grad:
        return _Rotation.apply(x, cos, sin, layout)
    return _rotate_fast(x, cos, sin, layout)


class _Rotation(torch.autograd.Function):
    """Backward is the rotation by the opposite angle: nothing of x is kept."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, cos, sin, layout):
        return _rotate_fast(x, cos, sin, layout)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, cos, sin, ctx.layout = inputs
        ctx.save_for_backward(cos, sin)
        ctx.save_for_forward(cos, sin)

    @staticmethod
    def backward(ctx, grad):
        cos, sin = ctx.saved_tensors
        return _Rotation.apply(grad, cos, -sin, ctx.layout), None, None, None

    @staticmethod
    def jvp(ctx, tangent, *_):
        cos, sin = ctx.saved_tensors
        return _Rotation.apply(tangent, cos, sin, ctx.layout)


def _rotate_fast(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """``rotate_plain`` with fewer new buffers, which are what costs time.

    Half types: one float32 copy, turned in place. Measured against a copy of x: 1.0
    here, 6 for the plain formula (interleaved); 2.6 against 5 (half).
    """
    as_it_is = x.dtype == cos.dtype
    if layout == "half":
        if as_it_is:
            return _rotate_half(x, cos, sin)
        wide = torch.promote_types(x.dtype, cos.dtype)
        return _rotate_half(x.to(wide), cos, sin).to(x.dtype)
    if not _whole_vectors(x):
        return rotate_plain(x, cos, sin, layout)
    turn = torch.complex(cos, sin)  # [..., S, P]
    if as_it_is and _viewable(x):
        return torch.view_as_real(_as_complex(x) * turn).flatten(-2)
    wide = torch.promote_types(x.dtype, cos.dtype)
    scratch = x.to(wide, memory_format=torch.contiguous_format, copy=True)
    _as_complex(scratch).mul_(turn)
    return scratch.to(x.dtype)


def _rotate_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs (i, i+P): x cos in one product, then the other half's share in place."""
    y = x * torch.cat((cos, cos), dim=-1)
    x0, x1 = x.chunk(2, dim=-1)
    y0, y1 = y.chunk(2, dim=-1)
    y0.addcmul_(x1, sin, value=-1)
    y1.addcmul_(x0, sin)
    return y


def _as_complex(x: Tensor) -> Tensor:
    return torch.view_as_complex(x.view(*x.shape[:-1], -1, 2))  # [..., S, P]


def _viewable(x: Tensor) -> bool:
    """Whether neighbouring pairs lie in memory as complex numbers."""
    if x.is_contiguous():
        return x.storage_offset() % 2 == 0
    *outer, last = x.stride()
    return last == 1 and x.storage_offset() % 2 == 0 and all(s % 2 == 0 for s in outer)


def _whole_vectors(x: Tensor) -> bool:
    """Whether torch's complex product serves: not on MPS, and only in whole vectors.

    The left-over entries of a vector loop are rounded otherwise, and a token decoded
    alone would differ in the last bit from the same token in a full pass.
    """
    if x.is_mps or x.shape[-1] % 32:
        return False
    pairs, grain = x.numel() // 2, 32_768
    if pairs <= grain or not x.is_cpu:
        return True
    threads = min(torch.get_num_threads(), -(-pairs // grain))
    return -(-pairs // threads) % 16 == 0


class RotaryEmbedding(nn.Module):
    """Rotary positions for q and k, with tables that no move or cast can spoil.

    ``base``, ``head_dim``: as in ``inverse_frequencies``. ``layout``: as in
    ``apply_rotary``. ``scaling``: ScaledFrequencies (apex_lessons.yarn) or None; if
    given, its frequencies replace the base's and its attention_factor goes on cos and
    sin. ``rotary_dim``: how many leading dimensions turn (None: head_dim).

    ``inv_freq`` is a plain float64 attribute on the CPU, made from the settings: no
    buffer, so ``.half()``, ``.to()`` and ``to_empty()`` leave it alone and the state
    dict is empty. Raises ValueError for settings that do not fit. Source: reference,
    section 4.

    >>> rope = RotaryEmbedding(64, base=500_000.0)
    >>> q, k = torch.ones(1, 2, 5, 64), torch.ones(1, 1, 5, 64)
    >>> turned_q, turned_k = rope(q, k)
    >>> turned_q.shape, list(rope.state_dict())
    (torch.Size([1, 2, 5, 64]), [])
    """

    def __init__(
        self,
        head_dim: int,
        *,
        base: float = 10_000.0,
        layout: str = "interleaved",
        scaling=None,
        rotary_dim: int | None = None,
    ):
        super().__init__()
        self.head_dim = whole_number("head_dim", head_dim, at_least=2, even=True)
        width = head_dim if rotary_dim is None else rotary_dim
        self.rotary_dim = whole_number("rotary_dim", width, at_least=2, even=True)
        if self.rotary_dim > self.head_dim:
            raise ValueError(f"rotary_dim {rotary_dim} is above head_dim {head_dim}")
        self.base = real_number("base", base, above=1.0, hint="the usual one is 10000")
        self.layout = one_of("layout", layout, LAYOUTS)
        self.inv_freq, self.attention_factor = self._settings(scaling)
        self._tables: dict[tuple, tuple[Tensor, Tensor]] = {}

    def _settings(self, scaling) -> tuple[Tensor, float]:
        plain = inverse_frequencies(self.rotary_dim, self.base)
        if scaling is None:
            return plain, 1.0
        try:
            inv_freq, attention_factor = scaling
        except (TypeError, ValueError):
            raise TypeError(
                "scaling must be ScaledFrequencies (apex_lessons.yarn) or None, got"
                f" {type(scaling).__name__}"
            ) from None
        _check_frequencies(inv_freq)
        if inv_freq.shape != plain.shape:
            raise ValueError(
                f"scaling has {inv_freq.numel()} frequencies, rotary_dim"
                f" {self.rotary_dim} has {len(plain)} pairs: make it with"
                f" head_dim={self.rotary_dim}"
            )
        factor = real_number("attention_factor", attention_factor, above=0.0)
        return inv_freq.detach().to("cpu", torch.float64, copy=True), factor

    def forward(
        self, q: Tensor, k: Tensor, positions: Tensor | None = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Rotate q [B, H, S, D] and k [B, H_kv, S, D]; v is not rotated.

        ``positions``: integers [S] or [B, S]; None means offset, offset + 1, ... A
        decoder that feeds one token at a time must pass one of the two, or every token
        stands at 0.
        """
        for name, x in (("q", q), ("k", k)):
            self._check_heads(name, x)
        if positions is None:
            self._check_lengths(q, k)
        elif offset:
            raise ValueError(f"offset={offset} and positions were both given: give one")
        else:
            _check_positions(positions)
        cos, sin = self._tables_for(q, positions, offset)
        turned = apply_rotary(q, cos, sin, layout=self.layout)
        if (k.dtype, k.device) != (q.dtype, q.device):
            cos, sin = self._tables_for(k, positions, offset)
        return turned, apply_rotary(k, cos, sin, layout=self.layout)

    def _tables_for(self, x: Tensor, positions: Tensor | None, offset: int):
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        if positions is None:
            return self.tables(x.shape[-2], offset=offset, device=x.device, dtype=dtype)
        tables = rotary_tables(
            positions,
            self.inv_freq,
            dtype=dtype,
            attention_factor=self.attention_factor,
        )
        return [table.to(x.device) for table in tables]

    def tables(
        self,
        rows: int,
        *,
        offset: int = 0,
        device="cpu",
        dtype: torch.dtype = torch.float32,
    ) -> tuple[Tensor, Tensor]:
        """cos and sin [rows, P] of positions offset, offset + 1, ...; cached up to 2^20
        rows."""
        end = whole_number("offset", offset, at_least=0) + rows
        key = (str(device), dtype)
        known = len(self._tables[key][0]) if key in self._tables else 0
        # A lone far token is worked out by itself: it does not fill the cache.
        if end > MAX_CACHED_ROWS or offset > max(2 * known, 4096):
            return self._computed(offset, end, device, dtype)
        if known < max(end, 1):
            # Growing by doubling keeps decoding linear in time.
            rows = max(64, 1 << (end - 1).bit_length())
            cos, sin = self._tables[key] = self._computed(0, rows, device, dtype)
        else:
            cos, sin = self._tables[key]
        return cos[offset:end], sin[offset:end]

    def _computed(self, start: int, end: int, device, dtype) -> tuple[Tensor, Tensor]:
        # Tables born in inference mode could never be used in training.
        with torch.inference_mode(False):
            positions = torch.arange(start, end, device=device)
            return rotary_tables(
                positions,
                self.inv_freq,
                dtype=dtype,
                attention_factor=self.attention_factor,
            )

    def _check_heads(self, name: str, x: Tensor) -> None:
        if floating_tensor(name, x).ndim < 2 or x.shape[-1] != self.head_dim:
            raise ValueError(
                f"{name} must be [batch, heads, seq, head_dim={self.head_dim}], got"
                f" shape {tuple(x.shape)}"
            )

    def _check_lengths(self, q: Tensor, k: Tensor) -> None:
        if q.shape[-2] != k.shape[-2]:
            raise ValueError(
                f"q holds {q.shape[-2]} tokens and k {k.shape[-2]}: without positions"
                " both must hold the same ones"
            )

    def __getstate__(self):
        # Copies and pickles make their own tables.
        return {**super().__getstate__(), "_tables": {}}

    def extra_repr(self) -> str:
        return (
            f"head_dim={self.head_dim}, rotary_dim={self.rotary_dim},"
            f" base={self.base:g},"
            f" layout={self.layout!r}, attention_factor={self.attention_factor:g}"
        )


def convert_layout(
    weight: Tensor, n_heads: int, *, to: str, rotary_dim: int | None = None
) -> Tensor:
    """Reorder the rows of W_q or W_k so that the other layout gives the same scores.

    ``weight``: [n_heads * head_dim, ...], or a bias [n_heads * head_dim], or a per-head
    norm weight [head_dim] with ``n_heads=1``; ``n_heads`` is that of this matrix (for
    W_k the number of key heads). to="half": in each head, rows 0, 2, 4, ... then 1, 3,
    5, ...; to="interleaved" is the inverse. Only the first ``rotary_dim`` rows of a
    head move. Returns a new tensor of the same shape, dtype and device; W_v and W_o
    stay as they are. Raises ValueError for rows that do not divide into heads or an odd
    rotary_dim. Source: RoFormer, Eq. 34 against transformers' rotate_half.

    >>> convert_layout(torch.arange(8), 1, to="half").tolist()
    [0, 2, 4, 6, 1, 3, 5, 7]
    """
    one_of("to", to, LAYOUTS)
    n_heads = whole_number("n_heads", n_heads, at_least=1)
    if tensor("weight", weight).ndim == 0 or weight.shape[0] % n_heads:
        raise ValueError(
            f"weight of shape {tuple(weight.shape)} has rows that do not divide"
            f" into {n_heads} heads: give the number of heads of this matrix"
        )
    head_dim = weight.shape[0] // n_heads
    width = head_dim if rotary_dim is None else rotary_dim
    width = whole_number("rotary_dim", width, at_least=2, even=True)
    if width > head_dim:
        raise ValueError(f"rotary_dim {width} is above the {head_dim} rows of a head")
    order = torch.arange(head_dim, device=weight.device)
    shape = (-1, 2) if to == "half" else (2, -1)
    order = torch.cat((order[:width].view(shape).T.flatten(), order[width:]))
    heads = weight.unflatten(0, (n_heads, head_dim))  # [n_heads, head_dim, ...]
    return heads.index_select(1, order).flatten(0, 1)


def _check_positions(positions: Tensor) -> None:
    hint = "use torch.arange(seq) or .long(); half types cannot even count to 300"
    kind = tensor("positions", positions, hint).dtype
    if kind.is_floating_point or kind.is_complex or kind == torch.bool:
        raise TypeError(f"positions must be of an integer dtype, got {kind}; {hint}")
    if positions.ndim not in (1, 2):
        raise ValueError(
            f"positions must be [seq] or [batch, seq], got shape"
            f" {tuple(positions.shape)}"
        )
    if not values_can_be_seen(positions) or not positions.numel():
        return
    low, high = (int(bound) for bound in positions.long().aminmax())
    if low < 0:
        raise ValueError(
            f"positions must not be negative, got {low}: count tokens from 0, and"
            " give padding any position, 0 for instance"
        )
    if high > 2**53:
        raise ValueError(
            f"positions must be at most 2^53, got {high}: float64 cannot tell larger"
            " neighbours apart"
        )


def _check_frequencies(inv_freq: Tensor) -> None:
    floating_tensor("inv_freq", inv_freq, "make it with inverse_frequencies")
    if not values_can_be_seen(inv_freq):
        return
    wrong = ~((inv_freq >= 0) & inv_freq.isfinite())
    if bool(wrong.any()):
        raise ValueError(
            f"inv_freq must be finite and not negative, got {inv_freq[wrong][0].item()}"
            ": radians per token"
        )


def _check_tables(x: Tensor, cos: Tensor, sin: Tensor) -> None:
    for name, value in (("x", x), ("cos", cos), ("sin", sin)):
        if not isinstance(value, Tensor) or value.dtype not in FLOATS:
            floating_tensor(name, value)
    table, shape = cos.shape, x.shape
    if table != sin.shape or len(table) not in (2, 3):
        raise ValueError(
            f"cos has shape {tuple(table)}, sin {tuple(sin.shape)}: both must"
            " be [seq, pairs] or [batch, seq, pairs]"
        )
    if len(shape) < 2 or (len(table) == 3 and len(shape) != 4):
        raise ValueError(
            f"x must be [batch, heads, seq, head_dim], got shape {tuple(shape)}"
        )
    if not (
        table[-2] == shape[-2]
        and 2 * table[-1] <= shape[-1]
        and (len(table) == 2 or table[0] in (1, shape[0]))
    ):
        raise ValueError(_misfit(table, shape))


def _misfit(table: torch.Size, shape: torch.Size) -> str:
    if table[-2] != shape[-2]:
        what = "shorter" if table[-2] < shape[-2] else "longer"
        return (
            f"the tables hold {table[-2]} positions, x has {shape[-2]}: they are"
            f" {what} than the sequence; make or pick the rows of x's positions"
        )
    if 2 * table[-1] > shape[-1]:
        return (
            f"the tables turn {2 * table[-1]} dimensions, x has {shape[-1]}:"
            " one column a pair is wanted, head_dim / 2 of them"
        )
    return f"the tables are for a batch of {table[0]}, x has {shape[0]}"
