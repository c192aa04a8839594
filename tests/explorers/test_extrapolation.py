"""Lesson 05's explorers: the stored numbers they carry, and the text read live."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch

from apex_lessons import extrapolation
from apex_lessons.explorers import extrapolation as lesson
from apex_lessons.explorers.extrapolation import (
    METHODS,
    SEEDS,
    ExtrapolationExplorer,
    LiveExtrapolation,
    row,
    table,
)
from apex_lessons.extrapolation import band, results, select, stored
from apex_lessons.extrapolation.measuring import TextRows, measure
from tests.explorers.page import READER, close, run_node, run_states

FACTORS = {"matched": None, "static 4": 4.0, "static 8": 8.0}
PLACES = [("recall", "matched", 2048, "yarn"), ("natural", "matched", 4096, "apex1"),
          ("recall", "static 8", 512, "llama3"), ("natural", "static 4", 512, "yarn")]


def settings(cls, **changed):
    return {**cls().defaults(), **changed}


def only(*names, **changed):
    ticked = {name: name in names for name in METHODS}
    return settings(ExtrapolationExplorer, **ticked, **changed)


def explorer(state):
    made = ExtrapolationExplorer()
    made.set(**state)
    return made


# --- the stored numbers travel whole and small ----------------------------------------

def test_every_stored_measurement_is_in_the_table():
    assert len(stored()) == len(SEEDS) * len(table()["rows"])
    for result in stored():
        scaling = ("tuned" if result.tuned else "matched" if result.factor is None
                   else f"static {result.factor:g}")
        place = f"{result.text}/{scaling}/{result.length}/{result.method}"
        loss, entropy, positions, right = table()["rows"][place][
            SEEDS.index(result.seed)]
        assert loss / 10_000 == result.loss, place
        assert entropy / 10_000 == result.entropy, place
        assert len(positions) == len(result.by_position)
        for ours, theirs in zip(positions, result.by_position, strict=True):
            assert abs(ours / 1000 - theirs) <= 0.00051, place
        if result.text == "recall":
            answers = table()["answers"][str(result.length)]
            assert list(zip(right, answers)) == list(result.by_distance), place


def test_the_table_is_light_enough_to_travel():
    text = json.dumps(table(), separators=(",", ":"))
    assert len(text) <= 60_000 and text in ExtrapolationExplorer._esm
    assert text not in LiveExtrapolation._esm


@pytest.fixture
def other_results(monkeypatch):
    """Runs the packing on other measurements than the stored ones."""
    def pack(measured):
        monkeypatch.setattr(results, "stored", lambda: tuple(measured))
        return table.__wrapped__()
    return pack


def test_a_seed_that_is_missing_is_noticed(other_results):
    with pytest.raises(ValueError, match="needs each of the seeds"):
        other_results(stored()[1:])


def test_methods_measured_on_different_texts_are_noticed(other_results):
    changed = results.Result(**{**vars(select(method="yarn", length=1024)[0]),
                                "by_distance": ((1, 2),) * 8})
    rest = [one for one in stored() if one != select(method="yarn", length=1024)[0]]
    with pytest.raises(ValueError, match="other texts"):
        other_results([changed, *rest])


# --- facts are the measurements -------------------------------------------------------

@pytest.mark.parametrize("text, scaling, length, method", PLACES)
def test_facts_are_the_bands_of_the_stored_results(text, scaling, length, method):
    facts = explorer(only(method, text=text, scaling=scaling, length=length,
                          at=300)).facts()
    found = select(method=method, length=length, text=text, factor=FACTORS[scaling])
    losses = band(one.loss for one in found)
    assert (facts[method], facts[f"{method}_least"], facts[f"{method}_most"]) == (
        pytest.approx((losses.mean, losses.low, losses.high), rel=1e-12))
    there = band(one.by_position[300 // 128] for one in found)
    assert facts[f"{method}_there"] == pytest.approx(there.mean, abs=0.0006)
    assert (facts["from"], facts["to"]) == (256, 383)


def test_accuracies_and_entropies_are_the_stored_ones():
    found = select(method="yarn", length=4096)
    state = only("yarn", "none", length=4096, at=3000)
    by_distance = explorer({**state, "view": "distance"}).facts()
    accuracy = band(one.accuracy for one in found).mean
    assert by_distance["yarn"] == pytest.approx(accuracy, abs=0.0001)
    shares = [one.by_distance[7][0] / one.by_distance[7][1] for one in found]
    assert by_distance["yarn_there"] == pytest.approx(band(shares).mean, rel=1e-12)
    assert (by_distance["from"], by_distance["to"]) == (2048, 4095)
    entropy = explorer({**state, "view": "entropy"}).facts()
    assert entropy["yarn"] == pytest.approx(band(one.entropy for one in found).mean)


def test_one_seed_alone_is_that_seeds_number():
    for seed, result in zip(SEEDS, select(method="yarn", length=2048), strict=True):
        facts = explorer(only("yarn", seed=str(seed))).facts()
        assert facts["yarn"] == facts["yarn_least"] == facts["yarn_most"] == result.loss


def test_on_short_text_all_methods_are_plain_unless_a_factor_is_set():
    facts = explorer(only(*METHODS, length=512)).facts()
    assert {facts[name] for name in METHODS} == {facts["plain"]}
    static = explorer(only(*METHODS, scaling="static 8")).facts()
    assert static["none"] == static["dynamic_ntk"] == static["plain"]
    assert static["yarn"] != static["plain"] and static["length"] == 512


def test_ahead_counts_seeds_and_not_overlaps():
    for first, second in (("yarn", "none"), ("ntk_aware", "dynamic_ntk")):
        pairs = zip(select(method=first, length=4096),
                    select(method=second, length=4096), strict=True)
        wins = sum(a.loss < b.loss for a, b in pairs)
        facts = explorer(only(first, second, length=4096)).facts()
        expected = wins if facts[first] <= facts[second] else len(SEEDS) - wins
        assert facts["ahead"] == expected


# --- what is missing is said ----------------------------------------------------------

def test_what_was_not_measured_is_said_in_words(tmp_path):
    some = only("yarn", "llama3", scaling="tuned")
    none = only("llama3", scaling="tuned")
    wrong_length = only("yarn", scaling="tuned", length=1024)
    shown = run_states(tmp_path, ExtrapolationExplorer,
                       [some, none, wrong_length, only()])
    assert "not drawn: Llama 3." in " ".join(shown[0]["words"])
    assert shown[0]["facts"]["missing"] == explorer(some).facts()["missing"] == 1
    assert "not measured at 2,048 bytes" in shown[1]["problem"]
    for page, state in zip(shown, [some, none, wrong_length, only()]):
        assert page["problem"] == explorer(state).problem()
    for state in (none, wrong_length, only()):
        with pytest.raises(ValueError, match="were not measured|No method"):
            explorer(state).facts()


# --- pictures and words ---------------------------------------------------------------

def marks(shown, picture, kind):
    return {mark["key"]: mark for mark in shown["frames"][picture]["marks"]
            if mark["kind"] == kind}


def test_lines_lie_in_their_bands_and_the_trained_length_is_marked(tmp_path):
    states = [only("none", "yarn", view=view, length=4096, seed=seed)
              for view in lesson.VIEWS for seed in ("mean", "0")]
    for state, shown in zip(states, run_states(tmp_path, ExtrapolationExplorer,
                                               states)):
        lines, areas = (marks(shown, "curves", kind) for kind in ("line", "area"))
        assert set(lines) == {"none", "yarn"}
        assert len(areas) == (2 if state["seed"] == "mean" else 0)
        for key, area in areas.items():
            line = lines[key.split(",")[0]]
            assert line["x"] == area["x"]
            for low, value, high in zip(area["y0"], line["y"], area["y"], strict=True):
                assert low <= value <= high and low < high
        rules = marks(shown, "curves", "rule")
        marked = [rule["x"] for rule in rules.values() if "trained" in rule["key"]]
        assert marked == ([512] if state["view"] in ("position", "distance") else [])


def test_the_curves_are_the_stored_curves(tmp_path):
    states = [only("yarn"), only("yarn", view="distance", length=1024),
              only("yarn", view="length"), only("yarn", view="factor", text="natural"),
              only("yarn", view="entropy", scaling="tuned")]
    for state, shown in zip(states, run_states(tmp_path, ExtrapolationExplorer,
                                               states)):
        line = marks(shown, "curves", "line")["yarn"]
        points = explorer(state).curve("yarn")
        times = 100 if state["view"] == "distance" else 1
        assert close(line["x"], [x for x, _ in points])
        assert close(line["y"], [times * sum(v) / len(v) for _, v in points])
    lengths = [band(one.loss for one in select(method="yarn", length=length)).mean
               for length in results.LENGTHS]
    assert [sum(v) / len(v) for _, v in explorer(states[2]).curve("yarn")] == (
        pytest.approx(lengths))


def test_zooming_in_leaves_out_what_lies_far_off(tmp_path):
    """Without training interpolation loses more than twice what YaRN does."""
    states = [only("yarn", "position_interpolation", zoom=zoom)
              for zoom in (False, True)]
    whole, zoomed = run_states(tmp_path, ExtrapolationExplorer, states)
    far = whole["facts"]["position_interpolation"]
    assert far > 1.25 * whole["facts"]["yarn"]
    assert f"picture: position interpolation (**{far:.3f}**)" in zoomed["words"][-2]
    assert "Beyond" not in " ".join(whole["words"])
    for shown, state, inside in ((whole, states[0], True), (zoomed, states[1], False)):
        curves, ranking = shown["frames"]["curves"], shown["frames"]["ranking"]
        yarn, other = (marks(shown, "curves", "line")[name]["y"]
                       for name in ("yarn", "position_interpolation"))
        assert curves["y"]["low"] < min(yarn) and max(yarn) < curves["y"]["high"]
        assert (max(other) < curves["y"]["high"]) == inside
        assert (far < ranking["x"]["high"]) == inside
        low, high = explorer(state).heights()
        assert close(low, curves["y"]["low"]) and close(high, curves["y"]["high"])
    assert shown["facts"] == whole["facts"]


def test_words_carry_the_facts(tmp_path):
    states = [only("none", "yarn"), only("none", "yarn", view="distance")]
    loss, distance = run_states(tmp_path, ExtrapolationExplorer, states)
    facts = loss["facts"]
    for name in ("yarn", "none"):
        told = (f"**{facts[name]:.3f}** (from {facts[name + '_least']:.3f} to "
                f"{facts[name + '_most']:.3f})")
        assert told in loss["words"][0]
    assert "4 times the trained length" in loss["words"][0]
    assert lesson.ALL_SEEDS in loss["words"][0]
    assert "In bytes 1,024 to 1,151" in " ".join(loss["words"])
    assert f"{100 * distance['facts']['yarn']:.3g}%" in distance["words"][0]
    assert "**12.5%**" in " ".join(distance["words"])


# --- the text that is read live -------------------------------------------------------

@pytest.fixture(scope="module")
def live():
    return LiveExtrapolation(length=640, method="yarn", seed=SEEDS[0], draw=3)


def by_hand(length, method, factor=None, seed=SEEDS[0], draw=3):
    made = extrapolation.recall(length, 1, torch.Generator().manual_seed(draw))
    decoder = extrapolation.load_checkpoint(seed)
    text = TextRows(made.ids, made.distance)
    return measure(decoder, text, method, factor)


def test_it_reads_what_measure_reads(live):
    live.set(length=640, follow=True, method="yarn")
    for change, method, factor in (({}, "yarn", None),
                                   ({"follow": False, "factor": 8.0}, "yarn", 8.0),
                                   ({"method": "dynamic_ntk"}, "dynamic_ntk", None)):
        live.set(**change)
        expected, facts = by_hand(640, method, factor), live.facts()
        assert facts["loss"] == pytest.approx(expected.loss, abs=1e-4)
        assert live._result["by_position"] == pytest.approx(expected.by_position,
                                                            abs=1e-4)
        right, answers = map(sum, zip(*expected.by_distance, strict=True))
        assert (facts["right"], facts["answers"]) == (right, answers)
        assert facts["factor"] == (factor or 640 / 512)
        plain = by_hand(640, "none")
        assert facts["plain_loss"] == pytest.approx(plain.loss, abs=1e-4)
    assert "stored" not in facts
    live.set(method="yarn", length=512, follow=True)
    assert live.facts()["stored"] == select(method="yarn", length=512)[0].loss


def test_a_change_is_read_once_and_nonsense_never(monkeypatch, live):
    read = []
    whole = lesson.read_text
    monkeypatch.setattr(lesson, "read_text",
                        lambda **given: read.append(given) or whole(**given))
    live.set(length=576, method="ntk_aware", draw=7)
    assert [one["length"] for one in read] == [576] and read[0] == live.settings()
    live.set(length=576)
    live.length = 10**9
    with pytest.raises(ValueError, match="choose a number from 512 to 4096"):
        live.facts()
    live.seed = 77
    live.length = 576
    with pytest.raises(ValueError, match="choose one of"):
        live.facts()
    assert len(read) == 1
    live.set(seed=SEEDS[0])
    assert len(read) == 1 and live.facts()["length"] == 576


def test_a_broken_checkpoint_is_said_in_words(monkeypatch):
    def broken(seed):
        raise ValueError("the hash differs")

    monkeypatch.setattr(lesson, "_model", broken)
    explorer = LiveExtrapolation()
    with pytest.raises(ValueError, match="could not be read: the hash differs"):
        explorer.facts()
    data, _ = explorer._repr_mimebundle_()
    assert "the hash differs" in data["text/plain"] and "image/png" not in data


def test_a_page_that_asks_is_answered(live):
    live._asked = live._answered + 1
    assert live._answered == live._asked > 0


def shown_live(folder, live, **changed):
    """What the page shows for a state; ``changed`` the kernel has not read yet."""
    state = {**live.settings(), **changed, "_result": live._result,
             "_silent": changed.pop("_silent", False)}
    (shown,) = run_states(folder, LiveExtrapolation, [state])
    return shown


def test_live_javascript_and_python_agree(tmp_path, live):
    for change in ({"length": 1024, "method": "yarn", "follow": True},
                   {"length": 512, "method": "none"}, {"method": "apex1_scores"},
                   {"follow": False, "factor": 2.5}):
        live.set(**change)
        shown = shown_live(tmp_path, live)
        assert shown["problem"] is None and shown["facts"] == live.facts()
        assert f"**{live.facts()['loss']:.3f}**" in shown["words"][0]
        dots = marks(shown, "answers", "dots")
        assert len(dots["found"]["x"]) == live.facts()["right"]
        total = len(dots["found"]["x"]) + len(dots["missed"]["x"])
        assert total == live.facts()["answers"]


def test_the_page_says_when_no_kernel_has_answered(tmp_path, live):
    live.set(**live.defaults())
    heard = " ".join(shown_live(tmp_path, live)["words"])
    silent = " ".join(shown_live(tmp_path, live, _silent=True)["words"])
    assert "needs a kernel" in silent and "Read twice" not in silent
    assert "needs a kernel" not in heard and "Read twice" in heard


def test_live_output_is_alive_a_picture_and_a_sentence(live):
    live.set(**live.defaults())
    data, metadata = live._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert len(data["image/png"]) > 5000
    alt, facts = metadata["image/png"]["alt"], live.facts()
    assert data["text/plain"] == f"[explorer] {alt}"
    assert f"{facts['loss']:.2f} nats a byte" in alt
    assert f"{facts['right']} of {facts['answers']} answers" in alt


def test_live_links_reset_and_presets(live):
    for preset in LiveExtrapolation.presets.values():
        live.set(**preset)
        other = SimpleNamespace(link=live.link)
        live.reset()
        assert live.settings() == live.defaults()
        live.link = other.link
        assert {name: live.settings()[name] for name in preset} == preset
        assert live.facts()["length"] == preset["length"]
    assert set(live.labels) == set(live.ranges)


# A model without kernel, its clock in our hand: what it is told and what it then shows.
ASKING = READER + """
const { default: module } = await import(given.script);
const live = module.definitions.LiveExtrapolation;
const state = { ...given.state };
const heard = {};
const model = { get: (name) => state[name], on(event, tell) {
  (heard[event] ||= new Set()).add(tell);
}, off: (event, tell) => heard[event].delete(tell), save_changes() {},
set(name, value) {
  if (state[name] === value) return;
  state[name] = value;
  for (const tell of heard[`change:${name}`] ?? []) tell();
} };
let clock = [];
globalThis.setTimeout = (run) => clock.push({ run });
globalThis.clearTimeout = (id) => { if (clock[id - 1]) clock[id - 1].run = () => {}; };
const wait = () => { const now = clock; clock = []; for (const { run } of now) run(); };
const seen = [];
const note = (what) => seen.push([what, state._silent, live.busy(state), clock.length]);
const end = live.begin(model);
note("asked");
if (given.kernel) model.set("_answered", state._asked);
wait();
note("waited");
model.set("length", 1024);
note("moved");
if (given.kernel) {
  model.set("_result", { ...state._result, settings:
    { ...state._result.settings, length: 1024 } });
  model.set("_answered", state._asked);
}
wait();
note("waited again");
end();
note("ended");
const listeners = Object.values(heard).reduce((sum, set) => sum + set.size, 0);
console.log(written({ seen, listeners }));
"""


@pytest.mark.parametrize("kernel", [True, False])
def test_the_page_asks_waits_and_gives_up(tmp_path, live, kernel):
    live.set(**live.defaults())
    script = tmp_path / "live.mjs"
    script.write_text(LiveExtrapolation._esm, encoding="utf-8")
    state = {**live.settings(), "_result": live._result, "_asked": 0, "_answered": 0,
             "_silent": False}
    told = run_node(ASKING, {"script": script.as_uri(), "state": state,
                             "kernel": kernel})
    silent = {what: gone for what, gone, _, _ in told["seen"]}
    busy = {what: words for what, _, words, _ in told["seen"]}
    assert silent == {"asked": False, "waited": not kernel, "moved": not kernel,
                      "waited again": not kernel, "ended": not kernel}
    assert busy["asked"] == busy["waited"] == busy["waited again"] == ""
    assert busy["moved"].startswith("Reading 1,024 bytes …") == kernel
    assert told["listeners"] == 0


def test_explorers_without_kernel_are_named():
    assert lesson.explorers() == {"ExtrapolationExplorer": ExtrapolationExplorer}
    assert row("yarn", "recall", "tuned", 1024) is None
