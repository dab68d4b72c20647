"""What a well-formed tree of Universal Dependencies keeps to: declared, and counted in many trees.

The constraints are those of level 3 of UD's validator (udtools 0.2.9, `level3.py`) that speak of
heads, relations and tags, by its names of them, and one root (level 2).  Their data are the tables
below; what asks for more than an arc's two words is code (`violations`).  Not here: what the
validator only warns of, what it asks of features and lemmas alone, and gaps in `goeswith`.

For trees in numbers, such as the candidates of a sentence: arrays [k, n] of k trees over n words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from tk_spacy.trees.violations import (
    FLAGS,
    INNER_SUBJECT,
    Rules,
    count_bits,
    count_violations,
    find_violations,
)

Bools = NDArray[np.bool_]

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

RELATIONS = (
    "",  # any other
    *sorted(
        {
            *(name for leaf, (_, allowed) in LEAVES.items() for name in (leaf, *allowed)),
            *OF_POSSESSIVES, *LEFT_HEADED, *TAGS, *NOMINAL_RELATIONS, *OF_PREDICATES, "root",
        }
    ),
)  # fmt: skip
"""The relations that constraints name, by their numbers."""
MOST_KNOWN = 50_000
"""Words of different tags and features that are remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class WordFacts:
    """What the constraints ask of the n words of a sentence, beside their tree.

    misfits: uint64[n], the relations that a word's tag does not fit, a bit each (see `Rules`).
    flags: uint8[n], sums of FLAGS.
    """

    misfits: NDArray[np.uint64]
    flags: NDArray[np.uint8]

    @classmethod
    def of_columns(
        cls, upos: Sequence[str], feats: Sequence[str], misc: Sequence[str]
    ) -> WordFacts:
        """From columns of CoNLL-U, "_" where there is nothing."""
        outer = ["Subject=Outer" in m and "Subject=Outer" in m.split("|") for m in misc]
        misfits, flags = zip(*map(_facts, upos, feats, outer), strict=True)
        return cls(np.array(misfits, dtype=np.uint64), np.array(flags, dtype=np.uint8))


@lru_cache(maxsize=MOST_KNOWN)
def _facts(upos: str, feats: str, outer: bool) -> tuple[int, int]:
    """The misfits and flags of one word.

    ExtPos, where a word has it, stands for UPOS beside relations.  Adverbs and particles with
    Polarity=Neg may modify any function word.  Subject=Outer in MISC marks subjects of an outer
    clause as the subtype `outer` does.
    """
    own = dict(item.split("=", 1) for item in feats.split("|") if "=" in item)
    tag = own.get("ExtPos", upos)
    misfits = [name for name, (wanted, tags) in TAGS.items() if (tag in tags) != wanted]
    there = {
        "nominal": upos in NOMINAL_TAGS,
        "negating": upos in ("ADV", "PART") and own.get("Polarity") == "Neg",
        "possessive": own.get("Poss") == "Yes",
        "outer": outer,
        "proper": tag == "PROPN",
        "mark": tag == "PUNCT",
    }
    return _bits(misfits), sum(FLAGS[name] for name, is_there in there.items() if is_there)


@dataclass(frozen=True, slots=True, eq=False)
class Violations:
    """Where k trees over n words break constraints.

    at_bits: uint64[k, n], for each word the kinds of violations that the validator would report at
        it, bit i for KINDS[i].  blamed_bits: the same of the kinds for which it is to blame.
    """

    at_bits: NDArray[np.uint64]
    blamed_bits: NDArray[np.uint64]

    @property
    def at(self) -> dict[str, Bools]:
        """Of each kind that occurs, the words at which the validator would report it, bool[k, n].

        The head of too many subjects or objects, the dependent of a leaf, the further roots, else
        the word whose relation it is.
        """
        return _by_kind(self.at_bits)

    @property
    def blamed(self) -> dict[str, Bools]:
        """Of the same kinds, the words of which one has the wrong head or relation, bool[k, n]."""
        return _by_kind(self.blamed_bits)

    @property
    def suspects(self) -> Bools:
        """bool[k, n], the words blamed for any."""
        return self.blamed_bits != 0

    def counts(self, kinds: Iterable[str] = KINDS) -> NDArray[np.int32]:
        """How often each tree has each kind: int32[k, number of kinds]."""
        return count_bits(self.at_bits, _places(tuple(kinds)))


