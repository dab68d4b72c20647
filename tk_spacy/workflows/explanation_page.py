"""An explanation as a page of its own: trees side by side, scores, and examples, in HTML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tk_spacy.pages.content import DrawnTree
from tk_spacy.pages.rendering import render
from tk_spacy.pages.trees import CUT_TOLD, cut_out, drawn_tree
from tk_spacy.reranker.explain import Explanation
from tk_spacy.workflows.explain import ExplainedSentence
from tk_spacy.workflows.explanation_words import (
    arc_line,
    broken_words,
    given_line,
    marked_words,
    sentence_name,
    share_line,
    shared_line,
    source_line,
    split_line,
    strongest_features,
    what_line,
)


def page(made: ExplainedSentence) -> str:
    """The page, as text."""
    explanation = made.explanation
    differing = set(explanation.differing)
    n = len(explanation.forms)
    shown = cut_out(n, differing, [tree.heads for tree in explanation.trees])
    parts = {"": shown} if shown is None else {"": shown, "-whole": None}
    drawn = {
        ending: _drawn(explanation, differing, words, ending) for ending, words in parts.items()
    }
    return render(
        "explanation.html",
        generator="tk-spacy explain",
        title=sentence_name(made),
        given=given_line(explanation),
        words=[
            {"form": form, "differs": i in differing}
            for i, form in enumerate(explanation.forms, start=1)
        ],
        source=source_line(made),
        trees=drawn[""],
        whole=drawn.get("-whole", ()),
        cut_told=CUT_TOLD,
        roles=[tree.role for tree in explanation.trees],
        compared=len(explanation.trees) > 1,
        rows=_component_rows(explanation),
        features=_feature_tables(explanation),
        arcs=_arcs(explanation),
    )


def _drawn(
    explanation: Explanation, differing: set[int], shown: Collection[int] | None, ending: str
) -> list[DrawnTree]:
    """The trees, or the words of them that are shown."""
    trees = []
    for number, tree in enumerate(explanation.trees):
        title = (
            f"{tree.role}: final score {tree.score:.4f}, rank {tree.rank} of "
            f"{explanation.n_candidates}"
        )
        if broken := broken_words(tree):
            title += f"; breaks {broken}"
        trees.append(
            drawn_tree(
                title,
                explanation.forms,
                explanation.upos,
                tree.heads,
                tree.deprels,
                differing=differing,
                shown=shown,
                room_for=[(other.heads, other.deprels) for other in explanation.trees],
                name=f"tree{number}{ending}",
            )
        )
    return trees


def _shown(values: Sequence[float]) -> list[str]:
    texts = [f"{value:.4f}" for value in values]
    return [*texts, f"{values[0] - values[1]:+.4f}"] if len(values) > 1 else texts


def _component_rows(explanation: Explanation) -> list[Mapping[str, Any]]:
    rows = [
        {"name": name, "where": where, "numbers": _shown(values)}
        for name, where, values in explanation.components()
    ]
    scores = [tree.score for tree in explanation.trees]
    return [*rows, {"name": "final score", "where": "", "numbers": _shown(scores)}]


def _feature_tables(explanation: Explanation) -> list[Mapping[str, Any]]:
    return [
        {
            "title": title,
            "rows": [{"name": name, "numbers": _shown(values)} for name, values in features],
        }
        for title, features in strongest_features(explanation).items()
    ]


def _arcs(explanation: Explanation) -> list[Mapping[str, Any]]:
    return [
        {
            "word": f"{arc.word} {explanation.forms[arc.word - 1]}",
            "sides": [
                {
                    "role": tree.role,
                    "arc": arc_line(explanation, number, arc.word),
                    "split": split_line(explanation, number, arc.word),
                    "examples": [
                        {
                            "words": [
                                {
                                    "form": form,
                                    "slots": " ".join(slots),
                                    "role": slots[0] if slots else "",
                                }
                                for form, slots in marked_words(item)
                            ],
                            "what": what_line(item),
                            "share": share_line(item),
                            "shared": shared_line(item),
                        }
                        for item in arc.influences[number]
                    ],
                }
                for number, tree in enumerate(explanation.trees)
            ],
        }
        for arc in explanation.arcs
    ]
