from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.forest import Forest
from tk_spacy.utils.array_types import Float64, Int32

MOST: Final[float]

def common_subtrees(
    forest_a: Forest,
    arcs_a: tuple[Int32, Int32],
    forest_b: Forest,
    arcs_b: tuple[Int32, Int32],
    *,
    decay: float = 1.0,
) -> NDArray[np.float64]: ...
def add_forest_scores(
    forest: Forest,
    arcs: tuple[Int32, Int32],
    support: Sequence[tuple[Forest, tuple[Int32, Int32], Float64]],
    out: NDArray[np.float64],
    *,
    decay: float = 1.0,
    n_threads: int | None = None,
) -> None: ...
