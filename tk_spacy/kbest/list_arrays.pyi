from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.trees.tree_rows import CheckedTrees

_Arranged = tuple[CheckedTrees, NDArray[np.int32], NDArray[np.float64], list[int]]

def arrange_one(
    given_heads: NDArray[np.int32],
    given_labels: NDArray[np.int32],
    given_scores: NDArray[np.float64],
    rows: Sequence[int],
    *,
    n_labels: int,
    k: int | None = None,
    known: bool = False,
) -> _Arranged | None: ...
def arrange_lists(
    given_heads: NDArray[np.int32],
    given_labels: NDArray[np.int32],
    given_scores: NDArray[np.float64],
    given_starts: NDArray[np.intp],
    given_lengths: NDArray[np.intp],
    *,
    columns: Sequence[int] | None = None,
    own: Sequence[Sequence[int]] | None = None,
    n_labels: int,
    k: int | None = None,
    known: bool = False,
    in_turn: bool = False,
) -> list[_Arranged] | None: ...
