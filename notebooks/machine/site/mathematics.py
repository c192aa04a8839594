"""A formula in TeX becomes MathML: no script, no network, read out by screen readers.

latex2mathml does the translation. What browsers leave out of MathML, or draw in another
way than TeX does, is put right here, one rule a function. The font with the signs is
``theme/static/math.woff``, made by ``math_font.py``.
"""

from __future__ import annotations

import html
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

OPENING, CLOSING, BARS = "⟨⌈⌊", "⟩⌉⌋", "‖|"
TIGHT = "/…"
NO_SPACE = {"lspace": "0", "rspace": "0"}
FUNCTIONS = {"cos", "exp", "ln", "log", "max", "min", "sin", "var"}
NEGATIVE_SPACES = {"negativethinmathspace": "-0.167em"}
THIN = "0.167em"
STRUT = {"width": "0", "height": "0.8em", "depth": "0.2em"}  # as high as the sign √
LIMITS = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}


def mathml(tex: str, *, block: bool = False) -> str:
    """The formula as a ``<math>`` element.

    Raises ValueError, with the formula, where it cannot be read.

    >>> mathml("x^2")
    '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    """
    try:
        formula = convert_to_element(tex, display="block" if block else "inline")
    except Exception as error:  # the library has no common class of its own
        raise ValueError(f"this formula cannot be read: {tex!r} ({error})") from error
    formula.attrib.pop("xmlns", None)
    for node in formula.iter():
        node.text = html.unescape(node.text or "") or None  # it comes as &#x003B8;
    for row in list(formula.iter()):
        join_words(row)
        for child in row:
            repair(child)
        hold_root(row)
        set_limits(row)
        pair_bars(row)
        mark_signs(row)
        space_functions(row)
    check(formula, tex)
    return ElementTree.tostring(formula, encoding="unicode")


PARTS = {"mfrac": 2, "msup": 2, "msub": 2, "msubsup": 3, "munder": 2, "mover": 2,
         "munderover": 3, "mroot": 2}


def check(formula: Element, tex: str) -> None:
    """The library passes over what it does not know; a reader would see it."""
    for node in formula.iter():
        incomplete = len(node) != PARTS.get(node.tag, len(node))
        if incomplete or "\\" in (node.text or ""):
            raise ValueError(f"this formula cannot be read: {tex!r} (<{node.tag}> has "
                             f"{len(node)} parts and the text {node.text!r})")


def repair(node: Element) -> None:
    """One element as browsers understand it."""
    text = node.text or ""
    if node.tag == "mspace":
        width = node.get("width", "")
        node.set("width", NEGATIVE_SPACES.get(width, width))
    elif node.tag == "mi" and text and text in OPENING + CLOSING:
        become_fence(node, "prefix" if text in OPENING else "postfix")
    elif node.tag == "mi" and text == "~":
        node.tag, node.text = "mo", "∼"
    elif node.tag == "mo" and text.isalpha() and len(text) > 1:
        node.tag = "mi"  # the name of a function
    elif node.tag == "mo" and text in TIGHT:
        node.attrib |= NO_SPACE
    elif node.tag == "mi" and text and not text.strip("′"):
        node.tag = "mo"  # a prime, drawn as an exponent's sign
    elif node.tag == "mtext":
        node.text = text.replace(r"\_", "_")
    elif node.tag == "mrow" and len(node) == 1 and node[0].tag == "mo":
        node[0].attrib |= NO_SPACE  # {,} and {+} in TeX
    if node.get("mathvariant") == "monospace":  # browsers know no other than normal
        del node.attrib["mathvariant"]
        node.set("class", "mono")


def hold_root(row: Element) -> None:
    """A root over low letters would hang below the line: a strut holds it up."""
    if row.tag == "msqrt":
        row.insert(0, Element("mspace", STRUT))


def set_limits(row: Element) -> None:
    """A sum under a root has its limits above and below, like any other sum."""
    for node in row:
        if node.tag in LIMITS and len(node) and node[0].text == "∑":
            node.tag = LIMITS[node.tag]


def join_words(row: Element) -> None:
    """Upright letters in a row are one word: RMS, not R M S."""
    word = None
    for node in list(row):
        if node.tag != "mi" or node.get("mathvariant") != "normal":
            word = None
        elif word is None:
            word = node
        else:
            word.text += node.text
            row.remove(node)


def become_fence(node: Element, form: str) -> None:
    node.tag = "mo"
    node.attrib |= {"form": form, "stretchy": "false", **NO_SPACE}


def pair_bars(row: Element) -> None:
    """‖x‖ and |x|: the first bar opens, the second closes."""
    for sign in BARS:
        bars = [node for node in row if node.tag == "mo" and node.text == sign]
        for number, bar in enumerate(bars):
            become_fence(bar, "postfix" if number % 2 else "prefix")


def mark_signs(row: Element) -> None:
    """(a, −b): a minus behind a comma or a bracket belongs to what follows."""
    for before, node in zip(row, list(row)[1:]):
        if node.tag == "mo" and node.text in "−+" and before.tag == "mo":
            if before.text in ",([{=":
                node.attrib |= {"form": "prefix", **NO_SPACE}


def name_of(node: Element) -> str:
    """The function's name, also where it carries an exponent: sin²."""
    if node.tag in ("msup", "msub") and len(node):
        return name_of(node[0])
    return node.text or ""


def space_functions(row: Element) -> None:
    """ln x and d ln x have thin spaces around the name, ln(x) has none behind it."""
    if row.tag not in ("mrow", "math", "msqrt", "mtd", "mstyle"):
        return
    for node in list(row):
        if name_of(node) not in FUNCTIONS:
            continue
        place = list(row).index(node)
        after = row[place + 1] if place + 1 < len(row) else None
        if after is not None and after.tag not in ("mo", "mspace"):
            row.insert(place + 1, Element("mspace", width=THIN))
        if place and row[place - 1].tag in ("mi", "mn", "msup", "msub", "mfrac"):
            row.insert(place, Element("mspace", width=THIN))
