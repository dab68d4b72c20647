"""What a well-formed tree of Universal Dependencies keeps to: declared, and counted in many trees.

The constraints are those of level 3 of UD's validator (udtools 0.2.9, `level3.py`) that speak of
heads, relations and tags, by its names of them, and one root (level 2).  Their data are the tables
below; only what asks for more than an arc's two words is code.  Not here: what the validator only
warns of, what it asks of features and lemmas alone, and gaps in `goeswith`.

For trees in numbers, such as the candidates of a sentence: arrays [k, n] of k trees over n words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Add = Callable[..., None]

ROOTS, SUBJECTS, OBJECTS = "multiple-roots", "too-many-subjects", "too-many-objects"
OBLIQUE = "obl-should-be-nmod"
PUNCT_CAUSES, PUNCT_IS = "punct-causes-nonproj", "punct-is-nonproj"
PUNCT_TAG, FIXED_TAG = "upos-rel-punct", "rel-upos-fixed"
OUTER_SUBJECTS = frozenset({"nsubj:outer", "csubj:outer"})

_ANY_FUNCTION = "goeswith fixed reparandum conj punct"
LEAVES: Mapping[str, tuple[str, frozenset[str]]] = {
    leaf: (kind, frozenset(allowed.split()))
    for leaves, kind, allowed in (
        ("mark case", "leaf-mark-case", f"{_ANY_FUNCTION} advmod obl cc"),
        ("aux cop", "leaf-aux-cop", f"{_ANY_FUNCTION} cc"),
        (
            "det", "leaf-det",
            f"{_ANY_FUNCTION} cc det case advmod obl clf flat compound discourse parataxis",
        ),
        ("clf", "leaf-clf", f"{_ANY_FUNCTION} advmod obl cc"),
        ("cc", "leaf-cc", _ANY_FUNCTION),
        ("fixed", "leaf-fixed", "goeswith reparandum conj punct"),
        ("goeswith", "leaf-goeswith", ""),
        ("punct", "leaf-punct", "punct"),
    )
    for leaf in leaves.split()
}  # fmt: skip
"""Relations of words that have no dependents: the kind of violation, and the relations that may
stand below them all the same."""
OF_POSSESSIVES = frozenset({"appos", "acl", "nmod"})
"""What a `det` with Poss=Yes may have besides."""

LEFT_HEADED = ("conj", "fixed", "flat", "goeswith", "appos")
"""Relations whose head stands before the word."""

_NO_FUNCTION = "PROPN ADJ PRON DET NUM AUX"
TAGS: Mapping[str, tuple[bool, frozenset[str]]] = {
    relation: (wanted, frozenset(tags.split()))
    for relation, wanted, tags in (
        ("det", True, "DET PRON"),
        ("nummod", True, "NUM NOUN SYM"),
        ("advmod", True, "ADV ADJ CCONJ DET PART SYM"),
        ("expl", True, "PRON DET PART"),
        ("aux", True, "AUX"),
        ("cop", True, "AUX PRON DET SYM"),
        ("case", False, _NO_FUNCTION),
        ("mark", False, f"{_NO_FUNCTION} NOUN INTJ"),
        ("cc", False, "NOUN PROPN ADJ PRON DET NUM VERB AUX INTJ"),
        ("punct", True, "PUNCT"),
    )
}
"""Relations that UPOS (or the feature ExtPos) must fit: whether it must be one of these, or must
not."""

NOMINAL_TAGS = frozenset({"NOUN", "PROPN", "PRON"})
NOMINAL_RELATIONS = frozenset(
    {"nsubj", "obj", "iobj", "obl", "vocative", "dislocated", "expl", "nmod"}
)
OF_PREDICATES = frozenset({"cop", "nsubj", "csubj"})

STRUCTURE = (
    ROOTS, SUBJECTS, OBJECTS, *dict.fromkeys(kind for kind, _ in LEAVES.values()),
    *(f"right-to-left-{name}" for name in LEFT_HEADED), PUNCT_CAUSES, PUNCT_IS, OBLIQUE,
)  # fmt: skip
"""Kinds of violations within the tree."""
OF_TAGS = (*(f"rel-upos-{name}" for name in TAGS), FIXED_TAG, PUNCT_TAG)
"""Kinds of violations between relations and tags."""
KINDS = (*STRUCTURE, *OF_TAGS)
"""All kinds, as the validator calls them."""

MOST_CELLS = 1 << 22
"""Pairs of words of all trees that are looked at in one go, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class WordFacts:
    """What the constraints ask of the n words of a sentence, beside their tree.

    upos: UPOS.  tags: ExtPos where a word has it, else UPOS.  negating: adverbs and particles with
    Polarity=Neg, which may modify any function word.  possessive: Poss=Yes.  outer: Subject=Outer
    in MISC, which marks subjects of an outer clause as the subtype `outer` does.  All bool[n] or n
    strings.
    """

    upos: tuple[str, ...]
    tags: tuple[str, ...]
    negating: Bools
    possessive: Bools
    outer: Bools

    @classmethod
    def of_columns(
        cls, upos: Sequence[str], feats: Sequence[str], misc: Sequence[str]
    ) -> WordFacts:
        """From columns of CoNLL-U, "_" where there is nothing."""
        own = [dict(item.split("=", 1) for item in f.split("|") if "=" in item) for f in feats]
        return cls(
            upos=tuple(upos),
            tags=tuple(f.get("ExtPos", tag) for f, tag in zip(own, upos, strict=True)),
            negating=np.array(
                [
                    tag in ("ADV", "PART") and f.get("Polarity") == "Neg"
                    for f, tag in zip(own, upos, strict=True)
                ]
            ),
            possessive=np.array([f.get("Poss") == "Yes" for f in own]),
            outer=np.array(["Subject=Outer" in column.split("|") for column in misc]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Violations:
    """Where k trees over n words break constraints.

    at: of each kind that occurs, the words at which the validator would report it, bool[k, n]: the
        head of too many subjects or objects, the dependent of a leaf, the further roots, else the
        word whose relation it is.
    blamed: of the same kinds, the words of which one has the wrong head or relation, bool[k, n].
    suspects: bool[k, n], the words blamed for any.
    """

    at: Mapping[str, Bools]
    blamed: Mapping[str, Bools]
    suspects: Bools

    def counts(self, kinds: Iterable[str] = KINDS) -> NDArray[np.int32]:
        """How often each tree has each kind: int32[k, number of kinds]."""
        k = len(self.suspects)
        zero = np.zeros(k, dtype=np.int32)
        columns = [self.at[kind].sum(axis=1) if kind in self.at else zero for kind in kinds]
        return np.stack(columns, axis=1).astype(np.int32) if columns else zero[:, None][:, :0]


def violations(
    heads: NDArray[np.int32],
    labels: NDArray[np.int32],
    names: Sequence[str],
    words: WordFacts,
) -> Violations:
    """Find what breaks the constraints.

    heads: [k, n], trees, though with any number of roots; -1 of words without one, which break no
    constraint of heads.  labels: [k, n], places in `names`, which
    are relations with or without subtypes.  Raises ValueError where the shapes do not fit.
    """
    if heads.ndim != 2 or labels.shape != heads.shape or heads.shape[1] != len(words.upos):
        raise ValueError(
            f"heads {heads.shape} and labels {labels.shape} of {len(words.upos)} words, expected "
            "[k, n] each"
        )
    k, n = heads.shape
    rows = max(1, MOST_CELLS // (n + 1) ** 2)
    found = [
        _Trees(heads[at : at + rows], labels[at : at + rows], names, words).found()
        for at in range(0, max(k, 1), rows)
    ]
    if len(found) == 1:
        return found[0]
    none = [np.zeros(part.suspects.shape, dtype=np.bool_) for part in found]

    def joined(parts: Sequence[Mapping[str, Bools]]) -> dict[str, Bools]:
        return {
            kind: np.concatenate(
                [part.get(kind, zero) for part, zero in zip(parts, none, strict=True)]
            )
            for kind in KINDS
            if any(kind in part for part in parts)
        }

    return Violations(
        joined([part.at for part in found]),
        joined([part.blamed for part in found]),
        np.concatenate([part.suspects for part in found]),
    )


class _Trees:
    """The trees of one sentence, with what several constraints need of them."""

    def __init__(
        self,
        heads: NDArray[np.int32],
        labels: NDArray[np.int32],
        names: Sequence[str],
        words: WordFacts,
    ) -> None:
        self.heads, self.words = np.maximum(heads, 0), words
        self.is_root = heads == 0
        self.k, self.n = heads.shape
        # Only the labels that occur: a table may have hundreds.
        used, places = np.unique(labels, return_inverse=True)
        self.full = [names[i] for i in used.tolist()]
        self.universal = [name.partition(":")[0] for name in self.full]
        self.places = places.reshape(heads.shape)
        self.attached = heads > 0
        self.parent = np.maximum(heads - 1, 0)

    def with_relation(self, names: Iterable[str]) -> Bools:
        """bool[k, n]: the words whose universal relation is one of these."""
        wanted = frozenset(names)
        table = np.array([name in wanted for name in self.universal])
        return table[self.places]

    def of_parent(self, values: Bools) -> Bools:
        """bool[k, n]: a property of words, of the word's head; False where that is the root."""
        values = np.broadcast_to(values, self.heads.shape)
        return np.take_along_axis(values, self.parent, axis=1) & self.attached

    def has_child(self, children: Bools) -> Bools:
        """bool[k, n]: the words that have one of these children."""
        return self.count_children(children) > 0

    def count_children(self, children: Bools) -> NDArray[np.int64]:
        """int64[k, n]: how many of these children each word has."""
        rows, found = np.nonzero(children & self.attached)
        cells = rows * self.n + self.parent[rows, found]
        return np.bincount(cells, minlength=self.k * self.n).reshape(self.k, self.n)

    def found(self) -> Violations:
        """All violations."""
        at: dict[str, Bools] = {}
        blamed: dict[str, Bools] = {}
        suspects = np.zeros(self.heads.shape, dtype=np.bool_)

        def add(kind: str, where: Bools, others: Bools | None = None) -> None:
            if where.any():
                words = where if others is None else others
                at[kind] = at[kind] | where if kind in at else where
                blamed[kind] = blamed[kind] | words if kind in blamed else words
                np.logical_or(suspects, words, out=suspects)

        add(ROOTS, self.is_root & (np.cumsum(self.is_root, axis=1) > 1))
        inner = np.array(["subj" in u and f not in OUTER_SUBJECTS for u, f in self._names()])
        for kind, children in (
            (SUBJECTS, inner[self.places] & ~self.words.outer),
            (OBJECTS, self.with_relation(["obj"])),
        ):
            many = self.count_children(children) > 1
            add(kind, many, children & self.of_parent(many))
        self._add_leaves(add)
        word = np.arange(1, self.n + 1)
        for name in LEFT_HEADED:
            add(f"right-to-left-{name}", self.with_relation([name]) & (self.heads > word))
        self._add_punctuation(add)
        nominal = np.array([tag in NOMINAL_TAGS for tag in self.words.upos])
        nominal = nominal & self.with_relation(NOMINAL_RELATIONS)
        nominal &= ~self.has_child(self.with_relation(OF_PREDICATES))
        oblique = self.with_relation(["obl"]) & self.of_parent(nominal)
        add(OBLIQUE, oblique, oblique | self.has_child(oblique))
        self._add_tags(add)
        return Violations(at, blamed, suspects)

    def _names(self) -> Iterable[tuple[str, str]]:
        return zip(self.universal, self.full, strict=True)

    def _add_leaves(self, add: Add) -> None:
        negation = self.with_relation(["advmod"]) & self.words.negating
        for leaf, (kind, allowed) in LEAVES.items():
            leaves = self.with_relation([leaf])
            if not leaves.any():
                continue
            wrong = self.of_parent(leaves) & ~self.with_relation(allowed)
            if leaf != "punct":
                wrong &= ~negation
            if leaf == "det":
                wrong &= ~(
                    self.of_parent(leaves & self.words.possessive)
                    & self.with_relation(OF_POSSESSIVES)
                )
            if leaf == "goeswith" and wrong.any():
                crossing = self._has_gap(leaves)
                wrong &= ~(self.with_relation(["punct"]) & self.of_parent(crossing))
            add(kind, wrong, wrong | self.has_child(wrong))

    def _add_tags(self, add: Add) -> None:
        for relation, (wanted, tags) in TAGS.items():
            fits = np.array([(tag in tags) == wanted for tag in self.words.tags])
            wrong = self.with_relation([relation]) & ~fits
            if relation == "advmod" and wrong.any():
                wrong &= ~self.has_child(self.with_relation(["goeswith"]))
            add(f"rel-upos-{relation}", wrong)
        fixed = self.with_relation(["fixed"])
        proper = np.array([tag == "PROPN" for tag in self.words.tags])
        add(FIXED_TAG, proper & (fixed | self.has_child(fixed)))
        marks = np.array([tag == "PUNCT" for tag in self.words.tags])
        add(PUNCT_TAG, marks & ~self.with_relation(["punct", "root"]))

    # Crossing

    def _below(self) -> Bools:
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

    def _has_gap(self, words: Bools) -> Bools:
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

    def _add_punctuation(self, add: Add) -> None:
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
