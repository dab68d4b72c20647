from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_Int32 = NDArray[np.int32]

class Interner:
    width: int
    size: int
    def __init__(self, width: int) -> None: ...

class NodeGroups:
    n_properties: int
    groups: list[_Int32]
    singles: _Int32
    interners: list[Interner]
    def __init__(self, groups: Sequence[Sequence[int]], n_properties: int) -> None: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...
    def encode(self, nodes: _Int32) -> tuple[_Int32, _Int32]: ...

def first_equal(ids: _Int32, singles: _Int32) -> _Int32: ...
