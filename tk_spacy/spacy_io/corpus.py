"""CoNLL-U files as a corpus of `spacy train`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.training import Example
from spacy.util import registry

from tk_spacy.errors import UserError
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.conllu import Sentence, read_conllu

if TYPE_CHECKING:
    from spacy.language import Language


@registry.readers("tk_spacy.ConlluCorpus.v1")
def create_conllu_reader(
    path: Path | None, gold_tags: bool = True, limit: int = 0
) -> Callable[[Language], Iterator[Example]]:
    """Corpus reader for `spacy train`: a CoNLL-U file, one sentence a Doc.

    path:      the file; null gives an empty corpus (training without a development set).
    gold_tags: whether the parser sees the XPOS, UPOS, FEATS and LEMMA columns.
    limit:     number of sentences, 0 for all.

    Raises UserError for a negative limit.
    """
    check_limit("tk_spacy.ConlluCorpus.v1", limit)

    def read(nlp: Language) -> Iterator[Example]:
        if path is None:
            return
        sentences: Iterable[Sentence] = read_conllu(path)
        if limit:
            sentences = (s for s, _ in zip(sentences, range(limit), strict=False))
        yield from read_examples(sentences, nlp, gold_tags=gold_tags)

    return read


def check_limit(reader: str, limit: int) -> None:
    """Raises UserError where a corpus reader is to give less than no sentence."""
    if limit < 0:
        raise UserError(f"{reader}: limit is {limit}; it must be 0, for all sentences, or more")


def read_examples(
    sentences: Iterable[Sentence], nlp: Language, *, gold_tags: bool = True
) -> Iterator[Example]:
    """Training examples, one sentence each: the predicted Doc without tree, the reference with."""
    for sentence in sentences:
        yield Example(
            doc_from_sentence(nlp.vocab, sentence, gold_tags=gold_tags),
            doc_from_sentence(nlp.vocab, sentence, with_tree=True),
        )
