from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_DEGREE: Final[int]

class PolynomialSupport:
    n_features: int
    degree: int
    n: int
    def __init__(self, n_features: int, degree: int) -> None: ...
    def __len__(self) -> int: ...
    def append(
        self,
        starts: ArrayLike,
        ids: ArrayLike,
        weights: ArrayLike,
        averaged: ArrayLike,
        *,
        counts: ArrayLike | None = None,
    ) -> None: ...
    def add_scores(
        self,
        starts: ArrayLike,
        ids: ArrayLike,
        out: NDArray[np.float64],
        *,
        counts: ArrayLike | None = None,
        since: int = 0,
        averaged: bool = False,
        n_threads: int | None = None,
    ) -> None: ...
