"""The parsers of a spaCy pipeline as candidate sources, for sentences and for Docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tk_spacy.biaffine_component import TkBiaffine
from tk_spacy.candidates import CandidateList, LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.parser_component import TkParser
from tk_spacy.reranker import Reranker
from tk_spacy.upstream.component_checks import check_source, untrained
from tk_spacy.upstream.doc_trees import DocSentence
from tk_spacy.upstream.spacy_parser import SpacySource, source_name
from tk_spacy.views.protocol import ViewSource

if TYPE_CHECKING:
    from spacy.language import Language

Float64 = NDArray[np.float64]


def pipeline_sources(
    nlp: Language,
    components: Sequence[str],
    *,
    reranker: Reranker | None = None,
    user: str = "tk_reranker",
    search: str = "discrepancy",
    inventory: LabelInventory,
    n_threads: int | None = None,
) -> list[ViewSource]:
    """A source for each of some parsers of a pipeline, the main one first.

    reranker: whose candidates they are to make: as it learnt them, with or without spaCy's twin.
    user: who wants them, for error messages.  search: of spaCy's parsers.
    Raises UserError where a component is no parser, or not trained.
    """
    sources: list[ViewSource] = []
    for name in components:
        check_source(nlp, user, name)
        component = nlp.get_pipe(name)
        if isinstance(component, TkParser):
            from tk_spacy.sampling.source import SamplingSource  # noqa: PLC0415

            if component.parser is None:
                raise UserError(untrained(name, "parser"))
            sources.append(
                SamplingSource(component.parser, inventory=inventory, n_threads=n_threads)
            )
        elif isinstance(component, TkBiaffine):
            from tk_spacy.biaffine.source import BiaffineSource  # noqa: PLC0415

            if component.parser is None:
                raise UserError(untrained(name, "parser"))
            sources.append(BiaffineSource(component.parser, inventory=inventory))
        else:
            backward = None if reranker is None else reranker.about.get("backward")
            source = SpacySource(
                nlp,
                component=name,
                backward=backward,
                search=search,  # type: ignore[arg-type]  # checked by it
                inventory=inventory,
            )
            if reranker is not None:
                source.name = _known_name(source.name, reranker)
            sources.append(source)
    return sources


def _known_name(name: str, reranker: Reranker) -> str:
    """A spaCy source's name in a model: older ones call the sum of two scores "spacy" as well."""
    known = reranker.combination.betas if reranker.combination else {}
    plain = source_name(backward=False)
    is_older = "sources" not in reranker.about and plain in known and name not in known
    return plain if is_older else name


class DocSource(Protocol):
    """Proposes and scores trees over the words of sentences of Docs."""

    name: str

    def trees(
        self, sentences: Sequence[DocSentence], *, k: int
    ) -> list[tuple[NDArray[np.int32], NDArray[np.int32], Float64, int]]:
        """Heads and label ids int32[m, words], scores float64[m], and the row of the own tree.

        Perhaps no tree at all, or equal ones.
        """
        ...

    def score(
        self, sentences: Sequence[DocSentence], lists: Sequence[CandidateList]
    ) -> list[Float64]:
        """Scores float64[k] of given trees, NaN where there is none."""
        ...


def as_doc_source(source: ViewSource) -> DocSource:
    """A source for Docs: spaCy's parsers want all tokens of a Doc, others its words."""
    return _OfTokens(source) if isinstance(source, SpacySource) else _OfWords(source)


class _OfTokens:
    def __init__(self, source: SpacySource) -> None:
        self.name = source.name
        self._source = source

    def trees(self, sentences: Sequence[DocSentence], *, k: int) -> list[Any]:
        found = self._source.candidates_from_docs((s.as_doc() for s in sentences), k=k)
        result = []
        for sentence, trees in zip(sentences, found, strict=True):
            heads, labels, scores, base = sentence.word_trees(trees)
            result.append((heads, labels, scores[:, 0], base))
        return result

    def score(
        self, sentences: Sequence[DocSentence], lists: Sequence[CandidateList]
    ) -> list[Float64]:
        over_tokens = [
            sentence.token_trees(trees) for sentence, trees in zip(sentences, lists, strict=True)
        ]
        return list(
            self._source.scores_of_docs((sentence.as_doc() for sentence in sentences), over_tokens)
        )


class _OfWords:
    def __init__(self, source: ViewSource) -> None:
        self.name = source.name
        self._source = source

    def trees(self, sentences: Sequence[DocSentence], *, k: int) -> list[Any]:
        found = self._source.candidates([s.as_sentence() for s in sentences], k=k)
        return [(t.heads, t.labels, t.scores[:, 0], t.base) for t in found]

    def score(
        self, sentences: Sequence[DocSentence], lists: Sequence[CandidateList]
    ) -> list[Float64]:
        return self._source.score([s.as_sentence() for s in sentences], lists)
