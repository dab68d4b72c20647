from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def log_softmax_parts(scores: NDArray[np.float32], sizes: Sequence[int]) -> NDArray[np.float32]: ...
def log_sums(shifted: NDArray[np.float32]) -> NDArray[np.float32]: ...
