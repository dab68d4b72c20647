"""How rare a word's relation, attachment and tag are, given words and tags around it.

No parser is needed: each is a conditional probability with back-off (see `backoff`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tk_spacy.audit.backoff import Expected, leave_one_out
from tk_spacy.audit.words import Words, ids
from tk_spacy.utils.array_types import Int32


def label_given_tags(words: Words, labels: Int32, *, n_labels: int) -> Expected:
    """The relation given the tags of word and head, and on which side the head is.

    labels: int32[n], numbers of the relations.
    """
    return _label_given(words, labels, n_labels)


def label_given_lemmas(words: Words, labels: Int32, *, n_labels: int) -> Expected:
    """The relation given also the word's features, its lemma, and its head's."""
    tags, head_tags, sides = words.upos, words.of_head(words.upos), words.directions
    return _label_given(
        words, labels, n_labels,
        ids(tags, words.feats, head_tags, sides),
        ids(words.lemmas, tags, head_tags, sides),
        ids(words.lemmas, tags, words.of_head(words.lemmas), sides),
    )  # fmt: skip


def label_given_markers(words: Words, labels: Int32, *, n_labels: int) -> Expected:
    """The relation given also the function words of the word, and its head's lemma."""
    tags, head_tags, sides = words.upos, words.of_head(words.upos), words.directions
    return _label_given(
        words, labels, n_labels,
        ids(tags, words.markers, head_tags, sides),
        ids(tags, words.markers, words.feats, head_tags, sides),
        ids(tags, words.markers, words.feats, words.of_head(words.lemmas), sides),
    )  # fmt: skip


def _label_given(words: Words, labels: Int32, n_labels: int, *closer: Int32) -> Expected:
    """The relation given the tags, and then closer contexts, one after the other."""
    tags, head_tags, sides = words.upos, words.of_head(words.upos), words.directions
    contexts = [ids(tags), ids(tags, head_tags, sides), *closer]
    return leave_one_out(labels, contexts, n_outcomes=n_labels)


def attachments(words: Words) -> tuple[Int32, list[str]]:
    """Where each word's head is, as numbers int32[n], and what they mean.

    The tag of the head, on which side it is, and how far, in bins.
    """
    tags = words.of_head(words.upos)
    texts = [
        f"{side}{distance} {tag}"
        for side, distance, tag in zip(words.directions, words.distances, tags, strict=True)
    ]
    return ids(texts), list(dict.fromkeys(texts))


def attachment(words: Words) -> Expected:
    """Direction, distance and tag of the head given the word, the tags beside it and its markers.

    The outcomes are those of `attachments`.
    """
    places, names = attachments(words)
    tags = words.upos
    before, after = words.beside(tags, -1), words.beside(tags, 1)
    return leave_one_out(
        places,
        [
            ids(tags),
            ids(tags, words.deprels),
            ids(tags, words.deprels, before, after),
            ids(tags, words.deprels, before, after, words.lemmas),
        ],
        n_outcomes=len(names),
    )


def tag(words: Words) -> Expected:
    """UPOS given the form, and the tags beside it."""
    tags = words.upos
    return leave_one_out(
        ids(tags),
        [
            ids(words.forms),
            ids(words.forms, words.beside(tags, -1)),
            ids(words.forms, words.beside(tags, -1), words.beside(tags, 1)),
        ],
        n_outcomes=len(set(tags)),
    )


def rarities(words: Words, labels: Int32, *, n_labels: int) -> Iterator[tuple[str, Expected]]:
    """All of these, by name."""
    yield "label given tags", label_given_tags(words, labels, n_labels=n_labels)
    yield "label given lemmas", label_given_lemmas(words, labels, n_labels=n_labels)
    yield "label given markers", label_given_markers(words, labels, n_labels=n_labels)
    yield "attachment", attachment(words)
    yield "tag", tag(words)
