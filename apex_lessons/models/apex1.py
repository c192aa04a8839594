"""The four sizes of APEX-1: the reference's notation table with its values.

Source: AarambhDevHub/APEX-1 at 97b5855,
``configs/apex1_{tiny,small,medium,large}.yaml``; parameter counts after
``apex/model/*.py`` of the same commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SIZES = ("tiny", "small", "medium", "large")


class Symbol(NamedTuple):
    """One row of the reference's section 1: a symbol, its value here, what it means."""

    symbol: str
    value: int | float | None  # None: not a setting of the model
    field: str | None  # the attribute of Apex1Config that holds it
    meaning: str


@dataclass(frozen=True)
class Apex1Training:
    """How a size was meant to be trained: settings of a run, not of the model."""

    batch_size: int  # B, sequences per step of one device
    seq_len: int  # S while training, tokens
    gradient_accumulation_steps: int  # steps that are summed before an update
    peak_lr: float  # largest learning rate
    warmup_steps: int  # updates
    max_steps: int  # updates


@dataclass(frozen=True)
class Apex1Config:
    """One size of APEX-1, every symbol of the reference's notation table as a field.

    Sizes are numbers of elements, lengths are tokens, counts are counts. The batch size
    ``B`` and the length ``S`` belong to the input, the position ``m`` to a token: they
    are not settings of the model. ``max_seq_len`` is the largest ``S`` its tables have
    rows for; what the repository trains with is in ``training``. Each symbol is also an
    attribute of its own name, ``config.H_q`` for instance, and ``symbols()`` lists
    them.

    >>> apex1_config("small").d_model, apex1_config("small").H_q
    (512, 8)
    """

    name: str  # "APEX-1 Tiny" ...
    d_model: int  # d, width of the residual stream
    d_head: int  # d_h, width of one head (local layers, and what MLA reads out)
    d_head_rope: int  # d_r, the part of an MLA head that turns
    d_ff: int  # d_ff, inner width of one feed-forward network or expert
    d_kv: int  # d_kv, compressed width of keys and values (MLA)
    d_q: int  # d_q, compressed width of queries (MLA)
    n_heads_q: int  # H_q, query heads
    n_heads_kv: int  # H_kv, key and value heads
    n_layers: int  # L, blocks
    vocab_size: int  # V, rows of the embedding table
    n_experts: int  # E, routed experts of an MoE layer
    n_active: int  # K, routed experts that one token uses
    n_shared: int  # experts that every token uses
    sliding_window: int  # W, tokens a local layer looks back
    max_seq_len: int  # rows of the cos and sin tables, tokens
    rope_base: float  # b of theta_i = b^(-2i/d_h)
    rope_factor: float  # s of section 5; 1 is no scaling
    training: Apex1Training
    epsilon: float = 1e-6  # inside the root of RMSNorm; fixed in the code
    gamma_init: float = 1.0  # where each norm's scale starts
    embedding_init_std: float = 0.02  # of every weight matrix
    global_layer_period: int = 6  # every sixth layer is global (MLA), the others local
    moe_layer_period: int = 2  # every second layer has experts
    n_predict: int = 4  # untied output heads of the multi-token head
    skip_gate_hidden: int = 64  # inner width of the skip gate

    @property
    def global_layers(self) -> tuple[int, ...]:
        """0-based numbers of the global (MLA) layers; the others are local."""
        period = self.global_layer_period
        return tuple(i for i in range(self.n_layers) if i % period == period - 1)

    @property
    def moe_layers(self) -> tuple[int, ...]:
        """0-based numbers of the layers with experts; the others are dense."""
        return tuple(i for i in range(self.n_layers) if i % self.moe_layer_period)

    def symbols(self) -> tuple[Symbol, ...]:
        """The notation table, in the reference's order.

        >>> [row.symbol for row in apex1_config("tiny").symbols() if row.value is None]
        ['B', 'S', 'theta_i', 'm']
        """
        return tuple(Symbol(symbol, None if field is None else getattr(self, field),
                            field, meaning) for symbol, field, meaning in NOTATION)

    def __getattr__(self, name: str):
        """``config.H_q`` for ``config.n_heads_q``: the symbols as attributes."""
        field = FIELD_OF_SYMBOL.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field or symbol"
                                 f" {name!r}")
        return getattr(self, field)

    def parameter_counts(self) -> dict[str, int]:
        """Weights by part, as the repository's own modules count them; ``total`` last.

        The output layer is tied to the embedding and counts nothing; the multi-token
        head has ``n_predict`` untied [V, d] matrices. ``active`` is what one token
        uses, multi-token head included.

        >>> apex1_config("small").parameter_counts()["total"]
        523150860
        """
        d, layers = self.d_model, self.n_layers
        n_global, n_moe = len(self.global_layers), len(self.moe_layers)
        expert = 3 * d * self.d_ff
        gate = d * self.skip_gate_hidden + 2 * self.skip_gate_hidden + 1
        counts = {
            "embedding": self.vocab_size * d,
            "multi-token head": self.n_predict * self.vocab_size * d,
            "attention": (n_global * self._global_attention()
                          + (layers - n_global) * self._local_attention()),
            "feed-forward": ((layers - n_moe) * expert + n_moe
                             * ((self.n_shared + self.n_experts) * expert
                                + d * self.n_experts)),
            "norms": (2 * layers + 1) * d,
            "skip gates": layers * gate,
        }
        total = sum(counts.values())
        idle = n_moe * (self.n_experts - self.n_active) * expert
        return counts | {"active": total - idle, "total": total}

    def _global_attention(self) -> int:
        """MLA: down to d_kv and d_q, up again, the rotated parts, and the output."""
        keys, queries = self.n_heads_kv * self.d_head, self.n_heads_q * self.d_head
        turning = (self.n_heads_kv + self.n_heads_q) * self.d_head_rope
        return (self.d_model * (self.d_kv + self.d_q + turning + queries)
                + 2 * self.d_kv * keys + self.d_q * queries)

    def _local_attention(self) -> int:
        """Grouped queries: W_q and W_o with H_q heads, W_k and W_v with H_kv heads."""
        return 2 * self.d_model * self.d_head * (self.n_heads_q + self.n_heads_kv)


