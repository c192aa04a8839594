// Lesson 03: every pair as a clock hand, scores that see only distance, who tells distances.

const ropeParts = (() => {
  /** Whole-numbered ticks for the pairs 0 ... pairs - 1. */
  function pairTicks(pairs) {
    const step = [1, 2, 4, 8, 16, 32].find((s) => pairs / s <= 9) ?? 32;
    return Array.from({ length: Math.ceil(pairs / step) },
      (_, k) => ({ value: k * step, text: String(k * step) }));
  }

  const pairAxis = (pairs, where = {}) => ({ label: "pair i", symbol: "pair", low: -0.5,
    high: pairs - 0.5, ticks: pairTicks(pairs), ...where });

  const circle = (radius) => {
    const turn = Array.from({ length: 73 }, (_, k) => (k * Math.PI) / 36);
    return { x: turn.map((a) => radius * Math.cos(a)), y: turn.map((a) => radius * Math.sin(a)) };
  };

  const problem = ({ head_dim }) => head_dim % 2
    ? `Head width ${head_dim} is odd: dimensions turn in pairs, so take an even number.` : null;

  return Object.freeze({ pairAxis, circle, problem });
})();

const wavelengthClock = (() => {
  const { format, decades } = toolkit;
  const { inverseFrequencies, wavelengths } = formulas.rope;
  const { pairAxis, circle } = ropeParts;
  const INNER = 0.2;           // the slowest pair's ring; the fastest has radius 1

  function facts({ head_dim, base, context_length, position, pair_share }) {
    const frequencies = inverseFrequencies(head_dim, base);
    const waves = wavelengths(frequencies);
    const pairs = frequencies.length;
    const pair = Math.floor((pair_share / 100) * (pairs - 1) + 0.5);
    const never = waves.filter((wave) => wave > context_length).length;
    return { pairs, pair, frequency: frequencies[pair], wavelength: waves[pair],
      angle: position * frequencies[pair], turns: position / waves[pair],
      turns_in_context: context_length / waves[pair], shortest_wavelength: waves[0],
      longest_wavelength: waves[pairs - 1], pairs_never: never,
      pairs_at_new_angles: waves.filter((wave) => position % wave > context_length).length };
  }

  /** The pairs in two sets, told apart by colour and by shape. */
  function sets(waves, context) {
    const all = waves.map((_, i) => i);
    return [
      { key: "turns", name: "finishes a turn in the context", colour: 1, marker: 1,
        pairs: all.filter((i) => waves[i] <= context) },
      { key: "never", name: "never finishes a turn", colour: 2, marker: 2,
        pairs: all.filter((i) => waves[i] > context) }];
  }

  function ladder(settings, found, waves) {
    const { context_length: context, position } = settings;
    const [low, high] = decades([1, ...waves, context, position]);
    const top = high / Math.max(...waves, context) < 3 ? high * 10 : high;
    const marks = [
      { kind: "band", key: "beyond", y: [context, top], colour: 2 },
      { kind: "rule", key: "context", y: context, dash: 2,
        text: `context length ${format(context)}` },
      { kind: "rule", key: "position", y: position, colour: 3, dash: 4, side: "end",
        text: `position ${format(position)}` },
      ...sets(waves, context).filter(({ pairs }) => pairs.length).map(({ pairs, ...look }) => (
        { kind: "dots", ...look, x: pairs, y: pairs.map((i) => waves[i]),
          size: waves.length > 70 ? 3 : 4 })),
      { kind: "dots", key: "chosen", x: [found.pair], y: [found.wavelength], colour: "ink",
        size: 8, hollow: true }];
    return { x: pairAxis(found.pairs), at: found.pair, marks,
      y: { label: "wavelength", unit: "tokens per turn", scale: "log", low, high: top },
      alt: `Wavelengths of ${found.pairs} pairs from ${format(found.shortest_wavelength)} to ` +
        `${format(found.longest_wavelength)} tokens; ${found.pairs_never} lie above the context ` +
        `length ${format(context)}.` };
  }

  function dial(settings, found, waves) {
    const { position, context_length: context } = settings;
    const { pairs } = found;
    const radius = (i) => 1 - ((1 - INNER) * i) / Math.max(1, pairs - 1);
    const at = (i, r) => {
      const angle = 2 * Math.PI * ((position / waves[i]) % 1);
      return [r * Math.cos(angle), r * Math.sin(angle)];
    };
    const swept = Math.min(1, found.turns % 1 || found.turns);
    const steps = Array.from({ length: 49 }, (_, k) => (2 * Math.PI * swept * k) / 48);
    const r = radius(found.pair);
    const [hx, hy] = at(found.pair, 1.09);
    const marks = [
      ...[1, 0.6, INNER].map((size, k) => ({ kind: "line", key: `ring${k}`, colour: "faint",
        width: k ? 0.75 : 1.25, dash: k ? 4 : 1, ...circle(size) })),
      { kind: "line", key: "start", colour: "faint", width: 1.25, x: [0, 1], y: [0, 0] },
      { kind: "text", key: "start", x: 0.97, y: 0, dy: 14, anchor: "end", text: "m = 0",
        colour: "faint" },
      { kind: "line", key: "swept", colour: "ink", width: 1.5,
        x: steps.map((a) => r * Math.cos(a)), y: steps.map((a) => r * Math.sin(a)) },
      { kind: "arrow", key: "hand", from: [0, 0], to: [hx, hy], colour: "ink", width: 2 },
      ...sets(waves, context).map(({ pairs: some, key, colour, marker }) => {
        const points = some.map((i) => at(i, radius(i)));
        return { kind: "dots", key, colour, marker, size: pairs > 70 ? 3 : 4,
          x: points.map((p) => p[0]), y: points.map((p) => p[1]) };
      }),
      { kind: "dots", key: "chosen", x: [at(found.pair, r)[0]], y: [at(found.pair, r)[1]],
        colour: "ink", size: 8, hollow: true }];
    const axis = { low: -1.12, high: 1.12, label: "", hidden: true };
    return { x: axis, y: axis, marks,
      alt: `A dial with every pair at position ${format(position)}; the hand of pair ` +
        `${found.pair} has made ${format(found.turns)} turns.` };
  }

  function words(settings, found) {
    const { position, context_length: context } = settings;
    const { pair, pairs, pairs_never: never } = found;
    const first = `Pair **${pair}** (of 0 to ${pairs - 1}) turns **${format(found.frequency)}** ` +
      `radians a token, once in **${format(found.wavelength)}** tokens. At position ` +
      `**${format(position)}** it stands at **${format(found.angle)}** radians: ` +
      `**${format(found.turns)}** turns.`;
    const second = `Within **${format(context)}** tokens it makes ` +
      `**${format(found.turns_in_context)}** turns. **${never}** of **${pairs}** pairs never ` +
      `finish one; the slowest would need **${format(found.longest_wavelength)}** tokens.`;
    const third = position > context
      ? `This position lies beyond the context: **${found.pairs_at_new_angles}** pairs stand at ` +
        "angles that the context never brought them to."
      : `This position lies inside the context. ${never
        ? "Beyond it, the pairs that never finish a turn come to angles they have not met."
        : "Every pair has been all the way round."}`;
    return [first, second, third];
  }

  return {
    plots: [{ key: "ladder", title: "Wavelength of each pair", height: 300 },
      { key: "dial", title: "Every pair at position m, the fastest outside", equal: true,
        height: 300, margin: { left: 4, right: 4, top: 4, bottom: 4 } }],
    facts,
    words,
    problem: ropeParts.problem,
    draw(settings, found) {
      const waves = wavelengths(inverseFrequencies(settings.head_dim, settings.base));
      return { ladder: ladder(settings, found, waves), dial: dial(settings, found, waves) };
    },
  };
})();

