import numpy as np
from numpy.typing import NDArray

def invalid_trees(given: NDArray[np.int32]) -> NDArray[np.intp]: ...
def group_equal(
    given_heads: NDArray[np.int32], given_labels: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]: ...
