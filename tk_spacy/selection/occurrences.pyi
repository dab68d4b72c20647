from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.utils.array_types import Float64

class Occurrences:
    def __init__(
        self,
        table: PatternTable,
        corpus: Corpus,
        *,
        most: int | None = None,
        n_threads: int | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def scores(self, at: int, weights: Float64) -> Float64: ...
    def move(
        self, at: int, row: int, by: float, weights: Float64, stepped: Float64, time: float
    ) -> None: ...
