from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.sampling.kernel.model import Arcs

class Scorer:
    weights: NDArray[np.float32]
    pruner: NDArray[np.float32]
    places: NDArray[np.uint8]
    def __init__(
        self,
        weights: NDArray[np.float32],
        pruner: NDArray[np.float32],
        places: NDArray[np.uint8],
        *,
        order: int,
        max_heads: int,
        prune_margin: float,
        max_labels: int,
        label_margin: float,
        arc_margin: float,
        single_root: bool,
        morph_end: int,
        crossing: bool = True,
    ) -> None: ...
    @property
    def morph_end(self) -> int: ...

def decode(
    scorer: Scorer,
    fields: NDArray[np.int32],
    starts: NDArray[np.int32],
    lengths: NDArray[np.int32],
    sentences: Sequence[int] | NDArray[np.integer],
    *,
    k: int = 1,
    exact: int = 1,
    restarts: int,
    patience: int,
    temperature: float,
    label_share: float,
    seeds: NDArray[np.uint64],
    kept: tuple[NDArray[np.int32], NDArray[np.int64]] | None = None,
    gold: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None,
    costs: tuple[float, float] = (0.0, 0.0),
    arcs: Arcs | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]: ...
