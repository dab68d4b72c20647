"""Candidate lists for a training: ready ones, or from an upstream parser that is trained here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tk_spacy.candidates import CandidateList
from tk_spacy.errors import UserError
from tk_spacy.kbest_io import write_kbest
from tk_spacy.places import enter_work_directory
from tk_spacy.plan import SOURCE_NAME, Plan
from tk_spacy.progress import Stages
from tk_spacy.threads import available_threads

if TYPE_CHECKING:
    from tk_spacy.upstream.loading import Pipeline

SUSPICIOUS_LEAD = 4.0
"""Points of UAS by which a base parser may be better on train than on dev."""


def candidate_lists(
    run: Stages, plan: Plan
) -> tuple[Pipeline | None, dict[str, list[CandidateList]]]:
    """The upstream, if there is one, and the lists of all parts, ready or made here."""
    options = plan.options
    lists = {name: part.lists for name, part in plan.parts.items() if part.lists is not None}
    nlp = plan.nlp
    if not plan.needs_upstream:
        return nlp, lists
    from tk_spacy.upstream.spacy_parser import SpacySource  # noqa: PLC0415  (imports spaCy)

    if nlp is None:
        enter_work_directory(options.work_directory)
        nlp, train_lists = _train_upstream(run, plan, options.work_directory)
        if train_lists is not None:
            lists["train"] = train_lists
    source = SpacySource(
        nlp,
        component=plan.parser,
        backward=plan.backward,
        search=options.search,
        inventory=plan.inventory,
        name=SOURCE_NAME,
    )
    for name, part in plan.parts.items():
        if name in lists:
            continue
        lists[name] = []
        with run.stage(f"candidates of {name}") as report:
            for trees in source.candidates(part.sentences, k=options.k):
                lists[name].append(trees)
                report(len(lists[name]), len(part.sentences))
    if options.workdir is not None and plan.trains_upstream:
        for name, part in plan.parts.items():
            write_kbest(
                options.workdir / f"{name}.kbest.conllu",
                zip(part.sentences, lists[name], strict=True),
            )
    return nlp, lists


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


def _train_upstream(
    run: Stages, plan: Plan, work: Path
) -> tuple[Pipeline, list[CandidateList] | None]:
    """The upstream trained on all of train, and lists for train from its folds where needed."""
    from tk_spacy.upstream.jackknife import (  # noqa: PLC0415  (imports spaCy)
        FoldProgress,
        JackknifeError,
        UpstreamSettings,
        jackknife,
    )
    from tk_spacy.upstream.whole import WholeTraining  # noqa: PLC0415

    options = plan.options
    train = plan.parts["train"].sentences
    settings = UpstreamSettings(
        config=None if options.config is None else str(options.config),
        component=plan.parser,
        max_steps=options.max_steps,
        seed=options.seed,
        backward=plan.backward,
        search=options.search,
    )
    whole = WholeTraining(
        train,
        plan.parts["dev"].sentences,
        directory=work / "upstream",
        settings=settings,
        report=lambda done, total: run.progress.update("  all of train", done, total),
    )

    def on_fold(fold: FoldProgress) -> None:
        whole.poll()
        verb = {"train": "training", "parse": "parsing"}.get(fold.stage)
        if verb is not None:
            run.progress.update(f"  fold {fold.fold + 1}, {verb}", fold.step, fold.of)

    if not plan.jackknifes:
        with run.stage("training the upstream parser"):
            return whole.result(), None
    processes = options.processes or available_threads()
    try:
        with run.stage(f"training the upstream parser, {options.folds} folds"), whole:
            if processes > 1:
                whole.start()
            lists = jackknife(
                train,
                workdir=work / "folds",
                folds=options.folds,
                k=options.k,
                settings=settings,
                processes=processes,
                inventory=plan.inventory,
                progress=on_fold,
            )
            return whole.result(), lists
    except JackknifeError as error:
        raise UserError(f"{error}; finished parts are kept in {work}") from error
