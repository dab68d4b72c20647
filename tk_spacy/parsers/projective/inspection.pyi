import numpy as np
from numpy.typing import NDArray

from tk_spacy.utils.array_types import Float64, Int32

def parts_of(first: Int32, heads: Int32) -> tuple[Int32, Int32, Int32]: ...
def best_of_parts(
    first: Int32,
    heads: Int32,
    root: NDArray[np.float32],
    chains: NDArray[np.float32],
    triples: NDArray[np.float32],
    *,
    k: int,
) -> tuple[Int32, Float64]: ...
def arc_marginals(scores: Float64) -> Float64: ...
