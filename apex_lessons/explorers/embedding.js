// Lesson 01: the size of a token's vector by width, the first logits, the first loss.

const embeddingScale = (() => {
  const { format, percent, geometric, decades } = toolkit;
  const { initialSizes, initialStatistics, normalisedRms } = formulas.embedding;
  const LOW = 64;
  const HIGH = 8192;
  const WIDTHS = geometric(LOW, HIGH, 43).map(Math.round);
  const INITS = [
    { key: "small", name: "std 0.02", init: "fixed", init_std: 0.02, colour: 1,
      dash: 1 },
    { key: "one", name: "std 1", init: "fixed", init_std: 1, colour: 2, dash: 2 },
    { key: "root", name: "std 1/√d", init: "1/sqrt(d)", colour: 3, dash: 3 },
  ];
  const widthAxis =
    { label: "width d", symbol: "d", scale: "log", base: 2, low: LOW, high: HIGH };

  /** The widths that are drawn, with the one that is set among them. */
  const widthsWith = (d_model) => WIDTHS.includes(d_model) ? WIDTHS
    : [...WIDTHS, d_model].sort((a, b) => a - b);

  /** One of the sizes at every width, all else as set. */
  function byWidth(settings, name) {
    const at = { ...settings };
    const size = (d_model) => { at.d_model = d_model; return initialSizes(at)[name]; };
    const x = widthsWith(settings.d_model);
    return { x, y: x.map(size) };
  }

  function stream(settings, facts) {
    const { d_model, init, init_std, norm } = settings;
    const lines = INITS.map(({ key, name, colour, dash, ...start }) => ({
      kind: "line", key, name, end: name, colour, dash,
      ...byWidth({ ...settings, init_std: 1, ...start }, "stream_std") }));
    if (init === "fixed" && init_std !== 0.02 && init_std !== 1) {
      lines.push({ kind: "line", key: "yours", name: `std ${format(init_std)} (yours)`,
        end: "yours", colour: 4, dash: 4, width: 2.5,
        ...byWidth(settings, "stream_std") });
    }
    if (norm) {
      lines.push({ kind: "line", key: "norm", name: "yours, after the norm",
        end: "after norm", colour: "ink", dash: 6, width: 1.5,
        ...byWidth(settings, "hidden_std") });
    }
    const marks = [...lines];
    if (norm) {
      marks.push({ kind: "arrow", key: "normed", from: [d_model, facts.stream_std],
        to: [d_model, facts.hidden_std], colour: "ink", width: 1.5 });
    }
    marks.push({ kind: "dots", key: "now", x: [d_model], y: [facts.stream_std],
      colour: "ink", size: 6 });
    const [low, high] = decades(lines.flatMap((line) => line.y), 0.1, 100);
    return { x: widthAxis, at: d_model, marks,
      y: { label: "std of the stream, after the factor", scale: "log", low, high },
      alt: `Std of the stream against width for three initial tables. At width ` +
        `${format(d_model)} yours has ${format(facts.stream_std)}.` };
  }

  function logits(settings, facts) {
    const { d_model, tied } = settings;
    const marks = [];
    if (tied) {
      marks.push({ kind: "line", key: "own", name: "the token's own logit",
        end: "own token", colour: 2, dash: 1, width: 2.5,
        ...byWidth(settings, "own_token_logit") });
    }
    marks.push({ kind: "line", key: "others", name: "std of the other logits",
      end: "others (std)", colour: 1, dash: 2,
      ...byWidth(settings, "other_logit_std") },
    { kind: "line", key: "uniform", name: "ln V: above it the own token wins",
      end: "ln V", colour: "ink", dash: 4, x: WIDTHS,
      y: WIDTHS.map(() => facts.log_vocab) });
    const [low, high] = decades(marks.flatMap((line) => line.y), 0.1, 1000);
    if (tied) {
      marks.push({ kind: "dots", key: "now", x: [d_model], y: [facts.own_token_logit],
        colour: "ink", size: 6 });
    }
    marks.push({ kind: "dots", key: "now-others", x: [d_model],
      y: [facts.other_logit_std], colour: "ink", size: 5, marker: 2 });
    const ownLogit = format(facts.own_token_logit);
    const own = tied ? `the token's own logit is ${ownLogit}, ` : "";
    return { x: widthAxis, at: d_model, marks,
      y: { label: "logit", scale: "log", low, high },
      alt: `Size of the first logits against width. At width ${format(d_model)} ` +
        `${own}the others have std ${format(facts.other_logit_std)}.` };
  }

  function loss({ tied }, facts) {
    const rows = [
      { key: "even", y: 3, x: facts.log_vocab, colour: "ink", marker: 4, on: true },
      { key: "untied", y: 2, x: facts.loss_untied, colour: 1, marker: 2, on: !tied },
      { key: "tied", y: 1, x: facts.loss_tied, colour: 2, marker: 1, on: tied }];
    const [, high] = decades(rows.map((row) => row.x), 1, 100);
    const marks = [{ kind: "rule", key: "even", x: facts.log_vocab, dash: 4 },
      ...rows.flatMap(({ key, x, y, colour, marker, on }) => [
        { kind: "dots", key, x: [x], y: [y], colour, marker, size: on ? 6.5 : 5,
          hollow: !on },
        { kind: "text", key, x, y, dx: 14, dy: 4, text: format(x),
          colour: on ? "ink" : "faint" }])];
    return { marks,
      x: { label: "expected loss before training (nats)", scale: "log", low: 1,
        high: high * 3 },
      y: { label: "", low: 0.4, high: 3.6, ticks: [{ value: 3, text: "even guess" },
        { value: 2, text: "untied" }, { value: 1, text: "tied" }] },
      alt: `Expected first loss: tied ${format(facts.loss_tied)}, ` +
        `untied ${format(facts.loss_untied)}, ` +
        `an even guess ${format(facts.log_vocab)} nats.` };
  }

  function words(settings, facts) {
    const { d_model, norm, tied, vocab_size } = settings;
    const told = [`At width **${format(d_model)}** the table has std ` +
      `**${format(facts.init_std)}**. Times **${format(facts.factor)}** the stream ` +
      `has std **${format(facts.stream_std)}**` +
      (norm ? `, and the norm makes it **${format(facts.hidden_std)}**.` : ".")];
    told.push(tied
      ? `The token's own logit is **${format(facts.own_token_logit)}**, the others ` +
        `have std **${format(facts.other_logit_std)}**: untrained, the model gives ` +
        `the token that it has just read a probability of ` +
        `**${percent(facts.probability_own)}**.`
      : `With an output table of its own no token is special: all logits have std ` +
        `**${format(facts.other_logit_std)}**, and each of the ` +
        `${format(vocab_size)} tokens gets ` +
        `**${percent(facts.probability_own)}** on average.`);
    told.push(`The first loss, on another token, is about **${format(facts.loss)}** ` +
      `nats. An even guess costs ln V = **${format(facts.log_vocab)}**.`);
    if (norm && facts.factor !== 1) {
      const change = Math.abs(normalisedRms(facts.init_std) / facts.hidden_std - 1);
      told.push(`The norm undoes the factor: without it these logits would differ by ` +
        `**${percent(change)}**, all of it from the norm's epsilon.`);
    }
    return told;
  }

  return {
    plots: [{ key: "stream", title: "The stream after the look-up" },
      { key: "logits", title: "The first logits" },
      { key: "loss", title: "The first loss", height: 136, wide: true,
        margin: { left: 78, top: 8 } }],
    facts: initialStatistics,
    words,
    spoken: 3,
    draw: (settings, facts) => ({ stream: stream(settings, facts),
      logits: logits(settings, facts), loss: loss(settings, facts) }),
    enabled: ({ init, factor }) =>
      ({ init_std: init === "fixed", custom_factor: factor === "custom" }),
  };
})();

export default toolkit.explorer({ EmbeddingScale: embeddingScale });
