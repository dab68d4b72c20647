"""The parsed sentences of a Doc as arrays, and chosen trees back into it.

CoNLL-U has no tokens of white space, and a reranker was trained without them.  So the *words* of a
sentence are its other tokens, and a word below a white-space token counts as a dependent of the
next word above.  White-space tokens keep their heads when a tree is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from spacy.attrs import DEP, HEAD, LEMMA, MORPH, NORM, POS, SENT_START, TAG
from spacy.tokens import Doc, Span

from tk_spacy.features.schema import Schema
from tk_spacy.spacy_io.conversion import form_of, has_misc, misc_of_tokens, to_ud_label
from tk_spacy.spacy_io.extensions import MISC_EXTENSION
from tk_spacy.spacy_io.sentence_spans import sentence_spans, words_of_spans
from tk_spacy.treebank.conllu import Sentence, check_tree
from tk_spacy.trees.spacy_decorations import DECORATION
from tk_spacy.utils.array_types import Int32, Intp

# What an embedding reads beside the lexeme; no parse, which would change what a parser does.
_TOKEN_ATTRIBUTES = [NORM, TAG, POS, MORPH, LEMMA]


@dataclass(frozen=True, slots=True, eq=False)
class DocSentence:
    """One sentence of a Doc: its n tokens from start to end, of which m are words.

    words: intp[m], places of the words, counted from start.
    token_heads: int32[n], UD heads (1..n, 0 the root); token_labels: n labels as they stand.
    heads: int32[m], UD heads among the words; None where the tree cannot be used: no parse, several
        roots or none, a head outside the sentence, a white-space root, missing labels or such as no
        tree can hold (see `label_fault`).
    """

    doc: Doc
    start: int
    end: int
    words: Intp
    token_heads: Int32
    token_labels: tuple[str, ...]
    heads: Int32 | None
    _plain: list[Sentence] = field(default_factory=list, init=False, repr=False)

    @property
    def plain(self) -> Sentence:
        """`as_sentence`, made once: for whoever does not change the Doc in between."""
        if not self._plain:
            self._plain.append(self.as_sentence())
        return self._plain[0]

    @property
    def deprels(self) -> tuple[str, ...]:
        """UD label of each word."""
        return tuple(to_ud_label(self.token_labels[i]) for i in self.words.tolist())

    def alone(self) -> DocSentence:
        """The same without its Doc, as plain data: all that `plain` and the arrays tell."""
        own = replace(self, doc=cast("Doc", None))
        own.take_plain(self.plain)
        return own

    def take_plain(self, sentence: Sentence) -> None:
        """Have `plain` give a sentence that was made already."""
        self._plain[:] = [sentence]

    def as_doc(self) -> Doc:
        """A Doc of this sentence alone, white space included and without its parse."""
        span = self.doc[self.start : self.end]
        doc = Doc(
            self.doc.vocab,
            words=[token.text for token in span],
            spaces=[bool(token.whitespace_) for token in span],
        )
        doc.from_array(_TOKEN_ATTRIBUTES, _to_array(span, _TOKEN_ATTRIBUTES))
        return doc

    def as_sentence(self, *, tags_from: Doc | None = None) -> Sentence:
        """The words as a Sentence, with the tree where it can be used.

        tags_from: a Doc of the same tokens that gives LEMMA, POS, TAG, MORPH and MISC instead.
        """
        tokens = [self.doc[self.start + i] for i in self.words.tolist()]
        tagged = tokens if tags_from is None else [tags_from[token.i] for token in tokens]
        parsed = self.heads is not None
        return Sentence.from_columns(
            forms=[form_of(token.text) for token in tokens],
            lemmas=[form_of(token.lemma_) for token in tagged],
            upos=[token.pos_ or "_" for token in tagged],
            xpos=[form_of(token.tag_) for token in tagged],
            feats=[form_of(str(token.morph)) for token in tagged],
            misc=misc_of_tokens(tokens, misc_from=tags_from),
            heads=self.heads,
            deprels=self.deprels if parsed else None,
        )


NOBODY = DocSentence(
    doc=cast("Doc", None),
    start=0,
    end=0,
    words=np.zeros(0, dtype=np.intp),
    token_heads=np.zeros(0, dtype=np.int32),
    token_labels=(),
    heads=None,
)
"""In the place of a sentence that is known elsewhere."""


def missing_attributes(schema: Schema, doc: Doc) -> list[str]:
    """The attributes that a model's properties read and a Doc does not have."""
    wanted = {
        "TAG": schema.pos_column == "XPOS",
        "POS": schema.pos_column == "UPOS" or schema.use_cpos,
        "MORPH": bool(schema.morph),
        "LEMMA": schema.use_lemma or any(extra.kind == "lemma" for extra in schema.extras),
    }
    missing = [name for name, used in wanted.items() if used and not doc.has_annotation(name)]
    if any(extra.kind == "misc" for extra in schema.extras) and not has_misc(doc):
        missing.append(f"token._.{MISC_EXTENSION}")
    return missing


