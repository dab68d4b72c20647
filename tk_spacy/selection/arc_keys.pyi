from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_KINDS: Final[int]

def arc_keys(
    fields: ArrayLike, heads: ArrayLike, modifiers: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]: ...
