"""How fast the mathematics is, beside released libraries and beside a copy of the
tensor.

``make bench`` runs this file. Times are medians of interleaved repeats in one process,
as multiples of ``clone()`` of the same tensors measured in the same round, because
absolute times differ between machines and from minute to minute. Each setting of the
allocator needs a process of its own; each number of threads is a block of rounds in it.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F

REUSED_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "MALLOC_TOP_PAD_": "268435456",
}
NORM_SHAPE, ROPE_SHAPE = (1, 2048, 4096), (1, 32, 2048, 128)


# ---- contenders: name -> function; all get the same tensors --------------------------


def apex1_norm(x, weight):
    """APEX-1's formula: everything in x's dtype."""
    return x / x.pow(2).mean(dim=-1, keepdim=True).add(1e-6).sqrt() * weight


def norms(x, weight, compiled: bool):
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    from apex_lessons.norm import rms_norm

    llama = LlamaRMSNorm(x.shape[-1]).to(x.dtype)
    llama.weight = torch.nn.Parameter(weight.detach().clone())
    width = (x.shape[-1],)
    found = {
        "apex_lessons rms_norm": lambda x, w: rms_norm(x, w),
        "torch F.rms_norm (nn.RMSNorm)": lambda x, w: F.rms_norm(x, width, w, 1e-6),
        "transformers LlamaRMSNorm": lambda x, w: llama(x),
        "APEX-1 formula": apex1_norm,
        "torch F.layer_norm (another function)": lambda x, w: F.layer_norm(
            x, width, w, None
        ),
    }
    if compiled:
        found["apex_lessons rms_norm, compiled"] = torch.compile(
            lambda x, w: rms_norm(x, w)
        )
        found["F.rms_norm, compiled"] = torch.compile(
            lambda x, w: F.rms_norm(x, width, w, 1e-6)
        )
    return found


def apex1_rotation(x, cos, sin):
    """APEX-1's formula: x cos + rotate(x) sin, tables repeated for both of a pair."""
    turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    return x * cos + turned * sin


def torchtune_rotation():
    """torchtune's class out of its own file; the package itself pulls in many
    others."""
    files = importlib.metadata.files("torchtune")
    path = next(
        f
        for f in files
        if f.name == "position_embeddings.py" and f.parts[1] == "modules"
    )
    spec = importlib.util.spec_from_file_location("torchtune_positions", path.locate())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.RotaryPositionalEmbeddings


def rotations(x, compiled: bool, first: int = 0):
    from rotary_embedding_torch import apply_rotary_emb
    from transformers.models.llama.modeling_llama import rotate_half

    from apex_lessons.rope import apply_rotary, inverse_frequencies, rotary_tables

    head_dim, rows = x.shape[-1], x.shape[-2]
    positions = torch.arange(first, first + rows)
    inv_freq = inverse_frequencies(head_dim)
    cos, sin = rotary_tables(positions, inv_freq)
    cos_i, sin_i = (t.repeat_interleave(2, -1).to(x.dtype) for t in (cos, sin))
    cos_h, sin_h = (torch.cat((t, t), -1).to(x.dtype) for t in (cos, sin))
    angles = torch.outer(positions.float(), inv_freq.float()).repeat_interleave(2, -1)
    tune = torchtune_rotation()(head_dim, max_seq_len=first + rows)
    found = {
        "apex_lessons interleaved": lambda x: apply_rotary(x, cos, sin),
        "apex_lessons half": lambda x: apply_rotary(x, cos, sin, layout="half"),
        "transformers (half)": lambda x: x * cos_h + rotate_half(x) * sin_h,
        "APEX-1 formula (interleaved)": lambda x: apex1_rotation(x, cos_i, sin_i),
        "torchtune (interleaved)": lambda x: tune(
            x.transpose(1, 2), input_pos=positions
        ),
        "rotary-embedding-torch (interleaved)": lambda x: apply_rotary_emb(angles, x),
    }
    if compiled:
        for layout in ("interleaved", "half"):
            run = torch.compile(
                lambda x, layout=layout: apply_rotary(x, cos, sin, layout=layout)
            )
            found[f"apex_lessons {layout}, compiled"] = run
    return found


# ---- measuring -----------------------------------------------------------------------


