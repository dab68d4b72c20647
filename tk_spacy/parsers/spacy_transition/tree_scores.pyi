import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.spacy_transition.context_scores import ContextScores

def score_trees(
    scorer: ContextScores, *, heads: NDArray[np.int32], actions: NDArray[np.int32]
) -> NDArray[np.float64]: ...
