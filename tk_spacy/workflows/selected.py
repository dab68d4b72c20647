"""What there is to tell of features that were selected, as tables: `select` and `info` share it."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from tk_spacy.reranker.model import Reranker
from tk_spacy.utils.stored_values import (
    stored_entry,
    stored_number,
    stored_table,
    stored_text,
    stored_whole,
)
from tk_spacy.utils.tables import Cell, Column, Table, show

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
    """UAS and LAS of each part by system, beside what the features add to.

    Raises ValueError where they are no such scores.
    """
    rows: list[tuple[Cell, ...]] = []
    for part, systems in stored_table(scores, "scores").items():
        for system, found in stored_table(systems, f"scores.{part}").items():
            what = f"scores.{part}.{system}"
            if system not in SYSTEMS:
                raise ValueError(f"{what} are of no system, expected {', '.join(SYSTEMS)}")
            values = [stored_number(stored_entry(found, n, what), f"{what}.{n}") for n in METRICS]
            rows.append((part, SYSTEMS[system], *values))
    return Table(
        title="Scores",
        columns=(
            Column("", "part", align="left"),
            Column("", "system", align="left"),
            *(Column(name.upper().replace("_NOPUNCT", " no punct."), name) for name in METRICS),
        ),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def selection_line(facts: Mapping[str, Any]) -> str:
    """How features were selected, from what the model tells of it.

    Raises ValueError where it tells what no selection does.
    """
    ours, of_settings = "selected", "selected.settings"
    settings = stored_entry(facts, "settings", ours)
    space, threshold, learner = (
        stored_entry(settings, name, of_settings) for name in ("space", "threshold", "learner")
    )
    iterations = stored_whole(stored_entry(facts, "iterations", ours), "selected.iterations")
    told = [f"space {stored_text(space, f'{of_settings}.space')}"]
    if iterations:
        basic = stored_whole(stored_entry(facts, "basic_features", ours), "selected.basic_features")
        threshold = stored_number(threshold, f"{of_settings}.threshold")
        told.append(
            f"C = {threshold:g}, {iterations} iterations of mining of {show(basic)} basic features"
        )
    weights = "those of mining" if iterations else "those of the kernel"
    told.append(f"weights: {'a perceptron' if learner == 'perceptron' else weights}")
    return ", ".join(told)