@lru_cache(maxsize=256)
def _places(kinds: tuple[str, ...]) -> tuple[int, ...]:
    return tuple([KINDS.index(kind) for kind in kinds])


def kind_bits(kinds: Iterable[str]) -> int:
    """The bits of kinds: bit i for KINDS[i]."""
    return sum(1 << place for place in _places(tuple(kinds)))


def _by_kind(bits: NDArray[np.uint64]) -> dict[str, Bools]:
    there = int(np.bitwise_or.reduce(bits, axis=None))
    return {kind: (bits & np.uint64(1 << i)) != 0 for i, kind in enumerate(KINDS) if there >> i & 1}


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
    n = len(words.flags)
    if heads.ndim != 2 or labels.shape != heads.shape or heads.shape[1] != n:
        raise ValueError(
            f"heads {heads.shape} and labels {labels.shape} of {n} words, expected [k, n] each"
        )
    found = find_violations(
        heads,
        labels,
        relation_numbers(tuple(names)),
        words.misfits,
        words.flags,
        constraint_rules(),
    )
    return Violations(*found)


def count_violations_of_lists(
    heads: Sequence[NDArray[np.int32]],
    labels: Sequence[NDArray[np.int32]],
    relations: Sequence[NDArray[np.uint8]],
    words: Sequence[WordFacts],
    kinds: Iterable[str] = KINDS,
) -> list[NDArray[np.int32]]:
    """How often the trees of several lists have each kind of violation: int32[k, kinds] of each.

    heads, labels, words: of each list as those of `violations`.  relations: of each list what
    `relation_numbers` makes of its labels' names.  Raises ValueError where the shapes do not fit.
    """
    return count_violations(
        heads,
        labels,
        relations,
        [own.misfits for own in words],
        [own.flags for own in words],
        constraint_rules(),
        _places(tuple(kinds)),
    )


@lru_cache(maxsize=256)
def relation_numbers(names: tuple[str, ...]) -> NDArray[np.uint8]:
    """The number of each label's relation in `RELATIONS`, and INNER_SUBJECT where it is one."""
    found = np.zeros(len(names), dtype=np.uint8)
    for i, name in enumerate(names):
        universal = name.partition(":")[0]
        if universal in RELATIONS:
            found[i] = RELATIONS.index(universal)
        if "subj" in universal and name not in OUTER_SUBJECTS:
            found[i] += INNER_SUBJECT
    return found


def _bits(relations: Iterable[str]) -> int:
    return sum(1 << RELATIONS.index(name) for name in relations)


@cache
def constraint_rules() -> Rules:
    """The tables above in numbers."""
    rules = Rules({name: RELATIONS.index(name) for name in RELATIONS if name})
    for leaf, (kind, allowed) in LEAVES.items():
        rules.add_leaf(RELATIONS.index(leaf), KINDS.index(kind), _bits(allowed))
    for name in LEFT_HEADED:
        rules.add_left_headed(RELATIONS.index(name), KINDS.index(f"right-to-left-{name}"))
    for name in TAGS:
        rules.add_tags(RELATIONS.index(name), KINDS.index(f"rel-upos-{name}"))
    rules.set_kinds(
        *map(
            KINDS.index,
            (ROOTS, SUBJECTS, OBJECTS, OBLIQUE, PUNCT_CAUSES, PUNCT_IS, PUNCT_TAG, FIXED_TAG),
        )
    )
    rules.set_groups(_bits(OF_POSSESSIVES), _bits(NOMINAL_RELATIONS), _bits(OF_PREDICATES))
    return rules
