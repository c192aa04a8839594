// An explorer's life: settings in, facts, pictures and words out; copies and downloads.
// Before this file stand formulas.js, text.js, plot.js and controls.js, after it the
// explorer's own script, which ends with
//   export default toolkit.explorer({ClassName: {plots, facts, words, draw, ...}})
//   plots    [{key, title, height?, wide?, equal?, margin?}]   in reading order
//   facts    settings -> {name: number}       the names of Python's compute()
//   words    (settings, facts) -> [sentence]  **bold** marks the numbers
//   draw     (settings, facts) -> {plotKey: frame}
// and, where needed,
//   problem  settings -> sentence or null     why this cannot be drawn
//   enabled  settings -> {trait: false}       controls that do nothing now
//   shown    settings -> {trait: value}       what such a control shows in their place
//   spoken   how many of the sentences the live region says (2)
//   results  [trait]: what only a kernel sets, given to all of these with the settings
//   begin    model -> end: what runs as long as the view is there
//   busy     settings -> sentence or "": what a kernel is working on now
//   drawn    settings -> {name: value}       the settings of the picture, where a kernel
//            may still be working on the newest
//
// A frame is {x: axis, y: axis, marks: [mark], at?, alt?}; `at` is the x whose values
// the legend shows while nobody points at the picture.
//   axis   {low, high, label, unit?, symbol?, scale?: "log" | "linear", base?,
//           ticks?: [{value, text}], format?, hidden?}
//   line   {kind: "line", key, x: [], y: [], colour, dash?, width?, name?,
//           end?: text at its right end}
//   dots   {kind: "dots", key, x: [], y: [], colour, marker?, size?, hollow?, name?}
//   bars   {kind: "bars", key, y: [row], x: [length], colour, from?, thick?, texts?: []}
//   stems  {kind: "stems", key, x: [], y: [], colour, from?, width?, name?}
//   band   {kind: "band", key, x?: [from, to], y?: [from, to], colour?, text?}
//   rule   {kind: "rule", key, x? or y?, colour?, dash?, text?, side?: "start" | "end"}
//   area   {kind: "area", key, x: [], y: [], y0: [] or number, colour}
//   arrow  {kind: "arrow", key, from: [x, y], to: [x, y], colour, width?}
//   cells  {kind: "cells", key, rows, columns, values: [row by row], limit}
//   text   {kind: "text", key, x, y, text, anchor?: "start" | "middle" | "end",
//           dx?, dy?, colour?}
// `colour` is 1 to 6 (the palette), "ink" or "faint"; give each line its own `dash`
// (1 to 6) and each set of dots its own `marker`: colour is never the only difference.

