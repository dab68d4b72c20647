"""Training a UDPipe tagger, in a process of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tk_spacy.parsers.base import StepReport
from tk_spacy.parsers.udpipe.library import version
from tk_spacy.parsers.udpipe.parser import word_columns
from tk_spacy.parsers.udpipe.trainer import run_trainer
from tk_spacy.tagging.udpipe.settings import TaggerSettings
from tk_spacy.tagging.udpipe.tagger import UdpipeTagger
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS, FilledColumns

_HELD_OUT = re.compile(r"heldout accuracy ([\d.]+)%t/([\d.]+)%l")


def train_udpipe_tagger(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] = (),
    *,
    settings: TaggerSettings | None = None,
    report: StepReport = lambda done, of: None,
) -> UdpipeTagger:
    """A tagger of the sentences' LEMMA, UPOS, XPOS and FEATS.

    dev: its best iteration is kept; the last one without it.
    report: called with the iterations that are done, and their number.
    The same sentences and settings give the same bytes (see `parsers.udpipe.process`).

    Raises UserError where UDPipe is not installed, or cannot train on this.
    """
    settings = TaggerSettings() if settings is None else settings
    version()
    epochs: list[dict[str, float]] = []
    steps = settings.models * settings.iterations

    def on_iteration(number: int, said: str) -> None:
        # A second model begins at 1 again.
        done = number + settings.iterations * sum(e["epoch"] == settings.iterations for e in epochs)
        report(min(done, steps), steps)
        scores = _HELD_OUT.search(said)
        found = {} if scores is None else {"tags": float(scores[1]), "lemmas": float(scores[2])}
        epochs.append({"epoch": number, **found})

    content = run_trainer(
        list(map(_columns, train)),
        list(map(_columns, dev)),
        tagger=settings.to_options(),
        what="the UDPipe tagger",
        on_iteration=on_iteration,
    )
    filled = FilledColumns(train)
    return UdpipeTagger(
        model=content,
        settings=settings,
        columns=tuple(name for name in COLUMNS if name in filled),
        about={
            "udpipe": version(),
            "epochs": epochs,
            **({"curve": _curve(epochs)} if any("tags" in epoch for epoch in epochs) else {}),
            "upos": _upos(train),
        },
    )


def _curve(epochs: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Of the first model, which gives the tags."""
    first = epochs[: next((i for i, e in enumerate(epochs) if i and e["epoch"] == 1), None)]
    return {"of": "tags right on dev, %", "values": [e["tags"] for e in first if "tags" in e]}


def _upos(train: Sequence[Sentence]) -> list[str]:
    """The tags that it can give: UDPipe tells them to nobody."""
    return sorted({tag for sentence in train for tag in sentence.upos if tag != "_"})


def _columns(sentence: Sentence) -> list[list[Any]]:
    # A tagger does not look at trees: the chain is one.
    n = len(sentence)
    return [*word_columns(sentence), list(range(n)), ["root", *["dep"] * (n - 1)]]
