"""The tags that a training learns from: predicted ones in place of the files'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tk_spacy.ensemble.trained_parsers import read_record
from tk_spacy.evaluation.report import Curve
from tk_spacy.evaluation.tags import TagScores, score_tags
from tk_spacy.features.schema import distrusts_xpos
from tk_spacy.tagging.base import Tagger
from tk_spacy.tagging.jackknife import tag_treebank
from tk_spacy.tokenizing.job import tokenizer_job
from tk_spacy.tokenizing.udpipe import UdpipeTokenizer
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.atomic_files import META
from tk_spacy.utils.progress import Stages
from tk_spacy.workflows.train.inputs import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Tagging:
    """What a training's tagger gave.

    tagger: trained and opened, None where the files' tags are learnt from.
    scores: of each part's tags.  seconds: wall time of the trainings, "whole" and "folds".
    tokenizer: of text, None where none was trained.
    curves: what the tagger's training on all of train measured as it went, where it did.
    """

    tagger: Tagger | None = None
    tokenizer: UdpipeTokenizer | None = None
    scores: Mapping[str, TagScores] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)


def tag_parts(run: Stages, plan: Plan) -> tuple[Plan, Tagging]:
    """The plan with predicted tags where it has a tagger, else as it is.

    The caller holds the work directory.
    """
    if plan.tagger is None:
        return plan, Tagging()
    options = plan.options
    gold = _with_useful_xpos({name: part.sentences for name, part in plan.parts.items()})
    job = None
    what = f"the {plan.tagger.name} tagger"
    if plan.tokenizer is not None:
        place = options.work_directory / "tokenizer"
        job = tokenizer_job(plan.tokenizer, gold["train"], gold.get("dev", []), place)
        what = f"a tokenizer and {what}"
        if job.is_kept:
            run.progress.note(f"taken over from {place.parent}: the tokenizer")
    with run.stage(f"training {what}, {plan.folds} folds") as report:
        made = tag_treebank(
            gold,
            plan.tagger,
            workdir=options.work_directory / "tags",
            folds=plan.folds,
            processes=options.processes,
            n_threads=options.threads,
            progress=lambda share: report(round(1000 * share), 1000),
            note=run.progress.note,
            beside=() if job is None else [job],
        )
    parts = {
        name: replace(part, sentences=made.parts[name], gold=part.sentences)
        for name, part in plan.parts.items()
    }
    scores = {name: score_tags(gold[name], part) for name, part in made.parts.items()}
    seconds = dict(made.seconds)
    if job is not None:
        seconds["tokenizer"] = job.seconds
    found = read_record(options.work_directory / "tags" / plan.tagger.name / META).get("curve")
    tagging = Tagging(
        tagger=made.tagger,
        tokenizer=None if job is None else job.open(),
        scores=scores,
        seconds=seconds,
        curves={"tagger": Curve.from_dict(found)} if isinstance(found, dict) else {},
    )
    return replace(plan, parts=parts), tagging


def _with_useful_xpos(parts: dict[str, list[Sentence]]) -> dict[str, list[Sentence]]:
    """The parts of a treebank without XPOS where no parser reads it: nothing to predict then."""
    if not distrusts_xpos(parts["train"], parts.get("dev", [])):
        return parts
    return {
        name: [replace(s, xpos=("_",) * len(s)) for s in sentences]
        for name, sentences in parts.items()
    }
