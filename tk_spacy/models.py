"""Trained models as directories: what `tk-spacy train` wrote, opened for use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tk_spacy.candidates import LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.model_files import META, PARSER_FORMAT, RERANKER_FORMAT
from tk_spacy.report import REPORT_FORMAT, TrainReport
from tk_spacy.reranker import SCHEMA, SUPPORT, Reranker
from tk_spacy.views.merging import MergedSource
from tk_spacy.views.protocol import FILE_PREFIX, ViewSource

if TYPE_CHECKING:
    from tk_spacy.sampling.parser import SamplingParser

REPORT_JSON, REPORT_MARKDOWN = "report.json", "report.md"
PIPELINE_CONFIG = "config.cfg"


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
    def file_views(self) -> dict[str, bool]:
        """See `file_views`."""
        return file_views(self.reranker)

    def candidate_source(
        self, inventory: LabelInventory, *, n_threads: int | None = None
    ) -> tuple[list[ViewSource], int]:
        """The model's own parsers, and the number of candidates that they are asked for.

        Raises UserError where the model has none, and learnt from no trees in files either.
        """
        if self.component is None and self.file_views:
            return [], int(self.reranker.about["candidates"]["k"])
        if self.component is None:
            raise UserError(
                f"{self.path}: the model has no parser of its own; give it k-best files, made by "
                f"the parser that it was trained with"
            )
        from tk_spacy.component import TkReranker  # noqa: PLC0415  (imports spaCy)
        from tk_spacy.upstream.loading import load_pipeline  # noqa: PLC0415

        nlp = load_pipeline(self.path)
        component = nlp.get_pipe(self.component)
        if not isinstance(component, TkReranker):
            raise UserError(f"{self.path}: component {self.component!r} is no tk_reranker")
        component.n_threads = n_threads
        try:
            own = component.find_sources(self.reranker, inventory, elsewhere=list(self.file_views))
        except UserError as error:
            raise UserError(f"{self.path}: {error}") from error
        return own, component.k

    def in_order(
        self, sources: Sequence[ViewSource], *, n_threads: int | None = None
    ) -> MergedSource:
        """See `merged_in_order`."""
        return merged_in_order(self.reranker, sources, n_threads=n_threads)


def file_views(reranker: Reranker) -> dict[str, bool]:
    """The parsers whose trees a model needs in files: by the names of their scores, whether k-best.

    None where its own parsers are all that it learnt from.
    """
    views = dict(reranker.about.get("views") or {})
    return {
        name.removeprefix(FILE_PREFIX): bool(about.get("scored"))
        for name, about in views.items()
        if name.startswith(FILE_PREFIX)
    }


def merged_in_order(
    reranker: Reranker, sources: Sequence[ViewSource], *, n_threads: int | None = None
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
    places = _places(path, RERANKER_FORMAT, maker="train", factory="tk_reranker")
    component = None if places[0] == path else places[0].name
    if component is None and is_parser(path):
        raise UserError(
            f"{path}: a sampling parser without a reranker; use `tk-spacy parse`, or make a model "
            f"with both by `tk-spacy train`"
        )
    return Model(path, Reranker.from_disk(places[0]), component, _read_report(path / REPORT_JSON))


def read_parser(path: Path, *, component: str | None = None) -> SamplingParser:
    """The sampling parser in a directory: one alone, or a pipeline's.

    component: which of the pipeline's, None for the first one.
    Raises UserError where there is none.
    """
    from tk_spacy.sampling.parser import SamplingParser  # noqa: PLC0415  (heavy)

    places = _places(path, PARSER_FORMAT, maker="train-parser", factory="tk_parser")
    named = [place for place in places if place.name == component]
    return SamplingParser.from_disk((named or places)[0])


def is_parser(path: Path) -> bool:
    """Whether a directory holds a sampling parser alone, perhaps a damaged one."""
    return _kind_of(path) == PARSER_FORMAT


def is_pipeline(path: Path) -> bool:
    """Whether a directory is a spaCy pipeline."""
    return (path / PIPELINE_CONFIG).is_file()


def has_parser(path: Path) -> bool:
    """Whether a directory holds a sampling parser, alone or in a pipeline."""
    if is_pipeline(path):
        return any(_kind_of(child) == PARSER_FORMAT for child in path.iterdir())
    return is_parser(path)


def is_reranker(path: Path) -> bool:
    """Whether a directory holds a reranker alone, perhaps a damaged one."""
    return not is_pipeline(path) and _kind_of(path) == RERANKER_FORMAT


def _kind_of(path: Path) -> str | None:
    """The format of a model, by its other files where meta.json is damaged or missing."""
    found = _format_of(path)
    if found is not None or not (path / SCHEMA).is_file():
        return found
    return RERANKER_FORMAT if (path / SUPPORT).is_file() else PARSER_FORMAT


def _places(path: Path, kind: str, *, maker: str, factory: str) -> list[Path]:
    """Where models of a kind may be: in the directory itself, or in a pipeline's components.

    maker: command that makes such a directory.  factory: of such components.
    Raises UserError where the directory is missing, or a pipeline without such a component.
    """
    if not path.is_dir():
        what = "a file, not a model directory" if path.exists() else "no such model directory"
        raise UserError(f"{path}: {what}; `tk-spacy {maker}` makes one")
    if not is_pipeline(path):
        return [path]
    inside = [child for child in sorted(path.iterdir()) if _kind_of(child) == kind]
    if not inside:
        raise UserError(
            f"{path}: a spaCy pipeline without a trained {factory}; `tk-spacy {maker}` makes one"
        )
    return inside


def _format_of(path: Path) -> str | None:
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return meta.get("format") if isinstance(meta, dict) else None


def _read_report(path: Path) -> TrainReport | None:
    """The report, None where it is missing or not ours: a model works without it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return TrainReport.from_dict(data) if data["format"] == REPORT_FORMAT else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
