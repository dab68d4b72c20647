"""Constraints of well-formed trees the slow way: each as a mask over all words of all trees."""

from __future__ import annotations

import numpy as np

from tk_spacy.trees.constraints import (
    FIXED_TAG,
    LEAVES,
    LEFT_HEADED,
    NOMINAL_RELATIONS,
    NOMINAL_TAGS,
    OBJECTS,
    OBLIQUE,
    OF_POSSESSIVES,
    OF_PREDICATES,
    OUTER_SUBJECTS,
    PUNCT_CAUSES,
    PUNCT_IS,
    PUNCT_TAG,
    ROOTS,
    SUBJECTS,
    TAGS,
)  # fmt: skip


class PlainTrees:
    """Trees of one sentence: `at` and `blamed`, bool[k, n] by kind, as `constraints.Violations`.

    heads: int32[k, n].  labels: int32[k, n], places in names.  upos, feats, misc: n texts.
    """

    def __init__(self, heads, labels, names, upos, feats, misc):
        own = [dict(item.split("=", 1) for item in f.split("|") if "=" in item) for f in feats]
        self.upos = upos
        self.tags = [f.get("ExtPos", tag) for f, tag in zip(own, upos, strict=True)]
        self.negating = np.array(
            [
                tag in ("ADV", "PART") and f.get("Polarity") == "Neg"
                for f, tag in zip(own, upos, strict=True)
            ]
        )
        self.possessive = np.array([f.get("Poss") == "Yes" for f in own])
        self.outer = np.array(["Subject=Outer" in column.split("|") for column in misc])
        self.heads = np.maximum(heads, 0)
        self.is_root = heads == 0
        self.k, self.n = heads.shape
        # Only the labels that occur: a table may have hundreds.
        used, places = np.unique(labels, return_inverse=True)
        self.full = [names[i] for i in used.tolist()]
        self.universal = [name.partition(":")[0] for name in self.full]
        self.places = places.reshape(heads.shape)
        self.attached = heads > 0
        self.parent = np.maximum(heads - 1, 0)
        self.at, self.blamed = {}, {}
        self._find()

    def with_relation(self, names):
        """bool[k, n]: the words whose universal relation is one of these."""
        wanted = frozenset(names)
        table = np.array([name in wanted for name in self.universal])
        return table[self.places]

    def of_parent(self, values):
        """bool[k, n]: a property of words, of the word's head; False where that is the root."""
        values = np.broadcast_to(values, self.heads.shape)
        return np.take_along_axis(values, self.parent, axis=1) & self.attached

    def has_child(self, children):
        """bool[k, n]: the words that have one of these children."""
        return self.count_children(children) > 0

    def count_children(self, children):
        """int64[k, n]: how many of these children each word has."""
        rows, found = np.nonzero(children & self.attached)
        cells = rows * self.n + self.parent[rows, found]
        return np.bincount(cells, minlength=self.k * self.n).reshape(self.k, self.n)

    def _find(self):
        def add(kind, where, others=None):
            if where.any():
                words = where if others is None else others
                self.at[kind] = self.at.get(kind, False) | where
                self.blamed[kind] = self.blamed.get(kind, False) | words

        add(ROOTS, self.is_root & (np.cumsum(self.is_root, axis=1) > 1))
        inner = np.array(["subj" in u and f not in OUTER_SUBJECTS for u, f in self._names()])
        for kind, children in (
            (SUBJECTS, inner[self.places] & ~self.outer),
            (OBJECTS, self.with_relation(["obj"])),
        ):
            many = self.count_children(children) > 1
            add(kind, many, children & self.of_parent(many))
        self._add_leaves(add)
        word = np.arange(1, self.n + 1)
        for name in LEFT_HEADED:
            add(f"right-to-left-{name}", self.with_relation([name]) & (self.heads > word))
        self._add_punctuation(add)
        nominal = np.array([tag in NOMINAL_TAGS for tag in self.upos])
        nominal = nominal & self.with_relation(NOMINAL_RELATIONS)
        nominal &= ~self.has_child(self.with_relation(OF_PREDICATES))
        oblique = self.with_relation(["obl"]) & self.of_parent(nominal)
        add(OBLIQUE, oblique, oblique | self.has_child(oblique))
        self._add_tags(add)

    def _names(self):
        return zip(self.universal, self.full, strict=True)

    def _add_leaves(self, add):
        negation = self.with_relation(["advmod"]) & self.negating
        for leaf, (kind, allowed) in LEAVES.items():
            leaves = self.with_relation([leaf])
            if not leaves.any():
                continue
            wrong = self.of_parent(leaves) & ~self.with_relation(allowed)
            if leaf != "punct":
                wrong &= ~negation
            if leaf == "det":
                wrong &= ~(
                    self.of_parent(leaves & self.possessive) & self.with_relation(OF_POSSESSIVES)
                )
            if leaf == "goeswith" and wrong.any():
                crossing = self._has_gap(leaves)
                wrong &= ~(self.with_relation(["punct"]) & self.of_parent(crossing))
            add(kind, wrong, wrong | self.has_child(wrong))

    def _add_tags(self, add):
        for relation, (wanted, tags) in TAGS.items():
            fits = np.array([(tag in tags) == wanted for tag in self.tags])
            wrong = self.with_relation([relation]) & ~fits
            if relation == "advmod" and wrong.any():
                wrong &= ~self.has_child(self.with_relation(["goeswith"]))
            add(f"rel-upos-{relation}", wrong)
        fixed = self.with_relation(["fixed"])
        proper = np.array([tag == "PROPN" for tag in self.tags])
        add(FIXED_TAG, proper & (fixed | self.has_child(fixed)))
        marks = np.array([tag == "PUNCT" for tag in self.tags])
        add(PUNCT_TAG, marks & ~self.with_relation(["punct", "root"]))

    # Crossing

    def _below(self):
        """bool[k, n + 1, n + 1]: whether the last word is below the other one (0 is the root)."""
        below = np.zeros((self.k, self.n + 1, self.n + 1), dtype=np.bool_)
        rows, words = np.arange(self.k)[:, None], np.arange(1, self.n + 1)[None]
        above = self.heads
        padded = np.concatenate([np.zeros((self.k, 1), np.int32), self.heads], axis=1)
        for _ in range(self.n):
            below[rows, above, words] = True
            if not above.any():
                break
            above = np.take_along_axis(padded, above, axis=1)
        return below

    def _has_gap(self, words):
        """bool[k, n]: of these words, those with a word up to their head which is not below it."""
        wrong = np.zeros_like(words)
        rows, found = np.nonzero(words & self.attached)
        if not len(rows):
            return wrong
        heads = self.heads[rows, found]
        low, high = np.minimum(heads, found + 1), np.maximum(heads, found + 1)
        inside = np.cumsum(self._below(), axis=2, dtype=np.int32)
        between = inside[rows, heads, high - 1] - inside[rows, heads, low]
        wrong[rows, found] = between < high - low - 1
        return wrong

    def _add_punctuation(self, add):
        marks = self.with_relation(["punct"])
        if not marks.any():
            return
        word = np.arange(1, self.n + 1)
        low, high = np.minimum(self.heads, word), np.maximum(self.heads, word)
        # Most trees are projective: nothing more is to be seen there.
        inside = np.zeros(self.heads.shape, dtype=np.bool_)
        for place in np.flatnonzero(marks.any(axis=0)).tolist():
            over = (low < place + 1) & (high > place + 1)
            inside[:, place] = over.any(axis=1) & marks[:, place]
        long = marks & (high - low > 1)
        if not inside.any() and not long.any():
            return
        add(PUNCT_IS, self._has_gap(long))
        below = self._below()
        rows = np.arange(self.k)[:, None]
        causes = np.zeros(self.heads.shape, dtype=np.bool_)
        for place in np.flatnonzero(inside.any(axis=0)).tolist():
            mark, head = place + 1, self.heads[:, place, None]
            over = (low >= 1) & (low < mark) & (high > mark)
            near = np.where(head < mark, low > head, high < head)
            over = over & near & ~below[rows, self.heads, mark]
            causes[:, place] = over.any(axis=1) & inside[:, place]
        add(PUNCT_CAUSES, causes)
