"""Plain, slow twins of what is counted in kernel spaces: patterns written out as strings, from the
paper's definitions, sharing no code with the fast routines."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations, product


def children(heads):
    """For the root 0 and each word what hangs on it, from left to right."""
    below = {word: [] for word in range(len(heads) + 1)}
    for word, head in enumerate(heads, 1):
        below[head].append(word)
    return below


def is_subtree(heads, words):
    """Whether the arcs into these words are connected, and siblings among them adjacent."""
    words = set(words)
    tops = {heads[word - 1] for word in words} - words
    if len(tops) != 1:
        return False
    for siblings in children(heads).values():
        places = [i for i, word in enumerate(siblings) if word in words]
        if places and places[-1] - places[0] + 1 != len(places):
            return False
    return True


def subtrees(heads):
    """All subtrees with at least one arc, each as the words that its arcs lead into."""
    words = range(1, len(heads) + 1)
    every = chain.from_iterable(combinations(words, size) for size in words)
    return [chosen for chosen in every if is_subtree(heads, chosen)]


def written(heads, features, top):
    """A sub feature tree below a word as a string; features: of the arc into each of its words."""
    return "".join(
        f"({features[word]}{written(heads, features, word)})"
        for word in children(heads)[top]
        if word in features
    )


def sub_feature_trees(heads, arc_features, *, most=None):
    """How often each sub feature tree occurs.

    arc_features: for each word the features of the arc into it.  most: arcs at most.
    """
    found = Counter()
    for words in subtrees(heads):
        if most is not None and len(words) > most:
            continue
        (top,) = {heads[word - 1] for word in words} - set(words)
        for chosen in product(*(arc_features[word - 1] for word in words)):
            found[written(heads, dict(zip(words, chosen, strict=True)), top)] += 1
    return found


def combinations_of_arcs(arc_features, *, degree):
    """How often each set of at most `degree` features of one arc occurs, the empty one not."""
    found = Counter()
    for features in arc_features:
        for size in range(1, degree + 1):
            found.update(combinations(sorted(features), size))
    return found


def shared(a, b):
    """The dot product of two counters."""
    return sum(times * b[pattern] for pattern, times in a.items())
