"""What UDPipe's trained models have in common: the parser's, the tagger's and the tokenizer's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

from tk_spacy.parsers.udpipe.library import load_model
from tk_spacy.utils.serialization import META, DamagedFileError, StoredModel, stored_file


@dataclass(frozen=True, eq=False, kw_only=True)
class UdpipeModel(StoredModel):
    """A trained model of UDPipe's, stored as its own bytes beside meta.json.

    WHAT: it is, for messages.  FILES: meta.json and the file of UDPipe's bytes.

    model: UDPipe's own bytes, with nothing but what this is a model of.
    settings: as trained.  about: further facts for meta.json, JSON values.
    """

    VERSION = OLDEST = 1
    WHAT: ClassVar[str]

    model: bytes
    settings: Any
    about: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _loaded(self) -> Any:
        return load_model(self.model, what=self.WHAT)

    def _more(self) -> dict[str, Any]:
        """The model's own fields in meta.json, JSON values."""
        return {}

    @classmethod
    @abstractmethod
    def _read_meta(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that meta.json has, as arguments.  May raise anything where it is damaged."""

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        _, weights = self.FILES
        return {
            META: self._meta(asdict(self.settings), {**self._more(), **self.about}),
            weights: self.model,
        }

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        _, weights = cls.FILES
        model = stored_file(files, weights)
        if not model:
            raise DamagedFileError(weights, "it is empty")
        return cls(model=model, **cls._read_meta(meta))
