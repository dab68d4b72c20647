"""Trained models as directories: what `tk-spacy train` wrote, opened for use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import REPORT_FORMAT, TrainReport
from tk_spacy.kbest.candidates import LONG_LIST, LabelInventory
from tk_spacy.kbest.reader import DEFAULT_SOURCE
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.base import StoredParser
from tk_spacy.parsers.kinds import ParserKind, all_kinds, stored_kind
from tk_spacy.parsers.names import SEARCHES, Search
from tk_spacy.reranker.model import Reranker
from tk_spacy.tagging.base import Tagger
from tk_spacy.tagging.kinds import all_kinds as all_taggers
from tk_spacy.tokenizing.base import Tokenizer
from tk_spacy.utils.model_dirs import is_pipeline, is_reranker, kind_of, model_places
from tk_spacy.utils.serialization import META, RERANKER_FORMAT, ReadModels, each_read_once

FAST_FOLDER = "fast"
"""Where a model has its fast parser, a pipeline of its own."""
REPORT_JSON, REPORT_MARKDOWN, REPORT_HTML = "report.json", "report.md", "report.html"


class PipelineLoader:
    """Loads spaCy pipelines, each only once: for the parsers and the tagger of one model.

    They may share a pipeline where sentences are not tagged while others are parsed.
    Models of ours that pipelines hold are read once, too, if they are read in `reading`.
    """

    def __init__(self) -> None:
        self._pipelines: dict[str, Any] = {}
        self._models: ReadModels = {}

    def __call__(self, path: str | Path) -> Any:
        """The pipeline.  Raises UserError where there is none."""
        from tk_spacy.parsers.spacy_transition.loading import load_pipeline  # noqa: PLC0415 (spaCy)

        name = str(Path(path))
        if name not in self._pipelines:
            with self.reading():
                self._pipelines[name] = load_pipeline(name)
        return self._pipelines[name]

    def reading(self) -> AbstractContextManager[None]:
        """A block in which what was read already is not read again; see `each_read_once`."""
        return each_read_once(self._models)


def pipeline_loader() -> PipelineLoader:
    """A new loader."""
    return PipelineLoader()


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
        """The parsers whose trees the model needs in files; see `Provenance.file_parsers`."""
        return self.reranker.provenance.file_parsers

    def open_parsers(
        self,
        inventory: LabelInventory,
        *,
        search: Search | None = None,
        n_threads: int | None = None,
        load: PipelineLoader | None = None,
    ) -> Parsers:
        """The model's own parsers.

        search: how spaCy's looks for its trees, None for the way the model learnt from.
        load: loads the pipeline, None for a new one.
        Raises UserError where the model has none, and learnt from no trees in files either.
        """
        if self.component is None:
            made = self.reranker.provenance
            if not self.external_parsers:
                raise UserError(
                    f"{self.path}: the model has no parser of its own; give it k-best files, made "
                    f"by the parser that it was trained with"
                )
            k = LONG_LIST if made.candidates is None else made.candidates.k
            return Parsers([], self.reranker, k)
        nlp = (load or pipeline_loader())(self.path)
        return _reranked_parsers(
            nlp.get_pipe(self.component), self.reranker, inventory,
            where=str(self.path), search=search, n_threads=n_threads,
        )  # fmt: skip

    def in_order(
        self, sources: Sequence[ParserSource], *, n_threads: int | None = None
    ) -> MergedSource:
        """See `merged_in_order`."""
        return merged_in_order(self.reranker, sources, n_threads=n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class Parsers:
    """The parsers of a model, opened.

    sources: the main one first; none where all trees come from files.
    reranker: that they propose trees to, None where there is none.
    k: candidates that they are usually asked for.
    """

    sources: list[ParserSource]
    reranker: Reranker | None
    k: int


def open_parsers(
    path: str | Path,
    inventory: LabelInventory,
    *,
    search: Search | None = None,
    n_threads: int | None = None,
    load: PipelineLoader | None = None,
) -> Parsers:
    """The parsers of whatever has some: all that open a model's parsers do it here.

    path: directory of a model of ours, of a parser alone, or of any spaCy pipeline with a parser;
        or the name of a spaCy pipeline that is installed.
    inventory: table of labels for their lists.
    search: how spaCy's parser looks for its trees, None for the model's own way.
    load: loads the pipeline, None for a new one.
    Of a pipeline without a trained reranker it is the spaCy parser, else the first one of ours.
    Raises UserError where there is no parser.
    """
    place = Path(path)
    if stored_kind(place) is not None:
        return Parsers([_stored_source(place, inventory, n_threads)], None, LONG_LIST)
    if is_reranker(place):
        return open_model(place).open_parsers(inventory, n_threads=n_threads)
    from tk_spacy.pipeline.loading import find_reranker, proposing_parser  # noqa: PLC0415
    from tk_spacy.pipeline.sources import pipeline_sources  # noqa: PLC0415

    nlp = (load or pipeline_loader())(path)
    component = find_reranker(nlp)
    if component is not None and component.reranker is not None:
        return _reranked_parsers(
            component, component.reranker, inventory,
            where=str(path), search=search, n_threads=n_threads,
        )  # fmt: skip
    sources = pipeline_sources(
        nlp, [proposing_parser(nlp, where=str(path))], search=search or SEARCHES[0],
        inventory=inventory, n_threads=n_threads,
    )  # fmt: skip
    return Parsers(sources, None, LONG_LIST)


def open_main_parser(
    path: Path,
    inventory: LabelInventory,
    *,
    n_threads: int | None = None,
    load: PipelineLoader | None = None,
) -> ParserSource:
    """One parser of whatever has some, without those beside it: for `tk-spacy parse`.

    A parser alone; of a pipeline the one that parses alone (the sampling parser), wherever it
    stands, else the main one, spaCy's without its right-to-left twin.
    load: loads the pipeline, None for a new one.
    Raises UserError where there is none.
    """
    if is_reranker(path):
        raise UserError(
            f"{path}: a reranker without a parser of its own; use `tk-spacy rerank` with the "
            "trees of the parsers that it was trained with"
        )
    if not is_pipeline(path):
        return _stored_source(path, inventory, n_threads)
    alone = {kind.format for kind in all_kinds().values() if kind.parses_alone and kind.format}
    places = [child for child in sorted(path.iterdir()) if kind_of(child) in alone]
    if places:
        return _stored_source(places[0], inventory, n_threads)
    from tk_spacy.pipeline.loading import proposing_parsers  # noqa: PLC0415 (spaCy)
    from tk_spacy.pipeline.sources import pipeline_sources  # noqa: PLC0415

    nlp = (load or pipeline_loader())(path)
    names, _ = proposing_parsers(nlp, where=str(path))
    (source,) = pipeline_sources(
        nlp, names[:1], inventory=inventory, n_threads=n_threads, twins=False
    )
    return source


def fast_pipeline(path: Path) -> Path:
    """Where a model has its fast parser.  Raises UserError where it has none."""
    place = path / FAST_FOLDER
    if not is_pipeline(place):
        raise UserError(
            f"{path}: the model has no fast parser; train one with `tk-spacy train --distill`"
        )
    return place


def open_tagger(path: Path, *, load: PipelineLoader | None = None) -> Tagger | None:
    """The tagger of whatever has one, None where there is none.

    path: directory of a model of ours or of any spaCy pipeline, or the name of an installed one.
    Of a pipeline it is all of its components that set tags and lemmas; where that is one that is
    stored by us (see `TaggerKind.model`), it is opened without spaCy's pipeline.
    load: loads the pipeline, None for a new one.
    """
    if path.exists() and not is_pipeline(path):
        return None
    from tk_spacy.tagging.spacy_tagger.tagger import PipelineTagger  # noqa: PLC0415

    stored = {kind.format: kind for kind in all_taggers().values() if kind.format}
    for child in _children(path):
        if (kind := stored.get(kind_of(child) or "")) is not None:
            with nullcontext() if load is None else load.reading():
                tagger: Tagger = kind.model_class().from_disk(child)
            return tagger
    tagger = PipelineTagger((load or pipeline_loader())(path))
    return tagger if tagger.columns else None


def open_tokenizer(path: Path) -> Tokenizer | None:
    """The tokenizer of text in a pipeline that `tk-spacy train` wrote; None where it has none."""
    from tk_spacy.tokenizing.udpipe import FORMAT, UdpipeTokenizer  # noqa: PLC0415

    if not is_pipeline(path):
        return None
    places = [child for child in sorted(path.iterdir()) if kind_of(child) == FORMAT]
    return UdpipeTokenizer.from_disk(places[0]) if places else None


def learnt_own_tags(path: Path) -> bool:
    """Whether a directory holds a model of ours that learnt from its own tagger's tags.

    It reads what the model says of itself and no weights; False where that cannot be read.
    """
    if not is_pipeline(path):
        return False
    places = [child for child in _children(path) if kind_of(child) == RERANKER_FORMAT]
    try:
        return any("tagger" in json.loads((p / META).read_text(encoding="utf-8")) for p in places)
    except (OSError, ValueError, RecursionError):
        return False


def _children(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else []


def open_stored_parser(path: Path) -> tuple[ParserKind, StoredParser]:
    """The parser that a directory holds alone, and its kind.

    Raises UserError where the directory is missing, ModelError where it holds no parser.
    """
    kind = stored_kind(path) or next(k for k in all_kinds().values() if k.parses_alone)
    model_places(path, kind.format or "", maker="train-parser", factory=kind.factory or "")
    parser: StoredParser = kind.spec_class().model_class().from_disk(path)
    return kind, parser


def _stored_source(path: Path, inventory: LabelInventory, n_threads: int | None) -> ParserSource:
    kind, parser = open_stored_parser(path)
    source: ParserSource = kind.spec_class().source_of(
        parser, inventory=inventory, n_threads=n_threads, name=kind.name
    )
    return source


def _reranked_parsers(
    component: Any,
    reranker: Reranker,
    inventory: LabelInventory,
    *,
    where: str,
    search: Search | None,
    n_threads: int | None,
) -> Parsers:
    """The parsers of a pipeline for its reranker, which is a component of it."""
    from tk_spacy.pipeline.tk_reranker import TkReranker  # noqa: PLC0415  (imports spaCy)

    if not isinstance(component, TkReranker):
        raise UserError(f"{where}: component {component.name!r} is no tk_reranker")
    component.n_threads = n_threads
    component.search = search or component.search
    try:
        own = component.find_sources(
            reranker, inventory, elsewhere=list(reranker.provenance.file_parsers)
        )
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    return Parsers(own, reranker, component.k)


def merged_in_order(
    reranker: Reranker, sources: Sequence[ParserSource], *, n_threads: int | None = None
) -> MergedSource:
    """Sources in the order in which a model learnt from them, the main one first."""
    order = reranker.provenance.sources
    place = {name: i for i, name in enumerate(order)}
    ordered = sorted(sources, key=lambda s: place.get(s.names[0], len(order)))
    return MergedSource(ordered, n_threads=n_threads)


def open_model(path: str | Path, *, load: PipelineLoader | None = None) -> Model:
    """The model in a directory, its parser not yet loaded.

    load: loads its pipeline later, whose reranker it will be.
    Raises UserError where there is no such directory, or no model of ours in it.
    """
    path = Path(path)
    places = model_places(path, RERANKER_FORMAT, maker="train", factory="tk_reranker")
    component = None if places[0] == path else places[0].name
    if component is None and (kind := stored_kind(path)) is not None:
        raise UserError(
            f"{path}: a {kind.name} parser without a reranker; use `tk-spacy parse`, or make a "
            f"model with both by `tk-spacy train`"
        )
    with nullcontext() if load is None else load.reading():
        reranker = Reranker.from_disk(places[0])
    return Model(path, reranker, component, _read_report(path / REPORT_JSON))


def _read_report(path: Path) -> TrainReport | None:
    """The report, None where it is missing or not ours: a model works without it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return TrainReport.from_dict(data) if data["format"] == REPORT_FORMAT else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def main_source(reranker: Reranker) -> str:
    """What the only score of a k-best file is called where the file does not say."""
    weighed = list(reranker.combination.betas) if reranker.combination else []
    return weighed[0] if weighed else DEFAULT_SOURCE
