from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

@final
class KeyTable:
    n: int
    def __len__(self) -> int: ...
    def add_all(self, keys: ArrayLike) -> NDArray[np.int32]: ...
    def find_all(self, keys: ArrayLike) -> NDArray[np.int32]: ...
    def known(
        self, starts: ArrayLike, keys: ArrayLike
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
