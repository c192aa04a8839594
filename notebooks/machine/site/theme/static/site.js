// What every page does beside being read: theme, menu, copying, and live explorers.
(() => {
  const root = document.documentElement;
  const all = (selector) => [...document.querySelectorAll(selector)];

  // --- light and dark -------------------------------------------------------------

  const system = matchMedia("(prefers-color-scheme: dark)");
  const paper = matchMedia("print");

  function stored(name) {
    try { return localStorage.getItem(name); } catch { return null; }
  }

  function store(name, value) {
    try { localStorage.setItem(name, value); } catch { /* kept for this page only */ }
  }

  function themes() {
    const button = document.querySelector(".theme");
    let chosen = stored("theme");
    const apply = () => {
      const theme = chosen ?? (system.matches ? "dark" : "light");
      root.dataset.theme = paper.matches ? "light" : theme;
      button.setAttribute("aria-pressed", theme === "dark");
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      chosen = root.dataset.theme === "dark" ? "light" : "dark";
      store("theme", chosen);
      apply();
    });
    system.addEventListener("change", apply);
    paper.addEventListener("change", apply);
    apply();
  }

  // --- the menu on a narrow screen --------------------------------------------------

  function menu() {
    const button = document.querySelector(".open-menu");
    const pages = document.getElementById("menu");
    const set = (open) => {
      button.setAttribute("aria-expanded", open);
      pages.classList.toggle("open", open);
    };
    button.hidden = false;
    button.addEventListener("click", () =>
      set(button.getAttribute("aria-expanded") !== "true"));
    pages.addEventListener("click", (event) => { if (event.target.closest("a")) set(false); });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && pages.classList.contains("open")) {
        set(false);
        button.focus();
      }
    });
  }

  // --- boxes that scroll --------------------------------------------------------------

  /** What is wider than its box is reached with the keyboard and fades at its edge. */
  function scrollers() {
    const check = (box) => {
      const hidden = box.scrollWidth - box.clientWidth;
      if (hidden > 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
      box.classList.toggle("more-left", hidden > 1 && box.scrollLeft > 1);
      box.classList.toggle("more-right", hidden > 1 && box.scrollLeft < hidden - 1);
    };
    const watcher = new ResizeObserver((entries) =>
      entries.forEach(({ target }) => check(target)));
    all(".scroll, article pre").forEach((box) => {
      watcher.observe(box);
      box.addEventListener("scroll", () => check(box), { passive: true });
    });
  }

  // --- copying code -------------------------------------------------------------------

  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    return undefined;
  }

  function copyButtons() {
    for (const code of all(".cell_input, article > section div[class^='highlight-']")) {
      if (code.parentElement.closest(".cell_input, .cell_output")) continue;
      const button = Object.assign(document.createElement("button"),
        { type: "button", className: "copy", textContent: "Copy" });
      button.setAttribute("aria-label", "Copy this code");
      button.addEventListener("click", async () => {
        await copy(code.querySelector("pre").textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      code.append(button);
    }
  }

  // --- live explorers -------------------------------------------------------------------

  /** An explorer's settings, as a running kernel would hold them. */
  function modelOf(state) {
    const heard = {};
    return {
      get: (name) => state[name],
      set(name, value) {
        if (state[name] === value) return;
        state[name] = value;
        for (const tell of heard[`change:${name}`] ?? []) tell();
      },
      on: (event, tell) => (heard[event] ??= []).push(tell),
      off: (event, tell) => { heard[event] = (heard[event] ?? []).filter((t) => t !== tell); },
      save_changes() {},
      send() {},
    };
  }

  const imported = {};

  /** A module from its stored text: a page opened from a folder may not load a file. */
  function moduleOf(name) {
    const { script, style } = globalThis.modules[name];
    imported[name] ??= (() => {
      const sheet = document.createElement("style");
      sheet.textContent = style;
      document.head.append(sheet);
      return import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
    })();
    return imported[name];
  }

  async function revive(box) {
    const state = JSON.parse(box.querySelector("script").textContent);
    const { default: module } = await moduleOf(box.dataset.module);
    const place = document.createElement("div");
    box.model = modelOf(state);
    await module.initialize?.({ model: box.model });
    box.append(place);
    await module.render({ model: box.model, el: place });
    box.classList.add("alive");
  }

  /** The name in a link; one that is cut off within a letter stays as it is. */
  function decoded(name) {
    try { return decodeURIComponent(name); } catch { return name; }
  }

  /** A link that holds an explorer's settings also leads to it. */
  function goToLinked() {
    const name = location.hash.slice(1).split("?")[0];
    if (!name) return;
    const linked = document.querySelector(`[data-explorer="${CSS.escape(name)}"]`)
      ?? document.getElementById(decoded(name));
    linked?.scrollIntoView();
  }

  async function explorers() {
    const boxes = all(".live");
    for (const box of boxes) {
      await new Promise((done) => setTimeout(done));  // the page is painted in between
      try {
        await revive(box);
      } catch (error) {
        const words = document.createElement("p");
        words.role = "alert";
        words.textContent = `This explorer does not start here: ${error.message}`;
        box.append(words);
        console.error(error);
      }
    }
    root.dataset.ready = "";
    if (boxes.length) goToLinked();
  }

  // --- code that can be folded away -----------------------------------------------------

  function foldCode() {
    const button = document.querySelector(".fold");
    if (!button) return;
    const set = (folded) => {
      root.classList.toggle("no-code", folded);
      button.setAttribute("aria-pressed", folded);
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      const folded = button.getAttribute("aria-pressed") !== "true";
      store("code", folded ? "folded" : "shown");
      set(folded);
    });
    set(stored("code") === "folded");
  }

  // --- where the reader is ----------------------------------------------------------------

  /** The menu marks the section that is being read. */
  function followSections() {
    const links = new Map(all("#menu .contents a").map((link) => [link.hash.slice(1), link]));
    const watcher = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const link = links.get(target.id);
        if (isIntersecting) link.setAttribute("aria-current", "location");
        else link.removeAttribute("aria-current");
      }
    }, { rootMargin: "-12% 0px -87% 0px" });
    for (const section of all("article section section[id]")) {
      if (links.has(section.id)) watcher.observe(section);
    }
  }

  /** A site from a server is kept for the time without a network. */
  function keepOffline() {
    if (!location.protocol.startsWith("http")) return;
    navigator.serviceWorker?.register("offline.js").catch((error) =>
      console.warn(`This site is not kept for offline reading: ${error.message}`));
  }

  themes();
  foldCode();
  followSections();
  keepOffline();
  menu();
  scrollers();
  copyButtons();
  addEventListener("hashchange", goToLinked);
  addEventListener("DOMContentLoaded", explorers);
})();
