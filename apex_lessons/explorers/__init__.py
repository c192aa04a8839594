"""Sliders for every lesson: pictures that move, alive with or without a kernel.

Each lesson has a module here (``explorers.rope``, ...) with a function
``explorers() -> {name: class}``. How to write one stands in ``explorers.base``.
"""

from __future__ import annotations

import importlib

LESSONS = ("embedding", "norm", "rope", "yarn", "extrapolation")


def __getattr__(name: str):
    """The lesson's module, imported when it is first asked for."""
    if name in LESSONS or name == "base":
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
