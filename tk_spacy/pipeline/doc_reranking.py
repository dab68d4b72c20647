"""Choosing trees for the sentences of Docs: the parsers' candidates, then the reranker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.util import minibatch

from tk_spacy.ensemble.combiner.arcs import softmax
from tk_spacy.ensemble.merging import merge_lists
from tk_spacy.kbest.arc_probabilities import arc_probabilities
from tk_spacy.kbest.candidates import CandidateList, LabelInventory, rescored
from tk_spacy.kbest.long_sentences import join_trees, link_label
from tk_spacy.parallel.side_by_side import answers
from tk_spacy.pipeline.long_docs import cut_sentence
from tk_spacy.pipeline.sources import DocSource
from tk_spacy.reranker.calibration import Confidence
from tk_spacy.reranker.decision import Decision
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.speeds import EXACT, Speed
from tk_spacy.reranker.staged import left_to_quick
from tk_spacy.spacy_io.conversion import to_spacy_label
from tk_spacy.spacy_io.doc_trees import DocSentence
from tk_spacy.spacy_io.extensions import HEAD_PROBS, LABEL_PROBS

SENTENCES_AT_A_TIME = 128
"""Sentences whose candidates are held in memory together."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What is decided about one sentence.

    tree: the chosen heads (int32[m]) and labels of its words; None where the Doc keeps its own.
    confidence: probability of the chosen tree; of a model without calibration, and where quick
        parsers decided alone, the softmax of the final scores, 1 for a single candidate; None where
        the Doc's tree could not be used.
    sure: all probabilities, of a model with calibration that looked at each piece.
    margin: the chosen tree's final score minus the next best; None where there is no other.
    n_candidates: trees compared, the Doc's own included, those left out that are not well-formed
        enough; 0 where it could not be used.
    candidates: the best trees as `doc._.tk_candidates` has them, where they are asked for.
    explanation: of the choice, JSON values (see `Explanation`); None where it was not asked for,
        without a choice, and for a sentence in pieces.
    """

    sentence: DocSentence
    tree: tuple[NDArray[np.int32], tuple[str, ...]] | None = None
    confidence: float | None = None
    margin: float | None = None
    n_candidates: int = 0
    sure: Confidence | None = None
    candidates: list[dict[str, Any]] | None = None
    explanation: dict[str, Any] | None = None

    def to_record(self) -> dict[str, Any]:
        """Plain data, which survives processes, bytes and DocBin."""
        return {
            "start": self.sentence.start,
            "end": self.sentence.end,
            "changed": self.tree is not None,
            "confidence": self.confidence,
            "margin": self.margin,
            "n_candidates": self.n_candidates,
            "calibrated": self.sure is not None,
            HEAD_PROBS: None if self.sure is None else self._of_tokens(self.sure.heads),
            LABEL_PROBS: None if self.sure is None else self._of_tokens(self.sure.labels),
        }

    def _of_tokens(self, values: NDArray[np.float64]) -> tuple[float | None, ...]:
        """Values of words as those of tokens: None for white space.

        A tuple, as a DocBin would make of a list.
        """
        out: list[float | None] = [None] * (self.sentence.end - self.sentence.start)
        for place, value in zip(self.sentence.words.tolist(), values.tolist(), strict=True):
            out[place] = value
        return tuple(out)


def choose_trees(
    reranker: Reranker,
    sources: Sequence[DocSource],
    sentences: Iterable[DocSentence],
    *,
    inventory: LabelInventory,
    k: int,
    kept: int = 0,
    n_threads: int | None = None,
    explains: bool = False,
    well_formed: bool = False,
    speed: Speed = EXACT,
) -> Iterator[Choice]:
    """The choice for each sentence, in order; the Docs stay as they are.

    sources: the parsers, which share the inventory; the Docs' own trees are taken for the first's.
    kept: trees that a choice keeps, at most, the best ones.
    explains: explain each choice, too.
    well_formed: only the best-formed trees are chosen from (see `Reranker.decide`).
    speed: other than the exact one, quick parsers decide alone where they are sure, which needs a
        reranker whose cascade has these among the sources; what is explained is always exact.
    For each piece of a long sentence there is a choice of its own (see `long_sentences`); of such a
    sentence the chosen tree alone is kept.
    """
    for batch in minibatch(sentences, size=SENTENCES_AT_A_TIME):
        cuts = [cut_sentence(sentence) for sentence in batch]
        pieces = [piece for own in cuts for piece in own]
        found = _choices(
            reranker, sources, pieces, inventory=inventory, k=k, kept=kept,
            n_threads=n_threads, explains=explains, well_formed=well_formed,
            speed=EXACT if explains else speed,
        )  # fmt: skip
        for sentence, own in zip(batch, cuts, strict=True):
            chosen = [next(found) for _ in own]
            yield chosen[0] if len(own) == 1 else _joined(sentence, chosen, inventory)


def _choices(
    reranker: Reranker,
    sources: Sequence[DocSource],
    batch: Sequence[DocSentence],
    *,
    inventory: LabelInventory,
    k: int,
    kept: int,
    n_threads: int | None,
    explains: bool,
    well_formed: bool,
    speed: Speed,
) -> Iterator[Choice]:
    asked = [s for s in batch if s.heads is not None and len(s.words) > 1]
    company = _Company(sources, inventory, k, n_threads)
    places: Sequence[int] = range(len(sources))
    first: Mapping[int, Sequence[CandidateList]] = {}
    left: dict[int, Choice] = {}
    quick: Sequence[int] = ()
    if speed != EXACT and reranker.cascade is not None:
        quick = reranker.cascade.places([source.names for source in sources])
    if asked and quick:  # else all is exact, as in `Staged`
        first = company.proposed(asked, quick)
        quick_lists = company.joined(asked, first)
        quickly = left_to_quick(
            reranker, [s.plain for s in asked], quick_lists,
            speed=speed, well_formed=well_formed,
        )  # fmt: skip
        left = {
            id(sentence): _choose(sentence, decision, None, kept)
            for sentence, trees, decision in zip(asked, quick_lists, quickly, strict=True)
            if decision is not None and _is_choice(sentence, trees, single=True)
        }
        unsure = [i for i, sentence in enumerate(asked) if id(sentence) not in left]
        asked = [asked[i] for i in unsure]
        first = {place: [own[i] for i in unsure] for place, own in first.items()}
    rest = company.proposed(asked, [i for i in places if i not in first])
    lists = company.joined(asked, {**first, **rest})
    pairs = []
    repairs = well_formed or reranker.penalties.weights
    for sentence, trees in zip(asked, lists, strict=True):
        wanted = bool(kept or repairs or reranker.calibration is not None)
        if _is_choice(sentence, trees, single=wanted):
            pairs.append((sentence, trees))
    given = reranker.completed_all([(s.plain, trees) for s, trees in pairs])
    scores = reranker.batch_scores(given, n_threads=n_threads)
    decisions = reranker.decide_all(given, scores, well_formed=well_formed, n_threads=n_threads)
    decided = [(plain, decision) for (plain, _), decision in zip(given, decisions, strict=True)]
    known = reranker.confidences(decided, arc_probabilities(source.of_words for source in sources))
    choices = left | {
        id(sentence): _choose(sentence, decision, sure, kept)
        for (sentence, _), decision, sure in zip(pairs, decisions, known, strict=True)
    }
    if explains:
        for sentence, trees in zip(asked, lists, strict=True):
            if id(sentence) in choices:
                made = reranker.explain(
                    sentence.plain, trees, well_formed=well_formed, n_threads=n_threads
                )
                choices[id(sentence)] = replace(choices[id(sentence)], explanation=made.to_dict())
    for sentence in batch:
        yield choices.get(id(sentence)) or _no_choice(sentence, reranker, kept)


def _choose(
    sentence: DocSentence, decision: Decision, sure: Confidence | None, kept: int
) -> Choice:
    trees, final = decision.candidates, decision.final
    rows = decision.order[: int(decision.eligible.sum())]
    best = rows[0]
    heads, deprels = trees.heads[best], trees.deprels(best)
    plain = softmax(np.where(decision.eligible, final, -np.inf), 1.0)
    shown = None
    if kept:
        shown = [
            kept_tree(
                sentence, trees.heads[row], trees.deprels(row), float(final[row]),
                float((plain if sure is None else sure.trees)[row]),
            )
            for row in rows[:kept]
        ]  # fmt: skip
    return Choice(
        sentence=sentence,
        tree=None if _is_own(sentence, trees, best) else (heads, deprels),
        confidence=float(plain[best]) if sure is None else sure.tree,
        margin=float(final[best] - final[rows[1]]) if len(rows) > 1 else None,
        n_candidates=len(rows),
        sure=sure,
        candidates=shown,
    )


def _is_choice(sentence: DocSentence, trees: CandidateList, *, single: bool) -> bool:
    """Whether something is to be said of a list.

    single: of one that has the Doc's own tree alone, too; another single tree replaces nothing.
    """
    return len(trees) > 1 or (single and _is_own(sentence, trees, 0))


def _is_own(sentence: DocSentence, trees: CandidateList, row: int) -> bool:
    """Whether a candidate is the Doc's own tree."""
    return (
        np.array_equal(trees.heads[row], sentence.heads)  # type: ignore[arg-type]
        and trees.deprels(row) == sentence.deprels
    )


