import numpy as np
from numpy.typing import NDArray

def choose_labels(
    scores: NDArray[np.float32],
    totals: NDArray[np.float64],
    labels: NDArray[np.int32],
    margins: NDArray[np.float64],
    *,
    second: bool,
) -> None: ...
