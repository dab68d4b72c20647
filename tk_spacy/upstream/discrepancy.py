"""Pools of candidate trees from a trained spaCy parser, by discrepancy search and from beams.

The parser's weights are read once into our own copy of its transition system, which is exact: the
first tree of a search is the parser's own.  This module feeds it with word vectors, and turns its
actions into trees with plain labels.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.pipeline import DependencyParser
from spacy.pipeline._parser_internals.nonproj import projectivize

from tk_spacy.candidates import LabelInventory
from tk_spacy.upstream.context_scores import ContextScores
from tk_spacy.upstream.corpus import SPACY_ROOT, to_ud_label
from tk_spacy.upstream.projectivity import DECORATION, deprojectivize
from tk_spacy.upstream.search import DiscrepancySearch
from tk_spacy.upstream.tree_scores import score_trees

if TYPE_CHECKING:
    from spacy.tokens import Doc

MOVE_TYPES = {"S": 0, "D": 1, "L": 2, "R": 3, "B": -1}
LEFT, RIGHT = MOVE_TYPES["L"], MOVE_TYPES["R"]


@dataclass(slots=True)
class Pool:
    """Trees of one sentence before duplicates are merged; row 0 is the parser's own.

    heads int32[m, n], 0 the root; labels int32[m, n], ids of the inventory; scores float64[m].
    costs float64[m] are taken from the scores where trees compete for a place in a list.
    """

    heads: NDArray[np.int32]
    labels: NDArray[np.int32]
    scores: NDArray[np.float64]
    costs: NDArray[np.float64]

    @classmethod
    def join(cls, pools: Sequence[Pool]) -> Pool:
        """All trees of several pools; row 0 of the first stays row 0."""
        return cls(
            heads=np.concatenate([pool.heads for pool in pools]),
            labels=np.concatenate([pool.labels for pool in pools]),
            scores=np.concatenate([pool.scores for pool in pools]),
            costs=np.concatenate([pool.costs for pool in pools]),
        )

    def choose(self, k: int) -> NDArray[np.intp]:
        """Rows of all copies of the k distinct trees that win the places, row 0 among them."""
        values = self.scores - self.costs
        values[0] = np.inf
        both = np.concatenate([self.heads, self.labels], axis=1)
        chosen: list[int] = []
        seen: set[bytes] = set()
        for row in np.argsort(-values, kind="stable").tolist():
            tree = both[row].tobytes()
            if tree in seen:
                chosen.append(row)
            elif len(seen) < k:
                seen.add(tree)
                chosen.append(row)
        return np.array(chosen, dtype=np.intp)


class PoolMaker:
    """Makes pools from Docs of one sentence each, whose upstream vectors are in place.

    parser:      a trained spaCy `parser` or `beam_parser`.
    inventory:   where labels get their ids.
    max_margin:  log-odds that one discrepancy may cost at most.
    label_cost:  log-odds added to the cost of each second-best label when candidates compete for
                 places: another label changes one word's LAS, another head much more.
    """

    def __init__(
        self,
        parser: DependencyParser,
        *,
        inventory: LabelInventory,
        max_margin: float = 12.0,
        label_cost: float = 3.0,
    ) -> None:
        if parser.cfg.get("learn_tokens"):
            raise ValueError("a parser that merges tokens (learn_tokens) cannot be searched")
        self.parser = parser
        self.inventory = inventory
        self.max_margin = max_margin
        self.label_cost = label_cost
        names: list[str] = parser.move_names
        self.move_types = np.array([MOVE_TYPES[name[0]] for name in names], dtype=np.int32)
        # Classes added after training have no weights of their own; the parser never takes them.
        for action in parser.model.attrs["unseen_classes"]:
            self.move_types[action] = -1
        # One more than the actions, so that -1, the root's action, finds the root's label.
        self.action_names = [name[2:] for name in names] + [SPACY_ROOT]
        self.label_ids = inventory.encode(map(to_ud_label, self.action_names))
        self.decorated = np.array([DECORATION in name for name in self.action_names])
        self.actions = {
            (int(move), name): action
            for action, (move, name) in enumerate(
                zip(self.move_types, self.action_names, strict=False)
            )
        }
        self.model = self._copy_weights()
        self.search = DiscrepancySearch(self.model)

    def vectors(self, docs: Sequence[Doc]) -> NDArray[np.float32]:
        """The precomputed part of the model for a batch, float32[1 + tokens, ...]; row 0 pads."""
        model = self.parser.model
        vectors = model.get_ref("lower").predict(model.layers[0].predict(list(docs)))
        return np.ascontiguousarray(_to_numpy(vectors).reshape(len(vectors), -1))

    def discrepancies(
        self, doc: Doc, cached: NDArray[np.float32], *, first: int, max_runs: int, limit: int
    ) -> Pool:
        """The parser's own tree and at most `limit` more of the likeliest that a search finds.

        cached and first: the batch's vectors and where the Doc starts in the batch.
        """
        self.model.begin(cached, first=first, n_words=len(doc))
        heads, actions, seconds, margins, logps, _ = self.search.search(
            max_runs=max_runs, max_trees=max_runs, max_margin=self.max_margin
        )
        chosen = best_labellings(logps, margins + self.label_cost, limit=limit)
        rows = np.array([0, *(row for row, _ in chosen)])
        heads, actions, scores = heads[rows], actions[rows], logps[rows]
        costs = np.array([0, *(self.label_cost * len(words) for _, words in chosen)])
        for candidate, (row, words) in enumerate(chosen, start=1):
            if words:
                swapped = list(words)
                actions[candidate, swapped] = seconds[row, swapped]
                scores[candidate] -= margins[row, swapped].sum()
        # A tree's likeliest derivation may be another one than that which found it.
        known = score_trees(self.model, heads=heads, actions=actions)
        return self._pool(doc, heads, actions, np.maximum(scores, known), costs)

    def beam(self, docs: Sequence[Doc], cached: NDArray[np.float32], *, width: int) -> list[Pool]:
        """The parses of spaCy's own beam search, scored like those of the discrepancy search."""
        beams = self.parser.beam_parse(list(docs), beam_width=width, beam_density=0.0)
        pools = []
        first = 0
        for doc, beam in zip(docs, beams, strict=True):
            parses = [parse for _, parse in self.parser.moves.get_beam_parses(beam)]
            heads = np.full((max(1, len(parses)), len(doc)), -1, dtype=np.int32)
            actions = np.full_like(heads, -1)
            for row, parse in enumerate(parses):
                for head, child, label in parse:
                    heads[row, child] = head
                    actions[row, child] = self.actions[LEFT if head > child else RIGHT, label]
            self.model.begin(cached, first=first, n_words=len(doc))
            scores = score_trees(self.model, heads=heads, actions=actions)
            pools.append(self._pool(doc, heads, actions, scores, np.zeros(len(heads))))
            first += len(doc)
        return pools

    def scores(
        self,
        cached: NDArray[np.float32],
        *,
        first: int,
        heads: NDArray[np.int32],
        deprels: Sequence[Sequence[str]],
    ) -> NDArray[np.float64]:
        """Log-probabilities float64[m] of any trees, heads int32[m, n] and m x n labels of UD.

        A relation that the parser was never trained on scores -infinity.
        """
        lifted = np.empty_like(heads)
        actions = np.full_like(heads, -1)
        for row, labels in enumerate(deprels):
            own = [word if head == 0 else head - 1 for word, head in enumerate(heads[row].tolist())]
            projective, names = projectivize(own, list(labels))
            for word, (head, name) in enumerate(zip(projective, names, strict=True)):
                lifted[row, word] = -1 if head == word else head
                if head != word:
                    move = LEFT if head > word else RIGHT
                    plain = name.partition(DECORATION)[0]
                    actions[row, word] = self.actions.get(
                        (move, name), self.actions.get((move, plain), -1)
                    )
        self.model.begin(cached, first=first, n_words=heads.shape[1])
        return score_trees(self.model, heads=lifted, actions=actions)

    def _pool(
        self,
        doc: Doc,
        heads: NDArray[np.int32],
        actions: NDArray[np.int32],
        scores: NDArray[np.float64],
        costs: NDArray[np.float64],
    ) -> Pool:
        labels = self.label_ids[actions]
        heads = heads + 1
        blank: list[bool] | None = None
        for row in np.flatnonzero(self.decorated[actions].any(axis=1)).tolist():
            if blank is None:
                blank = [token.is_space for token in doc]
            tree = (heads[row] - 1).tolist()
            names = [self.action_names[action] for action in actions[row].tolist()]
            deprojectivize(tree, names, is_space=blank)
            heads[row] = np.add(tree, 1)
            labels[row] = self.inventory.encode(map(to_ud_label, names))
        return Pool(heads=heads, labels=labels, scores=scores, costs=costs)

    def _copy_weights(self) -> ContextScores:
        model = self.parser.model
        lower = model.get_ref("lower")
        has_upper = model.attrs["has_upper"]
        upper = model.get_ref("upper")
        return ContextScores(
            move_types=self.move_types,
            lower_b=_to_numpy(lower.get_param("b")),
            upper_w=_to_numpy(upper.get_param("W")) if has_upper else None,
            upper_b=_to_numpy(upper.get_param("b")) if has_upper else None,
            n_features=lower.get_dim("nF"),
        )


