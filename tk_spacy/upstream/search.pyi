import numpy as np
from numpy.typing import ArrayLike, NDArray

class ArcEagerSearch:
    def __init__(
        self,
        *,
        move_types: ArrayLike,
        lower_b: ArrayLike,
        upper_w: ArrayLike | None = None,
        upper_b: ArrayLike | None = None,
        n_features: int = 8,
    ) -> None: ...
    def search(
        self,
        cached: NDArray[np.float32],
        *,
        first: int,
        n_words: int,
        max_runs: int,
        max_trees: int,
        max_margin: float,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.float64],
        NDArray[np.float64],
        int,
    ]: ...
    def score_trees(
        self,
        cached: NDArray[np.float32],
        *,
        first: int,
        heads: NDArray[np.int32],
        actions: NDArray[np.int32],
    ) -> NDArray[np.float64]: ...
