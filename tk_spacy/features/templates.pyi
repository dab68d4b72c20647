from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

FRAME: Final[str]
SPAN: Final[str]
USUAL_FEATURE_TYPES: Final[tuple[str, ...]]
FEATURE_TYPES: Final[tuple[str, ...]]

def add_scores(
    fields: Sequence[NDArray[np.int32]],
    rows: Sequence[NDArray[np.int32]],
    type_name: str,
    weights: NDArray[np.float64],
    out: Sequence[NDArray[np.float64]],
    *,
    n_threads: int | None = None,
) -> None: ...
def add_sentence_scores(
    fields: NDArray[np.int32],
    rows: NDArray[np.int32],
    kind: int,
    weights: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def add_feature_counts(
    fields: NDArray[np.int32],
    rows: NDArray[np.int32],
    parts: NDArray[np.int32],
    signs: NDArray[np.int32],
    kind: int,
    counts: NDArray[np.float64],
) -> NDArray[np.uint32]: ...
def type_code(type_name: str) -> int: ...
