// The parts that every explorer is made of: controls, pictures, words, downloads.
// formulas.js stands before this file and the explorer's own script after it.
//
// An explorer's script ends with
//   export default toolkit.explorer({ClassName: {plots, facts, words, draw, problem?, enabled?}})
//   plots     [{key, title, height?, wide?, equal?}]   one picture each, in reading order
//   facts     settings -> {name: number}               the names of Python's compute()
//   words     (settings, facts) -> [sentence]          **bold** marks the numbers
//   problem   settings -> sentence or null             why this cannot be drawn
//   enabled   settings -> {trait: false}               controls that do nothing now
//   shown     settings -> {trait: value}               what such a control shows in their place
//   draw      (settings, facts) -> {plotKey: frame}
// A frame is {x: axis, y: axis, marks: [mark], at?, alt?}; `at` is the x whose values
// the legend shows while nobody points at the picture.
//   axis   {low, high, label, unit?, scale?: "log" | "linear", base?, ticks?: [{value, text}], hidden?}
//   line   {kind: "line", key, x: [], y: [], colour, dash?, width?, name?, end?: text at its right end}
//   dots   {kind: "dots", key, x: [], y: [], colour, marker?, size?, hollow?, name?}
//   bars   {kind: "bars", key, y: [row], x: [length], colour, from?, thick?, texts?: []}  across
//   stems  {kind: "stems", key, x: [], y: [], colour, from?, name?}                        upright
//   band   {kind: "band", key, x?: [from, to], y?: [from, to], colour?, text?}
//   rule   {kind: "rule", key, x? or y?, colour?, dash?, text?, side?: "start" | "end"}
//   area   {kind: "area", key, x: [], y: [], y0: [] or number, colour}
//   arrow  {kind: "arrow", key, from: [x, y], to: [x, y], colour, width?}
//   cells  {kind: "cells", key, rows, columns, values: [row by row], limit}  diverging colours
//   text   {kind: "text", key, x, y, text, anchor?: "start" | "middle" | "end", dx?, dy?, colour?}
// `colour` is 1 to 6 (the palette), "ink" or "faint"; give each line its own `dash` (1 to 6)
// and each set of dots its own `marker`, so that colour is never the only difference.

