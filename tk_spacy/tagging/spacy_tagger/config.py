"""The config that spaCy's taggers are trained with."""

from __future__ import annotations

import re
from importlib import resources

COMPONENTS = {"XPOS": "tagger", "FEATS": "morphologizer", "LEMMA": "trainable_lemmatizer"}
"""The component that gives a column; the morphologizer gives UPOS too."""


def config_text() -> str:
    """The config that the taggers are trained with."""
    return resources.files("tk_spacy.configs").joinpath("tagger.cfg").read_text(encoding="utf-8")


def default_steps() -> int:
    """The steps of a training by it."""
    (steps,) = re.findall(r"(?m)^max_steps = (\d+)$", config_text())
    return int(steps)
