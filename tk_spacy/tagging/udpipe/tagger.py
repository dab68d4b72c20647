"""A trained UDPipe tagger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Self

from tk_spacy.errors import UserError
from tk_spacy.parsers.udpipe.library import load_model, udpipe
from tk_spacy.tagging.base import Tags
from tk_spacy.tagging.udpipe.kind import FORMAT
from tk_spacy.tagging.udpipe.settings import TaggerSettings
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.serialization import META, StoredModel

WEIGHTS = "tagger.udpipe"


@dataclass(frozen=True, eq=False, kw_only=True)
class UdpipeTagger(StoredModel):
    """A trained UDPipe tagger: a `Tagger`.

    model: UDPipe's own bytes, a tagger without tokenizer and parser.  settings: as trained.
    columns: of LEMMA, UPOS, XPOS and FEATS those that the treebank had filled.
    about: further facts for meta.json, JSON values.
    """

    FORMAT = FORMAT
    VERSION = OLDEST = 1
    FILES = (META, WEIGHTS)

    model: bytes
    settings: TaggerSettings
    columns: tuple[str, ...]
    about: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _loaded(self) -> Any:
        return load_model(self.model, what="tagger")

    @property
    def upos_tags(self) -> tuple[str, ...]:
        """The UPOS tags that it can give; empty where a model was made before they were noted."""
        return tuple(map(str, self.about.get("upos", ())))

    def tag(self, sentences: Iterable[Sentence]) -> Iterator[Tags]:
        """The tags of each sentence from its words alone, in order.

        Raises UserError where UDPipe is not installed.
        """
        library, model = udpipe(), self._loaded
        for sentence in sentences:
            error = library.ProcessingError()
            own = library.Sentence()
            for form in sentence.forms:
                own.addWord(form)
            if not model.tag(own, model.DEFAULT, error):
                place = f"{sentence.path}:{sentence.line}"
                raise UserError(f"{place}: UDPipe cannot tag this sentence: {error.message}")
            words = list(own.words)[1:]
            yield Tags(
                tuple(w.lemma or "_" for w in words),
                tuple(w.upostag or "_" for w in words),
                tuple(w.xpostag or "_" for w in words),
                tuple(w.feats or "_" for w in words),
            )

    # Storage

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        more = {"columns": list(self.columns), **self.about}
        return {META: self._meta(asdict(self.settings), more), WEIGHTS: self.model}

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        if not files[WEIGHTS]:
            raise ValueError(f"{WEIGHTS} is empty")
        return cls(
            model=files[WEIGHTS],
            settings=TaggerSettings(**meta["settings"]),
            columns=tuple(map(str, meta["columns"])),
            about=cls._about(meta, "columns"),
        )
