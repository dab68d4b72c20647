"""What UDPipe's trained models have in common: the parser's, the tagger's and the tokenizer's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from tk_spacy.parsers.udpipe.library import load_model
from tk_spacy.utils.claimed_sizes import ClaimError, too_much
from tk_spacy.utils.serialization import META, DamagedFileError, StoredModel, reading, stored_file

MOST_RATIO = 300
"""Of a part of a model to its compressed bytes; in trained models it is below 20."""
MOST_UNPACKED = 1 << 27
"""Bytes that a part may have whatever its ratio: of a tiny treebank it is mostly zeros."""


def check_packed_parts(model: bytes) -> None:
    """Raises ClaimError where a compressed part of UDPipe's bytes claims far too much.

    UDPipe takes the memory that such a part's header asks for, up to 4 GB.  Headers have a check
    sum (sizes before and after as uint32, and a sum of both), so they are found by it.
    """
    if len(model) < 12:
        return
    codes = np.frombuffer(model, dtype=np.uint8).astype(np.uint32)
    whole = codes[:-3] | codes[1:-2] << 8 | codes[2:-1] << 16 | codes[3:] << 24
    before, after, check = whole[:-8], whole[4:-4], whole[8:]
    expected = before * np.uint32(19991) + after * np.uint32(199999991) + np.uint32(1234567890)
    for place in np.flatnonzero(expected == check).tolist():
        claimed, there = int(before[place]), min(int(after[place]), len(model))
        if claimed > MOST_UNPACKED and claimed > MOST_RATIO * there:
            raise ClaimError(too_much("a part", claimed, there))


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
        with reading(weights):
            check_packed_parts(model)
        return cls(model=model, **cls._read_meta(meta))