def best_labellings(
    scores: NDArray[np.float64], costs: NDArray[np.float64], *, limit: int
) -> list[tuple[int, tuple[int, ...]]]:
    """The best of all trees with any set of their words relabelled, as (row, words) pairs.

    scores: float64[m] of the trees as they are; costs: float64[m, n] of taking the second label of
    a word, infinite where there is none.  Best first by score minus costs; at most `limit` pairs.

    The sets of a tree come in order from a heap (Lawler 1972): with its words by rising cost, each
    set is followed by the set with the next word added, and that with its last word exchanged for
    the next.
    """
    order = np.argsort(costs, axis=1, kind="stable")
    ranked = np.take_along_axis(costs, order, axis=1).tolist()
    heap: list[tuple[float, int, tuple[int, ...]]]
    heap = [(-score, row, ()) for row, score in enumerate(scores.tolist())]
    heapq.heapify(heap)
    found: list[tuple[int, tuple[int, ...]]] = []
    while heap and len(found) < limit:
        value, row, positions = heapq.heappop(heap)
        found.append((row, positions))
        cost = ranked[row]
        following = positions[-1] + 1 if positions else 0
        if following == len(cost) or cost[following] == np.inf:
            continue
        heapq.heappush(heap, (value + cost[following], row, (*positions, following)))
        if positions:
            exchanged = value - cost[positions[-1]] + cost[following]
            heapq.heappush(heap, (exchanged, row, (*positions[:-1], following)))
    return [(row, tuple(order[row, list(positions)].tolist())) for row, positions in found]


def _to_numpy(array: Any) -> NDArray[Any]:
    """A parameter or output as a numpy array, also from a GPU."""
    return array if isinstance(array, np.ndarray) else array.get()
