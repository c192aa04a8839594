// A picture that keeps its elements. What a frame and its marks are: see toolkit.js.

const plots = (() => {
  const { freshId, format, plain, unitOf, attributes, say, html, svg, scale, inverse,
    axisTicks, nearest } = texts;
  const DASHES = { 1: "none", 2: "7 4", 3: "9 3 2 3", 4: "2 3", 5: "14 4",
    6: "6 2 2 2 2 2" };
  const MARKERS = { 1: "circle", 2: "square", 3: "triangle", 4: "diamond", 5: "down",
    6: "plus" };
  const LAYERS = ["band", "cells", "area", "grid", "rule", "stems", "bars", "line",
    "arrow", "dots", "cursor", "text"];
  const UNCLIPPED = ["grid", "text", "dots"];
  const MARGIN = { top: 26, right: 14, bottom: 40, left: 52 };
  const NARROW = 460;  // pixels; below it the legend alone names the lines
  const PHONE = 400;   // pixels; below it pictures are less high
  const LETTER = 6.8;  // pixels, a generous mean of 12 px text
  const GAP = 15;      // pixels between two names at the ends of lines

  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  const place = (value) => clamp(value, -1e4, 1e4).toFixed(1);

  /** Corners of the markers, in radii. */
  const CORNERS = {
    square: [[-.9, -.9], [.9, -.9], [.9, .9], [-.9, .9]],
    triangle: [[0, -1.15], [1.1, .85], [-1.1, .85]],
    down: [[0, 1.15], [1.1, -.85], [-1.1, -.85]],
    diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
    plus: [[-.4, -1.2], [.4, -1.2], [.4, -.4], [1.2, -.4], [1.2, .4], [.4, .4],
      [.4, 1.2], [-.4, 1.2], [-.4, .4], [-1.2, .4], [-1.2, -.4], [-.4, -.4]],
  };

  function markerPath(marker, x, y, r) {
    const corners = CORNERS[MARKERS[marker ?? 1]];
    if (!corners) {
      const half = (sign) => `a${r} ${r} 0 1 0 ${sign * 2 * r} 0`;
      return `M${(x - r).toFixed(2)} ${y.toFixed(2)}${half(1)}${half(-1)}Z`;
    }
    return `M${corners.map(([a, b]) =>
      `${(x + a * r).toFixed(2)} ${(y + b * r).toFixed(2)}`).join("L")}Z`;
  }

  /** A path through pixels, broken where a number is not finite. */
  function path(xs, ys) {
    let text = "";
    let pen = "M";
    for (let i = 0; i < xs.length; i++) {
      const here = Number.isFinite(xs[i]) && Number.isFinite(ys[i]);
      if (here) text += `${pen}${place(xs[i])} ${place(ys[i])}`;
      pen = here ? "L" : "M";
    }
    return text;
  }

  const lineLook = (mark) => ({ class: `apx-line apx-c${mark.colour}`,
    "stroke-width": mark.width ?? 2, "stroke-dasharray": DASHES[mark.dash ?? 1] });
  const dotClass = (mark) =>
    `apx-dot apx-c${mark.colour}${mark.hollow ? " apx-hollow" : ""}`;
  const axisLabel = (axis) => axis.unit ? `${axis.label} (${axis.unit})` : axis.label;

  class Plot {
    constructor(spec, tell) {
      this.spec = spec;
      this.tell = tell;
      this.pool = new Map();
      this.entries = new Map();
      this.cursor = null;
      this.round = 0;
      this.room = 0;
      this.width = 560;
      this.height = spec.height ?? 250;
      this.makeSurface(freshId());
      this.where = html("span", { class: "apx-where" });
      this.list = html("ul", { class: "apx-keys" });
      this.legend = html("div", { class: "apx-legend" }, this.where, this.list);
      this.node = html("figure", { class: `apx-plot${spec.wide ? " apx-wide" : ""}` },
        html("figcaption", { class: "apx-caption" }, spec.title), this.surface,
        this.legend);
      this.listen();
    }

    makeSurface(id) {
      this.svg = svg("svg", { class: "apx-svg", role: "img",
        "aria-label": this.spec.title });
      this.clip = svg("rect");
      const clip = svg("clipPath", { id });
      const defs = svg("defs");
      clip.append(this.clip);
      defs.append(clip);
      this.svg.append(defs);
      this.layers = {};
      for (const name of LAYERS) {
        const clipped = UNCLIPPED.includes(name) ? {} : { "clip-path": `url(#${id})` };
        this.layers[name] = svg("g", { class: `apx-layer-${name}`, ...clipped });
        this.svg.append(this.layers[name]);
      }
      this.hair = svg("line", { class: "apx-cursor" });
      this.layers.cursor.append(this.hair);
      this.surface = html("div", { class: "apx-surface", tabindex: 0, role: "group",
        "aria-label": `${this.spec.title}. Arrow keys read values.` }, this.svg);
    }

    // --- reading by pointer, touch and keyboard -------------------------------------

    listen() {
      const at = (event) =>
        this.point(event.clientX - this.svg.getBoundingClientRect().left);
      this.surface.addEventListener("pointermove", at);
      this.surface.addEventListener("pointerdown", at);
      this.surface.addEventListener("pointerleave", (event) => {
        if (event.pointerType === "mouse") this.release();
      });
      this.surface.addEventListener("blur", () => this.release());
      this.surface.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      const move = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10,
        Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") this.release();
      if (move === undefined || !this.stops?.length) return;
      event.preventDefault();
      event.stopPropagation();
      const now = this.cursor ?? this.frame.at ?? this.stops[0];
      const index = nearest(this.stops, now, this.toX) + move;
      this.cursor = this.stops[clamp(index, 0, this.stops.length - 1)];
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

    // --- drawing --------------------------------------------------------------------

    resize(width) {
      this.width = Math.max(220, Math.round(width));
      const high = this.spec.height ?? 250;
      const lower = this.width < PHONE && high >= 200 && !this.spec.equal;
      this.height = lower ? 200 : high;
      if (this.frame) this.draw(this.frame);
    }

    /** The element for a key, made the first time and kept as long as it is drawn. */
    element(layer, key, tag, values) {
      const id = `${layer}/${key}`;
      let node = this.pool.get(id);
      if (!node) {
        node = svg(tag);
        this.pool.set(id, node);
        this.layers[layer].append(node);
      }
      node.drawn = this.round;
      return attributes(node, values);
    }

    label(key, text, values) {
      say(this.element("text", key, "text", values), text);
    }

    draw(frame) {
      this.frame = frame;
      this.round += 1;
      this.layout(frame);
      if (!frame.x.hidden) this.xAxis(frame.x);
      if (!frame.y.hidden) this.yAxis(frame.y);
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

    /** Where the axes stand; the room for names at the right never shrinks again. */
    layout(frame) {
      const { width, height } = this;
      const margin = { ...MARGIN, ...this.spec.margin };
      let { left, top } = margin;
      const longest = Math.max(0, ...frame.marks.map((mark) => mark.end?.length ?? 0));
      if (width >= NARROW && longest) this.room = Math.max(this.room, 7.4 * longest + 14);
      let right = width - (width >= NARROW && this.room ? this.room : margin.right);
      let bottom = height - margin.bottom;
      if (this.spec.equal) {
        const side = Math.min(right - left, bottom - top);
        left += (right - left - side) / 2;
        [right, bottom] = [left + side, top + side];
      }
      this.box = { left, right, top, bottom };
      this.toX = scale(frame.x, left, right);
      this.toY = scale(frame.y, bottom, top);
      attributes(this.svg, { width, height, viewBox: `0 0 ${width} ${height}` });
      attributes(this.surface, { style: `height: ${height}px` });
      attributes(this.clip, { x: left, y: top - 1, width: Math.max(0, right - left),
        height: Math.max(0, bottom - top + 2) });
    }

    xAxis(axis) {
      const { left, right, top, bottom } = this.box;
      for (const { value, text } of axisTicks(axis, Math.floor((right - left) / 58))) {
        const x = this.toX(value).toFixed(1);
        this.element("grid", `x${text}`, "line",
          { class: "apx-gridline", x1: x, x2: x, y1: top, y2: bottom });
        this.label(`x${text}`, text,
          { class: "apx-tick", x, y: bottom + 16, "text-anchor": "middle" });
      }
      this.element("grid", "xaxis", "line",
        { class: "apx-axis", x1: left, x2: right, y1: bottom, y2: bottom });
      const name = axisLabel(axis);
      this.label("xlabel", name, { class: "apx-axis-label", y: bottom + 33,
        x: this.fit((left + right) / 2, name, "middle"), "text-anchor": "middle" });
    }

    yAxis(axis) {
      const { left, right, top, bottom } = this.box;
      for (const { value, text } of axisTicks(axis, Math.floor((bottom - top) / 32))) {
        const y = this.toY(value).toFixed(1);
        this.element("grid", `y${text}`, "line",
          { class: "apx-gridline", x1: left, x2: right, y1: y, y2: y });
        this.label(`y${text}`, text,
          { class: "apx-tick", x: left - 8, y: Number(y) + 4, "text-anchor": "end" });
      }
      this.label("ylabel", axisLabel(axis),
        { class: "apx-axis-label", x: 2, y: 12, "text-anchor": "start" });
    }

    inside(x, y) {
      const { left, right, top, bottom } = this.box;
      return x >= left - 1 && x <= right + 1 && y >= top - 1 && y <= bottom + 1;
    }

    /** Where a text must stand so that it does not leave the picture, by its usual width. */
    fit(x, text, anchor = "start") {
      const wide = LETTER * text.length;
      const before = { start: 0, middle: wide / 2, end: wide }[anchor];
      const left = Math.max(2, Math.min(this.width - wide - 2, x - before));
      return (left + before).toFixed(1);
    }

    // --- one method per kind of mark ------------------------------------------------

    line(mark) {
      const ys = mark.y.map(this.toY);
      this.element("line", mark.key, "path",
        { d: path(mark.x.map(this.toX), ys), ...lineLook(mark) });
      if (mark.end) this.ends.push({ mark, y: ys[ys.length - 1] });
    }

    dots(mark) {
      let d = "";
      for (let i = 0; i < mark.x.length; i++) {
        const [x, y] = [this.toX(mark.x[i]), this.toY(mark.y[i])];
        if (this.inside(x, y)) d += markerPath(mark.marker, x, y, mark.size ?? 4);
      }
      this.element("dots", mark.key, "path", { d, class: dotClass(mark) });
    }

    bars(mark) {
      const thick = mark.thick ?? 14;
      const start = this.toX(mark.from ?? this.frame.x.low);
      mark.y.forEach((row, i) => {
        const [end, y] = [this.toX(mark.x[i]), this.toY(row)];
        this.element("bars", `${mark.key}${i}`, "rect", {
          class: `apx-bar apx-c${mark.colour}`, rx: 2, height: thick,
          x: Math.min(start, end).toFixed(1), y: (y - thick / 2).toFixed(1),
          width: Math.abs(end - start).toFixed(1) });
        if (mark.texts) this.barText(`${mark.key}${i}`, mark.texts[i], end, y);
      });
    }

    barText(key, text, end, y) {
      const beside = end < this.box.right - 76;
      this.label(key, text, { class: beside ? "apx-value" : "apx-value apx-on-bar",
        x: (beside ? end + 7 : Math.min(end, this.box.right) - 7).toFixed(1),
        y: (y + 4).toFixed(1), "text-anchor": beside ? "start" : "end" });
    }

    stems(mark) {
      const start = this.toY(mark.from ?? this.frame.y.low).toFixed(1);
      const d = mark.x.map((value, i) => {
        const x = this.toX(value).toFixed(1);
        return `M${x} ${start}L${x} ${this.toY(mark.y[i]).toFixed(1)}`;
      }).join("");
      this.element("stems", mark.key, "path", { d, ...lineLook(mark) });
    }

    band(mark) {
      const { left, right, top, bottom } = this.box;
      const [x0, x1] = mark.x ? mark.x.map(this.toX).sort((a, b) => a - b) : [left, right];
      const [y0, y1] = mark.y ? mark.y.map(this.toY).sort((a, b) => a - b) : [top, bottom];
      this.element("band", mark.key, "rect", {
        class: `apx-area apx-c${mark.colour ?? "faint"}`, x: x0.toFixed(1),
        y: y0.toFixed(1), width: (x1 - x0).toFixed(1), height: (y1 - y0).toFixed(1) });
      if (!mark.text) return;
      const [from, to] = [Math.max(left, x0), Math.min(right, x1)];
      const fits = to - from > mark.text.length * 6.2;
      this.label(mark.key, fits ? mark.text : "", { class: "apx-note",
        x: ((from + to) / 2).toFixed(1), y: (y0 + 14).toFixed(1),
        "text-anchor": "middle" });
    }

    rule(mark) {
      const { left, right, top, bottom } = this.box;
      const upright = mark.x !== undefined;
      const at = upright ? this.toX(mark.x) : this.toY(mark.y);
      const ends = upright ? { x1: at, x2: at, y1: top, y2: bottom }
        : { x1: left, x2: right, y1: at, y2: at };
      this.element("rule", mark.key, "line", { ...ends,
        class: `apx-rule apx-c${mark.colour ?? "ink"}`,
        "stroke-dasharray": DASHES[mark.dash ?? 2] });
      if (mark.text) this.ruleText(mark, at, upright);
    }

    ruleText(mark, at, upright) {
      const { left, right, top, bottom } = this.box;
      const end = mark.side === "end";
      const flip = upright ? at > (left + right) / 2 : end;
      const x = upright ? at + (flip ? -5 : 5) : end ? right - 4 : left + 6;
      const y = !upright ? at - 5 : end ? bottom - 6 : top + 11;
      const anchor = flip ? "end" : "start";
      this.label(mark.key, this.inside(x, y) ? mark.text : "", { class: "apx-note",
        x: this.fit(x, mark.text, anchor), y: y.toFixed(1), "text-anchor": anchor });
    }

    area(mark) {
      const xs = mark.x.map(this.toX);
      const floor = mark.x.map((_, i) =>
        this.toY(mark.y0?.[i] ?? mark.y0 ?? this.frame.y.low));
      const back = path([...xs].reverse(), floor.reverse()).replace("M", "L");
      this.element("area", mark.key, "path", { class: `apx-area apx-c${mark.colour}`,
        d: `${path(xs, mark.y.map(this.toY))}${back}Z` });
    }

    arrow(mark) {
      const [x1, x2] = [mark.from[0], mark.to[0]].map(this.toX);
      const [y1, y2] = [mark.from[1], mark.to[1]].map(this.toY);
      const long = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / long, (y2 - y1) / long];
      const head = Math.min(9, long / 2);
      const wing = (side) => [x2 - head * (ux - side * 0.45 * uy),
        y2 - head * (uy + side * 0.45 * ux)];
      const [[xa, ya], [xb, yb]] = [wing(1), wing(-1)];
      this.element("arrow", mark.key, "path", { ...lineLook({ width: 2.5, ...mark }),
        d: path([x1, x2, NaN, xa, x2, xb], [y1, y2, NaN, ya, y2, yb]) });
    }

    cells(mark) {
      const { left, right, top, bottom } = this.box;
      const wide = (right - left) / mark.columns;
      const high = (bottom - top) / mark.rows;
      mark.values.forEach((value, i) => {
        const share = clamp(value / mark.limit, -1, 1);
        this.element("cells", `${mark.key}${i}`, "rect", {
          x: (left + (i % mark.columns) * wide).toFixed(2),
          y: (top + Math.floor(i / mark.columns) * high).toFixed(2),
          width: (wide + 0.3).toFixed(2), height: (high + 0.3).toFixed(2),
          class: share < 0 ? "apx-negative" : "apx-positive",
          "fill-opacity": Math.abs(share).toFixed(3) });
      });
    }

    text(mark) {
      const x = this.toX(mark.x) + (mark.dx ?? 0);
      this.label(mark.key, mark.text, { class: `apx-note apx-t${mark.colour ?? "ink"}`,
        x: this.fit(x, mark.text, mark.anchor),
        y: (this.toY(mark.y) + (mark.dy ?? 0)).toFixed(1),
        "text-anchor": mark.anchor ?? "start" });
    }

    /** Names at the right ends of lines, moved apart where lines end close together. */
    endLabels() {
      if (this.width < NARROW) return;
      const { top, bottom, right } = this.box;
      const spots = this.ends.map((end) => ({ ...end, y: clamp(end.y, top + 4, bottom) }));
      spots.sort((a, b) => a.y - b.y);
      for (let i = 1; i < spots.length; i++) {
        spots[i].y = Math.max(spots[i].y, spots[i - 1].y + GAP);
      }
      let limit = bottom;
      for (const spot of [...spots].reverse()) {
        spot.y = Math.min(spot.y, limit);
        limit = spot.y - GAP;
      }
      for (const { mark, y } of spots) {
        this.label(`end-${mark.key}`, mark.end, { class: `apx-end apx-t${mark.colour}`,
          x: right + 8, y: (y + 4).toFixed(1), "text-anchor": "start" });
      }
    }

    // --- the legend is the read-out: each name with its value where the reader points

    names(frame) {
      const named = frame.marks.filter((mark) => mark.name);
      for (const mark of named) {
        if (!this.entries.has(mark.key)) this.entries.set(mark.key, this.entry());
        const entry = this.entries.get(mark.key);
        Object.assign(entry, { mark, round: this.round });
        say(entry.name, mark.name);
        attributes(entry.look, mark.kind === "dots"
          ? { d: markerPath(mark.marker, 13, 6, 4.2), class: dotClass(mark) }
          : { d: "M1 6L25 6", ...lineLook(mark) });
      }
      for (const [key, entry] of this.entries) {
        if (entry.round === this.round) continue;
        entry.node.remove();
        this.entries.delete(key);
      }
      this.legend.hidden = named.length === 0;
      const stops = new Set(named.flatMap((mark) => mark.x));
      this.stops = [...stops].filter((x) => x >= frame.x.low && x <= frame.x.high)
        .sort((a, b) => a - b);
    }

    entry() {
      const sample = svg("svg", { class: "apx-sample", width: 26, height: 12,
        "aria-hidden": "true" });
      const look = svg("path");
      sample.append(look);
      const name = html("span", { class: "apx-name" });
      const value = html("span", { class: "apx-number" });
      const node = html("li", {}, sample, name, value);
      this.list.append(node);
      return { node, sample, look, name, value };
    }

    read(aloud) {
      const { frame } = this;
      if (!frame) return;
      const at = this.cursor ?? frame.at ?? null;
      const told = [];
      if (at !== null) {
        const value = (frame.x.format ?? format)(at);
        told.push(`at ${frame.x.symbol ?? frame.x.label} = ${value}${unitOf(frame.x)}`);
        say(this.where, told[0]);
        for (const entry of this.entries.values()) {
          say(entry.value, this.valueAt(entry.mark, at));
          told.push(`${entry.mark.name}: ${entry.value.textContent}`);
        }
      }
      const x = this.cursor === null ? -10 : this.toX(this.cursor).toFixed(1);
      attributes(this.hair, { x1: x, x2: x, y1: this.box.top, y2: this.box.bottom });
      if (aloud) this.tell(told.join("; "));
    }

    /** A line's value at x, on the straight piece drawn there; a dot's own value. */
    valueAt(mark, x) {
      const pixels = mark.x.map(this.toX);
      const at = nearest(mark.x, x, this.toX);
      const gap = this.toX(x) - pixels[at];
      if (mark.kind !== "line") return Math.abs(gap) < 12 ? format(mark.y[at]) : "–";
      const next = [at - 1, at + 1].find((i) => (pixels[i] - pixels[at]) * gap > 0);
      if (Math.abs(gap) < 1e-6 || next === undefined) return format(mark.y[at]);
      const share = gap / (pixels[next] - pixels[at]);
      const y = this.toY(mark.y[at]) * (1 - share) + this.toY(mark.y[next]) * share;
      return format(inverse(this.frame.y, this.box.bottom, this.box.top)(y));
    }

    /** The numbers drawn: [picture, name, x, y]. */
    rows() {
      const drawn = (this.frame?.marks ?? []).filter((mark) => mark.kind !== "band"
        && Array.isArray(mark.x) && Array.isArray(mark.y));
      const rowsOf = ({ x, name, key }, ys, edge = "") => x.map((value, i) =>
        [this.spec.title, `${name ?? key}${edge}`, value, ys[i]]);
      return drawn.flatMap((mark) => [...rowsOf(mark, mark.y),
        ...Array.isArray(mark.y0) ? rowsOf(mark, mark.y0, ", lower edge") : []]);
    }
  }

  return Object.freeze({ Plot });
})();
