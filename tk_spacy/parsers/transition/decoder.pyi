from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.utils.array_types import Float64, Int32

class Scorer:
    def __init__(
        self, moves: NDArray[np.float32], labels: NDArray[np.float32], places: NDArray[np.uint8]
    ) -> None: ...

def check_words(fields: Int32, starts: Int32, lengths: Int32) -> tuple[Int32, Int32, Int32]: ...
def decode(
    scorer: Scorer,
    fields: Int32,
    starts: Int32,
    lengths: Int32,
    *,
    width: int,
    n_labels_tried: int = ...,
    k: int = ...,
    label_share: float = ...,
    n_threads: int | None = ...,
) -> tuple[Int32, Int32, Float64, Int32]: ...
def score_trees(
    scorer: Scorer,
    fields: Int32,
    starts: Int32,
    lengths: Int32,
    owners: Int32,
    trees: Int32,
    labels: Int32,
    *,
    n_threads: int | None = ...,
) -> Float64: ...
def scores_after(
    scorer: Scorer, fields: Int32, moves: Sequence[int], labels: Sequence[int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...
