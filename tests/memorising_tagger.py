"""A tagger for tests that knows by heart what it was shown: any other word is tagged X.

It keeps a record of the sentences that each tagger was trained on and had as dev part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.parsers.base import StepReport
from tk_spacy.tagging.base import Tags
from tk_spacy.treebank.conllu import Sentence


@dataclass(frozen=True, slots=True)
class MemorisedTags:
    known: dict[tuple[str, ...], Tags]
    columns: tuple[str, ...] = ("LEMMA", "UPOS", "XPOS", "FEATS")

    def tag(self, sentences: Iterable[Sentence]) -> Iterator[Tags]:
        for sentence in sentences:
            blank = ("_",) * len(sentence)
            yield self.known.get(sentence.forms, Tags(blank, ("X",) * len(sentence), blank, blank))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorisingTagger:
    """diary: the file that its records are added to, a line of JSON each."""

    kind: ClassVar[str] = "udpipe"  # as good as any: it is not saved
    given: ClassVar[bool] = False

    diary: Path
    name: str = "memory"

    def about(self) -> dict[str, Any]:
        return {}

    def training_key(self) -> list[Any]:
        return [self.name]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """It can learn from everything."""

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
        report(1, 1)
        rows = [[s.forms, *Tags.of(s)] for s in train]
        (directory / "known.json").write_text(json.dumps(rows), encoding="utf-8")
        with self.diary.open("a", encoding="utf-8") as file:
            ids = [[s.sent_id for s in part] for part in (train, dev)]
            file.write(json.dumps({"directory": str(directory), "seen": ids}) + "\n")

    def open(self, directory: Path) -> MemorisedTags:
        rows = json.loads((directory / "known.json").read_text(encoding="utf-8"))
        return MemorisedTags({tuple(forms): Tags(*map(tuple, columns)) for forms, *columns in rows})
