"""Where chance comes from: numpy's global generator, as in all of thinc, which a training seeds."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from thinc.api import Ops, fix_random_seed

from tk_spacy.parsers.biaffine.batches import Layout


def generator() -> np.random.Generator:
    """A generator for first weights, which follows from the state of the global one."""
    return np.random.default_rng(np.random.randint(2**31, size=4))  # noqa: NPY002


@contextmanager
def chance_kept() -> Iterator[None]:
    """Whatever becomes of the global generators while this lasts, they are as before after it."""
    python, array = random.getstate(), np.random.get_state()  # noqa: NPY002
    # Thinc seeds this one too where it is there; on devices it has further ones.
    torch = sys.modules.get("torch")
    of_torch = None if torch is None else torch.get_rng_state()
    devices = _cuda(torch)
    of_devices = None if devices is None else devices.get_rng_state_all()
    try:
        yield
    finally:
        if torch is not None:
            torch.set_rng_state(of_torch)
        if devices is not None:
            devices.set_rng_state_all(of_devices)
        random.setstate(python)
        np.random.set_state(array)  # noqa: NPY002


def _cuda(torch: Any) -> Any:
    """Torch's module of devices, None where there is none that is in use."""
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """The global generators by a seed while this lasts, and as they were after it."""
    with chance_kept():
        fix_random_seed(seed)
        yield


def sentence_mask(ops: Ops, layout: Layout, width: int, rate: float) -> Any:
    """Factors [rows, width] that leave out columns, the same in all rows of a sentence."""
    mask: Any = ops.get_dropout_mask((layout.sentences, width), rate)
    return mask[layout.owner]
