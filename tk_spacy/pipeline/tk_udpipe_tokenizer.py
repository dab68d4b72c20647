"""UDPipe's tokenizer as a spaCy pipeline's: from text to Docs of words, sentences found.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its schema of what `initialize` takes from
them.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab

from tk_spacy.errors import UserError
from tk_spacy.pipeline.tk_sentences import FACTORY as SENTENCES

if TYPE_CHECKING:
    from tk_spacy.tokenizing.udpipe import UdpipeTokenizer

REGISTERED = "tk_spacy.UdpipeTokenizer.v1"


@registry.tokenizers(REGISTERED)
def create_udpipe_tokenizer() -> Callable[[Language], "TkUdpipeTokenizer"]:
    """What makes the tokenizer of a pipeline; the pipeline's files fill it."""

    def make(nlp: Language) -> "TkUdpipeTokenizer":
        return TkUdpipeTokenizer(nlp.vocab)

    return make


class TkUdpipeTokenizer:
    """Makes Docs with one token a word, their sentence starts preset, from text.

    Multiword tokens are split into their words: `doc._.tk_surface` has the tokens of the text.
    The attribute `tokenizer` is the trained tokenizer, None where there is none yet; it may be set.
    """

    def __init__(self, vocab: Vocab, tokenizer: "UdpipeTokenizer | None" = None) -> None:
        self.vocab = vocab
        self.tokenizer = tokenizer

    def __call__(self, text: str) -> Doc:
        """The Doc of a text, one document.

        Raises UserError where the tokenizer is not trained, or UDPipe not installed.
        """
        from tk_spacy.spacy_io.surface import doc_from_text  # noqa: PLC0415

        sentences = self._needed().split([text])
        return doc_from_text(self.vocab, sentences, ends_in_space=text[-1:].isspace())

    def sentence_starts(self, text: str) -> list[int]:
        """Where in a text its sentences begin, in characters.

        Raises UserError as a call does.
        """
        return self._needed().sentence_starts(text)

    def _needed(self) -> "UdpipeTokenizer":
        if self.tokenizer is None:
            raise UserError(
                f"the tokenizer {REGISTERED} is not trained: `tk-spacy train` trains one; load the "
                "pipeline that it wrote, or set its attribute `tokenizer`"
            )
        return self.tokenizer

    def pipe(self, texts: Iterable[str], batch_size: int = 1000) -> Iterator[Doc]:
        """The Docs of texts, one after the other."""
        return map(self, texts)

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        train: str | Path | None = None,
        dev: str | Path | None = None,
        model: str | Path | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """Train a tokenizer from CoNLL-U files, or load a trained one.

        Examples do not tell how words are written in text, so they are not looked at.
        train, dev: the files; dev chooses the epoch.  A tokenizer that is there stays without
            `train`.
        model: directory of a tokenizer, or of a pipeline that has one.
        settings: by the names in `tk_spacy.tokenizing.settings`.

        Raises UserError where a file is wrong or does not tell how its text is written, or settings
        do not fit, or nothing is given and no tokenizer there.
        """
        if train is None and model is None and (dev is not None or settings):
            raise UserError(
                "[initialize.tokenizer]: dev and settings are for a training: name a CoNLL-U file "
                "as train, or leave them out"
            )
        if model is not None:
            if train is not None or dev is not None or settings:
                raise UserError(
                    "[initialize.tokenizer]: a model is loaded as it is: give no more than model"
                )
            self._load(Path(model))
        elif train is not None:
            self.tokenizer = self._train(train, dev, settings or {})
        if self.tokenizer is None:
            raise UserError(
                f"the tokenizer {REGISTERED} has nothing to learn from: name a CoNLL-U file as "
                "train in [initialize.tokenizer], or a trained one as model"
            )

    def _load(self, path: Path) -> None:
        from tk_spacy.utils.model_dirs import component_place  # noqa: PLC0415

        kind = self._kind()
        self.tokenizer = kind.from_disk(component_place(path, "tokenizer", kind.FORMAT))

    @staticmethod
    def _train(
        train: str | Path, dev: str | Path | None, settings: dict[str, Any]
    ) -> "UdpipeTokenizer":
        from tk_spacy.tokenizing.settings import TokenizerSettings  # noqa: PLC0415
        from tk_spacy.tokenizing.spec import UdpipeTokenizerSpec  # noqa: PLC0415
        from tk_spacy.tokenizing.training import train_udpipe_tokenizer  # noqa: PLC0415
        from tk_spacy.treebank.conllu import load_treebank  # noqa: PLC0415
        from tk_spacy.utils.validation import check_names_of  # noqa: PLC0415

        try:
            found = TokenizerSettings(**check_names_of(TokenizerSettings, settings))
        except UserError as error:
            raise UserError(f"[initialize.tokenizer.settings]: {error}") from error
        sentences = load_treebank(train, trees="any")
        try:
            UdpipeTokenizerSpec(settings=found).check(sentences)
        except UserError as error:
            raise UserError(f"{train}: {error}") from error
        held_out = [] if dev is None else load_treebank(dev, trees="any")
        return train_udpipe_tokenizer(sentences, held_out, settings=found)

    # Storage

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The tokenizer; empty where there is none."""
        return b"" if self.tokenizer is None else self.tokenizer.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Take the tokenizer of `to_bytes`.  Raises ModelError where the bytes are none."""
        self.tokenizer = self._kind().from_bytes(data) if data else None
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the tokenizer as a directory, empty where there is none; replaces what is there."""
        from tk_spacy.utils.atomic_files import replace_directory  # noqa: PLC0415

        place = Path(path)
        if place.is_file():  # that of spaCy's own tokenizer
            place.unlink()
        with replace_directory(place) as directory:
            if self.tokenizer is not None:
                self.tokenizer.write_files(directory)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Read what `to_disk` wrote.  Raises ModelError where it is not there."""
        path = Path(path)
        is_empty = path.is_dir() and not any(path.iterdir())
        self.tokenizer = None if is_empty else self._kind().from_disk(path)
        return self

    @staticmethod
    def _kind() -> "type[UdpipeTokenizer]":
        from tk_spacy.tokenizing.udpipe import UdpipeTokenizer  # noqa: PLC0415

        return UdpipeTokenizer


def set_tokenizer(nlp: Language, tokenizer: "UdpipeTokenizer") -> None:
    """Make a trained tokenizer a pipeline's own, also where the pipeline is stored.

    Its sentence splitter becomes the first component, for Docs of ready words.
    """
    made: Any = TkUdpipeTokenizer(nlp.vocab, tokenizer)
    nlp.tokenizer = made
    nlp.config["nlp"]["tokenizer"] = {"@tokenizers": REGISTERED}
    if SENTENCES not in nlp.component_names:
        nlp.add_pipe(SENTENCES, first=True)
