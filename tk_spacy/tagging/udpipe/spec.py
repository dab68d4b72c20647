"""UDPipe's tagger to be trained, with its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.errors import TreebankError
from tk_spacy.parsers.base import StepReport
from tk_spacy.parsers.udpipe.library import version
from tk_spacy.tagging.base import check_upos
from tk_spacy.tagging.udpipe.kind import KIND
from tk_spacy.tagging.udpipe.settings import TaggerSettings
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import word_line
from tk_spacy.utils.validation import check_names_of

MOST_BYTES = 250
"""Of a form or a lemma, or of UPOS, XPOS and FEATS together, in UTF-8: UDPipe stores their lengths,
and three characters more for the tags, in a byte."""
SECONDS = 0.0003
"""Of a word in one iteration."""


def make(name: str, settings: Mapping[str, Any], seed: int) -> UdpipeTaggerSpec:
    """A spec from settings by name.

    seed: UDPipe has its own fixed one.  Raises UserError for bad ones, and where UDPipe is not
    installed.
    """
    found = TaggerSettings(**check_names_of(TaggerSettings, settings))
    version()
    return UdpipeTaggerSpec(name=name, settings=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpipeTaggerSpec:
    """A UDPipe tagger with its settings: a `TaggerSpec`."""

    kind: ClassVar[str] = KIND.name
    given: ClassVar[bool] = False
    format: ClassVar[int] = 1

    name: str = KIND.name
    settings: TaggerSettings = field(default_factory=TaggerSettings)

    def about(self) -> dict[str, Any]:
        """The settings, and UDPipe's version."""
        return {**asdict(self.settings), "udpipe": version()}

    def training_key(self) -> list[Any]:
        """All that a trained tagger depends on beside its sentences."""
        return [self.format, version(), asdict(self.settings)]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Raises UserError where no word has a tag, and for a word that UDPipe cannot store."""
        check_upos(sentences)
        for sentence in sentences:
            tags = zip(sentence.upos, sentence.xpos, sentence.feats, strict=True)
            columns = {
                "FORM": sentence.forms,
                "LEMMA": sentence.lemmas,
                # "_" is nothing for UDPipe.
                "UPOS, XPOS and FEATS": ["".join(t for t in own if t != "_") for own in tags],
            }
            for column, values in columns.items():
                longest = max(values, key=lambda value: len(value.encode()))
                if (size := len(longest.encode())) > MOST_BYTES:
                    raise TreebankError(
                        sentence.path,
                        word_line(sentence, values.index(longest) + 1),
                        f"{column} {longest[:20] + '...'!r}: {size} bytes, and UDPipe's tagger "
                        f"takes {MOST_BYTES}; choose another tagger (tags.tagger)",
                    )

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core."""
        return words * self.settings.models * self.settings.iterations * SECONDS

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        """Train a tagger, in a process of its own, and write its files."""
        from tk_spacy.tagging.udpipe.training import train_udpipe_tagger  # noqa: PLC0415

        train_udpipe_tagger(train, dev, settings=self.settings, report=report).write_files(
            directory
        )

    def open(self, directory: Path) -> Any:
        """The tagger that `train` wrote."""
        from tk_spacy.tagging.udpipe.tagger import UdpipeTagger  # noqa: PLC0415

        return UdpipeTagger.from_disk(directory)
