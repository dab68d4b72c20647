"""Plain, slow twin of the lifting in tk_spacy/trees/pseudo_projective.py, and trees to lift."""

from __future__ import annotations

from hypothesis import strategies as st


def below(heads, head):
    """The words that a path of arcs leads to from a head; heads[m - 1] is that of word m."""
    found = {head}
    for _ in heads:
        found |= {word for word, above in enumerate(heads, 1) if above in found}
    return found


def nonprojective_words(heads):
    """The words whose arcs are not projective, by the definition."""
    return [
        word
        for word, head in enumerate(heads, 1)
        if not set(range(min(word, head) + 1, max(word, head))) <= below(heads, head)
    ]


def lifted(heads, word):
    """The heads after lifting one word."""
    new = list(heads)
    new[word - 1] = heads[heads[word - 1] - 1]
    return new


def lifts(heads):
    """The lifts of Nivre and Nilsson's algorithm as (word, head that it left), and the heads."""
    done = []
    while words := nonprojective_words(heads):
        word = min(words, key=lambda word: (abs(word - heads[word - 1]), word))
        done.append((word, heads[word - 1]))
        heads = lifted(heads, word)
    return done, heads


@st.composite
def trees(draw, *, most=12):
    """Heads of a tree with one root, of up to `most` words, most of them not projective."""
    n = draw(st.integers(1, most))
    order = draw(st.permutations(range(1, n + 1)))
    heads = [0] * n
    for place, word in enumerate(order[1:], 1):
        heads[word - 1] = order[draw(st.integers(0, place - 1))]
    return heads
