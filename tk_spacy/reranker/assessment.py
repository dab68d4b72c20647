"""What the systems of the paper's Table 2 choose from the same candidate lists, counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.reparsing import plain_vote
from tk_spacy.evaluation.attachment import METRICS, Scores, count_sentences, scores_from_counts
from tk_spacy.evaluation.bootstrap import Bootstrap, bootstrap_counts
from tk_spacy.evaluation.report import (
    BASE_PARSER,
    BASE_RERANKER,
    COMBINER_ROW,
    FINAL,
    FIRST,
    GOLD,
    KERNEL_RERANKER,
    ORACLE,
    SYSTEMS,
    VOTE,
    PartReport,
    further_parser,
)
from tk_spacy.evaluation.well_formed import count_violations
from tk_spacy.kbest.arc_probabilities import ArcProbabilities
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.reranker.calibration import Confidence
from tk_spacy.reranker.model import Reranker
from tk_spacy.treebank.conllu import Sentence

Counts = NDArray[np.int64]

BOOTSTRAP_METRICS = ("uas", "las")
BATCH = 128


def assess(
    gold: Sequence[Sentence],
    lists: Sequence[CandidateList],
    *,
    base: Reranker | None,
    kernel: Reranker,
    seed: int = 0,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    choices: list[Choices] | None = None,
    arcs: ArcProbabilities | None = None,
) -> PartReport:
    """Scores of the parsers, the first of the list, both rerankers, final system and oracle.

    As `count_choices`.  seed: of the bootstrap.  choices: gets what the systems chose.
    """
    found = count_choices(
        gold, lists, base=base, kernel=kernel, n_threads=n_threads, progress=progress, arcs=arcs
    )
    if choices is not None:
        choices.append(found)
    return pooled([found], seed=seed)


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """What the systems chose for some sentences.

    counts: of each system, one row a sentence (see `evaluation.attachment`).  trees: number of
    candidates of each sentence.  seconds: of the final choice.  parsed: the final system's trees.
    before: the base parser's.  sure: how sure each final choice is, None without calibration.
    violations: of the gold trees, the base parser's and the final system's, by kind.
    """

    systems: tuple[str, ...]
    counts: Mapping[str, Counts]
    trees: Sequence[int]
    words: int
    seconds: float
    parsed: list[Sentence]
    before: list[Sentence]
    sure: list[Confidence | None]
    violations: Mapping[str, Mapping[str, int]]


def pooled(choices: Sequence[Choices], *, seed: int = 0) -> PartReport:
    """The scores of all choices together, as of one text; seed: of the bootstrap.

    A system that some choices lack has none: it has not parsed all of the text.
    """
    systems = choices[0].systems
    names = [n for n in choices[0].counts if all(n in found.counts for found in choices)]
    counts = {name: np.concatenate([found.counts[name] for found in choices]) for name in names}
    trees = [number for found in choices for number in found.trees]
    words = sum(found.words for found in choices)
    return PartReport(
        sentences=len(trees),
        words=words,
        trees=float(np.mean(trees)),
        tokens_per_second=words / max(sum(found.seconds for found in choices), 1e-9),
        scores=_scores(counts, systems),
        tests=[
            compare(counts[BASE_PARSER], counts[FINAL], metric=metric, seed=seed)
            for metric in BOOTSTRAP_METRICS
        ],
        vote_tests=[
            compare(counts[VOTE], counts[FINAL], metric=metric, seed=seed)
            for metric in BOOTSTRAP_METRICS
            if VOTE in counts
        ],
        violations={
            name: dict(sum((Counter(found.violations[name]) for found in choices), Counter()))
            for name in choices[0].violations
        },
    )


def count_choices(
    gold: Sequence[Sentence],
    lists: Sequence[CandidateList],
    *,
    base: Reranker | None,
    kernel: Reranker,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    arcs: ArcProbabilities | None = None,
) -> Choices:
    """What the parsers, both rerankers, the final system and the oracle choose.

    gold, lists: aligned.  base: the reranker without kernel, None where there is none.  kernel: the
    one whose combination makes the final system; it may have no kernel, and then is the base
    reranker itself.  arcs: how likely the parsers find any arcs, where that can be asked, for
    confidence.  The oracle chooses among repaired trees, too, as the final system does.
    """
    if len(gold) != len(lists):
        raise ValueError(f"{len(gold)} sentences but {len(lists)} candidate lists")
    given = list(zip(gold, lists, strict=True))
    pairs = [(sentence, kernel.completed(sentence, trees)) for sentence, trees in given]
    names = dict.fromkeys(name for trees in lists for name in trees.bases)
    further = {name: further_parser(name) for name in names}
    systems = (BASE_PARSER, *further.values(), *SYSTEMS[1:])
    chosen: dict[str, list[int]] = {name: [] for name in (*systems, _LABELLED_ORACLE)}
    voted: list[Sentence] = []
    decided: list[CandidateList] = []
    sure: list[Confidence | None] = []
    own = KERNEL_RERANKER if kernel.settings.kernel_parts else BASE_RERANKER
    seconds = 0.0
    for start in range(0, len(gold), BATCH):
        batch = pairs[start : start + BATCH]
        chosen[BASE_PARSER] += [trees.base for _, trees in batch]
        for name, system in further.items():
            chosen[system] += [trees.bases.get(name, trees.base) for _, trees in batch]
        chosen[FIRST] += [0] * len(batch)
        if further:
            voted += [_voted(sentence, trees) for sentence, trees in batch]
        if kernel.combiner is not None:
            chosen[COMBINER_ROW] += _best(trees.scores[:, -1] for _, trees in batch)
        if base is not None:
            chosen[BASE_RERANKER] += _best(base.batch_scores(batch, n_threads=n_threads))
        started = time.perf_counter()
        scores = kernel.batch_scores(batch, n_threads=n_threads)
        decisions = [
            kernel.decide(*pair, own_scores, n_threads=n_threads)
            for pair, own_scores in zip(batch, scores, strict=True)
        ]
        chosen[FINAL] += [decision.row for decision in decisions]
        decided += [decision.candidates for decision in decisions]
        seconds += time.perf_counter() - started
        for (sentence, _), decision in zip(batch, decisions, strict=True):
            trees = decision.candidates
            chosen[ORACLE].append(trees.oracle(sentence))
            chosen[_LABELLED_ORACLE].append(trees.oracle(sentence, labelled=True))
        chosen[own] += _best(scores)
        sentences = [sentence for sentence, _ in batch]
        sure += kernel.confidences(list(zip(sentences, decisions, strict=True)), arcs)
        if progress is not None:
            progress(start + len(batch), len(gold))
    completed = [trees for _, trees in pairs]
    final_trees = _with_trees(gold, decided, chosen[FINAL])
    among = dict.fromkeys((FINAL, ORACLE, _LABELLED_ORACLE), decided)
    base_trees = _with_trees(gold, completed, chosen[BASE_PARSER])
    counts = {
        name: count_sentences(gold, _with_trees(gold, among.get(name, completed), rows))
        for name, rows in chosen.items()
        if rows
    }
    if voted:
        counts[VOTE] = count_sentences(gold, voted)
    return Choices(
        systems=systems,
        counts=counts,
        trees=[len(trees) for trees in completed],
        words=sum(map(len, gold)),
        seconds=seconds,
        parsed=final_trees,
        before=base_trees,
        sure=sure,
        violations={
            GOLD: count_violations(gold),
            BASE_PARSER: count_violations(base_trees),
            FINAL: count_violations(final_trees),
        },
    )


def compare(a: Counts, b: Counts, *, metric: str, seed: int = 0) -> Bootstrap:
    """Paired bootstrap of two systems on one treebank part."""
    return bootstrap_counts([(a, b)], metric=metric, seed=seed)


_LABELLED_ORACLE = "labelled oracle"


def _voted(sentence: Sentence, candidates: CandidateList) -> Sentence:
    heads, labels = plain_vote(candidates)
    return sentence.with_tree(heads, candidates.inventory.decode(labels.tolist()))


def _best(scores: Iterable[NDArray[np.float64]]) -> list[int]:
    return [int(row.argmax()) for row in scores]


def _with_trees(
    gold: Sequence[Sentence], lists: Sequence[CandidateList], rows: Sequence[int]
) -> list[Sentence]:
    return [
        sentence.with_tree(trees.heads[row], trees.deprels(row))
        for sentence, trees, row in zip(gold, lists, rows, strict=True)
    ]


def _scores(counts: Mapping[str, Counts], systems: Sequence[str]) -> dict[str, Scores]:
    """In the order of systems; of the oracle, each score is that of the candidate best by it."""
    scores = {name: scores_from_counts(counts[name]) for name in systems if name in counts}
    labelled = scores_from_counts(counts[_LABELLED_ORACLE])
    best = {name: max(getattr(scores[ORACLE], name), getattr(labelled, name)) for name in METRICS}
    unscored = {name: getattr(labelled, name) for name in ("sentences", "words", "words_nopunct")}
    scores[ORACLE] = Scores(**unscored, **best)
    return scores
