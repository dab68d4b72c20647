"""Candidate trees from any trained spaCy `parser` or `beam_parser`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from spacy.pipeline import DependencyParser

from tk_spacy.candidates import CandidateList, LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.treebank import Sentence
from tk_spacy.upstream.corpus import doc_from_sentence
from tk_spacy.upstream.discrepancy import Pool, PoolMaker
from tk_spacy.upstream.train_parser import train_upstream

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["SpacySource", "train_upstream"]

Search = Literal["discrepancy", "beam", "both"]


class SpacySource:
    """The k likeliest trees of a spaCy parser; its own tree is always among them, as `base`.

    nlp:        pipeline that holds the parser, and the tok2vec that it may listen to.
    component:  name of the parser in it.
    search:     "discrepancy" (many different trees), "beam" (spaCy's own), or "both" in one list.
    runs:       parser runs of the discrepancy search for each candidate asked for; more runs give
                slightly better lists for more time.
    beam_width: of the beam search, k where None.
    batch_words: words in one batch of the model.
    inventory:  table of labels to share with other lists.
    gold_tags:  whether the parser sees a Sentence's XPOS, UPOS, FEATS and LEMMA columns.

    A candidate's score is the natural logarithm of a probability: that of the likeliest known
    derivation of the tree, each action normalised over the actions allowed in its state; where
    several actions lead to the same tree (the dynamic oracle's), their sum.  Locally normalised, so
    it compares trees of one sentence.  Scores of different sentences are not comparable.

    Raises UserError where the pipeline has no such parser.
    """

    def __init__(
        self,
        nlp: Language,
        *,
        component: str = "parser",
        search: Search = "discrepancy",
        runs: int = 4,
        beam_width: int | None = None,
        batch_words: int = 2000,
        inventory: LabelInventory | None = None,
        gold_tags: bool = True,
        name: str = "spacy",
    ) -> None:
        if search not in ("discrepancy", "beam", "both"):
            raise ValueError(f"search must be discrepancy, beam or both, got {search!r}")
        if runs < 1:
            raise ValueError(f"runs must be at least 1, got {runs}")
        if component not in nlp.component_names:
            raise UserError(
                f"the pipeline has no component {component!r}; it has: "
                f"{', '.join(nlp.component_names) or 'none'}"
            )
        parser = nlp.get_pipe(component)
        if not isinstance(parser, DependencyParser):
            raise UserError(
                f"component {component!r} is a {type(parser).__name__}; a spaCy 'parser' or "
                f"'beam_parser' is needed"
            )
        self.name = name
        self.nlp = nlp
        self.search = search
        self.runs = runs
        self.beam_width = beam_width
        self.batch_words = batch_words
        self.gold_tags = gold_tags
        self.inventory = LabelInventory() if inventory is None else inventory
        self._parser = parser
        self._own_beam = int(parser.cfg["beam_width"])
        self._maker = PoolMaker(parser, inventory=self.inventory)
        self._before = listened_pipes(nlp, parser)

    def candidates(self, sentences: Iterable[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list of at most k trees for each sentence; its trees, if any, are not looked at."""
        vocab = self.nlp.vocab
        docs = (doc_from_sentence(vocab, s, gold_tags=self.gold_tags) for s in sentences)
        return self.candidates_from_docs(docs, k=k)

    def candidates_from_docs(self, docs: Iterable[Doc], *, k: int) -> Iterator[CandidateList]:
        """The same for Docs of one sentence each, as `span.as_doc()` makes them.

        They must carry what the parser's embedding reads (tags, say), and no parse: it would change
        what the parser does.  Only sentence starts and, where the parser listens to another
        component, `doc.tensor` are written.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        for batch in _batches(docs, self.batch_words):
            for pool in self._pools(batch, k):
                rows = pool.choose(k)
                yield CandidateList.from_arrays(
                    pool.heads[rows],
                    pool.labels[rows],
                    pool.scores[rows, None],
                    inventory=self.inventory,
                    sources=(self.name,),
                )

    def scores(self, sentence: Sentence, trees: CandidateList) -> np.ndarray:
        """What this parser thinks of trees of any origin: log-probabilities float64[k].

        -infinity where a tree has a relation that the parser was not trained on.
        """
        doc = doc_from_sentence(self.nlp.vocab, sentence, gold_tags=self.gold_tags)
        return self.scores_of_doc(doc, trees)

    def scores_of_doc(self, doc: Doc, trees: CandidateList) -> np.ndarray:
        """The same for a Doc as `candidates_from_docs` takes it."""
        return self._maker.scores(
            self._maker.vectors(self._prepared([doc])),
            first=0,
            heads=trees.heads,
            deprels=[trees.deprels(j) for j in range(len(trees))],
        )

    def _pools(self, docs: list[Doc], k: int) -> Iterator[Pool]:
        docs = self._prepared(docs)
        cached = self._maker.vectors(docs)
        beams: list[list[Pool]] = []
        if self._own_beam > 1:
            beams.append(self._maker.beam(docs, cached, width=self._own_beam))
        if self.search != "discrepancy":
            beams.append(self._maker.beam(docs, cached, width=self.beam_width or max(2, k)))
        # A beam parser's own tree heads its own beam; all others' is the greedy one.
        runs = 1 if self.search == "beam" else self.runs * k
        first = 0
        for i, doc in enumerate(docs):
            found = [beam[i] for beam in beams]
            greedy = self._maker.discrepancies(
                doc, cached, first=first, max_runs=runs, limit=1 if runs == 1 else 2 * k
            )
            found.insert(1 if self._own_beam > 1 else 0, greedy)
            first += len(doc)
            yield Pool.join(found)

    def _prepared(self, docs: list[Doc]) -> list[Doc]:
        for doc in docs:
            for token in doc:
                token.is_sent_start = token.i == 0
        for pipe in self._before:
            pipe.set_annotations(docs, pipe.predict(docs))
        return docs


def _batches(docs: Iterable[Doc], words: int) -> Iterator[list[Doc]]:
    batch: list[Doc] = []
    size = 0
    for doc in docs:
        if not len(doc):
            raise ValueError("an empty Doc has no parse")
        batch.append(doc)
        size += len(doc)
        if size >= words:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def listened_pipes(nlp: Language, parser: DependencyParser) -> Sequence:
    """Components before the parser whose vectors its model listens to, in pipeline order."""
    wanted = {node.upstream_name for node in parser.model.walk() if hasattr(node, "upstream_name")}
    if not wanted:
        return []
    before = []
    for name, pipe in nlp.components:
        if pipe is parser:
            break
        if hasattr(pipe, "listener_map") and wanted & {name, "*"}:
            before.append(pipe)
    return before
