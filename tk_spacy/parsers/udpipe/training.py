"""Training a UDPipe parser, in a process of its own."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parsers.udpipe import process
from tk_spacy.parsers.udpipe.library import udpipe, version
from tk_spacy.parsers.udpipe.parser import UdpipeParser, to_udpipe, word_columns
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS, FilledColumns

_ITERATION = re.compile(r"Iteration (\d+): (.*)")
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
    task = {
        "options": settings.to_options(),
        "train": list(map(_columns, ordered)),
        "dev": list(map(_columns, dev)),
    }
    with tempfile.TemporaryDirectory(prefix="tk_spacy_udpipe_") as folder:
        data, model = Path(folder, "task.json"), Path(folder, "parser.udpipe")
        data.write_text(json.dumps(task), encoding="utf-8")
        epochs = _run(data, model, settings.iterations, report)
        content = model.read_bytes()
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
            "columns": [name for name in COLUMNS if name in filled],
        },
    )


def _columns(sentence: Sentence) -> list[list[Any]]:
    heads = sentence.heads.tolist()
    deprels = [to_udpipe(d, head) for d, head in zip(sentence.deprels, heads, strict=True)]
    return [*word_columns(sentence), heads, deprels]


def _run(
    data: Path, model: Path, iterations: int, report: Callable[[int, int], None]
) -> list[dict[str, float]]:
    """Run the process, and hand on what it tells; the scores on dev of each iteration."""
    # As a script, so that it does not load this package, but with the modules that this one finds.
    command = [sys.executable, process.__file__, str(data), str(model), str(os.getpid())]
    paths = os.pathsep.join(path for path in sys.path if path)
    epochs: list[dict[str, float]] = []
    last = ""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
    )
    try:
        assert child.stderr is not None
        for line in child.stderr:
            last = line.strip() or last
            if (match := _ITERATION.match(line)) is not None:
                report(int(match[1]), iterations)
                if (scores := _HELD_OUT.search(match[2])) is not None:
                    epochs.append(
                        {"epoch": int(match[1]), "uas": float(scores[1]), "las": float(scores[2])}
                    )
        code = child.wait()
    finally:
        child.kill()
        child.wait()
        if child.stderr is not None:
            child.stderr.close()
    if code < 0:
        raise RuntimeError(
            f"the process that trained the UDPipe parser was killed by signal {-code} (most often: "
            "out of memory)"
        )
    if code or not model.is_file():
        raise UserError(f"the UDPipe parser cannot be trained: {last or 'no reason given'}")
    return epochs
