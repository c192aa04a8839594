"""Whether torch can compute on a device here."""

from __future__ import annotations

import torch


def usable_device(name: str) -> str:
    """``name`` itself; ValueError where torch cannot compute on the device so called.

    >>> usable_device("cpu")
    'cpu'
    """
    try:
        torch.zeros(1, device=name).cpu()  # meta makes tensors, but has no values
    except (RuntimeError, AssertionError, ImportError, TypeError) as error:
        # the first sentence of what may be a page
        reason = (str(error) or type(error).__name__).splitlines()[0].split(". ")[0]
        raise ValueError(
            f"--device {name} cannot be used here: {reason.rstrip('.')}; cpu always can"
        ) from error
    return name