const rotationInvariance = (() => {
  const { format } = toolkit;
  const { inverseFrequencies, score: scoreOf, scoreMatrix } = formulas.rope;
  const SIDE = 20;
  const KEY = [1, 0.5, -0.8, 0.6, 0.7, 0.7, -0.3, 0.9, 1, 0.2, 0.5, -0.8, -0.6, 0.6, 0.4, 0.9];
  const QUERY = [0.8, 0.8, 0.8, 0.6, 1, 0.2, -0.1, 0.9, -1, -0.1, -0.5, 0.8, -0.6, 0.6, 0.4, 0.9];
  const unit = (x) => {
    const norm = Math.sqrt(x.reduce((total, value) => total + value * value, 0));
    return x.map((value) => value / norm);
  };
  const [QUERY_1, KEY_1] = [unit(QUERY), unit(KEY)];
  const INDEX = Array.from({ length: SIDE }, (_, i) => i);
  const ROWS = [
    { key: "first", row: 0, colour: 1, marker: 1 },
    { key: "middle", row: 10, colour: 2, marker: 2 },
    { key: "last", row: SIDE - 1, colour: 3, marker: 3 }];

  let kept = { key: "" };      // facts and picture want the same matrix

  function matrix({ base, layout_q, layout_k, shift }) {
    const key = [base, layout_q, layout_k, shift].join();
    if (kept.key !== key) {
      const places = INDEX.map((i) => shift + i);
      kept = { key, scores: scoreMatrix(QUERY_1, KEY_1, places, places,
        inverseFrequencies(16, base), { layout_q, layout_k }) };
    }
    return kept.scores;
  }

  /** Largest difference of two scores at equal distance. */
  function spreadOf(scores) {
    let largest = 0;
    for (let distance = 1 - SIDE; distance < SIDE; distance++) {
      let low = Infinity;
      let high = -Infinity;
      for (let n = Math.max(0, -distance); n < Math.min(SIDE, SIDE - distance); n++) {
        const value = scores[n + distance][n];
        if (value < low) low = value;
        if (value > high) high = value;
      }
      largest = Math.max(largest, high - low);
    }
    return largest;
  }

  function facts(settings) {
    const { m, n, base, layout_q, layout_k } = settings;
    const score = scoreOf(QUERY_1, KEY_1, m, n, inverseFrequencies(16, base),
      { layout_q, layout_k });
    const after = matrix(settings);
    return { distance: m - n, score, shifted_score: after[m][n], change: after[m][n] - score,
      spread: spreadOf(after) };
  }

  function curve(settings, found, scores) {
    const { shift } = settings;
    const xs = INDEX.flatMap((m) => INDEX.map((n) => m - n));
    const marks = [
      { kind: "dots", key: "all", x: xs, y: scores.flat(), colour: "faint", size: 2, marker: 2 },
      ...ROWS.map(({ key, row, colour, marker }) => ({ kind: "dots", key, colour, marker,
        name: `query at ${shift + row}`, size: 4, x: INDEX.map((n) => row - n).reverse(),
        y: [...scores[row]].reverse() })),
      { kind: "rule", key: "distance", x: found.distance, dash: 4, text: "your distance",
        side: "end" },
      { kind: "dots", key: "now", x: [found.distance], y: [found.shifted_score], colour: "ink",
        size: 8, hollow: true }];
    return { x: { label: "distance m − n", unit: "tokens", symbol: "distance", low: -SIDE,
      high: SIDE }, y: { label: "score / (|q| |k|)", low: -1, high: 1 }, at: found.distance, marks,
    alt: `Scores against distance at ${SIDE * SIDE} pairs of positions; at equal distance they ` +
      `differ by up to ${tiny(found.spread)}.` };
  }

  function map(settings, found, scores) {
    const { m, n, shift } = settings;
    const line = INDEX.filter((i) => i + found.distance >= 0 && i + found.distance < SIDE);
    const axis = (label, symbol) => ({ label, symbol, low: shift - 0.5, high: shift + SIDE - 0.5,
      ticks: INDEX.filter((i) => i % 4 === 0).map((i) => ({ value: shift + i,
        text: String(shift + i) })) });
    return { x: axis("position of the key", "n"), y: axis("position of the query", "m"),
      marks: [
        { kind: "cells", key: "score", rows: SIDE, columns: SIDE, limit: 0.6,
          values: [...scores].reverse().flat() },
        { kind: "line", key: "diagonal", colour: "ink", dash: 2, width: 1.5,
          x: line.map((i) => shift + i), y: line.map((i) => shift + i + found.distance) },
        { kind: "dots", key: "now", x: [shift + n], y: [shift + m], colour: "ink", size: 7,
          hollow: true }],
      alt: `The scores as a matrix of positions ${shift} to ${shift + SIDE - 1}; the dashed line ` +
        `is distance ${found.distance}.` };
  }

  const tiny = (value) => Math.abs(value) < 1e-9 ? "0" : format(value, 3);

  function words(settings, found) {
    const { m, n, shift, layout_q, layout_k } = settings;
    const same = layout_q === layout_k;
    const first = `Query at **${shift + m}**, key at **${shift + n}**: distance ` +
      `**${found.distance}**, score **${tiny(found.shifted_score)}**. ` + (shift
      ? `Before the shift, at ${m} and ${n}: **${tiny(found.score)}**.` : "Now shift both.");
    const second = same
      ? `Both in the ${layout_q} layout: at equal distance the ${SIDE * SIDE} scores differ ` +
        `by **${tiny(found.spread)}**. One curve, and one colour along every diagonal.`
      : `The layouts differ: at equal distance the scores differ by up to ` +
        `**${tiny(found.spread)}**, and a shift changes this one by **${tiny(found.change)}**. No ` +
        "error is raised; only the numbers are wrong.";
    const third = same
      ? "The query was made to look six tokens back: its score is highest there, not at distance 0."
      : "At position 0 nothing turns, so a test there would pass.";
    return [first, second, third];
  }

  return {
    plots: [{ key: "curve", title: "Score against distance", height: 320 },
      { key: "map", title: "The same scores as a matrix", equal: true, height: 340 }],
    facts,
    words,
    draw(settings, found) {
      const scores = matrix(settings);
      return { curve: curve(settings, found, scores), map: map(settings, found, scores) };
    },
  };
})();

