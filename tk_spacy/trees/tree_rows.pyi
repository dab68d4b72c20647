from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

@final
class CheckedTrees:
    heads: NDArray[np.int32]
    def __init__(self, given: ArrayLike) -> None: ...

def invalid_trees(given: NDArray[np.int32]) -> NDArray[np.intp]: ...
def check_labels(given: NDArray[np.int32], n_labels: int) -> NDArray[np.int32]: ...
def group_equal(
    given_heads: NDArray[np.int32], given_labels: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]: ...
