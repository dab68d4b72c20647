from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.compiled.node_groups import NodeGroups

_Int32 = NDArray[np.int32]

SIZE: Final[int]
MAX_NAMES: Final[int]

def block_bounds(columns: _Int32, kinds: _Int32, *, size: int = ...) -> list[int]: ...
def edge_rows(kinds: _Int32) -> NDArray[np.intp]: ...

class Block:
    def __init__(
        self,
        columns: _Int32,
        weights: Sequence[float] | NDArray[Any],
        kinds: _Int32,
        ids: _Int32,
        singles: _Int32,
        groups: NodeGroups,
        capacity: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def row_nbytes(self) -> int: ...
    def weigh(self, weights: Sequence[float] | NDArray[Any]) -> None: ...
