"""Trained models as directories: what `tk-spacy train` wrote, opened for use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import REPORT_FORMAT, TrainReport
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.names import FILE_PREFIX
from tk_spacy.reranker.model import Reranker
from tk_spacy.utils.model_dirs import is_parser, model_places
from tk_spacy.utils.serialization import RERANKER_FORMAT

if TYPE_CHECKING:
    pass

REPORT_JSON, REPORT_MARKDOWN = "report.json", "report.md"


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model directory.

    component: name of the reranker in the spaCy pipeline that the directory is; None where it holds
        a reranker alone.
    report: of its training, None where the directory has none.
    """

    path: Path
    reranker: Reranker
    component: str | None
    report: TrainReport | None

    @property
    def external_parsers(self) -> dict[str, bool]:
        """See `external_parsers`."""
        return external_parsers(self.reranker)

    def candidate_source(
        self, inventory: LabelInventory, *, n_threads: int | None = None
    ) -> tuple[list[ParserSource], int]:
        """The model's own parsers, and the number of candidates that they are asked for.

        Raises UserError where the model has none, and learnt from no trees in files either.
        """
        if self.component is None and self.external_parsers:
            return [], int(self.reranker.about["candidates"]["k"])
        if self.component is None:
            raise UserError(
                f"{self.path}: the model has no parser of its own; give it k-best files, made by "
                f"the parser that it was trained with"
            )
        from tk_spacy.parsers.spacy_transition.loading import load_pipeline  # noqa: PLC0415
        from tk_spacy.pipeline.tk_reranker import TkReranker  # noqa: PLC0415  (imports spaCy)

        nlp = load_pipeline(self.path)
        component = nlp.get_pipe(self.component)
        if not isinstance(component, TkReranker):
            raise UserError(f"{self.path}: component {self.component!r} is no tk_reranker")
        component.n_threads = n_threads
        try:
            own = component.find_sources(
                self.reranker, inventory, elsewhere=list(self.external_parsers)
            )
        except UserError as error:
            raise UserError(f"{self.path}: {error}") from error
        return own, component.k

    def in_order(
        self, sources: Sequence[ParserSource], *, n_threads: int | None = None
    ) -> MergedSource:
        """See `merged_in_order`."""
        return merged_in_order(self.reranker, sources, n_threads=n_threads)


def external_parsers(reranker: Reranker) -> dict[str, bool]:
    """The parsers whose trees a model needs in files: by the names of their scores, whether k-best.

    None where its own parsers are all that it learnt from.
    """
    parsers = dict(reranker.about.get("views") or {})
    return {
        name.removeprefix(FILE_PREFIX): bool(about.get("scored"))
        for name, about in parsers.items()
        if name.startswith(FILE_PREFIX)
    }


def merged_in_order(
    reranker: Reranker, sources: Sequence[ParserSource], *, n_threads: int | None = None
) -> MergedSource:
    """Sources in the order in which a model learnt from them, the main one first."""
    order = list(reranker.about.get("sources") or [])
    place = {name: i for i, name in enumerate(order)}
    ordered = sorted(sources, key=lambda s: place.get(s.names[0], len(order)))
    return MergedSource(ordered, n_threads=n_threads)


def open_model(path: Path) -> Model:
    """The model in a directory, its parser not yet loaded.

    Raises UserError where there is no such directory, or no model of ours in it.
    """
    places = model_places(path, RERANKER_FORMAT, maker="train", factory="tk_reranker")
    component = None if places[0] == path else places[0].name
    if component is None and is_parser(path):
        raise UserError(
            f"{path}: a sampling parser without a reranker; use `tk-spacy parse`, or make a model "
            f"with both by `tk-spacy train`"
        )
    return Model(path, Reranker.from_disk(places[0]), component, _read_report(path / REPORT_JSON))


def _read_report(path: Path) -> TrainReport | None:
    """The report, None where it is missing or not ours: a model works without it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return TrainReport.from_dict(data) if data["format"] == REPORT_FORMAT else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
