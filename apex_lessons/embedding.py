"""Token embedding: a table look-up times sqrt(d_model), tied to the output.

Reference, section 2. One tensor has two uses: its rows are what token ids become, and
the same rows, as columns, turn hidden states into logits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from apex_lessons.errors import (
    floating_dtype,
    floating_tensor,
    real_number,
    values_can_be_seen,
    whole_number,
)

ID_DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class ScaledEmbedding(nn.Module):
    """X = weight[token_ids] * scale, and logits = hidden @ weight.T with the same
    weight.

    ``vocab_size`` rows (at least the largest token id + 1), ``d_model`` columns. Rows
    are drawn from N(0, init_std^2), on the CPU if a ``generator`` is given, then moved.
    ``scale=None`` means sqrt(d_model); it is rounded once to the table's dtype (in
    bfloat16 sqrt(512) is 22.625), as Gemma was trained. ``padding_idx``: this row
    starts at zero and gets no gradient from the look-up; it still gets one from
    ``logits``, and it is not masked forward. Raises ValueError for sizes below 1, a
    negative init_std or a padding_idx outside the table. Source: reference, sections
    2.2 and 2.5; Vaswani et al. 2017, section 3.4.

    >>> table = ScaledEmbedding(3, 4, init_std=0.02)
    >>> table(torch.tensor([[1, 0, 2]])).shape, table.scale
    (torch.Size([1, 3, 4]), 2.0)
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        init_std: float = 0.02,
        scale: float | None = None,
        padding_idx: int | None = None,
        device=None, dtype=None,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.vocab_size = whole_number("vocab_size", vocab_size, at_least=1)
        self.d_model = whole_number("d_model", d_model, at_least=1)
        self.init_std = real_number("init_std", init_std, at_least=0.0)
        # scale = sqrt(d_model), in float64; rounded where it is used
        self.scale = (
            math.sqrt(d_model) if scale is None else real_number("scale", scale)
        )
        self.padding_idx = self._row(padding_idx)
        if dtype is not None:
            floating_dtype("dtype", dtype)
        shape = (self.vocab_size, self.d_model)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters(generator)

    def _row(self, padding_idx: int | None) -> int | None:
        if padding_idx is None:
            return None
        row = whole_number("padding_idx", padding_idx, at_least=-self.vocab_size)
        if row >= self.vocab_size:
            raise ValueError(
                f"padding_idx must be below vocab_size {self.vocab_size}, got {row}"
            )
        return row % self.vocab_size

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the table anew; the padding row becomes zero."""
        if generator is None:
            self.weight.normal_(0.0, self.init_std)
        else:
            shape, device = self.weight.shape, generator.device
            drawn = torch.randn(shape, generator=generator, device=device)
            self.weight.copy_(drawn * self.init_std)
        if self.padding_idx is not None:
            self.weight[self.padding_idx].zero_()

    def forward(self, token_ids: Tensor) -> Tensor:
        """[...] integers -> [..., d_model], of the table's dtype.

        Raises TypeError for ids that are not integers, IndexError for an id out of
        range.
        """
        ids = self._checked(token_ids)
        rows = F.embedding(
            ids, self.weight, padding_idx=self.padding_idx
        )  # [..., d_model]
        if self.scale == 1.0:
            return rows
        # X = weight[ids] * scale
        return rows * self.weight.new_tensor(self.scale)

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., d_model] -> [..., vocab_size]: hidden @ weight.T, the same tensor as
        the look-up.

        Raises ValueError for another last dimension, TypeError for another dtype.
        """
        if floating_tensor("hidden", hidden).shape[-1:] != (self.d_model,):
            raise ValueError(
                f"hidden must end in d_model={self.d_model}, got shape"
                f" {tuple(hidden.shape)}"
            )
        if hidden.dtype != self.weight.dtype and not _autocast_is_on(hidden):
            raise TypeError(
                f"hidden is {hidden.dtype}, the table {self.weight.dtype}: cast one"
                " of them, hidden.to(table.weight.dtype) for instance"
            )
        # logits = h W^T
        return F.linear(hidden, self.weight)

    def _checked(self, token_ids: Tensor) -> Tensor:
        if not isinstance(token_ids, Tensor) or token_ids.dtype not in ID_DTYPES:
            kind = getattr(token_ids, "dtype", type(token_ids).__name__)
            raise TypeError(
                f"token ids must be an integer tensor, got {kind}: use"
                " token_ids.long() if the values are whole numbers"
            )
        if token_ids.dtype not in (torch.int64, torch.int32):
            token_ids = token_ids.long()
        if not values_can_be_seen(token_ids) or not token_ids.numel():
            return token_ids
        low, high = (int(bound) for bound in token_ids.aminmax())
        rows = len(self.weight)
        if low < 0 or high >= rows:
            raise IndexError(
                f"token id {low if low < 0 else high} is out of range: the table has"
                f" {rows} rows, ids 0 to {rows - 1}; a table"
                " needs the largest id + 1 rows, special tokens included"
            )
        return token_ids

    def extra_repr(self) -> str:
        return (
            f"{self.vocab_size}, {self.d_model}, init_std={self.init_std:g},"
            f" scale={self.scale:g}, padding_idx={self.padding_idx}"
        )


def _autocast_is_on(x: Tensor) -> bool:
    if x.is_meta:
        return False
    try:
        return torch.is_autocast_enabled(x.device.type)
    except TypeError:  # torch before 2.4 asks without the device
        return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()
