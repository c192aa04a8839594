"""The 50 released configs and 64 mistaken files with the answers a good tool gives."""

import base64
import json
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("model-configs.json")


@cache
def cases():
    return json.loads(FILE.read_text(encoding="utf-8"))


RELEASED = {case["name"]: case for case in cases()["released"]}
MISTAKEN = {case["name"]: case for case in cases()["mistaken"]}
# The expressions under "make" in model-configs.json, written out: nothing is evaluated.
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "num_hidden_layers": 32,
         "max_position_embeddings": 8192, "rope_theta": 10000.0}
MADE = {
    "nested 100000 deep": b'{"x": ' + b"[" * 100000 + b"]" * 100000 + b"}",
    "5 MB of one string in rope_type": json.dumps(
        {**LLAMA,
         "rope_scaling": {"rope_type": "x" * 5_000_000, "factor": 2.0}}).encode(),
    "million-number longrope list": json.dumps(
        {**LLAMA, "rope_scaling": {
            "rope_type": "longrope", "original_max_position_embeddings": 4096,
            "short_factor": [1.0] * 1_000_000, "long_factor": [1.0] * 64}}).encode()}


def file_bytes(case) -> bytes:
    """The bytes of a mistaken file."""
    if "config" in case:
        return json.dumps(case["config"]).encode()
    if "text" in case:
        return case["text"].encode("utf-8")
    if "bytes_base64" in case:
        return base64.b64decode(case["bytes_base64"])
    return MADE[case["name"]]
