from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.compiled.blocks import Block
from tk_spacy.kernels.compiled.node_groups import NodeGroups
from tk_spacy.kernels.compiled.row_cache import RowKeeper

_Int32 = NDArray[np.int32]
_Float64 = NDArray[np.float64]

LARGEST_BYTE: Final[int]
LARGEST_SHORT: Final[int]

def fits_bytes(n_properties: int) -> bool: ...

class CompiledParts:
    blocks: list[Block]
    keeper: RowKeeper
    groups: NodeGroups
    kinds: _Int32
    def __init__(
        self,
        kinds: _Int32,
        skips: _Int32,
        groups: NodeGroups,
        frequent: Sequence[_Int32],
        limit: int,
    ) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def append(self, columns: _Int32, weights: _Float64, ids: _Int32, singles: _Int32) -> None: ...
    def add_scores(
        self,
        ids: _Int32,
        singles: _Int32,
        parts: _Int32,
        out: _Float64,
        *,
        first: int = ...,
        n_threads: int | None = ...,
    ) -> None: ...

class Runs: ...
