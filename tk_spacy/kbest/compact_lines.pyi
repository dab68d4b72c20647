from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

PREFIX: str

def read_lines(
    comments: tuple[str, ...], n: int, add: Callable[[str], int]
) -> tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], list[str]] | None: ...
