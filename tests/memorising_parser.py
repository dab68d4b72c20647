"""A parser for tests that knows by heart what it was shown, and nothing else.

Of a sentence that stood in its training data its list has the gold tree on top; of any other one it
has chains to the left and to the right.  So a parser that is asked for what it was trained on shows
as a perfect score.  It also keeps a record of the sentences that each parser was trained on, had as
dev part, and was asked for, and of their tags.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.base import StepReport
from tk_spacy.treebank.conllu import Sentence

KNOWN, UNKNOWN = 0.0, -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorisingParser:
    """diary: the file that its records are added to, a line of JSON each."""

    kind: ClassVar[str] = "sampling"  # as good as any: it is not saved
    given: ClassVar[bool] = False

    diary: Path
    name: str = "memory"

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.name,)

    def about(self) -> dict[str, Any]:
        return {}

    def training_key(self) -> list[Any]:
        return [self.name]

    def search_key(self) -> list[Any]:
        return []

    def check(self, sentences: Sequence[Sentence]) -> None:
        """It can read everything."""

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
        known = {" ".join(s.forms): [s.heads.tolist(), list(s.deprels)] for s in train}
        (directory / "memory.json").write_text(json.dumps(known), encoding="utf-8")
        report(1, 1)
        of_dev = [" ".join(s.upos) for s in dev]
        self._write("train", train, dev=[" ".join(s.forms) for s in dev], dev_tags=of_dev)

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> MemorisingSource:
        known = json.loads((directory / "memory.json").read_text(encoding="utf-8"))
        return MemorisingSource(self, known, inventory)

    def _write(self, what: str, sentences: Sequence[Sentence], **more: Any) -> None:
        record = {
            "what": what,
            "name": self.name,
            "of": [" ".join(s.forms) for s in sentences],
            "tags": [" ".join(s.upos) for s in sentences],
        }
        with self.diary.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**record, **more}) + "\n")

    def records(self, what: str) -> list[dict[str, Any]]:
        """What was written of all parsers with this diary: "train" or "parse"."""
        lines = self.diary.read_text(encoding="utf-8").splitlines()
        return [record for record in map(json.loads, lines) if record["what"] == what]


class MemorisingSource:
    in_company = False

    def __init__(
        self, parser: MemorisingParser, known: dict[str, Any], inventory: LabelInventory
    ) -> None:
        self.names = (parser.name,)
        self._view, self._known, self._inventory = parser, known, inventory

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        self._view._write("parse", sentences, knows=list(self._known))
        for sentence in sentences:
            trees = [(*tree, UNKNOWN - i) for i, tree in enumerate(chains(sentence))]
            if (tree := self._known.get(" ".join(sentence.forms))) is not None:
                trees.insert(0, (*tree, KNOWN))
            yield CandidateList.build(
                trees, inventory=self._inventory, sources=self.names, k=k, base=0
            )

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[np.ndarray]:
        scores = []
        for sentence, trees in zip(sentences, lists, strict=True):
            heads, deprels = self._known.get(" ".join(sentence.forms), (None, None))
            rows = [
                KNOWN if [h.tolist(), list(trees.deprels(j))] == [heads, deprels] else UNKNOWN - 2
                for j, h in enumerate(trees.heads)
            ]
            scores.append(np.array(rows)[:, None])
        return scores


def chains(sentence: Sentence) -> list[tuple[list[int], list[str]]]:
    """Trees that no gold tree of `gold_sentences` is: each word hangs on its neighbour."""
    n = len(sentence)
    left, right = list(range(n)), [*range(2, n + 1), 0]
    return [
        (left, ["root", *["chain"] * (n - 1)]),
        (right, [*["chain"] * (n - 1), "root"]),
        (left, ["root", *["link"] * (n - 1)]),
    ]


FAR_TREES = ([3, 5, 0, 6, 3, 3], [3, 6, 0, 1, 3, 3], [4, 4, 1, 0, 2, 4], [4, 4, 6, 0, 1, 4])
"""No word hangs on its neighbour, and the root is neither first nor last."""


def gold_sentences(n: int, *, start: int = 0) -> list[Sentence]:
    """Sentences of six words that all differ, and whose trees share no arc with `chains`.

    The tree is told by the sentence's number alone: nothing can be learned from other sentences.
    """
    rng = np.random.default_rng(1000 + start)
    made = []
    for number in range(start, start + n):
        heads = FAR_TREES[int(rng.integers(len(FAR_TREES)))]
        made.append(
            Sentence.from_columns(
                forms=[f"w{number}.{word}" for word in range(6)],
                upos=["NOUN"] * 6,
                heads=heads,
                deprels=["gold" if head else "root" for head in heads],
                sent_id=f"s{number}",
            )
        )
    return made
