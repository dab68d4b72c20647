from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

FLAGS: Mapping[str, int]
INNER_SUBJECT: int

class Rules:
    def __init__(self, numbers: Mapping[str, int]) -> None: ...
    def add_leaf(self, relation: int, kind: int, allowed: int) -> None: ...
    def add_left_headed(self, relation: int, kind: int) -> None: ...
    def add_tags(self, relation: int, kind: int) -> None: ...
    def set_kinds(
        self,
        roots: int,
        subjects: int,
        objects: int,
        oblique: int,
        punct_causes: int,
        punct_is: int,
        punct_tag: int,
        fixed_tag: int,
    ) -> None: ...
    def set_groups(self, of_possessives: int, nominal: int, of_predicates: int) -> None: ...

def find_violations(
    heads: NDArray[np.int32],
    labels: NDArray[np.int32],
    relations: NDArray[np.uint8],
    misfits: NDArray[np.uint64],
    flags: NDArray[np.uint8],
    rules: Rules,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]: ...
def count_violations(
    heads: Sequence[NDArray[np.int32]],
    labels: Sequence[NDArray[np.int32]],
    relations: Sequence[NDArray[np.uint8]],
    misfits: Sequence[NDArray[np.uint64]],
    flags: Sequence[NDArray[np.uint8]],
    rules: Rules,
    kinds: Sequence[int],
) -> list[NDArray[np.int32]]: ...
def count_bits(bits: NDArray[np.uint64], kinds: Sequence[int]) -> NDArray[np.int32]: ...
