"""Several networks as one: the scores of arcs and labels are the means of theirs.

The mean of scores is, but for a constant a word, the mean of log-probabilities: an arc is likely
where no network finds it unlikely.  Networks that differ in nothing but the seed err in different
places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thinc.api import Model, Ops

from tk_spacy.parsers.biaffine.batch import Input
from tk_spacy.parsers.biaffine.batches import Layout
from tk_spacy.parsers.biaffine.embedding import embedding_of
from tk_spacy.parsers.biaffine.scorer import Array, Int, LabelScores, Scores

NAME = "tk_biaffine_committee"


class JointLabelScores:
    """The scores of labels by several networks: what is asked of `LabelScores`."""

    def __init__(self, members: Sequence[LabelScores]) -> None:
        self._members = members
        self.ops: Ops = members[0].ops

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self._members[0].n_labels

    def of_rows(self, rows: slice) -> JointLabelScores:
        """See `LabelScores`."""
        return JointLabelScores([member.of_rows(rows) for member in self._members])

    def label_scores(self, modifiers: Int, heads: Int) -> Array:
        """See `LabelScores`."""
        return _mean([member.label_scores(modifiers, heads) for member in self._members])

    def all_label_scores(self, modifier: int, modifiers: int, head: int, heads: int) -> Array:
        """See `LabelScores`."""
        return _mean([m.all_label_scores(modifier, modifiers, head, heads) for m in self._members])


class JointScores(JointLabelScores):
    """The scores of a batch by several networks: what is asked of `Scores` but for learning."""

    def __init__(self, members: Sequence[Scores]) -> None:
        super().__init__(members)
        self.layout: Layout = members[0].layout
        self.arcs: Array = _mean([member.arcs for member in members])


def _mean(arrays: Sequence[Array]) -> Array:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    total /= len(arrays)
    return total


def make_committee(members: Sequence[Model[Input, Any]]) -> Model[Input, Any]:
    """The model of several, which have learnt apart, of the same labels."""
    return Model(NAME, forward, layers=list(members))


def members_of(model: Model[Input, Any]) -> Sequence[Model[Input, Any]]:
    """The networks of a parser's model: itself where it is one alone."""
    return model.layers if model.name == NAME else [model]


def share_vocabulary(model: Model[Input, Any]) -> None:
    """Have networks that know the same words look them up in one place, so that it is done once."""
    first, *others = [embedding_of(member) for member in members_of(model)]
    for other in others:
        if first is not None and other is not None:
            known, own = first.attrs["vocabulary"], other.attrs["vocabulary"]
            if own is not known and (own.words, own.tags) == (known.words, known.tags):
                other.attrs["vocabulary"] = known


def forward(
    model: Model[Input, Any], X: Input, is_train: bool
) -> tuple[JointScores, Callable[[Any], Any]]:
    """The scores of a batch.  Raises ValueError where it is to learn."""
    if is_train:
        raise ValueError("the networks of a committee learn apart")
    scores = JointScores([member.predict(X) for member in model.layers])

    def backprop(_: Any) -> Any:
        raise ValueError("the networks of a committee learn apart")

    return scores, backprop
