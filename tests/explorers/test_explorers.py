"""Every explorer of every lesson: JavaScript against Python, ends, links, output."""

import base64
import importlib
import math
import random

import pytest

from apex_lessons.explorers import base
from apex_lessons.explorers.base import Explorer, Range
from tests.explorers.page import LESSONS, READER, close, run_node, run_states

COUNT = 250
CLASSES = {f"{lesson}.{name}": cls for lesson in LESSONS
           for name, cls in importlib.import_module(
               f"apex_lessons.explorers.{lesson}").explorers().items()}
every_explorer = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)


def one_value(allowed, default, pick):
    """A random value that `ranges` allows: on a stop of the slider or between two."""
    if isinstance(allowed, str):
        return default
    if not isinstance(allowed, Range):
        return pick.choice(allowed)
    low, high, step, log = allowed
    value = (math.exp(pick.uniform(math.log(low), math.log(high))) if log
             else pick.uniform(low, high))
    if isinstance(default, int):
        stop = round(low + round((value - low) / step) * step)
        value = stop if pick.random() < 0.5 else round(value)
        return min(math.floor(high), max(math.ceil(low), value))
    stop = low + round((value - low) / step) * step
    return min(high, max(low, stop)) if pick.random() < 0.5 else value


def random_states(cls, count=COUNT):
    pick = random.Random(cls.__name__)
    defaults = cls().defaults()
    return [{name: one_value(allowed, defaults[name], pick)
             for name, allowed in cls.ranges.items()} for _ in range(count)]


def end_states(cls):
    """Both ends of every setting, all choices, alone and all together; the presets."""
    defaults = cls().defaults()
    ends = {name: [allowed.low, allowed.high] if isinstance(allowed, Range)
            else [defaults[name]] if isinstance(allowed, str) else list(allowed)
            for name, allowed in cls.ranges.items()}
    ends = {name: [type(defaults[name])(value) for value in values]
            for name, values in ends.items()}
    alone = [{**defaults, name: value} for name, values in ends.items()
             for value in values]
    pick = random.Random(1)
    together = [[pick.choice(values) for values in ends.values()] for _ in range(64)]
    presets = [{**defaults, **preset} for preset in cls.presets.values()]
    return alone + [dict(zip(ends, values)) for values in together] + presets


def python_side(explorer, state):
    """Facts, or the words that say why there are none."""
    explorer.set(**state)
    try:
        return explorer.facts(), None
    except ValueError as problem:
        return None, str(problem)


def numbers_in(frame):
    for mark in frame["marks"]:
        for key in ("x", "y", "values", "from", "to"):
            given = mark.get(key)
            for value in given if isinstance(given, list) else [given]:
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    yield mark, key, value


@every_explorer
def test_javascript_and_python_agree_everywhere(cls, tmp_path):
    explorer = cls()
    states = [explorer.defaults(), *random_states(cls), *end_states(cls)]
    drawn = 0
    for state, shown in zip(states, run_states(tmp_path, cls, states, "facts")):
        facts, problem = python_side(explorer, state)
        refused = shown["problem"]
        assert (problem is None) == (refused is None), (state, problem, refused)
        assert {key: type(state[key])(value)
                for key, value in shown["link"].items()} == state
        if problem is None:
            drawn += 1
            assert set(facts) == set(shown["facts"]), state
            for name, value in facts.items():
                gap = abs(shown["facts"][name] - value)
                terms = cls.scales.get(name, 0)  # where they cancel, their size counts
                near = close(shown["facts"][name], value)
                assert near or gap <= 1e-12 * terms, (name, state)
    assert drawn >= 200


@every_explorer
def test_pictures_and_words_are_whole_everywhere(cls, tmp_path):
    states = [*random_states(cls, 60), *end_states(cls)]
    for state, shown in zip(states, run_states(tmp_path, cls, states)):
        if shown["problem"]:
            assert len(shown["problem"]) > 20
            continue
        text = " ".join(shown["words"])
        assert not any(bad in text
                       for bad in ("NaN", "undefined", "null", "no number")), text
        assert {plot["key"] for plot in shown["plots"]} == set(shown["frames"])
        for frame in shown["frames"].values():
            keys = [(mark["kind"], mark["key"]) for mark in frame["marks"]]
            assert len(keys) == len(set(keys)), "two marks share a key"
            for axis in (frame["x"], frame["y"]):
                assert -math.inf < axis["low"] < axis["high"] < math.inf, state
                assert axis.get("scale") != "log" or axis["low"] > 0, state
            for mark, key, value in numbers_in(frame):
                assert not math.isnan(value), (mark["key"], key, state)


