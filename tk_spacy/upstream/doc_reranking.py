"""Choosing trees for the sentences of Docs: a parser's candidates, then the reranker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.util import minibatch

from tk_spacy.candidates import CandidateList, LabelInventory
from tk_spacy.reranker import Reranker
from tk_spacy.upstream.corpus import to_ud_label
from tk_spacy.upstream.doc_trees import DocSentence
from tk_spacy.upstream.spacy_parser import SpacySource

SENTENCES_AT_A_TIME = 128
"""Sentences whose candidates are held in memory together."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What is decided about one sentence.

    tree: the chosen heads (int32[m]) and labels of its words; None where the Doc keeps its own.
    confidence: softmax of the final scores, at the chosen tree; 1 for a single candidate, None
        where the Doc's tree could not be used.
    margin: the chosen tree's final score minus the next best; None below two candidates.
    n_candidates: trees compared, the Doc's own included; 0 where it could not be used.
    """

    sentence: DocSentence
    tree: tuple[NDArray[np.int32], tuple[str, ...]] | None = None
    confidence: float | None = None
    margin: float | None = None
    n_candidates: int = 0

    def to_record(self) -> dict[str, Any]:
        """Plain data, which survives processes, bytes and DocBin."""
        return {
            "start": self.sentence.start,
            "end": self.sentence.end,
            "changed": self.tree is not None,
            "confidence": self.confidence,
            "margin": self.margin,
            "n_candidates": self.n_candidates,
        }


def choose_trees(
    reranker: Reranker,
    source: SpacySource,
    sentences: Iterable[DocSentence],
    *,
    k: int,
    n_threads: int | None = None,
) -> Iterator[Choice]:
    """The choice for each sentence, in order; the Docs stay as they are."""
    for batch in minibatch(sentences, size=SENTENCES_AT_A_TIME):
        asked = [s for s in batch if s.heads is not None and len(s.words) > 1]
        found = source.candidates_from_docs((s.as_doc() for s in asked), k=k)
        lists = [
            _word_candidates(sentence, trees, source=source, k=k)
            for sentence, trees in zip(asked, found, strict=True)
        ]
        pairs = [pair for pair in zip(asked, lists, strict=True) if len(pair[1]) > 1]
        scores = reranker.batch_scores(
            [(s.as_sentence(), trees) for s, trees in pairs], n_threads=n_threads
        )
        choices = {
            id(sentence): _choose(sentence, trees, reranker.combined(trees, own))
            for (sentence, trees), own in zip(pairs, scores, strict=True)
        }
        for sentence in batch:
            yield choices.get(id(sentence)) or _no_choice(sentence)


def missing_attributes(reranker: Reranker, doc: Doc) -> list[str]:
    """The attributes that the model's properties read and a Doc does not have."""
    schema = reranker.schema
    wanted = {
        "TAG": schema.pos_column == "XPOS",
        "POS": schema.pos_column == "UPOS" or schema.use_cpos,
        "MORPH": bool(schema.morph),
        "LEMMA": schema.use_lemma,
    }
    return [name for name, used in wanted.items() if used and not doc.has_annotation(name)]


def _choose(sentence: DocSentence, trees: CandidateList, final: NDArray[np.float64]) -> Choice:
    best = int(final.argmax())
    return Choice(
        sentence=sentence,
        tree=None if best == trees.base else (trees.heads[best], trees.deprels(best)),
        confidence=float(1.0 / np.exp(final - final[best]).sum()),
        margin=float(final[best] - np.delete(final, best).max()),
        n_candidates=len(trees),
    )


def _no_choice(sentence: DocSentence) -> Choice:
    if sentence.heads is None:
        return Choice(sentence)
    return Choice(sentence, confidence=1.0, n_candidates=1)


def _word_candidates(
    sentence: DocSentence, found: CandidateList, *, source: SpacySource, k: int
) -> CandidateList:
    """Candidates over tokens as trees over words, with the Doc's own tree among them, as base.

    It mostly is among them already; where a parser saw more than the sentence, it need not be.
    """
    assert sentence.heads is not None
    inventory = found.inventory
    heads, labels, scores = sentence.word_trees(found)
    own = sentence.heads, inventory.encode(sentence.deprels)
    equal = np.flatnonzero((heads == own[0]).all(axis=1) & (labels == own[1]).all(axis=1))
    if equal.size and heads is found.heads:  # no white space: the list is in order already
        return replace(found, base=int(equal[0]))
    if equal.size:
        base = int(equal[0])
    else:
        base = len(heads)
        heads = np.concatenate([heads, own[0][None]])
        labels = np.concatenate([labels, own[1][None]])
        scores = np.concatenate([scores, [_own_score(sentence, source, inventory)]])
    return CandidateList.from_arrays(
        heads, labels, scores, inventory=inventory, sources=found.sources, k=k, base=base
    )


def _own_score(
    sentence: DocSentence, source: SpacySource, inventory: LabelInventory
) -> NDArray[np.float64]:
    """The parser's score of the Doc's own tree, NaN where it does not know one of the relations."""
    deprels = [to_ud_label(label) for label in sentence.token_labels]
    tree = CandidateList.build(
        [(sentence.token_heads, deprels, np.nan)], inventory=inventory, sources=(source.name,)
    )
    score = source.scores_of_doc(sentence.as_doc(), tree)
    return np.where(np.isfinite(score), score, np.nan)
