"""How spaCy scores the dependencies and tags of our components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spacy.scorer import Scorer
from spacy.tokens import Token

if TYPE_CHECKING:
    from spacy.training import Example
PUNCTUATION_LABELS = ("p", "punct")  # as spaCy's parser leaves them out of its scores
SCORE_WEIGHTS: dict[str, float | None] = {
    "dep_uas": 0.5,
    "dep_las": 0.5,
    "dep_las_per_type": None,
    "dep_uas_with_punct": None,
    "dep_las_with_punct": None,
}
"""What `spacy train` makes of the scores of `score_dependencies`: part of its score, or shown."""


def _lower_label(token: Token, attr: str) -> str:
    return token.vocab.strings.as_string(getattr(token, attr)).lower()


def score_dependencies(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Attachment scores by spaCy's Scorer, without punctuation and (`..._with_punct`) with it."""
    examples = list(examples)
    kwargs = {**kwargs, "getter": _lower_label}
    scores = Scorer.score_deps(examples, "dep", **{**kwargs, "ignore_labels": PUNCTUATION_LABELS})
    with_punct = Scorer.score_deps(examples, "dep", **{**kwargs, "ignore_labels": ()})
    for name in ("dep_uas", "dep_las"):
        scores[f"{name}_with_punct"] = with_punct[name]
    return scores


def score_tagging(examples: Iterable[Example], **_: Any) -> dict[str, Any]:
    """Accuracies of TAG, POS, MORPH (the whole of it) and LEMMA by spaCy's Scorer, 0 to 1."""
    examples = list(examples)
    scores: dict[str, Any] = {}
    for attribute in ("tag", "pos", "lemma"):
        scores |= Scorer.score_token_attr(examples, attribute)
    whole = Scorer.score_token_attr(examples, "morph", getter=lambda token, _: str(token.morph))
    return scores | whole