def medians(programs: dict, rounds: int) -> dict[str, float]:
    """Median milliseconds of each program; one call of each a round, in turn."""
    times = {name: [] for name in programs}
    for turn in range(rounds + 2):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            elapsed = time.perf_counter() - start
            if turn >= 2:
                times[name].append(elapsed * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def forward(run, tensors):
    def program():
        with torch.no_grad():
            for x in tensors:
                run(x)

    return program


def forward_backward(run, tensors):
    leaves = [x.detach().requires_grad_() for x in tensors]
    with torch.no_grad():
        grads = [torch.ones_like(run(x)) for x in leaves]

    def program():
        for x, grad in zip(leaves, grads):
            torch.autograd.backward(run(x), grad)
            x.grad = None

    return program


def norm_table(dtype, backward: bool, rounds: int, compiled: bool):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NORM_SHAPE, generator=generator).to(dtype)
    weight = (1 + 0.1 * torch.randn(NORM_SHAPE[-1], generator=generator)).to(dtype)
    weight.requires_grad_(backward)
    how = forward_backward if backward else forward
    programs = {"clone()": forward(torch.clone, [x])}
    for name, run in norms(x, weight, compiled).items():
        programs[name] = how(lambda x, run=run: run(x, weight), [x])
    return medians(programs, rounds)


def rope_table(dtype, backward: bool, rounds: int, compiled: bool, memory: str):
    generator = torch.Generator().manual_seed(0)
    b, h, s, d = ROPE_SHAPE if memory != "one token" else (1, 32, 1, 128)
    first = 1000 if memory == "one token" else 0
    qk = [
        torch.randn((b, s, h, d), generator=generator).to(dtype).transpose(1, 2)
        for _ in range(2)
    ]
    if memory != "[batch, seq, heads, head_dim] memory":
        qk = [x.contiguous() for x in qk]
    how = forward_backward if backward else forward
    programs = {"clone()": forward(torch.clone, qk)}
    for name, run in rotations(qk[0], compiled, first).items():
        programs[name] = how(run, qk)
    return medians(programs, rounds * (200 if memory == "one token" else 1))


def tables(rounds: int, compiled: bool, quick: bool):
    """Every table of one allocator setting: title -> {program: milliseconds}."""
    for threads in (1,) if quick else (1, 2):
        torch.set_num_threads(threads)
        for dtype in (torch.float32,) if quick else (torch.float32, torch.bfloat16):
            kind = f"{str(dtype)[6:]}, {threads} thread{'s' if threads > 1 else ''}"
            for backward in (False, True):
                way = "forward and backward" if backward else "forward"
                yield (
                    f"RMSNorm {list(NORM_SHAPE)}, {way}, {kind}",
                    norm_table(dtype, backward, rounds, compiled),
                )
                for memory in ("contiguous", "[batch, seq, heads, head_dim] memory"):
                    yield (
                        f"RoPE on q and k {list(ROPE_SHAPE)}, {memory}, {way}, {kind}",
                        rope_table(dtype, backward, rounds, compiled, memory),
                    )
            yield (
                f"RoPE, one decoded token [1, 32, 1, 128], forward, {kind}",
                rope_table(dtype, False, rounds, False, "one token"),
            )


def shown(title: str, times: dict[str, float]) -> str:
    copy = times["clone()"]
    unit, factor = ("ms", 1.0) if copy > 0.1 else ("us", 1e3)
    lines = [title, f"  {'program':40s} {unit:>8s} {'x clone':>8s}"]
    for name, ms in sorted(times.items(), key=lambda item: item[1]):
        lines.append(f"  {name:40s} {ms * factor:8.2f} {ms / copy:8.2f}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--rounds", type=int, default=11, help="counted repeats of each program"
    )
    parser.add_argument(
        "--compiled", action="store_true", help="also torch.compile (a minute)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="float32 and one thread only"
    )
    parser.add_argument(
        "--json", type=Path, help="write all medians, in ms, to this file"
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        for title, times in tables(options.rounds, options.compiled, options.quick):
            print(json.dumps([title, times]), flush=True)
        return 0
    everything = {}
    for setting, environment in (
        ("freed memory reused", REUSED_MEMORY),
        ("default allocator", {}),
    ):
        print(f"== {setting} ==", flush=True)
        child = [sys.executable, __file__, "--child", "--rounds", str(options.rounds)]
        child += ["--compiled"] * options.compiled + ["--quick"] * options.quick
        process = subprocess.Popen(
            child,
            env={**os.environ, **environment},
            text=True,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for line in process.stdout:
            title, times = json.loads(line)
            everything[f"{setting}: {title}"] = times
            print(shown(title, times), end="\n\n", flush=True)
        if process.wait():
            return process.returncode
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
