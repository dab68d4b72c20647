"""How true a model's probabilities are, and how well they tell right words from wrong ones.

    python tests/benchmark_confidence.py MODEL TREEBANK LISTS [--folds 3] [--test FILE]

MODEL is a model that `tk-spacy train` made from TREEBANK (a folder of a UD release); LISTS is its
work directory, with train.kbest.conllu and dev.kbest.conllu.  --test names the lists of test
(`tk-spacy kbest`), where they are not there as test.kbest.conllu; --no-arcs leaves out what the
model's parsers themselves say of the chosen arcs.  The model may have no
calibration: one is fitted as `train` does, from scouts that learn from parts of the training lists,
and then adjusted to dev (--no-adjust leaves that out).
One line of JSON for each part and kind, beside two simpler confidences: votes, the share of parsers
whose own tree agrees, and parser, the softmax of the main parser's own scores.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from reference_list_features import own_rows

from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.evaluation.reliability import calibration_error, chance_error, risk_coverage_area
from tk_spacy.kbest.arc_probabilities import ArcProbabilities, arc_probabilities
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.matching import matched_pairs
from tk_spacy.kbest.scores import filled
from tk_spacy.reranker.calibration import Calibration, HeldOut
from tk_spacy.reranker.model import Pair, Reranker
from tk_spacy.reranker.training import (
    combine_lists,
    decided,
    learn,
    prepare_lists,
    tuning_parts,
)
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.model import main_source, open_model
from tk_spacy.workflows.train.treebanks import find_treebank

LONGEST = 1000
KINDS = ("heads", "labels", "trees")


def read(model: Reranker, treebank: Path, lists: Path, inventory: LabelInventory) -> list[Pair]:
    """Sentences with gold trees and the tags that the parsers saw, and their lists."""
    gold = load_treebank(treebank)
    pairs = matched_pairs(lists, gold, inventory=inventory, source=main_source(model), k=LONGEST)
    return [(s.with_tree(g.heads, g.deprels), t) for g, (s, t) in zip(gold, pairs, strict=True)]


def fitted(model: Reranker, pairs: Sequence[Pair], folds: int) -> tuple[Calibration, float]:
    """A calibration from training lists, and the seconds that the scouts took."""
    sentences = [sentence for sentence, _ in pairs]
    _, lists = combine_lists(sentences, [trees for _, trees in pairs], model.settings)
    items = prepare_lists(model.schema, sentences, lists, model.settings)
    started = time.perf_counter()
    held_out = []
    for held in tuning_parts(len(lists), folds, seed=0):
        away = set(held.tolist())
        rest = [item for item in items if item.index not in away]
        scout, _ = learn(model.schema, rest, model.settings)
        scores = scout.batch_scores([(sentences[i], lists[i]) for i in held])
        held_out += [
            HeldOut(
                sentences[i],
                lists[i],
                model.penalized(sentences[i], lists[i], model.combined(lists[i], own)),
            )
            for i, own in zip(held, scores, strict=True)
        ]
    seconds = time.perf_counter() - started
    return Calibration.fit(held_out), seconds


def rows(
    model: Reranker,
    calibration: Calibration,
    pairs: Sequence[Pair],
    arcs: ArcProbabilities | None,
) -> list[dict[str, Any]]:
    """What the three confidences are worth on a part."""
    names = ("calibrated", "votes", "parser")
    values: dict[str, dict[str, list[Any]]] = {k: {n: [] for n in names} for k in KINDS}
    right: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    ready = [(sentence, model.completed(sentence, trees)) for sentence, trees in pairs]
    decided = list(model.decisions(ready))
    known = replace(model, calibration=calibration).confidences(decided, arcs)
    for (gold, decision), sure in zip(decided, known, strict=True):
        assert sure is not None
        trees, row = decision.candidates, decision.row
        heads = trees.heads == trees.heads[row]
        labels = trees.labels == trees.labels[row]
        same = (heads & labels).all(axis=1)[:, None]
        voters = [j for name, j in own_rows(trees).items() if name != COMBINER]
        main = filled(trees.scores[:, 0])
        softmax = np.exp(main - main.max())
        softmax /= softmax.sum()
        found = dict(zip(KINDS, (sure.heads, sure.labels, np.array([sure.tree])), strict=True))
        for kind, alike in zip(KINDS, (heads, labels, same), strict=True):
            values[kind]["calibrated"].append(found[kind])
            values[kind]["votes"].append(alike[voters].mean(axis=0))
            values[kind]["parser"].append(np.clip(softmax @ alike, 0.0, 1.0))
        gold_labels = trees.inventory.encode(gold.deprels, add=False)
        hits = trees.heads[row] == gold.heads, trees.labels[row] == gold_labels
        for kind, own_hits in zip(KINDS, (*hits, [bool((hits[0] & hits[1]).all())]), strict=True):
            right[kind].append(np.array(own_hits))
    out = []
    for kind in KINDS:
        correct = np.concatenate(right[kind])
        row_of: dict[str, Any] = {
            "kind": kind,
            "number": len(correct),
            "right": round(float(correct.mean()), 4),
        }
        for name in names:
            given = np.concatenate(values[kind][name])
            row_of[name] = {
                "ece": round(calibration_error(given, correct), 4),
                "by_chance": round(chance_error(given), 4),
                "aurc": round(risk_coverage_area(given, correct), 4),
            }
        out.append(row_of)
    return out


def main(
    model: Path,
    treebank: Path,
    lists: Path,
    folds: Annotated[int, typer.Option(min=2)] = 3,
    adjust: bool = True,
    arcs: bool = True,
    test: Annotated[Path | None, typer.Option()] = None,
) -> None:
    """Fit and measure."""
    opened = open_model(model)
    reranker = opened.reranker
    files = find_treebank(treebank).files
    inventory = LabelInventory()
    train = read(reranker, files["train"][0], lists / "train.kbest.conllu", inventory)
    calibration, seconds = fitted(reranker, train, folds)
    likely = None
    if arcs:
        likely = arc_probabilities(opened.open_parsers(inventory=inventory).sources)
    if adjust:
        dev = read(reranker, files["dev"][0], lists / "dev.kbest.conllu", inventory)
        completed = [reranker.completed(*pair) for pair in dev]
        chosen = decided(reranker, [sentence for sentence, _ in dev], completed)
        calibration = calibration.adjusted_to(
            chosen, None if likely is None else likely([item.chosen for item in chosen])
        )
    print(json.dumps({"model": model.name, "folds": folds, "seconds": round(seconds, 1)}))
    parts = {"dev": lists / "dev.kbest.conllu", "test": test or lists / "test.kbest.conllu"}
    for part, path in parts.items():
        if path.exists():
            pairs = read(reranker, files[part][0], path, inventory)
            for row in rows(reranker, calibration, pairs, likely):
                print(json.dumps({"part": part, **row}), flush=True)


if __name__ == "__main__":
    typer.run(main)
