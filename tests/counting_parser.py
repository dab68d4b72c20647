"""A parser for tests that is trained in milliseconds: a parser that counts which tag governs which.

It is no good parser, but an honest one: what it proposes and scores depends on what it was shown.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.base import StepReport
from tk_spacy.treebank.conllu import Sentence, check_tree


def _arc(sentence: Sentence, head: int, word: int) -> str:
    tag = sentence.upos[head - 1] if head else "ROOT"
    side = "root" if not head else "left" if word < head else "right"
    return f"{tag} {sentence.upos[word - 1]} {side} {min(abs(word - head), 4)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingParser:
    """smoothing: added to every count.  name: so that several can be told apart."""

    kind: ClassVar[str] = "sampling"  # as good as any: it is not saved
    given: ClassVar[bool] = False

    name: str = "counting"
    smoothing: float = 0.1

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.name,)

    def about(self) -> dict[str, Any]:
        return {"smoothing": self.smoothing}

    def training_key(self) -> list[Any]:
        return [self.smoothing]

    def search_key(self) -> list[Any]:
        return []

    def check(self, sentences: Sequence[Sentence]) -> None:
        for sentence in sentences:
            if "UNREADABLE" in sentence.forms:
                raise UserError(f"{sentence.path}:{sentence.line}: a word that cannot be read")

    def seconds(self, words: int) -> float:
        return words / 1000

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        arcs: Counter[str] = Counter()
        labels: dict[str, Counter[str]] = {}
        for number, sentence in enumerate(train, start=1):
            for word, head in enumerate(sentence.heads.tolist(), start=1):
                arc = _arc(sentence, head, word)
                arcs[arc] += 1
                labels.setdefault(arc, Counter())[sentence.deprels[word - 1]] += 1
            report(number, len(train))
        (directory / "counts.json").write_text(
            json.dumps({"arcs": arcs, "labels": labels, "smoothing": self.smoothing}), "utf-8"
        )

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> CountingSource:
        counts = json.loads((directory / "counts.json").read_text("utf-8"))
        return CountingSource(self.name, inventory, **counts)


class CountingSource:
    in_company = False

    def __init__(
        self,
        name: str,
        inventory: LabelInventory,
        *,
        arcs: dict[str, int],
        labels: dict[str, dict[str, int]],
        smoothing: float,
    ) -> None:
        self.names = (name,)
        self.inventory = inventory
        self._arcs, self._labels, self._smoothing = arcs, labels, smoothing
        self.known = {"root", "dep", *(label for counts in labels.values() for label in counts)}

    def _score(self, sentence: Sentence, heads: Sequence[int], labels: Sequence[str]) -> float:
        if not self.known.issuperset(labels):
            return math.nan
        total = 0.0
        for word, (head, label) in enumerate(zip(heads, labels, strict=True), start=1):
            arc = _arc(sentence, head, word)
            total += math.log(self._arcs.get(arc, 0) + self._smoothing)
            total += math.log(self._labels.get(arc, {}).get(label, 0) + self._smoothing)
        return total

    def _label(self, sentence: Sentence, head: int, word: int) -> str:
        if not head:
            return "root"
        counts = self._labels.get(_arc(sentence, head, word), {})
        return max(counts, key=lambda label: (counts[label], label), default="dep")

    def _tree(self, sentence: Sentence, heads: list[int]) -> tuple[list[int], list[str], float]:
        labels = [self._label(sentence, head, word) for word, head in enumerate(heads, start=1)]
        return heads, labels, self._score(sentence, heads, labels)

    def _heads(self, sentence: Sentence, word: int) -> list[int]:
        """The three likeliest heads of a word."""
        heads = [head for head in range(len(sentence) + 1) if head != word]
        return sorted(heads, key=lambda h: -self._arcs.get(_arc(sentence, h, word), 0))[:3]

    def _changed(self, heads: list[int], word: int, head: int) -> list[int]:
        changed = list(heads)
        if head and not heads[word - 1]:
            changed[head - 1] = 0  # the new head takes the root's place
        changed[word - 1] = head
        return changed

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        for sentence in sentences:
            words = range(1, len(sentence) + 1)
            ranked = {word: self._heads(sentence, word) for word in words}
            best = self._tree(sentence, list(range(len(sentence))))
            for word in words:  # greedily, from a chain
                changed = self._changed(best[0], word, ranked[word][0])
                if check_tree(changed) is None:
                    best = max(best, self._tree(sentence, changed), key=lambda tree: tree[2])
            around = [self._changed(best[0], word, head) for word in words for head in ranked[word]]
            met = [best, *(self._tree(sentence, h) for h in around if check_tree(h) is None)]
            yield CandidateList.build(met, inventory=self.inventory, sources=self.names, k=k)

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[np.ndarray]:
        return [
            np.array(
                [
                    [self._score(sentence, trees.heads[row].tolist(), trees.deprels(row))]
                    for row in range(len(trees))
                ]
            )
            for sentence, trees in zip(sentences, lists, strict=True)
        ]
