"""Candidate lists for a training: ready ones, or from parsers that are trained here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tk_spacy.ensemble.full_training import WholeTraining
from tk_spacy.ensemble.jackknife import FoldProgress, JackknifeError, fold_seconds, jackknife
from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.ensemble.trained_parsers import read_record, training_seconds
from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import Curve
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.kbest.stored_lists import StoredLists
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.parallel.threads import available_threads
from tk_spacy.parsers.external import SUSPICIOUS_LEAD
from tk_spacy.utils.atomic_files import META
from tk_spacy.utils.progress import Progress, Stages
from tk_spacy.workflows.train.inputs import Plan

ALL_PARSERS = "all"
PERCENT = 100


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """What the parsers gave.

    lists: of each part.  sources: the parsers, trained and opened; none where none is needed.
    seconds: wall time of each parser's trainings, "whole" and (together) "folds", also where they
        were taken over from an earlier run.
    speeds: words that each parser proposed and scored trees of a second, and all of them together.
    curves: what the training of each parser on all of train measured as it went, where it did.
    """

    lists: dict[str, Sequence[CandidateList]]
    sources: tuple[ParserSource, ...] = ()
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    speeds: dict[str, float] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)


def candidate_lists(run: Stages, plan: Plan) -> Proposals:
    """The lists of all parts, ready or made here, and the parsers that made them.

    Where parsers are trained, the caller holds the work directory (`workdir.work_directory`).
    """
    options = plan.options
    lists: dict[str, Sequence[CandidateList]] = {
        name: part.lists for name, part in plan.parts.items() if part.lists is not None
    }
    work = options.work_directory
    if plan.trains_parsers:
        train_lists = _train_parsers(run, plan, work)
        if train_lists is not None:
            lists["train"] = train_lists
    sources = tuple(
        parser.open(work / parser.name, inventory=plan.inventory, n_threads=options.threads)
        for parser in plan.parsers
    )
    if not plan.needs_lists:
        return Proposals(lists, sources, curves=_curves(plan, work))
    source = MergedSource(sources, n_threads=options.threads)
    words, started = 0, time.perf_counter()
    for name, part in plan.parts.items():
        if name in lists:
            continue
        words += part.words
        lists[name] = found = StoredLists()
        with run.stage(f"candidates of {name}") as report:
            for trees in source.candidates(part.sentences, k=options.list_length):
                found.append(trees)
                report(len(found), len(part.sentences))
    seconds = [*source.seconds, time.perf_counter() - started]
    names = [*(parser.name for parser in plan.parsers), ALL_PARSERS]
    speeds = {name: words / max(taken, 1e-9) for name, taken in zip(names, seconds, strict=True)}
    if options.workdir is not None and plan.trains_parsers:
        for name, part in plan.parts.items():
            write_kbest(
                options.workdir / f"{name}.kbest.conllu",
                zip(part.sentences, lists[name], strict=True),
            )
    return Proposals(
        lists, sources, _seconds(plan, work), speeds if words else {}, _curves(plan, work)
    )


def seen_notes(plan: Plan, lists: Mapping[str, Sequence[CandidateList]]) -> Iterator[str]:
    """A warning where a parser does so well on train that it must have been trained on it.

    Lists of sentences that their parser has learnt by heart have the gold tree on top, and teach a
    reranker to trust the parser.  Lists of our own jackknife are beyond suspicion.
    """
    if plan.jackknifes:
        return
    right = {}
    for name in ("train", "dev"):
        pairs = zip(plan.parts[name].sentences, lists[name], strict=True)
        heads = sum(int((trees.heads[trees.base] == s.heads).sum()) for s, trees in pairs)
        right[name] = 100 * heads / plan.parts[name].words
    if right["train"] > right["dev"] + SUSPICIOUS_LEAD:
        yield (
            f"the base parser has {right['train']:.1f} UAS on train, but {right['dev']:.1f} on "
            "dev: it seems to know train's trees, and the reranker learns to trust it too much"
        )


def _train_parsers(run: Stages, plan: Plan, work: Path) -> Sequence[CandidateList] | None:
    """The parsers trained on all of train, and lists for train from their folds where needed."""
    options = plan.options
    train = plan.parts["train"].sentences
    dev = plan.dev
    whole = WholeTraining(train, dev, plan.parsers, directory=work)
    if whole.kept:
        run.progress.note(f"taken over from {work}: {', '.join(whole.kept)} parser of all of train")
    if whole.damaged:
        names = ", ".join(whole.damaged)
        run.progress.note(f"damaged in {work} and made again: {names} parser of all of train")
    what = " and ".join(parser.name for parser in plan.parsers if not parser.given)
    processes = options.processes or available_threads()
    if not plan.jackknifes:
        # One after the other on all threads: there are few of them, and of different lengths.
        with run.stage(f"training the {what} parser"):
            whole.run(
                n_threads=options.threads, progress=lambda step: show_step(run.progress, step)
            )
        return None
    try:
        with run.stage(f"training the {what} parser, {plan.folds} folds") as report:

            def on_step(step: FoldProgress) -> None:
                show_step(run.progress, step)
                report(round(step.overall * PERCENT), PERCENT)

            return jackknife(
                train,
                plan.parsers,
                workdir=work / "folds",
                folds=plan.folds,
                k=options.list_length,
                processes=processes,
                inventory=plan.inventory,
                n_threads=options.threads,
                progress=on_step,
                note=run.progress.note,
                beside=whole.tasks(),
            )
    except JackknifeError as error:
        raise UserError(f"{error}; finished parts are kept in {work}") from error


def show_step(progress: Progress, step: FoldProgress) -> None:
    """Tell what a fold is doing, as a step of a stage."""
    place = "all of train" if step.fold is None else f"fold {step.fold + 1}"
    if step.stage in ("train", "parse"):
        doing = f"training {step.parser}" if step.stage == "train" else "parsing"
        progress.update(f"  {place}, {doing}", step.step, step.of)


def _curves(plan: Plan, work: Path) -> dict[str, Curve]:
    curves = {}
    for parser in plan.parsers:
        # Those that an earlier version left in the work directory may have none.
        found = read_record(work / parser.name / META).get("curve")
        if plan.trains_parsers and not parser.given and isinstance(found, dict):
            curves[f"{parser.name} parser"] = Curve.from_dict(found)
    return curves


def _seconds(plan: Plan, work: Path) -> dict[str, dict[str, float]]:
    seconds = {}
    for parser in plan.parsers:
        if parser.given or not plan.trains_parsers:
            continue
        seconds[parser.name] = {"whole": training_seconds(work / parser.name)}
        if plan.jackknifes:
            folds = fold_seconds(work / "folds", parser, folds=plan.folds)
            seconds[parser.name]["folds"] = folds
    return seconds
