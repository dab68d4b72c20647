import numpy as np
from numpy.typing import ArrayLike, NDArray

class ContextScores:
    n_actions: int
    n_words: int
    def __init__(
        self,
        *,
        move_types: ArrayLike,
        lower_b: ArrayLike,
        upper_w: ArrayLike | None = None,
        upper_b: ArrayLike | None = None,
        n_features: int = 8,
    ) -> None: ...
    def begin(self, cached: NDArray[np.float32], *, first: int, n_words: int) -> None: ...
