from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.utils.array_types import Float32, Float64, Int32, Int64

def shift_labels(scores: Float32, forbidden: NDArray[np.uint8]) -> Float32: ...
def shift_arc_labels(scores: Float32, heads: Int64, forbidden: NDArray[np.uint8]) -> Float32: ...
def choose_labels(
    scores: Float32,
    less: Float32,
    totals: Float64,
    labels: Int32,
    margins: Float64,
    *,
    second: bool,
) -> None: ...
def distinct_arcs(heads: Int32) -> tuple[Int64, Int64, Int32]: ...
def pick_labels(
    scores: Float32, less: Float32, arcs: Int32, labels: NDArray[np.integer[Any]]
) -> Float32: ...
