// The formulas of all lessons, as the page computes them: plain functions of plain numbers.
// Each has the name of its Python counterpart, and tests hold the two together to 1e-12.
// Arguments after the first ones come as one object, as Python's keyword arguments do.

const formulas = (() => {
  // --- embedding: what the scale of the table does at the start -------------------------

  const NORM_EPS = 1e-6;

  /** Standard deviation of the table's entries. */
  const initialStd = ({ d_model, init, init_std }) =>
    init === "1/sqrt(d)" ? 1 / Math.sqrt(d_model) : init_std;

  /** The number a row is multiplied by after the look-up. */
  const embeddingFactor = ({ d_model, factor, custom_factor }) =>
    factor === "sqrt(d)" ? Math.sqrt(d_model) : factor === "none" ? 1 : custom_factor;

  /** RMS after RMSNorm with eps inside the root: s / sqrt(s^2 + eps). */
  const normalisedRms = (rms, eps = NORM_EPS) => rms / Math.sqrt(rms * rms + eps);

  /** E[ln sum_j exp(v g_j)] for `count` standard normals g_j, high-temperature form. */
  const softplus = (x) => x > 0 ? x + Math.log1p(Math.exp(-x)) : Math.log1p(Math.exp(x));

  function embeddingScale(settings) {
    const { d_model, vocab_size, tied, norm, logit_factor } = settings;
    const std = initialStd(settings);
    const factor = embeddingFactor(settings);
    const stream = factor * std;
    const hidden = norm ? normalisedRms(stream) : stream;
    const divide = logit_factor === "1/sqrt(d)" ? 1 / Math.sqrt(d_model) : 1;
    const other = hidden * std * Math.sqrt(d_model) * divide;
    const own = hidden * std * d_model * divide;
    const uniform = Math.log(vocab_size);
    const spread = uniform + (other * other) / 2;
    return { init_std: std, factor, stream_std: stream, hidden_std: hidden,
      own_token_logit: tied ? own : 0, other_logit_std: other, log_vocab: uniform,
      loss_untied: spread, loss_tied: spread + softplus(own - spread),
      probability_own: tied ? 1 / (1 + Math.exp(spread - own)) : 1 / vocab_size };
  }

  return Object.freeze({ embedding: Object.freeze({ initialStd, embeddingFactor,
    normalisedRms, embeddingScale }) });
})();
