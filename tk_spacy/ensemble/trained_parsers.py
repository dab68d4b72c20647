"""What a work directory holds, and the records that tell whether it can be taken over.

A trained parser lies in a directory of its own.  Its record names what it is made from and a digest
of each file, so that a file which was cut short or changed shows, and is made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from tk_spacy.errors import UserError
from tk_spacy.parsers.base import StepReport, Trainable
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.atomic_files import replace_directory

# Part of every fingerprint: raise it when the same settings give another parser than before.
FORMAT = 2
RECORD = "training.json"
MOST_SECONDS = 1e9

State = Literal["kept", "missing", "damaged"]
"""Missing: never finished, or made from something else."""


def training_fingerprint(spec: Trainable, train: Iterable[str], dev: Iterable[str] = ()) -> str:
    """SHA-256 of all that a training depends on; train, dev: sentences as CoNLL-U."""
    total = hashlib.sha256(json.dumps([FORMAT, spec.name, *spec.training_key()]).encode())
    for name, part in (("train", train), ("dev", dev)):
        total.update(name.encode())
        for text in part:
            total.update(text.encode())
    return total.hexdigest()


def trained_state(directory: Path, fingerprint: str) -> State:
    """What there is of the parser with that fingerprint."""
    record = read_record(directory / RECORD)
    if not record:
        return "damaged" if directory.exists() else "missing"
    if record.get("fingerprint") != fingerprint:
        return "missing"
    return "kept" if _is_whole(directory, record) else "damaged"


def _is_whole(directory: Path, record: dict[str, Any]) -> bool:
    digests = record.get("sha256")
    if not isinstance(digests, dict) or not digests:
        return False
    return all(
        value is not None and digest(directory / name) == value for name, value in digests.items()
    )


def training_seconds(directory: Path) -> float:
    """Wall seconds of the training that wrote a directory, 0 where there is none."""
    seconds = read_record(directory / RECORD).get("seconds")
    # The record has no digest of itself: a number that no clock gives is as good as none.
    if not isinstance(seconds, int | float) or not 0 <= seconds < MOST_SECONDS:
        return 0.0
    return float(seconds)


def train_and_record(
    spec: Trainable,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    directory: Path,
    *,
    fingerprint: str,
    n_threads: int | None,
    report: StepReport,
) -> None:
    """Train into a directory, atomically, unless the result is there.

    A damaged one is removed first; one that was made from something else stays until it is
    replaced.
    """
    if spec.given:
        return
    state = trained_state(directory, fingerprint)
    if state == "kept":
        return
    if state == "damaged":
        remove(directory)
    started = time.perf_counter()
    with replace_directory(directory) as temporary:
        spec.train(train, dev, temporary, n_threads=n_threads, report=report)
        record = {
            "fingerprint": fingerprint,
            "seconds": time.perf_counter() - started,
            "sha256": {
                str(path.relative_to(temporary)): digest(path)
                for path in sorted(temporary.rglob("*"))
                if path.is_file()
            },
        }
        (temporary / RECORD).write_text(json.dumps(record) + "\n", encoding="utf-8")


def digest(path: Path) -> str | None:
    """SHA-256 of a file's content, None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def remove(path: Path) -> None:
    """Remove a file or directory, if it is there.  Raises UserError where that cannot be done."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{path}: is damaged and cannot be removed: {error.strerror}; remove it"
        ) from error


def read_record(path: Path) -> dict[str, Any]:
    """The values of a record, none where it cannot be read."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
