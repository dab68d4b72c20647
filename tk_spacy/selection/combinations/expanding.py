"""The combinations that a trained support gives weight to, the strongest of them listed.

Source: Taub-Tabib et al. 2015, section 2: a combination's weight is the sum of the weights of the
support parts that hold it (see the package's docstring); the idea of writing out a trained kernel
machine as far as its features matter is that of Goldberg and Elhadad 2008 (splitSVM) and of Kudo
and Matsumoto 2003 (PKE), who take frequency and mined weights for it.  See expansion.pyx for the
search.
"""

from __future__ import annotations

import numpy as np

from tk_spacy.features.part_types import part_type
from tk_spacy.features.schema import Schema
from tk_spacy.kernels.support import Support
from tk_spacy.kernels.template_kernel import slot_layout
from tk_spacy.selection.combinations.expansion import strongest
from tk_spacy.selection.combinations.model import CombinationModel, make_model
from tk_spacy.selection.combinations.slot_keys import slot_keys
from tk_spacy.selection.combinations.slot_space import SlotSpace, slot_of
from tk_spacy.selection.key_table import KeyTable
from tk_spacy.utils.array_types import Int32


def expand(
    support: Support,
    schema: Schema,
    *,
    most: int | None = None,
    threshold: float = 0.0,
    n_threads: int | None = None,
) -> CombinationModel:
    """The model of the combinations of a support's parts whose weights are the largest.

    schema: of the support's nodes.  most: how many, of all part types together; None for all.
    threshold: a weight's least absolute value; 0 for all that are not 0.

    All combinations give exactly the kernel's scores, and their number may be beyond all memory for
    types of many slots.  The result does not depend on the number of threads.
    Raises ValueError for a number below 1 or a threshold below 0, MemoryError.
    """
    space = space_of(support)
    of_types = []
    for of_type in space.types:
        parts = support.types[of_type.name]
        slots = slot_form(parts.columns, slot_layout(part_type(of_type.name)))
        of_types.append(
            slot_keys(support.nodes, slots, of_type.kinds, of_type.columns, of_type.first)
        )
    keys = np.unique(np.concatenate([keys for _, keys in of_types] or [np.zeros(0, np.uint64)]))
    table = KeyTable()
    table.add_all(keys)
    slot_numbers = slot_of(keys)
    found = []
    for of_type, (starts, of_parts) in zip(space.types, of_types, strict=True):
        here = (slot_numbers >= of_type.first) & (slot_numbers < of_type.first + len(of_type))
        first = int(here.argmax()) if here.any() else 0
        features, weights = strongest(
            starts,
            table.find_all(of_parts) - np.int32(first),
            slot_numbers[here] - np.int32(of_type.first),
            of_type.skips,
            support.types[of_type.name].weights,
            most=most,
            threshold=threshold,
            n_threads=n_threads,
        )
        features[features >= 0] += first
        found.append((features, weights))
    model = make_model(schema, space, keys, found)
    return model if most is None else model.strongest(most)


def space_of(support: Support) -> SlotSpace:
    """The part types of a support, with their skips."""
    skips = {name: support.skips[name].tolist() for name in support.types}
    return SlotSpace(tuple(support.types), skips)


def slot_form(columns: Int32, kinds: Int32) -> Int32:
    """Support parts (SupportParts.columns) in slot form, a part a row: int32[q, w].

    Without the binned lengths of edges, which follow from their distances.
    """
    kept, at = [], 0
    for kind in kinds.tolist():
        kept += [at, at + 1] if kind else [at]
        at += 3 if kind else 1
    return np.ascontiguousarray(columns[kept].T)
