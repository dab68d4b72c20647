"""A trained UDPipe tagger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parsers.udpipe.library import udpipe
from tk_spacy.parsers.udpipe.stored import UdpipeModel
from tk_spacy.tagging.base import Tags
from tk_spacy.tagging.udpipe.kind import FORMAT
from tk_spacy.tagging.udpipe.settings import TaggerSettings
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.serialization import META

WEIGHTS = "tagger.udpipe"
SHOWN = 10
"""Words that an error tells of a sentence that stands in no file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UdpipeTagger(UdpipeModel):
    """A trained UDPipe tagger: a `Tagger`; see `UdpipeModel`.

    columns: of LEMMA, UPOS, XPOS and FEATS those that the treebank had filled.
    """

    FORMAT, WHAT = FORMAT, "tagger"
    FILES = (META, WEIGHTS)

    settings: TaggerSettings
    columns: tuple[str, ...]

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
                raise UserError(
                    f"{place_of(sentence)}: UDPipe cannot tag this sentence: {error.message}"
                )
            words = list(own.words)[1:]
            yield Tags(
                tuple(w.lemma or "_" for w in words),
                tuple(w.upostag or "_" for w in words),
                tuple(w.xpostag or "_" for w in words),
                tuple(w.feats or "_" for w in words),
            )

    # Storage

    def _more(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}

    @classmethod
    def _read_meta(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "settings": TaggerSettings(**meta["settings"]),
            "columns": tuple(map(str, meta["columns"])),
            "about": cls._about(meta, "columns"),
        }


def place_of(sentence: Sentence) -> str:
    """Where a sentence stands, or how it begins where it comes from no file."""
    if sentence.path:
        return f"{sentence.path}:{sentence.line}"
    more = " ..." if len(sentence) > SHOWN else ""
    return repr(" ".join(sentence.forms[:SHOWN]) + more)