def read_sentences(doc: Doc) -> list[DocSentence]:
    """The sentences of a parsed Doc, in order; none where it has no parse."""
    if not len(doc) or not doc.has_annotation("DEP"):
        return []
    array = _to_array(doc, [HEAD, DEP])
    heads = array[:, 0].astype(np.int64) + np.arange(len(doc))
    strings = doc.vocab.strings
    # A missing label is 0, which is also the empty string.
    labels = [strings[label] for label in array[:, 1].tolist()]
    spans = sentence_spans(doc)
    result = []
    for (start, end), words in zip(spans, words_of_spans(doc, spans), strict=True):
        own = heads[start:end] - start
        # Outside the sentence, before it too, is no word of it: one past the last says so.
        inside = (own >= 0) & (own < end - start)
        own = np.where(inside, own, end - start)
        ud = np.where(own == np.arange(end - start), 0, own + 1).astype(np.int32)
        result.append(_read_sentence(doc, start, ud, tuple(labels[start:end]), words - start))
    return result


def label_fault(label: str) -> str | None:
    """Why a label that is there cannot be one of a tree, or None."""
    if not label.strip():
        return "is nothing but white space"
    if any(character in label for character in "\t\n\r"):
        return "holds a tab or line break"
    if DECORATION in label:
        return f"holds {DECORATION!r}, by which spaCy marks arcs that its parser moves"
    return None


def _read_sentence(
    doc: Doc, start: int, heads: Int32, labels: tuple[str, ...], words: Intp
) -> DocSentence:
    usable = (
        all(label and label_fault(label) is None for label in labels)
        and check_tree(heads) is None
        and int(np.argmin(heads)) in words
    )
    return DocSentence(
        doc=doc,
        start=start,
        end=start + len(heads),
        words=words,
        token_heads=heads,
        token_labels=labels,
        heads=contract(heads[None], words)[0] if usable else None,
    )


def contract(heads: Int32, words: Intp) -> Int32:
    """Trees over tokens, int32[k, n], as trees over some of them, int32[k, m], 0 the root."""
    k, n = heads.shape
    above = np.zeros((k, n + 1), dtype=np.int32)
    above[:, 1:] = heads
    # A word is its own nearest word; a white-space token takes its head's, in at most n steps.
    nearest = np.zeros((k, n + 1), dtype=np.int32)
    nearest[:] = above
    nearest[:, words + 1] = words + 1
    rows = np.arange(k)[:, None]
    for _ in range(n.bit_length()):
        nearest = nearest[rows, nearest]
    number = np.zeros(n + 1, dtype=np.int32)
    number[words + 1] = np.arange(1, len(words) + 1)
    return number[nearest[rows, above[:, words + 1]]]


def write_trees(doc: Doc, trees: Iterable[tuple[DocSentence, Int32, Sequence[str]]]) -> None:
    """Write word trees (heads int32[m] and m UD labels) into the Doc that they come from.

    Heads and labels of words that change are written, nothing else; sentence boundaries stay.
    Raises ValueError before anything is written where a result is no tree.
    """
    array = _to_array(doc, [HEAD, DEP])
    boundaries = _to_array(doc, [SENT_START])
    written = False
    for sentence, heads, deprels in trees:
        token_heads = sentence.token_heads.copy()
        places = np.append(sentence.words + 1, 0)
        token_heads[sentence.words] = places[heads - 1]
        reason = check_tree(token_heads)
        if reason is not None or sentence.heads is None:
            raise ValueError(
                f"heads {heads.tolist()} of tokens {sentence.start} to {sentence.end - 1} make no "
                f"tree: {reason or 'the Doc has none that can be used'}"
            )
        root_label = sentence.token_labels[int(np.argmin(sentence.token_heads))]
        for j, (i, old, new) in enumerate(
            zip(sentence.words.tolist(), sentence.deprels, deprels, strict=True)
        ):
            token = sentence.start + i
            if heads[j] != sentence.heads[j]:
                head = int(token_heads[i])
                array[token, 0] = np.int64(head - 1 - i if head else 0).astype(np.uint64)
            elif new == old:
                continue
            # A Doc may name its root "root" instead of spaCy's "ROOT": as it does, so do we.
            label = root_label if heads[j] == 0 else new
            array[token, 1] = doc.vocab.strings.add(label)
            written = True
    if written:
        doc.from_array([HEAD, DEP], array)
        # spaCy derives sentence starts from the heads; in deeply crossing trees it gives up early.
        doc.from_array([SENT_START], boundaries)


def _to_array(source: Doc | Span, attributes: list[int]) -> Any:
    # uint64[n, attributes]; spaCy's stubs tell otherwise.
    return source.to_array(attributes)  # type: ignore[arg-type, union-attr]
