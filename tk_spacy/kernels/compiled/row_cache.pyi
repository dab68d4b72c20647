from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.compiled.node_groups import NodeGroups

class RowKeeper:
    limit: int
    n_slots: int
    n_groups: int
    n_singles: int
    width: int
    def __init__(
        self,
        groups: NodeGroups,
        n_slots: int,
        frequent: Sequence[NDArray[np.int32]],
        limit: int,
    ) -> None: ...
    def clear(self) -> None: ...
    def shrink(self, limit: int) -> None: ...
    def begin(self) -> None: ...
    def wanted(self) -> NDArray[np.int32]: ...
