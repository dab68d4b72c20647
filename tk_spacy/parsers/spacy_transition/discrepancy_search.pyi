import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.spacy_transition.context_scores import ContextScores

class DiscrepancySearch:
    def __init__(self, model: ContextScores) -> None: ...
    def search(
        self, *, max_runs: int, max_trees: int, max_margin: float
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.float64],
        NDArray[np.float64],
        int,
    ]: ...