def kept_tree(
    sentence: DocSentence,
    heads: NDArray[np.int32],
    deprels: Sequence[str],
    score: float | None,
    probability: float,
) -> dict[str, Any]:
    """One of `doc._.tk_candidates`: plain data.

    Its heads are places of tokens in the Doc, as `token.head.i`, and like its labels None of tokens
    of white space.
    """
    places = sentence.start + sentence.words
    above = np.where(heads == 0, places, places[heads - 1]).tolist()
    n = sentence.end - sentence.start
    found: dict[str, list[Any]] = {"heads": [None] * n, "labels": [None] * n}
    for place, head, deprel in zip(sentence.words.tolist(), above, deprels, strict=True):
        found["heads"][place] = head
        found["labels"][place] = to_spacy_label(deprel, 0 if head == sentence.start + place else 1)
    return {"score": score, "probability": probability, **found}


def _joined(sentence: DocSentence, chosen: Sequence[Choice], inventory: LabelInventory) -> Choice:
    """The choice for a sentence from those for its pieces, which are independent of each other.

    The next best tree of all differs in one piece, the one with the least margin.
    """
    tree = None
    if any(choice.tree is not None for choice in chosen):
        trees = []
        for choice in chosen:
            assert choice.sentence.heads is not None
            trees.append(choice.tree or (choice.sentence.heads, choice.sentence.deprels))
        tree = join_trees(trees, link=link_label(inventory.names))
        if np.array_equal(tree[0], sentence.heads) and tree[1] == sentence.deprels:  # type: ignore[arg-type]
            tree = None
    known = [choice.sure for choice in chosen if choice.sure is not None]
    confidence = float(np.prod([choice.confidence for choice in chosen]))  # type: ignore[arg-type]
    shown = None
    if any(choice.candidates for choice in chosen):
        assert sentence.heads is not None
        shown = [
            kept_tree(sentence, *(tree or (sentence.heads, sentence.deprels)), None, confidence)
        ]
    return Choice(
        sentence=sentence,
        tree=tree,
        confidence=confidence,
        margin=min((c.margin for c in chosen if c.margin is not None), default=None),
        n_candidates=sum(choice.n_candidates for choice in chosen),
        sure=Confidence.joined(known) if len(known) == len(chosen) else None,
        candidates=shown,
    )


