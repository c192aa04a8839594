// Lesson 05: what was measured past the trained length, and one text read by a kernel.

const lesson05 = (() => {
  const METHODS = /* methods */ null;  // [[name, title, short title]]
  const TRAINED = 512;
  const BIN = 128;                     // bytes of a position bin
  const DISTANCES = [1, 8, 32, 128, 256, 512, 1024, 2048, 4096];
  const GUESS = 1 / 8;                 // a fact has one of eight values
  const TITLES = Object.fromEntries(METHODS.map(([name, title]) => [name, title]));
  const SHORT = Object.fromEntries(METHODS.map(([name, , short]) => [name, short]));

  /** Each method keeps its colour, dash and marker in every picture. */
  const LOOKS = {
    none: { colour: "ink", dash: 1, width: 1.75, marker: 1 },
    position_interpolation: { colour: 2, dash: 2, width: 2, marker: 2 },
    ntk_aware: { colour: 5, dash: 3, width: 2, marker: 3 },
    dynamic_ntk: { colour: 6, dash: 4, width: 2, marker: 5, hollow: true },
    ntk_by_parts: { colour: 6, dash: 5, width: 2, marker: 4, hollow: true },
    ntk_by_parts_rotations: { colour: 4, dash: 6, width: 2.5, marker: 6, hollow: true },
    yarn: { colour: 1, dash: 1, width: 2.5, marker: 4 },
    yarn_rotations: { colour: 3, dash: 2, width: 2.5, marker: 6 },
    llama3: { colour: 3, dash: 6, width: 2, marker: 1, hollow: true },
    apex1: { colour: 4, dash: 3, width: 2.5, marker: 5 },
    apex1_scores: { colour: 4, dash: 4, width: 2.5, marker: 3, hollow: true },
  };
  const COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
  const counted = (n, what) => `${COUNTS[n] ?? n} ${what}${n === 1 ? "" : "s"}`;

  const sum = (values) => values.reduce((total, one) => total + one, 0);
  const mean = (values) => sum(values) / values.length;

  /** "a, b and c" */
  const joined = (parts, word = "and") => parts.length < 2 ? parts.join("")
    : `${parts.slice(0, -1).join(", ")} ${word} ${parts[parts.length - 1]}`;

  const capital = (text) => text[0].toUpperCase() + text.slice(1);

  /** Whole ticks for positions, and the byte where training ended. */
  function positionAxis(length) {
    const step = Math.max(128, length / 4);
    const ticks = [];
    for (let at = 0; at <= length; at += step) {
      const value = Math.round(at / 64) * 64;
      ticks.push({ value, text: toolkit.format(value) });
    }
    return { label: "position in the text", unit: "bytes", symbol: "position", low: 0,
      high: length, ticks };
  }

  const distanceAxis = (length) => ({ label: "bytes back to the answer's fact",
    symbol: "distance", unit: "bytes", scale: "log", base: 2, low: 1, high: length,
    ticks: [1, 8, 64, TRAINED, 4096].filter((edge) => edge <= length)
      .map((value) => ({ value, text: toolkit.format(value) })) });

  /** A range with some air around the values, and not too small a one. */
  function airy(values, least) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const air = Math.max(0.07 * (high - low), least);
    return { low: Math.max(0, low - air), high: high + air };
  }

  const trainedRule = { kind: "rule", key: "trained", x: TRAINED, dash: 2,
    text: "trained length" };

  return Object.freeze({ METHODS, TRAINED, BIN, DISTANCES, GUESS, TITLES, SHORT, LOOKS,
    COUNTS, counted, sum, mean, joined, capital, positionAxis, distanceAxis,
    airy, trainedRule });
})();

