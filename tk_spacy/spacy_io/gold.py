"""Gold sentences from spaCy Examples, for components that are trained by `initialize`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spacy.training import Example

from tk_spacy.errors import UserError
from tk_spacy.spacy_io.conversion import sentence_of_tokens
from tk_spacy.spacy_io.doc_trees import DocSentence, label_fault, read_sentences
from tk_spacy.spacy_io.sentence_spans import sentence_spans, words_of_spans
from tk_spacy.treebank.conllu import Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc


def gold_sentences(examples: Iterable[Example]) -> list[Sentence]:
    """The sentences of the references, with their trees.

    Tags are those of the predicted Doc where it has some, as it will when the model is applied,
    else the reference's.  Sentences without a usable tree are left out.
    Raises UserError where none is left, and for a label that no tree can hold.
    """
    sentences = []
    for number, example in enumerate(examples, start=1):
        tagged = _tagged(example)
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


def tagged_sentences(examples: Iterable[Example]) -> list[Sentence]:
    """The sentences of the references with their tags, of which a tagger learns; trees or not.

    Raises UserError where there is none.
    """
    sentences = []
    for example in examples:
        doc = example.reference
        for places in words_of_spans(doc, sentence_spans(doc)):
            if len(places):
                sentences.append(sentence_of_tokens([doc[i] for i in places.tolist()], misc=False))
    if not sentences:
        raise UserError(
            "the training examples hold no words: give the training corpus tagged ones, or load a "
            "trained model (model = PATH)"
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
