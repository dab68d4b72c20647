"""What can be said of a distillation before a training begins: its parsers, and its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tk_spacy.ensemble.distillation.student import check_student
from tk_spacy.errors import TreebankError, UserError
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.treebank.text_files import read_text
from tk_spacy.workflows.files.inputs import InputReader, form_of


def make_students(
    names: Sequence[str], *, seed: int, xpos: bool, settings: Mapping[str, Mapping[str, Any]]
) -> tuple[Any, ...]:
    """The specs of the parsers that are to learn.  Raises UserError for one that cannot.

    The rest as in `registry.make_parsers`.
    """
    found = make_parsers(names, seed=seed, xpos=xpos, settings=settings)
    for spec in found:
        check_student(spec)
    return found


def check_text(path: Path, *, has_tokenizer: bool) -> None:
    """Raises UserError for a text that cannot be read, or that nobody can split into words.

    has_tokenizer: whether one is trained.
    """
    if path.is_dir():
        raise UserError(f"{path}: is a directory; give one file, a text or CoNLL-U")
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; give a text, or CoNLL-U")
    if form_of(path, "auto") == "text":
        if not [piece for piece in read_text(path) if piece.strip()]:  # all of it, as UTF-8
            raise TreebankError(path, 0, "the file holds no word; give a file with text in it")
        if not has_tokenizer:
            raise UserError(
                f"{path}: plain text, but no tokenizer is trained (that needs own tags, and a "
                "treebank with SpaceAfter=No); give CoNLL-U"
            )
        return
    empty = True
    for _ in InputReader("conllu").sentences(path):
        empty = False
    if empty:
        raise TreebankError(path, 0, "the file holds no sentence; give a file with some")
