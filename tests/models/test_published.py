"""Every cell of the released-model table: numbers, booleans, None, remarks apart."""

import csv
import math
from importlib import resources

import pytest

from apex_lessons.models import published
from apex_lessons.models.published import REAL, TRUTH, WHOLE, WORDS

TEXT = resources.files("apex_lessons.models").joinpath("released-models.csv")
ROWS = list(csv.DictReader(TEXT.read_text(encoding="utf-8").splitlines()))
PLAIN = {"n/a": None, "unknown": None, "true": True, "false": False}
# Cells that say more than a number or a word: (value, remark)
ODD = {
    "~37k shared BPE": (None, "~37k shared BPE"), "256k": (None, "256k"),
    "1M (README)": (None, "1M (README)"), "50432 (padded)": (50432, "padded"),
    "unknown (litgpt comment: should be 32768)": (
        None, "litgpt comment: should be 32768"),
    "unknown (64 x 4096 = 262144)": (None, "64 x 4096 = 262144"),
    "unknown (not set in this file for 4b; 12b/27b: 131072)":
        (None, "not set in this file for 4b; 12b/27b: 131072"),
    "131072 nominal (script passes --max-position-embeddings 16384)":
        (131072, "nominal (script passes --max-position-embeddings 16384)"),
    "32768 (131072 with yarn)": (32768, "131072 with yarn"),
    "40960 (131072 with yarn)": (40960, "131072 with yarn"),
    "32768 (opt-in)": (32768, "opt-in"), "4096 (HF default)": (4096, "HF default"),
    "not used by the rule": (None, "not used by the rule"),
    "qk 192 = 128 nope + 64 rope; v 128": (192, "qk 192 = 128 nope + 64 rope; v 128"),
    "64 (GQA) / 32 (MLA)": (64, "(GQA) / 32 (MLA)"),
    "128 (GQA) / 64 (MLA)": (128, "(GQA) / 64 (MLA)"),
    "true (3-way)": (True, "3-way"),
    "true (HF PretrainedConfig default)": (True, "HF PretrainedConfig default"),
    "false (HF default)": (False, "HF default"),
    "true (but 4 untied multi-token heads)": (True, "but 4 untied multi-token heads"),
    "true (floor/ceil)": (True, "floor/ceil"),
    "true (HF default)": (True, "HF default"),
    "not set (HF default true)": (None, "not set (HF default true)"),
    "not set": (None, "not set"),
    "computed, never used": (None, "computed, never used"),
    "sqrt(d)=48 (in model dtype)": (48.0, "sqrt(d)=48 (in model dtype)"),
    "1 (then soft-cap 30)": (1.0, "then soft-cap 30"),
    "1e-5 (NeoX default)": (1e-5, "NeoX default"),
    "1e-5 (base model)": (1e-5, "base model"),
    "1e-5 (HF default)": (1e-5, "HF default"),
    "10000 (NeoX default)": (1e4, "NeoX default"),
    "10000 (HF default)": (1e4, "HF default"),
    "1000000 global / 10000 local": (1e6, "global / 10000 local"),
    "64/192 (decoupled)": (64 / 192, "64/192 (decoupled)"),
    "1.0 (HF default)": (1.0, "HF default"), "1.0 (default)": (1.0, "default"),
    "1.0 / decoupled": (1.0, "/ decoupled"), "4 (opt-in)": (4.0, "opt-in"),
    "32 (131072/4096)": (32.0, "131072/4096"), "32 (HF default)": (32.0, "HF default"),
    "1 (HF default)": (1.0, "HF default"),
    "32 (as a wavelength)": (32.0, "as a wavelength"),
    "1 (as a wavelength multiplier of s)": (1.0, "as a wavelength multiplier of s"),
    "0.1 ln16+1 = 1.277259 on cos,sin": (1.277259, "0.1 ln16+1 = 1.277259 on cos,sin"),
    "0.1 ln32+1 = 1.346574 on cos,sin": (1.346574, "0.1 ln32+1 = 1.346574 on cos,sin"),
    "1.138629 (HF default for factor 4)": (1.138629, "HF default for factor 4"),
    "HF formula = 1.190238": (1.190238, "HF formula = 1.190238"),
    "HF formula sqrt(1+ln32/ln4096) = 1.190238":
        (1.190238, "HF formula sqrt(1+ln32/ln4096) = 1.190238"),
    "cos/sin x1.0; softmax scale x1.873854 (=1.368888^2)":
        (1.0, "cos/sin x1.0; softmax scale x1.873854 (=1.368888^2)"),
    "cos/sin x1.0; softmax scale x1.589626 (=1.260804^2)":
        (1.0, "cos/sin x1.0; softmax scale x1.589626 (=1.260804^2)"),
    "derived: softmax scale x2.004740": (None, "derived: softmax scale x2.004740"),
}
KINDS = {"norm_type": {"RMSNorm", "LayerNorm"}, "rope_layout": {"half", "interleaved"},
         "rope_scaling_type": {"none", "linear", "yarn", "llama3", "longrope", "apex1"}}


