"""Training a reranker from candidate lists: epochs of Algorithm 1, then the combination.

Source: Taub-Tabib et al. 2015, section 3 and footnote 8: the combination is tuned on a tenth of the
reranker's own training lists, by a reranker trained on the rest; then all of them train the final
one.  Ours differs: the lists are held out in turn, so that all of them tune, not a tenth (the
paper's single tenth is tuning_folds=1).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.model import COMBINER, ArcCombiner
from tk_spacy.errors import UserError
from tk_spacy.features.encoder import ListEncoder
from tk_spacy.features.list_features import ListFeatures
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.arc_probabilities import ArcProbabilities
from tk_spacy.kbest.candidates import CandidateList, in_batches
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.reranker.calibration import Calibration, HeldOut
from tk_spacy.reranker.cascade import Cascade, Seen, right_words
from tk_spacy.reranker.interpolation import (
    DEFAULT_METRIC,
    Combination,
    TuningList,
    TuningMetric,
    tune,
)
from tk_spacy.reranker.learner import Learner
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.penalties import Penalties, tune_penalties
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training_list import TrainingLists
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64

TUNING_SHARE = 0.1
TUNING_FOLDS = 5
CALIBRATION_FOLDS = 3
"""Rerankers that are trained to calibrate the final one's confidence, where none tuned."""

CHUNK = 64
"""Lists whose kernel scores are brought up to date in one parallel pass."""
LEVELLED = 4096
"""The same before lists are shuffled, when all of them are."""

StageReport = Callable[[str, int, int], None]
"""Called with a stage's name, the steps done and their number."""


@dataclass(frozen=True, slots=True)
class TrainingStats:
    """What a training took and gave.

    seconds: of wall time, without reading and encoding the lists.  updates: of Algorithm 1.
    curve: lists that led to an update in each iteration, percent.
    """

    sentences: int
    mean_length: float
    support_parts: int
    updates: int
    seconds: float
    curve: tuple[float, ...] = ()


def prepare_lists(
    schema: Schema,
    sentences: Sequence[Sentence],
    lists: Sequence[CandidateList],
    settings: Settings,
) -> TrainingLists:
    """Encode gold sentences and their candidate lists, aligned, for training.

    Where they are many, memory holds a few alone.  Lists of a single tree teach nothing and are
    left out, unless the settings count them as steps.
    Raises UserError where no list has more.
    """
    if len(sentences) != len(lists):
        raise ValueError(f"{len(sentences)} sentences but {len(lists)} candidate lists")
    list_features = None
    if settings.list_features and lists:
        list_features = ListFeatures.fit(lists, settings.list_features, factor=settings.list_scale)
    encoder = ListEncoder(
        schema,
        kernel_parts=settings.kernel_parts,
        manual_parts=settings.manual_parts,
        list_features=list_features,
    )
    prepared = TrainingLists(list_features)
    given = zip(range(len(lists)), sentences, lists, strict=True)
    for some in in_batches(given, lambda item: item[2].heads.size):
        kept: list[tuple[Sentence, CandidateList]] = []
        learnt: list[tuple[int, Float64, int]] = []
        for i, sentence, candidates in some:
            trees = with_gold(sentence, candidates) if settings.add_gold else candidates
            if len(trees) < 2 and not settings.count_single:
                continue
            oracle = trees.oracle(sentence)
            wrong = (trees.heads != trees.heads[oracle]).sum(axis=1).astype(np.float64)
            if settings.loss == "labelled":
                wrong += (trees.labels != trees.labels[oracle]).sum(axis=1)
            kept.append((sentence, trees))
            learnt.append((i, wrong, oracle))
        for (i, wrong, oracle), encoded in zip(learnt, encoder.encode_all(kept), strict=True):
            prepared.append(i, encoded, loss=wrong, oracle=oracle)
    if not prepared.has_choice:
        raise UserError(
            "no candidate list has more than one tree: there is nothing to choose from; ask for "
            "more candidates (k), or give longer lists"
        )
    return prepared


