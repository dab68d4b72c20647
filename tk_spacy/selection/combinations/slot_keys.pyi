import numpy as np
from numpy.typing import ArrayLike, NDArray

def slot_keys(
    nodes: ArrayLike, parts: ArrayLike, kinds: ArrayLike, columns: ArrayLike, first_slot: int
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]: ...
