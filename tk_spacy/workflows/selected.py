"""What there is to tell of features that were selected, as tables: `select` and `info` share it."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from tk_spacy.reranker.model import Reranker
from tk_spacy.utils.tables import Column, Table, show

METRICS = ("uas", "las", "uas_nopunct", "las_nopunct")
SYSTEMS = {
    "parsers": "the parsers' and the combiner's scores alone",
    "model": "the model as it was",
    "selected": "with selected features",
}


def strongest_features(model: Reranker, most: int) -> list[dict[str, Any]]:
    """Features that are listed, those with the largest weights first: name and weight of each."""
    if model.explicit is None:
        return []
    found = heapq.nlargest(most, model.explicit.listed(), key=lambda item: abs(item[1]))
    return [{"feature": name, "weight": weight} for name, weight in found]


def features_table(strongest: Sequence[Mapping[str, Any]]) -> Table:
    """The features and their weights."""
    return Table(
        title="Strongest features",
        columns=(Column("weight", "weight"), Column("feature", "feature", align="left")),
        rows=tuple((item["weight"], item["feature"]) for item in strongest),
    )


def selection_scores(scores: Mapping[str, Any], notes: Sequence[str] = ()) -> Table:
    """UAS and LAS of each part by system, beside what the features add to."""
    return Table(
        title="Scores",
        columns=(
            Column("", "part", align="left"),
            Column("", "system", align="left"),
            *(Column(name.upper().replace("_NOPUNCT", " no punct."), name) for name in METRICS),
        ),
        rows=tuple(
            (part, SYSTEMS[system], *(found[name] for name in METRICS))
            for part, systems in scores.items()
            for system, found in systems.items()
        ),
        notes=tuple(notes),
    )


def selection_line(facts: Mapping[str, Any]) -> str:
    """How features were selected, from what the model tells of it."""
    settings = facts["settings"]
    told = [f"space {settings['space']}"]
    if facts["iterations"]:
        told.append(
            f"C = {settings['threshold']:g}, {facts['iterations']} iterations of mining of "
            f"{show(facts['basic_features'])} basic features"
        )
    learner = "those of mining" if facts["iterations"] else "those of the kernel"
    told.append(f"weights: {'a perceptron' if settings['learner'] == 'perceptron' else learner}")
    return ", ".join(told)
