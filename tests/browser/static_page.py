"""A page of explorers without a kernel: stored widget state and a short script."""

import json

from ipywidgets.embed import embed_data

REVIVE = """
for (const view of document.querySelectorAll("[data-model]")) {
  const state = STATE[view.dataset.model].state;
  const heard = {};
  const model = {
    get: (name) => state[name],
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      for (const tell of heard["change:" + name] ?? []) tell();
    },
    on: (event, tell) => (heard[event] ??= []).push(tell),
    off(event, tell) {
      heard[event] = (heard[event] ?? []).filter((other) => other !== tell);
    },
    save_changes: () => { window.saved = (window.saved ?? 0) + 1; },
    send: () => {},
  };
  const style = document.createElement("style");
  style.textContent = state._css;
  document.head.append(style);
  const script = new Blob([state._esm], { type: "text/javascript" });
  const { default: module } = await import(URL.createObjectURL(script));
  view.unmount = await module.render({ model, el: view });
  view.model = model;
}
window.ready = true;
"""


def static_page(explorers, *, body_style="margin: 8px"):
    """HTML in which the given explorers live, with nothing else on the page."""
    stored = embed_data(views=explorers, drop_defaults=False)
    state = json.dumps(stored["manager_state"]["state"]).replace("</", "<\\/")
    views = "".join(f'<div data-model="{explorer.model_id}"></div>'
                    for explorer in explorers)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Explorers</title></head>
<body style="{body_style}"><main><h1>Explorers</h1>{views}</main>
<script type="module">const STATE = {state};{REVIVE}</script></body></html>"""