# symbol, field, meaning: the reference's section 1, in its order
NOTATION = (
    ("B", None, "batch size: a property of the input, see training.batch_size"),
    ("S", None, "sequence length: a property of the input, at most max_seq_len"),
    ("d", "d_model", "model hidden dimension"),
    ("d_h", "d_head", "per-head dimension"),
    ("d_r", "d_head_rope", "rotary part of an MLA head"),
    ("d_ff", "d_ff", "feed-forward inner dimension"),
    ("d_kv", "d_kv", "compressed dimension of keys and values (MLA)"),
    ("d_q", "d_q", "compressed dimension of queries (MLA)"),
    ("H_q", "n_heads_q", "query heads"),
    ("H_kv", "n_heads_kv", "key and value heads"),
    ("L", "n_layers", "transformer layers"),
    ("V", "vocab_size", "vocabulary size"),
    ("E", "n_experts", "routed experts"),
    ("K", "n_active", "active routed experts per token"),
    ("W", "sliding_window", "sliding window of a local layer, in tokens"),
    ("epsilon", "epsilon", "numerical stability constant of RMSNorm"),
    ("gamma", "gamma_init", "learnable scale of RMSNorm, its start value"),
    ("theta_i", None, "rotary frequency of pair i, from rope_base and the head size"),
    ("m", None, "token position, 0 to S - 1"),
)
FIELD_OF_SYMBOL = {symbol: field for symbol, field, _ in NOTATION if field is not None}

_CONFIGS = {
    "tiny": Apex1Config(
        name="APEX-1 Tiny", d_model=64, d_head=16, d_head_rope=8, d_ff=128, d_kv=16,
        d_q=24,
        n_heads_q=4, n_heads_kv=2, n_layers=6, vocab_size=1000, n_experts=4, n_active=2,
        n_shared=1, sliding_window=64, max_seq_len=256, rope_base=10_000.0,
        rope_factor=1.0,
        skip_gate_hidden=16, training=Apex1Training(2, 64, 1, 3e-4, 10, 100)),
    "small": Apex1Config(
        name="APEX-1 Small", d_model=512, d_head=64, d_head_rope=32, d_ff=1376, d_kv=64,
        d_q=96, n_heads_q=8, n_heads_kv=2, n_layers=12, vocab_size=151_643, n_experts=8,
        n_active=2, n_shared=1, sliding_window=512, max_seq_len=8192,
        rope_base=10_000.0,
        rope_factor=1.0, training=Apex1Training(32, 2048, 1, 3e-4, 1000, 100_000)),
    "medium": Apex1Config(
        name="APEX-1 Medium", d_model=2048, d_head=128, d_head_rope=64, d_ff=5504,
        d_kv=256,
        d_q=384, n_heads_q=16, n_heads_kv=4, n_layers=36, vocab_size=151_643,
        n_experts=64,
        n_active=4, n_shared=2, sliding_window=2048, max_seq_len=65_536,
        rope_base=500_000.0, rope_factor=4.0, skip_gate_hidden=128,
        training=Apex1Training(16, 4096, 4, 1e-4, 5000, 500_000)),
    "large": Apex1Config(
        name="APEX-1 Large", d_model=7168, d_head=128, d_head_rope=64, d_ff=18_432,
        d_kv=512,
        d_q=768, n_heads_q=128, n_heads_kv=8, n_layers=72, vocab_size=151_643,
        n_experts=256, n_active=8, n_shared=4, sliding_window=8192, max_seq_len=131_072,
        rope_base=1_000_000.0, rope_factor=8.0, skip_gate_hidden=256,
        training=Apex1Training(4, 8192, 16, 3e-5, 15_000, 1_000_000)),
}


def apex1_config(size: str) -> Apex1Config:
    """The settings of one APEX-1 size: "tiny", "small", "medium" or "large".

    Returns a frozen dataclass, the same object on every call. Raises ValueError for
    another name. Source: the repository's ``configs/`` at 97b5855.

    >>> apex1_config("large").d_model
    7168
    """
    if not isinstance(size, str) or size.lower() not in _CONFIGS:
        shown = repr(size) if len(repr(size)) < 60 else type(size).__name__
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got {shown}")
    return _CONFIGS[size.lower()]
