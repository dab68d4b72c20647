"""Features selected in kernel space, in the place of a model's kernel."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tk_spacy.about import __version__
from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import Scores, evaluate
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.matching import matched_pairs
from tk_spacy.reranker.explicit_training import SelectionSettings, train_explicit
from tk_spacy.reranker.interpolation import TuningMetric
from tk_spacy.reranker.model import Pair, Reranker
from tk_spacy.reranker.training import combine_lists
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.treebank.data_notes import scored_notes
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.workdir import check_output, check_outside
from tk_spacy.workflows.compress import check_place, save
from tk_spacy.workflows.model import main_source, open_model

LONGEST = 1000
"""Trees of a list that are read."""


def select(
    model: Path,
    train: Path,
    lists: Path,
    dev: Path,
    dev_lists: Path,
    output: Path,
    settings: SelectionSettings,
    *,
    test: tuple[Path, Path] | None = None,
    metric: TuningMetric = "las",
    strongest: int = 20,
    overwrite: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write a model with explicit features selected from its training lists; what there is to tell.

    model: gives parsers, schema and combiner.  train, lists: right trees, and the k-best file of
    parsers that did not see them, as a training's work directory has it.  dev, dev_lists: the same
    to tune on.  test: the same to score.  strongest: features to tell.
    Raises UserError for models, files and places that do not fit.
    """
    progress = progress or Progress()
    opened = open_model(model)
    check_place(opened, output, overwrite=overwrite)
    check_output(output, overwrite=overwrite)
    check_outside(output, [train, lists, dev, dev_lists, model, *(test or ())])
    before = opened.reranker
    progress.begin("reading")
    inventory = LabelInventory()
    gold, pairs = _read(before, train, lists, inventory)
    parts = {"dev": _read(before, dev, dev_lists, inventory)}
    if test is not None:
        parts["test"] = _read(before, *test, inventory)
    for name, (right, _) in parts.items():
        path = dev if name == "dev" or test is None else test[0]
        schema = before.schema
        for note in scored_notes(right, path, labels=schema.labels, columns=schema.columns):
            progress.warn(note)
    progress.end("reading")
    # What a combiner adds to training lists comes from combiners that did not see them.
    learnt = [s.with_tree(g.heads, g.deprels) for g, (s, _) in zip(gold, pairs, strict=True)]
    settings_of = before.settings
    if before.combiner is not None:
        progress.begin("combining")
        _, combined = combine_lists(
            learnt, [trees for _, trees in pairs], settings_of,
            progress=lambda done, total: progress.update("combining", done, total),
        )  # fmt: skip
        pairs = [(s, trees) for (s, _), trees in zip(pairs, combined, strict=True)]
        progress.end("combining")
    ready = {
        name: (right, [(s, before.completed(s, trees)) for s, trees in of_part])
        for name, (right, of_part) in parts.items()
    }
    found = train_explicit(
        before, gold, pairs, *ready["dev"], settings, metric=metric, n_threads=n_threads,
        progress=progress,
    )  # fmt: skip
    scores = {
        name: {
            "model": _scores(before, *ready[name], n_threads=n_threads),
            "selected": _scores(found.reranker, *ready[name], n_threads=n_threads),
        }
        for name in ready
    }
    save(opened, found.reranker, output, overwrite=overwrite)
    explicit, combination = found.reranker.explicit, found.reranker.combination
    listed: list[tuple[str, float]] = []
    if explicit is not None:
        listed = heapq.nlargest(strongest, explicit.listed(), key=lambda item: abs(item[1]))
    return {
        "model": str(output),
        "space": settings.space,
        "threshold": settings.threshold,
        "learner": settings.learner,
        "betas": dict(combination.betas) if combination is not None else {},
        "scores": scores,
        "strongest": [{"feature": name, "weight": weight} for name, weight in listed],
        "tk_spacy": __version__,
        **found.to_dict(),
    }


def _read(
    model: Reranker, treebank: Path, lists: Path, inventory: LabelInventory
) -> tuple[list[Sentence], list[Pair]]:
    gold = load_treebank(treebank)
    pairs = list(
        matched_pairs(lists, gold, inventory=inventory, source=main_source(model), k=LONGEST)
    )
    sources = pairs[0][1].sources
    missing = [name for name in model.needed_sources if name not in sources]
    if missing:
        raise UserError(
            f"{lists}: has the scores of {', '.join(sources)}, but the model needs those of "
            f"{', '.join(missing)}: it was trained with another parser's lists"
        )
    return gold, pairs


def _scores(
    model: Reranker, gold: Sequence[Sentence], pairs: Sequence[Pair], *, n_threads: int | None
) -> dict[str, float]:
    """UAS and LAS of all words and without punctuation."""
    own = model.batch_scores(pairs, n_threads=n_threads)
    chosen = []
    for right, pair, scores in zip(gold, pairs, own, strict=True):
        decision = model.decide(*pair, scores, n_threads=n_threads)
        trees, row = decision.candidates, decision.row
        chosen.append(right.with_tree(trees.heads[row], trees.deprels(row)))
    found: Scores = evaluate(gold, chosen)
    return {
        "uas": found.uas,
        "las": found.las,
        "uas_nopunct": found.uas_nopunct,
        "las_nopunct": found.las_nopunct,
    }
