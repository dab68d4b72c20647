"""UDPipe's tokenizer to be trained, with its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.errors import UserError
from tk_spacy.parsers.udpipe.library import version
from tk_spacy.tokenizing.settings import TokenizerSettings
from tk_spacy.tokenizing.training_text import has_text
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.requests import split_request
from tk_spacy.utils.validation import check_names_of

KIND = "udpipe"
NONE = "none"
SECONDS = {16: 4.8, 24: 7.6, 64: 32.0}
"""Of an epoch, by the network's dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpipeTokenizerSpec:
    """A UDPipe tokenizer with its settings, to be trained as parsers and taggers are."""

    kind: ClassVar[str] = KIND
    given: ClassVar[bool] = False
    format: ClassVar[int] = 1

    name: str = KIND
    settings: TokenizerSettings = field(default_factory=TokenizerSettings)

    def about(self) -> dict[str, Any]:
        """The settings, and UDPipe's version."""
        return {**asdict(self.settings), "udpipe": version()}

    def training_key(self) -> list[Any]:
        """All that a trained tokenizer depends on beside its text."""
        return [self.format, version(), asdict(self.settings)]

    def check(self, sentences: Iterable[Sentence]) -> None:
        """Raises UserError where the sentences do not tell how their text is written."""
        if not has_text(sentences):
            raise UserError(
                "the treebank does not tell where words stand together (SpaceAfter=No in MISC, or "
                "# text), so no tokenizer can be trained"
            )

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core, however large the treebank."""
        return self.settings.epochs * SECONDS[self.settings.dimension]

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: Any,
    ) -> None:
        """Train a tokenizer, in a process of its own, and write its files."""
        from tk_spacy.tokenizing.training import train_udpipe_tokenizer  # noqa: PLC0415

        made = train_udpipe_tokenizer(train, dev, settings=self.settings, report=report)
        made.write_files(directory)

    def open(self, directory: Path) -> Any:
        """The tokenizer that `train` wrote."""
        from tk_spacy.tokenizing.udpipe import UdpipeTokenizer  # noqa: PLC0415

        return UdpipeTokenizer.from_disk(directory)


def make_tokenizer(text: str) -> UdpipeTokenizerSpec | None:
    """The tokenizer that a user asks for: "udpipe", "udpipe:epochs=50", or "none" for none.

    Raises UserError for an unknown kind or setting.
    """
    if text == NONE:
        return None
    name, settings = split_request(text, what="tokenizer", example=f"{KIND}:epochs=50")
    if name != KIND:
        raise UserError(f"unknown tokenizer {text!r}; choose from {KIND}, {NONE}")
    try:
        found = TokenizerSettings(**check_names_of(TokenizerSettings, settings))
    except UserError as error:
        raise UserError(f"tokenizer {text!r}: {error}") from error
    version()
    return UdpipeTokenizerSpec(settings=found)


def tokenizer_line(about: Mapping[str, Any]) -> str:
    """One line about a model's tokenizer, from what its spec told about it."""
    epochs = about.get("epochs")
    return f"UDPipe, {epochs} epoch{'s' * (epochs != 1)}"
