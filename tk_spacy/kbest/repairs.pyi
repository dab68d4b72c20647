import numpy as np
from numpy.typing import NDArray

from tk_spacy.trees.violations import Rules

class Repairing:
    def __init__(
        self,
        heads: NDArray[np.int32],
        labels: NDArray[np.int32],
        relations: NDArray[np.uint8],
        misfits: NDArray[np.uint64],
        flags: NDArray[np.uint8],
        rules: Rules,
        kinds: int,
    ) -> None: ...
    def is_broken(self, row: int) -> bool: ...
    def repaired(
        self, row: int, ranks: NDArray[np.int32], unseen: float, most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], list[tuple[int, float, int]]]: ...
