// The search page: every section whose words hold all that was typed, the best first.
(() => {
  const box = document.getElementById("words");
  const count = document.getElementById("count");
  const results = document.getElementById("results");
  const MOST = 40;      // results shown
  const AROUND = 90;    // characters of text on either side of a find
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const ready = globalThis.sections.map((one) =>
    ({ ...one, name: plain(`${one.title} ${one.page}`), words: plain(one.text) }));

  const times = (text, word) => text.split(word).length - 1;

  /** A find in a title counts as much as twenty in the text. */
  function score(section, words) {
    let total = 0;
    for (const word of words) {
      const found = 20 * times(section.name, word) + Math.min(times(section.words, word), 10);
      if (!found) return 0;
      total += found;
    }
    return total;
  }

  function node(tag, text, attributes = {}) {
    const made = Object.assign(document.createElement(tag), attributes);
    made.append(text);
    return made;
  }

  /** Where the first whole word from `place` on begins. */
  function wordAt(text, place) {
    const space = place ? text.indexOf(" ", place - 1) : -1;
    return space >= 0 && space < place + AROUND ? space + 1 : place;
  }

  /** Where the last whole word before `place` ends. */
  function wordEnd(text, place) {
    if (place >= text.length) return text.length;
    const space = text.lastIndexOf(" ", place);
    return space > place - AROUND ? space : place;
  }

  /** The text around the first find, with the finds marked. */
  function excerpt(section, words) {
    const places = words.map((word) => section.words.indexOf(word)).filter((at) => at >= 0);
    const from = Math.max(0, Math.min(...places, Infinity) - AROUND);
    const start = wordAt(section.text, Number.isFinite(from) ? from : 0);
    const end = wordEnd(section.text, start + 2 * AROUND + 40);
    const text = section.text.slice(start, end);
    const paragraph = node("p", start ? "… " : "");
    const safe = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    for (const part of text.split(new RegExp(`(${safe.join("|")})`, "i"))) {
      paragraph.append(words.includes(plain(part)) ? node("mark", part) : part);
    }
    if (end < section.text.length) paragraph.append(" …");
    return paragraph;
  }

  function show() {
    const words = plain(box.value).split(/\s+/).filter(Boolean);
    results.replaceChildren();
    if (!words.length) { count.textContent = ""; return; }
    const found = ready.map((section) => ({ section, points: score(section, words) }))
      .filter(({ points }) => points).sort((a, b) => b.points - a.points);
    count.textContent = found.length === 1 ? "1 section" : `${found.length} sections`;
    for (const { section } of found.slice(0, MOST)) {
      const entry = node("li", node("a", section.title, { href: section.link }));
      entry.append(node("p", section.page, { className: "where" }), excerpt(section, words));
      results.append(entry);
    }
  }

  box.value = new URLSearchParams(location.search).get("q") ?? "";
  box.addEventListener("input", show);
  box.form.addEventListener("submit", (event) => event.preventDefault());
  show();
  box.focus();
})();
