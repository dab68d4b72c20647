import numpy as np
from numpy.typing import NDArray

def choose_tags(logs: NDArray[np.float32], parts: NDArray[np.int64]) -> NDArray[np.int64]: ...