const stored = (() => {
  const { format, percent } = toolkit;
  const { METHODS, TRAINED, BIN, DISTANCES, GUESS, TITLES, SHORT, LOOKS, COUNTS,
    counted, sum, mean, joined, capital, positionAxis, distanceAxis, airy,
    trainedRule } = lesson05;
  const TABLE = /* results */ null;
  const WHOLE = 10000;                 // of a nat: losses and entropies of whole texts
  const PART = 1000;                   // of a nat: losses of position bins
  const PLAIN = ["none", "dynamic_ntk"];
  const NEAR = 1.25;                   // zoomed in: up to so many times the least value
  const HOW = { matched: "zero-shot", tuned: "after fine-tuning",
    "static 4": "zero-shot with factor 4", "static 8": "zero-shot with factor 8" };

  const SCALINGS = { matched: "zero-shot, factor by length",
    tuned: "after a short fine-tuning", "static 4": "zero-shot, factor 4, short text",
    "static 8": "zero-shot, factor 8, short text" };

  // --- what is asked for, where some settings leave no choice

  function asked({ view, text, scaling, length }) {
    const how = view === "factor" ? "static 8" : scaling;
    return { text: view === "distance" ? "recall" : text, scaling: how,
      length: how.startsWith("static") ? TRAINED : length };
  }

  /** One method's numbers, a list a seed; undefined where nothing was measured. */
  function row(method, { text, scaling, length }) {
    const isPlain = scaling.startsWith("static") && PLAIN.includes(method);
    const how = isPlain ? "matched" : scaling;
    const name = how === "matched" && length === TRAINED ? "none" : method;
    return TABLE.rows[`${text}/${how}/${length}/${name}`];
  }

  const chosen = (settings) =>
    METHODS.map(([name]) => name).filter((name) => settings[name]);

  const drawn = (settings) =>
    chosen(settings).filter((name) => row(name, asked(settings)));

  function problem(settings) {
    if (!chosen(settings).length) return "No method is chosen: tick one or more.";
    if (drawn(settings).length) return null;
    const { length } = asked(settings);
    return `Read ${SCALINGS[settings.scaling]}, these methods were not measured at ` +
      `${format(length)} bytes: choose another length or other methods.`;
  }

  // --- numbers

  const kept = ({ seed }, seeds) =>
    seed === "mean" ? seeds : [seeds[TABLE.seeds.indexOf(Number(seed))]];

  /** Each seed's whole number for the texts as a whole: right answers, or steps. */
  function steps({ view }, seeds) {
    if (view === "distance") return seeds.map((one) => sum(one[3]));
    return seeds.map((one) => one[view === "entropy" ? 1 : 0]);
  }

  /** Each seed's value for the texts as a whole, in the view's own quantity. */
  function whole(settings, seeds) {
    const per = settings.view === "distance"
      ? sum(TABLE.answers[asked(settings).length]) : WHOLE;
    return steps(settings, kept(settings, seeds)).map((value) => value / per);
  }

  /** The bins of distances that have answers: [[number, count]]. */
  const distanceBins = (length) => TABLE.answers[length]
    .map((count, k) => [k, count]).filter(([, count]) => count);

  const VALUES = {
    position(settings, method) {
      const seeds = kept(settings, row(method, asked(settings)));
      return seeds[0][2].map((_, k) =>
        ({ x: BIN * (k + 0.5), values: seeds.map((one) => one[2][k] / PART) }));
    },
    distance(settings, method) {
      const seeds = kept(settings, row(method, asked(settings)));
      return distanceBins(asked(settings).length).map(([k, count]) => ({
        x: Math.sqrt(DISTANCES[k] * DISTANCES[k + 1]),
        values: seeds.map((one) => one[3][k] / count) }));
    },
    length(settings, method) {
      return TABLE.lengths.map((length) =>
        ({ x: length, seeds: row(method, { ...asked(settings), length }) }))
        .filter(({ seeds }) => seeds)
        .map(({ x, seeds }) => ({ x, values: whole(settings, seeds) }));
    },
    factor(settings, method) {
      const { text } = settings;
      const places = [[1, "matched"], [4, "static 4"], [8, "static 8"]];
      return places.map(([x, scaling]) =>
        ({ x, seeds: row(method, { text, scaling, length: TRAINED }) }))
        .filter(({ seeds }) => seeds)
        .map(({ x, seeds }) => ({ x, values: whole(settings, seeds) }));
    },
  };
  VALUES.entropy = VALUES.length;

  /** Which point `at` reads, and the first and the last byte of its bin. */
  function binAt(settings) {
    const { length } = asked(settings);
    const place = Math.min(settings.at, length - 1);
    if (settings.view === "position") {
      const point = Math.floor(place / BIN);
      return { point, from: point * BIN, to: point * BIN + BIN - 1 };
    }
    const bins = distanceBins(length).filter(([k]) => DISTANCES[k] <= place);
    const [k] = bins[bins.length - 1];
    return { point: bins.length - 1, from: DISTANCES[k], to: DISTANCES[k + 1] - 1 };
  }

  const hasBins = ({ view }) => view === "position" || view === "distance";

  const sign = ({ view }) => view === "distance" ? -1 : 1;

  const stepsOf = (settings, name) =>
    steps(settings, kept(settings, row(name, asked(settings))));

  /** Methods from the best to the worst; entropies from the least. */
  function ranked(settings) {
    const order = (name) => sign(settings) * sum(stepsOf(settings, name));
    return drawn(settings).sort((a, b) => order(a) - order(b));
  }

  /** The methods that set how far the axes reach. */
  function near(settings, found) {
    const names = ranked(settings);
    if (!settings.zoom || settings.view === "distance") return names;
    return names.filter((name) => found[name] <= NEAR * found[names[0]]);
  }

  /** With how many seeds the first of the methods is ahead of the second. */
  function ahead(settings) {
    const [first, second] = ranked(settings).map((name) => stepsOf(settings, name));
    return first.filter((value, k) => sign(settings) * (value - second[k]) < 0).length;
  }

  function facts(settings) {
    const names = drawn(settings);
    const found = { trained_length: TRAINED, length: asked(settings).length,
      seeds: settings.seed === "mean" ? TABLE.seeds.length : 1, drawn: names.length,
      missing: chosen(settings).length - names.length };
    const bin = hasBins(settings) ? binAt(settings) : null;
    if (bin) Object.assign(found, { from: bin.from, to: bin.to });
    for (const name of names) {
      const values = whole(settings, row(name, asked(settings)));
      found[name] = mean(values);
      found[`${name}_least`] = Math.min(...values);
      found[`${name}_most`] = Math.max(...values);
      if (!bin) continue;
      const { values: there } = VALUES[settings.view](settings, name)[bin.point];
      found[`${name}_there`] = mean(there);
    }
    if (names.length > 1) found.ahead = ahead(settings);
    if (settings.view !== "distance") {
      const plain = { text: settings.text, scaling: "matched", length: TRAINED };
      found.plain = mean(whole(settings, row("none", plain)));
    }
    return found;
  }

  // --- words

  const number = ({ view }, value) => view === "distance" ? percent(value)
    : value.toFixed(3);

  /** "2.071 (from 2.051 to 2.083)" */
  function withRange(settings, found, name) {
    const told = (part) => number(settings, found[name + part]);
    if (found.seeds === 1) return `**${told("")}**`;
    return `**${told("")}** (from ${told("_least")} to ${told("_most")})`;
  }

  const VERBS = {
    position: ["loses least", "nats a byte"], length: ["loses least", "nats a byte"],
    factor: ["loses least", "nats a byte"], entropy: ["attends most narrowly", "nats"],
    distance: ["finds most", "of the answers"],
  };

  function place(settings, found) {
    const { scaling, text } = asked(settings);
    const times = found.length / TRAINED;
    const what = text === "recall" ? "Recall texts" : "Texts of Python's library";
    const long = times === 1 ? "" : `${times} times `;
    return `${what} of **${format(found.length)}** bytes, ${long}the trained length, ` +
      `read ${HOW[scaling]}`;
  }

  /** Of many methods only the first two, the last, and "none". */
  const few = (names) => names.filter((name, k) =>
    names.length <= 4 || k < 2 || k === names.length - 1 || name === "none");

  function headline(settings, found) {
    const [best, ...others] = few(ranked(settings));
    const [verb, unit] = VERBS[settings.view];
    const of = settings.seed === "mean" ? `the mean of ${counted(found.seeds, "seed")}`
      : `seed ${settings.seed} alone`;
    const start = `${place(settings, found)}: **${TITLES[best]}**`;
    const more = found.drawn > others.length + 1 ? "; the others lie in between" : "";
    const first = `${withRange(settings, found, best)} ${unit}, ${of}`;
    if (!others.length) return `${start} has ${first}.`;
    const rest = joined(others.map((name) =>
      `${TITLES[name]} ${withRange(settings, found, name)}`));
    return `${start} ${verb}, ${first}; ${rest}${more}.`;
  }

  /** Whether the seeds tell the first from the second: each seed read with both. */
  function certainty(settings, found) {
    if (found.ahead === undefined || found.seeds < 2) return [];
    const [best, next] = ranked(settings).map((name) => TITLES[name]);
    const start = `${capital(best)} `;
    const over = settings.view === "entropy" ? "lies below" : "is ahead of";
    const all = `each of the ${counted(found.seeds, "seed")}`;
    if (found.ahead === found.seeds) return [`${start}${over} ${next} with ${all}.`];
    return [`${start}${over} ${next} with ${COUNTS[found.ahead]} of the ` +
      `${counted(found.seeds, "seed")} only: too close to call.`];
  }

  function there(settings, found) {
    if (!hasBins(settings)) return [];
    const bytes = `${format(found.from)} to ${format(found.to)}`;
    const where = settings.view === "position" ? `In bytes ${bytes} of the text`
      : `Where the fact lies ${bytes} bytes back`;
    const parts = few(ranked(settings)).map((name) =>
      `${TITLES[name]} **${number(settings, found[`${name}_there`])}**`);
    return [`${where}: ${joined(parts)}.`];
  }

  function remarks(settings, found) {
    const { scaling, length } = asked(settings);
    const told = [];
    const missing = chosen(settings).filter((name) => !drawn(settings).includes(name));
    if (missing.length) {
      told.push(`Not measured ${HOW[scaling]}, and so not drawn: ` +
        `${joined(missing.map((name) => TITLES[name]))}.`);
    }
    const far = drawn(settings).filter((name) => !near(settings, found).includes(name));
    if (far.length) {
      told.push(`Beyond the zoomed picture: ${joined(far.map((name) =>
        `${TITLES[name]} (**${number(settings, found[name])}**)`))}.`);
    }
    if (scaling === "matched" && length === TRAINED && found.drawn > 1) {
      told.push("At the trained length the factor is 1: every method is plain RoPE.");
    } else if (settings.view === "distance") {
      told.push(`A guess is right in **${percent(GUESS)}** of all cases.`);
    } else {
      told.push(`At the trained length and without scaling the same models ` +
        `${settings.view === "entropy" ? "have" : "lose"} ` +
        `**${number(settings, found.plain)}** ${VERBS[settings.view][1]}.`);
    }
    return told;
  }

  const words = (settings, found) => [headline(settings, found),
    ...certainty(settings, found), ...there(settings, found),
    ...remarks(settings, found)];

  // --- pictures

  /** Line, markers and band of one method. */
  function marksOf(settings, name) {
    const points = VALUES[settings.view](settings, name);
    const { marker, hollow, ...look } = LOOKS[name];
    const { times = 1 } = HEIGHTS[settings.view];
    const x = points.map((point) => point.x);
    const y = points.map((point) => times * mean(point.values));
    const every = Math.max(1, Math.floor(x.length / 8));
    const some = (list) => list.filter((_, k) => k % every === 0);
    const marks = [
      { kind: "line", key: name, name: TITLES[name], end: SHORT[name], ...look, x, y },
      { kind: "dots", key: `${name}, marked`, x: some(x), y: some(y), marker, hollow,
        colour: look.colour, size: 3.5 }];
    if (points[0].values.length > 1) {
      marks.unshift({ kind: "area", key: `${name}, least to most`, x,
        colour: look.colour,
        y: points.map((point) => times * Math.max(...point.values)),
        y0: points.map((point) => times * Math.min(...point.values)) });
    }
    return marks;
  }

  const lengthAxis = () => ({ label: "length of the text", unit: "bytes",
    symbol: "length", scale: "log", base: 2, low: 0.93 * TRAINED,
    high: 1.07 * TABLE.lengths[TABLE.lengths.length - 1],
    ticks: TABLE.lengths.map((value) => ({ value, text: format(value) })) });

  const AXES = {
    position: ({ length }) => positionAxis(length),
    distance: ({ length }) => distanceAxis(length),
    length: lengthAxis,
    entropy: lengthAxis,
    factor: () => ({ label: "factor set beforehand, for text of the trained length",
      symbol: "factor", scale: "log", base: 2, low: 0.95, high: 8.4,
      ticks: [1, 4, 8].map((value) => ({ value, text: String(value) })) }),
  };
  const HEIGHTS = {
    position: { label: "loss", unit: "nats a byte" },
    distance: { label: "answers right", unit: "%", low: 0, high: 100, times: 100 },
    length: { label: "loss", unit: "nats a byte" },
    entropy: { label: "attention entropy, mean over heads", unit: "nats" },
    factor: { label: "loss", unit: "nats a byte" },
  };

  /** Where the curves are read: the bin of `at`, or the length that was chosen. */
  function reading(settings, found) {
    if (hasBins(settings)) {
      return { kind: "band", key: "bin", x: [found.from, found.to + 1] };
    }
    const x = settings.view === "factor" ? 8 : found.length;
    return { kind: "rule", key: "here", x, colour: "faint", dash: 4 };
  }

  function curves(settings, found) {
    const lines = drawn(settings).flatMap((name) => marksOf(settings, name));
    const close = near(settings, found);
    const values = lines.filter((mark) => close.includes(mark.key.split(",")[0]))
      .flatMap((mark) => [...mark.y, ...(mark.y0 ?? [])]);
    const height = HEIGHTS[settings.view];
    const extra = [reading(settings, found)];
    if (hasBins(settings)) extra.push(trainedRule);
    if (settings.view === "distance") {
      extra.push({ kind: "rule", key: "guess", y: 100 * GUESS, dash: 4, side: "end",
        text: "guessing" });
    }
    const best = ranked(settings)[0];
    const points = VALUES[settings.view](settings, best);
    const at = hasBins(settings) ? points[binAt(settings).point].x : extra[0].x;
    return { x: AXES[settings.view](asked(settings)), at, marks: [...extra, ...lines],
      y: { ...airy(values, 0.01), ...height },
      alt: `${place(settings, found)}: ${height.label} of ${counted(found.drawn,
        "method")}. ${TITLES[best]} ${VERBS[settings.view][0]}: ` +
        `${number(settings, found[best])}.` };
  }

  /** The texts as a whole: a row a method, a dot a seed, the range and the mean. */
  function ranking(settings, found) {
    const names = ranked(settings);
    const close = near(settings, found);
    const { label, unit, times = 1 } = HEIGHTS[settings.view];
    const ends = close.flatMap((name) =>
      [times * found[`${name}_least`], times * found[`${name}_most`]]);
    const { low, high: reach } = airy(ends, 0.01);
    const high = reach + 0.2 * (reach - low);
    const marks = names.flatMap((name, k) => {
      const y = names.length - k;
      if (!close.includes(name)) {
        return [{ kind: "text", key: name, x: high, y, dy: 4, anchor: "end",
          text: `${number(settings, found[name])} →` }];
      }
      const { colour, marker, hollow } = LOOKS[name];
      const values = whole(settings, row(name, asked(settings)));
      const several = values.length > 1;
      return [
        ...several ? [{ kind: "line", key: `${name}, range`, colour, width: 1.5,
          x: [times * found[`${name}_least`], times * found[`${name}_most`]],
          y: [y, y] },
        { kind: "dots", key: `${name}, seeds`, x: values.map((value) => times * value),
          y: values.map(() => y), colour: "faint", size: 3 }] : [],
        { kind: "dots", key: name, x: [times * found[name]], y: [y], colour, marker,
          hollow, size: 5 },
        { kind: "text", key: name, x: times * found[`${name}_most`], y, dx: 10, dy: 4,
          text: number(settings, found[name]) }];
    });
    return { marks,
      x: { label: `${label}, whole texts`, unit, low, high },
      y: { label: "", low: 0.4, high: names.length + 0.6, ticks: names.map((name, k) =>
        ({ value: names.length - k, text: SHORT[name] })) },
      alt: `${label} over whole texts, in this order: ` +
        `${joined(names.map((name) => `${TITLES[name]} ` +
          `${number(settings, found[name])}`))}.` };
  }

  return {
    plots: [{ key: "curves", title: "The curves of the methods", height: 340,
      wide: true, margin: { right: 24 } },
    { key: "ranking", title: "The texts as a whole: each seed in grey, and the mean",
      height: 250, wide: true, margin: { left: 138, top: 10, right: 24 } }],
    facts,
    words,
    problem,
    spoken: 3,
    draw: (settings, found) => ({ curves: curves(settings, found),
      ranking: ranking(settings, found) }),
    enabled: (settings) => ({ at: hasBins(settings), text: settings.view !== "distance",
      scaling: settings.view !== "factor", zoom: settings.view !== "distance",
      length: !asked(settings).scaling.startsWith("static") }),
    shown: (settings) => asked(settings),
  };
})();

