import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.sampling.search.decoder import Scorer

def part_scores(
    scorer: Scorer,
    fields: NDArray[np.int32],
    starts: NDArray[np.int32],
    lengths: NDArray[np.int32],
    owners: NDArray[np.int32],
    rows: NDArray[np.int32],
    kind: int,
    *,
    n_threads: int | None = None,
) -> NDArray[np.float64]: ...
def crossing_scores(
    scorer: Scorer,
    fields: NDArray[np.int32],
    heads: NDArray[np.int32],
    labels: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None: ...
