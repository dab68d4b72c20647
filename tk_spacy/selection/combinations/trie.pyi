from collections.abc import Sequence
from typing import final

from numpy.typing import ArrayLike

from tk_spacy.selection.combinations.slot_space import TypeSlots
from tk_spacy.selection.key_table import KeyTable
from tk_spacy.utils.array_types import Float64, Int32, Int64

@final
class CombinationTrie:
    n_nodes: int
    def __init__(
        self, features: ArrayLike, weights: ArrayLike, table: KeyTable, of_type: TypeSlots
    ) -> None: ...
    def scores(
        self,
        nodes: Sequence[Int32],
        parts: Sequence[Int32],
        *,
        n_threads: int | None = None,
    ) -> list[Float64]: ...

def patterns_of(features: ArrayLike, n_features: int) -> tuple[Int64, Int64, Int64]: ...
