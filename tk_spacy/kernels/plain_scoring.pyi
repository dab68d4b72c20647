import numpy as np
from numpy.typing import NDArray

def count_matches(
    nodes: NDArray[np.int32], columns: NDArray[np.int32], *, n_threads: int | None = None
) -> NDArray[np.uint16]: ...
def add_part_scores(
    counts: NDArray[np.uint16],
    parts: NDArray[np.int32],
    columns: NDArray[np.int32],
    weights: NDArray[np.float64],
    kinds: NDArray[np.int32],
    skips: NDArray[np.int32],
    out: NDArray[np.float64],
    *,
    n_threads: int | None = None,
) -> None: ...
def length_bins(distances: NDArray[np.int32]) -> NDArray[np.int32]: ...
