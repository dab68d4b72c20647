from collections.abc import Sequence

from numpy.typing import ArrayLike

from tk_spacy.utils.array_types import Float64

def list_columns(
    heads: Sequence[ArrayLike],
    labels: Sequence[ArrayLike],
    scores: Sequence[ArrayLike],
    columns: ArrayLike,
    bases: ArrayLike,
    scales: ArrayLike,
    temperatures: ArrayLike,
    factor: float,
    *,
    of_scores: bool,
    of_shares: bool,
) -> list[Float64]: ...
