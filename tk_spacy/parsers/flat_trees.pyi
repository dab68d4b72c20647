import numpy as np
from numpy.typing import NDArray

def listed_trees(
    heads: NDArray[np.int32],
    labels: NDArray[np.int32],
    starts: NDArray[np.int32],
    lengths: NDArray[np.int32],
    counts: NDArray[np.int32],
    *,
    backward: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def padded_trees(
    heads: NDArray[np.int32],
    labels: NDArray[np.int32],
    counts: NDArray[np.intp],
    lengths: NDArray[np.intp],
    *,
    backward: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