const live = (() => {
  const { format, percent } = toolkit;
  const { TRAINED, BIN, TITLES, SHORT, LOOKS, positionAxis, distanceAxis, airy,
    trainedRule } = lesson05;
  const HELLO = 3000;                  // milliseconds in which a kernel should answer
  const PATIENCE = 20000;              // milliseconds that reading a long text may take
  const PLAIN = ["none", "dynamic_ntk"];

  // --- is there a kernel?

  /** Asks the kernel now and after each move; no answer in time: `_silent`. */
  function begin(model) {
    let waiting = 0;
    let patience = HELLO;
    const ask = () => {
      clearTimeout(waiting);
      model.set("_asked", model.get("_answered") + 1);
      waiting = setTimeout(() => model.set("_silent", true), patience);
    };
    const moved = () => { if (!model.get("_silent")) ask(); };
    const answered = () => {
      if (model.get("_answered") < model.get("_asked")) return;
      clearTimeout(waiting);
      patience = PATIENCE;
      model.set("_silent", false);
    };
    const names = ["method", "length", "follow", "factor", "seed", "draw"];
    for (const name of names) model.on(`change:${name}`, moved);
    model.on("change:_answered", answered);
    model.set("_silent", false);
    ask();
    model.save_changes();
    return () => {
      clearTimeout(waiting);
      for (const name of names) model.off(`change:${name}`, moved);
      model.off("change:_answered", answered);
    };
  }

  /** Whether what was read was read at these settings. */
  const isRead = ({ _result: read, ...settings }) =>
    Object.entries(read.settings).every(([name, value]) => settings[name] === value);

  function busy(settings) {
    if (isRead(settings) || settings._silent) return "";
    const { seconds, settings: last } = settings._result;
    const known = seconds ? `; ${format(last.length)} took ${format(seconds)} s` : "";
    return `Reading ${format(settings.length)} bytes …${known}`;
  }

  // --- numbers

  function facts({ _result: read }) {
    const far = read.right.filter((_, k) => read.distances[k] > TRAINED);
    const found = { length: read.settings.length, factor: read.factor, loss: read.loss,
      plain_loss: read.plain_loss, answers: read.right.length,
      right: read.right.filter(Boolean).length, far: far.length,
      far_right: far.filter(Boolean).length };
    return read.stored === undefined ? found : { ...found, stored: read.stored };
  }

  const problem = (settings) =>
    isRead(settings) ? settings._result.problem ?? null : null;

  // --- words

  function words(settings, found) {
    const { _result: read } = settings;
    const { method, seed, draw } = read.settings;
    const by = method === "none" ? "without scaling"
      : `with ${TITLES[method]} at factor **${format(found.factor)}**`;
    const against = method === "none" || found.factor === 1 ? ""
      : `; without scaling it loses **${found.plain_loss.toFixed(3)}**`;
    const told = [`Text ${draw} of **${format(found.length)}** bytes, read by seed ` +
      `${seed} ${by}, loses **${found.loss.toFixed(3)}** nats a byte${against}.`];
    const share = found.answers ? ` (${percent(found.right / found.answers)})` : "";
    const far = found.far ? `; of those whose fact lies more than ${TRAINED} bytes ` +
      `back **${found.far_right}** of **${found.far}**` : "";
    told.push(`**${found.right}** of its **${found.answers}** answers are right` +
      `${share}${far}. A guess is right once in eight.`);
    if (found.stored !== undefined) {
      told.push("One text is a small sample: over all texts of this length that were " +
        `measured, this model's mean is **${found.stored.toFixed(3)}**.`);
    }
    if (settings._silent) {
      told.push("**This explorer needs a kernel, and none has answered**: the page " +
        "runs without one, or it is busy with another cell. The picture shows what " +
        "was read last.");
    } else if (isRead(settings)) {
      told.push(`Read twice, with the method and without, in ` +
        `**${format(read.seconds)}** seconds.`);
    }
    return told;
  }

  // --- pictures

  const middles = (means) => means.map((_, k) => BIN * (k + 0.5));

  function losses({ _result: read }, found) {
    const { method, length } = read.settings;
    const { marker, hollow, ...look } = LOOKS[method];
    const [x, y] = [middles(read.by_position), read.by_position];
    const marks = [{ kind: "line", key: "plain", name: "without scaling",
      end: "no scaling", colour: "ink", dash: 4, width: 1.5, x,
      y: read.plain_by_position }];
    if (method !== "none") {
      marks.push({ kind: "line", key: "method", name: TITLES[method],
        end: SHORT[method], ...look, dash: 1, x, y });
      marks.push({ kind: "dots", key: "points", x, y, marker, hollow, size: 4,
        colour: look.colour });
    }
    const { low, high } = airy([...y, ...read.plain_by_position], 0.05);
    return { x: positionAxis(length), at: x[x.length - 1],
      marks: [trainedRule, ...marks],
      y: { label: "loss", unit: "nats a byte", low, high },
      alt: `Loss by position of one text of ${format(length)} bytes: ` +
        `${found.loss.toFixed(3)} with ${TITLES[method]}, ` +
        `${found.plain_loss.toFixed(3)} without scaling.` };
  }

  function answers({ _result: read }, found) {
    const { length } = read.settings;
    const some = (wanted) => {
      const places = read.right.flatMap((right, k) => right === wanted ? [k] : []);
      return { x: places.map((k) => read.distances[k]),
        y: places.map((k) => read.positions[k]) };
    };
    const marks = [trainedRule,
      { kind: "dots", key: "found", name: `right (${found.right})`, colour: 1,
        marker: 1, size: 3.5, ...some(1) },
      { kind: "dots", key: "missed", name: `wrong (${found.answers - found.right})`,
        colour: 2, marker: 3, size: 4.5, hollow: true, ...some(0) }];
    return { x: distanceAxis(length), marks,
      y: { ...positionAxis(length), label: "position of the answer",
        high: 1.09 * length },
      alt: `Each answer by the distance of its fact and its own position: ` +
        `${found.right} of ${found.answers} are right.` };
  }

  return {
    plots: [{ key: "losses", title: "Loss by position of this text", height: 310,
      margin: { right: 24 } },
      { key: "answers", title: "Each answer: how far back its fact lies",
        height: 310, margin: { right: 24 } }],
    facts,
    words,
    problem,
    busy,
    begin,
    drawn: ({ _result: read }) => read.settings,
    results: ["_result", "_asked", "_answered", "_silent"],
    draw: (settings, found) => ({ losses: losses(settings, found),
      answers: answers(settings, found) }),
    enabled: ({ method, follow }) => ({ factor: !follow && !PLAIN.includes(method),
      follow: !PLAIN.includes(method) }),
    shown: ({ method, follow, length }) => ({
      follow: follow || PLAIN.includes(method),
      ...method === "none" ? { factor: 1 }
        : follow || PLAIN.includes(method) ? { factor: length / TRAINED } : {} }),
  };
})();

export default toolkit.explorer({ ExtrapolationExplorer: stored,
  LiveExtrapolation: live });
