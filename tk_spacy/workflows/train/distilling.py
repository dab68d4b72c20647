"""The fast parser: one that learns from the gold trees and from what the final system says.

The final system's word on train comes from lists of jackknifed parsers and from rerankers that did
not learn from them either, so that it is as sure, and as wrong, as on new text.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tk_spacy.ensemble.distillation.lesson import Lesson, list_shares
from tk_spacy.ensemble.distillation.student import Student
from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.ensemble.training_job import TrainingJob
from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import Scores, count_sentences, scores_from_counts
from tk_spacy.evaluation.report import FAST, ORACLE, FastReport, PartReport
from tk_spacy.kbest.long_sentences import is_long
from tk_spacy.kbest.scores import mean_deviation
from tk_spacy.parallel.executor import TaskError, make_executor
from tk_spacy.parallel.threads import available_threads
from tk_spacy.parsers.arc_shares import ArcShares
from tk_spacy.parsers.base import Joins, StoredParser
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.progress import Stages
from tk_spacy.workflows.files.inputs import InputReader
from tk_spacy.workflows.files.tagging import FileTags
from tk_spacy.workflows.train.inputs import Plan
from tk_spacy.workflows.train.system import System

FOLDER = "fast"
"""Where students are kept, in the work directory."""
DISTILLED, WITH_TEXT = "distilled", "text"
"""What the name of a student ends in, and that of one that learns from text, too."""
MOST_TEXT = 3
"""Words of text for each of train, at most: more takes time, and outweighs the gold trees."""


@dataclass(frozen=True, slots=True, eq=False)
class Fast:
    """The fast parser.

    kind: name of its kind.  parser: trained.  report: what was measured.
    trees: what it gives for the sentences of each part but train.
    """

    kind: str
    parser: StoredParser
    report: FastReport
    trees: Mapping[str, Sequence[Sentence]]

    def added_to(self, part: str, scored: PartReport, gold: Sequence[Sentence]) -> PartReport:
        """The scores of a part with a row of its own, before the oracle's."""
        own = _scores(gold, self.trees[part])
        rows = {name: row for name, row in scored.scores.items() if name != ORACLE}
        return replace(scored, scores={**rows, FAST: own, ORACLE: scored.scores[ORACLE]})


# The final system's word


def train_shares(
    lists: Sequence[Any], unseen: Mapping[int, Float64], temperature: float
) -> tuple[list[ArcShares | None], float]:
    """What the final system says of train's arcs, None where it has no say that is honest.

    And the temperature in units of the final scores.
    lists: completed.  unseen: final scores by rerankers that did not learn from them, by number.
    """
    scaled = temperature * mean_deviation(list(unseen.values()))
    shares = [
        list_shares(trees, unseen[i], scaled) if i in unseen else None
        for i, trees in enumerate(lists)
    ]
    return shares, scaled


def text_lesson(run: Stages, system: System) -> Lesson:
    """The user's text as the final system parses it; sentences of the treebank are left out."""
    plan, options = system.plan, system.plan.options
    assert options.text is not None
    known = {sentence.forms for part in plan.parts.values() for sentence in part.sentences}
    most = MOST_TEXT * plan.parts["train"].words
    reader = InputReader(opener=lambda: system.tagging.tokenizer, form="auto")
    tagger = system.tagging.tagger
    tags = FileTags("gold" if tagger is None else "own", lambda: tagger)
    chosen: list[Sentence] = []
    words = 0
    for sentence in tags(reader.sentences(options.text)):
        if words >= most:
            break
        if not is_long(sentence) and sentence.forms not in known:
            known.add(sentence.forms)
            chosen.append(sentence)
            words += len(sentence)
    source = MergedSource(system.proposals.sources, n_threads=options.threads)
    trees, shares = [], []
    with run.stage(f"parsing {words:,} words of {options.text.name}") as report:
        lists = source.candidates(chosen, k=options.list_length)
        pairs = zip(chosen, lists, strict=True)
        for sentence, decision in system.kernel.decisions(pairs, n_threads=options.threads):
            candidates, row = decision.candidates, decision.row
            trees.append(sentence.with_tree(candidates.heads[row], candidates.deprels(row)))
            shares.append(list_shares(candidates, decision.final, system.temperature))
            report(len(trees), len(chosen))
    return Lesson.of_trees(trees).mixed(shares, options.soft_weight)


# Training and choice


@dataclass(frozen=True, slots=True, eq=False)
class _Contestant:
    """A parser that may become the fast one.

    parts: how many parsers' scores it takes the mean of.  seconds: of its own training.
    """

    name: str
    kind: str
    parser: StoredParser
    parts: int = 1
    seconds: float | None = None


