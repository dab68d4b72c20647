"""Trees of any parser, read from files: one for each sentence, or k-best lists with scores.

A file is CoNLL-U with a tree in HEAD and DEPREL, or a k-best file of either form (see
`kbest_writing`).  It serves as a parser: its trees join the lists, and it scores those of others
as far as it can.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.errors import CandidateError
from tk_spacy.kbest.agreement import agreement, one_tree
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import Pair
from tk_spacy.treebank.conllu import Sentence, TreebankError, read_conllu
from tk_spacy.trees.repair import repaired
from tk_spacy.trees.tree_rows import group_equal

KBEST_COMMENT = re.compile(r"#\s*(tk_candidate_1|rank)\s*=")
REMEMBERED = 1024
"""Sentences whose lists wait for the trees of others to be scored."""


def is_kbest(path: str | os.PathLike[str]) -> bool:
    """Whether a file's first sentence has candidates.

    Raises UserError for a file that cannot be read or holds no sentence.
    """
    first = next(read_conllu(path, trees="any", single_root=False), None)
    if first is None:
        raise TreebankError(path, 0, "the file holds no sentence; give a file with CoNLL-U in it")
    return any(KBEST_COMMENT.match(line) for line in first.comments)


class TreeFile:
    """The lists of one file, handed out to the sentences that they belong to.

    path: CoNLL-U with trees (which may have several roots, see `tree_repair`), or k-best lists.
    inventory: shared table of labels.  source: what its scores are called.

    scored: whether it is a k-best file; of several sources in it, the first one's scores count.
    Lists are matched by sent_id, or by their order where the file or the data has none, in one
    pass; those that are passed over wait in memory, so that a file in the data's order takes none.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, inventory: LabelInventory, source: str
    ) -> None:
        self.path = os.fspath(path)
        self.source = source
        self.scored = is_kbest(path)
        self._inventory = inventory
        self._pairs = self._read()
        self._waiting: dict[str, Pair] = {}
        self._by_order: bool | None = None
        self._number = 0

    def take(self, sentence: Sentence) -> CandidateList:
        """The list of the next sentence of the data, with one source.

        Raises CandidateError where there is none, or its words are not the sentence's.
        """
        self._number += 1
        found, trees = self._match(sentence)
        where = f"{self.path}:{found.line}: sentence {sentence.sent_id or self._number}"
        there = f"{sentence.path}:{sentence.line}" if sentence.path else "the data"
        if len(found) != len(sentence):
            raise CandidateError(
                f"{where} has {len(found)} words here, but {len(sentence)} in {there}; "
                "give trees of the same words"
            )
        # Parsers may change some forms, such as brackets; none alike is another sentence.
        if not any(a == b for a, b in zip(found.forms, sentence.forms, strict=True)):
            raise CandidateError(
                f"{where} begins with {found.forms[0]!r} here, but with {sentence.forms[0]!r} in "
                f"{there}, and shares no word: the file has other sentences, or another order"
            )
        return trees

    def check_end(self) -> None:
        """Raises CandidateError where lists are left that were matched by order alone."""
        if self._by_order and (more := next(self._pairs, None)) is not None:
            raise CandidateError(
                f"{self.path}:{more[0].line}: more sentences than the data's {self._number}"
            )

    def _match(self, sentence: Sentence) -> Pair:
        wanted = sentence.sent_id
        if wanted is not None and wanted in self._waiting:
            return self._waiting.pop(wanted)
        for pair in self._pairs:
            own = pair[0].sent_id
            if self._by_order is None:
                self._by_order = own is None or wanted is None
            if self._by_order or own == wanted:
                return pair
            if own is None or wanted is None:
                raise CandidateError(
                    f"{self.path}:{pair[0].line}: sentence {self._number}: its sent_id is "
                    f"{own or 'missing'} here, but {wanted or 'missing'} in the data"
                )
            if own in self._waiting:
                raise CandidateError(
                    f"{self.path}:{pair[0].line}: sent_id {own} stands for two sentences"
                )
            self._waiting[own] = pair
        there = f" ({sentence.path}:{sentence.line})" if sentence.path else ""
        raise CandidateError(
            f"{self.path}: no trees for sentence {wanted or self._number}{there}; give a file with "
            "the trees of every sentence"
        )

    def _read(self) -> Iterator[Pair]:
        if self.scored:
            for found, trees in read_kbest(
                self.path, inventory=self._inventory, source=self.source
            ):
                yield found, self._renamed(trees)
            return
        for found in read_conllu(self.path, single_root=False):
            heads, deprels = repaired(found.heads.tolist(), found.deprels)
            array = np.array(heads, dtype=np.int32)
            yield found, one_tree(array, deprels, inventory=self._inventory, source=self.source)

    def _renamed(self, trees: CandidateList) -> CandidateList:
        return CandidateList.from_arrays(
            trees.heads, trees.labels, trees.scores[:, :1],
            inventory=self._inventory, sources=(self.source,), base=trees.base,
        )  # fmt: skip


def matched(
    file: TreeFile, sentences: Iterable[Sentence]
) -> Iterator[tuple[Sentence, CandidateList]]:
    """Each sentence with its list from a file that is for these sentences and no others."""
    for sentence in sentences:
        yield sentence, file.take(sentence)
    file.check_end()


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
