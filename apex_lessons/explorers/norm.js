// Lesson 02: one vector before and after LayerNorm and RMSNorm; dtype; size by depth.

const normExplorer = (() => {
  const { format, percent, decades, superscript } = toolkit;
  const { rmsNorm, layerNorm, rootMeanSquare, roundTo } = formulas.norm;
  const BASE = [1.2, -0.8, 0.4, 1.6, -1.4, 0.2, -0.6, -0.6];
  const OUTLIER = 3;           // the entry that the outlier multiplies
  const GAIN = 0.84;           // RMS of a fresh sublayer's output for an input of RMS 1
  const BLOCKS = 72;
  const LARGEST = { float32: 3.4028234663852886e38, bfloat16: 3.3895313892515355e38,
    float16: 65504 };
  const PLACEMENTS = [
    { key: "none", name: "no norm", colour: 2, dash: 1 },
    { key: "post", name: "post-norm", colour: 5, dash: 2 },
    { key: "pre", name: "pre-norm", colour: 1, dash: 3 }];

  const NOISE = { float32: 1e-6, bfloat16: 2 ** -7, float16: 2 ** -10 };  // of a mean, at RMS 1

  const finite = (x) => x.filter(Number.isFinite);
  const sum = (x) => x.reduce((total, value) => total + value, 0);

  /** sqrt(start^2 + n gain^2), 1 or start (1 + gain^2)^(n / 2), after n = 2 blocks sublayers. */
  function streamRms(blocks, placement, start) {
    const n = 2 * blocks;
    if (placement === "pre") return Math.sqrt(start ** 2 + n * GAIN ** 2);
    if (placement === "post") return n ? 1 : start;
    return start * (1 + GAIN ** 2) ** (n / 2);
  }

  const startVector = ({ shift, outlier, scale }) =>
    BASE.map((value, i) => scale * ((i === OUTLIER ? value * outlier : value) + shift));

  /** The vector after the blocks: the same direction, another size. */
  function grown(settings) {
    const start = startVector(settings);
    const size = rms(start);
    if (size === 0) return start;
    const ratio = streamRms(settings.depth, settings.placement, size) / size;
    return start.map((value) => value * ratio);
  }

  /** RMSNorm with every step rounded to the dtype, as code without an upcast runs. */
  function allInDtype(x, eps, dtype) {
    const squares = x.map((value) => roundTo(value * value, dtype));
    const mean = roundTo(sum(squares) / x.length, dtype);   // torch sums halves in float32
    const root = roundTo(Math.sqrt(roundTo(mean + roundTo(eps, dtype), dtype)), dtype);
    return x.map((value) => roundTo(value / root, dtype));
  }

  /** The norm in full precision, rounded once. */
  function wideInside(x, eps, dtype, centred) {
    if (finite(x).length < x.length) {
      return x.map((value) => centred || !Number.isFinite(value) ? NaN : 0);
    }
    return (centred ? layerNorm : rmsNorm)(x, { eps }).map((value) => roundTo(value, dtype));
  }

  function vectors(settings) {
    const { eps, dtype, inside } = settings;
    const exact = grown(settings);
    const stored = exact.map((value) => roundTo(value, dtype));
    return { stored, right: rmsNorm(exact, { eps }),
      output: inside ? wideInside(stored, eps, dtype, false) : allInDtype(stored, eps, dtype),
      layer: wideInside(stored, eps, dtype, true) };
  }

  const rms = rootMeanSquare;

  /** Mean, variance and RMS of the entries that are numbers; zeros if there is none. */
  function statistics(x) {
    const kept = finite(x);
    if (!kept.length) return { mean: 0, variance: 0, rms: 0 };
    const mean = sum(kept) / kept.length;
    const variance = sum(kept.map((value) => (value - mean) * (value - mean))) / kept.length;
    return { mean, variance, rms: rms(kept) };
  }

  function facts(settings) {
    const { stored, right, output, layer } = vectors(settings);
    const { eps, dtype, depth } = settings;
    const squares = stored.map((value) => roundTo(value * value, dtype));
    const found = { largest: Math.max(...stored.map(Math.abs)), bend: Math.sqrt(eps),
      right_rms: rms(right), infinite: stored.length - finite(stored).length,
      squares_infinite: squares.filter((value) => value === Infinity).length,
      squares_zero: squares.filter((value, i) => value === 0 && stored[i] !== 0).length,
      lost: output.length - finite(output).length,
      lost_layer: layer.length - finite(layer).length };
    for (const [name, x] of [["", stored], ["output_", output], ["layer_", layer]]) {
      for (const [fact, value] of Object.entries(statistics(x))) found[name + fact] = value;
    }
    const start = rms(startVector(settings));
    for (const { key } of PLACEMENTS) found[`stream_${key}`] = streamRms(depth, key, start);
    return found;
  }

  /** A mean in digits; as 0 where it is rounding noise beside its RMS. */
  const meanText = (found, name, dtype) => {
    const value = found[`${name}mean`];
    return format(Math.abs(value) < NOISE[dtype] * found[`${name}rms`] ? 0 : value);
  };

  // --- pictures ---------------------------------------------------------------------------

  const entries = BASE.map((_, i) => i + 1);
  const entryAxis = { label: "entry", low: 0.4, high: 8.6,
    ticks: entries.map((value) => ({ value, text: String(value) })) };

  /** Dots on stems for the entries that are numbers, a little beside their place. */
  function stemmed(key, name, x, move, look) {
    const kept = entries.filter((_, i) => Number.isFinite(x[i]));
    const at = kept.map((entry) => entry + move);
    const values = kept.map((entry) => x[entry - 1]);
    return [{ kind: "stems", key, x: at, y: values, from: 0, colour: look.colour },
      { kind: "dots", key, name, x: at, y: values, size: 5, ...look }];
  }

  function room(values, least) {
    const low = Math.min(0, ...finite(values));
    const high = Math.max(0, ...finite(values));
    const edge = 0.12 * Math.max(high - low, least);
    return { low: low - edge, high: high + edge };
  }

  /** Large and small values are counted in powers of ten, which the axis names once. */
  function valueAxis(span) {
    const power = Math.floor(Math.log10(span));
    if (power > -3 && power < 4) return { label: "value" };
    return { label: `value, in units of 10${superscript(power)}`,
      format: (value) => format(value / 10 ** power) };
  }

  function before({ dtype }, found, { stored }) {
    const rules = found.infinite ? [] : [
      { kind: "rule", key: "mean", y: found.mean, dash: 2, side: "end",
        text: `mean ${meanText(found, "", dtype)}` },
      { kind: "rule", key: "rms", y: found.rms, dash: 4, text: `RMS ${format(found.rms)}` }];
    const marks = [{ kind: "rule", key: "zero", y: 0, dash: 1, colour: "faint" }, ...rules,
      ...stemmed("stored", `as ${dtype} stores it`, stored, 0, { colour: "ink" })];
    stored.forEach((value, i) => {
      if (!Number.isFinite(value)) {
        marks.push({ kind: "text", key: `inf${i}`, x: i + 1, y: 0, dy: value > 0 ? -8 : 18,
          anchor: "middle", text: value > 0 ? "∞" : "−∞", colour: 2 });
      }
    });
    const span = Math.max(...finite(stored).map(Math.abs), 0) || 1;
    return { x: entryAxis, marks, y: { ...valueAxis(span), ...room(stored, span) },
      alt: found.infinite ? `The vector; ${found.infinite} of 8 entries are infinite in ${dtype}.`
        : `The vector: mean ${meanText(found, "", dtype)}, RMS ${format(found.rms)}.` };
  }

  function after({ dtype }, found, { output, layer, right }) {
    const marks = [{ kind: "rule", key: "zero", y: 0, dash: 1, colour: "faint" },
      ...stemmed("layer", "LayerNorm", layer, -0.16, { colour: 2, marker: 2 }),
      { kind: "dots", key: "right", name: "RMSNorm in exact numbers", colour: "ink", marker: 4,
        hollow: true, size: 7, x: entries.map((entry) => entry + 0.16), y: right },
      ...stemmed("output", "RMSNorm", output, 0.16, { colour: 1, marker: 1, size: 4 })];
    return { x: entryAxis, marks, y: { label: "value", low: -3.2, high: 3.2 },
      alt: `After RMSNorm: mean ${meanText(found, "output_", dtype)}, RMS ` +
        `${format(found.output_rms)}. After LayerNorm: mean ` +
        `${meanText(found, "layer_", dtype)}, ` +
        `RMS ${format(found.layer_rms)}.` };
  }

  function stream(settings, found) {
    const { depth, placement, dtype, inside } = settings;
    const start = rms(startVector(settings));
    const blocks = Array.from({ length: BLOCKS + 1 }, (_, k) => k);
    const lines = PLACEMENTS.map(({ key, name, colour, dash }) => ({ kind: "line", key, name,
      end: name, colour, dash, x: blocks, y: blocks.map((k) => streamRms(k, key, start)) }));
    const [low, high] = decades(lines.flatMap((line) => line.y), 0.1, 1e6);
    const limit = inside ? LARGEST[dtype] : Math.sqrt(LARGEST[dtype]);
    const marks = [...lines,
      { kind: "band", key: "limit", y: [Math.min(limit, high), high], colour: 2 },
      { kind: "rule", key: "limit", y: limit, dash: 4, side: "end",
        text: inside ? `largest ${dtype}` : `squares overflow in ${dtype}` },
      { kind: "dots", key: "now", x: [depth], y: [found[`stream_${placement}`]], colour: "ink",
        size: 6 }];
    return { marks, at: depth,
      x: { label: "block", symbol: "block", low: 0, high: BLOCKS },
      y: { label: "RMS of the stream", scale: "log", low, high },
      alt: `RMS of the stream by block. After ${depth} blocks: without norms ` +
        `${format(found.stream_none)}, post-norm ${format(found.stream_post)}, pre-norm ` +
        `${format(found.stream_pre)}.` };
  }

  // --- words ------------------------------------------------------------------------------

  const counted = (n, what) => `**${n}** ${what}${n === 1 ? "" : "s"}`;

  function rootWords({ dtype }, found) {
    if (found.lost) {
      return `RMSNorm loses ${found.lost === 8 ? "all **8**" : `**${found.lost}** of 8`} results: ` +
        "they are infinite, or ∞/∞.";
    }
    return `RMSNorm gives RMS **${format(found.output_rms)}**, mean ` +
      `**${meanText(found, "output_", dtype)}** and variance ` +
      `**${format(found.output_variance)}**.`;
  }

  const layerWords = ({ dtype }, found) => found.lost_layer ? "LayerNorm loses all of them."
    : `LayerNorm gives RMS **${format(found.layer_rms)}** and mean ` +
      `**${meanText(found, "layer_", dtype)}**.`;

  function epsilonWords(found) {
    const share = 1 - found.right_rms;
    if (share < 5e-4) {
      return "Epsilon is not felt: it matters where the RMS comes near √ε = " +
        `**${format(found.bend)}**.`;
    }
    return `Epsilon is felt: √ε = **${format(found.bend)}** is near the RMS, or above it. ` +
      `It takes **${percent(share)}** of the size.`;
  }

  function dtypeWords({ dtype, inside }, found) {
    if (found.infinite) {
      return inside ? "A wider dtype inside comes too late here: the input itself is infinite."
        : "The input itself is infinite, before anything is squared.";
    }
    if (inside) {
      return found.squares_infinite
        ? `In ${dtype} itself ${counted(found.squares_infinite, "square")} would be infinite. ` +
          "Squared in a wider dtype, nothing happens."
        : `Squared in a wider dtype, then cast to ${dtype}: one rounding.`;
    }
    if (found.squares_infinite) {
      return `${counted(found.squares_infinite, "square")} overflow${
        found.squares_infinite === 1 ? "s" : ""} in ${dtype}, so the divisor is infinite: ` +
        "the token is silenced.";
    }
    if (found.lost) {
      return `The divisor is 0 in ${dtype}: ${counted(found.lost, "result")} ${
        found.lost === 1 ? "is" : "are"} infinite.`;
    }
    if (found.squares_zero) {
      return `${counted(found.squares_zero, "square")} vanish${
        found.squares_zero === 1 ? "es" : ""} in ${dtype}: the divisor is too small.`;
    }
    return `Every step is rounded to ${dtype}; no square overflows or vanishes here.`;
  }

  function words(settings, found) {
    const { depth, placement, dtype } = settings;
    const { name } = PLACEMENTS.find(({ key }) => key === placement);
    const input = found.infinite
      ? `**${found.infinite}** of 8 entries do not fit into ${dtype}: they are stored as infinity.`
      : `The vector has mean **${meanText(found, "", dtype)}** and RMS **${format(found.rms)}**.`;
    const told = [`${input} ${rootWords(settings, found)} ${layerWords(settings, found)}`,
    dtypeWords(settings, found), epsilonWords(found)];
    if (depth) {
      told.push(`After **${depth}** blocks with ${name === "no norm" ? "no norms" : name} the ` +
        `stream of a fresh model has RMS **${format(found[`stream_${placement}`])}**.`);
    }
    return told;
  }

  return {
    plots: [{ key: "before", title: "The vector that the norm reads" },
      { key: "after", title: "After the norms" },
      { key: "stream", title: "Size of the stream, block by block", wide: true }],
    facts,
    words,
    spoken: 2,
    draw(settings, found) {
      const made = vectors(settings);
      return { before: before(settings, found, made), after: after(settings, found, made),
        stream: stream(settings, found) };
    },
    enabled: ({ depth }) => ({ placement: depth > 0 }),
  };
})();

export default toolkit.explorer({ NormExplorer: normExplorer });
