"""The spaCy component `tk_columns`: gives words the tags that a CoNLL-U file has for them.

spaCy evaluates a pipeline on Docs of bare words, and a parser that reads tags needs something that
sets them.  With the test file this is its gold annotation, as in the tables of a training.

Annotations are not postponed: spaCy builds its config schemas from them.
"""

import warnings
from collections.abc import Iterable
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

FACTORY = "tk_columns"


@Language.factory(
    FACTORY,
    assigns=[
        "token.tag",
        "token.pos",
        "token.morph",
        "token.lemma",
        "token.is_sent_start",
        "doc.sents",
        "token._.tk_misc",
    ],
    default_config={"path": None},
)
def make_tk_columns(nlp: Language, name: str, path: str | None) -> "TkColumns":
    """Make the component; its config is described at `TkColumns`."""
    return TkColumns(nlp, name, path=path)


class TkColumns:
    """Sets TAG, POS, MORPH, LEMMA and `token._.tk_misc` of sentences that a CoNLL-U file has.

    path: the file, read at the first use.

    A sentence is known by its words; of several with the same words each gets the next one's
    columns, in the file's order, over and over.  A Doc without sentence starts is one sentence.
    Warns once of a sentence that is not in the file, which stays as it is.
    Raises UserError where the file is missing or no CoNLL-U.
    """

    def __init__(self, nlp: Language, name: str = FACTORY, *, path: str | None) -> None:
        self.name = name
        self.path = path
        self._found: Any = None
        self._warned = False

    def __call__(self, doc: Doc) -> Doc:
        """Set the columns of a Doc's sentences, in place."""
        from tk_spacy.spacy_io.conversion import doc_from_sentence  # noqa: PLC0415
        from tk_spacy.spacy_io.sentence_spans import sentence_spans  # noqa: PLC0415

        for start, end in sentence_spans(doc):
            known = self._sentences().get(tuple(token.text for token in doc[start:end]))
            if known is None:
                self._warn(doc[start:end].text)
                continue
            known.rotate(-1)
            columns = doc_from_sentence(doc.vocab, known[-1])
            for token, given in zip(doc[start:end], columns, strict=True):
                token.tag, token.pos, token.lemma = given.tag, given.pos, given.lemma
                token.set_morph(given.morph)  # type: ignore[attr-defined]  # not in its stub
                token.is_sent_start = token.i == start
                token._.tk_misc = given._.tk_misc
        return doc

    def _sentences(self) -> Any:
        """The file's sentences by their words, each list's next one at the left."""
        from collections import defaultdict, deque  # noqa: PLC0415

        from tk_spacy.errors import UserError  # noqa: PLC0415
        from tk_spacy.treebank.conllu import read_conllu  # noqa: PLC0415

        if self._found is None:
            if self.path is None:
                raise UserError(
                    f"{self.name}: path is not set; it must name the CoNLL-U file with the tags"
                )
            found: dict[tuple[str, ...], Any] = defaultdict(deque)
            for sentence in read_conllu(self.path, trees="any"):
                found[sentence.forms].append(sentence)
            self._found = dict(found)
        return self._found

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.name}: {self.path} has no sentence {text!r}: its words get no tags (spacy "
                f"evaluate keeps the words of its file by --gold-preproc)",
                stacklevel=3,
            )

    # Storage: the config says it all

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """Write nothing."""

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> "TkColumns":
        """Read nothing."""
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """No bytes."""
        return b""

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "TkColumns":
        """Take no bytes."""
        return self
