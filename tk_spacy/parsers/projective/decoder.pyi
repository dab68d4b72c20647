from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.utils.array_types import Float64, Int32

class Scorer:
    max_heads: int
    morph_end: int
    def __init__(
        self,
        weights: NDArray[np.float32],
        pruner: NDArray[np.float32],
        *,
        max_heads: int,
        least: float,
        morph_end: int,
    ) -> None: ...

def kept_heads(
    scorer: Scorer,
    fields: Int32,
    starts: Int32,
    lengths: Int32,
    *,
    gold_heads: Int32 | None = ...,
    n_threads: int | None = ...,
) -> tuple[Int32, Int32]: ...
def decode(
    scorer: Scorer,
    fields: Int32,
    starts: Int32,
    lengths: Int32,
    sentences: Any = ...,
    *,
    k: int = ...,
    kept: tuple[Int32, Int32] | None = ...,
    gold_heads: Int32 | None = ...,
    cost: float = ...,
    n_threads: int | None = ...,
) -> tuple[Int32, Float64, Int32]: ...
def score_trees(
    scorer: Scorer,
    fields: Int32,
    starts: Int32,
    lengths: Int32,
    owners: Int32,
    trees: Int32,
    *,
    n_threads: int | None = ...,
) -> Float64: ...
