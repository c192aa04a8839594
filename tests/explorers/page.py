"""Runs the explorers' scripts under node, as a page would; hands back the numbers."""

import json
import math
import subprocess
from pathlib import Path

from apex_lessons.explorers import base

LESSONS = sorted(path.stem for path in Path(base.__file__).parent.glob("*.py")
                 if path.stem not in ("__init__", "base"))

READER = """
const fs = await import("node:fs");
const given = JSON.parse(fs.readFileSync(0, "utf8"), (_, v) =>
  v && v.number !== undefined && Object.keys(v).length === 1 ? Number(v.number) : v);
const written = (v) => JSON.stringify(v, (_, x) =>
  typeof x === "number" && !Number.isFinite(x) ? { number: String(x) } : x);
const answer = (run) => {
  try { return { value: run() }; } catch (e) { return { error: e.message }; }
};
"""

CALLS = READER + """
const found = (name) => name.split(".").reduce((part, key) => part[key], formulas);
console.log(written(given.map(([name, args]) => answer(() => found(name)(...args)))));
"""

STATES = READER + """
const { default: module } = await import(given.script);
const { outside, encode, decode, stopsOf } = module.toolkit;
const { createHash } = await import("node:crypto");
const digest = (v) => createHash("sha256").update(written(v)).digest("hex");
console.log(written(given.states.map(([spec, settings]) => {
  const of = module.definitions[spec.name];
  return answer(() => {
    const problem = outside(spec, settings) ?? of.problem?.(settings) ?? null;
    const link = decode(spec, encode(spec, settings));
    const enabled = of.enabled?.(settings) ?? {};
    if (problem) return { problem, link, enabled };
    const facts = of.facts(settings);
    const words = of.words(settings, facts);
    if (given.want === "facts") return { problem, link, enabled, facts, words };
    const frames = of.draw(settings, facts);
    if (given.want === "digest") {
      return { problem, digest: digest([facts, words, frames]) };
    }
    const logarithmic = spec.controls.filter((control) => control.log);
    const stops = Object.fromEntries(logarithmic.map((c) => [c.name, stopsOf(c)]));
    return { problem, facts, words, frames, plots: of.plots, stops };
  });
})));
"""


def _tagged(value):
    """The value with infinities and NaN in a form that JSON keeps."""
    if isinstance(value, float) and not math.isfinite(value):
        infinite = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return {"number": infinite.get(value, "NaN")}
    if isinstance(value, dict):
        return {key: _tagged(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tagged(item) for item in value]
    return value


def _plain(value):
    if isinstance(value, dict) and set(value) == {"number"}:
        return float(value["number"])
    return value


def run_node(source, given):
    """Run an ES module under node; ``given`` goes in, the printed answer comes out."""
    done = subprocess.run(["node", "--input-type=module", "-e", source], text=True,
                          input=json.dumps(_tagged(given)), capture_output=True,
                          encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout, object_hook=_plain, parse_int=float)


def call_formulas(calls):
    """``[(name, arguments), ...]`` through formulas.js: the values; errors raise."""
    answers = run_node(base.read("formulas.js") + CALLS,
                       [[n, list(a)] for n, a in calls])
    return [RuntimeError(a["error"]) if "error" in a else a["value"] for a in answers]


def run_states(folder, cls, states, want="frames"):
    """What the page would show for each settings dict: problem, facts, words and, as
    ``want`` says, no picture ("facts"), its numbers ("frames") or their "digest"."""
    script = folder / f"{cls.__name__}.mjs"
    script.write_text(cls._esm, encoding="utf-8")
    spec = cls()._spec
    answers = run_node(STATES, {"script": script.as_uri(), "want": want,
                                "states": [[spec, state] for state in states]})
    failed = [(a["error"], s) for a, s in zip(answers, states) if "error" in a]
    assert not failed, f"{cls.__name__}: {failed[0][0]} at {failed[0][1]}"
    return [answer["value"] for answer in answers]


def close(ours, theirs, tolerance=1e-12):
    """Largest relative difference of two equally shaped nests of numbers is small."""
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    return ours == theirs or math.isclose(ours, theirs, rel_tol=tolerance,
                                          abs_tol=1e-300)