def combine_lists(
    sentences: Sequence[Sentence],
    lists: Sequence[CandidateList],
    settings: Settings,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ArcCombiner | None, Sequence[CandidateList]]:
    """A combiner and the lists with what combiners that did not see them add.

    None and the lists themselves where the settings want none, or there is a single source.
    """
    if not settings.combiner or len(lists[0].sources) < 2:
        return None, lists
    return ArcCombiner.fit_apart(sentences, lists, progress=progress)


def with_gold(gold: Sentence, candidates: CandidateList) -> CandidateList:
    """The list with the gold tree, unscored, where it was not in it (Qian and Liu 2015 do so)."""
    labels = candidates.inventory.encode(gold.deprels)
    unscored = np.full((1, candidates.scores.shape[1]), np.nan)
    return CandidateList.from_arrays(
        np.concatenate([candidates.heads, gold.heads[None]]),
        np.concatenate([candidates.labels, labels[None]]),
        np.concatenate([candidates.scores, unscored]),
        inventory=candidates.inventory,
        sources=candidates.sources,
        base=candidates.base,
    )


def _visits(n: int, settings: Settings) -> Iterator[NDArray[np.intp]]:
    generator = (
        None if settings.shuffle_seed is None else np.random.default_rng(settings.shuffle_seed)
    )
    for _ in range(settings.iterations):
        yield np.arange(n) if generator is None else generator.permutation(n)


def learn(
    schema: Schema,
    items: TrainingLists,
    settings: Settings,
    *,
    perceptron: bool = False,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Reranker, TrainingStats]:
    """Run Algorithm 1 over the lists; the reranker has no combination yet.

    items: from `prepare_lists`, one at least.
    perceptron: each update has length 1, instead of being as long as it must be.
    progress: called with the steps done and their number.
    """
    started = time.perf_counter()
    n_threads = effective_n_threads(n_threads)
    total = len(items) * settings.iterations
    list_features = items.list_features
    learner = Learner(
        kernel_parts=settings.kernel_parts,
        manual_parts=settings.manual_parts,
        n_properties=len(schema.properties),
        total_steps=total,
        bits=settings.bits,
        C=settings.C,
        skip=settings.skip,
        kernel_scale=settings.kernel_scale,
        add_loss=settings.competitor == "violator",
        list_width=len(list_features.names) if list_features else 0,
        groups=schema.property_groups(),
        budget=settings.budget,
        perceptron=perceptron,
    )
    for remembered in items.remembered:
        remembered.reset()
    curve = []
    for order in _visits(len(items), settings):
        before = learner.updates
        if settings.shuffle_seed is not None:
            # Lists of a shuffled chunk were last seen at different times: level them.
            for start in range(0, len(items), LEVELLED):
                learner.refresh(items[start : start + LEVELLED], n_threads=n_threads)
        for start in range(0, len(order), CHUNK):
            chunk = [items[i] for i in order[start : start + CHUNK]]
            learner.refresh(chunk, n_threads=n_threads)
            for item in chunk:
                learner.step(item)
            if progress is not None:
                progress(learner.steps, total)
        curve.append(round(100 * (learner.updates - before) / len(items), 3))
        marks = (remembered.mark for remembered in items.remembered)
        learner.support.forget(min(marks, key=lambda mark: mark.updates))
    support = learner.support.freeze()
    reranker = Reranker(
        schema=schema,
        settings=settings,
        support=support,
        weights=learner.averaged_weights() if settings.manual_parts else None,
        list_features=list_features,
        list_weights=learner.averaged_list_weights() if list_features else None,
    )
    stats = TrainingStats(
        sentences=len(items),
        mean_length=items.mean_length,
        support_parts=len(support),
        updates=learner.updates,
        seconds=time.perf_counter() - started,
        curve=tuple(curve),
    )
    return reranker, stats


def tuning_parts(n: int, folds: int, *, seed: int) -> list[NDArray[np.intp]]:
    """Which of the lists 0..n-1 are held out for tuning, a part after the other; seeded.

    folds: every list is in one of so many parts; 1 for the paper's single tenth.
    """
    if folds < 1:
        raise ValueError(f"folds is {folds}, expected at least 1")
    order = np.random.default_rng(seed).permutation(n)
    if folds == 1:
        return [np.sort(order[: max(1, round(TUNING_SHARE * n))])]
    return [np.sort(order[fold::folds]) for fold in range(min(folds, n))]


