"""Gold sentences from spaCy Examples, for components that are trained by `initialize`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spacy.training import Example

from tk_spacy.errors import UserError
from tk_spacy.treebank import Sentence
from tk_spacy.upstream.doc_trees import read_sentences

if TYPE_CHECKING:
    from spacy.tokens import Doc


def gold_sentences(examples: Iterable[Example]) -> list[Sentence]:
    """The sentences of the references, with their trees.

    Tags are those of the predicted Doc where it has some, as it will when the model is applied,
    else the reference's.  Sentences without a usable tree are left out.
    Raises UserError where none is left.
    """
    sentences = []
    for example in examples:
        tagged = _tagged(example)
        for sentence in read_sentences(example.reference):
            if sentence.heads is not None:
                sentences.append(sentence.as_sentence(tags_from=tagged))
    if not sentences:
        raise UserError(
            "the training examples hold no dependency tree: give the training corpus heads and "
            "labels, or load a trained model (model = PATH)"
        )
    return sentences


def _tagged(example: Example) -> Doc | None:
    predicted, reference = example.predicted, example.reference
    if not any(predicted.has_annotation(name) for name in ("TAG", "POS", "MORPH")):
        return None
    if [token.text for token in predicted] != [token.text for token in reference]:
        return None
    return predicted
