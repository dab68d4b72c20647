"""The main path: from a treebank to a trained reranker and what it gained.

Parsers and jackknifed candidate lists, the base and the kernel reranker, their scores on
dev and test, and a directory that `spacy.load` opens.  Source of the set-up: Taub-Tabib et al.
2015, section 5.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from tk_spacy.about import __version__
from tk_spacy.evaluation.report import Curve, PartReport, RunTime, TrainReport
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.arc_probabilities import ArcProbabilities, arc_probabilities
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.parsers.names import FILE, SPACY
from tk_spacy.reranker.assessment import Choices, assess
from tk_spacy.reranker.calibration import MISSING, can_fit
from tk_spacy.reranker.examples import Examples
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.provenance import Candidates, Provenance
from tk_spacy.reranker.settings import Settings, suit
from tk_spacy.reranker.training import (
    TrainingStats,
    combine_lists,
    learn,
    prepare_lists,
    train_reranker,
)
from tk_spacy.tagging.kinds import get_kind
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_store import arrays_stored_beside
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.atomic_files import replace_directory
from tk_spacy.utils.progress import Progress, Stages
from tk_spacy.utils.timing import Meter
from tk_spacy.utils.workdir import work_directory
from tk_spacy.workflows.model import FAST_FOLDER, REPORT_HTML, REPORT_JSON, REPORT_MARKDOWN
from tk_spacy.workflows.train.candidate_lists import Proposals, candidate_lists, seen_notes
from tk_spacy.workflows.train.config_text import TRAINING_CFG, training_config
from tk_spacy.workflows.train.cross_validation import CROSS_VALIDATION, cross_validate
from tk_spacy.workflows.train.distilling import Fast, distill, train_shares
from tk_spacy.workflows.train.estimate import estimate
from tk_spacy.workflows.train.inputs import Plan, check_places, make_plan
from tk_spacy.workflows.train.options import (
    WITHOUT_DISTILLATION,
    TrainOptions,
    package_name,
)
from tk_spacy.workflows.train.parts import Part
from tk_spacy.workflows.train.places import at_its_place
from tk_spacy.workflows.train.speeds import measure_speeds, quick_lists, quick_sources
from tk_spacy.workflows.train.system import System
from tk_spacy.workflows.train.tagging import Tagging, tag_parts

UPDATES = "lists that led to an update, %"


def train_pipeline(options: TrainOptions, *, progress: Progress | None = None) -> TrainReport:
    """Train, measure and save: the whole of `tk-spacy train`.

    Every mistake in options and files raises UserError before anything is trained or written.  When
    the training stops halfway the work directory stays, and the same call resumes there.
    """
    with Meter() as meter, ExitStack() as held, arrays_stored_beside(options.output):
        run = Stages(progress or Progress(), meter)
        with at_its_place(options):
            check_places(options)
            with run.stage("reading the treebank"):
                plan = make_plan(options)
        options = plan.options
        for note in plan.told:
            run.progress.note(note)
        for note in plan.notes:
            run.progress.warn(note)
        if options.calibration_folds and not can_fit():
            run.progress.note(MISSING)
        if plan.trains_parsers:
            run.progress.note(f"preset {options.preset}: {estimate(plan).line()}")
            held.enter_context(work_directory(options.work_directory))
        validation = None
        if options.cross_validation:
            # Nobody asks the folds' systems how sure they are, or for a fast parser.
            alone = replace(options, calibration_folds=0, **WITHOUT_DISTILLATION)
            uncalibrated = replace(plan, options=alone)
            validation = cross_validate(run, uncalibrated, _train_system)
        system = _train_system(run, plan)
        plan, tagging, proposals = system.plan, system.tagging, system.proposals
        lists, kernel = proposals.lists, system.kernel
        notes = [*plan.told, *plan.notes, *system.notes]
        fast = distill(run, system) if options.distill else None
        choices: dict[str, list[Choices]] = {name: [] for name in plan.parts}
        arcs = arc_probabilities(proposals.sources)
        parts = {
            name: _assess(run, plan, part, lists[name], system.base, kernel, choices[name], arcs)
            for name, part in plan.parts.items()
            if name != "train"
        }
        parts = {
            name: replace(
                part, speeds=measure_speeds(run, system, name, plan.parts[name].sentences)
            )
            for name, part in parts.items()
        }
        if fast is not None:
            parts = {
                name: fast.added_to(name, part, plan.parts[name].sentences)
                for name, part in parts.items()
            }
        tags = dict(tagging.scores)
        gold_trees = plan.dev, [tree for found in choices.get("dev", ()) for tree in found.parsed]
        if validation is not None:
            parts[CROSS_VALIDATION] = validation.report
            gold_trees = validation.gold, validation.parsed
            choices[CROSS_VALIDATION] = validation.choices
            tags |= {} if validation.tags is None else {CROSS_VALIDATION: validation.tags}
            proposals = replace(proposals, speeds=dict(validation.speeds))
        made = _provenance(plan, lists["train"])
        scores = {
            name: {system: asdict(row) for system, row in part.scores.items()}
            for name, part in parts.items()
        }
        kernel = replace(kernel, about=replace(made, scores=scores).to_dict())
        with run.stage("saving"), replace_directory(options.output) as directory:
            _save_model(directory, plan, kernel, proposals, tagging, gold_trees)
            if fast is not None:
                _save_fast(directory / FAST_FOLDER, plan, fast, tagging)
            report = TrainReport(
                about={**made.to_dict(), "settings": kernel.settings.to_dict()},
                betas=dict(kernel.combination.betas) if kernel.combination else {},
                parts=parts,
                run_time=_run_time(plan, proposals, tagging, system.stats, parts, meter),
                notes=tuple(notes),
                tags=tags,
                curves={
                    **tagging.curves,
                    **proposals.curves,
                    "reranker": Curve(UPDATES, system.stats.curve),
                },
                fast=None if fast is None else fast.report,
            )
            text = json.dumps(report.to_dict(), indent=2, ensure_ascii=False)
            (directory / REPORT_JSON).write_text(text + "\n", encoding="utf-8")
            (directory / REPORT_MARKDOWN).write_text(report.to_markdown(), encoding="utf-8")
            page = _page(report, plan, kernel, choices)
            (directory / REPORT_HTML).write_text(page, encoding="utf-8")
            (directory / TRAINING_CFG).write_text(training_config(options), encoding="utf-8")
        if plan.trains_parsers and options.workdir is None:
            shutil.rmtree(options.work_directory, ignore_errors=True)
    return report


def _train_system(run: Stages, plan: Plan) -> System:
    """Tagger, parsers, their lists of all parts, combiner and rerankers."""
    plan, tagging = tag_parts(run, plan)
    proposals = candidate_lists(run, plan)
    lists = proposals.lists
    notes = tuple(seen_notes(plan, lists))
    for note in notes:
        run.progress.warn(note)
    options = plan.options
    settings = suit(options.settings, options.left_open, lists["train"][0].sources)
    with run.stage("combining the parsers") as advance:
        combiner, train_lists = combine_lists(
            plan.parts["train"].sentences, lists["train"], settings, progress=advance
        )
        dev = None
        if plan.dev and (options.penalties or options.calibration_folds):
            given = zip(plan.dev, lists["dev"], strict=True)
            dev = [t if combiner is None else combiner.extended(s, t) for s, t in given]
    arcs = arc_probabilities(proposals.sources)
    unseen: dict[int, Float64] | None = {} if options.distill else None
    quick = quick_sources(plan, proposals) if options.calibration_folds and can_fit() else ()
    quick_dev = quick_lists(run, plan, proposals, quick) if quick and dev is not None else None
    base, kernel, stats = _train_rerankers(
        run, plan, train_lists, dev, settings, arcs, unseen, quick, quick_dev
    )
    examples = None
    if options.examples and len(kernel.support):
        examples = Examples.of(kernel.support, plan.parts["train"].sentences)
    kernel = replace(kernel, combiner=combiner, examples=examples)
    system = System(plan, tagging, proposals, base, kernel, stats, notes)
    if unseen is None:
        return system
    shares, temperature = train_shares(train_lists, unseen, options.soft_temperature)
    return replace(system, shares=shares, temperature=temperature)


# Rerankers


def _train_rerankers(
    run: Stages,
    plan: Plan,
    lists: Sequence[CandidateList],
    dev: Sequence[CandidateList] | None,
    settings: Settings,
    arcs: ArcProbabilities | None,
    unseen: dict[int, Float64] | None,
    quick: Sequence[str],
    quick_dev: Sequence[CandidateList] | None,
) -> tuple[Reranker | None, Reranker, TrainingStats]:
    """The base reranker, where the settings allow one beside the kernel's, and the final one.

    lists, dev: of train and dev, as the combiner completes them; dev where it tunes penalties or
        adjusts confidence.
    arcs: how likely the parsers find any arcs.
    unseen, quick, quick_dev: see `train_reranker`.
    """
    options = plan.options
    train = plan.parts["train"].sentences
    schema = Schema.fit(
        train,
        plan.dev,
        labels=_labels(lists),
        use_lemma=settings.use_lemma,
        extras=settings.properties,
    )
    base = None
    if settings.kernel_parts and settings.manual_parts:
        with run.stage("training the base reranker") as report:
            without = replace(settings, kernel_parts=(), budget=None)
            base, _ = learn(
                schema, prepare_lists(schema, train, lists, without), without,
                n_threads=options.threads, progress=report,
            )  # fmt: skip
    name = "kernel" if settings.kernel_parts else "base"
    with run.stage(f"training the {name} reranker"):
        kernel, stats = train_reranker(
            train,
            lists,
            settings,
            schema=schema,
            seed=options.seed,
            paper_grid=options.paper_grid,
            raw_scores=options.raw_scores,
            tuning_metric=options.tuning_metric,
            tuning_folds=options.tuning_folds,
            calibration_folds=options.calibration_folds if can_fit() else 0,
            dev=None if dev is None else (plan.dev, dev),
            penalties=options.penalties,
            arcs=arcs,
            unseen=unseen,
            quick=quick,
            quick_dev=quick_dev,
            n_threads=options.threads,
            progress=lambda stage, done, total: run.progress.update(f"  {stage}", done, total),
        )
    return base, kernel, stats


def _labels(lists: Sequence[CandidateList]) -> set[str]:
    """The labels in lists: not all of their inventory, which holds whatever a parser knows."""
    names = lists[0].inventory.names
    used = set().union(*(np.unique(trees.labels).tolist() for trees in lists))
    return {names[i] for i in used}


def _assess(
    run: Stages,
    plan: Plan,
    part: Part,
    lists: Sequence[CandidateList],
    base: Reranker | None,
    kernel: Reranker,
    choices: list[Choices],
    arcs: ArcProbabilities | None,
) -> PartReport:
    with run.stage(f"scoring {part.name}") as report:
        return assess(
            part.sentences,
            lists,
            base=base,
            kernel=kernel,
            seed=plan.options.seed,
            n_threads=plan.options.threads,
            progress=report,
            choices=choices,
            arcs=arcs,
        )


# What is saved


def _page(
    report: TrainReport, plan: Plan, kernel: Reranker, choices: Mapping[str, Sequence[Choices]]
) -> str:
    from tk_spacy.workflows.train.report_page import PartTrees, page  # noqa: PLC0415  (spaCy)

    calibration = kernel.calibration
    adjusted = calibration is not None and bool(calibration.adjusted or calibration.informed)
    trees = {}
    for name in report.parts:
        part = plan.parts["train" if name == CROSS_VALIDATION else name]
        trees[name] = PartTrees(
            gold=part.gold or part.sentences,
            before=[tree for found in choices[name] for tree in found.before],
            after=[tree for found in choices[name] for tree in found.parsed],
            sure=[said for found in choices[name] for said in found.sure],
            adjusted=adjusted and name == "dev",
        )
    return page(report, trees, sentences=plan.options.examples)


def _save_model(
    directory: Path,
    plan: Plan,
    reranker: Reranker,
    proposals: Proposals,
    tagging: Tagging,
    trees: tuple[Sequence[Sentence], Sequence[Sentence]],
) -> None:
    """A pipeline of the parsers and the reranker, or the reranker alone where it has no parser.

    trees: the gold ones of dev, or of what was cross-validated, and the final system's.
    """
    # Trees in files are no part of a model: it asks for them.
    pairs = list(zip(plan.parsers, proposals.sources, strict=True))
    opened = {source: spec.kind for spec, source in pairs if spec.kind != FILE}
    if not opened:
        reranker.write_files(directory)
        return
    from tk_spacy.pipeline.assembly import make_pipeline  # noqa: PLC0415  (imports spaCy)
    from tk_spacy.pipeline.model_meta import describe, spacy_scores  # noqa: PLC0415

    options = plan.options
    title = plan.title
    gold, parsed = trees
    scored = plan.parts["train" if options.cross_validation else "dev"]
    if own_tags := tagging.tagger is not None:
        gold = scored.gold or gold
    nlp = make_pipeline(
        list(opened),
        reranker,
        kinds=list(opened.values()),
        k=options.list_length,
        search=options.search,
        tagger=tagging.tagger,
        tagger_factory=None if plan.tagger is None else get_kind(plan.tagger.kind).factory,
        tokenizer=tagging.tokenizer,
    )
    describe(
        nlp,
        name=options.name or package_name(title),
        version=options.version,
        licence=options.licence,
        treebank=title,
        licences={name: licence.text for name, licence in plan.licences.items()},
        how=f"a reranker of the trees of {', '.join(n for s in opened for n in s.names)}",
        performance=spacy_scores(gold, parsed, tags=own_tags),
        own_tags=own_tags,
        scored_on=CROSS_VALIDATION if options.cross_validation else "dev",
    )
    nlp.to_disk(directory)


def _save_fast(directory: Path, plan: Plan, fast: Fast, tagging: Tagging) -> None:
    """A pipeline of the fast parser alone, with the model's own tokenizer and tagger."""
    from tk_spacy.pipeline.assembly import parser_pipeline  # noqa: PLC0415  (imports spaCy)
    from tk_spacy.pipeline.model_meta import describe, spacy_scores  # noqa: PLC0415

    options = plan.options
    own_tags = tagging.tagger is not None
    nlp = parser_pipeline(
        fast.parser,
        kind=fast.kind,
        tagger=tagging.tagger,
        tagger_factory=None if plan.tagger is None else get_kind(plan.tagger.kind).factory,
        tokenizer=tagging.tokenizer,
    )
    performance = {}
    if "dev" in plan.parts:
        dev = plan.parts["dev"]
        gold = dev.gold or dev.sentences
        performance = spacy_scores(gold, fast.trees["dev"], tags=own_tags)
    describe(
        nlp,
        name=f"{options.name or package_name(plan.title)}_fast",
        version=options.version,
        licence=options.licence,
        treebank=plan.title,
        licences={name: licence.text for name, licence in plan.licences.items()},
        how=f"a {fast.kind} parser that learnt from the probabilities of a reranker's trees",
        performance=performance,
        own_tags=own_tags,
        scored_on="dev" if performance else None,
    )
    nlp.to_disk(directory)


