"""Sentence <-> spaCy Doc, and the corpus reader that `spacy train` uses.

UD writes the root relation "root", spaCy "ROOT"; both directions map it.  spaCy's "||" decorations
of lifted non-projective arcs are a matter between the parser and its own deprojectivization: here
they are cut off, so that they never reach a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import DEP, HEAD
from spacy.parts_of_speech import IDS as UPOS_IDS
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from tk_spacy.errors import UserError
from tk_spacy.spacy_io.extensions import MISC_EXTENSION, register_misc
from tk_spacy.spacy_io.sentence_spans import sentence_spans
from tk_spacy.spacy_io.surface import inside_multiword, stored, with_doc_surface
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import word_line
from tk_spacy.trees.spacy_decorations import DECORATION

SPACY_ROOT = "ROOT"
UD_ROOT = "root"


def to_spacy_label(deprel: str, head: int) -> str:
    """DEPREL of UD as spaCy's dependency label; head is UD's, 0 for the root."""
    return SPACY_ROOT if head == 0 else deprel


def to_ud_label(label: str) -> str:
    """spaCy's dependency label as DEPREL: without decoration, "ROOT" as "root", "" as "_"."""
    label = label.partition(DECORATION)[0]
    return UD_ROOT if label == SPACY_ROOT else label or "_"


PLAIN_MISC = ("_", "SpaceAfter=No")

_FEATURE = re.compile(r"[^=|]+=[^=|]+")


def place_of(sentence: Sentence, word: int = 0) -> str:
    """Where a sentence stands, or one of its words (1..n), for error messages."""
    if sentence.path:
        line = word_line(sentence, word) if word else sentence.line
        return f"{sentence.path}:{line}"
    return f"sentence {sentence.sent_id or sentence.forms[0]!r}"


def doc_from_sentence(
    vocab: Vocab, sentence: Sentence, *, with_tree: bool = False, gold_tags: bool = True
) -> Doc:
    """A Doc with one token a word and the sentence's start preset, so that no parser splits it.

    With gold_tags it carries the XPOS, UPOS, FEATS and LEMMA columns as TAG, POS, MORPH and LEMMA;
    with_tree adds HEAD and DEPREL.  `token._.tk_misc` is the MISC column.  Raises UserError where a
    UPOS value is none of UD's or FEATS are no list of Name=Value.
    """
    n = len(sentence)
    columns: dict[str, Any] = {}
    if gold_tags:
        for i, tag in enumerate(sentence.upos, 1):
            if tag != "_" and tag not in UPOS_IDS:
                raise UserError(
                    f"{place_of(sentence, i)}: UPOS {tag!r} is no universal part of speech, which "
                    "spaCy needs; convert the column or put the tag into XPOS"
                )
        columns = {
            "tags": [_blank(tag) for tag in sentence.xpos],
            "pos": [_blank(tag) for tag in sentence.upos],
            "morphs": [_blank(feats) for feats in sentence.feats],
            "lemmas": [_blank(lemma) for lemma in sentence.lemmas],
        }
        for feats in dict.fromkeys(sentence.feats):
            if feats != "_" and not all(_FEATURE.fullmatch(f) for f in feats.split("|")):
                word = sentence.feats.index(feats) + 1
                raise UserError(
                    f"{place_of(sentence, word)}: FEATS {feats!r} is no list of Name=Value joined "
                    f"by '|', which spaCy needs; correct the column, or write _"
                )
    doc = Doc(
        vocab,
        words=list(sentence.forms),
        spaces=["SpaceAfter=No" not in misc.split("|") for misc in sentence.misc],
        sent_starts=[i == 0 for i in range(n)],
        **columns,
    )
    register_misc()
    for token, misc in zip(doc, sentence.misc, strict=True):
        if misc not in PLAIN_MISC:  # the rest the Doc knows without it
            token._.set(MISC_EXTENSION, misc)
    if with_tree:
        if not sentence.has_tree:
            raise UserError(f"{place_of(sentence)}: no tree: HEAD is '_'")
        deps = [
            to_spacy_label(deprel, head)
            for deprel, head in zip(sentence.deprels, sentence.heads.tolist(), strict=True)
        ]
        set_tree(doc, sentence.heads, deps)
    return doc


def set_tree(doc: Doc, heads: np.ndarray, deps: Iterable[str]) -> None:
    """Write a tree into a one-sentence Doc: heads int[n] as UD has them, deps spaCy's labels.

    The tree must be valid: spaCy accepts cycles silently.
    """
    positions = np.arange(1, len(doc) + 1)
    offsets = np.where(heads == 0, 0, heads - positions).astype(np.int64)
    rows = np.empty((len(doc), 2), dtype=np.uint64)
    rows[:, 0] = offsets.view(np.uint64)  # spaCy stores negative offsets as two's complement
    rows[:, 1] = [doc.vocab.strings.add(dep) for dep in deps]
    attributes: list[Any] = [HEAD, DEP]
    doc.from_array(attributes, rows)  # type: ignore[arg-type]  # thinc's own array types


