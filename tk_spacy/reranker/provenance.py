"""What a model was made from, typed; it is stored with the model in meta.json as JSON values.

Stored forms of earlier versions are read: what they did not know yet is None or empty.  The names
of what is stored stay as they were ("views" for the parsers, "upstream" for how they came to be),
so that earlier versions read what is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from tk_spacy.parsers.names import FILE_PREFIX, SPACY
from tk_spacy.reranker.interpolation import DEFAULT_METRIC
from tk_spacy.utils.stored_values import (
    stored_entry,
    stored_list,
    stored_table,
    stored_text,
    stored_texts,
    stored_whole,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFacts:
    """A part of the treebank: its file's name, its sizes, and the SHA-256 of the file."""

    file: str
    sentences: int
    words: int
    sha256: str

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "file": self.file,
            "sentences": self.sentences,
            "words": self.words,
            "sha256": self.sha256,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """How candidate lists were made.

    k: of their trees, at most.  search: of spaCy's parser.  files: names of the files of ready
    lists, by part.
    """

    k: int
    search: str
    files: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"k": self.k, "search": self.search, "files": dict(self.files)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a reranker was made from: the same for every run with the same input.

    title: of the treebank.  version: of this package.  treebank: its parts, by name.
    parsers: what each parser's spec told about it (`ParserSpec.about`), by the parser's name, the
        main one first; None where it is not known, empty where all lists were ready.
    parsers_trained: whether parsers were trained.  folds: of the jackknife, None where there was
        none.  pipeline: of spaCy, where one was given.
    tagger: whose tags the parsers and the reranker learnt from: its kind and settings; None where
        they learnt from the files' own.
    tokenizer: settings of the one that was trained, None where none was.  multiword: frequent
        multiword tokens of train that are never one word, in lower case, and their words (models of
        before have none beside a tokenizer).
    sources: names of the lists' scores, empty where they are not known (the oldest models).
    backward: whether spaCy's parser, of several the first, had its right-to-left twin, None without
        such a parser; `has_twin` tells it of each.
    scores: of each part by system, as `PartReport` has them.
    raw_scores, tuning_metric: as paper_grid, how the combination was tuned (`interpolation.tune`);
        stored where they are not the defaults.
    selected: how features were selected in the place of its kernel, and what it scores since then
        (see `workflows.select`); empty where none were.
    compressed: what was done to the model afterwards, in order.
    more: stored values that this version does not know.
    """

    title: str | None = None
    version: str | None = None
    treebank: Mapping[str, PartFacts] = field(default_factory=dict)
    parsers: Mapping[str, Mapping[str, Any]] | None = None
    parsers_trained: bool | None = None
    pipeline: str | None = None
    tagger: Mapping[str, Any] | None = None
    tokenizer: Mapping[str, Any] | None = None
    multiword: Mapping[str, str] = field(default_factory=dict)
    folds: int | None = None
    sources: tuple[str, ...] = ()
    candidates: Candidates | None = None
    backward: bool | None = None
    seed: int | None = None
    paper_grid: bool | None = None
    tuning_folds: int | None = None
    raw_scores: bool = False
    tuning_metric: str = DEFAULT_METRIC
    scores: Mapping[str, Any] | None = None
    selected: Mapping[str, Any] = field(default_factory=dict)
    compressed: tuple[Mapping[str, Any], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def own_parsers(self) -> list[str]:
        """Names of the parsers that lie in the model: all but those in files."""
        return [name for name in self.parsers or () if not name.startswith(FILE_PREFIX)]

    def has_twin(self, parser: str) -> bool | None:
        """Whether a spaCy parser had its right-to-left twin, None where it is not known."""
        about = (self.parsers or {}).get(parser, {})
        if "backward" in about:
            return bool(about["backward"])
        if parser != SPACY and parser in self.sources:
            return f"{parser}+backward" in self.sources
        return self.backward

    @property
    def file_parsers(self) -> dict[str, bool]:
        """The parsers in files: by the names of their scores, whether they gave k-best lists."""
        return {
            name.removeprefix(FILE_PREFIX): bool(about.get("scored"))
            for name, about in (self.parsers or {}).items()
            if name.startswith(FILE_PREFIX)
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON values, as they are stored."""
        made: dict[str, Any] = {"title": self.title, "tk_spacy": self.version}
        if self.treebank:
            made["treebank"] = {name: part.to_dict() for name, part in self.treebank.items()}
        if self.parsers_trained is not None:
            made["upstream"] = {
                "trained": self.parsers_trained,
                "pipeline": self.pipeline,
                "folds": self.folds,
            }
        if self.parsers is not None:
            made["views"] = {name: dict(about) for name, about in self.parsers.items()}
        if self.tagger is not None:
            made["tagger"] = dict(self.tagger)
        if self.tokenizer is not None:
            made["tokenizer"] = dict(self.tokenizer)
        if self.multiword:
            made["multiword"] = dict(self.multiword)
        if self.sources:
            made["sources"] = list(self.sources)
        if self.candidates is not None:
            made["candidates"] = self.candidates.to_dict()
        made |= {
            "backward": self.backward,
            "seed": self.seed,
            "paper_grid": self.paper_grid,
            "tuning_folds": self.tuning_folds,
        }
        if self.raw_scores:
            made["raw_scores"] = True
        if self.tuning_metric != DEFAULT_METRIC:
            made["tuning_metric"] = self.tuning_metric
        if self.scores is not None:
            made["scores"] = dict(self.scores)
        if self.selected:
            made["selected"] = dict(self.selected)
        if self.compressed:
            made["compressed"] = [dict(step) for step in self.compressed]
        return made | dict(self.more)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], *, strict: bool = True) -> Self:
        """The inverse of `to_dict`, also of what earlier versions stored.

        strict: raise LookupError, TypeError, ValueError or AttributeError where a value is not
            ours, instead of taking it as missing: a model works without most of them.
        """
        data = dict(stored)

        def read(name: str, how: Callable[[Any], Any], default: Any) -> Any:
            if name not in data:
                return default
            try:
                return how(data.pop(name))
            except (AttributeError, LookupError, TypeError, ValueError):
                if strict:
                    raise
                return default

        made = read("upstream", _how_made, {})
        candidates = read("candidates", _candidates, None)
        if candidates is None and "k" in data:  # as `initialize` stored it
            data["candidates"] = {"k": data.pop("k"), "search": data.pop("search", "")}
            candidates = read("candidates", _candidates, None)
        backward = data.pop("backward", None)
        return cls(
            title=data.pop("title", None),
            version=data.pop("tk_spacy", None),
            treebank=read("treebank", _treebank, {}),
            parsers=read("views", _parsers, _single_parser(made, backward)),
            parsers_trained=made.get("trained"),
            pipeline=made.get("pipeline"),
            folds=made.get("folds"),
            tagger=read("tagger", partial(_table_or_none, name="tagger"), None),
            tokenizer=read("tokenizer", partial(_table_or_none, name="tokenizer"), None),
            multiword=read("multiword", _multiword, {}),
            sources=read("sources", lambda names: tuple(stored_texts(names or [], "sources")), ()),
            candidates=candidates,
            backward=backward,
            seed=data.pop("seed", None),
            paper_grid=data.pop("paper_grid", None),
            tuning_folds=data.pop("tuning_folds", None),
            raw_scores=bool(data.pop("raw_scores", False)),
            tuning_metric=str(data.pop("tuning_metric", DEFAULT_METRIC)),
            scores=data.pop("scores", None),
            selected=read("selected", partial(stored_table, name="selected"), {}),
            compressed=read("compressed", _compressed, ()),
            more=data,
        )


