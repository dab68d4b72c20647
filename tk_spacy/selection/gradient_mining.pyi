from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tk_spacy.selection.corpus import Corpus
from tk_spacy.utils.array_types import Float64, Int32, Int64

PARTS: Final[int]

class TooManyPatternsError(MemoryError): ...

def mine(
    corpus: Corpus,
    lists: ArrayLike,
    better: ArrayLike,
    worse: ArrayLike,
    carried: Sequence[tuple[Int64, Int64, Float64]],
    *,
    trees: bool,
    threshold: float,
    step: float = 1.0,
    max_order: int = 255,
    filter_bytes: int = ...,
    max_patterns: int = ...,
    contested: bool = False,
    n_threads: int | None = None,
) -> list[tuple[Int64, Int64, Float64, Int32, Int32, NDArray[np.bool_]]]: ...
def nothing_carried() -> list[tuple[Int64, Int64, Float64]]: ...
