from numpy.typing import ArrayLike

from tk_spacy.utils.array_types import Int32

def node_ids(fields: ArrayLike, lengths: ArrayLike, properties: ArrayLike) -> Int32: ...
