"""The tags that a training learns from: predicted ones in place of the files'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tk_spacy.evaluation.tags import TagScores, score_tags
from tk_spacy.tagging.base import Tagger
from tk_spacy.tagging.jackknife import tag_treebank
from tk_spacy.utils.progress import Stages
from tk_spacy.workflows.train.inputs import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Tagging:
    """What a training's tagger gave.

    tagger: trained and opened, None where the files' tags are learnt from.
    scores: of each part's tags.  seconds: wall time of the trainings, "whole" and "folds".
    """

    tagger: Tagger | None = None
    scores: Mapping[str, TagScores] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


def tag_parts(run: Stages, plan: Plan) -> tuple[Plan, Tagging]:
    """The plan with predicted tags where it has a tagger, else as it is.

    The caller holds the work directory.
    """
    if plan.tagger is None:
        return plan, Tagging()
    options = plan.options
    gold = {name: part.sentences for name, part in plan.parts.items()}
    with run.stage(f"training the {plan.tagger.name} tagger, {options.folds} folds") as report:
        made = tag_treebank(
            gold,
            plan.tagger,
            workdir=options.work_directory / "tags",
            folds=options.folds,
            processes=options.processes,
            n_threads=options.threads,
            progress=lambda share: report(round(1000 * share), 1000),
            note=run.progress.note,
        )
    parts = {
        name: replace(part, sentences=made.parts[name], gold=part.sentences)
        for name, part in plan.parts.items()
    }
    scores = {name: score_tags(gold[name], part) for name, part in made.parts.items()}
    return replace(plan, parts=parts), Tagging(made.tagger, scores, made.seconds)
