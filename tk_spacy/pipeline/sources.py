"""The parsers of a spaCy pipeline as candidate sources, for sentences and for Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.kinds import find_kind
from tk_spacy.parsers.names import SPACY
from tk_spacy.parsers.spacy_transition.source import SpacySource, source_names
from tk_spacy.pipeline.checks import untrained
from tk_spacy.pipeline.parser_base import ParserComponent, check_source
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.provenance import Provenance
from tk_spacy.spacy_io.conversion import UD_ROOT, to_ud_label
from tk_spacy.spacy_io.doc_trees import DocSentence, contract
from tk_spacy.trees.tree_rows import invalid_trees
from tk_spacy.utils.array_types import Float64

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


def pipeline_sources(
    nlp: Language,
    components: Sequence[str],
    *,
    reranker: Reranker | None = None,
    user: str = "tk_reranker",
    search: str = "discrepancy",
    inventory: LabelInventory,
    n_threads: int | None = None,
    twins: bool = True,
) -> list[ParserSource]:
    """A source for each of some parsers of a pipeline, the main one first.

    twins: whether spaCy's parsers work with their right-to-left twins, where they have some.
    reranker: whose candidates they are to make: as it learnt them, with or without spaCy's twin.
    user: who wants them, for error messages.  search: of spaCy's parsers.
    Raises UserError where a component is no parser, or not trained.
    """
    sources: list[ParserSource] = []
    made = reranker.provenance if reranker is not None else None
    parsers = known_parsers(nlp, components, made)
    for name, known in zip(components, parsers, strict=True):
        check_source(nlp, user, name)
        component = nlp.get_pipe(name)
        if isinstance(component, ParserComponent):
            if component.parser is None:
                raise UserError(untrained(name, "parser"))
            sources.append(
                component.source(
                    component.parser, inventory=inventory, n_threads=n_threads, name=known
                )
            )
        else:
            backward = False if not twins else None
            if made is not None:
                backward = made.has_twin(known)
            source = SpacySource(
                nlp,
                component=name,
                backward=backward,
                search=search,  # type: ignore[arg-type]  # checked by it
                inventory=inventory,
                name=known,
            )
            if reranker is not None:
                source.names = _known_names(source.names, reranker)
            sources.append(source)
    return sources


def known_parsers(nlp: Language, components: Sequence[str], made: Provenance | None) -> list[str]:
    """What the parsers of a pipeline are called: each as the model, made so, calls it.

    In whatever order they come: a component that has the name that its parser has in a model of
    `tk-spacy train` is that one, others are the model's parsers of their kind, in its order.
    """
    parsers = made.own_parsers if made is not None else []
    if len(parsers) != len(components):
        return parser_names(nlp, components)
    usual = {_component_of(parser): parser for parser in parsers}
    left = [parser for parser in parsers if _component_of(parser) not in components]
    found = []
    for component in components:
        kind = _kind_of(nlp, component)
        same = [parser for parser in left if parser.partition("-")[0] == kind]
        if component in usual:
            found.append(usual[component])
        elif same:
            found.append(same[0])
            left.remove(same[0])
        else:
            return parser_names(nlp, components)
    return found


def parser_names(nlp: Language, components: Sequence[str]) -> list[str]:
    """What the parsers of a pipeline are called where no training has named them.

    The first parser of a kind goes by the kind's name, a further one by its component's too, as in
    "biaffine-tk_biaffine2" and "spacy-parser2".
    """
    found: list[str] = []
    for name in components:
        kind = _kind_of(nlp, name)
        found.append(f"{kind}-{name}" if kind in found else kind)
    return found


def _kind_of(nlp: Language, name: str) -> str:
    component = nlp.get_pipe(name) if name in nlp.component_names else None
    return component.KIND if isinstance(component, ParserComponent) else SPACY


def _component_of(parser: str) -> str | None:
    """Name of a parser's component where `tk-spacy train` makes it; None for spaCy's parsers."""
    kind = find_kind(parser.partition("-")[0])
    return None if kind is None or kind.factory is None else kind.component_name(parser)


def _known_names(names: tuple[str, ...], reranker: Reranker) -> tuple[str, ...]:
    """A spaCy source's names in a model: older ones know of a parser with its twin the sum alone.

    The oldest call it "spacy" as well.
    """
    known = reranker.combination.betas if reranker.combination else {}
    if not known or names[-1] in known:
        return names
    plain = source_names(backward=False)
    is_oldest = not reranker.provenance.sources and plain[0] in known and names[0] not in known
    return plain if is_oldest else names[:1]


class DocSource(Protocol):
    """Proposes and scores trees over the words of sentences of Docs."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its scores."""
        ...

    @property
    def wants_own(self) -> bool:
        """Whether the Doc's tree, which it made, is to be in its lists in any case."""
        ...

    @property
    def of_words(self) -> ParserSource | None:
        """The parser, where it reads the words of a sentence alone."""
        ...

    def trees(self, sentences: Sequence[DocSentence], *, k: int) -> list[CandidateList | None]:
        """A list for each sentence, None where the parser has no tree over its words."""
        ...

    def score(
        self, sentences: Sequence[DocSentence], lists: Sequence[CandidateList]
    ) -> list[Float64]:
        """Scores float64[k, n_names] of given trees, NaN where there is none."""
        ...