@pytest.mark.parametrize("column", list(ROWS[0]))
def test_every_cell_of(column):
    for row, model in zip(ROWS, published(), strict=True):
        check_cell(row[column], column, model)


def check_cell(text, column, model):
    print(model.model, column, repr(text))  # shown by pytest where a cell fails
    value, remark = getattr(model, column), model.remarks.get(column, "")
    if column in ("model", "source", "notes"):
        assert value == text
    elif column in WORDS:
        assert (value is None) == (text in PLAIN) and value in KINDS[column] | {None}
    elif "sqrt(" in text and text not in ODD:
        width = math.sqrt(model.hidden_size)
        assert value == (1 / width if text.startswith("1/") else width)
        assert remark == text
    elif text in ODD:
        assert (value, remark) == ODD[text]
    else:
        assert value == (PLAIN[text] if text in PLAIN else float(text)) and remark == ""
    assert (column in model.not_applicable) == (text == "n/a")


@pytest.mark.parametrize("model", published(), ids=lambda model: model.model)
def test_types(model):
    for column in WHOLE:
        assert type(getattr(model, column)) in (int, type(None))
    for column in REAL:
        value = getattr(model, column)
        assert value is None or type(value) is float and math.isfinite(value)
    for column in TRUTH:
        assert getattr(model, column) in (True, False, None)
    assert model.source and isinstance(model.source, str)


def test_every_row_and_column_is_there_once():
    assert len(published()) == len(ROWS) == 33
    assert len({model.model for model in published()}) == 33
    columns = set(ROWS[0]) - {"model", "source", "notes"}
    assert set(WHOLE + REAL + TRUTH + WORDS) == columns


def test_several_numbers_in_one_cell_keep_their_labels():
    rows = {model.model: model for model in published()}
    assert rows["Gemma-3-4B"].labelled["rope_theta"] == {"global": 1e6, "local": 1e4}
    layouts = rows["Llama-3.1-8B-Instruct"].labelled["rope_layout"]
    assert layouts == {"Meta code": "interleaved", "HF": "half"}
    deepseek = rows["DeepSeek-V3 (and R1, same architecture)"]
    assert deepseek.labelled["attention_factor"] == {"softmax scale": 1.873854}
    assert rows["APEX-1 Small (for comparison)"].labelled["rotary_dims"]["MLA"] == 32


def test_words_of_the_course_for_layout_and_kind():
    rows = {model.model: model for model in published()}
    assert rows["GPT-J-6B"].rope_layout == "interleaved"
    # in Meta's code, as the cell says
    assert rows["Llama-2-7B"].rope_layout == "interleaved"
    assert rows["Mistral-7B-v0.1"].rope_layout == "half"
    assert rows["APEX-1 Large (for comparison)"].rope_scaling_type == "apex1"
    assert rows["Qwen3-8B"].rope_scaling_type == "none"


def test_rows_cannot_be_changed():
    model = published()[0]
    with pytest.raises(AttributeError):
        model.hidden_size = 1
    with pytest.raises(TypeError):
        model.remarks["x"] = "y"