def _provenance(plan: Plan, lists: Sequence[CandidateList]) -> Provenance:
    """What the model was made from: the same for every run with the same input."""
    options = plan.options
    given = {
        "train": options.candidates,
        "dev": options.dev_candidates,
        "test": options.test_candidates,
    }
    parsers = {parser.name: parser.about() for parser in plan.parsers}
    return Provenance(
        title=plan.title,
        version=__version__,
        treebank={name: part.facts() for name, part in plan.parts.items()},
        parsers=parsers,
        parsers_trained=plan.trains_parsers,
        pipeline=options.spacy_pipeline,
        folds=plan.folds if plan.jackknifes else None,
        tagger=None if plan.tagger is None else {"kind": plan.tagger.kind, **plan.tagger.about()},
        tokenizer=None if plan.tokenizer is None else plan.tokenizer.about(),
        multiword=plan.multiword,
        sources=tuple(lists[0].sources),
        candidates=Candidates(
            k=options.list_length,
            search=options.search,
            files={name: path.name for name, path in given.items() if path is not None},
        ),
        # The component asks for this: scores of one parser and of two are not the same.
        backward=next((p.about()["backward"] for p in plan.parsers if p.kind == SPACY), None),
        seed=options.seed,
        paper_grid=options.paper_grid,
        tuning_folds=options.tuning_folds,
        raw_scores=options.raw_scores,
        tuning_metric=options.tuning_metric,
    )


def _run_time(
    plan: Plan,
    proposals: Proposals,
    tagging: Tagging,
    stats: TrainingStats,
    parts: Mapping[str, PartReport],
    meter: Meter,
) -> RunTime:
    train = plan.parts["train"]
    return RunTime(
        sentences=len(train.sentences),
        mean_length=train.words / len(train.sentences),
        support_parts=stats.support_parts,
        training_seconds=stats.seconds,
        parsers=proposals.seconds,
        tagger=tagging.seconds,
        parser_speeds=proposals.speeds,
        tokens_per_second=list(parts.values())[-1].tokens_per_second,
        threads=effective_n_threads(plan.options.threads),
        stages=dict(meter.seconds),
        total_seconds=meter.total_seconds,
        peak_bytes=meter.sample(),
    )
