"""Formulas as browsers draw them: what latex2mathml leaves wrong is put right."""

import re
from xml.etree import ElementTree

import pytest

from notebooks.machine.site.mathematics import mathml
from notebooks.machine.site.writer import held_together


def parts(tex, tag):
    """(text, attributes) of every element with this tag."""
    formula = ElementTree.fromstring(mathml(tex))
    return [(node.text, dict(node.attrib)) for node in formula.iter(tag)]


def test_letters_signs_and_structure():
    assert [text for text, _ in parts(r"\theta_i = b^{-2i/d}", "mi")] == list("θibid")
    assert len(parts(r"\sqrt{\frac{1}{d}}", "msqrt")) == 1
    assert mathml("x", block=True).startswith('<math display="block">')
    assert "&amp;#" not in mathml(r"\lambda \le \pi")


@pytest.mark.parametrize("tex", [r"\langle a\rangle", r"\lceil a\rceil",
                                 r"\lfloor a\rfloor", r"\lVert a\rVert", "|a|"])
def test_fences_open_and_close_without_gaps(tex):
    """As letters, ⟨ and ⌈ would stand apart from what they hold."""
    (_, first), (_, last) = parts(tex, "mo")
    assert first["form"] == "prefix" and last["form"] == "postfix"
    assert first["lspace"] == first["rspace"] == last["lspace"] == last["rspace"] == "0"


def test_a_minus_behind_a_comma_or_bracket_is_a_sign():
    signs = [sign for text, sign in parts("(-a, -b) - c", "mo") if text == "−"]
    assert [sign.get("form") for sign in signs] == ["prefix", "prefix", None]


@pytest.mark.parametrize(("tex", "gaps"), [
    (r"\ln x", 1), (r"\ln(x)", 0), (r"2\ln x", 2), (r"\sin^2 x", 1),
    (r"\operatorname{var}(x)", 0), (r"d\,\operatorname{var}(x)", 1)])
def test_functions_have_thin_spaces_where_no_bracket_follows(tex, gaps):
    assert len(parts(tex, "mspace")) == gaps


def test_words_are_whole_and_upright():
    assert parts(r"\mathrm{RMS}(x)", "mi")[0][0] == "RMS"
    assert [text for text, _ in parts(r"\operatorname{var}(x)", "mi")] == ["var", "x"]


def test_a_root_over_low_letters_has_a_strut():
    (_, strut), = parts(r"1/\sqrt{\epsilon}", "mspace")
    assert strut["width"] == "0" and float(strut["height"].removesuffix("em")) > 0.6


def test_limits_and_primes():
    assert len(parts(r"\sqrt{\sum_{i=1}^{d} x_i^2}", "munderover")) == 1
    assert len(parts(r"\sqrt{\sum_{i=1}^{d} x_i^2}", "msubsup")) == 1  # x alone
    assert ("′", {}) in parts("x'", "mo")


def test_punctuation_stays_at_its_formula():
    formula = mathml("x")
    assert held_together(f"a ({formula}), b") == (
        f'a <span class="whole">({formula}),</span> b')
    assert held_together(f"a {formula} b") == f"a {formula} b"


def test_what_only_tex_knows():
    assert parts(r"\sim", "mo")[0][0] == "∼"
    assert parts(r"\!", "mspace")[0][1]["width"] == "-0.167em"
    (text, mono), = parts(r"\texttt{a\_b}", "mtext")
    assert text == "a_b" and mono == {"class": "mono"}
    (_, comma), = parts("10{,}000", "mo")
    assert comma == {"lspace": "0", "rspace": "0"}
    assert all(sign["lspace"] == "0" for _, sign in parts("d/2", "mo"))


@pytest.mark.parametrize("tex", [r"\frac{1}", r"\unknown x", r"\left(x"])
def test_a_formula_that_cannot_be_read_is_named(tex):
    with pytest.raises(ValueError, match=re.escape(repr(tex))):
        mathml(tex)
