from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tk_spacy.features.part_types import PartType
from tk_spacy.trees.tree_rows import CheckedTrees

BOUNDARY_LABEL: Final[int]

def extract_parts(
    heads: ArrayLike | CheckedTrees, labels: ArrayLike, part_type: PartType
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def contested_parts(
    rows: NDArray[np.int32], starts: NDArray[np.int32], members: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def slot_rows(rows: ArrayLike, part_type: PartType) -> NDArray[np.int32]: ...
def exclusive_members(
    starts: NDArray[np.int32],
    members: NDArray[np.int32],
    first: int,
    second: int,
    n_parts: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def extract_frames(
    fields: NDArray[np.int32], heads: NDArray[np.int32] | CheckedTrees, labels: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def extract_spans(
    heads: NDArray[np.int32] | CheckedTrees, labels: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
