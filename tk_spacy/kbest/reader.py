"""Reading k-best files of both forms (see `writer`)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tk_spacy.errors import CandidateError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.compact_lines import read_lines
from tk_spacy.kbest.writer import NEXT_ARC, OWN_COMMENTS, Form, Pair, fail
from tk_spacy.treebank.conllu import Sentence, Trees
from tk_spacy.treebank.opened import OpenTreebank

_CANDIDATE = re.compile(r"#\s*tk_candidate_(\d+)\s*=\s*(.*)")
_BASE = re.compile(r"#\s*tk_base\s*=\s*(.*)")
_FURTHER_BASE = re.compile(r"#\s*tk_base_([^\s:,=]+)\s*=\s*(.*)")
_RANK = re.compile(r"#\s*rank\s*=\s*(.*)")
_SCORE = re.compile(r"#\s*score\s*=\s*(.*)")
DEFAULT_SOURCE = "kbest"
MAX_DIGITS = 9


class TreesFile:
    """A file with trees, opened once: a k-best file of either form, or a plain treebank.

    path: a file, a pipe, or "-" for standard input.
    name: of the file in messages.  form: of a k-best file, None of a treebank; the comments of the
        first sentence tell.

    Its sentences or its lists are read once.  Raises TreebankError where the file cannot be read or
    holds no sentence.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._treebank = OpenTreebank(path)
        self.name = self._treebank.name
        self.form: Form | None = None
        if any(_CANDIDATE.match(line) for line in self._treebank.comments):
            self.form = "compact"
        elif any(_RANK.match(line) for line in self._treebank.comments):
            self.form = "expanded"

    def sentences(
        self, *, trees: Trees = "required", single_root: bool = True
    ) -> Iterator[Sentence]:
        """The sentences as a treebank's; see `read_conllu`."""
        return self._treebank.sentences(trees=trees, single_root=single_root)

    def lists(
        self, *, inventory: LabelInventory, source: str = DEFAULT_SOURCE, k: int | None = None
    ) -> Iterator[Pair]:
        """The sentences with their lists; see `read_kbest`."""
        if self.form is None:
            for first in self.sentences(trees="any"):
                fail(
                    first, 0, "no k-best file: neither '# tk_candidate_1 = ...' nor '# rank = ...'"
                )
        if self.form == "compact":
            cache: dict[str, tuple[int, int]] = {}
            for sentence in self.sentences(trees="any"):
                yield _read_compact(sentence, inventory, k, cache)
        else:
            for group in _groups(self.sentences()):
                yield _read_group(group, inventory, source, k)


def read_kbest(
    path: str | os.PathLike[str],
    *,
    inventory: LabelInventory,
    source: str = DEFAULT_SOURCE,
    k: int | None = None,
) -> Iterator[Pair]:
    """The sentences of a k-best file of either form with their lists, one at a time.

    inventory: table of labels that all lists of the run share.
    source: name for the scores of an expanded file, which has none.
    k: trees to keep of each list.

    A sentence's tree is its first candidate: what HEAD and DEPREL of a compact file hold does not
    matter.  The file is opened once, when the first list is asked for, so it may be a pipe, or "-"
    for standard input.  Raises CandidateError naming path, line and reason
    where a candidate cannot be read, is no tree with a single root, or does not fit the sentence.
    """
    yield from TreesFile(path).lists(inventory=inventory, source=source, k=k)


def _read_compact(
    sentence: Sentence,
    inventory: LabelInventory,
    k: int | None,
    cache: dict[str, tuple[int, int]],
) -> Pair:
    """The list in a sentence's comments; `cache` knows the HEAD:DEPREL texts met so far."""
    lines = list(enumerate(sentence.comments))
    found = read_lines(sentence.comments, len(sentence), inventory.add)
    if found is not None:
        first, heads, labels, scores, sources = found
        places: Sequence[int] = range(first, first + len(heads))
        others = lines[:first] + lines[places[-1] + 1 :]
        if any(_CANDIDATE.match(line) for _, line in others):
            found = None
        else:
            lines = others
    if found is None:
        places, heads, labels, scores, sources = _read_lines_plainly(sentence, inventory, cache)
    base, bases = _read_bases(sentence, lines)
    for name, row in {"": base, **bases}.items():
        key = f"tk_base_{name}" if name else "tk_base"
        if row > len(heads):
            fail(sentence, 0, f"{key} is {row}, but there are {len(heads)} candidates")
        if name and name not in sources:
            fail(sentence, 0, f"{key}: candidate 1 has no score of {name!r}")
    trees = _build(
        sentence,
        places,
        heads=heads,
        labels=labels,
        scores=scores,
        inventory=inventory,
        sources=sources,
        base=base - 1,
        bases={name: row - 1 for name, row in bases.items()},
        k=k,
    )
    kept = [line for _, line in lines if not OWN_COMMENTS.match(line)]
    return sentence.with_comments(kept).with_tree(trees.heads[0], trees.deprels(0)), trees


def _read_bases(sentence: Sentence, lines: Iterable[tuple[int, str]]) -> tuple[int, dict[str, int]]:
    base = 1
    bases: dict[str, int] = {}
    for offset, line in lines:
        if (match := _BASE.match(line)) is not None:
            base = _natural(match[1], sentence, offset, "tk_base")
        if (match := _FURTHER_BASE.match(line)) is not None:
            name, row = match.groups()
            bases[name] = _natural(row, sentence, offset, f"tk_base_{name}")
    return base, bases


