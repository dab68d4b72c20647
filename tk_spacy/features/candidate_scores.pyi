import numpy as np
from numpy.typing import NDArray

def add_candidate_scores(
    part_scores: NDArray[np.float64],
    starts: NDArray[np.int32],
    members: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None: ...
def add_list_scores(
    features: NDArray[np.float64], weights: NDArray[np.float64], out: NDArray[np.float64]
) -> None: ...