const toolkit = (() => {
  const { SVG, freshId, format, percent, plain, superscript, attributes, say, html,
    sentence, geometric, evenly, decades, linearTicks, logTicks } = texts;
  const { stopsOf, encode, decode, pythonLine, outside } = controls;
  const SAVE_EVERY = 250;   // milliseconds between messages to a kernel: each costs Lab a layout
  const SPEAK_AFTER = 600;  // milliseconds of rest before the live region speaks
  const NOTE_FOR = 4000;    // milliseconds that "copied" and "saved" stay

  /** In a notebook a link cannot carry the settings: a line of Python can. */
  const inNotebook = () => document.body.dataset.jpThemeLight !== undefined
    || document.querySelector(".jp-Notebook, .jp-NotebookPanel") !== null;

  // --- light and dark -------------------------------------------------------------

  const SYSTEM = "(prefers-color-scheme: dark)";
  const THEMES = ["data-jp-theme-light", "data-theme", "data-bs-theme"];

  /** JupyterLab's theme, else the page's own, else the system's. */
  function darkNow() {
    const lab = document.body.dataset.jpThemeLight;
    if (lab !== undefined) return lab === "false";
    const { theme, bsTheme } = document.documentElement.dataset;
    const page = theme ?? bsTheme;
    if (page === "dark" || page === "light") return page === "dark";
    return matchMedia(SYSTEM).matches;
  }

  /** Keeps `data-theme` right; returns what stops it. */
  function followTheme(root) {
    const apply = () => attributes(root, { "data-theme": darkNow() ? "dark" : "light" });
    const watcher = new MutationObserver(apply);
    for (const node of [document.body, document.documentElement]) {
      watcher.observe(node, { attributes: true, attributeFilter: THEMES });
    }
    const system = matchMedia(SYSTEM);
    system.addEventListener("change", apply);
    apply();
    return () => { watcher.disconnect(); system.removeEventListener("change", apply); };
  }

  // --- downloads --------------------------------------------------------------------

  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray",
    "stroke-linecap", "stroke-linejoin", "stroke-opacity", "font-family", "font-size",
    "font-weight", "text-anchor", "opacity", "paint-order", "font-variant-numeric"];
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

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

  /** One picture with its title and legend from `y` down: [SVG text, where it ends]. */
  function plotText(plot, y, write) {
    let body = write(14, y + 14, 14, plot.spec.title, 600) + copyText(plot.svg, 12, y + 24);
    let at = y + plot.height + 34;
    if (plot.entries.size && plot.where.textContent) {
      body += write(14, at + 8, 12, plot.where.textContent);
      at += 18;
    }
    for (const { mark, sample, value } of plot.entries.values()) {
      const number = value.textContent ? `: ${value.textContent}` : "";
      body += copyText(sample, 14, at - 2) + write(48, at + 8, 12, mark.name + number);
      at += 18;
    }
    return [body, at + 14];
  }

  /** All pictures under each other, as one SVG that needs no style sheet. */
  function pictureText(root, drawn, title) {
    const { backgroundColor, color, fontFamily } = getComputedStyle(root);
    const font = escaped(fontFamily.replaceAll(/["']/g, ""));
    const write = (x, y, size, text, weight = 400) => `<text x="${x}" y="${y}" ` +
      `fill="${color}" font-family="${font}" font-size="${size}" ` +
      `font-weight="${weight}">${escaped(text)}</text>`;
    let body = write(14, 24, 16, title, 600);
    let y = 34;
    for (const plot of drawn) {
      const [text, end] = plotText(plot, y, write);
      body += text;
      y = end;
    }
    const width = Math.max(...drawn.map((plot) => plot.width)) + 24;
    return `<svg xmlns="${SVG}" width="${width}" height="${y}" ` +
      `viewBox="0 0 ${width} ${y}"><rect width="100%" height="100%" ` +
      `fill="${backgroundColor}"/>${body}</svg>`;
  }

  /** The SVG as a PNG at twice the screen's density. */
  async function pngOf(text) {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const [width, height] = [2 * image.width, 2 * image.height];
    const canvas = html("canvas", { width, height });
    canvas.getContext("2d").drawImage(image, 0, 0, width, height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  function csvText(settings, facts, drawn) {
    const cell = (value) => /[",\n]/.test(String(value))
      ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");
    const rows = [["part", "name", "x", "value"],
      ...Object.entries(settings).map(([name, value]) => ["setting", name, "", value]),
      ...Object.entries(facts).map(([name, value]) => ["fact", name, "", value]),
      ...drawn.flatMap((plot) => plot.rows())];
    return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
  }

  function save(name, data, type) {
    const url = URL.createObjectURL(new Blob([data], { type }));
    html("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  // --- what stands on the page --------------------------------------------------------

  function button(text, name, run) {
    const node = html("button",
      { type: "button", class: "apx-button", "aria-label": name }, text);
    node.addEventListener("click", run);
    return node;
  }

  /** The frame around pictures and controls. */
  class View {
    constructor(spec, drawn, actions) {
      this.spec = spec;
      this.id = freshId();
      this.words = html("div", { class: "apx-words" });
      this.alarm = html("p", { class: "apx-alarm", role: "alert" });
      this.sign = html("p", { class: "apx-sign", role: "status" });
      this.live = html("p", { class: "apx-live", "aria-live": "polite" });
      this.stage = html("div", { class: "apx-stage" }, this.alarm,
        ...drawn.map((plot) => plot.node));
      this.root = html("section", { class: "apx", "data-explorer": spec.name,
        "aria-labelledby": `${this.id}-title` },
      html("div", { class: "apx-frame" }, this.head(actions), this.sign,
        this.stage, this.panel(actions), this.words, this.foot(actions), this.live));
      // JupyterLab would take arrow keys, Enter and letters for shortcuts of its own
      const reached = "input, select, textarea, button, [tabindex]";
      for (const node of this.root.querySelectorAll(reached)) {
        attributes(node, { "data-lm-suppress-shortcuts": "true" });
      }
    }

    head(actions) {
      this.chips = this.spec.presets.map(({ name, settings }) => {
        const chip = html("button", { type: "button", class: "apx-chip" }, name);
        chip.addEventListener("click", () => actions.use(settings));
        return { chip, settings };
      });
      const row = html("div", { class: "apx-chips", role: "group", "aria-label": "Presets" },
        ...this.chips.map(({ chip }) => chip));
      row.hidden = this.chips.length === 0;
      const title = html("p", { class: "apx-title", id: `${this.id}-title` },
        this.spec.title);
      return html("div", { class: "apx-head" }, title, row);
    }

    panel(actions) {
      this.controls = this.spec.controls.map((control, i) => {
        const change = (value) => actions.use({ [control.name]: value });
        return { name: control.name,
          made: controls.make(control, `${this.id}-${i}`, change) };
      });
      return html("div", { class: "apx-panel" },
        ...this.controls.map(({ made }) => made.node));
    }

    foot({ reset, copy, download }) {
      this.done = html("span", { class: "apx-done" });
      this.offered = html("input", { class: "apx-offer", readonly: "",
        "aria-label": "Settings as text" });
      this.offered.hidden = true;
      const copyName = inNotebook() ? "Copy as Python" : "Copy link";
      return html("div", { class: "apx-foot" },
        button("Reset", "Reset all settings", reset),
        button(copyName, copyName, copy),
        button("SVG", "Save the picture as SVG", () => download("svg")),
        button("PNG", "Save the picture as PNG", () => download("png")),
        button("CSV", "Save the numbers as CSV", () => download("csv")),
        this.done, this.offered);
    }

    /** Controls and presets as the settings are. */
    show(settings, shown, enabled) {
      for (const { name, made } of this.controls) {
        made.show(shown[name] ?? settings[name]);
        const off = enabled[name] === false;
        made.node.classList.toggle("apx-off", off);
        for (const input of made.inputs) if (input.disabled !== off) input.disabled = off;
      }
      for (const { chip, settings: preset } of this.chips) {
        const on = Object.entries(preset).every(([name, value]) => settings[name] === value);
        attributes(chip, { "aria-pressed": on });
      }
    }

    tell(sentences) {
      const { words } = this;
      while (words.childNodes.length > sentences.length) words.lastChild.remove();
      sentences.forEach((text, i) => {
        if (!words.childNodes[i]) words.append(html("p"));
        sentence(words.childNodes[i], text);
      });
    }

    /** state: "" (all is well), "problem" (settings) or "error" (ours). */
    complain(text, state) {
      say(this.alarm, text);
      attributes(this.root, { "data-state": state });
    }

    /** Says over the picture what a kernel is doing; "" when it is done. */
    work(text) {
      say(this.sign, text);
      attributes(this.root, { "aria-busy": Boolean(text) });
    }

    note(text) {
      say(this.done, text);
      say(this.live, text);
      clearTimeout(this.clearing);
      this.clearing = setTimeout(() => say(this.done, ""), NOTE_FOR);
    }

    offer(text) {
      this.offered.hidden = false;
      this.offered.value = text;
      this.offered.focus();
      this.offered.select();
    }
  }

  // --- what moves ---------------------------------------------------------------------

  /** One view of one model: draws what the settings say, and tells the model of moves. */
  class Explorer {
    constructor(definition, model, el) {
      Object.assign(this, { definition, model, spec: model.get("_spec"), drawn: null });
      this.settings = this.stored();
      this.plots = definition.plots.map((plot) =>
        new plots.Plot(plot, (text) => this.speak(text)));
      this.view = new View(this.spec, this.plots, { use: (values) => this.use(values),
        reset: () => this.reset(), copy: () => this.copy(),
        download: (kind) => this.download(kind) });
      el.append(this.view.root);
      this.listen();
      this.end = definition.begin?.(model);
      this.refresh();
      this.fromLink();
    }

    listen() {
      const names = this.spec.controls.map(({ name }) => `change:${name}`);
      const changed = () => this.fromModel();
      const linked = () => this.fromLink();
      const results = (this.definition.results ?? []).map((name) => `change:${name}`);
      const arrived = () => this.refresh();
      for (const name of names) this.model.on(name, changed);
      for (const name of results) this.model.on(name, arrived);
      addEventListener("hashchange", linked);
      const sizes = new ResizeObserver(() => this.fit());
      for (const plot of this.plots) sizes.observe(plot.surface);
      const unfollow = followTheme(this.view.root);
      this.unlisten = () => {
        for (const name of names) this.model.off(name, changed);
        for (const name of results) this.model.off(name, arrived);
        removeEventListener("hashchange", linked);
        sizes.disconnect();
        unfollow();
      };
    }

    /** The view goes: nothing listens any more, and the last move is not lost. */
    close() {
      this.unlisten();
      this.end?.();
      cancelAnimationFrame(this.frame);
      clearTimeout(this.speaking);
      clearTimeout(this.saving);
      if (this.saving) this.model.save_changes();
    }

    fit() {
      for (const plot of this.plots) {
        const width = plot.surface.clientWidth;
        if (width && Math.round(width) !== plot.width) plot.resize(width);
      }
    }

    // --- settings in

    stored() {
      return Object.fromEntries(this.spec.controls.map(({ name }) =>
        [name, this.model.get(name)]));
    }

    /** The settings, and with them what a kernel made of them. */
    given() {
      const results = (this.definition.results ?? []).map((name) =>
        [name, this.model.get(name)]);
      return { ...this.settings, ...Object.fromEntries(results) };
    }

    use(values) {
      Object.assign(this.settings, values);
      this.refresh();
      for (const name in values) this.model.set(name, values[name]);
      this.saving ||= setTimeout(() => {
        this.saving = 0;
        this.model.save_changes();
      }, SAVE_EVERY);
    }

    reset() {
      this.use(Object.fromEntries(this.spec.controls.map((control) =>
        [control.name, control.default])));
    }

    fromModel() {
      const now = this.stored();
      const same = Object.keys(now).every((name) => now[name] === this.settings[name]);
      if (same) return;
      this.settings = now;
      this.refresh();
    }

    fromLink() {
      const values = decode(this.spec, location.hash.slice(1));
      if (values) this.use(values);
    }

    // --- pictures and words out

    /** At most two drawings a frame: one at once, one with the latest settings. */
    refresh() {
      if (this.frame) { this.stale = true; return; }
      this.paint();
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        if (this.stale) { this.stale = false; this.refresh(); }
      });
    }

    paint() {
      try {
        this.draw();
      } catch (error) {
        this.fail("Something went wrong in this explorer", error);
      }
    }

    draw() {
      const { definition, view } = this;
      const settings = this.given();
      this.drawn = null;
      view.show(settings, definition.shown?.(settings) ?? {},
        definition.enabled?.(settings) ?? {});
      const problem = outside(this.spec, settings) ?? definition.problem?.(settings);
      view.work(problem ? "" : definition.busy?.(settings) ?? "");
      if (problem) {
        view.complain(problem, "problem");
        return;
      }
      const facts = definition.facts(settings);
      const frames = definition.draw(settings, facts);
      for (const plot of this.plots) plot.draw(frames[plot.spec.key]);
      const words = definition.words(settings, facts);
      view.tell(words);
      view.complain("", "");
      this.drawn = { settings: definition.drawn?.(settings) ?? { ...this.settings }, facts };
      this.announce(plain(words.slice(0, definition.spoken ?? 2).join(" ")));
    }

    fail(what, error) {
      const state = pythonLine(this.spec, this.settings);
      this.view.complain(`${what}: ${error.message}. Settings: ${state}.`, "error");
      console.error(error);
    }

    /** Says the facts when the hand has rested. */
    announce(text) {
      clearTimeout(this.speaking);
      this.speaking = setTimeout(() => say(this.view.live, text), SPEAK_AFTER);
    }

    speak(text) {
      clearTimeout(this.speaking);
      say(this.view.live, text);
    }

    // --- copies

    async copy() {
      const { spec, settings, view } = this;
      const page = location.href.split("#")[0];
      const text = inNotebook() ? pythonLine(spec, settings)
        : `${page}#${encode(spec, settings)}`;
      try {
        await navigator.clipboard.writeText(text);
        view.note("Copied.");
      } catch (refused) {
        view.offer(text);
        view.note("Copy it from this box.");
      }
    }

    /** Saves what is drawn: a refused setting has no picture and no numbers. */
    async download(kind) {
      const name = `${this.spec.name}.${kind}`;
      if (!this.drawn) {
        this.view.note(`Nothing to save: ${this.view.alarm.textContent}`);
        return;
      }
      const { settings, facts } = this.drawn;
      try {
        if (kind === "csv") {
          save(name, csvText(settings, facts, this.plots), "text/csv");
        } else {
          const text = pictureText(this.view.root, this.plots, this.spec.title);
          if (kind === "svg") save(name, text, "image/svg+xml");
          else save(name, await pngOf(text), "image/png");
        }
        this.view.note(`Saved ${name}.`);
      } catch (error) {
        this.fail(`The file ${name} could not be made`, error);
      }
    }
  }

  /** The default export of an explorer's module: draws the class that `_spec` names. */
  function explorer(definitions) {
    return { definitions, toolkit: api, render({ model, el }) {
      const { name } = model.get("_spec");
      if (definitions[name]) {
        const live = new Explorer(definitions[name], model, el);
        return () => live.close();
      }
      const words = `No drawing is called ${name} in this script.`;
      el.append(html("p", { role: "alert" }, words));
      return undefined;
    } };
  }

  const api = Object.freeze({ explorer, format, percent, plain, superscript, geometric,
    evenly, decades, linearTicks, logTicks, stopsOf, encode, decode, outside });
  return api;
})();
