from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def add_pair_scores(
    nodes: NDArray[np.int32],
    parts: NDArray[np.int32],
    heads: NDArray[np.int32],
    modifiers: NDArray[np.int32],
    edges: NDArray[np.int32],
    weights: NDArray[np.float64],
    out: NDArray[np.float64],
    *,
    skips: Sequence[int] | NDArray[np.int32],
    n_threads: int | None = None,
) -> None: ...
def add_column_scores(
    nodes: NDArray[np.int32],
    parts: NDArray[np.int32],
    heads: NDArray[np.int32],
    modifiers: NDArray[np.int32],
    edges: NDArray[np.int32],
    weights: NDArray[np.float64],
    out: NDArray[np.float64],
    *,
    skips: Sequence[int] | NDArray[np.int32],
    n_threads: int | None = None,
) -> None: ...
