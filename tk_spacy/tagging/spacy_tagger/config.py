"""The config that spaCy's taggers are trained with."""

from __future__ import annotations

import re
from importlib import resources

COMPONENTS = {"XPOS": "tagger", "FEATS": "morphologizer", "LEMMA": "trainable_lemmatizer"}
"""The component that gives a column; the morphologizer gives UPOS too."""


SHARED = "tagging_tok2vec"
"""The component that these listen to."""

NOT_HERE = """\
# So that `spacy debug model` and `debug data` can make the optimizer.
before_init = {"@callbacks":"tk_spacy.resolve_config.v1"}
"""
"""Of the file, what no training of ours needs: kept taggers are known by the text without it."""


def config_text() -> str:
    """The config that the taggers are trained with."""
    file = resources.files("tk_spacy.configs").joinpath("tagger.cfg")
    return file.read_text(encoding="utf-8").replace(NOT_HERE, "before_init = null\n")


def default_steps() -> int:
    """The steps of a training by it."""
    (steps,) = re.findall(r"(?m)^max_steps = (\d+)$", config_text())
    return int(steps)
