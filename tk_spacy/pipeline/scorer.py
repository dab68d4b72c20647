"""How spaCy scores the dependencies and tags of our components."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spacy.scorer import Scorer
from spacy.tokens import Token
from spacy.util import registry

if TYPE_CHECKING:
    from spacy.training import Example

ScoreDict = dict[str, Any]

DEPENDENCY_SCORER = {"@scorers": "tk_spacy.dependency_scorer.v1"}
TAGGING_SCORER = {"@scorers": "tk_spacy.tagging_scorer.v1"}
"""What a component's config says of its scorer, by default; null for none."""

PUNCTUATION_LABELS = ("p", "punct")  # as spaCy's parser leaves them out of its scores
SCORE_WEIGHTS: dict[str, float | None] = {
    "dep_uas": 0.5,
    "dep_las": 0.5,
    "dep_las_per_type": None,
    "dep_uas_with_punct": None,
    "dep_las_with_punct": None,
}
"""What `spacy train` makes of the scores of `score_dependencies`: part of its score, or shown."""


@registry.scorers(DEPENDENCY_SCORER["@scorers"])
def make_dependency_scorer() -> Callable[..., ScoreDict]:
    """`score_dependencies`, for the config of any parser."""
    return score_dependencies


@registry.scorers(TAGGING_SCORER["@scorers"])
def make_tagging_scorer() -> Callable[..., ScoreDict]:
    """`score_tagging`, for the config of any tagger."""
    return score_tagging


def _alignable(examples: Iterable[Example]) -> list[Example]:
    """The examples whose words can be matched to the gold ones; warns of how many cannot be."""
    given, found = 0, []
    for example in examples:
        given += 1
        try:
            _ = example.alignment
        except ValueError:
            continue
        found.append(example)
    if len(found) < given:
        warnings.warn(
            f"{given - len(found)} of {given} examples are not scored: the words found in their "
            "text are not the gold ones and do not spell them, as of a multiword token, which "
            "spaCy cannot match; have the gold words parsed (spacy evaluate --gold-preproc), or "
            "score files of text by aligned F1 (udeval)",
            stacklevel=2,
        )
    return found


def _lower_label(token: Token, attr: str) -> str:
    return token.vocab.strings.as_string(getattr(token, attr)).lower()


def score_dependencies(examples: Iterable[Example], **kwargs: Any) -> ScoreDict:
    """Attachment scores by spaCy's Scorer, 0 to 1, on lower-cased labels with their subtypes.

    dep_uas, dep_las, dep_las_per_type: without punctuation, as spaCy's parser reports them.
    dep_uas_with_punct, dep_las_with_punct: of all tokens but white space.
    """
    examples = _alignable(examples)
    kwargs = {**kwargs, "getter": _lower_label}
    scores = Scorer.score_deps(examples, "dep", **{**kwargs, "ignore_labels": PUNCTUATION_LABELS})
    with_punct = Scorer.score_deps(examples, "dep", **{**kwargs, "ignore_labels": ()})
    for name in ("dep_uas", "dep_las"):
        scores[f"{name}_with_punct"] = with_punct[name]
    return scores


def score_tagging(examples: Iterable[Example], **_: Any) -> ScoreDict:
    """Accuracies of TAG, POS, MORPH (the whole of it) and LEMMA by spaCy's Scorer, 0 to 1.

    Without tag_acc where no predicted word has a TAG, as of a treebank without XPOS.
    """
    examples = _alignable(examples)
    scores: dict[str, Any] = {}
    has_tags = any(example.predicted.has_annotation("TAG") for example in examples)
    for attribute in ("tag", "pos", "lemma")[not has_tags :]:
        scores |= Scorer.score_token_attr(examples, attribute)
    whole = Scorer.score_token_attr(examples, "morph", getter=lambda token, _: str(token.morph))
    return scores | whole
