"""Scores of a treebank that has no dev or test part, by cross-validation.

Every sentence is parsed by a whole system, tagger, parsers, combiner and reranker, that was trained
on the other folds alone, with a jackknife of its own within them: nothing that had a part in the
sentence's tree has seen it.  (The lists of the final training's jackknife would cost nothing more,
but the reranker learns there from lists of parsers that have seen the sentence.)  The counts of all
folds are pooled, so that a score is one of the whole treebank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tk_spacy.ensemble.jackknife import fold_of_sentences
from tk_spacy.evaluation.report import PartReport
from tk_spacy.evaluation.tags import TagScores, score_tags
from tk_spacy.reranker.assessment import Choices, count_choices, pooled
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.progress import Stages, Within
from tk_spacy.utils.timing import Meter
from tk_spacy.workflows.train.inputs import HELD_OUT, Plan, fold_plan
from tk_spacy.workflows.train.system import System

CROSS_VALIDATION = "cross-validation"
"""The name of its scores, among those of parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """What a cross-validation gave.

    report: the pooled scores.  gold, parsed: all sentences, in their order, with the tags that were
    predicted, and gold trees or the final systems'.  choices: of all folds.  tags: scores of the
    predicted tags, None where the files' were taken.  speeds: words that the last fold's parsers
    parsed a second.
    """

    report: PartReport
    gold: list[Sentence]
    parsed: list[Sentence]
    choices: list[Choices]
    tags: TagScores | None
    speeds: Mapping[str, float]


def cross_validate(run: Stages, plan: Plan, train: Callable[[Stages, Plan], System]) -> Validation:
    """Train on all folds but one and parse that one, for each.

    train: trains a system by a plan.  The caller holds the work directory.
    """
    options = plan.options
    sentences = plan.parts["train"].sentences
    numbers = fold_of_sentences(len(sentences), folds=plan.folds)
    choices: list[Choices] = []
    tagged: list[Sentence] = []
    speeds: Mapping[str, float] = {}
    for fold in range(plan.folds):
        name = f"{CROSS_VALIDATION}, fold {fold + 1} of {plan.folds}"
        pairs = list(zip(sentences, numbers, strict=True))
        work = options.work_directory / CROSS_VALIDATION / f"fold-{fold + 1:02}"
        here = fold_plan(
            # Its sentences and words are given: it needs no tokenizer.
            replace(plan, options=replace(options, workdir=work), tokenizer=None),
            [sentence for sentence, number in pairs if number != fold],
            [sentence for sentence, number in pairs if number == fold],
        )
        with run.meter.stage(name):
            inside = Stages(Within(run.progress, name), Meter())
            system = train(inside, here)
            held_out = system.plan.parts[HELD_OUT].sentences
            with inside.stage("scoring") as report:
                choices.append(
                    count_choices(
                        held_out,
                        system.proposals.lists[HELD_OUT],
                        base=system.base,
                        kernel=system.kernel,
                        n_threads=options.threads,
                        progress=report,
                    )
                )
        tagged += held_out
        speeds = system.proposals.speeds
    return Validation(
        report=pooled(choices, seed=options.seed),
        gold=tagged,
        parsed=[sentence for found in choices for sentence in found.parsed],
        choices=choices,
        tags=None if plan.tagger is None else score_tags(sentences, tagged),
        speeds=speeds,
    )
