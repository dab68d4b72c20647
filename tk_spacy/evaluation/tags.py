"""How many tags and lemmas are right, counted as the CoNLL 2018 shared task does (udeval)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tk_spacy.treebank.conllu import Sentence

UNIVERSAL_FEATURES = frozenset(
    """PronType NumType Poss Reflex Foreign Abbr Gender Animacy Number Case Definite Degree VerbForm
    Mood Tense Aspect Voice Evident Polarity Person Polite""".split()
)
"""The features that count, in any language; others are a treebank's own."""


@dataclass(frozen=True, slots=True)
class TagScores:
    """Right values in percent of words.

    ufeats: the universal features together.  lemmas: where gold has "_", any lemma is right.
    """

    words: int
    upos: float
    xpos: float
    ufeats: float
    lemmas: float

    @classmethod
    def from_dict(cls, data: Mapping[str, float]) -> TagScores:
        """Those that a report has as JSON values."""
        return cls(words=int(data["words"]), **{n: float(data[n]) for n in cls.__slots__[1:]})


def score_tags(gold: Iterable[Sentence], tagged: Iterable[Sentence]) -> TagScores:
    """Compare the tags of the same sentences.  Raises ValueError where they are not the same."""
    words = upos = xpos = ufeats = lemmas = 0
    for right, given in zip(gold, tagged, strict=True):
        if right.forms != given.forms:
            raise ValueError(f"two different sentences: {right.forms} and {given.forms}")
        words += len(right)
        upos += _equal(right.upos, given.upos)
        xpos += _equal(right.xpos, given.xpos)
        ufeats += _equal(map(_universal, right.feats), map(_universal, given.feats))
        lemmas += sum(a in ("_", b) for a, b in zip(right.lemmas, given.lemmas, strict=True))
    percent = 100 / max(words, 1)
    return TagScores(words, upos * percent, xpos * percent, ufeats * percent, lemmas * percent)


def _equal(right: Iterable[str], given: Iterable[str]) -> int:
    return sum(a == b for a, b in zip(right, given, strict=True))


def _universal(feats: str) -> str:
    kept = [item for item in feats.split("|") if item.partition("=")[0] in UNIVERSAL_FEATURES]
    return "|".join(sorted(kept))
