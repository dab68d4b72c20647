from typing import Final

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.forest import Forest
from tk_spacy.utils.array_types import Float64, Int32

MOST: Final[float]

def common_subtrees(
    forest_a: Forest,
    arcs_a: tuple[Int32, Int32],
    forest_b: Forest,
    arcs_b: tuple[Int32, Int32],
    *,
    decay: float = 1.0,
) -> NDArray[np.float64]: ...

class TreeSupport:
    decay: float
    def __init__(self, *, decay: float = 1.0) -> None: ...
    def __len__(self) -> int: ...
    def append(
        self,
        forest: Forest,
        arcs: tuple[Int32, Int32],
        coefficients: Float64,
        *,
        weight: float,
        averaged: float,
    ) -> None: ...
    def add_scores(
        self,
        forest: Forest,
        arcs: tuple[Int32, Int32],
        out: NDArray[np.float64],
        *,
        since: int = 0,
        averaged: bool = False,
        n_threads: int | None = None,
    ) -> None: ...
