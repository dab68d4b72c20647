"""What each selected feature of a tree gives to its score, by name: for explanations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.selection.combinations.learning import pattern_table
from tk_spacy.selection.combinations.model import CombinationModel
from tk_spacy.selection.combinations.slot_features import SlotFeatures
from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.explicit import ExplicitModel
from tk_spacy.selection.model import SelectedFeatures
from tk_spacy.selection.occurrences import Occurrences
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64


def feature_shares(
    model: ExplicitModel, sentence: Sentence, candidates: CandidateList, rows: Sequence[int]
) -> list[dict[str, float]]:
    """For each of some candidates, what its features give: weight times number of occurrences.

    The sums are the candidates' scores by the model; what all candidates of the list have is left
    out there, and so it is here.  Raises TypeError for another kind of model.
    """
    if isinstance(model, SelectedFeatures):
        return _of_patterns(model, sentence, candidates, rows)
    if isinstance(model, CombinationModel):
        return _of_combinations(model, sentence, candidates, rows)
    raise TypeError(f"a model of type {type(model).__name__}, expected one of selected features")


def _of_patterns(
    model: SelectedFeatures, sentence: Sentence, candidates: CandidateList, rows: Sequence[int]
) -> list[dict[str, float]]:
    corpus = Corpus([model.encode(sentence, candidates)], len(model.basic), trees=model.table.trees)
    shares = [model.weights * own for own in _counts(model.table, corpus, rows)]
    names = model.names_of(np.flatnonzero(np.any(shares, axis=0)))
    return [{name: float(own[node]) for node, name in names.items() if own[node]} for own in shares]


def _of_combinations(
    model: CombinationModel, sentence: Sentence, candidates: CandidateList, rows: Sequence[int]
) -> list[dict[str, float]]:
    encoded = model.encode(sentence, candidates)
    table, nodes = pattern_table(model)
    features = SlotFeatures(model.schema, model.space, model.keys)
    corpus = features.corpus([encoded])
    weights = np.concatenate([listed.weights for listed in model.types])
    types = np.repeat(np.arange(len(model.types)), [len(listed) for listed in model.types])
    shares = []
    for row, own in zip(rows, _counts(table, corpus, rows), strict=True):
        # A combination of nothing is in every part, and no pattern.
        parts = np.array([p.starts[row + 1] - p.starts[row] for p in encoded.kernel])
        counts = np.where(nodes < 0, parts[types], own[nodes] if len(own) else 0)
        shares.append(weights * counts)
    names = model.names_of(np.flatnonzero(np.any(shares, axis=0)))
    return [{name: float(own[i]) for i, name in names.items() if own[i]} for own in shares]


def _counts(table: PatternTable, corpus: Corpus, rows: Sequence[int]) -> list[Float64]:
    """How often candidates of a corpus's only list have each pattern, float64[p] each."""
    found = []
    occurrences = Occurrences(table, corpus, n_threads=1)
    for row in rows:
        counts, unread = np.zeros(len(table)), np.zeros(len(table))
        occurrences.move(0, row, 1.0, counts, unread, 0.0)
        found.append(counts)
    return found
