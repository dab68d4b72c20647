import numpy as np
from numpy.typing import NDArray

from tk_spacy.utils.array_types import Int32

class Learner:
    weights: NDArray[np.float32]
    steps: int
    updates: int
    def __init__(self, *, size: int, C: float, morph_end: int) -> None: ...
    def averaged(self) -> NDArray[np.float32]: ...
    def learn(self, fields: Int32, gold: Int32, trees: Int32) -> bool: ...

class LabelLearner:
    weights: NDArray[np.float32]
    steps: int
    updates: int
    def __init__(
        self, *, size: int, places: NDArray[np.uint8], C: float, morph_end: int
    ) -> None: ...
    def averaged(self) -> NDArray[np.float32]: ...
    def learn(self, fields: Int32, heads: Int32, labels: Int32) -> None: ...
