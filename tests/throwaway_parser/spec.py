"""How the parser is trained and opened."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from throwaway_parser.kind import KIND
from throwaway_parser.parser import PreviousParser, PreviousSettings, PreviousSource
from tk_spacy.parsers.trainable import TrainableParser


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousSpec(TrainableParser[PreviousSettings]):
    kind: ClassVar[str] = KIND.name
    format: ClassVar[int] = 1

    name: str = KIND.name

    @staticmethod
    def read_settings(changes: Mapping[str, Any]) -> PreviousSettings:
        return PreviousSettings.from_dict(changes)

    @staticmethod
    def model_class() -> type[PreviousParser]:
        return PreviousParser

    @staticmethod
    def source_of(parser, *, inventory, n_threads, name) -> PreviousSource:
        return PreviousSource(parser, inventory, name)

    def fit(self, sentences, dev, *, n_threads, report) -> PreviousParser:
        report(len(sentences), len(sentences))
        return PreviousParser.train(sentences, self.settings)