def as_doc_source(source: ParserSource) -> DocSource:
    """A source for Docs: spaCy's parsers want all tokens of a Doc, others its words."""
    return _OfTokens(source) if isinstance(source, SpacySource) else _OfWords(source)


class _OfTokens:
    def __init__(self, source: SpacySource) -> None:
        self.names = source.names
        self._source = source
        self._docs: dict[int, tuple[DocSentence, Doc]] = {}

    @property
    def wants_own(self) -> bool:
        return True

    @property
    def of_words(self) -> None:
        return None

    def trees(self, sentences: Sequence[DocSentence], *, k: int) -> list[CandidateList | None]:
        self._docs = {id(s): (s, s.as_doc()) for s in sentences}
        docs = (self._doc(s) for s in sentences)
        found = self._source.candidates_from_docs(docs, k=k)
        return [
            word_trees(sentence, trees) for sentence, trees in zip(sentences, found, strict=True)
        ]

    def score(
        self, sentences: Sequence[DocSentence], lists: Sequence[CandidateList]
    ) -> list[Float64]:
        over_tokens = [
            token_trees(sentence, trees) for sentence, trees in zip(sentences, lists, strict=True)
        ]
        return list(self._source.scores_of_docs((self._doc(s) for s in sentences), over_tokens))

    def _doc(self, sentence: DocSentence) -> Doc:
        # The one that trees were sought for, so that the parser knows it again.
        kept = self._docs.get(id(sentence))
        return sentence.as_doc() if kept is None else kept[1]


class _OfWords:
    def __init__(self, source: ParserSource) -> None:
        self.names = source.names
        self._source = source

    @property
    def of_words(self) -> ParserSource:
        return self._source

    @property
    def wants_own(self) -> bool:
        # In company lists are searched for another time than the tree of the Doc was: the model
        # learnt from what that finds, and chooses from it wherever it is asked.
        return not self._source.in_company

    def trees(self, sentences: Sequence[DocSentence], *, k: int) -> list[CandidateList | None]:
        return list(self._source.candidates([s.plain for s in sentences], k=k))

    def score(
        self, sentences: Sequence[DocSentence], lists: Sequence[CandidateList]
    ) -> list[Float64]:
        return self._source.score([s.plain for s in sentences], lists)


def word_trees(sentence: DocSentence, trees: CandidateList) -> CandidateList | None:
    """Candidates over all n tokens as trees over the m words, None where there are none.

    Those that are no tree with a single root any more are left out, the base perhaps as well:
    it is row 0 then.
    """
    if len(sentence.words) == sentence.end - sentence.start:
        return trees
    heads = contract(trees.heads, sentence.words)
    rows = np.setdiff1d(np.arange(len(heads)), invalid_trees(heads))
    heads = heads[rows]
    labels = trees.labels[rows][:, sentence.words]
    # A word that lost its white-space head may have become the root.
    labels = np.where(heads == 0, np.int32(trees.inventory.add(UD_ROOT)), labels)
    if not len(rows):
        return None
    place = {row: i for i, row in enumerate(rows.tolist())}
    return CandidateList.from_arrays(
        heads,
        labels,
        trees.scores[rows],
        inventory=trees.inventory,
        sources=trees.sources,
        base=place.get(trees.base, 0),
        bases={name: place[row] for name, row in trees.bases.items() if row in place},
    )


def token_trees(sentence: DocSentence, trees: CandidateList) -> CandidateList:
    """Candidates over the words as trees over all tokens, white space where it hangs now."""
    n = sentence.end - sentence.start
    if len(sentence.words) == n:
        return trees
    places = np.append(sentence.words + 1, 0).astype(np.int32)
    heads = np.tile(sentence.token_heads, (len(trees), 1))
    heads[:, sentence.words] = places[trees.heads - 1]
    own = trees.inventory.encode(map(to_ud_label, sentence.token_labels))
    labels = np.tile(own, (len(trees), 1))
    labels[:, sentence.words] = trees.labels
    return replace(trees, heads=heads, labels=labels)
