from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tk_spacy.features.part_types import PartType

def slot_layout(part_type: PartType) -> NDArray[np.int32]: ...
def kernel_matrix(
    part_type: PartType,
    nodes_a: ArrayLike,
    parts_a: ArrayLike,
    nodes_b: ArrayLike,
    parts_b: ArrayLike,
    *,
    skips: Sequence[int] | NDArray[np.int32] | None = None,
    n_threads: int | None = None,
) -> NDArray[np.int64]: ...
def tree_kernel(
    part_type: PartType,
    nodes_a: ArrayLike,
    parts_a: ArrayLike,
    nodes_b: ArrayLike,
    parts_b: ArrayLike,
    *,
    skips: Sequence[int] | NDArray[np.int32] | None = None,
    n_threads: int | None = None,
) -> int: ...
def signed_kernel(
    nodes: NDArray[np.int32],
    parts: NDArray[np.int32],
    signs: NDArray[np.int32],
    kinds: NDArray[np.int32],
    skips: NDArray[np.int32],
) -> float: ...
def check_parts(
    nodes: ArrayLike, parts: ArrayLike, kinds: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def node_columns(kinds: NDArray[np.int32]) -> NDArray[np.intp]: ...
