from typing import Final

import numpy as np
from numpy.typing import NDArray

LOG_FLOOR: Final[float]
SHARE_FEATURES: Final[tuple[str, ...]]

def share_features(
    heads: NDArray[np.int32], labels: NDArray[np.int32], weights: NDArray[np.float64]
) -> NDArray[np.float64]: ...
