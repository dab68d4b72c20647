"""Trees of any parser, read from files: one for each sentence, or k-best lists with scores.

A file is CoNLL-U with a tree in HEAD and DEPREL, or a k-best file of either form (see `writer`).
It serves as a parser: its trees join the lists, and it scores those of others
as far as it can.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.agreement import agreement, one_tree
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.matching import Matcher
from tk_spacy.kbest.reader import TreesFile
from tk_spacy.kbest.writer import Pair
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.repair import repaired
from tk_spacy.trees.tree_rows import group_equal

REMEMBERED = 1024
"""Sentences whose lists wait for the trees of others to be scored."""


class TreeFile(Matcher):
    """The lists of one file, handed out to the sentences that they belong to.

    path: CoNLL-U with trees (which may have several roots, see `repair`), or k-best lists; opened
        once, so it may be a pipe, or "-" for standard input.
    inventory: shared table of labels.  source: what its scores are called.

    scored: whether it is a k-best file; of several sources in it, the first one's scores count.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, inventory: LabelInventory, source: str
    ) -> None:
        file = TreesFile(path)
        self.scored = file.form is not None
        pairs = _scored if self.scored else _single
        super().__init__(pairs(file, inventory, source), where=file.name)


def _scored(file: TreesFile, inventory: LabelInventory, source: str) -> Iterator[Pair]:
    for found, trees in file.lists(inventory=inventory, source=source):
        renamed = CandidateList.from_arrays(
            trees.heads, trees.labels, trees.scores[:, :1],
            inventory=inventory, sources=(source,), base=trees.base,
        )  # fmt: skip
        yield found, renamed


def _single(file: TreesFile, inventory: LabelInventory, source: str) -> Iterator[Pair]:
    for found in file.sentences(single_root=False):
        heads, deprels = repaired(found.heads.tolist(), found.deprels)
        array = np.array(heads, dtype=np.int32)
        yield found, one_tree(array, deprels, inventory=inventory, source=source)


class TreeFileSource:
    """A ParserSource out of lists that are there already.

    name: of its scores.  scored: whether the lists have scores; see `score`.
    find: gives the list of a sentence, perhaps only once (the latest lists are remembered).
    """

    in_company = False

    def __init__(
        self, name: str, find: Callable[[Sentence], CandidateList], *, scored: bool
    ) -> None:
        self.names = (name,)
        self._find = find
        self._scored = scored
        self._known: dict[int, tuple[Sentence, CandidateList]] = {}

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        """The lists, each cut to its best k trees, in order."""
        for sentence in sentences:
            trees = self._list(sentence)
            if len(trees) > k:
                trees = CandidateList.from_arrays(
                    trees.heads, trees.labels, trees.scores,
                    inventory=trees.inventory, sources=trees.sources, base=trees.base, k=k,
                )  # fmt: skip
            yield trees

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """float64[k, 1] for each list.

        With scores: a tree's own one, NaN where the file has not that tree.  Without: minus the
        number of words whose head or label differs from the file's tree.
        """
        return [
            self._scores(self._list(sentence), trees)[:, None]
            for sentence, trees in zip(sentences, lists, strict=True)
        ]

    def _scores(self, own: CandidateList, trees: CandidateList) -> NDArray[np.float64]:
        if not self._scored:
            return agreement(trees, own.heads[own.base], own.deprels(own.base))
        group, _ = group_equal(
            np.concatenate([own.heads, trees.heads]), np.concatenate([own.labels, trees.labels])
        )
        known = dict(zip(group.tolist(), own.scores[:, 0].tolist(), strict=False))
        return np.array([known.get(row, np.nan) for row in group[len(own) :].tolist()])

    def _list(self, sentence: Sentence) -> CandidateList:
        # Sentences are equal by identity only, and kept here as long as their ids count.
        key = id(sentence)
        if key not in self._known:
            if len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[key] = (sentence, self._find(sentence))
        return self._known[key][1]
