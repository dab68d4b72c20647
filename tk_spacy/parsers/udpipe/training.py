"""Training a UDPipe parser, in a process of its own."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tk_spacy.parsers.udpipe.library import udpipe, version
from tk_spacy.parsers.udpipe.parser import UdpipeParser, to_udpipe, word_columns
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.parsers.udpipe.trainer import run_trainer
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS, FilledColumns

_HELD_OUT = re.compile(r"heldout UAS ([\d.]+)%, LAS ([\d.]+)%")


def train_udpipe_parser(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] = (),
    *,
    settings: UdpipeSettings | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> UdpipeParser:
    """A parser of the sentences' trees, which have one root each, from gold tags.

    dev: its best iteration is kept; the last one without it.
    report: called with the iterations that are done, and their number.
    The same sentences and settings give the same bytes: UDPipe draws its random numbers from one
    fixed seed and uses one thread, and lies at fixed addresses (see `process.fix_addresses`).

    Raises UserError where UDPipe is not installed, or cannot train on this.
    """
    settings = UdpipeSettings() if settings is None else settings
    udpipe()
    ordered = list(train)
    if settings.seed:
        random.Random(settings.seed).shuffle(ordered)
    epochs: list[dict[str, float]] = []

    def on_iteration(number: int, said: str) -> None:
        report(number, settings.iterations)
        if (scores := _HELD_OUT.search(said)) is not None:
            epochs.append({"epoch": number, "uas": float(scores[1]), "las": float(scores[2])})

    content = run_trainer(
        list(map(_columns, ordered)),
        list(map(_columns, dev)),
        parser=settings.to_options(),
        what="the UDPipe parser",
        on_iteration=on_iteration,
    )
    roots, labels = Counter[str](), set[str]()
    for sentence in train:
        for head, deprel in zip(sentence.heads.tolist(), sentence.deprels, strict=True):
            if head:
                labels.add(deprel)
            else:
                roots[deprel] += 1
    filled = FilledColumns(train)
    root = max(roots, key=lambda label: (roots[label], label))
    return UdpipeParser(
        model=content,
        settings=settings,
        root_label=root,
        labels=tuple(sorted({*labels, root})),
        about={
            "udpipe": version(),
            "epochs": epochs,
            **({"curve": _curve(epochs)} if epochs else {}),
            "columns": [name for name in COLUMNS if name in filled],
        },
    )


def _curve(epochs: Sequence[dict[str, float]]) -> dict[str, Any]:
    return {"of": "LAS on dev, %", "values": [epoch["las"] for epoch in epochs]}


def _columns(sentence: Sentence) -> list[list[Any]]:
    heads = sentence.heads.tolist()
    deprels = [to_udpipe(d, head) for d, head in zip(sentence.deprels, heads, strict=True)]
    return [*word_columns(sentence), heads, deprels]
