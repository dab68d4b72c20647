"""What the benchmark scores, and what it scores with: made-up candidate lists and support sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.errors import UserError
from tk_spacy.features.encoder import EncodedList, ListEncoder
from tk_spacy.features.part_types import ARC
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kernels.plain_scoring import length_bins
from tk_spacy.kernels.support import Support, distinct, node_rows
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int32

ARC_KINDS = np.array([0, 1, 0], dtype=np.int32)
WORDS_CHANGED, ALTERNATIVES = 0.75, 1.8
"""Of each word, how often it is changed at all, and how many other arcs into it the list has: 2.3
distinct arcs a word that not all trees share, as in real lists of 25 trees."""
HEADS_CHANGED, LABELS_CHANGED = 0.7, 0.5
"""Shares of the other arcs with another head, and of those with another label as well."""
REACH = 8
"""Other heads are at most so many words away from the word."""
ROUNDS = 50
"""Attempts to pair words until there are enough distinct parts."""


class ListMaker:
    """Makes candidate lists up: a sentence's own tree and k - 1 others near it.

    Labels are drawn as often as the treebank has them.
    """

    def __init__(self, treebank: Sequence[Sentence], k: int, rng: np.random.Generator) -> None:
        self._k, self._rng = k, rng
        self._inventory = LabelInventory()
        self._labels = np.concatenate([self._inventory.encode(s.deprels) for s in treebank])

    def __call__(self, sentence: Sentence) -> CandidateList:
        """A list of at most k trees, the sentence's own first."""
        n = len(sentence)
        trees = np.tile(sentence.heads, (self._k, 1)).astype(np.int32)
        labels = np.tile(self._inventory.encode(sentence.deprels), (self._k, 1))
        changed = np.zeros((self._k, n), dtype=bool)
        for turn, (word, head, label) in enumerate(self._alternatives(sentence)):
            # Each tree in turn; where the arc does not fit one, the next.
            for attempt in range(self._k - 1):
                row = 1 + (turn + attempt) % (self._k - 1)
                if not changed[row, word] and not _is_below(trees[row], head, word + 1):
                    trees[row, word], labels[row, word] = head, label
                    changed[row, word] = True
                    break
        return CandidateList.from_arrays(
            trees,
            labels,
            -changed.sum(axis=1, keepdims=True).astype(np.float64),
            inventory=self._inventory,
            sources=("made-up",),
        )

    def _alternatives(self, sentence: Sentence) -> list[tuple[int, int, int]]:
        """Other arcs, (word from 0 on, head, label), in random order."""
        rng, n = self._rng, len(sentence)
        words = rng.permutation(n)[: max(1, round(WORDS_CHANGED * n))]
        wanted = round(ALTERNATIVES * n)
        # Every word once, then some of them again.
        chosen = np.concatenate([words, rng.choice(words, max(0, wanted - len(words)))])
        found: dict[tuple[int, int, int], None] = {}
        for word in chosen[:wanted].tolist():
            head, label = int(sentence.heads[word]), -1
            if n > 2 and head and rng.random() < HEADS_CHANGED:
                low, high = max(1, word + 1 - REACH), min(n, word + 1 + REACH)
                other = int(rng.integers(low, high + 1))
                if other != word + 1:
                    head = other
            if head == sentence.heads[word] or rng.random() < LABELS_CHANGED:
                label = int(rng.choice(self._labels))
            else:
                label = self._inventory.get(sentence.deprels[word])
            found[word, head, label] = None
        return list(found)


def _is_below(heads: Int32, word: int, above: int) -> bool:
    """Whether a word is another one, or below it."""
    while word:
        if word == above:
            return True
        word = int(heads[word - 1])
    return False


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """Arcs of some sentences: for each its node rows and its arcs in slot form, int32[p, 4]."""

    nodes: Sequence[Int32]
    slots: Sequence[Int32]

    @property
    def words(self) -> int:
        """Words of the sentences."""
        return sum(len(rows) - 2 for rows in self.nodes)

    def __len__(self) -> int:
        return sum(map(len, self.slots))

    def first(self, n_arcs: float) -> Arcs:
        """The first sentences with about so many arcs, one at least."""
        n, total = 1, len(self.slots[0])
        while n < len(self.slots) and total + len(self.slots[n]) <= n_arcs:
            total += len(self.slots[n])
            n += 1
        return Arcs(self.nodes[:n], self.slots[:n])

    def together(self) -> tuple[Int32, Int32]:
        """All node rows, and all arcs naming these."""
        return _together(self.nodes, self.slots)


def _together(nodes: Sequence[Int32], slots: Sequence[Int32]) -> tuple[Int32, Int32]:
    first = np.cumsum([0, *map(len, nodes)])
    moved = [
        rows + np.array([start, 0, 0, start], dtype=np.int32)
        for rows, start in zip(slots, first[:-1], strict=True)
    ]
    return np.concatenate(nodes), np.concatenate(moved).astype(np.int32)


