from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tk_spacy.utils.array_types import Float64, Int32

def list_weights(
    scores: Sequence[ArrayLike],
    columns: ArrayLike,
    own: ArrayLike,
    scales: ArrayLike,
    temperatures: ArrayLike,
) -> list[Float64]: ...
def arc_tables(
    heads: Sequence[ArrayLike],
    labels: Sequence[ArrayLike],
    weights: Sequence[ArrayLike],
    label_codes: Sequence[NDArray[np.uint64]],
    tag_codes: NDArray[np.uint64],
    *,
    every: int,
    nearest: int,
    bits: int,
    floor: float,
) -> list[tuple[Int32, Int32, Int32, Int32, Int32, Int32, NDArray[np.float32], Int32]]: ...
