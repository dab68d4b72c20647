"""The discrepancy search done by spaCy's own states and model, slow and plain."""

from __future__ import annotations

import heapq
import itertools
from typing import Any

import numpy as np
from spacy.tokens import Doc

Tree = tuple[tuple[int, ...], tuple[str, ...]]


def run(
    parser: Any, doc: Doc, prefix: list[int], change: int | None
) -> tuple[list[int], list[tuple[int, int, float]], float, Tree]:
    """Actions of a run, (step, action, margin) of what could be changed after, logp, tree."""
    moves, names = parser.moves, parser.move_names
    model = parser.model.predict([doc])
    (state,) = moves.init_batch([doc])
    forced = [] if change is None else [*prefix, change]
    actions: list[int] = []
    changes = []
    logp = 0.0
    while not state.is_final():
        scores = model.predict([state])[0].astype(float)
        allowed = [i for i in range(len(names)) if moves.is_valid(state, i)]
        step = len(actions)
        best = max(allowed, key=lambda i: (scores[i], -i))
        action = forced[step] if step < len(forced) else best
        logp += scores[action] - np.log(np.exp(scores[allowed]).sum())
        if step >= len(forced):
            for kind in {names[i][0] for i in allowed} - {names[best][0]}:
                other = max((i for i in allowed if names[i][0] == kind), key=lambda i: scores[i])
                changes.append((step, other, scores[best] - scores[other]))
        actions.append(action)
        moves.transition(state, action)
    heads = tuple(state.H(i) for i in range(len(doc)))
    labels = {arc["child"]: doc.vocab.strings[arc["label"]] for arc in state.arcs}
    return actions, changes, logp, (heads, tuple(labels.get(i, "ROOT") for i in range(len(doc))))


def search(parser: Any, doc: Doc, *, max_runs: int) -> dict[Tree, float]:
    """Distinct trees in order of discovery, with the likeliest derivation's log-probability."""
    found: dict[Tree, float] = {}
    heap: list[Any] = []
    count = itertools.count()
    item: tuple[list[int], int | None] = ([], None)
    for _ in range(max_runs):
        actions, changes, logp, tree = run(parser, doc, *item)
        if tree in found:
            found[tree] = max(found[tree], logp)
        else:
            found[tree] = logp
            for step, other, margin in changes:
                heapq.heappush(heap, (margin - logp, next(count), actions[:step], other))
        if not heap:
            break
        item = heapq.heappop(heap)[2:]
    return found
