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
from spacy.pipeline._parser_internals.nonproj import is_nonproj_tree, projectivize

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.spacy_transition.context_scores import ContextScores
from tk_spacy.parsers.spacy_transition.discrepancy_search import DiscrepancySearch
from tk_spacy.parsers.spacy_transition.tree_scores import score_trees
from tk_spacy.spacy_io.conversion import SPACY_ROOT, to_ud_label
from tk_spacy.trees.spacy_decorations import DECORATION, deprojectivize

if TYPE_CHECKING:
    from spacy.tokens import Doc

MOVE_TYPES = {"S": 0, "D": 1, "L": 2, "R": 3, "B": -1}
LEFT, RIGHT = MOVE_TYPES["L"], MOVE_TYPES["R"]


@dataclass(slots=True)
class Pool:
    """Trees of one sentence, equal ones among them perhaps; row 0 is the parser's own.

    heads int32[m, n], 0 the root; labels int32[m, n], ids of the inventory; scores float64[m].
    """

    heads: NDArray[np.int32]
    labels: NDArray[np.int32]
    scores: NDArray[np.float64]

    @classmethod
    def join(cls, pools: Sequence[Pool]) -> Pool:
        """All trees of several pools; row 0 of the first stays row 0."""
        return cls(
            heads=np.concatenate([pool.heads for pool in pools]),
            labels=np.concatenate([pool.labels for pool in pools]),
            scores=np.concatenate([pool.scores for pool in pools]),
        )


