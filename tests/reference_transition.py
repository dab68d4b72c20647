"""Plain, slow twins of tk_spacy/parsers/transition: states, moves and a greedy loop."""

from __future__ import annotations

import numpy as np

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
