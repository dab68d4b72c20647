from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.sampling.kernel.model import Arcs
from tk_spacy.parsers.sampling.search.decoder import Scorer

class Searches:
    def __init__(
        self,
        scorer: Scorer,
        fields: NDArray[np.int32],
        starts: NDArray[np.int32],
        lengths: NDArray[np.int32],
        sentences: Sequence[int] | NDArray[np.integer],
        arcs: Arcs,
        *,
        siblings: bool,
        grandparents: bool,
        k: int,
        exact: int,
        restarts: int,
        patience: int,
        temperature: float,
        label_share: float,
        seeds: NDArray[np.uint64],
        n_threads: int | None = None,
    ) -> None: ...
    @property
    def rounds(self) -> NDArray[np.int32]: ...
    @property
    def scored(self) -> NDArray[np.int64]: ...
    def search(self) -> int: ...
    def unscored(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
    def learn(self, scores: NDArray[np.floating]) -> None: ...
    def results(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]: ...