class PoolMaker:
    """Makes pools of one Doc of one sentence at a time: call `begin` for it, then what is wanted.

    parser:      a trained spaCy `parser` or `beam_parser`.
    inventory:   where labels get their ids.
    max_margin:  log-odds that one discrepancy may cost at most.
    label_cost:  log-odds added to the cost of each second-best label when trees compete for places:
                 another label changes one word's LAS, another head much more.
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
        self._doc: Doc | None = None
        empty = np.empty(0, np.int32)
        self._by_label: dict[int, NDArray[np.int32]] = {LEFT: empty, RIGHT: empty}

    def vectors(self, docs: Sequence[Doc]) -> NDArray[np.float32]:
        """The precomputed part of the model for a batch, float32[1 + tokens, ...]; row 0 pads."""
        model = self.parser.model
        vectors = model.get_ref("lower").predict(model.layers[0].predict(list(docs)))
        return np.ascontiguousarray(_to_numpy(vectors).reshape(len(vectors), -1))

    def begin(self, doc: Doc, cached: NDArray[np.float32], *, first: int) -> None:
        """Take up a Doc; cached and first: its batch's vectors and where it starts there."""
        self._doc = doc
        self.model.begin(cached, first=first, n_words=len(doc))

    def has_begun(self, doc: Doc) -> bool:
        """Whether this Doc is the one taken up last, so that its scores are still known."""
        return self._doc is doc

    def discrepancies(self, *, max_runs: int, limit: int) -> Pool:
        """The parser's own tree and at most `limit` of the likeliest that a search finds."""
        heads, actions, seconds, margins, logps, _ = self.search.search(
            max_runs=max_runs, max_trees=max_runs, max_margin=self.max_margin
        )
        chosen = best_labellings(logps, margins + self.label_cost, limit=limit)
        rows = np.array([0, *(row for row, _ in chosen)])
        heads, actions, scores = heads[rows], actions[rows], logps[rows]
        for candidate, (row, words) in enumerate(chosen, start=1):
            if words:
                swapped = list(words)
                actions[candidate, swapped] = seconds[row, swapped]
                scores[candidate] -= margins[row, swapped].sum()
        # A tree's likeliest derivation may be another one than that which found it.
        known = score_trees(self.model, heads=heads, actions=actions)
        return self._pool(heads, actions, np.maximum(scores, known))

    def beam_parses(
        self, docs: Sequence[Doc], *, width: int
    ) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Heads and actions, each int32[m, n], of spaCy's own beam search, best first."""
        found = []
        beams = self.parser.beam_parse(list(docs), beam_width=width, beam_density=0.0)
        for doc, beam in zip(docs, beams, strict=True):
            parses = [parse for _, parse in self.parser.moves.get_beam_parses(beam)]
            heads = np.full((max(1, len(parses)), len(doc)), -1, dtype=np.int32)
            actions = np.full_like(heads, -1)
            for row, parse in enumerate(parses):
                for head, child, label in parse:
                    heads[row, child] = head
                    actions[row, child] = self.actions[LEFT if head > child else RIGHT, label]
            found.append((heads, actions))
        return found

    def scored(self, heads: NDArray[np.int32], actions: NDArray[np.int32]) -> Pool:
        """A pool of projective trees given by heads (0-based, -1 for the root) and actions."""
        return self._pool(heads, actions, score_trees(self.model, heads=heads, actions=actions))

    def scores(self, heads: NDArray[np.int32], labels: NDArray[np.int32]) -> NDArray[np.float64]:
        """Log-probabilities float64[m] of any trees: heads int32[m, n] as UD has them, label ids.

        -infinity where a tree has a relation that the parser was not trained on.
        """
        own = heads - 1
        leftward = own > np.arange(heads.shape[1])
        by_label = self._actions_by_label()
        actions = np.where(leftward, by_label[LEFT][labels], by_label[RIGHT][labels])
        scores = score_trees(self.model, heads=own, actions=actions)
        # Trees that are not projective come out impossible, and are lifted then.
        rows = np.flatnonzero(np.isinf(scores))
        lifted = [row for row in rows.tolist() if self._lift(own[row], actions[row], labels[row])]
        if lifted:
            scores[lifted] = score_trees(self.model, heads=own[lifted], actions=actions[lifted])
        return scores

    def _lift(
        self, heads: NDArray[np.int32], actions: NDArray[np.int32], labels: NDArray[np.int32]
    ) -> bool:
        """Make one tree projective, in place; False where it is so already."""
        whole = [word if head < 0 else head for word, head in enumerate(heads.tolist())]
        if not is_nonproj_tree(whole):
            return False
        projective, names = projectivize(whole, list(self.inventory.decode(labels.tolist())))
        for word, (head, name) in enumerate(zip(projective, names, strict=True)):
            if head != whole[word]:
                move = LEFT if head > word else RIGHT
                heads[word] = head
                # A lift that was never seen in training is scored as a plain arc.
                plain = name.partition(DECORATION)[0]
                actions[word] = self.actions.get((move, name), self.actions.get((move, plain), -1))
        return True

    def _actions_by_label(self) -> dict[int, NDArray[np.int32]]:
        """Of each arc move the action by label id, -1 where there is none."""
        if len(self._by_label[LEFT]) != len(self.inventory):
            for move, table in self._by_label.items():
                self._by_label[move] = table = np.full(len(self.inventory), -1, np.int32)
                for (kind, name), action in self.actions.items():
                    if kind == move and DECORATION not in name:
                        table[self.label_ids[action]] = action
        return self._by_label

    def _pool(
        self, heads: NDArray[np.int32], actions: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Pool:
        labels = self.label_ids[actions]
        heads = heads + 1
        blank: list[bool] | None = None
        for row in np.flatnonzero(self.decorated[actions].any(axis=1)).tolist():
            if blank is None:
                assert self._doc is not None
                blank = [token.is_space for token in self._doc]
            tree = (heads[row] - 1).tolist()
            names = [self.action_names[action] for action in actions[row].tolist()]
            deprojectivize(tree, names, is_space=blank)
            heads[row] = np.add(tree, 1)
            labels[row] = self.inventory.encode(map(to_ud_label, names))
        return Pool(heads=heads, labels=labels, scores=scores)

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
