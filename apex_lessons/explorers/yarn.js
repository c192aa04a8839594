// Lesson 04: the regimes laboratory, and a reader of config.json for a page without a kernel.

const configReader = (() => {
  // {families: {model_type: conventions | positions without rotary | null}, composites}; null
  // stands for rules that only Python reads. Python puts the table here.
  const TABLE = /* families */ null ?? { families: {}, composites: {}, wrong_files: {} };
  const SUB_KEYS = ["text_config", "llm_config", "language_config", "thinker_config",
    "language_model_config", "decoder", "decoder_config"];
  const USUAL = {
    hidden_size: ["hidden_size", "n_embd", "d_model", "model_dim", "dim"],
    num_attention_heads: ["num_attention_heads", "n_head", "n_heads", "num_heads"],
    max_position_embeddings: ["max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
      "max_sequence_length", "n_ctx", "context_length", "max_seq_length", "model_max_length"],
  };
  const SIZES = { hidden_size: 0, num_attention_heads: 1, max_position_embeddings: 3 };
  const KNOWN = ["default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"];
  const ORIGINAL = "original_max_position_embeddings";
  const LABEL = /^([a-z0-9_]{0,40}attention|hybrid|hybrid_sliding|main|compress)/;
  const ROPE_WORDS = /rope|rotary|yarn|(^|_)theta|(^|_)ntk/;
  const EXPLAIN = "The command python -m apex_lessons explain config.json reads it.";

  const refuse = (text) => { throw new RangeError(text); };
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const there = (values, key) => values[key] !== undefined && values[key] !== null;
  const shown = (value) => {
    const text = JSON.stringify(value) ?? String(value);
    return text.length > 50 ? `${text.slice(0, 47)}...` : text;
  };

  /** The number under `key`; refused with the range that is allowed, and `advice`. */
  function number(key, value, { above = -Infinity, atLeast = -Infinity, atMost = Infinity,
    advice = "" } = {}) {
    if (typeof value !== "number") refuse(`${key} must be a number, the file has ${shown(value)}.`);
    if (!Number.isFinite(value)) {
      refuse(`${key} is NaN, infinite or too large: no number that a computer holds.`);
    }
    if (value > above && value >= atLeast && value <= atMost) return value;
    const limits = [[above, "above"], [atLeast, "at least"], [atMost, "at most"]]
      .filter(([limit]) => Number.isFinite(limit)).map(([limit, word]) => `${word} ${limit}`);
    return refuse(`${key} must be ${limits.join(" and ")}, the file has ${value}${advice || "."}`);
  }

  function whole(key, value, limits = { atLeast: 1 }) {
    if (!Number.isInteger(number(key, value, limits))) {
      refuse(`${key} must be a whole number, the file has ${value}.`);
    }
    return value;
  }

  function even(width, what) {
    if (width % 2) refuse(`${what} gives ${width} dimensions that turn: they turn in pairs.`);
    return width;
  }

  function parsed(text) {
    // Python reads NaN and Infinity; here they become a number that its key refuses
    const finite = text.replace(/([:[,]\s*)(-?)(?:NaN|Infinity)(?=\s*[,}\]])/g, "$1$21e999");
    let values;
    try {
      values = JSON.parse(finite);
    } catch (error) {
      refuse(`The text is no JSON: ${error.message}. Paste a whole config.json.`);
    }
    if (!isObject(values)) refuse(`A config.json is an object in braces, this is ${shown(values)}.`);
    return values;
  }

  /** The params.json of an original Llama release in the words of a config.json. */
  function renamed(values) {
    if (!("dim" in values && "n_heads" in values) || "hidden_size" in values) return values;
    const { use_scaled_rope, rope_scaling_factor, high_freq_factor, ...rest } = values;
    const scaling = use_scaled_rope !== true ? {} : { rope_scaling: { rope_type: "llama3",
      factor: rope_scaling_factor ?? 8, low_freq_factor: 1,
      high_freq_factor: high_freq_factor ?? 4, [ORIGINAL]: 8192 } };
    return { model_type: "meta-params", ...rest, ...scaling };
  }

  const typeOf = (values) => {
    const type = values.model_type;
    if (there(values, "model_type") && typeof type !== "string") {
      refuse(`model_type must be a name, the file has ${shown(type)}.`);
    }
    return type || null;
  };

  function subKey(values, type) {
    const { families, composites } = TABLE;
    for (const key of [composites[type]?.[0], ...SUB_KEYS]) {
      if (key === undefined || !there(values, key)) continue;
      if (type in composites || !(type in families)) return key;
      if (!USUAL.hidden_size.some((name) => there(values, name))) return key;
    }
    return null;
  }

  /** The language model's own settings, which may stand inside: {values, type, nested}. */
  function languageModel(all) {
    const { composites } = TABLE;
    let values = renamed(all);
    let type = typeOf(values);
    let nested = false;
    for (let depth = 0; depth < 4; depth++) {
      const key = subKey(values, type);
      if (key === null) break;
      if (!isObject(values[key])) refuse(`${key} must be an object, the file has ${shown(values[key])}.`);
      values = values[key];
      type = typeOf(values) ?? composites[type]?.[1] ?? type;
      nested = true;
    }
    while (type in composites) type = composites[type][1];
    return { values, type, nested };
  }

  const letters = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, "");

  function familyName(values, type) {
    if (type in TABLE.families) return type;
    const listed = Array.isArray(values.architectures) ? values.architectures.slice(0, 4) : [];
    for (const name of listed) {
      if (typeof name !== "string") continue;
      const stem = letters(name.slice(0, 80).replace(/(For[A-Z]\w*|LMHeadModel|Model)$/, ""));
      const found = Object.keys(TABLE.families).find((family) => letters(family) === stem);
      if (found) return found;
    }
    return null;
  }

  /** The conventions of the file's family, null for an unknown one. */
  function familyOf(values, type) {
    const name = familyName(values, type);
    const family = name === null ? undefined : TABLE.families[name];
    if (family === null) refuse(`The family ${name} has rules that this page does not know. ${EXPLAIN}`);
    if (typeof family === "string") refuse(`This model has no rotary positions: ${family}.`);
    if (family) return family;
    const likely = [...USUAL.hidden_size, ...USUAL.num_attention_heads, "head_dim",
      "qk_rope_head_dim", "rope_theta", "rope_scaling", "rope_parameters"];
    if (!likely.some((key) => key in values)) {
      const wrong = Object.keys(TABLE.wrong_files).find((key) => key in values);
      if (wrong) {
        refuse(`This looks like ${TABLE.wrong_files[wrong]}: there is no hidden_size and no ` +
          "num_attention_heads. Paste the model's config.json.");
      }
      refuse("This is no model's config.json: there is no hidden_size, no num_attention_heads and " +
        "no known model_type.");
    }
    const speaks = Object.keys(values).some((key) => ROPE_WORDS.test(key));
    if (values.alibi === true || values.position_embedding_type === "alibi" || !speaks) {
      const who = type === null ? "The file has no model_type"
        : `The family ${shown(type)} is unknown`;
      refuse(`${who}, and no key of the file speaks of rotary positions.`);
    }
    return null;
  }

  /** A key of the file that says: this one does not turn, after all. */
  function checkTurns({ family, values }) {
    const still = (what) => refuse(`This model has no rotary positions: ${what}.`);
    for (const [key, positions] of Object.entries(family?.positions_key ?? {})) {
      if (values[key] === true) still(positions);
    }
    for (const [key, value] of Object.entries(family?.alibi_unless ?? {})) {
      if (there(values, key) && values[key] !== value) still("ALiBi");
    }
    for (const [key, value] of Object.entries(family?.needs ?? {})) {
      if ((key in values ? values[key] : family.needs_default ?? null) !== value) {
        still(family.otherwise ?? "none");
      }
    }
  }

  function keyOf(job, name) {
    const candidates = [...job.family?.names?.[name] ?? [], ...USUAL[name]];
    return candidates.find((key) => there(job.values, key))
      ?? candidates.find((key) => key in job.values);
  }

  function size(job, name) {
    const key = keyOf(job, name);
    if (key !== undefined) return whole(key, job.values[key]);
    const usual = job.family?.sizes?.[SIZES[name]];
    if (!usual || !job.nested) refuse(`${name} is not in the file, and there is no head_dim.`);
    return usual;
  }

  /** rope_scaling or rope_parameters as the file has it. */
  function givenBlock(job) {
    let found = null;
    for (const key of ["rope_scaling", "rope_parameters"]) {
      const value = job.values[key];
      if (!there(job.values, key)) continue;
      if (!isObject(value)) refuse(`${key} must be an object or null, the file has ${shown(value)}.`);
      if (Object.keys(value).length && found === null) found = value;
    }
    return job.family?.scaling_read === false ? {} : found ?? {};
  }

  /** The block that stands for the model: {block, spec, stated}. */
  function chosenBlock(job) {
    const given = givenBlock(job);
    const sets = job.family?.sets ?? {};
    const labels = Object.keys(sets).length ? Object.keys(sets) : Object.keys(given).filter((key) =>
      (isObject(given[key]) || (given[key] === null && key.endsWith("_attention"))) && LABEL.test(key));
    if (!labels.length) {
      const usual = job.family?.scaling;
      const empty = Object.keys(given).length === 0;
      return empty && usual ? { block: usual, spec: {}, stated: false }
        : { block: given, spec: {}, stated: !empty };
    }
    const nested = labels.some((label) => label in given);
    const turns = (name) => !job.family?.rotates || job.family.rotates.includes(name);
    const bare = Object.keys(given).length === 0;
    const label = ["full_attention", "compress", ...labels].find((name) => labels.includes(name)
      && turns(name) && (nested ? there(given, name) : !(bare && sets[name]?.block === null)));
    const bereft = nested ? labels.filter((name) => !(name in given)) : [];
    if (label === undefined || bereft.length) {
      const which = bereft.length ? bereft.join(", ") : labels.join(", ");
      const others = labels.filter((name) => there(given, name)).join(", ") || "none";
      refuse(`No set of rotary settings for ${which}; the file has sets for: ${others}.`);
    }
    const spec = sets[label] ?? {};
    const own = nested ? given[label] : spec.scaled ? given : {};
    if (!isObject(own)) refuse(`The settings of ${label} must be an object, the file has ${shown(own)}.`);
    return { block: merged(own, spec), spec, stated: Object.keys(own).length > 0 };
  }

  function merged(own, spec) {
    const values = { ...own };
    const usual = spec.block?.rope_type ?? "default";
    if (!Object.keys(own).length && usual !== "default") values.rope_type = usual;
    if ((values.rope_type ?? values.type) === "yarn") return { ...spec.block_extra, ...values };
    return values;
  }

  function headDim(job) {
    const { family, spec, values } = job;
    if (family?.latent || (!family && there(values, "qk_rope_head_dim"))) {
      const key = [...spec.head_dim_keys ?? [], "qk_rope_head_dim"].find((name) => there(values, name));
      return key ? whole(key, values[key], { atLeast: 2 }) : family.latent;
    }
    const keys = spec.head_dim_keys ?? family?.head_dim_keys
      ?? (family ? ["head_dim"] : ["head_dim", "kv_channels", "attention_head_dim"]);
    const key = keys.find((name) => there(values, name));
    if (key) return whole(key, values[key], { atLeast: 2 });
    const usual = spec.head_dim ?? family?.head_dim;
    if (usual) return usual;
    const width = size(job, "hidden_size") * (family?.head_ratio ?? 1);
    const heads = size(job, "num_attention_heads");
    if (width % heads) refuse(`hidden_size ${width} is no multiple of num_attention_heads ${heads}.`);
    return width / heads;
  }

  /** The share of a head that turns, and how many dimensions: {share, rotary}. */
  function rotaryPart(job, head_dim) {
    const { family, spec, values, block } = job;
    if (family?.latent) return { share: 1, rotary: even(head_dim, "qk_rope_head_dim") };
    for (const key of family ? family.rotary_dim_keys ?? [] : ["rotary_dim", "rotary_ndims"]) {
      if (there(values, key)) {
        const stated = whole(key, values[key], { atLeast: 2, atMost: head_dim });
        return { share: stated / head_dim, rotary: even(stated, key) };
      }
      if (key in values) return { share: 1, rotary: even(head_dim, "head_dim") };
    }
    const [key, given] = statedShare(job);
    if (given === null && family?.rotary_dim) {
      const width = Math.min(family.rotary_dim, head_dim);
      return { share: width / head_dim, rotary: even(width, "rotary_dim") };
    }
    const kind = block.rope_type ?? block.type;
    const ignored = given !== null && family && (family.share_fixed || (!family.share_read
      && given !== 1 && key === "partial_rotary_factor" && [undefined, "default", "mrope"].includes(kind)));
    const share = given === null || ignored
      ? spec.block?.partial_rotary_factor ?? family?.share ?? 1 : given;
    if ((kind ?? spec.block?.rope_type) === "proportional") {
      return { share, rotary: even(head_dim, "head_dim") };
    }
    const rotary = Math.floor(head_dim * share);
    if (rotary < 2) refuse(`${key ?? "head_dim"} ${share} leaves no pair of ${head_dim} that turns.`);
    const cause = share === 1 ? `head_dim ${head_dim}`
      : `${key ?? "the family's share"} ${share} of head_dim ${head_dim}`;
    return { share, rotary: even(rotary, cause) };
  }

  function statedShare({ family, spec, values, block }) {
    const keys = spec.share_keys ?? family?.share_keys ?? (family ? ["partial_rotary_factor"]
      : ["partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction", "rotary_percent"]);
    const inner = there(block, "partial_rotary_factor");
    const key = inner ? "partial_rotary_factor" : keys.find((name) => there(values, name));
    if (!key) return [null, null];
    const value = inner ? block[key] : values[key];
    const percent = value >= 2 && value <= 100 ? `, did you mean ${value / 100}?` : "";
    const advice = percent || ": it is the part of a head that turns.";
    return [key, number(key, value, { above: 0, atMost: 1, advice })];
  }

  function baseOf(job) {
    const { family, inner } = job;
    const key = family?.base_scale_key;
    return statedBase(job) * (key && there(inner, key) ? number(key, inner[key], { above: 0 }) : 1);
  }

  function statedBase({ family, spec, inner, block, stated }) {
    const keys = spec.base_keys ?? family?.base_keys ?? (family ? ["rope_theta"]
      : ["rope_theta", "rotary_emb_base", "rope_base", "rotary_base", "rope_freq_constant"]);
    if (stated && there(block, "rope_theta")) return number("rope_theta", block.rope_theta, { above: 1 });
    const key = keys.find((name) => there(inner, name));
    if (key) return number(key, inner[key], { above: 1 });
    return spec.block?.rope_theta ?? family?.base ?? 10000;
  }

  function longestOf(job) {
    const key = keyOf(job, "max_position_embeddings");
    if (key === undefined) return job.family?.sizes?.[3] ?? null;
    return there(job.values, key) ? whole(key, job.values[key]) : null;
  }

  function methodName({ family, block, type: family_type }) {
    const special = family ? family.types ?? {}
      : { mrope: "default", su: "longrope", deepseek_yarn: "yarn" };
    const names = [block.rope_type, block.type].filter((value) => value !== undefined && value !== null)
      .map((value) => {
        const name = special[value] ?? { su: "longrope", mrope: "default" }[value] ?? value;
        const own = family_type === "apex1" ? ["apex1"] : [];
        if (![...KNOWN, ...own, ...Object.values(special)].includes(name)) {
          refuse(`${shown(value)} is no scaling method; known are ${KNOWN.join(", ")}.`);
        }
        return name;
      });
    if (new Set(names).size > 1) {
      refuse(`rope_type says ${shown(block.rope_type)} and type says ${shown(block.type)}: ` +
        "keep one of them, rope_type in newer files.");
    }
    return names[0] ?? "default";
  }

  function factorOf(job, mayBeMissing = false) {
    if (!there(job.block, "factor") && mayBeMissing) return null;
    const { factor } = job.block;
    if (factor === undefined) refuse("There is no factor: say how many times longer the text gets.");
    const meant = factor > 0 && factor < 1 ? `, did you mean ${Number((1 / factor).toPrecision(6))}?` : ".";
    return number("factor", factor, { atLeast: 1,
      advice: `: it says how many times longer the text gets${meant}` });
  }

  function originalOf(job) {
    const { family, block, values } = job;
    const outer = family === null || family.original !== undefined ? values[ORIGINAL] : undefined;
    const value = outer ?? block[ORIGINAL] ?? family?.original ?? job.longest;
    if (value === null || value === undefined) refuse(`The scaling needs ${ORIGINAL}.`);
    return whole(ORIGINAL, value);
  }

  const ratioOf = (job, original) => {
    if (job.longest === null) refuse("The scaling has no factor, and the file no lengths.");
    return Math.max(job.longest / original, 1);
  };

  const setting = (job, key, usual) => there(job.block, key)
    ? number(key, job.block[key], { above: 0 }) : usual;

  const { rope, yarn } = formulas;

  function yarnMethod(job) {
    const { block, rotary, base } = job;
    const trained_length = originalOf(job);
    const factor = factorOf(job, "factor" in block) ?? ratioOf(job, trained_length);
    const beta_fast = setting(job, "beta_fast", 32);
    const beta_slow = setting(job, "beta_slow", 1);
    const truncate = block.truncate ?? true;
    if (typeof truncate !== "boolean") {
      const why = typeof truncate === "string" ? "; a string that is not empty counts as true in Python" : "";
      refuse(`truncate must be true or false, the file has ${shown(truncate)}${why}.`);
    }
    const attention_factor = setting(job, "attention_factor", null);
    const scales = ["mscale", "mscale_all_dim"].map((key) => there(block, key)
      ? number(key, block[key], { atLeast: 0 }) : 0);
    const both = scales.every((value) => value > 0);
    const scaled = yarn.yarn(rotary, { base, factor, trained_length, beta_fast, beta_slow, truncate,
      attention_factor, mscale: both ? scales[0] : null, mscale_all_dim: both ? scales[1] : null });
    return { ...scaled, factor, trained_length, used: { beta_fast, beta_slow, truncate } };
  }

  function longropeMethod(job, length) {
    const { block, rotary, base } = job;
    const trained_length = originalOf(job);
    const factor = factorOf(job, true) ?? ratioOf(job, trained_length);
    const [short, long] = ["short_factor", "long_factor"].map((key) => {
      const own = job.family?.mscales ? key.replace("_factor", "_mscale") : "attention_factor";
      const attention_factor = setting(job, there(block, own) ? own : "attention_factor", null);
      if (!Array.isArray(block[key])) refuse(`LongRoPE needs ${key}, a list of ${rotary / 2} divisors.`);
      for (const value of block[key]) number(key, value, { above: 0 });
      return yarn.longrope(rotary, { base, factor, trained_length, factors: block[key], attention_factor });
    });
    return { ...length > trained_length ? long : short, factor, trained_length };
  }

  const METHODS = {
    default: (job) => ({ inv_freq: rope.inverseFrequencies(job.rotary, job.base), attention_factor: 1,
      factor: null, trained_length: job.longest }),
    linear: (job) => {
      const factor = factorOf(job);
      return { ...yarn.positionInterpolation(job.rotary, { base: job.base, factor }), factor,
        trained_length: job.longest };
    },
    dynamic: (job, length) => {
      if (job.family?.alpha && job.block.alpha) {
        const alpha = number("alpha", job.block.alpha, { atLeast: 1 });
        return { ...yarn.ntkAware(job.rotary, { base: job.base, factor: alpha }), factor: alpha,
          trained_length: job.longest };
      }
      const factor = factorOf(job);
      if (job.longest === null) refuse("dynamic needs max_position_embeddings.");
      return { ...yarn.dynamicNtk(job.rotary, { base: job.base, factor, trained_length: job.longest,
        length }), factor, trained_length: job.longest };
    },
    ntk: (job) => {
      const factor = factorOf(job);
      const share = factor ** (2 / job.rotary);
      return { inv_freq: rope.inverseFrequencies(job.rotary, job.base * factor)
        .map((value) => value / share), attention_factor: 1, factor, trained_length: job.longest };
    },
    yarn: yarnMethod,
    longrope: longropeMethod,
    llama3: (job) => {
      const [factor, trained_length] = [factorOf(job), originalOf(job)];
      const low_freq_factor = setting(job, "low_freq_factor", 1);
      const high_freq_factor = setting(job, "high_freq_factor", 4);
      if (!(high_freq_factor > low_freq_factor)) {
        refuse("high_freq_factor must be above low_freq_factor: both count turns.");
      }
      const used = { low_freq_factor, high_freq_factor };
      return { ...yarn.llama3(job.rotary, { base: job.base, factor, trained_length, ...used }), factor,
        trained_length, used };
    },
    proportional: (job) => {
      const factor = there(job.block, "factor") ? factorOf(job) : 1;
      return { ...yarn.proportional(job.rotary, { base: job.base, factor,
        partial_rotary_factor: job.share }), factor, trained_length: job.longest };
    },
    apex1: (job) => {
      const factor = factorOf(job);
      const used = { beta_fast: setting(job, "beta_fast", 32), beta_slow: setting(job, "beta_slow", 1) };
      return { ...yarn.apex1(job.rotary, { base: job.base, factor, ...used }), factor,
        trained_length: job.longest, used };
    },
  };

  /** DeepSeek's factor on the softmax scale, 1 elsewhere. */
  function softmaxFactor(job, name, factor) {
    const scale = job.block.mscale_all_dim;
    if (name === "default" || !scale || (job.family && !job.family.softmax)) return 1;
    return yarn.yarnAttentionFactor(factor, number("mscale_all_dim", scale, { above: 0 })) ** 2;
  }

  /** A config.json as text: the rotary settings that it gives, for a text of `length` tokens. */
  function read(text, length) {
    const { values, type, nested } = languageModel(parsed(text));
    const job = { values, nested, type, family: familyOf(values, type) };
    checkTurns(job);
    const outer = job.family?.inside;
    if (outer && there(values, outer) && !isObject(values[outer])) refuse(`${outer} must be an object.`);
    job.inner = outer && there(values, outer) ? { ...values, ...values[outer] } : values;
    Object.assign(job, chosenBlock(job));
    const head_dim = headDim(job);
    const { share, rotary } = rotaryPart(job, head_dim);
    Object.assign(job, { share, rotary, base: baseOf(job), longest: longestOf(job) });
    const name = methodName(job);
    const method = METHODS[name](job, length);
    if (method.trained_length > 2 ** 53) refuse("The trained length is no length of a text.");
    if (rotary < 8) refuse(`Only ${rotary} dimensions turn; the laboratory compares four pairs or more.`);
    return { ...method, name, type, head_dim, rotary, base: job.base, known: job.family !== null,
      softmax_factor: softmaxFactor(job, name, method.factor), used: method.used ?? {} };
  }

  return Object.freeze({ read });
})();

