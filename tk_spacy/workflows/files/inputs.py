"""What an input file is: CoNLL-U, plain text, or words one a line; and its sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from tk_spacy.errors import TreebankError, UserError
from tk_spacy.tokenizing.base import Tokenizer
from tk_spacy.treebank.conllu import Sentence, read_conllu
from tk_spacy.treebank.text_files import file_start, looks_like_conllu, read_text, read_vertical

Form = Literal["text", "vertical", "conllu"]
InputForm = Literal["auto", "text", "vertical", "conllu"]
INPUT_FORMS: tuple[InputForm, ...] = get_args(InputForm)

CONLLU_SUFFIXES = (".conllu", ".conll")
TEXT_SUFFIX = ".txt"
BYTES_OF_A_SENTENCE = 120
"""About; of text whose sentences are not known yet."""


def form_of(path: Path, form: InputForm) -> Form:
    """What a file is taken for: what is said, or with "auto" what its name and its start tell.

    A pipe, which can be read only once, is CoNLL-U unless something else is said.
    """
    if form != "auto":
        return form
    if path.suffix.lower() in CONLLU_SUFFIXES or not path.is_file():
        return "conllu"
    known = looks_like_conllu(file_start(path))
    if known is None:
        known = path.suffix.lower() != TEXT_SUFFIX
    return "conllu" if known else "text"


def suffix_of(form: InputForm) -> str:
    """The suffix of the files that a directory is searched for."""
    return TEXT_SUFFIX if form in ("text", "vertical") else CONLLU_SUFFIXES[0]


def result_name(path: Path, form: InputForm) -> Path:
    """The name of a file's result, which is CoNLL-U."""
    if form_of(path, form) == "conllu":
        return path
    return path.with_suffix(CONLLU_SUFFIXES[0])


@dataclass(slots=True)
class InputReader:
    """Reads the sentences of files of any form.

    form: of all of them, or "auto".  model: whose tokenizer it is, for messages.
    opener: opens the model's tokenizer, None where it has none; called when it is needed, once.
    """

    form: InputForm = "conllu"
    model: Path = Path()
    opener: Callable[[], Tokenizer | None] = lambda: None

    def __post_init__(self) -> None:
        self.opener = cache(self.opener)

    def form_of(self, path: Path) -> Form:
        """What a file is taken for."""
        return form_of(path, self.form)

    def sentences(self, path: Path) -> Iterator[Sentence]:
        """The sentences of a file, one at a time; trees of CoNLL-U may be anything.

        Raises UserError where the file cannot be read or, at once, where the model has no
        tokenizer for it.
        """
        form = self.form_of(path)
        if form == "conllu":
            return read_conllu(path, trees="any", single_root=False)
        if form == "vertical":
            return _some(read_vertical(path), path)
        return _some(self.tokenizer(path).sentences(read_text(path), path=str(path)), path)

    def tokenizer(self, path: Path) -> Tokenizer:
        """The model's tokenizer.  Raises UserError, which names the file, where it has none."""
        tokenizer = self.opener()
        if tokenizer is None:
            what = "text" if self.form == "text" else "no CoNLL-U, so taken for text"
            raise UserError(
                f"{path}: {what}, but the model {self.model} has no tokenizer; train one that has "
                "(with own tags, from a treebank with SpaceAfter=No), give the words one a line "
                "(input form vertical), or CoNLL-U (conllu)"
            )
        return tokenizer


def estimate_text(path: Path) -> int:
    """About how many sentences a text has, from its size."""
    try:
        return path.stat().st_size // BYTES_OF_A_SENTENCE + 1 if path.is_file() else 0
    except OSError:
        return 0


def _some(sentences: Iterator[Sentence], path: Path) -> Iterator[Sentence]:
    """The sentences.  Raises TreebankError where there is none."""
    empty = True
    for sentence in sentences:
        empty = False
        yield sentence
    if empty:
        raise TreebankError(path, 0, "the file holds no word; give a file with text in it")
