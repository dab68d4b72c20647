"""Attachment scores of system trees against gold trees, and whether a difference is chance.

Scores are those of the CoNLL 2018 shared task (Zeman et al. 2018) on gold tokenization, beside the
older ones with full labels and without punctuation.  Every score is a ratio of two sums over
sentences, so the counts of each sentence are all that the bootstrap needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tk_spacy.errors import UserError
from tk_spacy.treebank.sentence import Sentence

# Labels that CLAS leaves out (CoNLL 2018): function words and punctuation.
_NO_CONTENT = frozenset({"aux", "case", "cc", "clf", "cop", "det", "mark", "punct"})


class SentenceCounts(NamedTuple):
    """What is counted in one sentence; also the columns of ``count_sentences``' table."""

    sentences: int
    words: int
    words_nopunct: int
    heads: int  # words with the gold HEAD
    labelled: int  # ... and the gold DEPREL
    labelled_universal: int  # ... or its part before the colon
    heads_nopunct: int
    labelled_nopunct: int
    gold_content: int  # words whose gold DEPREL is a content relation
    system_content: int
    content: int  # gold content words with the gold HEAD and universal DEPREL
    exact: int  # 1 if every HEAD is the gold one
    single_root: int  # 1 if the system has exactly one word with HEAD 0