def _table_or_none(stored: object, name: str) -> dict[str, Any] | None:
    return None if stored is None else stored_table(stored, name)


def _how_made(stored: object) -> dict[str, Any]:
    trained = stored_entry(stored, "trained", "upstream")
    return {**stored_table(stored, "upstream"), "trained": bool(trained)}


def _candidates(stored: object) -> Candidates:
    k, search = (stored_entry(stored, name, "candidates") for name in ("k", "search"))
    files = stored_table(stored, "candidates").get("files") or {}
    return Candidates(
        k=stored_whole(k, "candidates.k", least=1),
        search=stored_text(search, "candidates.search"),
        files=_texts(files, "candidates.files"),
    )


def _treebank(stored: object) -> dict[str, PartFacts]:
    parts = {}
    for name, part in stored_table(stored, "treebank").items():
        what = f"treebank.{name}"
        file, sentences, words, digest = (
            stored_entry(part, fact, what) for fact in ("file", "sentences", "words", "sha256")
        )
        parts[name] = PartFacts(
            file=stored_text(file, f"{what}.file"),
            sentences=stored_whole(sentences, f"{what}.sentences"),
            words=stored_whole(words, f"{what}.words"),
            sha256=stored_text(digest, f"{what}.sha256"),
        )
    return parts


def _parsers(stored: object) -> dict[str, Mapping[str, Any]]:
    return {
        name: stored_table(about, f"views.{name}")
        for name, about in stored_table(stored, "views").items()
    }


def _multiword(stored: object) -> dict[str, str]:
    return _texts(stored, "multiword")


def _texts(stored: object, name: str) -> dict[str, str]:
    return {
        key: stored_text(value, f"{key!r} of {name}")
        for key, value in stored_table(stored, name).items()
    }


def _compressed(stored: object) -> tuple[dict[str, Any], ...]:
    steps = stored_list(stored or [], "compressed")
    return tuple(stored_table(step, "a step of compressed") for step in steps)


def _single_parser(
    made: Mapping[str, Any], backward: bool | None
) -> dict[str, Mapping[str, Any]] | None:
    """The parsers of a model of the time when there was one spaCy parser at most."""
    if not made:
        return None
    if made["trained"]:
        settings = {name: made.get(name) for name in ("config", "max_steps")}
        return {SPACY: {**settings, "backward": bool(backward)}}
    return {SPACY: {"pipeline": made["pipeline"]}} if made.get("pipeline") else {}
