from typing import final

import numpy as np
from numpy.typing import NDArray

@final
class Learner:
    weights: NDArray[np.float32]
    steps: int
    updates: int
    def __init__(
        self,
        *,
        size: int,
        n_cells: int,
        order: int,
        C: float,
        morph_end: int,
        crossing: bool = True,
    ) -> None: ...
    def averaged(self) -> NDArray[np.float32]: ...
    def update(
        self,
        fields: NDArray[np.int32],
        gold_heads: NDArray[np.int32],
        gold_labels: NDArray[np.int32],
        heads: NDArray[np.int32],
        labels: NDArray[np.int32],
        loss: float,
        kernel_margin: float = ...,
        kernel_norm: float = ...,
    ) -> float: ...
    def select_heads(
        self, fields: NDArray[np.int32], gold_heads: NDArray[np.int32], rate: float
    ) -> None: ...
