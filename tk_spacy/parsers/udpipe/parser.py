"""A trained UDPipe parser: one tree for each sentence, no scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.errors import UserError
from tk_spacy.parsers.base import StoredParser
from tk_spacy.parsers.udpipe.kind import FORMAT
from tk_spacy.parsers.udpipe.library import udpipe
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.parsers.udpipe.stored import UdpipeModel
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS
from tk_spacy.trees.repair import repaired
from tk_spacy.utils.serialization import META

WEIGHTS = "parser.udpipe"
ROOT = "root"
"""What UDPipe calls the relation of the root's child, and no other."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UdpipeParser(UdpipeModel, StoredParser):
    """A trained UDPipe parser; see `UdpipeModel`.

    root_label: DEPREL of the root's child in the treebank, mostly "root".
    labels: the DEPREL values that it can give.
    """

    FORMAT, WHAT = FORMAT, "parser"
    FILES = (META, WEIGHTS)

    settings: UdpipeSettings
    root_label: str
    labels: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns LEMMA, UPOS, XPOS and FEATS that it reads, as far as training filled them.

        Parsers made before that was noted: all that they have embeddings of.
        """
        filled = self.about.get("columns", COLUMNS)
        return tuple(
            name
            for name in COLUMNS
            if name in filled and getattr(self.settings, f"embedding_{name.lower()}")
        )

    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[tuple[NDArray[np.int32], tuple[str, ...]]]:
        """The tree of each sentence, with one root: heads int32[n], and DEPREL values.

        n_threads: UDPipe uses one whatever is asked for.
        Raises UserError where UDPipe is not installed.
        """
        library, model = udpipe(), self._loaded
        options = f"beam_search={self.settings.beam_search}"
        for sentence in sentences:
            error = library.ProcessingError()
            own = library.Sentence()
            for form, *columns in zip(*word_columns(sentence), strict=True):
                word = own.addWord(form)
                word.lemma, word.upostag, word.xpostag, word.feats = columns
            if not model.parse(own, options, error):
                place = f"{sentence.path}:{sentence.line}"
                raise UserError(f"{place}: UDPipe cannot parse this sentence: {error.message}")
            words = list(own.words)[1:]
            heads, labels = repaired([w.head for w in words], [w.deprel for w in words])
            deprels = [
                self.root_label if not head else to_deprel(label)
                for head, label in zip(heads, labels, strict=True)
            ]
            yield np.array(heads, dtype=np.int32), tuple(deprels)

    # Storage

    def _more(self) -> dict[str, Any]:
        return {"root_label": self.root_label, "labels": list(self.labels)}

    @classmethod
    def _read_meta(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "settings": UdpipeSettings.from_dict(meta["settings"]),
            "root_label": str(meta["root_label"]),
            "labels": tuple(map(str, meta["labels"])),
            "about": cls._about(meta, "root_label", "labels"),
        }


def word_columns(sentence: Sentence) -> list[list[str]]:
    """FORM, LEMMA, UPOS, XPOS and FEATS as UDPipe's own reader gives them: empty for "_"."""
    others = (sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats)
    return [
        list(sentence.forms),
        *([("" if value == "_" else value) for value in column] for column in others),
    ]


def to_udpipe(deprel: str, head: int) -> str:
    """A label as UDPipe wants it: the root's child is called "root", and no other word.

    Other words' "root" gets an underscore in front, and so does what looks like that already.
    """
    if not head:
        return ROOT
    return f"_{deprel}" if deprel.lstrip("_") == ROOT else deprel


def to_deprel(label: str) -> str:
    """The inverse of `to_udpipe` for words that are not the root's child."""
    return label[1:] if label.startswith("_") and label.lstrip("_") == ROOT else label
