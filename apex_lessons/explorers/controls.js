// Native controls with labels, and settings as text: links, Python, complaints.

const controls = (() => {
  const { format, unitOf, attributes, say, html, nearest } = texts;

  // --- sliders ------------------------------------------------------------------

  function rounded(value, { low, high, step }) {
    const steps = Math.round((value - low) / step);
    const snapped = Number((low + steps * step).toPrecision(12));
    return Math.max(low, Math.min(high, snapped));
  }

  /** How many steps a logarithmic slider has: 12 an octave or 40 a decade. */
  function stepCount(ratio) {
    const whole = (x) => Math.abs(x - Math.round(x)) < 1e-9;
    if (whole(Math.log2(ratio))) return 12 * Math.round(Math.log2(ratio));
    if (whole(Math.log10(ratio))) return 40 * Math.round(Math.log10(ratio));
    return 160;
  }

  /** The values a logarithmic slider stops at: equal ratios, whole powers among them. */
  function stopsOf(control) {
    const { low, high, step } = control;
    const count = stepCount(high / low);
    const stops = new Set([low, high]);
    for (let i = 0; i <= count; i++) {
      const value = Number((low * (high / low) ** (i / count)).toPrecision(12));
      // three digits that count, where the step is finer than that
      const digits = 10 ** (Math.floor(Math.log10(value)) - 2);
      stops.add(Number.isInteger(step) ? rounded(value, control)
        : rounded(value, { low: 0, high, step: Math.max(step, digits) }));
    }
    return [...stops].filter((value) => value >= low && value <= high)
      .sort((a, b) => a - b);
  }

  const boxText = (value) =>
    Number.isFinite(value) ? String(Number(value.toPrecision(12))) : "";

  /** Why a typed number is refused, or "". */
  function refusal(control, value) {
    if (!(value >= control.low && value <= control.high)) {
      return `Type a number from ${format(control.low)} to ${format(control.high)}.`;
    }
    return control.integer && !Number.isInteger(value) ? "Type a whole number." : "";
  }

  /** A slider and a number box for one setting. */
  class RangeControl {
    constructor(control, id, change) {
      Object.assign(this, { control, change, value: control.default });
      this.stops = control.log ? stopsOf(control) : null;
      const { low, high, step, text } = control;
      const ends = this.stops ? { min: 0, max: this.stops.length - 1, step: 1 }
        : { min: low, max: high, step };
      this.span = ends.max - ends.min;
      this.first = ends.min;
      this.slider = html("input", { type: "range", id, class: "apx-range", ...ends });
      this.complaint = html("p", { class: "apx-complaint", id: `${id}-complaint` });
      this.box = html("input", { type: "number", class: "apx-box", min: low, max: high,
        step: "any", "aria-label": `${text}, typed`,
        "aria-describedby": this.complaint.id });
      this.inputs = [this.slider, this.box];
      this.node = wrapped(control, id, "", this.box, this.slider, this.complaint);
      this.slider.addEventListener("input", () => this.slid());
      this.box.addEventListener("input", () => this.typed());
      this.box.addEventListener("change", () => this.left());
    }

    slid() {
      const position = Number(this.slider.value);
      this.complain("");
      this.change(this.stops ? this.stops[position] : rounded(position, this.control));
    }

    typed() {
      const value = this.box.value.trim() === "" ? NaN : Number(this.box.value);
      const problem = refusal(this.control, value);
      this.complain(problem);
      if (!problem) this.change(value);
    }

    /** Leaving the box with a wrong number in it brings back the setting. */
    left() {
      if (this.complaint.textContent) this.box.value = boxText(this.value);
      this.complain("");
    }

    complain(text) {
      say(this.complaint, text);
      attributes(this.box, { "aria-invalid": Boolean(text) });
    }

    show(value) {
      this.value = value;
      const at = this.stops ? nearest(this.stops, value, Math.log) : value;
      if (this.slider.value !== String(at)) this.slider.value = at;
      const filled = 100 * (at - this.first) / this.span;
      attributes(this.slider, { "aria-valuetext": format(value) + unitOf(this.control),
        style: `--filled: ${filled.toFixed(2)}%` });
      // while the reader types, the box is hers
      if (this.box.getRootNode().activeElement === this.box) return;
      const text = boxText(value);
      if (this.box.value !== text) this.box.value = text;
    }
  }

  // --- the other controls ---------------------------------------------------------

  function wrapped(control, id, kind, ...children) {
    const node = html("div", { class: `apx-control ${kind}`.trim() },
      html("label", { for: id, class: "apx-label" }, control.text), ...children);
    if (control.hint && control.kind !== "text") node.title = control.hint;
    return node;
  }

  function choice(control, id, change) {
    const { choices } = control;
    const select = html("select", { id, class: "apx-select" },
      ...choices.map(({ text }, i) => html("option", { value: i }, text)));
    select.addEventListener("change", () => change(choices[select.selectedIndex].value));
    return { node: wrapped(control, id, "apx-pick", select), inputs: [select],
      show(value) {
        select.selectedIndex = choices.findIndex((one) => one.value === value);
      } };
  }

  function check(control, id, change) {
    const box = html("input", { type: "checkbox", id, class: "apx-check" });
    const node = wrapped(control, id, "apx-tick-box");
    node.firstChild.prepend(box);
    box.addEventListener("change", () => change(box.checked));
    return { node, inputs: [box], show(value) { box.checked = value; } };
  }

  function freeText(control, id, change) {
    const box = html("textarea", { id, class: "apx-text", rows: 3, spellcheck: "false",
      placeholder: control.hint });
    box.addEventListener("input", () => change(box.value));
    return { node: wrapped(control, id, "", box), inputs: [box],
      show(value) { if (box.value !== value) box.value = value; } };
  }

  const MAKERS = { choice, check, text: freeText,
    range: (...given) => new RangeControl(...given) };

  /** {node, inputs, show(value)}: the control for one entry of Python's `ranges`. */
  const make = (control, id, change) => MAKERS[control.kind](control, id, change);

  // --- settings as text -------------------------------------------------------------

  const changedOnes = (spec, settings) =>
    spec.controls.filter(({ name, default: usual }) => settings[name] !== usual);

  /** The settings that differ from the default, for a link. */
  function encode(spec, settings) {
    const changed = changedOnes(spec, settings)
      .map(({ name }) => `${name}=${encodeURIComponent(settings[name])}`);
    return `${spec.name}?${changed.join("&")}`;
  }

  /** Settings from a link's text, or null where it belongs to another explorer. */
  function decode(spec, text) {
    const [name, ...query] = text.split("?");
    if (name !== spec.name) return null;
    const given = new URLSearchParams(query.join("?"));
    return Object.fromEntries(spec.controls.map((control) =>
      [control.name, parsed(given.get(control.name), control.default)]));
  }

  function parsed(text, usual) {
    if (text === null || text === "") return usual;
    if (typeof usual === "boolean") return text === "true";
    return typeof usual === "number" ? Number(text) : text;
  }

  function pythonValue(value) {
    if (typeof value === "boolean") return value ? "True" : "False";
    return JSON.stringify(value);
  }

  /** The line of Python that makes this explorer as it is. */
  function pythonLine(spec, settings) {
    const changed = changedOnes(spec, settings)
      .map(({ name }) => `${name}=${pythonValue(settings[name])}`);
    return `${spec.name}(${changed.join(", ")})`;
  }

  /** Why a setting is not allowed, in Python's words, or null. */
  function outside(spec, settings) {
    for (const { name, text, kind, low, high, integer, choices } of spec.controls) {
      const value = settings[name];
      const inside = value >= low && value <= high;
      if (kind === "range" && !(inside && (!integer || Number.isInteger(value)))) {
        const number = integer && inside ? "whole number" : "number";
        return `${text} is ${format(value)}: choose a ${number} from ` +
          `${format(low)} to ${format(high)}.`;
      }
      if (kind === "choice" && !choices.some((one) => one.value === value)) {
        const seen = typeof value === "string" ? `'${value}'` : value;
        const allowed = choices.map((one) => one.value).join(", ");
        return `${text} is ${seen}: choose one of ${allowed}.`;
      }
    }
    return null;
  }

  return Object.freeze({ make, stopsOf, encode, decode, pythonLine, outside });
})();
