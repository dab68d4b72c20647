"""Sources: parsers at work, which propose trees and score them; scores are named after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.treebank.conllu import Sentence


class ParserSource(Protocol):
    """A parser at work: it proposes candidate trees, and scores any trees.

    names: of its scores, one at least; the first one's give the order of its lists.
    in_company: whether other parsers propose trees too (MergedSource says so), so that it may
        search for a shorter time.
    """

    in_company: bool

    @property
    def names(self) -> tuple[str, ...]: ...  # noqa: D102  (said above)

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list of at most k trees for each sentence, in order; its `sources` are the names."""
        ...

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """This parser's scores of given trees, float64[k, n_names] for each sentence.

        Comparable with those of `candidates`; NaN where the parser cannot score a tree.
        """
        ...


@runtime_checkable
class ArcScorer(Protocol):
    """A source that can say of a single arc how likely it is, whatever the rest of the tree."""

    def arc_scores(self, sentences: Sequence[Sentence]) -> list[NDArray[np.float64]]:
        """How likely each arc of the sentences' own trees is: float64[n, 2] each.

        The log-probabilities of the head, and of the label given the head; NaN where it cannot
        tell.
        """
        ...


@runtime_checkable
class Remembering(Protocol):
    """A source whose scores depend, in their last digits, on what it remembers of others."""

    def forget(self) -> None:
        """Forget all sentences, so that the next ones get what they would get alone."""
        ...


@runtime_checkable
class Recalling(Remembering, Protocol):
    """One that can hand on what it remembers, so that another process need not find it again."""

    def recall(self, sentences: Sequence[Sentence]) -> Any:
        """What it remembers of these, in a form that may go to another process."""
        ...

    def remember(self, known: Any) -> None:
        """Remember what `recall` told, and nothing else."""
        ...
