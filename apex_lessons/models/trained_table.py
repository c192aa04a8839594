"""A real trained embedding table, read offline from the package ``wordllama`` (MIT)."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch


class TrainedTable(NamedTuple):
    """A table that was trained on text, and the name of each of its rows."""

    weight: torch.Tensor  # float32 [32000, 256]
    tokens: tuple[str, ...]  # 32,000 names; "▁" marks the start of a word

    def row(self, word: str) -> int:
        """The id of a whole word: raises KeyError where it is split into pieces."""
        try:
            return self.tokens.index("▁" + word)
        except ValueError:
            raise KeyError(f"{word!r} is not one token of this table; try a common"
                           " word, in lower case or with a capital") from None

    def nearest(self, word: str, count: int = 5) -> list[tuple[str, float]]:
        """The ``count`` other rows with the largest cosine: ``(name, cosine)``."""
        unit = torch.nn.functional.normalize(self.weight, dim=-1)  # [vocab, d]
        cosines = unit @ unit[self.row(word)]  # [vocab]
        best = cosines.topk(count + 1)
        return [(self.tokens[at], value) for at, value in
                zip(best.indices[1:].tolist(), best.values[1:].tolist())]


@lru_cache(maxsize=1)
def trained_table() -> TrainedTable:
    """The 32,000 x 256 table inside ``wordllama``, as float32; nothing is downloaded.

    It began as the input rows of large language models and was trained further, so that
    the average of a text's rows says what the text is about. The package is not
    imported: only its two files are read. Raises ImportError if it is missing.

    >>> trained_table().weight.shape
    torch.Size([32000, 256])
    """
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise ImportError("the trained table is in the package wordllama, which is not"
                          " installed here: pip install wordllama")
    folder = Path(found.origin).parent
    stored = load_file(folder / "weights" / "l2_supercat_256.safetensors")
    names = Tokenizer.from_file(
        str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    weight = stored["embedding.weight"].float()  # [32000, 256]
    return TrainedTable(weight, tuple(map(names.id_to_token, range(len(weight)))))
