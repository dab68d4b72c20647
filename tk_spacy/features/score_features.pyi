import numpy as np
from numpy.typing import NDArray

SCORE_FEATURES: tuple[str, ...]

def score_features(
    scores: NDArray[np.float64],
    known: NDArray[np.bool_],
    scales: NDArray[np.float64],
    temperatures: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
def normalize(weights: NDArray[np.float64]) -> None: ...
