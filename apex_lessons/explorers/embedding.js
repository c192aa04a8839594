// Lesson 01: the size of a token's vector by width, and the first logits.

const embeddingScale = (() => {
  const { format, percent, geometric, decades } = toolkit;
  const { initialStatistics } = formulas.embedding;
  const LOW = 64;
  const HIGH = 8192;
  const WIDTHS = geometric(LOW, HIGH, 85);
  const INITS = [
    { key: "small", name: "std 0.02", init: "fixed", init_std: 0.02, colour: 1, dash: 1 },
    { key: "one", name: "std 1", init: "fixed", init_std: 1, colour: 2, dash: 2 },
    { key: "root", name: "std 1/√d", init: "1/sqrt(d)", colour: 3, dash: 3 },
  ];
  const widthAxis = { label: "width d", symbol: "d", scale: "log", base: 2, low: LOW, high: HIGH };

  /** Each fact at every width, all else as set. */
  function byWidth(settings, name) {
    return WIDTHS.map((d_model) => initialStatistics({ ...settings, d_model })[name]);
  }

  function stream(settings, facts) {
    const lines = INITS.map(({ key, name, init, init_std, colour, dash }) => ({ kind: "line", key,
      name, end: name, colour, dash, x: WIDTHS,
      y: byWidth({ ...settings, init, init_std: init_std ?? settings.init_std }, "stream_std") }));
    const own = settings.init === "fixed" && settings.init_std !== 0.02 && settings.init_std !== 1;
    if (own) {
      lines.push({ kind: "line", key: "own", name: `std ${format(settings.init_std)} (yours)`,
        end: "yours", colour: 4, dash: 4, x: WIDTHS, y: byWidth(settings, "stream_std") });
    }
    const [low, high] = decades([...lines.flatMap((line) => line.y), 0.1, 10]);
    const marks = [...lines,
      { kind: "rule", key: "one", y: 1, text: settings.norm ? "RMS 1: what the norm makes of each" : "1",
        side: "end" },
      { kind: "dots", key: "now", x: [settings.d_model], y: [facts.stream_std], colour: "ink", size: 6 }];
    return { x: widthAxis, at: settings.d_model, marks,
      y: { label: "std of the stream after the factor", scale: "log", low, high },
      alt: `Standard deviation of the stream against width, three inits; at d = ` +
        `${format(settings.d_model)} it is ${format(facts.stream_std)}.` };
  }

  function logits(settings, facts) {
    const uniform = WIDTHS.map(() => facts.log_vocab);
    const marks = [
      { kind: "line", key: "others", name: "std of the other logits", end: "others (std)",
        colour: 6, dash: 2, x: WIDTHS, y: byWidth(settings, "other_logit_std") },
      { kind: "line", key: "uniform", name: "ln V", end: "ln V", colour: "ink", dash: 4, x: WIDTHS,
        y: uniform }];
    if (settings.tied) {
      marks.unshift({ kind: "line", key: "own", name: "the token's own logit", end: "own token",
        colour: 2, dash: 1, width: 2.5, x: WIDTHS, y: byWidth(settings, "own_token_logit") });
      marks.push({ kind: "dots", key: "now", x: [settings.d_model], y: [facts.own_token_logit],
        colour: "ink", size: 6 });
    }
    marks.push({ kind: "dots", key: "now-others", x: [settings.d_model], y: [facts.other_logit_std],
      colour: "ink", size: 5, marker: 2 });
    const [low, high] = decades(marks.filter((m) => m.kind === "line").flatMap((m) => m.y), 0.1, 100);
    return { x: widthAxis, at: settings.d_model, marks,
      y: { label: "logit", scale: "log", low, high },
      alt: `First logits against width; at d = ${format(settings.d_model)} the token's own logit is ` +
        `${format(facts.own_token_logit)}, the others have std ${format(facts.other_logit_std)}.` };
  }

  function words(settings, facts) {
    const d = format(settings.d_model);
    const first = `At width **${d}** the table has std **${format(facts.init_std)}**; times ` +
      `**${format(facts.factor)}** the stream has std **${format(facts.stream_std)}**.`;
    const second = settings.tied
      ? `The token's own logit is **${format(facts.own_token_logit)}**, the others have std ` +
        `**${format(facts.other_logit_std)}**: the model gives the token it has just read ` +
        `probability **${percent(facts.probability_own)}**.`
      : `Untied, no logit is special: all have std **${format(facts.other_logit_std)}**.`;
    const loss = settings.tied ? facts.loss_tied : facts.loss_untied;
    const third = `Expected first loss on another token: **${format(loss)}**; guessing evenly costs ` +
      `ln V = **${format(facts.log_vocab)}**.`;
    return [first, second, third];
  }

  return {
    plots: [{ key: "stream", title: "The stream after the look-up" },
      { key: "logits", title: "The first logits" }],
    facts: initialStatistics,
    words,
    draw: (settings, facts) => ({ stream: stream(settings, facts), logits: logits(settings, facts) }),
    enabled: ({ init, factor }) => ({ init_std: init === "fixed", custom_factor: factor === "custom" }),
  };
})();

export default toolkit.explorer({ EmbeddingScale: embeddingScale });
