from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.sampling.kernel.model import Arcs
from tk_spacy.parsers.sampling.search.decoder import Scorer

def kept_heads(
    scorer: Scorer,
    fields: NDArray[np.int32],
    starts: NDArray[np.int32],
    lengths: NDArray[np.int32],
    *,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
def lattice_arcs(
    scorer: Scorer,
    fields: NDArray[np.int32],
    starts: NDArray[np.int32],
    lengths: NDArray[np.int32],
    sentences: Sequence[int] | NDArray[np.integer],
    *,
    kept: tuple[NDArray[np.int32], NDArray[np.int64]] | None = None,
    gold: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None,
    costs: tuple[float, float] = (0.0, 0.0),
    n_threads: int | None = None,
) -> Arcs: ...
