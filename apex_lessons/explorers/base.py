"""The pattern of every explorer: a few settings, a picture, the facts in words.

How to write one (``embedding.py`` and ``embedding.js`` are the example to copy):

1. ``apex_lessons/explorers/<lesson>.py``: a subclass of `Explorer` with ``title``,
   ``script = "<lesson>.js"`` and one synced trait per setting, such as
   ``traitlets.Int(512).tag(sync=True)``. ``ranges`` says for each trait, in the order
   of the page, ``Range(low, high, step, log)``, a list of choices (``[False, True]`` is
   a check box) or, for free text, a hint. ``labels = {trait: Label("Width d", ...)}``,
   ``presets = {"Gemma 2 2B": {"d_model": 2304, ...}}``.
2. ``compute()`` returns ``{name: number}`` from ``apex_lessons`` functions; the public
   ``facts()`` checks the settings first. ``problem()`` says in words why a combination
   cannot be drawn (None: it can). ``figure()`` draws the same state with matplotlib,
   ``alt()`` says what it shows. ``explorers()`` returns ``{name: class}``.
3. ``<lesson>.js`` is joined after ``formulas.js`` and the toolkit into one module. It
   ends with ``export default toolkit.explorer({EmbeddingScale: {...}})``: one entry per
   class, each with ``plots``, ``facts(settings)``, ``words(settings, facts)``,
   ``draw(settings, facts)`` and, where needed, ``problem(settings)`` and
   ``enabled(settings)``. ``facts`` has the names of ``compute()`` and calls
   ``formulas``. What ``draw`` may return stands at the top of ``toolkit.js``.
4. Tests: ``tests/explorers/`` and ``tests/browser/`` take every class that
   ``explorers()`` names: JavaScript against Python at random settings, both ends,
   links, the output, and a real browser.
"""

from __future__ import annotations

import base64
import math
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl, urlencode

import anywidget
import traitlets

HERE = Path(__file__).parent
PIECES = ("formulas.js", "text.js", "plot.js", "controls.js", "toolkit.js")


class Range(NamedTuple):
    """A number from ``low`` to ``high``; ``log`` spaces the slider evenly in ratios."""

    low: float
    high: float
    step: float
    log: bool = False


class Label(NamedTuple):
    """What a reader sees beside a control: name, unit, a hint, names of the choices."""

    text: str
    unit: str = ""
    hint: str = ""
    choices: dict | None = None


def read(name: str) -> str:
    """The text of a script or style sheet beside this module."""
    return (HERE / name).read_text(encoding="utf-8")


def why_not(label: str, value: Any, allowed: Range | list | str) -> str | None:
    """Why ``value`` is not one of ``allowed``, in words; None where it is.

    >>> why_not("Width d", 3, Range(64, 8192, 2))
    'Width d is 3: choose a number from 64 to 8192.'
    """
    if isinstance(allowed, Range):
        # written so that NaN is refused as well
        if isinstance(value, bool) or not allowed.low <= value <= allowed.high:
            return (f"{label} is {value:g}: choose a number from "
                    f"{allowed.low:g} to {allowed.high:g}.")
    elif isinstance(allowed, (list, tuple)) and value not in allowed:
        return f"{label} is {value!r}: choose one of {', '.join(map(str, allowed))}."
    return None