def _no_choice(sentence: DocSentence, reranker: Reranker, kept: int) -> Choice:
    if sentence.heads is None:
        return Choice(sentence)
    sure = None
    if reranker.calibration is not None and len(sentence.words) == 1:  # there is but one tree
        sure = Confidence(1.0, np.ones(1), np.ones(1), np.ones(1))
    shown = [kept_tree(sentence, sentence.heads, sentence.deprels, None, 1.0)] if kept else None
    return Choice(sentence, confidence=1.0, n_candidates=1, sure=sure, candidates=shown)


class _Company(NamedTuple):
    """Parsers that propose together, as `MergedSource` has them do.

    sources: which share the inventory.  k: length of lists.
    """

    sources: Sequence[DocSource]
    inventory: LabelInventory
    k: int
    n_threads: int | None

    def proposed(
        self, sentences: Sequence[DocSentence], places: Sequence[int]
    ) -> dict[int, list[CandidateList]]:
        """Trees over words from the sources at these places."""
        if not sentences:
            return {place: [] for place in places}
        for sentence in sentences:
            _ = sentence.plain  # once, before several threads ask for it
        asked = [partial(self.sources[place].trees, sentences, k=self.k) for place in places]
        wants_own = self.sources[0].wants_own
        found = answers(asked, n_threads=self.n_threads)
        return {
            place: [
                _with_own_tree(
                    sentence, own, self.sources[place], self.inventory, is_base=not place
                )
                if wants_own or own is None
                else own
                for sentence, own in zip(sentences, of_source, strict=True)
            ]
            for place, of_source in zip(places, found, strict=True)
        }

    def joined(
        self, sentences: Sequence[DocSentence], proposed: Mapping[int, Sequence[CandidateList]]
    ) -> list[CandidateList]:
        """What sources have proposed as one list each, with the scores of all these sources."""
        if not sentences:
            return []
        sources = [self.sources[place] for place in sorted(proposed)]
        each = zip(*(proposed[place] for place in sorted(proposed)), strict=True)
        lists = merge_lists(list(each), k=self.k)
        ends = np.cumsum([len(source.names) for source in sources]).tolist()
        columns = [slice(a, b) for a, b in pairwise([0, *ends])]
        # The lists that trees have come to which a source has not scored.
        incomplete = [
            [i for i, trees in enumerate(lists) if np.isnan(trees.scores[:, own]).any()]
            for own in columns
        ]
        scored = answers(
            [
                partial(source.score, [sentences[i] for i in rows], [lists[i] for i in rows])
                for source, rows in zip(sources, incomplete, strict=True)
            ],
            n_threads=self.n_threads,
        )
        filled = [trees.scores.copy() for trees in lists]
        for own, rows, found in zip(columns, incomplete, scored, strict=True):
            for i, new in zip(rows, found, strict=True):
                known = filled[i][:, own]
                filled[i][:, own] = np.where(np.isnan(known), new, known)
        # All at once: the scores give the order of the trees.
        return rescored(lists, np.concatenate(filled))


def _with_own_tree(
    sentence: DocSentence,
    found: CandidateList | None,
    source: DocSource,
    inventory: LabelInventory,
    *,
    is_base: bool,
) -> CandidateList:
    """A source's trees, the Doc's own among them: as base, or after all others.

    It mostly is among them already; where a parser saw more than the sentence, it need not be.
    """
    assert sentence.heads is not None
    heads, labels = sentence.heads[None], inventory.encode(sentence.deprels)[None]
    scores = np.full((1, len(source.names)), np.nan)
    bases: Mapping[str, int] = {}
    base = 0
    if found is not None:
        base = len(found) if is_base else found.base
        bases = found.bases
        heads = np.concatenate([found.heads, heads])
        labels = np.concatenate([found.labels, labels])
        scores = np.concatenate([found.scores, scores])
    return CandidateList.from_arrays(
        heads, labels, scores,
        inventory=inventory, sources=source.names, base=base, bases=bases,
    )  # fmt: skip
