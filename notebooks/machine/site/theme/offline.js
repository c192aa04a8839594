// A site that came from a server stays readable without a network: what is newest where
// there is one, what was kept where there is none. Pages, style, explorers and pictures are
// kept at the first visit.
const KEPT = "/* version */";
const FILES = [/* files */];

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(FILES)));
});

addEventListener("activate", (event) => {
  const outdated = (name) => name.startsWith("lessons-") && name !== KEPT;
  event.waitUntil(caches.keys()
    .then((names) => Promise.all(names.filter(outdated).map((name) => caches.delete(name))))
    .then(() => clients.claim()));
});

async function answer(request) {
  const kept = await caches.open(KEPT);
  try {
    const fresh = await fetch(request);
    if (fresh.ok) await kept.put(request, fresh.clone());
    return fresh;
  } catch (error) {
    const found = await kept.match(request, { ignoreSearch: true });
    if (found) return found;
    throw error;
  }
}

addEventListener("fetch", (event) => {
  const { request } = event;
  const ours = new URL(request.url).origin === location.origin;
  if (request.method === "GET" && ours) event.respondWith(answer(request));
});
