"""The tagging components of a spaCy pipeline as a tagger of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tk_spacy.spacy_io.conversion import doc_from_sentence, form_of
from tk_spacy.tagging.base import Tags
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

ATTRIBUTES = {
    "token.lemma": "LEMMA",
    "token.pos": "UPOS",
    "token.tag": "XPOS",
    "token.morph": "FEATS",
}
"""What a component declares that it assigns, and the column that it is."""

BATCH = 64


class PipelineTagger:
    """A `Tagger` made of components of a spaCy pipeline.

    nlp: the pipeline.  names: of the components, in order; None for all that `tagging_components`
        finds.
    """

    def __init__(self, nlp: Language, names: Sequence[str] | None = None) -> None:
        self.nlp = nlp
        self.names = tuple(tagging_components(nlp) if names is None else names)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the components set, as far as they declare it."""
        assigned = {
            ATTRIBUTES[a]
            for name in self.names
            for a in self.nlp.get_pipe_meta(name).assigns
            if a in ATTRIBUTES
        }
        return tuple(name for name in COLUMNS if name in assigned)

    def tag(self, sentences: Iterable[Sentence]) -> Iterator[Tags]:
        """The tags of each sentence from its words alone, in order."""
        docs: Iterable[Doc] = (
            doc_from_sentence(self.nlp.vocab, sentence, gold_tags=False) for sentence in sentences
        )
        for name in self.names:
            component: Any = self.nlp.get_pipe(name)
            docs = component.pipe(docs, batch_size=BATCH)
        for doc in docs:
            yield tags_of(doc)


def tags_of(doc: Doc) -> Tags:
    """The tags of a Doc's tokens."""
    return Tags(
        tuple(form_of(token.lemma_) for token in doc),
        tuple(token.pos_ or "_" for token in doc),
        tuple(form_of(token.tag_) for token in doc),
        tuple(form_of(str(token.morph)) for token in doc),
    )


def sets_tags(nlp: Language, name: str) -> bool:
    """Whether a component of a pipeline sets tags or lemmas by what it knows of words."""
    meta = nlp.get_pipe_meta(name)
    if meta.factory == "tk_columns":  # which knows its file only
        return False
    return bool(ATTRIBUTES.keys() & set(meta.assigns)) or meta.factory == "attribute_ruler"


def tagging_components(nlp: Language) -> list[str]:
    """The components of a pipeline that set tags and lemmas, with what they listen to, in order.

    Disabled ones are left out.
    """
    found = {name for name, _ in nlp.pipeline if sets_tags(nlp, name)}
    for name, pipe in nlp.pipeline:
        if found & set(getattr(pipe, "listening_components", ())):
            found.add(name)
    return [name for name, _ in nlp.pipeline if name in found]
