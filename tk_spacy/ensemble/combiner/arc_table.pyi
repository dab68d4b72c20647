import numpy as np
from numpy.typing import NDArray

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
