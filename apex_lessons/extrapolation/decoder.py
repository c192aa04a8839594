"""A small decoder made of the course's own parts, to be read in ten minutes.

bytes -> scaled tied embedding -> n_layers of (norm, rotary attention, norm, gated MLP)
-> norm -> logits with the embedding's own table. The frequencies come in as an
argument, so that one trained model can be read with any scaling method.

Source: reference, sections 2 to 5 and its decoder block; the sizes are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.errors import real_number, tensor, whole_number
from apex_lessons.norm import RMSNorm
from apex_lessons.rope import apply_rotary, inverse_frequencies, rotary_tables
from apex_lessons.yarn import ScaledFrequencies

BYTES = 256  # one token is one byte


@dataclass(frozen=True)
class DecoderSettings:
    """The sizes of a decoder; lengths in tokens, here bytes.

    ``head_dim`` even. Raises ValueError or TypeError for a size below 1, an odd
    head_dim or base <= 1.
    """

    d_model: int = 128
    n_heads: int = 2
    head_dim: int = 64
    n_layers: int = 4
    d_hidden: int = 256
    base: float = 10_000.0
    trained_length: int = 512

    def __post_init__(self) -> None:
        for name in ("d_model", "n_heads", "n_layers", "d_hidden", "trained_length"):
            whole_number(name, getattr(self, name), at_least=1)
        inverse_frequencies(self.head_dim, self.base)  # checks both

    @property
    def plain(self) -> ScaledFrequencies:
        """The frequencies the model is trained with."""
        return ScaledFrequencies(inverse_frequencies(self.head_dim, self.base), 1.0)


class Attention(nn.Module):
    """Causal self-attention with rotated queries and keys.

    score(m, n) = (R_m q_m . R_n k_n) * score_factor / sqrt(head_dim), for n <= m.
    Letters in shapes: b batch, s sequence, h heads, w head width.
    """

    def __init__(self, settings: DecoderSettings):
        super().__init__()
        self.n_heads, self.head_dim = settings.n_heads, settings.head_dim
        inner = settings.n_heads * settings.head_dim
        self.qkv = nn.Linear(settings.d_model, 3 * inner, bias=False)
        self.out = nn.Linear(inner, settings.d_model, bias=False)

    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        """q and k, rotated, and v: each [b, h, s, w]."""
        b, s, _ = x.shape
        heads = self.qkv(x).view(
            b, s, 3, self.n_heads, self.head_dim
        )  # [b, s, 3, h, w]
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # 3 x [b, h, s, w]
        return apply_rotary(q, cos, sin), apply_rotary(k, cos, sin), v

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, scale: float) -> Tensor:
        """[b, s, d_model] -> [b, s, d_model]."""
        q, k, v = self.rotated(x, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        return self.out(mixed.transpose(1, 2).flatten(2))  # [b, s, d_model]

    def log_weights(self, x: Tensor, cos: Tensor, sin: Tensor, scale: float) -> Tensor:
        """The logarithms of the attention weights, [b, h, s, s]; -inf where n > m."""
        q, k, _ = self.rotated(x, cos, sin)
        scores = q @ k.mT * scale  # [b, h, s, s]
        later = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -math.inf).log_softmax(-1)


class GatedMLP(nn.Module):
    """silu(x W_gate) * (x W_up), then W_down."""

    def __init__(self, settings: DecoderSettings):
        super().__init__()
        self.gate_up = nn.Linear(settings.d_model, 2 * settings.d_hidden, bias=False)
        self.down = nn.Linear(settings.d_hidden, settings.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[b, s, d_model] -> [b, s, d_model]."""
        gate, up = self.gate_up(x).chunk(2, dim=-1)  # each [b, s, d_hidden]
        return self.down(F.silu(gate) * up)


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, settings: DecoderSettings):
        super().__init__()
        self.attention_norm = RMSNorm(settings.d_model)
        self.attention = Attention(settings)
        self.mlp_norm = RMSNorm(settings.d_model)
        self.mlp = GatedMLP(settings)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, scale: float) -> Tensor:
        """[b, s, d_model] -> [b, s, d_model]."""
        x = x + self.attention(self.attention_norm(x), cos, sin, scale)
        return x + self.mlp(self.mlp_norm(x))


class Decoder(nn.Module):
    """Byte ids [b, s] -> logits [b, s, 256].

    Weights are drawn on the CPU with ``generator``: the embedding from N(0, 0.02^2),
    each linear map's from N(0, 1 / inputs); those that write into the residual stream
    are further divided by sqrt(2 n_layers) (GPT-2's rule).

    Raises ValueError for token ids that are not [b, s] with b and s at least 1.

    >>> generator = torch.Generator().manual_seed(0)
    >>> Decoder(DecoderSettings(), generator)(torch.tensor([[72, 105]])).shape
    torch.Size([1, 2, 256])
    """

    def __init__(self, settings: DecoderSettings, generator: torch.Generator):
        super().__init__()
        self.settings = settings
        self.embedding = ScaledEmbedding(BYTES, settings.d_model, generator=generator)
        self.blocks = nn.ModuleList(Block(settings) for _ in range(settings.n_layers))
        self.norm = RMSNorm(settings.d_model)
        self._draw(generator)

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        for name, weight in self.blocks.named_parameters():
            if weight.dim() == 2:
                writes = name.endswith(("out.weight", "down.weight"))
                depth = 2 * self.settings.n_layers if writes else 1
                drawn = torch.randn(weight.shape, generator=generator)
                weight.copy_(drawn / math.sqrt(depth * weight.shape[1]))

    def tables(
        self, length: int, scaled: ScaledFrequencies | None = None
    ) -> tuple[Tensor, Tensor]:
        """cos and sin for positions 0 to length - 1, on the model's device."""
        inv_freq, attention_factor = scaled or self.settings.plain
        weight = self.embedding.weight
        positions = torch.arange(length, device=weight.device)
        return rotary_tables(
            positions, inv_freq, attention_factor=attention_factor, dtype=weight.dtype
        )

    def scale(self, score_factor: float = 1.0) -> float:
        """What scores are multiplied by: score_factor / sqrt(head_dim)."""
        factor = real_number("score_factor", score_factor, above=0.0)
        return factor / math.sqrt(self.settings.head_dim)

    def hidden(
        self,
        token_ids: Tensor,
        scaled: ScaledFrequencies | None = None,
        *,
        score_factor: float = 1.0,
    ) -> Tensor:
        """[b, s] -> [b, s, d_model], normed: what the logits are computed from."""
        _check_shape(token_ids)
        cos, sin = self.tables(token_ids.shape[-1], scaled)  # [s, w/2]
        x = self.embedding(token_ids)  # [b, s, d_model]
        for block in self.blocks:
            x = block(x, cos, sin, self.scale(score_factor))
        return self.norm(x)

    def forward(
        self,
        token_ids: Tensor,
        scaled: ScaledFrequencies | None = None,
        *,
        score_factor: float = 1.0,
    ) -> Tensor:
        """[b, s] -> logits [b, s, 256].

        ``scaled``: frequencies of another scaling method; None: those of training.
        """
        hidden = self.hidden(token_ids, scaled, score_factor=score_factor)
        return self.embedding.logits(hidden)


def _check_shape(token_ids: Tensor) -> None:
    shape = tuple(tensor("token_ids", token_ids).shape)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            f"token_ids must be [batch, length], each at least 1, got shape {shape};"
            " one row of bytes is token_ids[None]"
        )
