"""Trained views on disk: each in a directory of its own with a record of what it was made from."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tk_spacy.files import replace_directory
from tk_spacy.treebank import Sentence
from tk_spacy.views.protocol import Report, View

# Part of every fingerprint: raise it when the same settings give another parser than before.
FORMAT = 1
RECORD = "training.json"


def training_fingerprint(view: View, train: Iterable[str], dev: Iterable[str] = ()) -> str:
    """SHA-256 of all that a trained view depends on; train, dev: sentences as CoNLL-U."""
    digest = hashlib.sha256(json.dumps([FORMAT, view.name, *view.training_key()]).encode())
    for name, part in (("train", train), ("dev", dev)):
        digest.update(name.encode())
        for text in part:
            digest.update(text.encode())
    return digest.hexdigest()


def is_trained(directory: Path, fingerprint: str) -> bool:
    """Whether the view with that fingerprint is there."""
    return bool(_read(directory).get("fingerprint") == fingerprint)


def training_seconds(directory: Path) -> float:
    """Wall seconds of the training that wrote a directory, 0 where there is none."""
    return float(_read(directory).get("seconds", 0.0))


def train_view(
    view: View,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    directory: Path,
    *,
    fingerprint: str,
    n_threads: int | None,
    report: Report,
) -> None:
    """Train a view into a directory, atomically, unless it is there."""
    if view.given or is_trained(directory, fingerprint):
        return
    started = time.perf_counter()
    with replace_directory(directory) as temporary:
        view.train(train, dev, temporary, n_threads=n_threads, report=report)
        record = {"fingerprint": fingerprint, "seconds": time.perf_counter() - started}
        (temporary / RECORD).write_text(json.dumps(record) + "\n", encoding="utf-8")


def _read(directory: Path) -> dict[str, Any]:
    try:
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}