def _read_lines_plainly(
    sentence: Sentence, inventory: LabelInventory, cache: dict[str, tuple[int, int]]
) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Candidates however they are written: offsets of their lines, heads, labels, scores, sources.

    What `compact_lines.read_lines` reads is read alike.
    """
    n = len(sentence)
    arcs: list[list[tuple[int, int]]] = []
    given: list[dict[str, float]] = []
    places: list[int] = []
    for offset, line in enumerate(sentence.comments):
        match = _CANDIDATE.match(line)
        if match is None:
            continue
        if match[1] != str(len(arcs) + 1):
            fail(sentence, offset, f"tk_candidate_{len(arcs) + 1} expected, got {match[1][:20]}")
        scores, *tree = match[2].split(" ")
        if len(tree) > n:  # labels may hold spaces
            scores, *tree = NEXT_ARC.split(match[2])
        if len(tree) != n:
            fail(sentence, offset, f"{len(tree)} HEAD:DEPREL pairs for {n} words")
        for text in tree:
            if text not in cache:
                cache[text] = _read_arc(text, sentence, offset, inventory)
        arcs.append([cache[text] for text in tree])
        given.append(_read_scores(scores, sentence, offset))
        places.append(offset)
    if not arcs:
        fail(sentence, 0, "no '# tk_candidate_1 = ...' in this sentence")
    sources = list(given[0])
    for offset, by_name in zip(places, given, strict=True):
        if set(by_name) - set(sources):
            fail(sentence, offset, f"sources {list(by_name)} are not those of candidate 1")
    table = np.array(arcs, dtype=np.int32)
    values = np.array([[row.get(name, math.nan) for name in sources] for row in given])
    return places, table[:, :, 0], table[:, :, 1], values, sources


def _read_group(
    group: list[Sentence], inventory: LabelInventory, source: str, k: int | None
) -> Pair:
    first = group[0]
    scores = []
    for rank, block in enumerate(group, start=1):
        found = {
            name: (offset, match[1])
            for offset, line in enumerate(block.comments)
            for name, pattern in (("rank", _RANK), ("score", _SCORE))
            if (match := pattern.match(line))
        }
        for name in ("rank", "score"):
            if name not in found:
                fail(block, 0, f"no '# {name} = ...' in this sentence")
        if _natural(found["rank"][1], block, found["rank"][0], "rank") != rank:
            fail(block, found["rank"][0], f"rank {rank} expected, got {found['rank'][1]}")
        scores.append(_number(found["score"][1], block, found["score"][0]))
        if block.forms != first.forms:
            fail(block, 0, f"other words than in the sentence's first block (line {first.line})")
    trees = _build(
        first,
        [0] * len(group),
        heads=np.stack([block.heads for block in group]),
        labels=np.stack([inventory.encode(block.deprels) for block in group]),
        scores=np.array(scores)[:, None],
        inventory=inventory,
        sources=[source],
        base=0,
        bases={},
        k=k,
    )
    kept = [line for line in first.comments if not OWN_COMMENTS.match(line)]
    return first.with_comments(kept), trees


def _build(
    sentence: Sentence,
    places: Sequence[int],
    *,
    heads: np.ndarray,
    labels: np.ndarray,
    scores: np.ndarray,
    inventory: LabelInventory,
    sources: Sequence[str],
    base: int,
    bases: dict[str, int],
    k: int | None,
) -> CandidateList:
    try:
        return CandidateList.from_arrays(
            heads, labels, scores,
            inventory=inventory, sources=sources, base=base, bases=bases, k=k,
        )  # fmt: skip
    except CandidateError as error:
        match = re.match(r"candidate (\d+)", str(error))
        offset = places[int(match[1]) - 1] if match else 0
        fail(sentence, offset, str(error))


def _groups(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Blocks of one sentence: a rank of 1 or another sent_id begins the next."""
    group: list[Sentence] = []
    for sentence in sentences:
        if sentence.sent_id is None:
            fail(sentence, 0, "no sent_id, which the expanded k-best form needs")
        begins = any(
            match[1].strip() == "1" for line in sentence.comments if (match := _RANK.match(line))
        )
        if group and (begins or sentence.sent_id != group[0].sent_id):
            yield group
            group = []
        group.append(sentence)
    if group:
        yield group


def _read_arc(
    text: str, sentence: Sentence, offset: int, inventory: LabelInventory
) -> tuple[int, int]:
    head, colon, label = text.partition(":")
    if not colon or not label or "\t" in label or not (head.isascii() and head.isdigit()):
        fail(sentence, offset, f"{text!r} is not HEAD:DEPREL")
    if len(head) > MAX_DIGITS:
        fail(sentence, offset, f"a HEAD of {len(head)} digits lies outside 0..{len(sentence)}")
    return int(head), inventory.add(label)


def _read_scores(text: str, sentence: Sentence, offset: int) -> dict[str, float]:
    scores: dict[str, float] = {}
    for item in text.split(","):
        name, colon, value = item.partition(":")
        if not colon or not name:
            fail(sentence, offset, f"{item!r} is not SOURCE:SCORE")
        if name in scores:
            fail(sentence, offset, f"source {name!r} is given twice")
        scores[name] = _number(value, sentence, offset)
    return scores


def _number(text: str, sentence: Sentence, offset: int) -> float:
    try:
        score = float(text)
    except ValueError:
        fail(sentence, offset, f"score {text!r} is no number")
    if math.isinf(score):
        fail(sentence, offset, f"score {text!r} is infinite; give a number, or nan for no score")
    return score


def _natural(text: str, sentence: Sentence, offset: int, name: str) -> int:
    text = text.strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else 0
    if number < 1:
        fail(sentence, offset, f"{name} {text[:40]!r} is no number from 1 up")
    return number
