from collections.abc import Sequence

from tk_spacy.utils.array_types import Float64, Int32

def extended_rows(
    arcs: Sequence[tuple[Int32, Int32, Int32, Int32]],
    scores: Float64,
    lists: Sequence[tuple[Int32, Int32, Float64]],
    added: Sequence[Int32 | None],
    most: int,
) -> list[tuple[Int32, Int32, Float64]]: ...
