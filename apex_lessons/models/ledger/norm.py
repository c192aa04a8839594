"""Claims about RMSNorm."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from apex_lessons.models.apex1 import SIZES, apex1_config
from apex_lessons.models.ledger.claim import Ledger, computed
from apex_lessons.models.published import published
from apex_lessons.norm import RMSNorm, rms_norm

LEDGER = Ledger("rmsnorm")
EXAMPLE = torch.tensor([2.0, -1.0, 0.5, 1.5], dtype=torch.float64)
PAPER = "Zhang and Sennrich 2019 (arXiv:1910.07467)"


def _draw(*shape: int, std: float = 1.0) -> torch.Tensor:
    return std * torch.randn(*shape, generator=torch.Generator().manual_seed(0))


LEDGER.cited(
    "E10",
    "tutorial",
    "section 5, line 34",
    "Growth of the signal through layers is called internal covariate shift.",
    "wrong",
    "That is exploding or vanishing activations. Internal covariate shift is another"
    " thing: in training, the inputs of a layer change their distribution because the"
    " parameters before it change. Whether it explains what batch norm does is"
    " disputed.",
    "Ioffe and Szegedy 2015 (arXiv:1502.03167), section 2; Santurkar et al. 2018"
    " (arXiv:1805.11604)",
)
LEDGER.cited(
    "E11",
    "tutorial",
    "section 6, line 46; reference sections 3.1 and 3.3, lines 100 and 119",
    "RMSNorm is 20 to 40 % faster, with 20 to 40 % fewer operations.",
    "wrong",
    "The paper's abstract says 7 to 64 %, of the running time of whole models on the"
    " hardware of 2019. Some of its models do lie between 20 and 40; its Transformer,"
    " the case in question here, gained 6.9 %. Fewer operations (4d against 7d, 43 %)"
    " is"
    " another quantity, and in eager PyTorch on a CPU RMSNorm can be the slower one:"
    " page 02 measures it on your machine.",
    f"{PAPER}, abstract; the figures of its tables from a check by others",
)


@LEDGER.measured(
    "E12",
    "tutorial",
    "section 6, lines 47-48; reference sections 3.1 and 3.3, lines 100 and 120",
    "Quality is equal or better, and mean subtraction was not adding value.",
    "misleading",
    "The paper claims comparable performance and supposes that"
    " re-centring can be spared. RMSNorm gives up one property: it is not invariant to"
    " a shift.",
    f"{PAPER}, abstract; the authors' README, invariance table",
)
def _no_recentring():
    shift = 10.0
    x, width = _draw(64, 64), (64,)
    ln = (F.layer_norm(x + shift, width) - F.layer_norm(x, width)).abs().max().item()
    rms = (rms_norm(x + shift) - rms_norm(x)).abs().max().item()
    return computed(
        f"a shift by 10 changes LayerNorm by less than 1e-4, RMSNorm by {rms:.2f}",
        ln < 1e-4 and rms > 0.5,
        layer_norm=ln,
        rms_norm=rms,
    )


@LEDGER.measured(
    "E13",
    "reference",
    "section 3.3, line 117",
    "RMSNorm normalises the variance, via the RMS.",
    "misleading",
    "RMS^2 = variance + mean^2: it sets the mean square to 1. The text's own example"
    " leaves mean 0.548 and variance 0.700.",
    f"{PAPER}, section 4; computed",
)
def _not_variance():
    out = rms_norm(EXAMPLE)
    mean, variance = out.mean().item(), out.var(unbiased=False).item()
    return computed(
        f"mean {mean:.3f}, variance {variance:.3f}, variance + mean^2"
        f" {variance + mean**2:.6f}",
        abs(variance - 0.7) < 1e-3
        and abs(mean - 0.548) < 1e-3
        and abs(variance + mean**2 - 1) < 1e-5,
        mean=mean,
        variance=variance,
    )


@LEDGER.measured(
    "E14",
    "tutorial",
    "section 7, line 68",
    "With gamma at 1, RMSNorm is close to the identity.",
    "wrong",
    "It still divides by the RMS; the identity only where the RMS is 1.",
    "computed",
)
def _not_identity():
    x = _draw(16, 512, std=3.0)
    moved = (RMSNorm(512)(x) - x).abs().max().item()
    unit = x / x.square().mean(dim=-1, keepdim=True).sqrt()
    rest = (RMSNorm(512)(unit) - unit).abs().max().item()
    return computed(
        f"entries of std 3 move by up to {moved:.1f}; of vectors of RMS 1, by less than"
        " 1e-5",
        moved > 5 and rest < 1e-5,
        moved=moved,
    )


@LEDGER.measured(
    "E15",
    "tutorial",
    "section 7, line 84",
    "Dividing by the RMS gives about unit norm.",
    "wrong",
    "Unit RMS; the norm becomes sqrt(d), 22.627 at d = 512.",
    "computed",
)
def _not_unit_norm():
    norm = rms_norm(_draw(1, 512)).norm().item()
    return computed(
        f"norm of the output {norm:.3f}", abs(norm - 512**0.5) < 0.01, norm=norm
    )


@LEDGER.measured(
    "E16",
    "tutorial",
    "section 8, line 90",
    "RMSNorm stands at three places in every block.",
    "inconsistent",
    "Two a block and one after all blocks: 2L + 1, which is 13, 25, 73"
    " and 145. The text's own diagram shows it.",
    "APEX-1 block.py L37-38, apex_model.py L49",
)
def _places():
    norms = [2 * apex1_config(size).n_layers + 1 for size in SIZES]
    small = apex1_config("small")
    counts = small.parameter_counts()
    others = counts["total"] - counts["norms"]
    third = small.n_layers * small.d_model
    return computed(
        f"2L + 1: {norms}. The repository's modules hold 523,150,860 weights in Small:"
        f" {others:,} beside the norms, and 25 norms of 512; three a block would make"
        f" {third:,} more",
        norms == [13, 25, 73, 145] and others + 25 * 512 == 523_150_860,
        small=norms[1],
        large=norms[3],
    )


LEDGER.cited(
    "E17",
    "repository",
    "apex/model/norm.py, line 14 (the tutorial drops the line)",
    "Llama 3, DeepSeek-V3, Qwen3, Gemma 4 and Claude use RMSNorm.",
    "unverifiable",
    "For Claude no public primary source was found; Gemma multiplies by 1 + gamma,"
    " which"
    " 'use' hides.",
    "a search in 2026; gemma_pytorch gemma/model.py L166-190",
)

LEDGER.rests_on(
    "C12",
    "tutorial",
    "section 5, line 34",
    "Internal covariate shift.",
    ("E10",),
)


@LEDGER.measured(
    "C13",
    "tutorial",
    "section 5, line 35",
    "72 layers could make a signal billions of times louder.",
    "correct",
    "Large has 72; 10^9 needs a gain of 1.334 a stage.",
    "computed",
)
def _amplifiers():
    gain = 10 ** (9 / apex1_config("large").n_layers)
    return computed(f"10^(9/72) = {gain:.3f}", abs(gain - 1.334) < 1e-3, gain=gain)


@LEDGER.measured(
    "C14",
    "tutorial",
    "section 6, line 36",
    "LayerNorm is (x - mean) / std * gamma + beta.",
    "correct",
    "In form; programs add eps inside the root.",
    "gpt-2 src/model.py L36",
)
def _layer_norm():
    mean, var = EXAMPLE.mean(), EXAMPLE.var(unbiased=False)
    gap = (
        ((EXAMPLE - mean) / (var + 1e-5).sqrt() - F.layer_norm(EXAMPLE, (4,)))
        .abs()
        .max()
        .item()
    )
    return computed("formula and F.layer_norm agree to 1e-12", gap < 1e-12, gap=gap)


@LEDGER.measured(
    "C15",
    "tutorial",
    "section 6, lines 37-44",
    "The RMSNorm formula and its parts.",
    "correct",
    "As said; the paper's Eq. 4 has no eps.",
    f"{PAPER}, Eq. 4",
)
def _formula():
    direct = EXAMPLE / (EXAMPLE.square().mean() + 1e-6).sqrt()
    gap = (direct - rms_norm(EXAMPLE)).abs().max().item()
    return computed("formula and rms_norm agree to 1e-12", gap < 1e-12, gap=gap)


LEDGER.rests_on(
    "C16",
    "tutorial",
    "section 6, line 46",
    "20-40 % fewer operations.",
    ("E11",),
)


@LEDGER.measured(
    "C17",
    "tutorial",
    "section 6, line 47",
    "No bias; equal or better; used by Llama, DeepSeek and Qwen3.",
    "misleading",
    "No bias and the use: right. 'Equal or better': E12.",
    "llama-models model.py L31-42; DeepSeek-V3 model.py L270-294; Qwen3 report"
    " section 2",
    see=("E12",),
)
def _used_by():
    kinds = {row.model: row.norm_type for row in published()}
    users = [
        name
        for name, kind in kinds.items()
        if kind
        and kind.startswith("RMSNorm")
        and name.startswith(("Llama", "DeepSeek", "Qwen3"))
    ]
    return computed(
        f"{len(users)} released rows of the three families, all RMSNorm",
        7
        <= len(users)
        == sum(name.startswith(("Llama", "DeepSeek", "Qwen3")) for name in kinds),
        users=len(users),
    )


LEDGER.rests_on(
    "C18",
    "tutorial",
    "section 6, line 48",
    "Mean subtraction added no value.",
    ("E12",),
)


@LEDGER.measured(
    "C19",
    "tutorial",
    "section 7, lines 52-63, 79-83",
    "Docstring, default eps and the four steps.",
    "correct",
    "As said.",
    "APEX-1 norm.py L49-51",
)
def _steps():
    x = _draw(4, 16)
    apex1 = x / x.pow(2).mean(dim=-1, keepdim=True).add(1e-6).sqrt()
    gap = (apex1 - RMSNorm(16)(x)).abs().max().item()
    return computed("its steps and ours agree to 1e-6", gap < 1e-6, gap=gap)


@LEDGER.measured(
    "C20",
    "tutorial",
    "section 7, line 67",
    "gamma holds one value a dimension.",
    "correct",
    "As said.",
    "APEX-1 norm.py",
)
def _one_a_dimension():
    shape = tuple(RMSNorm(512).weight.shape)
    return computed(f"weight of shape {shape}", shape == (512,), entries=shape[0])


LEDGER.rests_on(
    "C21", "tutorial", "section 7, line 68", "Near the identity at the start.", ("E14",)
)
LEDGER.rests_on("C22", "tutorial", "section 7, line 85", "About unit norm.", ("E15",))


@LEDGER.measured(
    "C23",
    "tutorial",
    "section 7, lines 86-87",
    "gamma applies to every batch and position.",
    "correct",
    "As said.",
    "APEX-1 norm.py",
)
def _broadcast():
    x, weight = _draw(2, 3, 4), torch.tensor([1.0, 2.0, 3.0, 4.0])
    gap = (rms_norm(x, weight) - rms_norm(x) * weight).abs().max().item()
    return computed(
        "the weight once, or row by row: the same to 1e-6", gap < 1e-6, gap=gap
    )


LEDGER.rests_on(
    "C24",
    "tutorial",
    "section 8, line 90",
    "Three places a block.",
    ("E16",),
)
LEDGER.cited(
    "C25",
    "tutorial",
    "section 8, lines 91-97",
    "Diagram: twice pre-norm, one final norm.",
    "correct",
    "As said; it leaves out the skip gate.",
    "APEX-1 block.py L89-110",
)
LEDGER.cited(
    "C26",
    "tutorial",
    "section 8, line 98",
    "Pre-norm is more stable than post-norm.",
    "correct",
    "Post-norm has large gradients near the output at the start; page 02 measures 72"
    " layers.",
    "Xiong et al. 2020 (arXiv:2002.04745), abstract",
)
LEDGER.rests_on(
    "C50",
    "reference",
    "section 3.1, line 100",
    "No centring, 20-40 % faster, equal quality.",
    ("E11", "E12"),
)
LEDGER.measured(
    "C51",
    "reference",
    "section 3.2, lines 104-111",
    "Formula, gamma and eps.",
    "correct",
    "As said.",
    f"{PAPER}, Eq. 4",
)(_formula)


@LEDGER.measured(
    "C52",
    "reference",
    "section 3.3, line 116",
    "LayerNorm centres, RMSNorm does not.",
    "correct",
    "As said.",
    PAPER,
)
def _centring():
    ln, rms = F.layer_norm(EXAMPLE, (4,)).mean().item(), rms_norm(EXAMPLE).mean().item()
    return computed(
        f"means of the outputs {abs(ln):.3f} and {rms:.3f}",
        abs(ln) < 1e-12 < rms,
        layer_norm=ln,
        rms_norm=rms,
    )


LEDGER.rests_on(
    "C53",
    "reference",
    "section 3.3, line 117",
    "Both normalise the variance.",
    ("E13",),
)


@LEDGER.measured(
    "C54",
    "reference",
    "section 3.3, line 118",
    "2d parameters against d.",
    "correct",
    "For a LayerNorm with bias.",
    "torch.nn.LayerNorm",
)
def _parameters():
    ln = sum(p.numel() for p in torch.nn.LayerNorm(512).parameters())
    rms = sum(p.numel() for p in RMSNorm(512).parameters())
    return computed(
        f"{ln} and {rms} at d = 512", (ln, rms) == (1024, 512), ln=ln, rms=rms
    )


LEDGER.rests_on(
    "C55",
    "reference",
    "section 3.3, lines 119-120",
    "Speed and quality.",
    ("E11", "E12"),
)
LEDGER.cited(
    "C56",
    "reference",
    "section 3.3, line 121",
    "GPT-2 and BERT use LayerNorm; Llama, DeepSeek and Qwen RMSNorm.",
    "correct",
    "As said.",
    "gpt-2 src/model.py L28-39; google-research/bert modeling.py, layer_norm",
)


@LEDGER.measured(
    "C57",
    "reference",
    "section 3.4, lines 125-143",
    "The step-by-step example.",
    "correct",
    "1.875, 1.3693, [1.4606, -0.7303, 0.3651, 1.0954]: every number.",
    "computed",
)
def _example():
    out = [round(value, 4) for value in rms_norm(EXAMPLE).tolist()]
    square = EXAMPLE.square().mean().item()
    return computed(
        f"mean square {square}, output {out}",
        square == 1.875 and out == [1.4606, -0.7303, 0.3651, 1.0954],
        square=square,
    )


LEDGER.rests_on(
    "C58",
    "reference",
    "section 3.5, lines 147-154",
    "Two a block, 2L + 1 in all.",
    ("E16",),
    "correct",
    "Right for APEX-1. DeepSeek-V3 adds norms inside its attention; Gemma-3 has"
    " four a block and norms q and k.",
)
