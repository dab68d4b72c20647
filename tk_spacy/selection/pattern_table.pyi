from typing import Final

from numpy.typing import ArrayLike

from tk_spacy.selection.corpus import Corpus
from tk_spacy.utils.array_types import Float64, Int32, Int64

MAX_ORDER: Final[int]

class PatternTable:
    trees: bool
    order: Int32
    def __init__(self, parents: ArrayLike, steps: ArrayLike, *, trees: bool) -> None: ...
    def __len__(self) -> int: ...
    @property
    def parents(self) -> Int64: ...
    @property
    def steps(self) -> Int64: ...
    @property
    def orders(self) -> Int32: ...
    def placed(self, weights: Float64) -> Float64: ...
    def scores(
        self, corpus: Corpus, weights: Float64, *, n_threads: int | None = None
    ) -> list[Float64]: ...
    def placed_scores(
        self, corpus: Corpus, weights: Float64, *, n_threads: int | None = None
    ) -> list[Float64]: ...
    def list_scores(self, corpus: Corpus, at: int, weights: Float64) -> Float64: ...
    def move(
        self,
        corpus: Corpus,
        at: int,
        row: int,
        by: float,
        weights: Float64,
        stepped: Float64,
        time: float,
    ) -> None: ...
