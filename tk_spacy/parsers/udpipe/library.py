"""UDPipe's library, where it is installed."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.utils.leftovers import temporary_directory


def udpipe() -> Any:
    """The module ufal.udpipe.  Raises UserError where it is not installed."""
    try:
        with warnings.catch_warnings():
            # Its generated types lack an attribute that Python 3.12 misses.
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module("ufal.udpipe")
    except ImportError as error:
        raise UserError(
            f"UDPipe cannot be loaded ({error}); install it: pip install ufal.udpipe"
        ) from error


def version() -> str:
    """Its version.  Raises UserError where it is not installed."""
    found = udpipe().Version.current()
    return f"{found.major}.{found.minor}.{found.patch}"


def load_model(content: bytes, *, what: str) -> Any:
    """A model of UDPipe's from its own bytes; what: "parser" or "tagger", for messages.

    Raises UserError where UDPipe is not installed, or cannot read it.
    """
    library = udpipe()
    with temporary_directory("udpipe") as folder:
        path = folder / "model.udpipe"  # it reads files only
        path.write_bytes(content)
        model = library.Model.load(str(path))
    if not model:
        raise UserError(f"UDPipe cannot read this {what}: it is damaged; train it again")
    return model
