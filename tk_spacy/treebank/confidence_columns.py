"""Probabilities in CoNLL-U: HeadProb and LabelProb of a word in MISC, a tree's as a comment."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from tk_spacy.errors import UserError
from tk_spacy.treebank.data_notes import word_line
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.array_types import Float64

HEAD_PROB, LABEL_PROB = "HeadProb", "LabelProb"
TREE_PROB = "tk_tree_prob"
_TREE_COMMENT = f"# {TREE_PROB} ="
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


@dataclass(frozen=True, slots=True, eq=False)
class WrittenConfidence:
    """What a sentence says.

    heads, labels: float64[n], NaN of words that say nothing.  tree: NaN where there is no comment.
    """

    heads: Float64
    labels: Float64
    tree: float


def with_confidence(
    sentence: Sentence, *, heads: ArrayLike, labels: ArrayLike, tree: float
) -> Sentence:
    """The sentence with probabilities of its heads and labels (float[n]) and of its tree.

    Written with four decimals.  Earlier ones are replaced; what else stands in MISC is kept in its
    order, with the new attributes before the first one that they precede in the alphabet.
    Raises ValueError for another number of values, or such as are no probabilities.
    """
    columns = []
    for name, given in ((HEAD_PROB, heads), (LABEL_PROB, labels)):
        values = np.asarray(given, dtype=np.float64)
        if values.shape != (len(sentence),):
            raise ValueError(f"{name} of {values.shape} words, expected {len(sentence)}")
        columns.append([f"{name}={_shown(value)}" for value in values.tolist()])
    misc = tuple([_inserted(old, new) for old, *new in zip(sentence.misc, *columns, strict=True)])
    comments = [line for line in sentence.comments if not line.startswith(_TREE_COMMENT)]
    sentence = sentence.with_comments([*comments, f"{_TREE_COMMENT} {_shown(tree)}"])
    return replace(sentence, misc=misc)


def without_confidence(sentence: Sentence) -> Sentence:
    """The sentence without probabilities, which were another tree's; itself where it has none."""
    comments = [line for line in sentence.comments if not line.startswith(_TREE_COMMENT)]
    misc = tuple(_without(old) if "Prob=" in old else old for old in sentence.misc)
    if len(comments) < len(sentence.comments):
        sentence = sentence.with_comments(comments)
    return sentence if misc == sentence.misc else replace(sentence, misc=misc)


def _without(misc: str) -> str:
    items = misc.split("|")
    kept = [item for item in items if item.partition("=")[0] not in (HEAD_PROB, LABEL_PROB)]
    return "|".join(kept) or "_"


def read_confidence(sentence: Sentence) -> WrittenConfidence:
    """What `with_confidence` wrote, or another program.

    Raises UserError, with the place, for a value that is no number from 0 to 1, and for a second
    one, of which nobody knows whether it holds.
    """
    columns = {name: np.full(len(sentence), np.nan) for name in (HEAD_PROB, LABEL_PROB)}
    for word, misc in enumerate(sentence.misc):
        if "Prob=" not in misc:
            continue
        for item in misc.split("|"):
            name, _, value = item.partition("=")
            if name in columns:
                if not np.isnan(columns[name][word]):
                    raise UserError(
                        f"{_place(sentence, word + 1)}: has {name} twice; keep one of them"
                    )
                columns[name][word] = _read(sentence, name, value, word + 1)
    tree = np.nan
    for line in sentence.comments:
        if line.startswith(_TREE_COMMENT):
            if not np.isnan(tree):
                raise UserError(f"{_place(sentence)}: has {TREE_PROB} twice; keep one of them")
            tree = _read(sentence, TREE_PROB, line.removeprefix(_TREE_COMMENT).strip())
    return WrittenConfidence(columns[HEAD_PROB], columns[LABEL_PROB], tree)


def _shown(value: float) -> str:
    if not 0 <= value <= 1:
        raise ValueError(f"a probability is {value}, expected 0 to 1")
    return f"{value:.4f}"


def _inserted(misc: str, new: list[str]) -> str:
    names = {item.partition("=")[0] for item in new}
    old = [] if misc == "_" else misc.split("|")
    items = [item for item in old if item.partition("=")[0] not in names]
    for item in new:
        key = item.lower()
        place = next((i for i, other in enumerate(items) if other.lower() > key), len(items))
        items.insert(place, item)
    return "|".join(items)


def _read(sentence: Sentence, name: str, value: str, word: int = 0) -> float:
    # Not all that Python reads as a number, such as 0_1.
    number = float(value) if _NUMBER.fullmatch(value) else np.nan
    if 0 <= number <= 1:
        return number
    raise UserError(f"{_place(sentence, word)}: {name} is {value!r}; expected a number from 0 to 1")


def _place(sentence: Sentence, word: int = 0) -> str:
    line = word_line(sentence, word) if word else sentence.line
    return f"{sentence.path}:{line}" if sentence.path else f"sentence {sentence.sent_id}"