@every_explorer
def test_each_line_differs_by_more_than_its_colour(cls, tmp_path):
    for shown in run_states(tmp_path, cls, random_states(cls, 40)):
        for frame in (shown.get("frames") or {}).values():
            lines = [mark for mark in frame["marks"]
                     if mark["kind"] == "line" and "name" in mark]
            looks = [(mark.get("dash", 1), mark.get("width", 2)) for mark in lines]
            assert len(looks) == len(set(looks)), [mark["key"] for mark in lines]


@every_explorer
def test_every_setting_matters(cls, tmp_path):
    """No dead control: each one changes facts, words or picture from some state."""
    explorer = cls()
    starts = [{**explorer.defaults(), **preset}
              for preset in ({}, *cls.presets.values())]
    starts += random_states(cls, 3)
    groups = []
    for name, allowed in cls.ranges.items():
        ends = [allowed.low, allowed.high] if isinstance(allowed, Range) else allowed
        kind = type(explorer.defaults()[name])
        groups += [(name, {**start, name: kind(value)}) for start in starts
                   for value in ends if not isinstance(allowed, str)]
    shown = run_states(tmp_path, cls, [state for _, state in groups], "digest")
    for name in cls.ranges:
        if isinstance(cls.ranges[name], str):
            continue
        seen = {}
        for (changed, state), page in zip(groups, shown):
            if changed == name:
                start = repr({key: value for key, value in state.items()
                              if key != name})
                seen.setdefault(start, set()).add(page["problem"] or page["digest"])
        assert any(len(pages) > 1 for pages in seen.values()), name


@every_explorer
def test_sliders_stop_at_both_ends_and_in_order(cls, tmp_path):
    (shown,) = run_states(tmp_path, cls, [cls().defaults()])
    for name, stops in shown["stops"].items():
        allowed = cls.ranges[name]
        assert stops[0] == allowed.low and stops[-1] == allowed.high, name
        assert all(a < b for a, b in zip(stops, stops[1:])), name
        assert len(stops) > 10, name


@every_explorer
def test_reset_links_and_names(cls):
    explorer = cls()
    for state in random_states(cls, 20):
        explorer.set(**state)
        other = cls()
        other.link = explorer.link
        assert other.settings() == explorer.settings() == state
        assert eval(repr(explorer), {cls.__name__: cls}).settings() == state
        explorer.reset()
        assert explorer.settings() == explorer.defaults()
    assert repr(cls()) == f"{cls.__name__}()"


@every_explorer
def test_python_sees_what_is_outside(cls):
    for name, allowed in cls.ranges.items():
        explorer = cls()
        if isinstance(allowed, Range):
            kind = type(explorer.defaults()[name])
            for value in (kind(allowed.low) - 1, kind(allowed.high) * 2 + 1):
                explorer.set(**{name: value})
                with pytest.raises(ValueError, match="choose a number from"):
                    explorer.facts()
        elif (isinstance(explorer.defaults()[name], str)
              and not isinstance(allowed, str)):
            explorer.set(**{name: "something else"})
            with pytest.raises(ValueError, match="choose one of"):
                explorer.facts()


@every_explorer
def test_the_page_sees_what_is_outside(cls, tmp_path):
    defaults = cls().defaults()
    wrong = [{**defaults, name: value} for name, allowed in cls.ranges.items()
             if isinstance(allowed, Range)
             for value in (allowed.low - 1, allowed.high * 2, math.nan)]
    for shown in run_states(tmp_path, cls, wrong, "facts"):
        assert "choose a number from" in shown["problem"]


# What a link says, as the page reads it.
LINKED = READER + """
const { default: module } = await import(given.script);
const { outside, decode } = module.toolkit;
console.log(written(given.links.map((link) => answer(() => {
  const settings = decode(given.spec, link);
  return { settings, problem: outside(given.spec, settings) };
}))));
"""