# Score -> (counted right, weight, sum of these counts): 100 * weight * right / sum.
METRICS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "uas": ("heads", 1, ("words",)),
    "las": ("labelled", 1, ("words",)),
    "las_universal": ("labelled_universal", 1, ("words",)),
    "uas_nopunct": ("heads_nopunct", 1, ("words_nopunct",)),
    "las_nopunct": ("labelled_nopunct", 1, ("words_nopunct",)),
    "clas": ("content", 2, ("gold_content", "system_content")),
    "exact_match": ("exact", 1, ("sentences",)),
    "single_root": ("single_root", 1, ("sentences",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores in percent (0 where there was nothing to score).

    "nopunct" leaves out words whose gold UPOS is PUNCT.  ``las`` compares full labels,
    ``las_universal`` the parts before the colon (LAS of CoNLL 2018).  ``clas`` is the F1 over
    words with content relations: every universal label but aux, case, cc, clf, cop, det, mark,
    punct.  ``exact_match``: sentences with every HEAD right.  ``single_root``: sentences to which
    the system gave exactly one root.
    """

    sentences: int
    words: int
    words_nopunct: int
    uas: float
    las: float
    las_universal: float
    uas_nopunct: float
    las_nopunct: float
    clas: float
    exact_match: float
    single_root: float


def evaluate(gold: Iterable[Sentence], system: Iterable[Sentence]) -> Scores:
    """Scores of a system's sentences, in the order of the gold ones.

    Both are read as streams.  Raises UserError where they differ in number of sentences, words or
    forms (spaces within forms are ignored), where a gold tree is missing, or where there is no
    sentence.  A system word without HEAD counts as wrong.
    """
    return scores_from_counts(count_sentences(gold, system))


def count_sentences(gold: Iterable[Sentence], system: Iterable[Sentence]) -> NDArray[np.int64]:
    """int64[sentences, len(SentenceCounts._fields)]: counts of each sentence; see ``evaluate``."""
    return count_pairs(aligned(gold, system))


def count_pairs(pairs: Iterable[tuple[Sentence, Sentence]]) -> NDArray[np.int64]:
    """``count_sentences`` of pairs that ``aligned`` gave."""
    known: dict[str, tuple[str, bool]] = {}
    rows = [_count(g, s, known) for g, s in pairs]
    if not rows:
        raise UserError("there is no sentence to score; give files with at least one")
    return np.array(rows, np.int64)


def scores_from_counts(counts: NDArray[np.int64]) -> Scores:
    """Scores of the table of ``count_sentences``, or of several such tables concatenated."""
    sums = SentenceCounts(*_checked(counts).sum(axis=0).tolist())
    values = {name: _ratio(sums, name) for name in METRICS}
    return Scores(
        sentences=sums.sentences, words=sums.words, words_nopunct=sums.words_nopunct, **values
    )


def _checked(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    width = len(SentenceCounts._fields)
    if counts.ndim != 2 or counts.shape[1] != width or counts.dtype.kind not in "iu":
        raise ValueError(
            f"counts must be integers [sentences, {width}], got {counts.dtype} {counts.shape}"
        )
    return counts


def _ratio(sums: SentenceCounts, metric: str) -> float:
    right, weight, total = METRICS[metric]
    below = sum(getattr(sums, name) for name in total)
    return 100.0 * weight * getattr(sums, right) / below if below else 0.0


def _count(gold: Sentence, system: Sentence, known: dict[str, tuple[str, bool]]) -> SentenceCounts:
    """Count one aligned pair; known caches (universal label, is content) of each DEPREL."""
    for deprel in {*gold.deprels, *system.deprels} - known.keys():
        universal = deprel.split(":")[0]
        known[deprel] = universal, universal not in _NO_CONTENT
    hit = (gold.heads == system.heads).tolist()
    gold_labels = [known[deprel] for deprel in gold.deprels]
    system_labels = [known[deprel] for deprel in system.deprels]
    full = [h and g == s for h, g, s in zip(hit, gold.deprels, system.deprels, strict=True)]
    universal_hit = [
        h and g[0] == s[0] for h, g, s in zip(hit, gold_labels, system_labels, strict=True)
    ]
    scored = [tag != "PUNCT" for tag in gold.upos]
    in_gold = [label[1] for label in gold_labels]
    return SentenceCounts(
        sentences=1,
        words=len(hit),
        words_nopunct=sum(scored),
        heads=sum(hit),
        labelled=sum(full),
        labelled_universal=sum(universal_hit),
        heads_nopunct=_both(hit, scored),
        labelled_nopunct=_both(full, scored),
        gold_content=sum(in_gold),
        system_content=sum(label[1] for label in system_labels),
        content=_both(universal_hit, in_gold),
        exact=int(all(hit)),
        single_root=int(np.count_nonzero(system.heads == 0) == 1),
    )


def _both(left: Sequence[bool], right: Sequence[bool]) -> int:
    return sum(a and b for a, b in zip(left, right, strict=True))


def aligned(
    gold: Iterable[Sentence], system: Iterable[Sentence]
) -> Iterator[tuple[Sentence, Sentence]]:
    """Pairs of sentences that have the same words, as a stream; see ``evaluate`` for errors."""
    for number, (g, s) in enumerate(zip_longest(gold, system), 1):
        if g is None or s is None:
            longer, short = ("system", "gold") if g is None else ("gold", "system")
            raise UserError(
                f"{_name(number, g or s)}: the {short} side ends before it, the {longer} side has "
                "it; give files with the same sentences"
            )
        if len(g) != len(s):
            raise UserError(
                f"{_name(number, g)}: {len(g)} words in gold, {len(s)} in system; use the gold "
                "tokenization"
            )
        if not g.has_tree:
            raise UserError(f"{_name(number, g)}: the gold side has words without HEAD")
        if g.forms != s.forms:
            _compare_forms(number, g, s)
        yield g, s


def _compare_forms(number: int, gold: Sentence, system: Sentence) -> None:
    for word, (g, s) in enumerate(zip(gold.forms, system.forms, strict=True), 1):
        # Tools differ in how they write a form with spaces; udeval ignores them too.
        if g != s and "".join(g.split()) != "".join(s.split()):
            raise UserError(
                f"{_name(number, gold)}: word {word} is {g!r} in gold, {s!r} in system; give files "
                "with the same sentences in the same order"
            )


def _name(number: int, sentence: Sentence | None) -> str:
    known = None if sentence is None else sentence.sent_id
    return f"sentence {number} " + (f"(sent_id {known})" if known else "(no sent_id)")
