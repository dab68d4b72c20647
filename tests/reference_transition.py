"""Plain, slow twins of tk_spacy/parsers/transition: states, moves and a beam search."""

from __future__ import annotations

import numpy as np

from tk_spacy.parsers.transition.decoder import Scorer, scores_after

SHIFT, SWAP, LEFT, RIGHT = range(4)


class PlainState:
    """A state of arc-standard with SWAP over n words."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.stack = [0]
        self.buffer = list(range(1, n + 1))
        self.heads: dict[int, int] = {}
        self.labels: dict[int, int] = {}
        self.has_right: set[int] = set()
        self.swaps = 0

    @property
    def is_final(self) -> bool:
        return self.stack == [0] and not self.buffer

    def legal(self) -> list[int]:
        found = [SHIFT] if self.buffer else []
        if len(self.stack) >= 3:
            upper, top = self.stack[-2:]
            if upper < top and self.swaps < 2 * self.n:
                found.append(SWAP)
            if upper < top or not self.buffer:
                if self.swaps or top not in self.has_right:
                    found.append(LEFT)
                found.append(RIGHT)
        elif len(self.stack) == 2 and not self.buffer:
            found.append(RIGHT)
        return found

    def make(self, move: int, label: int = -1) -> None:
        if move == SHIFT:
            self.stack.append(self.buffer.pop(0))
        elif move == SWAP:
            self.buffer.insert(0, self.stack.pop(-2))
            self.swaps += 1
        else:
            mod = self.stack.pop(-2 if move == LEFT else -1)
            head = self.stack[-1]
            self.heads[mod], self.labels[mod] = head, label
            if move == RIGHT:
                self.has_right.add(head)


def replay(moves: np.ndarray, n: int) -> np.ndarray:
    """The heads int32[n] that moves build; each of them must be legal in the search."""
    state = PlainState(n)
    state.swaps = 0
    for move in moves.tolist():
        legal = state.legal()
        if move == SWAP and SWAP not in legal:  # beyond the search's number of swaps
            assert state.stack[-2] < state.stack[-1]
        else:
            assert move in legal, (move, legal, state.stack, state.buffer)
        state.make(move)
    assert state.is_final
    return np.array([state.heads[i] for i in range(1, n + 1)], dtype=np.int32)


Path = list[tuple[int, int]]
"""Moves, with the label of the arc that each makes, -1 for none."""


def plain_paths(
    scorer: Scorer, fields: np.ndarray, gold: Path, places: np.ndarray, width: int
) -> tuple[Path, Path]:
    """By a plain beam search: what is to be learnt, and what it found in its place.

    The gold moves and the best state's, both up to the step at which that state is furthest ahead
    of the gold one; none where the gold tree is found.
    """
    beam: list[tuple[float, Path]] = [(0.0, [])]
    gold_score, step = 0.0, 0
    most, right, wrong = -1.0, gold[:0], gold[:0]
    while step < len(gold) or not all(_state(path, fields).is_final for _, path in beam):
        more: list[tuple[float, Path]] = []
        for score, path in beam:
            if _state(path, fields).is_final:
                more.append((score, path))
            more += [
                (score + _score(scorer, fields, path, *move), [*path, move])
                for move in _moves(scorer, fields, path, places)
            ]
        beam = sorted(more, key=lambda item: -item[0])[:width]
        if step < len(gold):
            gold_score += _score(scorer, fields, gold[:step], *gold[step])
            step += 1
        score, path = beam[0]
        if path != gold[:step] and score - gold_score > most:
            most, right, wrong = score - gold_score, gold[:step], path
    return ([], []) if beam[0][1] == gold else (right, wrong)


def _state(path: Path, fields: np.ndarray) -> PlainState:
    state = PlainState(len(fields) - 2)
    for move, label in path:
        state.make(move, label)
    return state


def _after(scorer: Scorer, fields: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray]:
    return scores_after(scorer, fields, [move for move, _ in path], [label for _, label in path])


def _score(scorer: Scorer, fields: np.ndarray, path: Path, move: int, label: int) -> float:
    of_moves, of_labels = _after(scorer, fields, path)
    return float(of_moves[move]) + (float(of_labels[move - LEFT, label]) if move >= LEFT else 0.0)


def _moves(scorer: Scorer, fields: np.ndarray, path: Path, places: np.ndarray) -> Path:
    """The legal moves after some, with the best label that may be where it stands."""
    state, found = _state(path, fields), []
    if state.is_final:
        return []
    _, of_labels = _after(scorer, fields, path)
    for move in state.legal():
        label = -1
        if move >= LEFT:
            under_root = move == RIGHT and len(state.stack) == 2
            may = (places & (1 if under_root else 2)) > 0
            label = int(np.argmax(np.where(may, of_labels[move - LEFT], -np.inf)))
        found.append((move, label))
    return found
