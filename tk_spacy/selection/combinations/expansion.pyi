import numpy as np
from numpy.typing import ArrayLike, NDArray

def strongest(
    starts: ArrayLike,
    ids: ArrayLike,
    slots: ArrayLike,
    skips: ArrayLike,
    weights: ArrayLike,
    *,
    most: int | None = None,
    threshold: float = 0.0,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
