"""A trained system: what a plan's training gave, before anything of it is scored or saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tk_spacy.parsers.arc_shares import ArcShares
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.training import TrainingStats
from tk_spacy.workflows.train.candidate_lists import Proposals
from tk_spacy.workflows.train.inputs import Plan
from tk_spacy.workflows.train.tagging import Tagging


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """Tagger, parsers, combiner and reranker.

    plan: with predicted tags where there is a tagger.  base: the reranker without kernel, None
    where there is none beside `kernel`, the final one, which holds the combiner.
    notes: warnings that the training gave.
    shares: what it says of train's arcs, without having seen them, None where it cannot; only for
        distillation.  temperature: of these, in units of its final scores.
    """

    plan: Plan
    tagging: Tagging
    proposals: Proposals
    base: Reranker | None
    kernel: Reranker
    stats: TrainingStats
    notes: tuple[str, ...] = ()
    shares: Sequence[ArcShares | None] = ()
    temperature: float = 1.0
