"""CoNLL-U files to Sentences and back: streaming, strict, lossless.

Accepted on purpose, and written back as it was: LF and CRLF, also mixed; a byte-order mark; blank
lines (also of spaces) before, between and after sentences; a missing final blank line or line end;
spaces and any other character but tab, LF, CR inside a column; DEPREL "_"; a word with HEAD 0 whose
DEPREL is not "root" (other schemes; it simply never equals a gold "root"); the same sent_id in
several sentences (k-best files); a second sent_id comment in one (the first counts); unchecked
DEPS, FEATS and MISC.  Everything else that CoNLL-U forbids is refused
with a TreebankError that names path, line, reason and cure.

Reading is in ``conllu_reader``, sentences are in ``sentence``; this module is their public face.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

from tk_spacy.conllu_reader import Reader
from tk_spacy.sentence import Sentence, TreebankError, check_tree, parse_feats

__all__ = [
    "Sentence",
    "TreebankError",
    "atomic_output",
    "check_tree",
    "load_treebank",
    "parse_feats",
    "read_conllu",
    "write_conllu",
]

Trees = Literal["required", "optional", "any"]

STDOUT = "-"
"""A path to write to that stands for standard output."""


def read_conllu(
    path: str | os.PathLike[str], *, trees: Trees = "required", single_root: bool = True
) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file, one at a time; memory does not grow with the file.

    trees: "optional" also accepts words whose HEAD is "_" (then -1 in ``heads``).  "any", for input
        that is to be parsed, accepts whatever stands in HEAD and DEPREL: where the HEADs are no
        tree, all of the sentence's ``heads`` are -1.
    single_root: False also accepts several words with HEAD 0 (outputs of other parsers).
    Raises TreebankError when the fault is reached, so sentences before it have been yielded; a
    file without any sentence yields none.
    """
    if trees not in ("required", "optional", "any"):
        raise ValueError(f"trees must be 'required', 'optional' or 'any', got {trees!r}")
    reader = Reader(os.fspath(path), trees == "required", single_root, any_trees=trees == "any")
    return reader.sentences()


def load_treebank(
    path: str | os.PathLike[str], *, trees: Trees = "required", single_root: bool = True
) -> list[Sentence]:
    """All sentences of a file (see ``read_conllu``); TreebankError if there is none."""
    sentences = list(read_conllu(path, trees=trees, single_root=single_root))
    if not sentences:
        raise TreebankError(path, 0, "the file holds no sentence; give a file with CoNLL-U in it")
    return sentences


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[Sentence]) -> int:
    """Write sentences as they come, atomically; returns how many were written.

    path: a file, which appears under its name only when complete, or STDOUT.  A blank line that a
    sentence lacks (it was the last of its file) is added where another sentence follows.
    TreebankError if the place cannot be written.
    """
    count = 0
    end, eol = "", "\n"
    with atomic_output(path) as out:
        for sentence in sentences:
            text = sentence.to_conllu()
            if count:
                text = text.removeprefix("\ufeff")  # a byte-order mark may only start a file
                out.write((eol * max(0, 2 - end.count("\n"))).encode())
            out.write(text.encode())
            end, eol = sentence.layout.after, sentence.layout.eols[-1]
            count += 1
    return count


@contextmanager
def atomic_output(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes its name when closed without error; else nothing is left.

    STDOUT is written to as the content comes.
    """
    if os.fspath(path) == STDOUT:
        try:
            sys.stdout.flush()
            yield sys.stdout.buffer
            # Not later, when the interpreter ends and nobody can tell the user of a full disk.
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # whoever reads it has enough
        except OSError as error:
            raise TreebankError("standard output", 0, f"{error.strerror or error}") from error
        return
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as out:  # a device or pipe cannot be replaced
                yield out
            return
        if target.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as out:
                yield out
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        cure = "give a file name in a directory that exists and can be written"
        raise TreebankError(path, 0, f"cannot write it: {reason}; {cure}") from error
