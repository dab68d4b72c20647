"""Candidate trees from any trained spaCy `parser` or `beam_parser`, or from two of them.

A pipeline that `train_spacy_parser` made holds a second parser, which reads sentences from right to
left and is disabled, so that it runs here only.  Trees come from both then, and each is scored by
both: where the two agree, a tree is much more often right than either of them knows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import MAX_K, CandidateList, LabelInventory
from tk_spacy.kbest.long_sentences import list_cut, score_cut
from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parsers.names import SEARCHES, Search, backward_name
from tk_spacy.parsers.spacy_transition.cache import Recent
from tk_spacy.parsers.spacy_transition.directed_parser import ReadBatch, Reading, listened_pipes
from tk_spacy.parsers.spacy_transition.kind import KIND
from tk_spacy.parsers.spacy_transition.training import train_spacy_parser
from tk_spacy.parsers.spacy_transition.tree_pool import Pool
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.tree_rows import group_equal

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["Search", "SpacySource", "listened_pipes", "source_names", "train_spacy_parser"]


def source_names(*, backward: bool, name: str = KIND.name) -> tuple[str, ...]:
    """What scores are called: of a parser with its twin first the sum, then those of each."""
    return (f"{name}+backward", name, f"{name}-backward") if backward else (name,)


_MAKING_DOCS = Lock()
"""Sources of one pipeline may work side by side, and a new word changes its vocab."""


_ATTRIBUTES = {"LEMMA": "LEMMA", "UPOS": "POS", "XPOS": "TAG", "FEATS": "MORPH"}
"""spaCy's names of CoNLL-U's columns."""


class SpacySource:
    """The k likeliest trees of a spaCy parser; its own tree is always among them, as `base`.

    The twin's own tree, where there is one, is among them too, in `bases`.

    nlp:        pipeline that holds the parser, and the tok2vec that it may listen to.
    component:  name of the parser in it.
    backward:   whether to use the parser's right-to-left twin too; None where the pipeline has it.
    search:     "discrepancy" (many different trees), "beam" (spaCy's own), or "both" in one list.
    runs:       parser runs of the discrepancy search for each candidate asked for; more runs give
                slightly better lists for more time.
    beam_width: of the beam search, k where None.
    batch_words: words in one batch of the model.
    label_cost: log-odds that each word's label that differs from a better tree with the same heads
                costs a tree in the competition for a place; 0 fills lists with labellings of few
                trees.
    inventory:  table of labels to share with other lists.
    gold_tags:  whether the parser sees a Sentence's XPOS, UPOS, FEATS and LEMMA columns.
    name:       of the parser, which `source_names` makes names of scores of.
    names:      of the scores, None for those; a single one with a twin for sums alone.

    A candidate's score is the natural logarithm of a probability: that of the likeliest known
    derivation of the tree, each action normalised over the actions allowed in its state; where
    several actions lead to the same tree (the dynamic oracle's), their sum.  With two parsers it is
    the sum of the two logarithms, and beside it stand the two.  It compares trees of one sentence,
    not of different ones.

    Raises UserError where the pipeline has no such parser.
    """

    in_company = False

    def __init__(
        self,
        nlp: Language,
        *,
        component: str = "parser",
        backward: bool | None = None,
        search: Search = "discrepancy",
        runs: int = 4,
        beam_width: int | None = None,
        batch_words: int = 2000,
        label_cost: float = 3.0,
        inventory: LabelInventory | None = None,
        gold_tags: bool = True,
        name: str = KIND.name,
        names: tuple[str, ...] | None = None,
    ) -> None:
        if search not in SEARCHES:
            raise ValueError(f"search must be one of {', '.join(SEARCHES)}, got {search!r}")
        if runs < 1:
            raise ValueError(f"runs must be at least 1, got {runs}")
        self.nlp = nlp
        self.component = component
        self.batch_words = batch_words
        self.label_cost = label_cost
        self.gold_tags = gold_tags
        self.inventory = LabelInventory() if inventory is None else inventory
        twin = backward_name(component)
        if backward is None:
            backward = twin in nlp.component_names
        self.name, self.backward = name, backward
        self.names = source_names(backward=backward, name=name) if names is None else names
        self._readings = [
            Reading(
                nlp,
                name,
                inventory=self.inventory,
                search=search,
                runs=runs,
                beam_width=beam_width,
                mirrored=name == twin,
            )
            for name in ([component, twin] if backward else [component])
        ]
        self._recent = Recent()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the pipeline embeds beside FORM, whether training had them or not."""
        if not self.gold_tags:
            return ()
        embedded = set(_attributes(self.nlp.config.get("components", {})))
        return tuple(name for name, attribute in _ATTRIBUTES.items() if attribute in embedded)

    def candidates(self, sentences: Iterable[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list of at most k trees for each sentence; its trees, if any, are not looked at.

        Those of sentences too long to be searched whole come from pieces, see `long_sentences`; a
        parser's own tree alone does not, since it takes no search.
        """
        if k == 1:
            yield from self.candidates_from_docs(map(self._doc, sentences), k=k)
            return
        yield from list_cut(
            sentences, lambda pieces: self.candidates_from_docs(map(self._doc, pieces), k=k), k
        )

    def candidates_from_docs(
        self, docs: Iterable[Doc], *, k: int
    ) -> Generator[CandidateList, None, None]:
        """The same for Docs of one sentence each, as `span.as_doc()` makes them.

        They must carry what the parser's embedding reads (tags, say), and no parse: it would change
        what the parser does.  Only sentence starts and, where the parser listens to another
        component, `doc.tensor` are written.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        k = min(k, MAX_K)  # a beam of any width would be tried, whatever its memory
        for batch in _batches(docs, self.batch_words):
            read = [reading.read(batch, k=k) for reading in self._readings]
            self._recent.add_batch(batch, read)
            for i in range(len(batch)):
                raise_if_stopped()
                pool, columns, own = _pool(read, i)
                rows = _choose(pool, k, self.label_cost, own)
                has_twin = len(self.names) > 1 and own[-1] in rows
                yield CandidateList.from_arrays(
                    pool.heads[rows],
                    pool.labels[rows],
                    columns[rows, : len(self.names)],
                    inventory=self.inventory,
                    sources=self.names,
                    bases={self.names[-1]: rows.index(own[-1])} if has_twin else None,
                )

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """What the parser, or both, think of trees of any origin: float64[k, n_names].

        NaN where a tree has a relation that a parser was not trained on.
        """
        return score_cut(
            sentences,
            lists,
            lambda pieces, trees: list(self.scores_of_docs(map(self._doc, pieces), trees)),
        )

    def _doc(self, sentence: Sentence) -> Doc:
        """A Doc of a sentence: the one that there is, if it was seen just now."""
        doc = self._recent.doc_of(sentence)
        if doc is None:
            with _MAKING_DOCS:
                doc = doc_from_sentence(self.nlp.vocab, sentence, gold_tags=self.gold_tags)
            self._recent.add_doc(sentence, doc)
        return doc

    def scores_of_docs(
        self, docs: Iterable[Doc], lists: Iterable[CandidateList]
    ) -> Iterator[NDArray[np.float64]]:
        """The same for Docs as `candidates_from_docs` takes them."""
        following = iter(lists)
        for batch in _batches(docs, self.batch_words):
            found = [self._recent.batch_of(doc) for doc in batch]
            if None in found:
                read = [reading.read(batch, k=1) for reading in self._readings]
                found = [(read, i) for i in range(len(batch))]
            for place in found:
                assert place is not None
                read, i = place
                trees = next(following)
                labels = trees.labels
                if trees.inventory is not self.inventory:
                    rows = [trees.deprels(j) for j in range(len(trees))]
                    labels = np.stack([self.inventory.encode(row) for row in rows])
                columns = _columns([own.scores(i, trees.heads, labels) for own in read])
                yield np.where(np.isfinite(columns), columns, np.nan)[:, : len(self.names)]


def _pool(read: Sequence[ReadBatch], i: int) -> tuple[Pool, NDArray[np.float64], tuple[int, ...]]:
    """Trees of Doc i of a batch from all parsers, their scores, and the row of each one's own tree.

    The scores are columns as `source_names` has them; the pool's are the first.  Row 0 is the first
    parser's own tree.  Equal trees may occur, of a single parser only.
    """
    pools = [batch.pool(i) for batch in read]
    if len(pools) == 1:
        return pools[0], pools[0].scores[:, None], (0,)
    joined = Pool.join(pools)
    group, first = group_equal(joined.heads, joined.labels)
    heads, labels = joined.heads[first], joined.labels[first]
    scores, own = [], []
    start = 0
    for batch, pool in zip(read, pools, strict=True):
        known = batch.scores(i, heads, labels)
        np.maximum.at(known, group[start : start + len(pool.scores)], pool.scores)
        scores.append(_finite(known))
        own.append(int(group[start]))
        start += len(pool.scores)
    columns = _columns(scores)
    return Pool(heads, labels, columns[:, 0]), columns, tuple(own)


def _columns(scores: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The scores of one parser, or the sum of two and each of them: float64[m, 1 or 3]."""
    columns = scores if len(scores) == 1 else [sum(scores), *scores]
    return np.stack(columns, axis=1)


def _choose(pool: Pool, k: int, label_cost: float, own: Sequence[int]) -> list[int]:
    """Rows of all copies of the k distinct trees that win the places, the parsers' own first."""
    order = np.argsort(-pool.scores, kind="stable")
    best: dict[bytes, int] = {}
    values = pool.scores.copy()
    for row in order.tolist():
        first = best.setdefault(pool.heads[row].tobytes(), row)
        values[row] -= label_cost * np.count_nonzero(pool.labels[row] != pool.labels[first])
    both = np.concatenate([pool.heads, pool.labels], axis=1)
    chosen: list[int] = []
    seen: set[bytes] = set()
    others = [row for row in np.argsort(-values, kind="stable").tolist() if row not in own]
    for row in [*dict.fromkeys(own), *others]:
        tree = both[row].tobytes()
        if tree in seen or len(seen) < k:
            seen.add(tree)
            chosen.append(row)
    return chosen


def _finite(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores with a finite one, below all others, for trees that a parser cannot make."""
    known = np.isfinite(scores)
    if known.all():
        return scores
    return np.where(known, scores, scores[known].min() - 10.0 if known.any() else 0.0)


def _batches(docs: Iterable[Doc], words: int) -> Iterator[Sequence[Doc]]:
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


def _attributes(config: Mapping[str, Any]) -> Iterator[str]:
    """The attributes of tokens that any part of a config embeds."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _attributes(value)
        elif name == "attrs" and isinstance(value, list):
            yield from map(str, value)
