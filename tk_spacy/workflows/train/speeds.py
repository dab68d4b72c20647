"""What a system's speeds are worth: the exact one, and those at which quick parsers may decide."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.evaluation.attachment import count_sentences, scores_from_counts
from tk_spacy.evaluation.report import SpeedReport
from tk_spacy.kbest.candidates import CandidateList, in_batches
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.names import FILE
from tk_spacy.reranker.cascade import quick_places
from tk_spacy.reranker.speeds import EXACT, SPEEDS
from tk_spacy.reranker.staged import Staged
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.progress import Stages
from tk_spacy.workflows.train.candidate_lists import Proposals
from tk_spacy.workflows.train.inputs import Plan
from tk_spacy.workflows.train.system import System


def quick_sources(plan: Plan, proposals: Proposals) -> tuple[str, ...]:
    """The sources that may decide alone where they are sure: the parsers of the main one's kind.

    None where they are all, or where there are trees in files, which are there in any case.
    """
    kinds = [spec.kind for spec in plan.parsers]
    if not proposals.sources or FILE in kinds or len(set(kinds)) < 2:
        return ()
    pairs = zip(kinds, proposals.sources, strict=True)
    return tuple(name for kind, source in pairs if kind == kinds[0] for name in source.names)


def quick_lists(
    run: Stages, plan: Plan, proposals: Proposals, quick: Sequence[str]
) -> list[CandidateList]:
    """The lists of dev that the quick parsers make alone, as `Staged` has them made."""
    options = plan.options
    found: list[CandidateList] = []
    places = quick_places(quick, [source.names for source in proposals.sources])
    # Of all sources, as a parser may look for other trees where it has company.
    source = MergedSource(proposals.sources, n_threads=options.threads)
    k = options.list_length
    with run.stage("candidates of dev by the quick parsers") as report:
        for batch in in_batches(plan.dev, lambda sentence: k * len(sentence)):
            proposed = source.proposed(batch, k=k, places=places)
            found += source.joined(batch, proposed, k=k)
            report(len(found), len(plan.dev))
    return found


def measure_speeds(
    run: Stages, system: System, part: str, gold: Sequence[Sentence]
) -> dict[str, SpeedReport]:
    """What each speed is worth on a part's sentences; nothing for a system without cascade.

    The parsers propose anew, with tags that are there.  Times are of this machine.
    """
    options = system.plan.options
    if system.kernel.cascade is None:
        return {}
    found: dict[str, SpeedReport] = {}
    with run.stage(f"timing the speeds on {part}"):
        for speed in SPEEDS:
            source = MergedSource(_fresh_sources(system.plan), n_threads=options.threads)
            staged = Staged(
                system.kernel, source, options.list_length, speed=speed, n_threads=options.threads
            )
            started = time.perf_counter()
            parsed = [decision.chosen(s) for s, decision in staged.decisions(gold)]
            seconds = time.perf_counter() - started
            scores = scores_from_counts(count_sentences(gold, parsed))
            found[speed] = SpeedReport(
                left=100 * staged.left / len(gold) if speed != EXACT else 0.0,
                uas=scores.uas,
                las=scores.las,
                tokens_per_second=sum(map(len, gold)) / max(seconds, 1e-9),
            )
    return found


def _fresh_sources(plan: Plan) -> list[ParserSource]:
    """The parsers, opened anew: those that made the lists may remember the sentences."""
    work = plan.options.work_directory
    return [
        parser.open(work / parser.name, inventory=plan.inventory, n_threads=plan.options.threads)
        for parser in plan.parsers
    ]
