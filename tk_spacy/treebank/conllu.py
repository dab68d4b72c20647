"""CoNLL-U files to Sentences and back: streaming, strict, lossless.

Accepted on purpose, and written back as it was: LF and CRLF, also mixed; a byte-order mark; blank
lines (also of spaces and tabs) before, between and after sentences; a missing final blank line or
line end; spaces and any other character but tab, LF, CR inside a column; DEPREL "_"; a word with
HEAD 0 whose DEPREL is not "root" (other schemes; it simply never equals a gold "root"); the same
sent_id in several sentences (k-best files); a second sent_id comment in one (the first counts);
unchecked DEPS and MISC, and FEATS whose names and values are anybody's.  Everything else that
CoNLL-U forbids is refused with a TreebankError that names path, line, reason and cure; where a
character is at fault that cannot be seen, by its name.

Reading is in ``reader``, sentences are in ``sentence``; this module is their public face.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import BinaryIO, Literal, NamedTuple

from tk_spacy.errors import TreebankError
from tk_spacy.treebank.reader import Reader
from tk_spacy.treebank.sentence import Sentence, parse_feats
from tk_spacy.trees.validity import check_tree
from tk_spacy.utils.atomic_files import atomic_output

__all__ = [
    "NO_BLOCK",
    "Block",
    "Sentence",
    "TreebankError",
    "atomic_output",
    "check_tree",
    "joined_block",
    "joined_blocks",
    "load_treebank",
    "parse_feats",
    "read_conllu",
    "write_blocks",
    "write_conllu",
    "write_sentences",
]

Trees = Literal["required", "optional", "any"]


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
    with atomic_output(path) as out:
        return write_sentences(out, sentences)


def write_sentences(out: BinaryIO, sentences: Iterable[Sentence]) -> int:
    """The same to a file that is open already (see ``atomic_output``)."""
    return write_blocks(out, map(_block, sentences))


class Block(NamedTuple):
    """The text of sentences that stand together in a file, in UTF-8.

    sentences: how many.  end: what follows the last line of the last one, its line end and blank
    lines.  eol: one line end of its.
    """

    text: bytes
    sentences: int
    end: str
    eol: str


def _block(sentence: Sentence) -> Block:
    layout = sentence.layout
    return Block(sentence.to_conllu().encode(), 1, layout.after, layout.eols[-1])


NO_BLOCK = Block(b"", 0, "", "\n")


def joined_block(sentences: Iterable[Sentence]) -> Block:
    """Sentences as one block, which ``write_blocks`` writes as it would each."""
    return joined_blocks(map(_block, sentences))


def joined_blocks(blocks: Iterable[Block]) -> Block:
    """The same of blocks."""
    out = BytesIO()
    last = NO_BLOCK

    def noted(block: Block) -> Block:
        nonlocal last
        if block.sentences:
            last = block
        return block

    count = write_blocks(out, map(noted, blocks))
    return last._replace(text=out.getvalue(), sentences=count)


def write_blocks(out: BinaryIO, blocks: Iterable[Block]) -> int:
    """Write blocks as they come; returns how many sentences they held."""
    count = 0
    end, eol = "", "\n"
    for block in blocks:
        if not block.sentences:
            continue
        text = block.text
        if count:
            text = text.removeprefix(BOM_UTF8)  # a byte-order mark may only start a file
            out.write((eol * max(0, 2 - end.count("\n"))).encode())
        out.write(text)
        end, eol = block.end, block.eol
        count += block.sentences
    return count
