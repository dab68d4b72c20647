"""The parser: each word hangs on the word so many before it, with the commonest label of its UPOS.

Its other trees hang one word on the first word instead.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tk_spacy.kbest.agreement import agreement
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.base import StoredParser
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.serialization import META
from tk_spacy.utils.validation import check_names_of, check_values


@dataclass(frozen=True, kw_only=True)
class PreviousSettings:
    """back: words between a word and its head, and one."""

    back: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_values(self, {"back": (1, 9)})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PreviousSettings:
        return cls(**check_names_of(cls, data))


@dataclass(frozen=True, eq=False)
class PreviousParser(StoredParser):
    FORMAT = "previous-word parser"
    VERSION = OLDEST = 1
    FILES = (META, "labels.json")

    by_upos: Mapping[str, str]
    settings: PreviousSettings
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def train(cls, sentences: Sequence[Sentence], settings: PreviousSettings) -> PreviousParser:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for sentence in sentences:
            for upos, deprel in zip(sentence.upos, sentence.deprels, strict=True):
                counts[upos][deprel] += 1
        return cls({upos: c.most_common(1)[0][0] for upos, c in counts.items()}, settings)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted({*self.by_upos.values(), "root", "dep"}))

    def tree(self, sentence: Sentence) -> tuple[np.ndarray, tuple[str, ...]]:
        back = self.settings.back
        heads = [i - back if i > back else i - 1 for i in range(1, len(sentence) + 1)]
        found = [self.by_upos.get(upos, "dep") for upos in sentence.upos]
        return np.array(heads, dtype=np.int32), ("root", *found[1:])

    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[tuple[np.ndarray, tuple[str, ...]]]:
        return map(self.tree, sentences)

    def to_files(self) -> dict[str, bytes]:
        meta = self._meta(self.settings.to_dict(), self.about)
        return {META: meta, "labels.json": json.dumps(dict(self.by_upos)).encode()}

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> PreviousParser:
        settings = PreviousSettings.from_dict(meta["settings"])
        return cls(json.loads(files["labels.json"]), settings, cls._about(meta))


class PreviousSource:
    """The parser as a source of candidates; a tree's score is minus its words unlike the own."""

    in_company = False

    def __init__(self, parser: PreviousParser, inventory: LabelInventory, name: str) -> None:
        self.parser, self.inventory, self.names = parser, inventory, (name,)

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        for sentence in sentences:
            heads, deprels = self.parser.tree(sentence)
            trees = [(heads, deprels, 0.0)]
            for word in range(len(heads) - 1, 0, -1):
                if len(trees) < k and heads[word] != 1:
                    other = heads.copy()
                    other[word] = 1
                    trees.append((other, deprels, -1.0))
            yield CandidateList.build(trees, inventory=self.inventory, sources=self.names)

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[np.ndarray]:
        pairs = zip(sentences, lists, strict=True)
        return [agreement(trees, *self.parser.tree(s))[:, None] for s, trees in pairs]