const pairsAndDistances = (() => {
  const { format, geometric } = toolkit;
  const { inverseFrequencies, wavelengths } = formulas.rope;
  const { pairAxis } = ropeParts;
  const LONGEST = 100000;
  const GRID = geometric(1, LONGEST, 61);
  const GROUPS = [
    { key: "repeats", name: "repeats (over half a turn)", colour: 2, marker: 2 },
    { key: "tells", name: "tells it", colour: 1, marker: 1 },
    { key: "blind", name: "has not noticed it (under a twentieth)", colour: 3, marker: 3 }];

  function facts({ head_dim, base, distance }) {
    const waves = wavelengths(inverseFrequencies(head_dim, base));
    const turns = waves.map((wave) => distance / wave);
    const pairs = waves.length;
    const repeats = turns.filter((t) => t > 0.5).length;
    const blind = turns.filter((t) => t < 0.05).length;
    const tell = pairs - repeats - blind;
    return { pairs, repeats, tell, blind, first_telling: tell ? repeats : -1,
      last_telling: tell ? repeats + tell - 1 : -1, half_wavelength: 2 * distance,
      longest_wavelength: waves[pairs - 1], turns_of_the_fastest: turns[0],
      turns_of_the_slowest: turns[pairs - 1] };
  }

  /** The pairs of each group; those that repeat come first, since fast pairs do. */
  function grouped(found) {
    const { pairs, repeats, tell } = found;
    const ends = [0, repeats, repeats + tell, pairs];
    return GROUPS.map((group, g) => ({ ...group,
      members: Array.from({ length: ends[g + 1] - ends[g] }, (_, i) => ends[g] + i) }));
  }

  /** The pair, as a fraction, that makes `share` of a turn at a distance. */
  const pairAt = (distance, share, { head_dim, base }) =>
    ((head_dim / 2) * Math.log(distance / (2 * Math.PI * share))) / Math.log(base);

  function map(settings, found) {
    const { distance, base } = settings;
    const { pairs } = found;
    const half = GRID.map((r) => pairAt(r, 0.5, settings));
    const twentieth = GRID.map((r) => pairAt(r, 0.05, settings));
    const marks = [
      { kind: "area", key: "tells", x: GRID, y: twentieth, y0: half, colour: 1 },
      { kind: "line", key: "half", name: "pair at half a turn", colour: 2, dash: 1,
        x: GRID, y: half },
      { kind: "line", key: "twentieth", name: "pair at a twentieth", colour: 3, dash: 2,
        x: GRID, y: twentieth },
      { kind: "rule", key: "distance", x: distance, dash: 4, colour: "ink" },
      ...grouped(found).map(({ key, colour, marker, members }) => ({ kind: "dots", key, colour,
        marker, size: pairs > 70 ? 2.5 : 3.5, x: members.map(() => distance), y: members })),
      { kind: "text", key: "repeats", x: 30000, y: 0.06 * pairs, text: "repeats",
        anchor: "middle", colour: 2 },
      { kind: "text", key: "blind", x: 1.4, y: 0.9 * pairs - 0.5, text: "not noticed",
        colour: 3 },
      { kind: "text", key: "tells", x: base ** 0.25 * Math.PI / Math.sqrt(10), dy: 4,
        y: 0.25 * pairs, text: "tells it", anchor: "middle", colour: 1 }];
    return { x: { label: "distance", unit: "tokens", scale: "log", low: 1, high: LONGEST },
      y: pairAxis(pairs), at: distance, marks,
      alt: `Pairs against distances with the two borders; at ${format(distance)} tokens ` +
        `${found.repeats} pairs repeat, ${found.tell} tell it, ${found.blind} have not noticed.` };
  }

  function stems(settings, found) {
    const cosines = inverseFrequencies(settings.head_dim, settings.base)
      .map((value) => Math.cos(settings.distance * value));
    const marks = [{ kind: "rule", key: "zero", y: 0, colour: "faint", dash: 1 }];
    for (const { key, name, colour, marker, members } of grouped(found)) {
      if (!members.length) continue;
      const x = members;
      const y = members.map((i) => cosines[i]);
      marks.push({ kind: "stems", key, x, y, from: 0, colour, width: 1.5 },
        { kind: "dots", key, name, x, y, colour, marker, size: found.pairs > 70 ? 3 : 4 });
    }
    return { x: pairAxis(found.pairs), marks, at: Math.max(0, found.first_telling),
      y: { label: "cos(distance × θ)", low: -1.1, high: 1.1 },
      alt: `The cosine that each of ${found.pairs} pairs gives for a distance of ` +
        `${format(settings.distance)} tokens.` };
  }

  function words(settings, found) {
    const { repeats, tell, blind, pairs } = found;
    const r = format(settings.distance);
    const first = `At a distance of **${r}** tokens **${repeats}** of **${pairs}** pairs have passed ` +
      "half a turn: some shorter distance gives them the same cosine, so they repeat.";
    const span = tell > 1 ? `Pairs **${found.first_telling}** to **${found.last_telling}** tell`
      : `Pair **${found.first_telling}** tells`;
    const second = tell
      ? `${span} **${r}** from every shorter distance; their cosine falls all the way from 1.`
      : "No single pair tells this distance from all shorter ones.";
    const third = blind
      ? `**${blind}** pairs have turned less than a twentieth and have hardly noticed it; the ` +
        `slowest needs **${format(found.longest_wavelength)}** tokens for one turn.`
      : `Even the slowest pair, with **${format(found.longest_wavelength)}** tokens a turn, has moved.`;
    return [first, second, third];
  }

  return {
    plots: [{ key: "map", title: "Who tells which distance", height: 300 },
      { key: "stems", title: "What each pair says about your distance", height: 300 }],
    facts,
    words,
    problem: ropeParts.problem,
    draw: (settings, found) => ({ map: map(settings, found), stems: stems(settings, found) }),
  };
})();

export default toolkit.explorer({ WavelengthClock: wavelengthClock,
  RotationInvariance: rotationInvariance, PairsAndDistances: pairsAndDistances });