def distill(run: Stages, system: System) -> Fast:
    """Train the students, and take what does best on dev: one of them, or with others joined.

    Parsers of the final system that can be one parser (see `base.Joins`) contend too, together and
    with each student.  Without dev it is the first of those that are the mean of most.
    The caller holds the work directory.  Raises UserError where a training fails.
    """
    plan, options = system.plan, system.plan.options
    lesson = Lesson.of_trees(plan.parts["train"].sentences)
    lesson = lesson.mixed(system.shares, options.soft_weight)
    students = [Student(spec, lesson, f"{spec.name}-{DISTILLED}") for spec in plan.students]
    if options.text is not None:
        more = text_lesson(run, system)
        if more.sentences:
            both = lesson.joined(more)
            students += [
                Student(spec, both, f"{spec.name}-{DISTILLED}-{WITH_TEXT}")
                for spec in plan.students
            ]
        else:
            run.progress.warn(f"{options.text}: the treebank has all of its sentences already")
    jobs = [student.job(options.work_directory / FOLDER) for student in students]
    _train(run, plan, jobs)
    alone = [
        _Contestant(student.name, student.kind, job.open(), seconds=job.seconds)
        for student, job in zip(students, jobs, strict=True)
    ]
    all_ = [*alone, *_joined(system, alone, most=options.joined)]
    tried: dict[str, Scores] = {}
    speeds: dict[str, float] = {}
    for one in all_ if plan.dev else ():
        with run.stage(f"scoring {one.name} on dev"):
            started = time.perf_counter()
            parsed = _parsed(one.parser, plan.dev)
            seconds = time.perf_counter() - started
            tried[one.name] = _scores(plan.dev, parsed)
            speeds[one.name] = sum(map(len, plan.dev)) / max(seconds, 1e-9)
    best = max(all_, key=lambda one: tried[one.name].las if tried else one.parts)
    report = FastReport(
        taken=best.name,
        tried=tried,
        seconds={one.name: one.seconds for one in all_},
        speeds=speeds,
    )
    trees = {
        name: _parsed(best.parser, part.sentences)
        for name, part in plan.parts.items()
        if name != "train"
    }
    return Fast(best.kind, best.parser, report, trees)


def _joined(system: System, students: Sequence[_Contestant], *, most: int) -> list[_Contestant]:
    """Parsers of the final system of each student's kind as one, and these with each student.

    most: parsers in one.
    """
    found: list[_Contestant] = []
    pairs = zip(system.plan.parsers, system.proposals.sources, strict=True)
    trained = [(spec, source.parser) for spec, source in pairs if hasattr(source, "parser")]
    for kind in dict.fromkeys(student.kind for student in students):
        own = [
            _Contestant(spec.name, kind, parser) for spec, parser in trained if spec.kind == kind
        ]
        sets = [own, *([*own, s] for s in students if s.kind == kind)]
        for members in sets:
            joins = type(members[0].parser) if members else None
            if not 1 < len(members) <= most or not isinstance(joins, Joins):
                continue
            parser = joins.joined([member.parser for member in members])
            if parser is not None:
                name = " + ".join(member.name for member in members)
                found.append(_Contestant(name, kind, parser, parts=len(members)))
    return found


def _train(run: Stages, plan: Plan, jobs: Sequence[TrainingJob]) -> None:
    options = plan.options
    kept = [job.directory.name for job in jobs if job.is_kept]
    if kept:
        run.progress.note(f"taken over from {jobs[0].directory.parent}: {', '.join(kept)}")
    tasks = [job.task for job in jobs if not job.is_kept]
    if not tasks:
        return
    share = dict.fromkeys((task.name for task in tasks), 0.0)
    executor = make_executor(
        tasks, processes=options.processes or available_threads(), n_threads=options.threads
    )
    with run.stage("training the fast parser") as report:

        def on_report(name: str, value: float) -> None:
            share[name] = value
            report(round(1000 * sum(share.values()) / len(share)), 1000)

        try:
            for name, _ in executor.run(tasks, report=on_report):
                on_report(name, 1.0)
        except TaskError as error:
            raise UserError(f"{error}; what is finished is kept") from error


def _parsed(parser: StoredParser, sentences: Sequence[Sentence]) -> list[Sentence]:
    trees = parser.parse(sentences)
    return [s.with_tree(*tree) for s, tree in zip(sentences, trees, strict=True)]


def _scores(gold: Sequence[Sentence], parsed: Sequence[Sentence]) -> Scores:
    return scores_from_counts(count_sentences(gold, parsed))