def problem_of_link(cls, link):
    explorer = cls()
    try:
        explorer.link = link
        explorer.facts()
    except ValueError as problem:
        return str(problem)
    return None


@every_explorer
def test_a_link_that_says_no_whole_number_is_refused_by_both(cls, tmp_path):
    """3.5 is neither drawn as 3.5 nor as 3; nonsense is no number at all."""
    defaults = cls().defaults()
    whole = [name for name, allowed in cls.ranges.items()
             if isinstance(allowed, Range) and isinstance(defaults[name], int)]
    links = [f"{cls.__name__}?{name}={value}" for name in whole
             for value in (f"{int(cls.ranges[name].low)}.5", "1e-3", "wide", "inf")]
    good = f"{cls.__name__}?{whole[0]}={int(cls.ranges[whole[0]].low)}.0"
    script = tmp_path / "linked.mjs"
    script.write_text(cls._esm, encoding="utf-8")
    shown = run_node(LINKED, {"script": script.as_uri(), "spec": cls()._spec,
                              "links": [*links, good, f"{cls.__name__}?{whole[0]}="]})
    for link, page in zip(links, shown):
        ours, theirs = problem_of_link(cls, link), page["value"]["problem"]
        assert "choose a" in ours and "choose a" in theirs, (link, ours, theirs)
        assert ("whole number" in ours) == ("whole number" in theirs), link
    explorer = cls()
    explorer.link = good
    assert shown[-2]["value"]["settings"] == explorer.settings()
    assert shown[-1]["value"]["settings"] == defaults


@every_explorer
def test_a_choice_that_is_none_names_the_values_a_link_needs(cls, tmp_path):
    defaults = cls().defaults()
    wrong = [{**defaults, name: "foo"} for name, allowed in cls.ranges.items()
             if isinstance(allowed, list) and isinstance(defaults[name], str)]
    explorer = cls()
    for state, page in zip(wrong, run_states(tmp_path, cls, wrong, "facts")):
        assert python_side(explorer, state)[1] == page["problem"]


@every_explorer
def test_one_output_is_alive_a_picture_and_a_sentence(cls):
    data, metadata = cls()._repr_mimebundle_()
    again, _ = cls()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    picture = base64.b64decode(data["image/png"])
    assert picture.startswith(b"\x89PNG") and len(picture) > 5000
    assert data["image/png"] == again["image/png"]
    about = metadata["image/png"]
    assert len(about["alt"]) >= 30 and about["width"] > 300 and about["height"] > 150
    assert about["alt"] in data["text/plain"] and "0x" not in data["text/plain"]
    assert data["text/plain"] == again["text/plain"]


@every_explorer
def test_a_broken_state_still_has_an_output(cls):
    name = next(name for name, allowed in cls.ranges.items()
                if isinstance(allowed, Range))
    explorer = cls()
    explorer.set(**{name: type(explorer.defaults()[name])(cls.ranges[name].low) - 1})
    data, _ = explorer._repr_mimebundle_()
    assert "choose a number from" in data["text/plain"] and "image/png" not in data


@every_explorer
def test_descriptions_are_complete(cls):
    assert cls.title and set(cls.labels) == set(cls.ranges)
    defaults = cls().defaults()
    for name, preset in cls.presets.items():
        assert set(preset) <= set(cls.ranges), name
        explorer = cls()
        explorer.set(**preset)
        explorer.facts()
    for name, allowed in cls.ranges.items():
        assert cls.class_traits()[name].metadata.get("sync"), name
        assert base.why_not(name, defaults[name], allowed) is None
        if isinstance(allowed, Range):
            assert allowed.step > 0 and allowed.low < allowed.high


def test_unknown_settings_are_refused():
    cls = next(iter(CLASSES.values()))
    with pytest.raises(TypeError, match="has no setting"):
        cls(no_such_setting=1)
    with pytest.raises(TypeError, match="has no setting"):
        cls().set(no_such_setting=1)
    with pytest.raises(ValueError, match="this link is for"):
        cls().link = "Somebody?d_model=3"


def test_a_class_without_its_parts_says_so():
    class Bare(Explorer):
        title = "nothing"

    with pytest.raises(NotImplementedError, match="compute"):
        Bare().facts()
