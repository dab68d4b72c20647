import numpy as np
from numpy.typing import NDArray

from tk_spacy.utils.array_types import Float64, Int32

class Labeller:
    def __init__(
        self, weights: NDArray[np.float32], places: NDArray[np.uint8], *, morph_end: int
    ) -> None: ...

def label_trees(
    labeller: Labeller,
    fields: Int32,
    starts: Int32,
    lengths: Int32,
    owners: Int32,
    trees: Int32,
    given: Int32 | None = ...,
    *,
    n_threads: int | None = ...,
) -> tuple[Int32, Float64]: ...