def default_tuning_folds(sources: Sequence[str], *, asked: bool = False) -> int:
    """TUNING_FOLDS; 0 behind a combiner, unless how to tune is asked for, such as the paper's grid.

    A combiner has weighed the parsers already, and the reranker has all their scores as features:
    weights for these that were tuned on training lists besides lost 0.1 to 0.3 LAS on dev.
    """
    return 0 if COMBINER in sources and not asked else TUNING_FOLDS


def train_reranker(
    sentences: Sequence[Sentence],
    lists: Sequence[CandidateList],
    settings: Settings,
    *,
    schema: Schema,
    seed: int = 0,
    paper_grid: bool = False,
    raw_scores: bool = False,
    tuning_metric: TuningMetric = DEFAULT_METRIC,
    tuning_folds: int | None = None,
    calibration_folds: int = 0,
    dev: tuple[Sequence[Sentence], Sequence[CandidateList]] | None = None,
    penalties: bool = True,
    arcs: ArcProbabilities | None = None,
    unseen: dict[int, Float64] | None = None,
    quick: Sequence[str] = (),
    quick_dev: Sequence[CandidateList] | None = None,
    n_threads: int | None = None,
    progress: StageReport | None = None,
) -> tuple[Reranker, TrainingStats]:
    """Train a reranker and its combination with the parsers' scores.

    sentences: gold trees.  lists: their candidates, aligned, from parsers that did not see them.
    schema: fitted on the training treebank.  seed: of the split for tuning.
    paper_grid, raw_scores, tuning_metric: see `interpolation.tune`.
    tuning_folds: see `tuning_parts`; each takes a training; 0 for Combination.untuned, None for
        what `default_tuning_folds` says.
    calibration_folds: as tuning_folds, to calibrate confidence (see `calibration`); where lists
        were held out for tuning their scores serve, and no more is trained.  0 for no calibration,
        which alone needs no scikit-learn.
    dev: sentences with right trees, and their lists as the reranker is to get them, by which
        penalties on ill-formed trees are tuned, and confidence is adjusted; None for neither.
    penalties: whether to tune some.
    arcs: how likely the parsers that made dev's lists find any arcs, for confidence.
    unseen: gets the final scores float64[k] of the lists, by their numbers, from rerankers that did
        not learn from them; where no lists were held out in turn, as many are trained for it as
        would be to calibrate.  A list that no reranker could score so is left out.
    quick: sources whose parsers may decide alone where they are sure (see `cascade`); none for no
        cascade, which there is neither without calibration.
    quick_dev: dev's lists by these alone, by which the cascade is checked; None for dev's lists.
    """
    if len(lists) < 2:
        raise UserError("training needs at least two candidate lists")
    report = progress or (lambda stage, done, total: None)
    items = prepare_lists(schema, sentences, lists, settings)
    if tuning_folds is None:
        asked = paper_grid or raw_scores or tuning_metric != DEFAULT_METRIC
        tuning_folds = default_tuning_folds(lists[0].sources, asked=asked)

    def held_out(stage: str, folds: int) -> list[tuple[int, Float64]]:
        """Lists by their numbers, with scores of rerankers that did not learn from them."""
        found: list[tuple[int, Float64]] = []
        parts = tuning_parts(len(lists), folds, seed=seed)
        for number, held in enumerate(parts):
            rest = items.without(set(held.tolist()))
            if not rest.has_choice:
                continue

            def on_step(done: int, total: int, before: int = number) -> None:
                report(stage, before * total + done, len(parts) * total)

            scout, _ = learn(schema, rest, settings, n_threads=n_threads, progress=on_step)
            scores: list[Float64] = []
            pairs = ((sentences[i], lists[i]) for i in held)
            for some in in_batches(pairs, lambda pair: pair[1].heads.size):
                scores += scout.batch_scores(some, n_threads=n_threads)
            found += zip(held.tolist(), scores, strict=True)
        return found

    scored = held_out("tuning", tuning_folds) if tuning_folds else []
    combination = Combination.untuned(lists[0].sources, combiner=COMBINER)
    if scored:
        combination = tune(
            [TuningList.make(sentences[i], lists[i], own) for i, own in scored],
            sources=lists[0].sources,
            paper_grid=paper_grid,
            raw_scores=raw_scores,
            metric=tuning_metric,
        )
    if calibration_folds:
        scored = scored or held_out("calibrating", calibration_folds)
    in_turn = scored
    if unseen is not None and len(scored) < len(lists):
        in_turn = held_out("scoring unseen lists", CALIBRATION_FOLDS)
    reranker, stats = learn(
        schema, items, settings, n_threads=n_threads,
        progress=lambda done, total: report("training", done, total),
    )  # fmt: skip
    reranker = replace(reranker, combination=combination)
    if dev is not None and penalties:
        tuned = dev_penalties(
            reranker, *dev, n_threads=n_threads,
            progress=lambda done, total: report("tuning penalties", done, total),
        )  # fmt: skip
        reranker = replace(reranker, penalties=tuned)

    def final(i: int, own: Float64) -> Float64:
        return reranker.penalized(sentences[i], lists[i], reranker.combined(lists[i], own))

    if unseen is not None:
        unseen.update((i, final(i, own)) for i, own in in_turn)
    if calibration_folds and scored:
        held = [HeldOut(sentences[i], lists[i], final(i, own)) for i, own in scored]
        calibration = Calibration.fit(held)
        chosen: list[HeldOut] = []
        if dev is not None:
            chosen = decided(reranker, *dev, n_threads=n_threads)
            calibration = calibration.adjusted_to(
                chosen, None if arcs is None else arcs([item.chosen for item in chosen])
            )
        reranker = replace(reranker, calibration=calibration)
        if quick and set(quick) < {*lists[0].sources} - {COMBINER}:
            kinds = tuple(reranker.penalties.weights)
            on_dev = []
            if dev is not None:
                on_dev = seen(chosen, lists=dev[1] if quick_dev is None else quick_dev)
            cascade = Cascade.fit(seen(held), on_dev, quick, kinds=kinds)
            reranker = replace(reranker, cascade=cascade)
    return reranker, stats


