"""Training UDPipe's tokenizer, in a process of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tk_spacy.parsers.udpipe.library import version
from tk_spacy.parsers.udpipe.trainer import run_trainer
from tk_spacy.tokenizing.settings import TokenizerSettings
from tk_spacy.tokenizing.training_text import training_text
from tk_spacy.tokenizing.udpipe import UdpipeTokenizer
from tk_spacy.treebank.sentence import Sentence

STEADY = "learning_rate_final=0.0005"
"""Where no dev part chooses an epoch, and the last one counts: at one rate the sentences of later
epochs swing by 3 % (French-Sequoia, Greek-GDT), with a falling one by 1 %."""

_F1 = r"[\d.]+%P/[\d.]+%R/([\d.]+)%"
_HELD_OUT = re.compile(rf"heldout tokens: {_F1}, sentences: {_F1}")


def train_udpipe_tokenizer(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] = (),
    *,
    settings: TokenizerSettings | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> UdpipeTokenizer:
    """A tokenizer and sentence splitter of the sentences' text, with their multiword tokens.

    dev: the epoch with its best sentences is kept; the last one without it.
    report: called with the epochs that are done, and their number.
    The same sentences and settings give the same bytes (see `parsers.udpipe.process`).

    Raises UserError where UDPipe is not installed, or cannot train on this.
    """
    settings = TokenizerSettings() if settings is None else settings
    epochs: list[dict[str, Any]] = []

    def on_iteration(number: int, said: str) -> None:
        report(number, settings.epochs)
        scores = _HELD_OUT.search(said)
        found = {"tokens": float(scores[1]), "sentences": float(scores[2])} if scores else {}
        epochs.append({"epoch": number, **found})

    options = settings.to_options()
    if not dev and settings.epochs > 1:
        options += f";{STEADY}"
    content = run_trainer(
        list(training_text(train)),
        list(training_text(dev)),
        tokenizer=options,
        what="the UDPipe tokenizer",
        on_iteration=on_iteration,
    )
    report(settings.epochs, settings.epochs)  # it may have stopped early
    return UdpipeTokenizer(
        model=content, settings=settings, about={"udpipe": version(), "epochs": epochs}
    )
