// The formulas of all lessons, as the page computes them: plain functions of plain
// numbers. Each has the name of its Python counterpart, in camel case; what Python
// takes as keyword arguments comes as one object with Python's names. Vectors are
// arrays. Bad input throws an Error in words, which an explorer shows. Tests hold these
// to Python's functions at 1e-12.

const formulas = (() => {
  const range = (count) => Array.from({ length: count }, (_, i) => i);
  const refuse = (text) => { throw new RangeError(text); };

  // --- embedding: the first numbers of an untrained model ----------------------------

  const NORM_EPS = 1e-6;
  const EULER_GAMMA = 0.5772156649015329;

  /** Standard deviation of the table's entries. */
  const initialStd = ({ d_model, init, init_std }) =>
    init === "1/sqrt(d)" ? 1 / Math.sqrt(d_model) : init_std;

  /** The number a row is multiplied by after the look-up. */
  const embeddingFactor = ({ d_model, factor, custom_factor }) =>
    factor === "sqrt(d)" ? Math.sqrt(d_model) : factor === "none" ? 1 : custom_factor;

  /** RMS after RMSNorm: rms / sqrt(rms^2 + eps). */
  const normalisedRms = (rms, eps = NORM_EPS) => rms / Math.sqrt(rms * rms + eps);

  const HALVES = range(14).map((k) => [(k / 2) ** 2, Math.exp(-((k / 2) ** 2))]);

  /** 1 - erf(x), to the last digits: a series near 0, else a trapezoid sum and pole. */
  function erfc(x) {
    if (x < 0) return 2 - erfc(-x);
    if (x < 1) {
      let term = 2 * x * Math.exp(-x * x) / Math.sqrt(Math.PI);
      let erf = term;
      for (let n = 1; n < 28; n++) { term *= 2 * x * x / (2 * n + 1); erf += term; }
      return 1 - erf;
    }
    let total = 0.5 / (x * x);
    for (let k = 1; k < 14; k++) total += HALVES[k][1] / (x * x + HALVES[k][0]);
    const pole = x < 2 * Math.PI ? 2 / Math.expm1(4 * Math.PI * x) : 0;
    return x * Math.exp(-x * x) * total / Math.PI - pole;
  }

  const GRID = 0.3;
  const SMALL = range(53).map((k) => -8.5 + 0.35 * k);
  const SMALL_WEIGHTS =
    SMALL.map((g) => 0.35 * Math.exp(-g * g / 2) / Math.sqrt(2 * Math.PI));
  const LARGE = range(148).map((k) => -40 + GRID * k);
  const LARGE_WEIGHTS = LARGE.map((x) => GRID * Math.exp(x - Math.exp(x)) / 2);

  /** P(v g + Gumbel number > t) for one standard normal g: 1 - E[exp(-e^(v g - t))]. */
  function exceeds(t, spread) {
    let share = 0;
    if (spread <= 1) {
      for (let i = 0; i < SMALL.length; i++) {
        share -= SMALL_WEIGHTS[i] * Math.expm1(-Math.exp(spread * SMALL[i] - t));
      }
    } else {
      for (let i = 0; i < LARGE.length; i++) {
        const x = (t + LARGE[i]) / (spread * Math.SQRT2);
        if (x > 12) break;               // erfc is below 1e-64 from here on
        share += LARGE_WEIGHTS[i] * erfc(x);
      }
    }
    return Math.min(share, 1);
  }

  /** E[ln(e^own + sum of e^(spread g_j))] over `count` normals g_j; e^own's share. */
  function expectedLogSum(spread, count, own = -Infinity) {
    const alone = own === -Infinity;
    const width = Math.sqrt(2 * Math.log(count));
    const step = GRID * (alone ? Math.max(1, spread / width) : 1);
    const start =
      Math.max(own, Math.log(count) + Math.min(spread * spread / 2, spread * width));
    // counted from the start, since a large t would swallow the digits of own - t
    const weight = (u) => Math.exp(own - start - u);
    const hazard = (u) => weight(u) - count * Math.log1p(-exceeds(start + u, spread));
    let below = 0;
    let share = 0;
    for (let k = 1; k < 400; k++) {
      const rate = hazard(-k * step);
      below += Math.exp(-rate);
      if (!alone) share += weight(-k * step) * Math.exp(-rate);
      if (rate > 45) break;
    }
    let above = 0;
    for (let k = 0; k < 400; k++) {
      const rate = hazard(k * step);
      above -= Math.expm1(-rate);
      if (!alone) share += weight(k * step) * Math.exp(-rate);
      if (rate < 1e-17) break;
    }
    const mean = start + step * (above - below - 0.5) - EULER_GAMMA;
    return { mean, share: alone ? 0 : Math.min(1, step * share) };
  }

  /** Sizes of stream and logits of an untrained model whose blocks add nothing. */
  function initialSizes(settings) {
    const { d_model, logit_factor, norm, tied } = settings;
    const init_std = initialStd(settings);
    const factor = embeddingFactor(settings);
    const stream_std = factor * init_std;
    const hidden_std = norm ? normalisedRms(stream_std) : stream_std;
    const divided = logit_factor === "1/sqrt(d)" ? 1 / Math.sqrt(d_model) : 1;
    return { init_std, factor, stream_std, hidden_std,
      own_token_logit: tied ? hidden_std * init_std * d_model * divided : 0,
      other_logit_std: hidden_std * init_std * Math.sqrt(d_model) * divided };
  }

  /** The sizes, and the loss that a target which is not the token itself costs. */
  function initialStatistics(settings) {
    const { d_model, vocab_size, tied } = settings;
    const sizes = initialSizes(settings);
    const spread = sizes.other_logit_std;
    const echo = expectedLogSum(spread, vocab_size - 1, spread * Math.sqrt(d_model));
    const blind = expectedLogSum(spread, vocab_size).mean;
    return { ...sizes, log_vocab: Math.log(vocab_size), loss: tied ? echo.mean : blind,
      loss_tied: echo.mean, loss_untied: blind,
      probability_own: tied ? echo.share : 1 / vocab_size,
      table_parameters: d_model * vocab_size * (tied ? 1 : 2) };
  }

  // --- norm: small vectors -----------------------------------------------------------

  const sum = (x) => x.reduce((total, value) => total + value, 0);
  const mean = (x) => sum(x) / x.length;

  /** sqrt(mean(x^2)); scaled by the largest entry, so that squares stay finite. */
  function rootMeanSquare(x) {
    const size = Math.max(...x.map(Math.abs)) || 1;
    return size * Math.sqrt(mean(x.map((value) => (value / size) ** 2)));
  }

  /** x / sqrt(mean(x^2) + eps) * (weight + weight_offset). */
  function rmsNorm(x, { weight = null, eps = 1e-6, weight_offset = 0 } = {}) {
    const root = Math.hypot(rootMeanSquare(x), Math.sqrt(eps));
    return x.map((value, i) => value / root * (weight ? weight[i] + weight_offset : 1));
  }

  /** (x - mean) / sqrt(variance + eps) * weight + bias. */
  function layerNorm(x, { weight = null, bias = null, eps = 1e-5 } = {}) {
    const middle = mean(x);
    const centred = x.map((value) => value - middle);
    const root = Math.hypot(rootMeanSquare(centred), Math.sqrt(eps));
    return centred.map((value, i) => value / root * (weight ? weight[i] : 1)
      + (bias ? bias[i] : 0));
  }

  // significant bits, smallest normal power, largest finite number
  const DTYPES = { float64: null, float32: [24, -126, 3.4028234663852886e38],
    bfloat16: [8, -126, 3.3895313892515355e38], float16: [11, -14, 65504] };

  /** The number as a dtype stores it: nearest, ties to even, overflow to infinity. */
  function roundTo(value, dtype) {
    const kind = DTYPES[dtype];
    if (kind === undefined) refuse(`No dtype is called ${dtype}: choose one of ${
      Object.keys(DTYPES).join(", ")}.`);
    if (kind === null || value === 0 || !Number.isFinite(value)) return value;
    const [bits, smallest, largest] = kind;
    let power = Math.floor(Math.log2(Math.abs(value)));
    if (2 ** power > Math.abs(value)) power -= 1;        // log2 rounds
    if (2 ** (power + 1) <= Math.abs(value)) power += 1;
    const unit = 2 ** (Math.max(power, smallest) - bits + 1);
    const steps = value / unit;
    let rounded = Math.round(steps);
    if (Math.abs(steps % 1) === 0.5) rounded = 2 * Math.round(steps / 2);
    const stored = rounded * unit;
    return Math.abs(stored) > largest ? Math.sign(value) * Infinity : stored;
  }

  // --- rope: pairs that turn ---------------------------------------------------------

  /** base^(-2i / head_dim), radians per token. */
  function inverseFrequencies(head_dim, base = 10000) {
    if (!(head_dim >= 2) || head_dim % 2) {
      refuse(`Head width ${head_dim} is not an even number: dimensions turn in pairs.`);
    }
    if (!(base > 1)) refuse(`The base must be above 1, got ${base}.`);
    return range(head_dim / 2).map((i) => base ** (-2 * i / head_dim));
  }

  /** Tokens for one turn: 2 pi / inv_freq; Infinity where a pair stands still. */
  const wavelengths = (inv_freq) => inv_freq.map((value) => 2 * Math.PI / value);

  /** The two dimensions of pair i. */
  const pairOf = (i, pairs, layout) =>
    layout === "half" ? [i, i + pairs] : [2 * i, 2 * i + 1];

  /** Each pair (x0, x1) of a vector turned by position * inv_freq; the rest stays. */
  function rotate(x, position, inv_freq, {
    layout = "interleaved", attention_factor = 1 } = {}) {
    const turned = [...x];
    inv_freq.forEach((value, i) => {
      const [a, b] = pairOf(i, inv_freq.length, layout);
      const cos = Math.cos(position * value) * attention_factor;
      const sin = Math.sin(position * value) * attention_factor;
      turned[a] = x[a] * cos - x[b] * sin;
      turned[b] = x[b] * cos + x[a] * sin;
    });
    return turned;
  }

  const dot = (x, y) => sum(x.map((value, i) => value * y[i]));

  /** <R(m) q, R(n) k>; the layouts may differ, to show what goes wrong. */
  function score(q, k, m, n, inv_freq, { layout_q = "interleaved",
    layout_k = "interleaved", attention_factor = 1 } = {}) {
    return dot(rotate(q, m, inv_freq, { layout: layout_q, attention_factor }),
      rotate(k, n, inv_freq, { layout: layout_k, attention_factor }));
  }

  /** Scores of one q at each of `rows` and one k at each of `columns`, row by row. */
  function scoreMatrix(q, k, rows, columns, inv_freq, { layout_q = "interleaved",
    layout_k = "interleaved", attention_factor = 1 } = {}) {
    const keys = columns.map((n) =>
      rotate(k, n, inv_freq, { layout: layout_k, attention_factor }));
    return rows.map((m) => {
      const query = rotate(q, m, inv_freq, { layout: layout_q, attention_factor });
      return keys.map((key) => dot(query, key));
    });
  }

  /** What each pair adds to the score: |q_i| |k_i| cos(angle between + turned). */
  function pairScores(q, k, distance, inv_freq, { layout = "interleaved" } = {}) {
    return inv_freq.map((value, i) => {
      const [a, b] = pairOf(i, inv_freq.length, layout);
      const cos = Math.cos(distance * value);
      const sin = Math.sin(distance * value);
      return (q[a] * k[a] + q[b] * k[b]) * cos + (q[a] * k[b] - q[b] * k[a]) * sin;
    });
  }

  // --- yarn: frequencies for longer texts --------------------------------------------

  function checkFactor(factor) {
    if (!(factor >= 1) || factor === Infinity) {
      refuse(`The factor must be at least 1, got ${factor}: it says how many ` +
        "times longer the text gets.");
    }
  }

  function checkBetas(beta_fast, beta_slow, fast = "beta_fast", slow = "beta_slow") {
    if (!(beta_slow > 0)) refuse(`${slow} must be above 0, got ${beta_slow}.`);
    if (!(beta_fast >= beta_slow)) {
      refuse(`${fast} ${beta_fast} is below ${slow} ${beta_slow}: both count turns ` +
        "in the trained length, swap them.");
    }
  }

  /** a + share (b - a), evaluated from the nearer end. */
  const blend = (a, b, share) =>
    share < 0.5 ? a + share * (b - a) : b - (b - a) * (1 - share);
  const clamp = (value) => Math.min(1, Math.max(0, value));

  function positionInterpolation(head_dim, { base, factor }) {
    checkFactor(factor);
    const inv_freq = inverseFrequencies(head_dim, base).map((value) => value / factor);
    return { inv_freq, attention_factor: 1 };
  }

  /** base * stretch^(d / (d - 2)). */
  function stretchedBase(head_dim, base, stretch) {
    if (!(head_dim >= 4)) {
      refuse(`Head width ${head_dim} has one pair: it cannot be both the unchanged ` +
        "and the interpolated one.");
    }
    const larger = base * stretch ** (head_dim / (head_dim - 2));
    if (!Number.isFinite(larger)) {
      refuse(`A stretch of ${stretch} makes the base overflow.`);
    }
    return larger;
  }

  function ntkAware(head_dim, { base, factor }) {
    checkFactor(factor);
    const larger = stretchedBase(head_dim, base, factor);
    return { inv_freq: inverseFrequencies(head_dim, larger), attention_factor: 1 };
  }

  function dynamicNtk(head_dim, { base, factor, trained_length, length }) {
    checkFactor(factor);
    const longest = Math.max(length, trained_length);
    const stretch = factor * longest / trained_length - (factor - 1);
    const larger = stretchedBase(head_dim, base, stretch);
    return { inv_freq: inverseFrequencies(head_dim, larger), attention_factor: 1 };
  }

  /** Turns of each pair in the trained length. */
  const rotations = (inv_freq, trained_length) =>
    wavelengths(inv_freq).map((wavelength) => trained_length / wavelength);

  /** d ln(trained_length / (2 pi turns)) / (2 ln base): the pair of so many turns. */
  const pairAtRotations = (turns, head_dim, base, trained_length) =>
    head_dim * Math.log(trained_length / (2 * Math.PI * turns)) / (2 * Math.log(base));

  /** The released code's ramp, linear in the pair index: 0 keeps, 1 divides. */
  function pairRamp(head_dim, base, trained_length, beta_fast = 32, beta_slow = 1,
    truncate = true) {
    checkBetas(beta_fast, beta_slow);
    let low = pairAtRotations(beta_fast, head_dim, base, trained_length);
    let high = pairAtRotations(beta_slow, head_dim, base, trained_length);
    if (high < 0) {
      refuse(`A trained length of ${trained_length} is too short: even the fastest ` +
        `pair makes fewer than beta_slow = ${beta_slow} turns.`);
    }
    if (truncate) { low = Math.floor(low); high = Math.ceil(high); }
    low = Math.max(low, 0);
    high = Math.min(high, head_dim - 1);
    if (high <= low) high = low + 0.001;
    return range(head_dim / 2).map((i) => clamp((i - low) / (high - low)));
  }

  /** The paper's ramp, linear in the turns: 0 keeps, 1 divides. */
  function rotationsRamp(inv_freq, trained_length, beta_fast, beta_slow) {
    checkBetas(beta_fast, beta_slow);
    return rotations(inv_freq, trained_length).map((turns) =>
      beta_fast === beta_slow ? Number(turns <= beta_slow)
        : clamp((beta_fast - turns) / (beta_fast - beta_slow)));
  }

  const blended = (plain, factor, ramp) =>
    plain.map((value, i) => blend(value, value / factor, ramp[i]));

  function ntkByParts(head_dim, { base, factor, trained_length, beta_fast = 32,
    beta_slow = 1, ramp = "pair", truncate = true }) {
    checkFactor(factor);
    const plain = inverseFrequencies(head_dim, base);
    const shares = ramp === "pair"
      ? pairRamp(head_dim, base, trained_length, beta_fast, beta_slow, truncate)
      : rotationsRamp(plain, trained_length, beta_fast, beta_slow);
    return { inv_freq: blended(plain, factor, shares), attention_factor: 1 };
  }

  /** 0.1 mscale ln(factor) + 1: on cos and sin, so scores get its square. */
  function yarnAttentionFactor(factor, mscale = 1) {
    checkFactor(factor);
    if (!(mscale > 0)) {
      refuse(`mscale must be above 0, got ${mscale}: leave it out to have none.`);
    }
    return 0.1 * mscale * Math.log(factor) + 1;
  }

  function yarn(head_dim, { attention_factor = null, mscale = null,
    mscale_all_dim = null, ...settings }) {
    const { inv_freq } = ntkByParts(head_dim, settings);
    if ((mscale === null) !== (mscale_all_dim === null)) {
      refuse("mscale and mscale_all_dim: give both (the factor is their ratio) " +
        "or neither.");
    }
    const ratio = mscale === null ? yarnAttentionFactor(settings.factor)
      : yarnAttentionFactor(settings.factor, mscale)
        / yarnAttentionFactor(settings.factor, mscale_all_dim);
    return { inv_freq, attention_factor: attention_factor ?? ratio };
  }

  function llama3(head_dim, { base, factor, trained_length, low_freq_factor = 1,
    high_freq_factor = 4 }) {
    checkFactor(factor);
    checkBetas(high_freq_factor, low_freq_factor, "high_freq_factor",
      "low_freq_factor");
    const plain = inverseFrequencies(head_dim, base);
    const ramp = rotationsRamp(plain, trained_length, high_freq_factor,
      low_freq_factor);
    return { inv_freq: blended(plain, factor, ramp), attention_factor: 1 };
  }

  /** sqrt(1 + ln(factor) / ln(trained_length)). */
  function longropeAttentionFactor(factor, trained_length) {
    checkFactor(factor);
    if (!(trained_length >= 2)) refuse(`The trained length must be at least 2, got ${
      trained_length}: the attention factor divides by its logarithm.`);
    return Math.sqrt(1 + Math.log(factor) / Math.log(trained_length));
  }

  function longrope(head_dim, { base, factor, trained_length, factors,
    attention_factor = null }) {
    const chosen = longropeAttentionFactor(factor, trained_length);
    const plain = inverseFrequencies(head_dim, base);
    if (factors.length !== plain.length) {
      refuse(`There are ${factors.length} divisors and ${plain.length} pairs: ` +
        "give one a pair.");
    }
    const wrong = factors.find((value) => !(value > 0));
    if (wrong !== undefined) refuse(`Each divisor must be above 0, got ${wrong}.`);
    return { inv_freq: plain.map((value, i) => value / factors[i]),
      attention_factor: attention_factor ?? chosen };
  }

  function proportional(head_dim, { base, partial_rotary_factor, factor = 1 }) {
    checkFactor(factor);
    if (!(partial_rotary_factor > 0 && partial_rotary_factor <= 1)) {
      refuse(`The share of pairs that turn must be above 0 and at most 1, got ${
        partial_rotary_factor}.`);
    }
    const turning = Math.floor(partial_rotary_factor * head_dim / 2);
    if (turning === 0) {
      refuse(`A share of ${partial_rotary_factor} of ${head_dim} dimensions leaves ` +
        `no pair that turns: at least ${2 / head_dim} is needed.`);
    }
    const inv_freq = inverseFrequencies(head_dim, base)
      .map((value, i) => i < turning ? value / factor : 0);
    return { inv_freq, attention_factor: 1 };
  }

  /** The reference's rule as printed: wavelengths in tokens, first condition wins. */
  function apex1(head_dim, { base, factor, beta_fast = 32, beta_slow = 1 }) {
    checkFactor(factor);
    checkBetas(beta_fast, beta_slow);
    const inv_freq = inverseFrequencies(head_dim, base).map((value) => {
      const wavelength = 2 * Math.PI / value;
      if (factor === 1 || wavelength < beta_fast) return value;
      if (wavelength > beta_slow * factor) return value / factor;
      const t = (wavelength / beta_slow - 1) / (factor - 1);
      return value / (t * factor + (1 - t));
    });
    return { inv_freq, attention_factor: 1 };
  }

  /** 0 unchanged, 2 divided by the factor, 1 between; equal means to 1e-9. */
  function regimes(plain, scaled, factor) {
    checkFactor(factor);
    const close = (a, b) => a === b || Math.abs(a - b) <= 1e-9 * Math.abs(b);
    return plain.map((value, i) => close(scaled[i], value) ? 0
      : close(scaled[i], value / factor) ? 2 : 1);
  }

  return Object.freeze({
    embedding: Object.freeze({ initialStd, embeddingFactor, normalisedRms, erfc,
      expectedLogSum, initialSizes, initialStatistics }),
    norm: Object.freeze({ mean, rootMeanSquare, rmsNorm, layerNorm, roundTo }),
    rope: Object.freeze({ inverseFrequencies, wavelengths, pairOf, rotate, dot, score,
      scoreMatrix, pairScores }),
    yarn: Object.freeze({ positionInterpolation, ntkAware, dynamicNtk, rotations,
      pairAtRotations, pairRamp, rotationsRamp, ntkByParts, yarnAttentionFactor, yarn,
      llama3, longropeAttentionFactor, longrope, proportional, apex1,
      apex1ScoreFactor: yarnAttentionFactor, regimes }),
  });
})();
