"""Decoding with a kernel: arcs scored before the search, siblings and grandparents on demand.

A sentence has some hundred arcs, but tens of thousands of pairs of them.  So the search goes in
rounds (rounds.pyx): search, score the pairs of the best trees that have no score yet in one
batch for all sentences, search again with what is known now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.scorer import chunks
from tk_spacy.parsers.sampling.kernel.model import PAIRS, Arcs, SearchKernel, part_slots
from tk_spacy.parsers.sampling.kernel.rounds import Searches
from tk_spacy.parsers.sampling.search.decoder import Scorer, decode
from tk_spacy.parsers.sampling.search.words import Corpus
from tk_spacy.utils.array_types import Int32

Found = tuple[Int32, Int32, NDArray[np.float64], Int32]
"""What decoder.decode returns."""

MOST_ROUNDS = 4
"""Searches of a sentence, at most.  Trees that are still made of pairs without scores get them
afterwards, so a limit costs no correctness, only trees that a further search would have found."""

ROWS_AT_A_TIME = 2048
"""Of the sentences whose searches are held in memory, half a megabyte each."""


@dataclass(frozen=True, slots=True, eq=False)
class Effort:
    """What the kernel's pairs took of each sentence: searches int32[B], pairs scored int64[B]."""

    rounds: Int32
    pairs: NDArray[np.int64]


def decode_with_kernel(
    kernel: SearchKernel,
    scorer: Scorer,
    corpus: Corpus,
    arcs: Arcs,
    nodes: Int32,
    labels: Int32,
    *,
    k: int,
    exact: int,
    restarts: int,
    patience: int,
    temperature: float,
    label_share: float,
    gamma: float | None = None,
    most_rounds: int = MOST_ROUNDS,
    n_threads: int | None = None,
) -> tuple[Found, Effort]:
    """The best trees of sentences by the parser's and the kernel's scores together.

    arcs: of all sentences of the corpus, the kernel's scores added (SearchKernel.added).
    nodes, labels: the kernel's, see there.  gamma: for another one than the kernel's own.
    k, exact, restarts, patience, temperature, label_share: of the search, see decoder.decode.
    The scores of the trees found are those of all their parts, however few rounds there were.
    """
    if most_rounds < 1:
        raise ValueError(f"{most_rounds} rounds, expected at least one")
    options: dict[str, Any] = {
        "k": k, "exact": exact, "restarts": restarts, "patience": patience,
        "temperature": temperature, "label_share": label_share, "seeds": corpus.seeds,
        "n_threads": n_threads,
    }  # fmt: skip
    where = (scorer, corpus.fields, corpus.starts, corpus.lengths)
    if not kernel.pairs:
        found = decode(*where, np.arange(len(corpus)), arcs=arcs, **options)
        return found, Effort(
            np.ones(len(corpus), dtype=np.int32), np.zeros(len(corpus), dtype=np.int64)
        )
    parts: list[Found] = []
    rounds, pairs = [], []
    first, heads, ids, arc_scores = arcs
    for start, stop in chunks(corpus.lengths.tolist(), ROWS_AT_A_TIME):
        rows = slice(corpus.rows(start).start, corpus.rows(stop - 1).stop)
        searches = Searches(
            *where,
            np.arange(start, stop),
            (first[rows.start : rows.stop + 1], heads, ids, arc_scores),
            siblings=PAIRS[0] in kernel.pairs,
            grandparents=PAIRS[1] in kernel.pairs,
            **options,
        )
        begins = corpus.starts[start:stop] - np.int32(rows.start)
        for _ in range(most_rounds):
            if not searches.search():
                break
            owners, kinds, found_rows = searches.unscored()
            slots = {}
            for kind, name in enumerate(PAIRS, start=1):
                if name in kernel.pairs:
                    mine = kinds == kind
                    slots[name] = part_slots(name, found_rows[mine], labels, begins[owners[mine]])
            scores = kernel.scores(nodes[rows], slots, gamma=gamma, n_threads=n_threads)
            values = np.zeros(len(kinds))
            for kind, name in enumerate(PAIRS, start=1):
                if name in scores:
                    values[kinds == kind] = scores[name]
            searches.learn(values)
        parts.append(searches.results())
        rounds.append(searches.rounds)
        pairs.append(searches.scored)
    trees, names, scores_found, counts = map(np.concatenate, zip(*parts, strict=True))
    return (
        (trees, names, scores_found, counts),
        Effort(np.concatenate(rounds), np.concatenate(pairs)),
    )