class Explorer(anywidget.AnyWidget):
    """A live picture whose settings are synced traits; see the module's docstring."""

    title: ClassVar[str] = ""
    script: ClassVar[str] = ""
    ranges: ClassVar[dict[str, Range | list | str]] = {}
    labels: ClassVar[dict[str, Label]] = {}
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    # facts whose terms may cancel: the terms' size
    scales: ClassVar[dict[str, float]] = {}
    _spec = traitlets.Dict().tag(sync=True)

    def __init_subclass__(cls, **kwargs) -> None:
        # only where a script is named: adding traits makes a nameless subclass as well
        if "script" in cls.__dict__:
            cls._esm = "\n".join(read(piece) for piece in (*PIECES, cls.script))
            cls._css = read("explorer.css")
        super().__init_subclass__(**kwargs)

    def __init__(self, **settings) -> None:
        unknown = sorted(set(settings) - set(self.trait_names()))
        if unknown:
            raise TypeError(self._no_setting(", ".join(unknown)))
        super().__init__(**settings)
        self._spec = self._description()

    # --- settings ---------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """The settings as they are now."""
        return {name: getattr(self, name) for name in self.ranges}

    def defaults(self) -> dict[str, Any]:
        """The settings as they are when the explorer opens."""
        return {name: self.traits()[name].default(self) for name in self.ranges}

    def reset(self) -> None:
        """Put every setting back to its default."""
        self.set(**self.defaults())

    def set(self, **settings) -> None:
        """Change several settings in one step."""
        with self.hold_sync():
            for name, value in settings.items():
                if name not in self.ranges:
                    raise TypeError(self._no_setting(name))
                setattr(self, name, value)

    def _no_setting(self, name: str) -> str:
        return (f"{type(self).__name__} has no setting {name}; "
                f"its settings are {', '.join(self.ranges)}")

    @property
    def link(self) -> str:
        """The settings that differ from the default, as in a link of the web page."""
        changed = {name: _plain(value) for name, value in self.settings().items()
                   if value != self.defaults()[name]}
        return f"{type(self).__name__}?{urlencode(changed)}"

    @link.setter
    def link(self, text: str) -> None:
        name, _, query = text.partition("?")
        if name != type(self).__name__:
            raise ValueError(f"this link is for {name!r}, not for "
                             f"{type(self).__name__}")
        given = {key: self._parse(key, value) for key, value in parse_qsl(query)}
        self.set(**{**self.defaults(), **given})

    def _parse(self, name: str, text: str) -> Any:
        default = self.defaults().get(name)
        if isinstance(default, bool):
            return text == "true"
        if isinstance(default, (int, float)):
            number = _number(text)
            if isinstance(default, int) and not number.is_integer():
                raise ValueError(self._fraction(name, number))
            return type(default)(number)
        return text

    def _fraction(self, name: str, number: float) -> str:
        """Why a number that is not whole is refused where whole numbers are meant."""
        label, allowed = self._label(name).text, self.ranges[name]
        words = why_not(label, number, allowed)
        return words or (f"{label} is {number:g}: choose a whole number from "
                         f"{allowed.low:g} to {allowed.high:g}.")

    # --- facts ------------------------------------------------------------------

    def facts(self) -> dict[str, float]:
        """The numbers behind the picture. Raises ValueError, in words, where the
        settings are outside their ranges or do not go together."""
        problem = self._outside() or self.problem()
        if problem:
            raise ValueError(problem)
        return self.compute()

    def problem(self) -> str | None:
        """Why these settings cannot be drawn, in words; None where they can."""
        return None

    def compute(self) -> dict[str, float]:
        """The numbers behind the picture, for settings that passed `problem`."""
        raise NotImplementedError(f"{type(self).__name__} must define compute()")

    def figure(self):
        """The picture of these settings as a matplotlib Figure."""
        raise NotImplementedError(f"{type(self).__name__} must define figure()")

    def alt(self) -> str:
        """What the picture shows, in a sentence or two, with its main numbers."""
        raise NotImplementedError(f"{type(self).__name__} must define alt()")

    def _outside(self) -> str | None:
        for name, allowed in self.ranges.items():
            problem = why_not(self._label(name).text, getattr(self, name), allowed)
            if problem:
                return problem
        return None

    # --- what the page gets -----------------------------------------------------

    def _label(self, name: str) -> Label:
        return self.labels.get(name, Label(name.replace("_", " ")))

    def _description(self) -> dict[str, Any]:
        """Everything the drawing script has to know about the controls, as JSON."""
        defaults = self.defaults()
        labels = {name: self._label(name) for name in self.ranges}
        controls = [{"name": name, "default": defaults[name], **labels[name]._asdict(),
                     **_control(allowed, labels[name]),
                     "integer": type(defaults[name]) is int}
                    for name, allowed in self.ranges.items()]
        presets = [{"name": name, "settings": values}
                   for name, values in self.presets.items()]
        return {"name": type(self).__name__, "title": self.title,
                "controls": controls, "presets": presets}

    def __repr__(self) -> str:
        defaults = self.defaults()
        changed = (f"{name}={value!r}" for name, value in self.settings().items()
                   if value != defaults[name])
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_mimebundle_(self, **kwargs):
        """The live view, the same state as a picture with alt text, and a sentence."""
        from apex_lessons.figures import png

        data, metadata = super()._repr_mimebundle_(**kwargs)
        try:
            self.facts()
        except ValueError as problem:
            return {**data, "text/plain": f"{self!r}: {problem}"}, metadata
        figure, alt = self.figure(), self.alt()
        width, height = (round(100 * inches) for inches in figure.get_size_inches())
        picture = base64.b64encode(png(figure)).decode("ascii")
        data = {**data, "image/png": picture, "text/plain": f"[explorer] {alt}"}
        return data, {**metadata,
                      "image/png": {"alt": alt, "width": width, "height": height}}


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, (int, float)) else value


def _number(text: str) -> float:
    """The number that a text says; NaN where it says none, as on the web page."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _control(allowed: Range | list | str, label: Label) -> dict[str, Any]:
    """One entry of `Explorer.ranges` as JSON."""
    if isinstance(allowed, Range):
        low, high, step, log = allowed
        if not (low < high < math.inf and step > 0 and (low > 0 or not log)):
            raise ValueError(f"{label.text}: {allowed} needs low < high, step > 0 and, "
                             "on a logarithmic slider, low > 0")
        return {"kind": "range", **allowed._asdict()}
    if isinstance(allowed, str):
        return {"kind": "text", "hint": label.hint or allowed}
    if all(isinstance(value, bool) for value in allowed):
        return {"kind": "check"}
    names = label.choices or {}
    choices = [{"value": value, "text": str(names.get(value, value))}
               for value in allowed]
    return {"kind": "choice", "choices": choices}
