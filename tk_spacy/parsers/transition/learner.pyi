import numpy as np
from numpy.typing import NDArray

from tk_spacy.utils.array_types import Int32

class Learner:
    move_weights: NDArray[np.float32]
    label_weights: NDArray[np.float32]
    steps: int
    def __init__(self, bits: int, places: NDArray[np.uint8]) -> None: ...
    def averaged(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...
    def learn(self, fields: Int32, heads: Int32, labels: Int32, width: int) -> bool: ...