def arcs_of(encoded: Sequence[EncodedList]) -> Arcs:
    """The distinct arcs of lists that not all trees of their list share."""
    kept = [item for item in encoded if len(item.kernel[0].slots)]
    if not kept:
        raise UserError("no list has an arc that its trees do not all share: nothing to score")
    return Arcs([i.sentence.nodes for i in kept], [i.kernel[0].slots for i in kept])


@dataclass(frozen=True, slots=True, eq=False)
class SupportArcs:
    """Arcs to compare with.

    nodes: int32[s, P].  columns: int32[5, q], see SupportParts.  weights: float64[q].  skips: int32
    of the three slots.  paired: how many are random pairs of words.
    """

    nodes: Int32
    columns: Int32
    weights: Float64
    skips: Int32
    paired: int = 0

    def __len__(self) -> int:
        return len(self.weights)

    def first(self, size: int) -> SupportArcs:
        """The first arcs, and the nodes that these name."""
        columns = self.columns[:, :size].copy()
        rows = node_rows(ARC_KINDS)
        used, columns[rows] = np.unique(columns[rows], return_inverse=True)
        return SupportArcs(
            self.nodes[used],
            columns,
            self.weights[:size],
            self.skips,
            max(0, size - (len(self) - self.paired)),
        )

    @classmethod
    def of(cls, support: Support) -> SupportArcs:
        """Those of a trained support.  Raises UserError where it has none."""
        parts = support.types.get(ARC)
        if parts is None or not len(parts):
            raise UserError(
                f"the model compares no arcs (it has {', '.join(support.types) or 'no kernel'}); "
                "use one trained with arcs as a part type of the kernel"
            )
        return cls(support.nodes, parts.columns, parts.weights, support.skips[ARC])


def build_support(
    treebank: Sequence[Sentence],
    schema: Schema,
    size: int,
    *,
    maker: ListMaker,
    rng: np.random.Generator,
    update: Callable[[int, int], None],
) -> SupportArcs:
    """Distinct arcs as updates add them: those that a sentence's own tree and another do not share.

    Where the treebank has too few, words of one sentence are paired at random, with labels drawn
    from the treebank.  Weights are drawn from a normal distribution.  update: takes progress.
    Raises UserError where a treebank is too small even for that.
    """
    encoder = ListEncoder(schema, kernel_parts=(ARC,), manual_parts=())
    rows, total = [], 0
    nodes: list[Int32] = []
    for sentence in treebank:
        if total >= 1.1 * size:
            break
        item = encoder.encode(sentence, maker(sentence))
        nodes.append(item.sentence.nodes)
        rows.append(item.kernel[0].slots)
        total += len(rows[-1])
        update(min(total, size), size)
    columns, table = _merged(nodes, rows)
    merged = min(size, columns.shape[1])
    n_sentences = len(nodes)
    labels = [schema.label_id(name) for s in treebank[:n_sentences] for name in s.deprels]
    for _ in range(ROUNDS):
        if columns.shape[1] >= size:
            break
        # After all updates, so that smaller sizes are taken from these alone where they can be.
        rows += [_pairs(len(item) - 2, labels, rng) for item in nodes[:n_sentences]]
        nodes += nodes[:n_sentences]
        columns, table = _merged(nodes, rows)
    if columns.shape[1] < size:
        raise UserError(
            f"the treebank gives {columns.shape[1]:,} distinct arcs, {size:,} are asked for; give "
            "a larger treebank or smaller sizes"
        )
    whole = SupportArcs(
        nodes=table,
        columns=np.ascontiguousarray(columns[:, :size]),
        weights=rng.normal(size=size),
        skips=np.array([0, 1, 0], dtype=np.int32),
        paired=size - merged,
    )
    return whole.first(size)


def _pairs(n: int, labels: Sequence[int], rng: np.random.Generator) -> Int32:
    """An arc from a random other word into each word, in slot form."""
    modifiers = np.arange(1, n + 1)
    heads = rng.integers(0, n, size=n)
    heads += heads >= modifiers
    drawn = rng.choice(labels, size=n)
    return np.stack([heads, drawn, modifiers - heads, modifiers], axis=1).astype(np.int32)


def _merged(nodes: Sequence[Int32], rows: Sequence[Int32]) -> tuple[Int32, Int32]:
    """Distinct support arcs as columns, in the order in which they came; their distinct nodes."""
    all_nodes, slots = _together(nodes, rows)
    table, ids = distinct(all_nodes)
    lengths = length_bins(np.ascontiguousarray(slots[:, 2]))
    columns = np.stack([ids[slots[:, 0]], slots[:, 1], slots[:, 2], lengths, ids[slots[:, 3]]], 1)
    found, _ = distinct(columns.astype(np.int32))
    return np.ascontiguousarray(found.T), table