def seen(held: Sequence[HeldOut], lists: Sequence[CandidateList] | None = None) -> list[Seen]:
    """What a cascade learns from.

    lists: what the parsers gave, where those of `held` have got further trees since.
    """
    given = [item.candidates for item in held] if lists is None else lists
    return [
        Seen(item.gold, trees, right_words(item.gold, item.candidates, int(item.final.argmax())))
        for item, trees in zip(held, given, strict=True)
    ]


def decided(
    reranker: Reranker,
    gold: Sequence[Sentence],
    lists: Sequence[CandidateList],
    *,
    n_threads: int | None = None,
) -> list[HeldOut]:
    """The lists of sentences with right trees as the reranker chooses from them.

    lists: completed.  With penalties, repaired trees join some.
    """
    pairs = zip(gold, lists, strict=True)
    return [
        HeldOut(sentence, decision.candidates, decision.final)
        for sentence, decision in reranker.decisions(pairs, n_threads=n_threads)
    ]


def dev_penalties(
    reranker: Reranker,
    gold: Sequence[Sentence],
    lists: Sequence[CandidateList],
    *,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Penalties:
    """The penalties that suit a reranker, by sentences with right trees and their completed lists.

    It must not have learnt from these; penalties that it has already are not looked at.
    """
    plain: list[Float64] = []
    pairs = zip(gold, lists, strict=True)
    for batch in in_batches(pairs, lambda pair: pair[1].heads.size, most=CHUNK):
        scores = reranker.batch_scores(batch, n_threads=n_threads)
        plain += [
            reranker.combined(trees, own) for (_, trees), own in zip(batch, scores, strict=True)
        ]
        if progress is not None:
            progress(len(plain), len(gold))

    def score(sentence: Sentence, trees: CandidateList) -> Float64:
        return reranker.combined(trees, reranker.scores(sentence, trees, n_threads=n_threads))

    return tune_penalties(gold, lists, plain, score)
