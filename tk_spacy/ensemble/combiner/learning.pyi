from typing import Any

import numpy as np
from numpy.typing import NDArray

def learn_arcs(
    dense: NDArray[np.float32],
    hashed: NDArray[np.int32],
    starts: NDArray[np.int32],
    gold: NDArray[np.int32],
    size: int,
    epochs: int,
    rate: float,
    hashed_rate: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def arc_log_probabilities(
    dense: NDArray[np.float32],
    hashed: NDArray[np.int32],
    starts: NDArray[np.int32],
    weights: NDArray[np.float64],
    hashed_weights: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def widest(starts: Any) -> int: ...
