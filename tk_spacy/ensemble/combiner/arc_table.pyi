from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

N_HASHED: int

def distinct_arcs(
    heads: NDArray[np.int32], labels: NDArray[np.int32]
) -> tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
]: ...
def arc_shares(
    of_tree: NDArray[np.int32], with_head: NDArray[np.int32], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def hashed_arcs(
    arcs: Sequence[NDArray[np.int32]],
    labelled: NDArray[np.float64],
    heads: NDArray[np.float64],
    every: int,
    label_codes: NDArray[np.uint64],
    tag_codes: NDArray[np.uint64],
    *,
    nearest: int,
    bits: int,
) -> NDArray[np.int32]: ...
