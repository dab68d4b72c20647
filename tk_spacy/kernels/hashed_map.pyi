from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_Int32 = NDArray[np.int32]
_Float64 = NDArray[np.float64]

def node_hashes(
    nodes: _Int32, slot: int, skip: int, seed: int
) -> tuple[_Int32, NDArray[np.uint32]]: ...
def add_support(
    nodes: _Int32,
    columns: _Int32,
    weights: _Float64,
    skips: Sequence[int] | _Int32,
    seed: int,
    table: _Float64,
) -> None: ...
def add_map_scores(
    table: NDArray[np.float32],
    nodes: _Int32,
    parts: _Int32,
    skips: Sequence[int] | _Int32,
    seed: int,
    out: _Float64,
    *,
    n_threads: int | None = None,
) -> None: ...
