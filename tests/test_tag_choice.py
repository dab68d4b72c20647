"""The tags whose parts are most probable together, against sums of all."""

from __future__ import annotations

import numpy as np
import pytest

from tk_spacy.tagging.bilstm.tag_choice import choose_tags


def plain_choice(logs: np.ndarray, parts: np.ndarray) -> list[int]:
    """The first of the best sums, added task by task."""
    found = []
    for word in logs:
        totals = np.zeros(len(parts), dtype=np.float32)
        for column in parts.T:
            totals += word[column]
        found.append(int(totals.argmax()))
    return found


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize(("n_tags", "tasks"), [(1, 2), (2, 2), (7, 3), (60, 12)])
def test_chosen_tags_have_the_best_sums(n_tags: int, tasks: int, equal: bool) -> None:
    rng = np.random.default_rng([n_tags, tasks])
    for _ in range(30):
        parts = rng.integers(0, 50, size=(n_tags, tasks))
        logs = -rng.exponential(3, size=(9, 50)).astype(np.float32)
        if equal:  # many sums are the same
            logs = -rng.integers(0, 2, size=(9, 50)).astype(np.float32)
        assert choose_tags(logs, parts).tolist() == plain_choice(logs, parts)


def test_words_that_are_no_numbers_get_the_first_tag() -> None:
    logs = np.full((2, 4), np.nan, dtype=np.float32)
    logs[1] = [-3, -2, -1, -0.5]
    assert choose_tags(logs, np.array([[0, 1], [2, 3]])).tolist() == [0, 1]


def test_no_word_has_no_tag() -> None:
    assert choose_tags(np.zeros((0, 4), np.float32), np.array([[0, 1]])).tolist() == []


def test_parts_beyond_the_logs_are_refused() -> None:
    logs = np.zeros((1, 4), dtype=np.float32)
    for wrong in (4, -1):
        with pytest.raises(ValueError, match=f"parts holds {wrong}, expected 0 to 3"):
            choose_tags(logs, np.array([[0, wrong]]))
    for none in (np.zeros((0, 2), np.int64), np.zeros((3, 1), np.int64)):
        with pytest.raises(ValueError, match="expected tags of two tasks at least"):
            choose_tags(logs, none)
    with pytest.raises(TypeError, match="parts must be"):
        choose_tags(logs, np.array([[0.0, 1.0]]))
