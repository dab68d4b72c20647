"""Training spaCy's taggers from sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spacy.util import load_config_from_str

from tk_spacy.features.schema import distrusts_xpos
from tk_spacy.parsers.base import StepReport
from tk_spacy.parsers.spacy_transition.training import shorten_warm_up, train_by_config
from tk_spacy.tagging.spacy_tagger.config import COMPONENTS, config_text
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import FilledColumns

if TYPE_CHECKING:
    from spacy.language import Language


def train_spacy_tagger(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] = (),
    *,
    seed: int = 0,
    max_steps: int | None = None,
    report: StepReport = lambda done, of: None,
) -> Language:
    """A pipeline with a tagger (where XPOS is useful), a morphologizer and a lemmatizer.

    dev: its best state is kept; the last one without it.
    """
    config = load_config_from_str(config_text(), interpolate=False)
    filled = FilledColumns(train)
    unused = [name for column, name in COMPONENTS.items() if column not in filled]
    # UPOS comes from the morphologizer, with FEATS or without.
    unused = [name for name in unused if name != COMPONENTS["FEATS"]]
    if distrusts_xpos(train, dev or train) and COMPONENTS["XPOS"] not in unused:
        unused.append(COMPONENTS["XPOS"])
    for name in unused:
        del config["components"][name]
        config["nlp"]["pipeline"] = [n for n in config["nlp"]["pipeline"] if n != name]
    config["system"]["seed"] = seed
    if max_steps is not None:
        config["training"]["max_steps"] = max_steps
        shorten_warm_up(config, max_steps)
    return train_by_config(
        train, dev, config,
        score="pos_acc", score_told="UPOS right on dev, %",
        progress=lambda step: report(min(step.step, step.of), step.of),
    )  # fmt: skip
