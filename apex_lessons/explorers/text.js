// Numbers as text, axes as numbers, and elements that change only what moved.

const texts = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  /** A name that no other element of the page has, whichever module made that one. */
  const freshId = () => {
    globalThis.apexExplorerIds = (globalThis.apexExplorerIds ?? 0) + 1;
    return `apx${globalThis.apexExplorerIds}`;
  };

  // --- numbers ------------------------------------------------------------------

  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶",
    7: "⁷", 8: "⁸", 9: "⁹" };
  const superscript = (n) => String(n).replace(/[-\d]/g, (c) => RAISED[c]);
  const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

  /** Four digits that count: 0.4525, 22.63, 151,643, 4.6 × 10⁻⁵. */
  function format(value, digits = 4) {
    if (typeof value !== "number" || Number.isNaN(value)) return "no number";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    const sign = value < 0 ? "−" : "";
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size < 9.9995e-4 || size >= 1e7) {
      const [mantissa, power] = size.toExponential(digits - 1).split("e");
      return `${sign}${Number(mantissa)} × 10${superscript(Number(power))}`;
    }
    if (size >= 10 ** (digits - 1)) return sign + grouped(String(Math.round(size)));
    return sign + String(Number(size.toPrecision(digits)));
  }

  /** 14.3%, 99.97%, over 99.9999%: rounded, but never up to certainty. */
  function percent(share) {
    if (share > 0.999999 && share < 1) return "over 99.9999%";
    if (share > 0.995 && share < 1) return `${Number((100 * share).toFixed(4))}%`;
    if (share > 0 && share < 1e-4) return `${format(100 * share, 2)}%`;
    return `${Number((100 * share).toPrecision(share < 0.1 ? 2 : 3))}%`;
  }

  const plain = (text) => text.replaceAll("**", "");
  const unitOf = (axis) => axis.unit ? ` ${axis.unit}` : "";

  // --- elements -----------------------------------------------------------------

  /** Sets only the attributes that changed since the last call. */
  function attributes(node, values) {
    const known = (node.known ||= {});
    for (const name in values) {
      const value = String(values[name]);
      if (known[name] === value) continue;
      known[name] = value;
      node.setAttribute(name, value);
    }
    return node;
  }

  function say(node, text) {
    if (node.saying !== text) { node.saying = text; node.textContent = text; }
    return node;
  }

  function html(tag, values = {}, ...children) {
    const node = attributes(document.createElement(tag), values);
    node.append(...children);
    return node;
  }

  const svg = (tag, values = {}) =>
    attributes(document.createElementNS(SVG, tag), values);

  /** Text in which **bold** marks the numbers; only the parts that changed are set. */
  function sentence(node, text) {
    if (node.saying === text) return;
    node.saying = text;
    const parts = text.split("**");
    while (node.childNodes.length > parts.length) node.lastChild.remove();
    parts.forEach((part, i) => {
      let child = node.childNodes[i];
      if (!child) {
        child = document[i % 2 ? "createElement" : "createTextNode"](i % 2 ? "strong" : "");
        node.append(child);
      }
      if (child.textContent !== part) child.textContent = part;
    });
  }

  // --- axes ---------------------------------------------------------------------

  /** value -> pixel */
  function scale(axis, from, to) {
    if (axis.scale === "log") {
      const low = Math.log(axis.low);
      const slope = (to - from) / (Math.log(axis.high) - low);
      return (value) => value > 0 ? from + (Math.log(value) - low) * slope
        : from - Math.sign(slope) * 1e4;
    }
    const slope = (to - from) / (axis.high - axis.low);
    return (value) => from + (value - axis.low) * slope;
  }

  /** pixel -> value */
  function inverse(axis, from, to) {
    const share = (pixel) => (pixel - from) / (to - from);
    if (axis.scale === "log") {
      const ratio = Math.log(axis.high / axis.low);
      return (pixel) => axis.low * Math.exp(share(pixel) * ratio);
    }
    return (pixel) => axis.low + share(pixel) * (axis.high - axis.low);
  }

  /** 1, 2 or 5 times a power of ten, at most `most` of them. */
  function linearTicks(low, high, most) {
    const rough = (high - low) / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
      ticks.push(Number((k * step).toPrecision(12)));
    }
    return ticks;
  }

  /** Powers of the base, at most `most`; 2 and 5 times powers of ten where few fit. */
  function logTicks(low, high, most, base = 10) {
    const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
    const last = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
    const count = last - first + 1;
    const stride = Math.max(1, Math.ceil(count / Math.max(1, most)));
    const dense = base === 10 && stride === 1 && most >= 3 * count;
    const ticks = [];
    for (let k = first - 1; k <= last; k++) {
      if ((k - first) % stride) continue;
      for (const step of dense ? [1, 2, 5] : [1]) {
        const value = Number((step * base ** k).toPrecision(12));
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push(value);
      }
    }
    return ticks;
  }

  function axisTicks(axis, most) {
    if (axis.ticks) return axis.ticks;
    const values = axis.scale === "log"
      ? logTicks(axis.low, axis.high, most, axis.base)
      : linearTicks(axis.low, axis.high, most);
    return values.map((value) => ({ value, text: tickText(value, axis) }));
  }

  function tickText(value, axis) {
    if (axis.format) return axis.format(value);
    const decimal = axis.scale === "log" && (axis.base ?? 10) === 10;
    if (decimal && (value < 0.001 || value >= 1e5)) {
      return `10${superscript(Math.round(Math.log10(value)))}`;
    }
    return format(value);
  }

  /** `count` numbers from low to high with equal ratios. */
  function geometric(low, high, count) {
    const ratio = Math.log(high / low) / (count - 1);
    return Array.from({ length: count }, (_, i) => low * Math.exp(i * ratio));
  }

  const evenly = (low, high, count) => Array.from({ length: count },
    (_, i) => low + ((high - low) * i) / (count - 1));

  /** The whole decades around positive values: [low, high] for a steady axis. */
  function decades(values, low = Infinity, high = -Infinity) {
    for (const value of values) {
      if (value > 0 && value < low) low = value;
      if (value < Infinity && value > high) high = value;
    }
    if (!(low <= high)) return [0.1, 10];
    const bottom = Math.floor(Math.log10(low) + 1e-9);
    const top = Math.max(bottom + 1, Math.ceil(Math.log10(high) - 1e-9));
    return [10 ** bottom, 10 ** top];
  }

  /** Index of the value that lies nearest on the screen. */
  function nearest(values, value, toPixel) {
    const at = toPixel(value);
    let best = 0;
    let distance = Infinity;
    for (let i = 0; i < values.length; i++) {
      const d = Math.abs(toPixel(values[i]) - at);
      if (d < distance) { distance = d; best = i; }
    }
    return best;
  }

  return Object.freeze({ SVG, freshId, superscript, format, percent, plain, unitOf,
    attributes, say, html, svg, sentence, scale, inverse, linearTicks, logTicks,
    axisTicks, geometric, evenly, decades, nearest });
})();
