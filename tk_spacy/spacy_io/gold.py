"""Gold sentences from spaCy Examples, for components that are trained by `initialize`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from spacy.training import Example

from tk_spacy.errors import UserError
from tk_spacy.spacy_io.doc_trees import DocSentence, label_fault, read_sentences
from tk_spacy.treebank.conllu import Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc


def gold_sentences(
    examples: Iterable[Example], *, tags: Literal["met", "gold"] = "met"
) -> list[Sentence]:
    """The sentences of the references, with their trees.

    tags: "met" for those of the predicted Doc where it has some, as it will when the model is
        applied, else the reference's; "gold" for the reference's, of which a tagger learns.
    Sentences without a usable tree are left out.
    Raises UserError where none is left, and for a label that no tree can hold.
    """
    sentences = []
    for number, example in enumerate(examples, start=1):
        tagged = _tagged(example) if tags == "met" else None
        for sentence in read_sentences(example.reference):
            _check_labels(sentence, number)
            if sentence.heads is not None:
                sentences.append(sentence.as_sentence(tags_from=tagged))
    if not sentences:
        raise UserError(
            "the training examples hold no dependency tree: give the training corpus heads and "
            "labels, or load a trained model (model = PATH)"
        )
    return sentences


def _check_labels(sentence: DocSentence, number: int) -> None:
    for place, label in enumerate(sentence.token_labels, start=sentence.start):
        fault = label_fault(label) if label else None
        if fault is not None:
            word = sentence.doc[place].text
            raise UserError(
                f"training example {number}: label {label!r} of token {place + 1} ({word!r}) "
                f"{fault}; rename it"
            )


def _tagged(example: Example) -> Doc | None:
    predicted, reference = example.predicted, example.reference
    if not any(predicted.has_annotation(name) for name in ("TAG", "POS", "MORPH")):
        return None
    if [token.text for token in predicted] != [token.text for token in reference]:
        return None
    return predicted
