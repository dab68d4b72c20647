import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.compiled.scoring import CompiledParts

def score_all_arcs(
    parts: CompiledParts,
    ids: NDArray[np.int32],
    singles: NDArray[np.int32],
    *,
    n_threads: int | None = ...,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]: ...
