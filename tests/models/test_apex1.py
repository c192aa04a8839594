"""The four APEX-1 sizes against the numbers of the repository and the fact check."""

import dataclasses
import math

import pytest

from apex_lessons.models import apex1_config
from apex_lessons.models.apex1 import NOTATION, SIZES

# configs/apex1_*.yaml at 97b5855:
# d, d_h, d_r, d_ff, d_kv, d_q, H_q, H_kv, L, V, E, K, W
PRINTED = {
    "tiny": (64, 16, 8, 128, 16, 24, 4, 2, 6, 1000, 4, 2, 64),
    "small": (512, 64, 32, 1376, 64, 96, 8, 2, 12, 151643, 8, 2, 512),
    "medium": (2048, 128, 64, 5504, 256, 384, 16, 4, 36, 151643, 64, 4, 2048),
    "large": (7168, 128, 64, 18432, 512, 768, 128, 8, 72, 151643, 256, 8, 8192),
}
SYMBOLS = "d d_h d_r d_ff d_kv d_q H_q H_kv L V E K W".split()
REFERENCE_SYMBOLS = ("B S d d_h d_r d_ff d_kv d_q H_q H_kv L V E K W epsilon gamma"
                     " theta_i m").split()


@pytest.mark.parametrize("size", SIZES)
def test_every_printed_setting(size):
    config = apex1_config(size)
    assert tuple(getattr(config, symbol) for symbol in SYMBOLS) == PRINTED[size]
    assert (config.epsilon, config.gamma) == (1e-6, 1.0)


@pytest.mark.parametrize("size,base,factor,rows,batch,length", [
    ("tiny", 1e4, 1.0, 256, 2, 64), ("small", 1e4, 1.0, 8192, 32, 2048),
    ("medium", 5e5, 4.0, 65536, 16, 4096), ("large", 1e6, 8.0, 131072, 4, 8192)])
def test_rotary_and_training_settings(size, base, factor, rows, batch, length):
    config = apex1_config(size)
    assert (config.rope_base, config.rope_factor,
            config.max_seq_len) == (base, factor, rows)
    assert (config.training.batch_size, config.training.seq_len) == (batch, length)


@pytest.mark.parametrize("size,total", [
    ("small", 523_150_860), ("medium", 42_717_193_252), ("large", 3_747_254_251_592)])
def test_parameter_counts_are_those_counted_on_the_repository(size, total):
    counts = apex1_config(size).parameter_counts()
    assert counts["total"] == total
    parts = [counts[part] for part in counts if part not in ("active", "total")]
    assert sum(parts) == total and counts["active"] < total


def test_four_untied_heads_are_four_times_the_saving_of_tying():
    counts = apex1_config("small").parameter_counts()
    assert counts["embedding"] == 77_641_216
    assert counts["multi-token head"] == 4 * counts["embedding"]


def test_notation_table_has_every_symbol_of_the_reference_in_order():
    assert [symbol for symbol, _, _ in NOTATION] == REFERENCE_SYMBOLS
    rows = {row.symbol: row for row in apex1_config("large").symbols()}
    assert rows["H_kv"].value == 8 and rows["B"].value is None
    assert all(row.value == getattr(apex1_config("large"), row.field)
               for row in rows.values() if row.field)


def test_norm_layers_and_layer_kinds():
    assert [2 * apex1_config(size).L + 1 for size in SIZES] == [13, 25, 73, 145]
    assert apex1_config("small").global_layers == (5, 11)
    assert apex1_config("tiny").moe_layers == (1, 3, 5)


def test_batch_size_is_no_field_of_the_model():
    fields = {field.name for field in dataclasses.fields(apex1_config("tiny"))}
    assert not fields & {"batch_size", "B", "S", "seq_len"}


def test_frozen_and_shared():
    config = apex1_config("tiny")
    assert config is apex1_config("TINY")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 1
    with pytest.raises(AttributeError, match="no field or symbol 'd_x'"):
        config.d_x
    assert math.isclose(dataclasses.replace(config, d_model=65).d_model, 65)


@pytest.mark.parametrize("size", ["huge", "", None, 3, "x" * 10_000])
def test_unknown_size_is_refused_with_the_choices(size):
    with pytest.raises(ValueError, match="tiny, small, medium, large") as error:
        apex1_config(size)
    assert len(str(error.value)) < 200
