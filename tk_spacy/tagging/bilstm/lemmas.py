"""Lemmas: rules that make a lemma of a form, and those of the words that were seen.

Source: rules as classes that a network chooses among, as in Straka (2018), UDPipe 2.0.  Ours differ
in that a rule keeps one piece of the form, the longest that form and lemma share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from tk_spacy.treebank.conllu import Sentence

WHOLE = "whole"
"""The case of a rule whose prefix is the lemma itself, whatever the form."""
AS_IS = "as is"
CASES: Mapping[str, Callable[[str], str]] = {
    "lower": str.lower,
    "title": lambda text: text[:1].upper() + text[1:].lower(),
    "upper": str.upper,
    AS_IS: str,
}
"""What becomes of a lemma's letters, the first that fits."""
MOST_FORM = 100
"""Letters of a form of which rules are made; other words have no rule."""


class EditRule(NamedTuple):
    """How a lemma comes of a form: lower-cased (but for AS_IS), edited at both ends, then cased.

    strip, cut: letters that go at the start and at the end; some of the form must be left.
    """

    case: str
    strip: int
    prefix: str
    cut: int
    suffix: str

    def apply(self, form: str) -> str | None:
        """The lemma, None where the form is too short for the rule."""
        if self.case == WHOLE:
            return self.prefix
        letters = form if self.case == AS_IS else form.lower()
        if self.strip + self.cut >= len(letters):
            return None
        kept = letters[self.strip : len(letters) - self.cut]
        return CASES[self.case](self.prefix + kept + self.suffix)


@lru_cache(maxsize=1 << 16)
def find_rule(form: str, lemma: str) -> EditRule:
    """The rule that makes this lemma of this form."""
    if len(form) <= MOST_FORM and len(lemma) <= MOST_FORM:
        for case, change in CASES.items():
            if change(lemma) != lemma:
                continue
            own, wanted = (form, lemma) if case == AS_IS else (form.lower(), lemma.lower())
            length, start, place = _longest_shared(own, wanted)
            if not length:
                continue
            rule = EditRule(
                case, start, wanted[:place], len(own) - start - length, wanted[place + length :]
            )
            # Letters whose lower case is two letters do not always come back.
            if rule.apply(form) == lemma:
                return rule
    return EditRule(WHOLE, 0, lemma, 0, "")


def _longest_shared(a: str, b: str) -> tuple[int, int, int]:
    """Length of the longest piece of both, and its place in each; the first of several."""
    best = (0, 0, 0)
    before = [0] * (len(b) + 1)
    for i, letter in enumerate(a, start=1):
        row = [0] * (len(b) + 1)
        for j, other in enumerate(b, start=1):
            if letter == other:
                row[j] = before[j - 1] + 1
                if row[j] > best[0]:
                    best = (row[j], i - row[j], j - row[j])
        before = row
    return best


def has_lemma(form: str, lemma: str) -> bool:
    """Whether a word has a lemma: "_" stands for none but in the word "_"."""
    return bool(lemma) and (lemma != "_" or form == "_")


def frequent_rules(
    sentences: Sequence[Sentence], *, least: int = 2, least_whole: int = 10
) -> tuple[EditRule, ...]:
    """The rules of a treebank, most frequent ones first.

    least: words of a rule.  least_whole: of one that is a lemma itself.
    """
    counts = Counter(
        find_rule(form, lemma)
        for s in sentences
        for form, lemma in zip(s.forms, s.lemmas, strict=True)
        if has_lemma(form, lemma)
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(rule for rule, n in ordered if n >= (least_whole if rule.case == WHOLE else least))


class SeenLemmas:
    """The lemmas of words that were seen, by form and tags, then by form and UPOS alone."""

    def __init__(self, rows: Iterable[Sequence[str]]) -> None:
        """rows: form, UPOS, FEATS and lemma, the most frequent first where forms are the same."""
        self.rows = [(form, upos, feats, lemma) for form, upos, feats, lemma in rows]
        self._exact: dict[tuple[str, str, str], str] = {}
        self._by_upos: dict[tuple[str, str], str] = {}
        for form, upos, feats, lemma in self.rows:
            self._exact.setdefault((form, upos, feats), lemma)
        for form, upos, _, lemma in self.rows:
            self._by_upos.setdefault((form, upos), lemma)
        for form, upos, _, lemma in self.rows:
            self._by_upos.setdefault((form.lower(), upos), lemma)

    @classmethod
    def fit(cls, sentences: Sequence[Sentence]) -> SeenLemmas:
        """Those of a treebank."""
        counts = Counter(
            word
            for s in sentences
            for word in zip(s.forms, s.upos, s.feats, s.lemmas, strict=True)
            if has_lemma(word[0], word[3])
        )
        return cls(word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def find(self, form: str, upos: str, feats: str) -> str | None:
        """The lemma of a word, None where none like it was seen."""
        return (
            self._exact.get((form, upos, feats))
            or self._by_upos.get((form, upos))
            or self._by_upos.get((form.lower(), upos))
        )