def check_sentences(sentences: Iterable[Sentence]) -> None:
    """Raises UserError, naming the place, for a sentence whose columns spaCy cannot take."""
    vocab = Vocab()
    upos: set[str] = set()  # that a Doc has taken
    feats: set[str] = set()
    for sentence in sentences:
        if upos.issuperset(sentence.upos) and feats.issuperset(sentence.feats):
            continue
        try:
            doc_from_sentence(vocab, sentence)
        except UserError:
            raise
        except ValueError as error:
            place = f"{sentence.path}:{sentence.line}"
            raise UserError(f"{place}: spaCy cannot take UPOS or FEATS here: {error}") from error
        upos.update(sentence.upos)
        feats.update(sentence.feats)


def sentence_from_doc(source: Doc | Span, *, sent_id: str | None = None) -> Sentence:
    """The one sentence of a Doc, or a Span that is one sentence, as a Sentence.

    Heads count from the sentence's own start.  Without a parse HEAD and DEPREL are empty.
    Raises ValueError where the source holds several roots: use `sentences_from_doc` then.
    """
    tokens = list(source)
    if not tokens:
        raise ValueError("a Doc or Span without tokens is no sentence")
    start = tokens[0].i
    parsed = source.doc.has_annotation("DEP")
    heads: list[int] | None = None
    deprels: list[str] | None = None
    if parsed:
        heads = [0 if t.head.i == t.i else t.head.i - start + 1 for t in tokens]
        if any(not 0 <= head <= len(tokens) for head in heads) or heads.count(0) != 1:
            raise ValueError(
                f"tokens {start} to {tokens[-1].i} are not exactly one sentence: "
                f"{heads.count(0)} roots; take the sentences one by one (sentences_from_doc)"
            )
        deprels = [to_ud_label(t.dep_) for t in tokens]
    made = sentence_of_tokens(tokens, heads=heads, deprels=deprels, sent_id=sent_id)
    return with_doc_surface(made, tokens)


def sentence_of_tokens(
    tokens: Sequence[Token],
    *,
    heads: Sequence[int] | NDArray[np.int32] | None = None,
    deprels: Sequence[str] | None = None,
    sent_id: str | None = None,
    misc: bool = True,
) -> Sentence:
    """Some tokens as a Sentence, with UD heads and labels where they are given.

    misc: whether MISC is wanted.
    """
    return Sentence.from_columns(
        forms=[form_of(t.text) for t in tokens],
        lemmas=[form_of(t.lemma_) for t in tokens],
        upos=[t.pos_ or "_" for t in tokens],
        xpos=[form_of(t.tag_) for t in tokens],
        feats=[form_of(str(t.morph)) for t in tokens],
        misc=misc_of_tokens(tokens) if misc else None,
        heads=heads,
        deprels=deprels,
        sent_id=sent_id,
    )


def misc_of_tokens(tokens: Iterable[Token], *, misc_from: Doc | None = None) -> list[str]:
    """The MISC column of tokens: `token._.tk_misc`, and whether a space follows.

    misc_from: a Doc of the same tokens that gives the former instead.
    What follows a multiword token is said on its own line, not on its words'.
    """
    column = []
    tokens = list(tokens)
    for token, inside in zip(tokens, inside_multiword(tokens), strict=True):
        given = token if misc_from is None else misc_from[token.i]
        value = stored(given, MISC_EXTENSION)
        misc = form_of(str(value)) if value else "_"
        if not inside and not token.whitespace_ and "SpaceAfter=No" not in misc.split("|"):
            misc = "SpaceAfter=No" if misc == "_" else f"{misc}|SpaceAfter=No"
        column.append(misc)
    return column


def has_misc(doc: Doc) -> bool:
    """Whether any token of a Doc has a MISC column of its own."""
    register_misc()
    return any((token._.get(MISC_EXTENSION) or "_") != "_" for token in doc)


def sentences_from_doc(doc: Doc) -> list[Sentence]:
    """Every sentence of a Doc; a Doc without sentence boundaries is one sentence."""
    return [sentence_from_doc(doc[start:end]) for start, end in sentence_spans(doc)]


def _blank(value: str) -> str:
    return "" if value == "_" else value


def form_of(text: str) -> str:
    """A value that CoNLL-U can hold: spaCy has tokens of white space, CoNLL-U has none."""
    return " ".join(text.split()) or "_"
