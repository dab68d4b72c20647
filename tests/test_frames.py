"""Frames (a head and all its modifiers) and spans (a word and all below it) against slow twins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tk_spacy.features.part_types import GRAND_TRI_SIBLING
from tk_spacy.features.parts import extract_frames, extract_parts, extract_spans
from tk_spacy.features.schema import FIRST_MORPH, POS
from tk_spacy.features.templates import FRAME, SPAN, add_feature_counts, type_code
from tk_spacy.reranker.settings import Settings

N_LABELS = 4


def random_trees(rng: np.random.Generator, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Heads int32[k, n] of random trees over a random order of the words, and random labels."""
    heads = np.empty((k, n), dtype=np.int32)
    for row in heads:
        order = rng.permutation(n) + 1
        for i, word in enumerate(order.tolist()):
            row[word - 1] = order[rng.integers(i)] if i else 0
    return heads, rng.integers(3, 3 + N_LABELS, size=(k, n)).astype(np.int32)


def slow_frame(tags: np.ndarray, heads: np.ndarray, labels: np.ndarray, h: int) -> tuple:
    """What a frame's row stands for, column by column in its order."""
    modifiers = [m for m in range(1, len(heads) + 1) if heads[m - 1] == h]
    left = tuple(int(labels[m - 1]) for m in modifiers if m < h)
    right = tuple(int(labels[m - 1]) for m in modifiers if m > h)
    counts = Counter(left + right)
    return (
        left,
        h,
        right,
        (tuple(int(tags[m]) for m in modifiers), len(left)),
        tuple(sorted(counts.items())),
        int(labels[h - 1]) if h else 0,
        (min(len(left), 7), min(len(right), 7)),
        tuple(sorted(name for name, count in counts.items() if count > 1)),
        (left, right),
    )


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_equal_just_where_frames_are(seed: int) -> None:
    """Column by column: equal values stand for equal facts, different ones for different facts."""
    rng = np.random.default_rng(seed)
    k, n = 6, int(rng.integers(1, 12))
    heads, labels = random_trees(rng, k, n)
    fields = rng.integers(3, 6, size=(n + 2, 6)).astype(np.int32)
    rows, starts, members = extract_frames(fields, heads, labels)
    assert starts.tolist() == [j * (n + 1) for j in range(k + 1)]
    facts: list[dict] = [{} for _ in range(9)]
    values: list[dict] = [{} for _ in range(9)]
    distinct = set()
    for j in range(k):
        for h in range(n + 1):
            row = rows[members[starts[j] + h]]
            expected = slow_frame(fields[:, POS], heads[j], labels[j], h)
            distinct.add(expected)
            assert row[1] == h
            for column, (value, fact) in enumerate(zip(row.tolist(), expected, strict=True)):
                assert facts[column].setdefault(value, fact) == fact
                assert values[column].setdefault(fact, value) == value
    assert len(rows) == len(distinct)


@pytest.mark.parametrize("seed", range(5))
def test_spans_are_those_of_the_trees(seed: int) -> None:
    """Each word's row holds what a walk from every word to the root finds."""
    rng = np.random.default_rng(seed)
    k, n = 6, int(rng.integers(1, 12))
    heads, labels = random_trees(rng, k, n)
    rows, starts, members = extract_spans(heads, labels)
    distinct = set()
    for j in range(k):
        for h in range(1, n + 1):
            below = [m for m in range(1, n + 1) if h in path(heads[j], m)]
            expected = (min(below), h, 0, 0, max(below), len(below), 0, 0, int(labels[j, h - 1]))
            assert tuple(rows[members[starts[j] + h - 1]].tolist()) == expected
            distinct.add(expected)
    assert len(rows) == len(distinct)


def path(heads: np.ndarray, word: int) -> list[int]:
    """A word and all above it."""
    above = [word]
    while heads[above[-1] - 1]:
        above.append(int(heads[above[-1] - 1]))
    return above


def test_no_repeated_label_is_0() -> None:
    """The column of repeated labels tells whether there are some."""
    heads = np.array([[2, 0, 2]], dtype=np.int32)
    fields = np.full((5, 6), 3, dtype=np.int32)
    once, _, _ = extract_frames(fields, heads, np.array([[3, 4, 5]], dtype=np.int32))
    twice, _, _ = extract_frames(fields, heads, np.array([[3, 4, 3]], dtype=np.int32))
    assert once[2][7] == 0
    assert twice[2][7] != 0


def test_frames_are_features_only() -> None:
    """The kernel compares slots, and a frame has none."""
    for name in (FRAME, SPAN):
        assert name in Settings(manual_parts=(name,)).manual_parts
        with pytest.raises(ValueError, match=f"unknown part type '{name}'"):
            Settings(kernel_parts=(name,))


def test_parts_of_fourth_order_have_features_of_all_their_words() -> None:
    """1 heads 2, and 2 heads 3, 4 and 5: the part of 5 has them all."""
    heads = np.array([[0, 1, 2, 2, 2]], dtype=np.int32)
    labels = np.array([[3, 4, 5, 6, 7]], dtype=np.int32)
    rows, _, _ = extract_parts(heads, labels, GRAND_TRI_SIBLING)
    # Of 3 alone there is no sibling; 4's has none, which is the boundary (6, label 1).
    assert rows.tolist() == [[1, 2, 6, 3, 4, 4, 1, 5, 6], [1, 2, 3, 4, 5, 4, 5, 6, 7]]
    fields = np.arange(3, 3 + 7 * FIRST_MORPH, dtype=np.int32).reshape(7, FIRST_MORPH)

    def features(changed: int | None = None, label: int | None = None) -> set[int]:
        words, part = fields.copy(), rows[1:].copy()
        if changed is not None:
            words[changed] += 1000
        if label is not None:
            part[0, label] += 1
        counts = np.zeros(1 << 20)
        one = np.ones(1, dtype=np.int32)
        kind = type_code(GRAND_TRI_SIBLING.name)
        add_feature_counts(words, part, np.zeros(1, dtype=np.int32), one, kind, counts)
        return set(np.flatnonzero(counts).tolist())

    every = features()
    assert len(every) == 2 * 9  # each template with and without the labels
    of_words = [len(every & features(changed=word)) for word in range(1, 6)]
    # One of two templates of four words goes without the head, the other without the sibling.
    assert of_words == [0, 2, 0, 2, 0]
    assert [len(every & features(label=column)) for column in range(5, 9)] == [9] * 4
    assert features(changed=0) == features(changed=6) == every