const regimesLaboratory = (() => {
  const { format, decades } = toolkit;
  const { rope, yarn } = formulas;
  const NAMES = { yarn: "YaRN", "yarn-other": "YaRN, other ramp", none: "plain RoPE",
    linear: "position interpolation", ntk: "NTK-aware", dynamic: "dynamic NTK",
    llama3: "Llama 3's rule", proportional: "proportional", apex1: "the reference's rule",
    longrope: "LongRoPE", default: "plain RoPE" };
  const SHORT = { linear: "interpolation", "yarn-other": "other ramp", apex1: "reference",
    llama3: "Llama 3", none: "plain", default: "plain", dynamic: "dynamic" };
  const OTHER_RAMP = { pair: "rotations", rotations: "pair" };
  const SHARE = 0.25;
  const TIE = 1e-9;

  /** YaRN's temperature: on cos and sin, on the softmax scale, or nowhere. */
  function withTemperature(inv_freq, { factor, mscale, temperature: where }) {
    const sharpen = yarn.yarnAttentionFactor(factor, mscale);
    return { inv_freq, attention_factor: where === "tables" ? sharpen : 1,
      softmax_factor: where === "softmax" ? sharpen ** 2 : 1 };
  }

  function side(method, s) {
    const width = s.head_dim;
    if (method === "yarn" || method === "yarn-other") {
      const ramp = method === "yarn" ? s.ramp : OTHER_RAMP[s.ramp];
      return withTemperature(yarn.ntkByParts(width, { ...s, ramp }).inv_freq, s);
    }
    if (!(method in NAMES)) throw new RangeError(`No method is called ${method}: choose one.`);
    const { inv_freq } = {
      none: () => ({ inv_freq: rope.inverseFrequencies(width, s.base) }),
      linear: () => yarn.positionInterpolation(width, s),
      ntk: () => yarn.ntkAware(width, s),
      dynamic: () => yarn.dynamicNtk(width, s),
      llama3: () => yarn.llama3(width, s),
      proportional: () => yarn.proportional(width, { base: s.base, partial_rotary_factor: SHARE }),
      apex1: () => yarn.apex1(width, s),
    }[method]();
    return { inv_freq, attention_factor: 1, softmax_factor: 1 };
  }

  let last = { text: null };

  function configOf(text, length) {
    if (last.text !== text || last.length !== length) {
      last = { text, length, error: null, file: null };
      try { last.file = configReader.read(text, length); } catch (error) { last.error = error; }
    }
    if (last.error) throw last.error;
    return last.file;
  }

  let latest = { settings: {} };

  /** Both methods computed, once for each change of the settings. */
  function sides(settings) {
    const names = Object.keys(settings);
    if (latest.found && names.every((name) => settings[name] === latest.settings[name])) {
      return latest.found;
    }
    latest = { settings: { ...settings } };
    latest.found = computed(settings);
    return latest.found;
  }

  /** Both methods, and the settings as used: a pasted file wins. */
  function computed(settings) {
    if (!settings.config.trim()) {
      const plain = rope.inverseFrequencies(settings.head_dim, settings.base);
      return { plain, first: side(settings.method, settings), second: side(settings.other, settings),
        used: settings, file: null };
    }
    const file = configOf(settings.config, settings.length);
    const used = { ...settings, ...file.used, head_dim: file.rotary, base: file.base,
      factor: file.factor ?? settings.factor,
      trained_length: file.trained_length ?? settings.trained_length };
    return { plain: rope.inverseFrequencies(file.rotary, file.base), first: file,
      second: side(settings.other, used), used, file };
  }

  const count = (values) => values.filter(Boolean).length;
  const scoreFactor = (one) => one.attention_factor ** 2 * one.softmax_factor;

  /** How many times two frequencies differ: 1 where equal, Infinity where one stands still. */
  const apart = (a, b) => a === b ? 1 : Math.min(a, b) ? Math.max(a, b) / Math.min(a, b) : Infinity;

  /** The three pairs that differ most, the first of equals first. */
  function disagreements(first, second) {
    const ratios = first.map((value, i) => apart(value, second[i]));
    const left = ratios.map((_, i) => i);
    const facts = {};
    for (const place of [1, 2, 3]) {
      let best = left[0];
      for (const pair of left) if (ratios[pair] > ratios[best] * (1 + TIE)) best = pair;
      left.splice(left.indexOf(best), 1);
      facts[`pair_${place}`] = best;
      facts[`ratio_${place}`] = ratios[best];
    }
    return facts;
  }

  function compare({ plain, first, second, used }) {
    const { trained_length, length, factor, base, beta_fast } = used;
    const turns = yarn.rotations(plain, trained_length);
    const kinds = yarn.regimes(plain, first.inv_freq, factor);
    const turning = first.inv_freq.map((value) => value !== 0);
    const of = (kind) => count(kinds.map((value, i) => value === kind && turning[i]));
    const longest = (inv_freq) => rope.wavelengths(inv_freq).at(-1);
    const facts = { pairs: plain.length, head_dim: 2 * plain.length, base, factor, trained_length,
      unchanged: of(0), blended: of(1), divided: of(2), standing: count(turning.map((on) => !on)),
      never_turned: count(turns.map((value) => value < 1)), longest_before: longest(plain) };
    for (const [name, one] of [["", first], ["_other", second]]) {
      const reach = yarn.rotations(one.inv_freq, length);
      facts[`new_angles${name}`] = count(reach.map((value, i) =>
        Math.min(value, 1) > Math.min(turns[i], 1) + 1e-9));
      facts[`fast_slowed${name}`] = count(turns.map((value, i) =>
        value > beta_fast && one.inv_freq[i] < plain[i] * (1 - TIE)));
      facts[`longest_after${name}`] = longest(one.inv_freq);
      facts[`attention_factor${name}`] = one.attention_factor;
      facts[`score_factor${name}`] = scoreFactor(one);
    }
    return { ...facts, ...disagreements(first.inv_freq, second.inv_freq) };
  }

  // --- words ----------------------------------------------------------------------------------

  const turnsText = (turns) => `${format(turns)} turn${turns === 1 ? "" : "s"}`;
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const firstName = (settings, file) => file ? NAMES[file.name] ?? file.name : NAMES[settings.method];
  const BLENDING = ["yarn", "yarn-other", "llama3"];
  const blends = (settings, file) => BLENDING.includes(file?.name ?? settings.method);
  const many = (n, one, more = `${one}s`) => `**${n}** ${n === 1 ? one : more}`;

  function regimeWords(facts, name, blending) {
    const { pairs, unchanged, blended, divided, standing, factor } = facts;
    const parts = [];
    if (unchanged) parts.push(`leaves **${unchanged}** of ${pairs} pairs as they are`);
    if (blended) parts.push(blending ? `blends **${blended}**` : `divides **${blended}** by other amounts`);
    if (divided) parts.push(`divides **${divided}** by ${format(factor)}`);
    if (standing) parts.push(`lets **${standing}** stand still`);
    const end = parts.pop();
    return `**${capital(name)}** ${parts.length ? `${parts.join(", ")} and ${end}` : end}.`;
  }

  function fileWords(file, facts) {
    if (!file) return [];
    const part = file.rotary === file.head_dim ? `head width ${file.head_dim}`
      : `${file.rotary} of ${file.head_dim} dimensions turn`;
    const known = file.known ? "" : ` The family ${file.type ?? "(none named)"} is unknown to this ` +
      "page: the usual ways are assumed for what the file does not say.";
    return [`Read from the file: ${NAMES[file.name] ?? file.name}, ${part}, base ` +
      `${format(facts.base)}, trained length ${format(facts.trained_length)}.${known} Empty the box ` +
      "to move the sliders again."];
  }

  function disagreementWords(facts, first, second) {
    const both = `${capital(first)} and ${second}`;
    if (facts.ratio_1 <= 1 + TIE) return `${both} are the same here, pair for pair.`;
    const one = (place) => facts[`ratio_${place}`] === Infinity ? `**${facts[`pair_${place}`]}**`
      : `**${facts[`pair_${place}`]}** (${format(facts[`ratio_${place}`])} times)`;
    const places = [1, 2, 3].filter((place) => facts[`ratio_${place}`] > 1 + TIE).map(one);
    const end = places.pop();
    return `${both} differ most at pair ${places.length ? `${places.join(", ")} and ${end}` : end}` +
      `${facts.ratio_1 === Infinity ? ", which stands still in one of them" : ""}.`;
  }

  function words(settings, facts) {
    const { file, used } = sides(settings);
    const first = firstName(settings, file);
    const second = NAMES[settings.other];
    const temperature = (suffix) => {
      const [tables, scores] = [facts[`attention_factor${suffix}`], facts[`score_factor${suffix}`]];
      if (tables === 1 && scores === 1) return "no temperature, scores stay as they are";
      return tables === 1 ? `cos and sin stay, the softmax multiplies scores by **${format(scores, 5)}**`
        : `cos and sin times **${format(tables, 5)}**, so scores times **${format(scores, 5)}**`;
    };
    return [regimeWords(facts, first, blends(settings, file)),
      `In ${format(used.trained_length)} tokens of training ${many(facts.never_turned, "pair")} never ` +
        `finished a turn. Reading ${format(used.length)} tokens, **${facts.new_angles}** ` +
        `${facts.new_angles === 1 ? "pair meets" : "pairs meet"} new angles (${second}: ` +
        `**${facts.new_angles_other}**); of the pairs with more than ${turnsText(used.beta_fast)}, ` +
        `**${facts.fast_slowed}** ${facts.fast_slowed === 1 ? "is" : "are"} slowed down (${second}: ` +
        `**${facts.fast_slowed_other}**).`,
      `${capital(first)}: ${temperature("")}. ${capital(second)}: ${temperature("_other")}.`,
      `The longest wavelength goes from **${format(facts.longest_before)}** to ` +
        `**${format(facts.longest_after)}** tokens.`,
      disagreementWords(facts, first, second), ...fileWords(file, facts)];
  }

  // --- pictures -------------------------------------------------------------------------------

  const KINDS = [["unchanged", 1, 1], ["blended", 3, 4], ["divided", 2, 2]];

  /** The next power of two, with a little room: an axis that moves in steps. */
  const octave = (value) => 2 ** Math.ceil(Math.log2(value) + 0.25);

  function bands(used, pairs) {
    const at = (turns) => Math.max(-0.5, Math.min(pairs - 0.5,
      yarn.pairAtRotations(turns, used.head_dim, used.base, used.trained_length)));
    const [fast, slow] = [at(used.beta_fast), at(used.beta_slow)];
    return [
      { kind: "band", key: "fast", x: [-0.5, fast], colour: 1, text: `more than ${turnsText(used.beta_fast)}` },
      { kind: "band", key: "middle", x: [fast, Math.max(slow, fast)], colour: 3,
        text: `${format(used.beta_fast)} to ${turnsText(used.beta_slow)}` },
      { kind: "band", key: "slow", x: [Math.max(slow, fast), pairs - 0.5], colour: 2,
        text: `fewer than ${turnsText(used.beta_slow)}` }];
  }

  function divisorFrame({ plain, first, second, used, names, blending }, facts) {
    const x = plain.map((_, i) => i);
    const divide = (inv_freq) => plain.map((value, i) => value / inv_freq[i]);
    const [a, b] = [divide(first.inv_freq), divide(second.inv_freq)];
    const finite = [...a, ...b].filter(Number.isFinite);
    const kinds = yarn.regimes(plain, first.inv_freq, used.factor);
    const dots = KINDS.map(([name, colour, marker], kind) => {
      const chosen = x.filter((i) => kinds[i] === kind && Number.isFinite(a[i]));
      return { kind: "dots", key: `kind${kind}`, colour, marker, size: x.length > 40 ? 3.4 : 4.2,
        name: kind === 1 && !blending ? "between" : name,
        x: chosen, y: chosen.map((i) => a[i]) };
    }).filter((mark) => mark.x.length);
    return { x: { label: "pair i", symbol: "pair", low: -0.5, high: x.length - 0.5 },
      y: { label: "frequency divided by", scale: "log", base: 2,
        low: Math.min(...finite) > 0.999 ? 0.72 : 1 / octave(1 / Math.min(...finite)),
        high: 1.15 * octave(Math.max(1.5, used.factor, ...finite)) },
      at: facts.pair_1,
      marks: [...bands(used, x.length),
        { kind: "rule", key: "factor", y: used.factor, dash: 4, text: `factor ${format(used.factor)}` },
        { kind: "line", key: "b", name: names[1], end: names[3], colour: 2, dash: 2, x, y: b },
        { kind: "line", key: "a", name: names[0], end: names[2], colour: 1, dash: 1, width: 2.5, x, y: a },
        ...dots],
      alt: `Divisor of each of ${x.length} pairs, log axis. ${names[0]}: ${facts.unchanged} unchanged, ` +
        `${facts.blended} between, ${facts.divided} divided by ${format(used.factor)}.` };
  }

  /** The trained length and the text's; one line of words where they are close. */
  function lengthRules({ trained_length, length }) {
    const names = [`trained length ${format(trained_length)}`, `text ${format(length)}`];
    const close = Math.abs(Math.log(length / trained_length)) < Math.log(6);
    const above = length >= trained_length ? 1 : 0;
    return [trained_length, length].map((y, i) => ({ kind: "rule", key: `length${i}`, y,
      dash: i ? 3 : 2, colour: i ? "faint" : "ink",
      text: !close ? names[i] : i === above ? names.join(", ") : "" }));
  }

  function waveFrame({ plain, first, second, used, names }) {
    const x = plain.map((_, i) => i);
    const waves = [plain, first.inv_freq, second.inv_freq].map(rope.wavelengths);
    const [low, high] = decades(waves.flat(), 2 * Math.PI,
      Math.max(used.length, used.trained_length) * 1.2);
    return { x: { label: "pair i", symbol: "pair", low: -0.5, high: x.length - 0.5 },
      y: { label: "wavelength", unit: "tokens", scale: "log", low, high },
      at: x.length - 1,
      marks: [...lengthRules(used),
        { kind: "line", key: "before", name: "before", colour: "ink", dash: 4, x, y: waves[0] },
        { kind: "line", key: "b", name: names[1], colour: 2, dash: 2, x, y: waves[2] },
        { kind: "line", key: "a", name: names[0], colour: 1, dash: 1, width: 2.5, x, y: waves[1] }],
      alt: `Wavelengths of ${x.length} pairs on a log axis, before and after; the last goes from ` +
        `${format(waves[0].at(-1))} to ${format(waves[1].at(-1))} tokens.` };
  }

  function ratioFrame({ first, second, names }, facts) {
    const x = first.inv_freq.map((_, i) => i);
    const y = first.inv_freq.map((value, i) => value === second.inv_freq[i] ? 1
      : value / second.inv_freq[i]);
    const turning = x.filter((i) => y[i] > 0 && Number.isFinite(y[i]));
    const most = Math.max(2, ...turning.map((i) => Math.max(y[i], 1 / y[i])));
    const top = [1, 2, 3].filter((place) => facts[`ratio_${place}`] > 1 + TIE
      && Number.isFinite(facts[`ratio_${place}`])).map((place) => facts[`pair_${place}`]);
    const still = count(x.map((i) => !(y[i] > 0 && Number.isFinite(y[i]))));
    const marks = [{ kind: "rule", key: "one", y: 1, dash: 1, colour: "faint",
      text: still ? `${still} pairs stand still in one of the two` : "" },
      { kind: "stems", key: "ratio", colour: 6, from: 1, width: x.length > 40 ? 2 : 3, x: turning,
        y: turning.map((i) => y[i]), name: `${names[0]} / ${names[1]}` },
      { kind: "dots", key: "most", colour: 4, marker: 4, size: 5, x: top, y: top.map((i) => y[i]) }];
    if (top.length) {
      const [pair] = top;
      const left = pair > x.length / 2;
      marks.push({ kind: "text", key: "most", x: pair, y: y[pair], colour: 4,
        text: `pair ${pair}: ${format(facts.ratio_1)} times`, dx: left ? -9 : 9,
        dy: y[pair] > 1 ? -6 : 14, anchor: left ? "end" : "start" });
    }
    return { x: { label: "pair i", symbol: "pair", low: -0.5, high: x.length - 0.5 },
      y: { label: "frequency of the first / of the second", scale: "log", base: 2,
        format: (value) => value < 1 ? `1/${Math.round(1 / value)}` : format(value),
        low: 1 / octave(1.2 * most), high: octave(1.2 * most) },
      at: facts.pair_1, marks,
      alt: `Ratio of the two methods' frequencies by pair; most at pair ${facts.pair_1}, ` +
        `${format(facts.ratio_1)} times.` };
  }

  function draw(settings, facts) {
    const both = { ...sides(settings) };
    both.blending = blends(settings, both.file);
    const first = firstName(settings, both.file);
    const second = NAMES[settings.other];
    const short = (name, method) => SHORT[method] ?? name;
    const same = first === second ? [`${first} (first)`, `${second} (second)`] : [first, second];
    both.names = [...same, short(first, both.file?.name ?? settings.method),
      short(second, settings.other)];
    return { divisors: divisorFrame(both, facts), waves: waveFrame(both), ratio: ratioFrame(both, facts) };
  }

  function problem(settings) {
    try { sides(settings); } catch (error) {
      if (error instanceof RangeError) return error.message;
      throw error;
    }
    return null;
  }

  function enabled({ method, other, ramp, temperature, config }) {
    const free = config.trim() === "";
    const uses = (...names) => names.includes(other) || (free && names.includes(method));
    const yarns = uses("yarn", "yarn-other");
    return { method: free, head_dim: free, base: free, factor: free, trained_length: free,
      beta_fast: uses("yarn", "yarn-other", "apex1"), beta_slow: uses("yarn", "yarn-other", "apex1"),
      ramp: yarns, truncate: yarns && !(ramp === "rotations" && !uses("yarn-other")),
      temperature: yarns, mscale: yarns && temperature !== "none",
      high_freq_factor: uses("llama3"), low_freq_factor: uses("llama3") };
  }

  /** The sliders of a pasted file show what the file says. */
  function shown(settings) {
    if (settings.config.trim() === "" || problem(settings) !== null) return {};
    const { file, used } = sides(settings);
    const method = { default: "none", longrope: settings.method }[file.name] ?? file.name;
    return { ...used, method, other: settings.other };
  }

  return {
    plots: [
      { key: "divisors", title: "By what number is each pair's frequency divided?", wide: true,
        height: 320 },
      { key: "waves", title: "Wavelengths before and after" },
      { key: "ratio", title: "Where the two methods disagree" }],
    facts: (settings) => compare(sides(settings)),
    words, problem, enabled, shown, draw, spoken: 2,
  };
})();

export default toolkit.explorer({ RegimesLaboratory: regimesLaboratory });