const toolkit = (() => {
  const DASHES = { 1: "none", 2: "7 4", 3: "9 3 2 3", 4: "2 3", 5: "14 4", 6: "6 2 2 2 2 2" };
  const MARKERS = { 1: "circle", 2: "square", 3: "triangle", 4: "diamond", 5: "down", 6: "plus" };
  const SVG = "http://www.w3.org/2000/svg";
  let serial = 0;

  // --- numbers as text --------------------------------------------------------------

  const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶",
    7: "⁷", 8: "⁸", 9: "⁹" };
  const superscript = (n) => String(n).replace(/[-\d]/g, (c) => SUPERSCRIPTS[c]);
  const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

  /** Four digits that count: 0.4525, 22.63, 151,643, 4.6 × 10⁻⁵. */
  function format(value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return "no number";
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

  // --- elements ----------------------------------------------------------------------

  /** Sets only the attributes that changed since the last call. */
  function attributes(node, values) {
    const known = (node.known ||= {});
    for (const name in values) {
      const value = String(values[name]);
      if (known[name] !== value) { known[name] = value; node.setAttribute(name, value); }
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

  const svg = (tag, values = {}) => attributes(document.createElementNS(SVG, tag), values);

  /** Text in which **bold** marks the numbers, as nodes; updates in place where it can. */
  function sentence(node, text) {
    if (node.saying === text) return;
    node.saying = text;
    const parts = text.split("**");
    while (node.childNodes.length > parts.length) node.lastChild.remove();
    parts.forEach((part, i) => {
      let child = node.childNodes[i];
      if (!child) {
        child = i % 2 ? document.createElement("strong") : document.createTextNode("");
        node.append(child);
      }
      if (child.textContent !== part) child.textContent = part;
    });
  }

  const plain = (text) => text.replaceAll("**", "");

  // --- scales and ticks ---------------------------------------------------------------

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

  function inverse(axis, from, to) {
    if (axis.scale === "log") {
      const ratio = Math.log(axis.high / axis.low);
      return (pixel) => axis.low * Math.exp(((pixel - from) / (to - from)) * ratio);
    }
    return (pixel) => axis.low + ((pixel - from) / (to - from)) * (axis.high - axis.low);
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

  /** Whole powers of the base, at most `most`; 2 and 5 times powers of ten where few fit. */
  function logTicks(low, high, most, base = 10) {
    const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
    const last = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
    const stride = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, most)));
    const steps = base !== 10 || stride > 1 ? [1] : most >= 3 * (last - first + 1) ? [1, 2, 5] : [1];
    const ticks = [];
    for (let k = first - 1; k <= last; k++) {
      if ((k - first) % stride) continue;
      for (const step of steps) {
        const value = Number((step * base ** k).toPrecision(12));
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push(value);
      }
    }
    return ticks;
  }

  function axisTicks(axis, most) {
    if (axis.ticks) return axis.ticks;
    const values = axis.scale === "log" ? logTicks(axis.low, axis.high, most, axis.base)
      : linearTicks(axis.low, axis.high, most);
    return values.map((value) => ({ value, text: tickText(value, axis) }));
  }

  function tickText(value, axis) {
    if (axis.format) return axis.format(value);
    if (axis.scale === "log" && (axis.base ?? 10) === 10 && (value < 0.001 || value >= 1e5)) {
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
    return [10 ** bottom, 10 ** Math.max(bottom + 1, Math.ceil(Math.log10(high) - 1e-9))];
  }

  // --- a picture ------------------------------------------------------------------------

  const LAYERS = ["band", "cells", "area", "grid", "rule", "stems", "bars", "line", "arrow",
    "dots", "cursor", "text"];
  const MARGIN = { top: 26, right: 14, bottom: 40, left: 52 };
  const NARROW = 460;  // below this width the legend alone names the lines
  const LETTER = 6.8;  // pixels, a generous mean at 12 px

  function markerPath(shape, x, y, r) {
    const p = (...pairs) => `M${pairs.map(([a, b]) =>
      `${(x + a * r).toFixed(2)} ${(y + b * r).toFixed(2)}`).join("L")}Z`;
    switch (shape) {
      case "square": return p([-.9, -.9], [.9, -.9], [.9, .9], [-.9, .9]);
      case "triangle": return p([0, -1.15], [1.1, .85], [-1.1, .85]);
      case "down": return p([0, 1.15], [1.1, -.85], [-1.1, -.85]);
      case "diamond": return p([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]);
      case "plus": return p([-.4, -1.2], [.4, -1.2], [.4, -.4], [1.2, -.4], [1.2, .4], [.4, .4],
        [.4, 1.2], [-.4, 1.2], [-.4, .4], [-1.2, .4], [-1.2, -.4], [-.4, -.4]);
      default: return `M${(x - r).toFixed(2)} ${y.toFixed(2)}a${r} ${r} 0 1 0 ${2 * r} 0` +
        `a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    }
  }

  function path(xs, ys) {
    let text = "";
    let pen = "M";
    for (let i = 0; i < xs.length; i++) {
      if (Number.isFinite(xs[i]) && Number.isFinite(ys[i])) {
        text += `${pen}${xs[i].toFixed(1)} ${Math.max(-1e4, Math.min(1e4, ys[i])).toFixed(1)}`;
        pen = "L";
      } else pen = "M";
    }
    return text;
  }

  /** A drawing surface that keeps its elements and changes only what moved. */
  class Plot {
    constructor(spec, tell) {
      this.spec = spec;
      this.tell = tell;
      this.id = `apx${++serial}`;
      this.pool = new Map();
      this.cursor = null;
      this.width = 560;
      this.height = spec.height ?? 250;
      this.svg = svg("svg", { class: "apx-svg", role: "img", "aria-label": spec.title });
      const clip = svg("clipPath", { id: `${this.id}-clip` });
      this.clip = svg("rect");
      clip.append(this.clip);
      const defs = svg("defs");
      defs.append(clip);
      this.svg.append(defs);
      this.layers = Object.fromEntries(LAYERS.map((name) => {
        const group = svg("g", { class: `apx-layer-${name}` });
        if (!["grid", "text", "dots"].includes(name)) {
          group.setAttribute("clip-path", `url(#${this.id}-clip)`);
        }
        this.svg.append(group);
        return [name, group];
      }));
      this.surface = html("div", { class: "apx-surface", tabindex: 0, role: "group",
        "aria-label": `${spec.title}. Arrow keys read values.` });
      this.surface.append(this.svg);
      this.where = html("span", { class: "apx-where" });
      this.list = html("ul", { class: "apx-keys" });
      this.legend = html("div", { class: "apx-legend" }, this.where, this.list);
      this.node = html("figure", { class: `apx-plot${spec.wide ? " apx-wide" : ""}` },
        html("figcaption", { class: "apx-caption" }, spec.title), this.surface, this.legend);
      this.entries = new Map();
      this.listen();
    }

    listen() {
      const at = (event) => {
        const box = this.svg.getBoundingClientRect();
        this.point(event.clientX - box.left);
      };
      this.surface.addEventListener("pointermove", at);
      this.surface.addEventListener("pointerdown", at);
      this.surface.addEventListener("pointerleave", (event) => {
        if (event.pointerType === "mouse") this.release();
      });
      this.surface.addEventListener("blur", () => this.release());
      this.surface.addEventListener("keydown", (event) => {
        const move = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10,
          Home: -Infinity, End: Infinity }[event.key];
        if (event.key === "Escape") this.release();
        else if (move !== undefined && this.stops?.length) {
          event.preventDefault();
          event.stopPropagation();
          this.step(move);
        }
      });
    }

    step(move) {
      const last = this.stops.length - 1;
      const now = this.cursor ?? this.frame.at ?? this.stops[0];
      let index = nearest(this.stops, now, this.toX);
      index = Math.max(0, Math.min(last, index + move));
      this.cursor = this.stops[index];
      this.read(true);
    }

    point(pixel) {
      if (!this.stops?.length) return;
      const value = inverse(this.frame.x, this.box.left, this.box.right)(pixel);
      const stop = this.stops[nearest(this.stops, value, this.toX)];
      if (stop !== this.cursor) { this.cursor = stop; this.read(false); }
    }

    release() {
      if (this.cursor !== null) { this.cursor = null; this.read(false); }
    }

    resize(width) {
      this.width = Math.max(220, Math.round(width));
      const high = this.spec.height ?? 250;
      this.height = this.width < 400 && high >= 200 && !this.spec.equal ? 200 : high;
      if (this.frame) this.draw(this.frame);
    }

    /** The element for a key, made the first time and kept as long as it is drawn. */
    element(layer, key, tag) {
      const id = `${layer}/${key}`;
      let node = this.pool.get(id);
      if (!node) {
        node = svg(tag);
        this.pool.set(id, node);
        this.layers[layer].append(node);
      }
      node.drawn = this.round;
      return node;
    }

    draw(frame) {
      this.frame = frame;
      this.round = (this.round ?? 0) + 1;
      this.layout(frame);
      this.axes(frame);
      this.ends = [];
      for (const mark of frame.marks) this[mark.kind](mark);
      this.endLabels();
      this.names(frame);
      this.read(false);
      for (const [id, node] of this.pool) {
        if (node.drawn !== this.round) { node.remove(); this.pool.delete(id); }
      }
      if (frame.alt) attributes(this.svg, { "aria-label": plain(frame.alt) });
    }

    layout(frame) {
      const names = frame.marks.map((mark) => mark.end?.length ?? 0);
      const margin = { ...MARGIN, ...this.spec.margin };
      const height = this.height;
      // room for the names at the right ends of lines, never less than it once was
      if (this.width >= NARROW) this.room = Math.max(this.room ?? 0, 7.4 * Math.max(0, ...names));
      const ends = this.width >= NARROW && this.room > 0;
      let right = this.width - (ends ? this.room + 14 : margin.right);
      let bottom = height - margin.bottom;
      let { left, top } = margin;
      if (this.spec.equal) {
        const side = Math.min(right - left, bottom - top);
        left += (right - left - side) / 2;
        right = left + side;
        bottom = top + side;
      }
      this.box = { left, right, top, bottom };
      this.toX = scale(frame.x, left, right);
      this.toY = scale(frame.y, bottom, top);
      attributes(this.svg, { width: this.width, height, viewBox: `0 0 ${this.width} ${height}` });
      attributes(this.surface, { style: `height: ${height}px` });
      attributes(this.clip, { x: left, y: top - 1, width: Math.max(0, right - left),
        height: Math.max(0, bottom - top + 2) });
    }

    axes(frame) {
      const { left, right, top, bottom } = this.box;
      if (!frame.x.hidden) {
        const ticks = axisTicks(frame.x, Math.floor((right - left) / 58));
        for (const { value, text } of ticks) {
          const x = this.toX(value).toFixed(1);
          attributes(this.element("grid", `x${text}`, "line"),
            { class: "apx-gridline", x1: x, x2: x, y1: top, y2: bottom });
          say(attributes(this.element("text", `x${text}`, "text"),
            { class: "apx-tick", x, y: bottom + 16, "text-anchor": "middle" }), text);
        }
        attributes(this.element("grid", "xaxis", "line"),
          { class: "apx-axis", x1: left, x2: right, y1: bottom, y2: bottom });
        const name = axisLabel(frame.x);
        const half = 3.2 * name.length;
        const middle = Math.max(half, Math.min(this.width - half, (left + right) / 2));
        say(attributes(this.element("text", "xlabel", "text"), { class: "apx-axis-label",
          x: middle.toFixed(1), y: bottom + 33, "text-anchor": "middle" }), name);
      }
      if (!frame.y.hidden) {
        const ticks = axisTicks(frame.y, Math.floor((bottom - top) / 32));
        for (const { value, text } of ticks) {
          const y = this.toY(value).toFixed(1);
          attributes(this.element("grid", `y${text}`, "line"),
            { class: "apx-gridline", x1: left, x2: right, y1: y, y2: y });
          say(attributes(this.element("text", `y${text}`, "text"),
            { class: "apx-tick", x: left - 8, y: Number(y) + 4, "text-anchor": "end" }), text);
        }
        say(attributes(this.element("text", "ylabel", "text"),
          { class: "apx-axis-label", x: 2, y: 12, "text-anchor": "start" }), axisLabel(frame.y));
      }
    }

    // One method per kind of mark.

    line(mark) {
      const xs = mark.x.map(this.toX);
      const ys = mark.y.map(this.toY);
      attributes(this.element("line", mark.key, "path"), { d: path(xs, ys),
        class: `apx-line apx-c${mark.colour}`, "stroke-width": mark.width ?? 2,
        "stroke-dasharray": DASHES[mark.dash ?? 1] });
      if (mark.end) this.ends.push({ mark, y: ys[ys.length - 1] });
    }

    dots(mark) {
      const shape = MARKERS[mark.marker ?? 1];
      const size = mark.size ?? 4;
      let d = "";
      for (let i = 0; i < mark.x.length; i++) {
        const x = this.toX(mark.x[i]);
        const y = this.toY(mark.y[i]);
        if (this.inside(x, y)) d += markerPath(shape, x, y, size);
      }
      attributes(this.element("dots", mark.key, "path"), { d,
        class: `apx-dot apx-c${mark.colour}${mark.hollow ? " apx-hollow" : ""}` });
    }

    inside(x, y) {
      const { left, right, top, bottom } = this.box;
      return x >= left - 1 && x <= right + 1 && y >= top - 1 && y <= bottom + 1;
    }

    bars(mark) {
      const thick = mark.thick ?? 14;
      const start = this.toX(mark.from ?? this.frame.x.low);
      mark.y.forEach((row, i) => {
        const end = this.toX(mark.x[i]);
        const y = this.toY(row);
        attributes(this.element("bars", `${mark.key}${i}`, "rect"), {
          class: `apx-bar apx-c${mark.colour}`, x: Math.min(start, end).toFixed(1),
          width: Math.abs(end - start).toFixed(1), y: (y - thick / 2).toFixed(1), height: thick,
          rx: 2 });
        if (mark.texts) {
          const room = end < this.box.right - 76;
          say(attributes(this.element("text", `${mark.key}${i}`, "text"), {
            class: room ? "apx-value" : "apx-value apx-on-bar",
            x: (room ? end + 7 : Math.min(end, this.box.right) - 7).toFixed(1),
            y: (y + 4).toFixed(1), "text-anchor": room ? "start" : "end" }), mark.texts[i]);
        }
      });
    }

    stems(mark) {
      const start = this.toY(mark.from ?? this.frame.y.low).toFixed(1);
      let d = "";
      mark.x.forEach((x, i) => {
        const at = this.toX(x).toFixed(1);
        d += `M${at} ${start}L${at} ${this.toY(mark.y[i]).toFixed(1)}`;
      });
      attributes(this.element("stems", mark.key, "path"),
        { d, class: `apx-line apx-c${mark.colour}`, "stroke-width": mark.width ?? 2 });
    }

    band(mark) {
      const { left, right, top, bottom } = this.box;
      const [x0, x1] = mark.x ? mark.x.map(this.toX) : [left, right];
      const [y1, y0] = mark.y ? mark.y.map(this.toY) : [bottom, top];
      attributes(this.element("band", mark.key, "rect"), {
        class: `apx-area apx-c${mark.colour ?? "faint"}`, x: Math.min(x0, x1).toFixed(1),
        y: Math.min(y0, y1).toFixed(1), width: Math.abs(x1 - x0).toFixed(1),
        height: Math.abs(y1 - y0).toFixed(1) });
      if (mark.text) {
        const from = Math.max(left, Math.min(x0, x1));
        const to = Math.min(right, Math.max(x0, x1));
        const fits = to - from > mark.text.length * 6.2;
        say(attributes(this.element("text", mark.key, "text"), { class: "apx-note",
          x: ((from + to) / 2).toFixed(1), y: (Math.min(y0, y1) + 14).toFixed(1),
          "text-anchor": "middle" }), fits ? mark.text : "");
      }
    }

    rule(mark) {
      const { left, right, top, bottom } = this.box;
      const upright = mark.x !== undefined;
      const at = upright ? this.toX(mark.x) : this.toY(mark.y);
      const ends = upright ? { x1: at, x2: at, y1: top, y2: bottom }
        : { x1: left, x2: right, y1: at, y2: at };
      attributes(this.element("rule", mark.key, "line"), { ...ends,
        class: `apx-rule apx-c${mark.colour ?? "ink"}`, "stroke-dasharray": DASHES[mark.dash ?? 2] });
      if (!mark.text) return;
      const flip = upright && at > (left + right) / 2;
      const end = mark.side === "end";
      const spot = upright
        ? { x: at + (flip ? -5 : 5), y: end ? bottom - 6 : top + 11, anchor: flip ? "end" : "start" }
        : { x: end ? right - 4 : left + 6, y: at - 5, anchor: end ? "end" : "start" };
      say(attributes(this.element("text", mark.key, "text"), { class: "apx-note",
        x: this.fit(spot.x, mark.text, spot.anchor), y: spot.y.toFixed(1),
        "text-anchor": spot.anchor }), this.inside(spot.x, spot.y) ? mark.text : "");
    }

    area(mark) {
      const xs = mark.x.map(this.toX);
      const top = path(xs, mark.y.map(this.toY));
      const floor = mark.x.map((_, i) => this.toY(mark.y0?.[i] ?? mark.y0 ?? this.frame.y.low));
      const back = path([...xs].reverse(), floor.reverse()).replace("M", "L");
      attributes(this.element("area", mark.key, "path"),
        { d: `${top}${back}Z`, class: `apx-area apx-c${mark.colour}` });
    }

    arrow(mark) {
      const [x1, x2] = [mark.from[0], mark.to[0]].map(this.toX);
      const [y1, y2] = [mark.from[1], mark.to[1]].map(this.toY);
      const long = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / long, (y2 - y1) / long];
      const head = Math.min(9, long / 2);
      const wing = (side) => `${(x2 - head * ux + side * head * 0.45 * uy).toFixed(1)} ` +
        `${(y2 - head * uy - side * head * 0.45 * ux).toFixed(1)}`;
      attributes(this.element("arrow", mark.key, "path"), {
        d: `M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}` +
          `M${wing(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}L${wing(-1)}`,
        class: `apx-line apx-c${mark.colour}`, "stroke-width": mark.width ?? 2.5 });
    }

    cells(mark) {
      const wide = (this.box.right - this.box.left) / mark.columns;
      const high = (this.box.bottom - this.box.top) / mark.rows;
      for (let i = 0; i < mark.values.length; i++) {
        const share = Math.max(-1, Math.min(1, mark.values[i] / mark.limit));
        attributes(this.element("cells", `${mark.key}${i}`, "rect"), {
          x: (this.box.left + (i % mark.columns) * wide).toFixed(2),
          y: (this.box.top + Math.floor(i / mark.columns) * high).toFixed(2),
          width: (wide + 0.3).toFixed(2), height: (high + 0.3).toFixed(2),
          class: share < 0 ? "apx-negative" : "apx-positive",
          "fill-opacity": Math.abs(share).toFixed(3) });
      }
    }

    text(mark) {
      say(attributes(this.element("text", mark.key, "text"), {
        class: `apx-note apx-t${mark.colour ?? "ink"}`,
        x: this.fit(this.toX(mark.x) + (mark.dx ?? 0), mark.text, mark.anchor),
        y: (this.toY(mark.y) + (mark.dy ?? 0)).toFixed(1), "text-anchor": mark.anchor ?? "start" }),
      mark.text);
    }

    /** Where a text must start so that it does not leave the picture, by its usual width. */
    fit(x, text, anchor = "start") {
      const wide = LETTER * text.length;
      const before = { start: 0, middle: wide / 2, end: wide }[anchor];
      const left = Math.max(2, Math.min(this.width - wide - 2, x - before));
      return (left + before).toFixed(1);
    }

    /** Names at the right ends of lines, moved apart where lines end close together. */
    endLabels() {
      if (this.width < NARROW) return;
      const { top, bottom, right } = this.box;
      const gap = 15;
      const spots = this.ends.map((end) => ({ ...end,
        y: Math.max(top + 4, Math.min(bottom, end.y)) })).sort((a, b) => a.y - b.y);
      for (let i = 1; i < spots.length; i++) {
        spots[i].y = Math.max(spots[i].y, spots[i - 1].y + gap);
      }
      const over = spots.length ? spots[spots.length - 1].y - bottom : 0;
      if (over > 0) {
        for (let i = spots.length - 1; i >= 0; i--) {
          const limit = i === spots.length - 1 ? bottom : spots[i + 1].y - gap;
          spots[i].y = Math.min(spots[i].y, limit);
        }
      }
      for (const { mark, y } of spots) {
        say(attributes(this.element("text", `end-${mark.key}`, "text"), {
          class: `apx-end apx-t${mark.colour}`, x: right + 8, y: (y + 4).toFixed(1),
          "text-anchor": "start" }), mark.end);
      }
    }

    // The legend is also the read-out: each name with its value where the reader points.

    names(frame) {
      const named = frame.marks.filter((mark) => mark.name);
      for (const mark of named) {
        if (!this.entries.has(mark.key)) this.entries.set(mark.key, this.entry(mark));
        const entry = this.entries.get(mark.key);
        entry.mark = mark;
        entry.round = this.round;
        say(entry.name, mark.name);
      }
      for (const [key, entry] of this.entries) {
        if (entry.round !== this.round) { entry.node.remove(); this.entries.delete(key); }
      }
      this.legend.hidden = named.length === 0;
      const stops = new Set();
      for (const mark of named) for (const x of mark.x) stops.add(x);
      this.stops = [...stops].filter((x) => x >= frame.x.low && x <= frame.x.high)
        .sort((a, b) => a - b);
    }

    entry(mark) {
      const sample = svg("svg", { class: "apx-sample", width: 26, height: 12, "aria-hidden": "true" });
      if (mark.kind === "dots") {
        sample.append(svg("path", { d: markerPath(MARKERS[mark.marker ?? 1], 13, 6, 4.2),
          class: `apx-dot apx-c${mark.colour}${mark.hollow ? " apx-hollow" : ""}` }));
      } else {
        sample.append(svg("path", { d: "M1 6L25 6", class: `apx-line apx-c${mark.colour}`,
          "stroke-width": mark.width ?? 2, "stroke-dasharray": DASHES[mark.dash ?? 1] }));
      }
      const name = html("span", { class: "apx-name" });
      const value = html("span", { class: "apx-number" });
      const node = html("li", {}, sample, name, value);
      this.list.append(node);
      return { node, sample, name, value };
    }

    read(aloud) {
      const { frame } = this;
      if (!frame) return;
      const at = this.cursor ?? frame.at;
      const told = [];
      if (at !== undefined && at !== null) {
        const symbol = frame.x.symbol ?? frame.x.label;
        const where = `at ${symbol} = ${(frame.x.format ?? format)(at)}${unitOf(frame.x)}`;
        say(this.where, where);
        told.push(where);
        for (const { mark, value } of this.entries.values()) {
          const text = this.valueAt(mark, at);
          say(value, text);
          told.push(`${mark.name}: ${text}`);
        }
      }
      this.drawCursor();
      if (aloud) this.tell(told.join("; "));
    }

    /** A line's value at x, on the straight piece that is drawn there; a dot's own value. */
    valueAt(mark, x) {
      const at = nearest(mark.x, x, this.toX);
      const gap = this.toX(x) - this.toX(mark.x[at]);
      if (mark.kind !== "line") return Math.abs(gap) < 12 ? format(mark.y[at]) : "–";
      const next = mark.x.findIndex((value, i) => i !== at && Math.abs(i - at) === 1
        && Math.sign(value - mark.x[at]) === Math.sign(x - mark.x[at]));
      if (Math.abs(gap) < 1e-6 || next < 0) return format(mark.y[at]);
      const share = gap / (this.toX(mark.x[next]) - this.toX(mark.x[at]));
      const pixel = this.toY(mark.y[at]) * (1 - share) + this.toY(mark.y[next]) * share;
      return format(inverse(this.frame.y, this.box.bottom, this.box.top)(pixel));
    }

    drawCursor() {
      const shown = this.cursor !== null;
      if (!this.hair) {
        this.hair = svg("line", { class: "apx-cursor" });
        this.layers.cursor.append(this.hair);
      }
      const x = shown ? this.toX(this.cursor).toFixed(1) : -10;
      attributes(this.hair, { x1: x, x2: x, y1: this.box.top, y2: this.box.bottom });
    }

    rows() {
      const rows = [];
      for (const mark of this.frame?.marks ?? []) {
        if (!Array.isArray(mark.x) || !Array.isArray(mark.y) || mark.kind === "band") continue;
        mark.x.forEach((x, i) => rows.push([this.spec.title, mark.name ?? mark.key, x, mark.y[i]]));
      }
      return rows;
    }
  }

  const unitOf = (axis) => axis.unit ? ` ${axis.unit}` : "";
  const axisLabel = (axis) => axis.unit ? `${axis.label} (${axis.unit})` : axis.label;

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

  // --- controls -----------------------------------------------------------------------

  const rounded = (value, control) => {
    const steps = Math.round((value - control.low) / control.step);
    const snapped = Number((control.low + steps * control.step).toPrecision(12));
    return Math.max(control.low, Math.min(control.high, snapped));
  };

  /** The values a logarithmic slider stops at: equal ratios, whole powers among them. */
  function stopsOf(control) {
    const ratio = control.high / control.low;
    const octaves = Math.log2(ratio);
    const tens = Math.log10(ratio);
    const whole = (x) => Math.abs(x - Math.round(x)) < 1e-9;
    const count = whole(octaves) ? 12 * Math.round(octaves)
      : whole(tens) ? 40 * Math.round(tens) : 160;
    const stops = new Set();
    for (let i = 0; i <= count; i++) {
      const value = control.low * ratio ** (i / count);
      const step = Math.max(control.step, Number.isInteger(control.step) ? control.step
        : 10 ** (Math.floor(Math.log10(value)) - 2));
      stops.add(rounded(Number(value.toPrecision(12)), { ...control, step,
        low: Number.isInteger(control.step) ? control.low : 0 }));
    }
    stops.add(control.low).add(control.high);
    return [...stops].filter((value) => value >= control.low && value <= control.high)
      .sort((a, b) => a - b);
  }

  const boxText = (value) => Number.isFinite(value) ? String(Number(value.toPrecision(12))) : "";

  const MAKERS = {
    range(control, id, change) {
      const stops = control.log ? stopsOf(control) : null;
      const slider = html("input", { type: "range", id, class: "apx-range",
        min: stops ? 0 : control.low, max: stops ? stops.length - 1 : control.high,
        step: stops ? 1 : control.step });
      const box = html("input", { type: "number", class: "apx-box", min: control.low,
        max: control.high, step: "any", "aria-label": `${control.text}, typed` });
      const complaint = html("p", { class: "apx-complaint", id: `${id}-complaint` });
      const node = html("div", { class: "apx-control" },
        html("label", { for: id, class: "apx-label" }, control.text), box, slider, complaint);
      if (control.hint) node.title = control.hint;
      slider.addEventListener("input", () => {
        const position = Number(slider.value);
        complain("");
        change(stops ? stops[position] : rounded(position, control));
      });
      box.addEventListener("input", () => {
        const value = box.value.trim() === "" ? NaN : Number(box.value);
        const whole = !Number.isInteger(control.default) || !Number.isInteger(control.step)
          || Number.isInteger(value);
        if (!(value >= control.low && value <= control.high)) {
          complain(`Type a number from ${format(control.low)} to ${format(control.high)}.`);
        } else if (!whole) complain("Type a whole number.");
        else { complain(""); change(value); }
      });
      box.addEventListener("change", () => {
        if (complaint.textContent) { box.value = boxText(shown); complain(""); }
      });
      let shown = control.default;
      function complain(text) {
        say(complaint, text);
        attributes(box, { "aria-invalid": Boolean(text), "aria-describedby": complaint.id });
      }
      return { node, inputs: [slider, box], show(value) {
        shown = value;
        const position = String(stops ? nearest(stops, value, Math.log) : value);
        if (slider.value !== position) slider.value = position;
        slider.style.setProperty("--filled", `${(100 * (Number(position) - slider.min))
          / (slider.max - slider.min)}%`);
        attributes(slider, { "aria-valuetext": format(value) + unitOf(control) });
        if (document.activeElement !== box && getRoot(box).activeElement !== box) {
          const text = boxText(value);
          if (box.value !== text) box.value = text;
        }
      } };
    },

    choice(control, id, change) {
      const select = html("select", { id, class: "apx-select" },
        ...control.choices.map((choice, i) => html("option", { value: i }, choice.text)));
      const node = html("div", { class: "apx-control apx-pick" },
        html("label", { for: id, class: "apx-label" }, control.text), select);
      if (control.hint) node.title = control.hint;
      select.addEventListener("change", () => change(control.choices[select.selectedIndex].value));
      return { node, inputs: [select], show(value) {
        select.selectedIndex = control.choices.findIndex((choice) => choice.value === value);
      } };
    },

    check(control, id, change) {
      const box = html("input", { type: "checkbox", id, class: "apx-check" });
      const node = html("div", { class: "apx-control apx-tick-box" },
        html("label", { for: id, class: "apx-label" }, box, control.text));
      if (control.hint) node.title = control.hint;
      box.addEventListener("change", () => change(box.checked));
      return { node, inputs: [box], show(value) { box.checked = value; } };
    },

    text(control, id, change) {
      const box = html("textarea", { id, class: "apx-text", rows: 3, spellcheck: "false",
        placeholder: control.hint });
      const node = html("div", { class: "apx-control" },
        html("label", { for: id, class: "apx-label" }, control.text), box);
      box.addEventListener("input", () => change(box.value));
      return { node, inputs: [box], show(value) { if (box.value !== value) box.value = value; } };
    },
  };

  const getRoot = (node) => node.getRootNode();

  // --- settings as text -----------------------------------------------------------------

  function encode(spec, settings) {
    const changed = spec.controls.filter((c) => settings[c.name] !== c.default)
      .map((c) => `${c.name}=${encodeURIComponent(settings[c.name])}`);
    return `${spec.name}?${changed.join("&")}`;
  }

  /** Settings from a link's text, or null where it belongs to another explorer. */
  function decode(spec, text) {
    const [name, query = ""] = text.split("?");
    if (name !== spec.name) return null;
    const given = new URLSearchParams(query);
    return Object.fromEntries(spec.controls.map((control) => {
      const value = given.get(control.name);
      if (value === null) return [control.name, control.default];
      if (typeof control.default === "boolean") return [control.name, value === "true"];
      return [control.name, typeof control.default === "number" ? Number(value) : value];
    }));
  }

  function outside(spec, settings) {
    for (const control of spec.controls) {
      const value = settings[control.name];
      if (control.kind === "range" && !(value >= control.low && value <= control.high)) {
        return `${control.text} is ${format(value)}: choose a number from ` +
          `${format(control.low)} to ${format(control.high)}.`;
      }
      if (control.kind === "choice" && !control.choices.some((c) => c.value === value)) {
        return `${control.text} is ${value}: choose one of ` +
          `${control.choices.map((c) => c.text).join(", ")}.`;
      }
    }
    return null;
  }

  const pythonText = (value) => typeof value === "boolean" ? (value ? "True" : "False")
    : JSON.stringify(value);

  function constructor(spec, settings) {
    const changed = spec.controls.filter((c) => settings[c.name] !== c.default)
      .map((c) => `${c.name}=${pythonText(settings[c.name])}`);
    return `${spec.name}(${changed.join(", ")})`;
  }

  // --- light and dark ---------------------------------------------------------------------

  /** JupyterLab's theme, else the page's own, else the system's. */
  function darkNow() {
    const lab = document.body.dataset.jpThemeLight;
    if (lab !== undefined) return lab === "false";
    const page = document.documentElement.dataset.theme ?? document.documentElement.dataset.bsTheme;
    if (page === "dark" || page === "light") return page === "dark";
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function followTheme(root) {
    const apply = () => attributes(root, { "data-theme": darkNow() ? "dark" : "light" });
    const watcher = new MutationObserver(apply);
    const filter = { attributes: true, attributeFilter: ["data-jp-theme-light", "data-theme",
      "data-bs-theme"] };
    watcher.observe(document.body, filter);
    watcher.observe(document.documentElement, filter);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", apply);
    apply();
    return () => { watcher.disconnect(); system.removeEventListener("change", apply); };
  }

  // --- downloads ----------------------------------------------------------------------------

  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray",
    "stroke-linecap", "stroke-linejoin", "stroke-opacity", "font-family", "font-size",
    "font-weight", "text-anchor", "opacity", "paint-order", "font-variant-numeric"];

  /** An SVG element as text, at a place, with its computed style written into it. */
  function copyText(original, x, y) {
    const copy = original.cloneNode(true);
    const originals = original.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((node, i) => {
      const style = getComputedStyle(originals[i]);
      node.removeAttribute("class");
      for (const name of STYLES) {
        const value = style.getPropertyValue(name);
        if (value) node.setAttribute(name, value);
      }
    });
    copy.removeAttribute("class");
    return new XMLSerializer().serializeToString(attributes(copy, { x, y }));
  }

  /** All pictures of an explorer under each other, as one SVG that needs no style sheet. */
  function pictureText(root, plots, title) {
    const background = getComputedStyle(root).backgroundColor;
    const ink = getComputedStyle(root).color;
    const font = getComputedStyle(root).fontFamily;
    let y = 34;
    let body = "";
    const label = (x, at, size, weight, text) => `<text x="${x}" y="${at}" fill="${ink}" ` +
      `font-family='${font.replaceAll("'", '"').replaceAll('"', "")}' font-size="${size}" ` +
      `font-weight="${weight}">${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</text>`;
    for (const plot of plots) {
      body += label(14, y + 14, 14, 600, plot.spec.title) + copyText(plot.svg, 12, y + 24);
      y += plot.height + 34;
      if (plot.entries.size && plot.where.textContent) {
        body += label(14, y + 8, 12, 400, plot.where.textContent);
        y += 18;
      }
      for (const entry of plot.entries.values()) {
        const value = entry.value.textContent ? `: ${entry.value.textContent}` : "";
        body += copyText(entry.sample, 14, y - 2) + label(48, y + 8, 12, 400, entry.mark.name + value);
        y += 18;
      }
      y += 14;
    }
    const width = Math.max(...plots.map((plot) => plot.width)) + 24;
    return `<svg xmlns="${SVG}" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}">` +
      `<rect width="100%" height="100%" fill="${background}"/>${label(14, 24, 16, 600, title)}` +
      `${body}</svg>`;
  }

  function save(name, data, type) {
    const url = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type }));
    html("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  async function pngOf(text) {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = html("canvas", { width: 2 * image.width, height: 2 * image.height });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.drawImage(image, 0, 0);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  function csvText(settings, facts, plots) {
    const cell = (value) => /[",\n]/.test(String(value))
      ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");
    const rows = [["part", "name", "x", "value"],
      ...Object.entries(settings).map(([name, value]) => ["setting", name, "", value]),
      ...Object.entries(facts).map(([name, value]) => ["fact", name, "", value]),
      ...plots.flatMap((plot) => plot.rows())];
    return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
  }

  /** With a kernel a link cannot carry the settings: a line of Python can. */
  const inNotebook = () => document.body.dataset.jpThemeLight !== undefined
    || document.querySelector(".jp-Notebook, .jp-NotebookPanel") !== null;

  // --- an explorer -------------------------------------------------------------------------

  const SAVE_EVERY = 80;       // milliseconds between messages to a kernel
  const SPEAK_AFTER = 600;     // milliseconds of rest before the live region speaks

  function mount(definition, model, el) {
    const spec = model.get("_spec");
    const settings = {};
    const plots = definition.plots.map((plot) => new Plot(plot, speak));
    const view = build(spec, plots, change, { reset, copy, download, use });
    const root = view.root;
    el.append(root);
    const stops = [followTheme(root)];
    let facts = {};
    let frame = 0;
    let fresh = false;
    let saving = 0;
    let speaking = 0;

    function pull() {
      for (const control of spec.controls) settings[control.name] = model.get(control.name);
    }

    /** At most two drawings between two frames: one at once, one with the latest values. */
    function refresh() {
      if (frame) { fresh = true; return; }
      paint();
      frame = requestAnimationFrame(() => {
        frame = 0;
        if (fresh) { fresh = false; refresh(); }
      });
    }

    function paint() {
      try {
        const shown = { ...settings, ...definition.shown?.(settings) };
        for (const control of spec.controls) view.controls[control.name].show(shown[control.name]);
        const off = definition.enabled?.(settings) ?? {};
        for (const control of spec.controls) view.enable(control.name, off[control.name] !== false);
        view.mark(settings);
        const problem = outside(spec, settings) ?? definition.problem?.(settings) ?? null;
        if (problem) { view.complain(problem, "problem"); announce(problem); return; }
        facts = definition.facts(settings);
        const frames = definition.draw(settings, facts);
        for (const plot of plots) if (frames[plot.spec.key]) plot.draw(frames[plot.spec.key]);
        const words = definition.words(settings, facts);
        view.tellWords(words);
        view.complain("", "");
        announce(plain(words.slice(0, definition.spoken ?? 2).join(" ")));
      } catch (error) {
        view.complain(`Something went wrong in this explorer: ${error.message}. ` +
          `Settings: ${constructor(spec, settings)}.`, "error");
        console.error(error);
      }
    }

    function announce(text) {
      clearTimeout(speaking);
      speaking = setTimeout(() => say(view.live, text), SPEAK_AFTER);
    }

    function speak(text) {
      clearTimeout(speaking);
      say(view.live, text);
    }

    function change(name, value) { use({ [name]: value }); }

    function use(values) {
      Object.assign(settings, values);
      refresh();
      for (const name in values) model.set(name, values[name]);
      saving ||= setTimeout(() => { saving = 0; model.save_changes(); }, SAVE_EVERY);
    }

    function reset() {
      use(Object.fromEntries(spec.controls.map((control) => [control.name, control.default])));
    }

    async function copy() {
      const lab = inNotebook();
      const text = lab ? constructor(spec, settings)
        : `${location.href.split("#")[0]}#${encode(spec, settings)}`;
      try {
        await navigator.clipboard.writeText(text);
        view.note(lab ? "Copied as Python." : "Link copied.");
      } catch (error) {
        view.offer(text);
        view.note("Copy it from the box.");
      }
    }

    async function download(kind) {
      const name = `${spec.name}.${kind}`;
      try {
        if (kind === "csv") save(name, csvText(settings, facts, plots), "text/csv");
        else {
          const text = pictureText(root, plots, spec.title);
          if (kind === "svg") save(name, text, "image/svg+xml");
          else save(name, await pngOf(text), "image/png");
        }
        view.note(`Saved ${name}.`);
      } catch (error) {
        view.complain(`The file ${name} could not be made: ${error.message}.`, "error");
        console.error(error);
      }
    }

    function fromModel() {
      let changed = false;
      for (const control of spec.controls) {
        const value = model.get(control.name);
        if (value !== settings[control.name]) { settings[control.name] = value; changed = true; }
      }
      if (changed) refresh();
    }

    function fromLink() {
      const values = decode(spec, decodeURI(location.hash.slice(1)));
      if (values) use(values);
    }

    const names = spec.controls.map((control) => `change:${control.name}`);
    for (const name of names) model.on(name, fromModel);
    addEventListener("hashchange", fromLink);
    const sizes = new ResizeObserver(() => {
      for (const plot of plots) {
        const width = plot.surface.clientWidth;
        if (width && Math.round(width) !== plot.width) plot.resize(width);
      }
    });
    for (const plot of plots) sizes.observe(plot.surface);

    pull();
    refresh();
    fromLink();
    return () => {
      for (const name of names) model.off(name, fromModel);
      removeEventListener("hashchange", fromLink);
      sizes.disconnect();
      cancelAnimationFrame(frame);
      clearTimeout(saving);
      clearTimeout(speaking);
      for (const stop of stops) stop();
    };
  }

  /** The frame around pictures and controls; returns what `mount` changes later. */
  function build(spec, plots, change, actions) {
    const id = `apx${++serial}`;
    const heading = html("p", { class: "apx-title", id: `${id}-title` }, spec.title);
    const controls = {};
    const panel = html("div", { class: "apx-panel" });
    spec.controls.forEach((control, i) => {
      const made = MAKERS[control.kind](control, `${id}-${i}`, (value) => change(control.name, value));
      controls[control.name] = made;
      panel.append(made.node);
    });
    const chips = spec.presets.map((preset) => {
      const chip = html("button", { type: "button", class: "apx-chip", "aria-pressed": "false" },
        preset.name);
      chip.addEventListener("click", () => actions.use(preset.settings));
      return { chip, preset };
    });
    const button = (text, run, label = text) => {
      const node = html("button", { type: "button", class: "apx-button", "aria-label": label }, text);
      node.addEventListener("click", run);
      return node;
    };
    const note = html("span", { class: "apx-done" });
    const offered = html("input", { class: "apx-offer", readonly: "", "aria-label": "Settings as text" });
    offered.hidden = true;
    const foot = html("div", { class: "apx-foot" },
      button("Reset", actions.reset, "Reset all settings"),
      button(inNotebook() ? "Copy as Python" : "Copy link", actions.copy),
      button("SVG", () => actions.download("svg"), "Save the picture as SVG"),
      button("PNG", () => actions.download("png"), "Save the picture as PNG"),
      button("CSV", () => actions.download("csv"), "Save the numbers as CSV"), note, offered);
    const words = html("div", { class: "apx-words" });
    const alarm = html("p", { class: "apx-alarm", role: "alert" });
    const live = html("p", { class: "apx-live", "aria-live": "polite" });
    const stage = html("div", { class: "apx-stage" }, ...plots.map((plot) => plot.node));
    const row = html("div", { class: "apx-chips", role: "group", "aria-label": "Presets" },
      ...chips.map(({ chip }) => chip));
    row.hidden = chips.length === 0;
    const root = html("section", { class: "apx", "aria-labelledby": `${id}-title`,
      "data-explorer": spec.name },
    html("div", { class: "apx-frame" }, html("div", { class: "apx-head" }, heading, row),
      alarm, stage, panel, words, foot, live));
    // JupyterLab would take arrow keys, Enter and letters for shortcuts of its own
    for (const node of root.querySelectorAll("input, select, textarea, button, [tabindex]")) {
      attributes(node, { "data-lm-suppress-shortcuts": "true" });
    }
    let clearing = 0;
    return { root, controls, live,
      enable(name, on) {
        const { node, inputs } = controls[name];
        if (node.enabled === on) return;
        node.enabled = on;
        node.classList.toggle("apx-off", !on);
        for (const input of inputs) input.disabled = !on;
      },
      mark(settings) {
        for (const { chip, preset } of chips) {
          const on = Object.entries(preset.settings).every(([k, v]) => settings[k] === v);
          attributes(chip, { "aria-pressed": on });
        }
      },
      tellWords(sentences) {
        while (words.childNodes.length > sentences.length) words.lastChild.remove();
        sentences.forEach((text, i) => {
          if (!words.childNodes[i]) words.append(html("p"));
          sentence(words.childNodes[i], text);
        });
      },
      complain(text, kind) {
        say(alarm, text);
        attributes(root, { "data-state": kind });
      },
      note(text) {
        say(note, text);
        say(live, text);
        clearTimeout(clearing);
        clearing = setTimeout(() => say(note, ""), 4000);
      },
      offer(text) {
        offered.hidden = false;
        offered.value = text;
        offered.focus();
        offered.select();
      },
    };
  }

  /** The default export of an explorer's module: draws the class that `_spec` names. */
  function explorer(definitions) {
    return { definitions, toolkit: api, render({ model, el }) {
      const { name } = model.get("_spec");
      const definition = definitions[name];
      if (!definition) {
        el.append(html("p", { role: "alert" }, `No drawing is called ${name} in this script.`));
        return undefined;
      }
      return mount(definition, model, el);
    } };
  }

  const api = Object.freeze({ explorer, format, percent, plain, superscript, geometric, evenly,
    decades, linearTicks, logTicks, stopsOf, encode, decode, outside });
  return api;
})();
