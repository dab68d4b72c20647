"""Features selected in kernel space, in the place of a model's kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tk_spacy.about import __version__
from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import Scores, evaluate
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.matching import matched_pairs
from tk_spacy.reranker.explicit_training import Selected, SelectionSettings, train_explicit
from tk_spacy.reranker.interpolation import TuningMetric
from tk_spacy.reranker.model import Pair, Reranker
from tk_spacy.reranker.provenance import Provenance
from tk_spacy.reranker.training import combine_lists
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.treebank.data_notes import scored_notes
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.workdir import check_different, check_output, check_outside
from tk_spacy.workflows.compress import check_place, save
from tk_spacy.workflows.model import main_source, open_model
from tk_spacy.workflows.selected import strongest_features
from tk_spacy.workflows.train.treebanks import find_treebank

LONGEST = 1000
"""Trees of a list that are read."""

Files = Path | Sequence[Path]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What features are selected from.

    train: files with right trees.  lists: the k-best file of parsers that did not see them.  dev,
    dev_lists: the same to tune on.  test: the same to score, None for none.
    """

    train: Files
    lists: Path
    dev: Files
    dev_lists: Path
    test: tuple[Files, Path] | None = None


def find_inputs(
    treebank: Path,
    *,
    workdir: Path | None = None,
    lists: Path | None = None,
    dev: Path | None = None,
    dev_lists: Path | None = None,
    test: Path | None = None,
    test_lists: Path | None = None,
) -> Inputs:
    """What is read, where a folder stands for its files.

    treebank: the file to learn from, or a folder of a UD release, which has dev and test as well.
    workdir: of the training, for the lists that are not named.
    Raises UserError for what is given nowhere.
    """
    if not treebank.exists():
        raise UserError(
            f"{treebank}: is not there; give a CoNLL-U file, or a folder of a UD release"
        )
    files = dict(find_treebank(treebank).files)
    if "train" not in files:
        raise UserError(f"{treebank}: has no train file; name the file to learn from itself")
    files |= {name: (path,) for name, path in (("dev", dev), ("test", test)) if path is not None}
    named = {"train": lists, "dev": dev_lists, "test": test_lists}
    found = {
        name: path or (None if workdir is None else workdir / f"{name}.kbest.conllu")
        for name, path in named.items()
    }
    if "dev" not in files:
        raise UserError(
            f"{treebank}: has no dev file; give one to tune on (dev), of sentences that no parser "
            "of the model learnt from"
        )
    for name, option in (("train", "lists"), ("dev", "dev_lists")):
        if found[name] is None:
            raise UserError(
                f"no candidate lists of {name} are given; give the file ({option}), or the work "
                "directory of the training (workdir)"
            )
    pair = None
    if "test" in files and found["test"] is not None:
        # A work directory need not have them: they are scored alone.
        if test_lists is not None or test is not None or found["test"].exists():
            pair = files["test"], found["test"]
    elif test is not None:
        raise UserError("no candidate lists of test are given; give the file (test_lists)")
    elif test_lists is not None:
        raise UserError(f"{treebank}: has no test file, whose lists are given; give it (test)")
    assert found["train"] is not None
    assert found["dev"] is not None
    return Inputs(files["train"], found["train"], files["dev"], found["dev"], pair)


def select(
    model: Path,
    train: Files,
    lists: Path,
    dev: Files,
    dev_lists: Path,
    output: Path,
    settings: SelectionSettings,
    *,
    test: tuple[Files, Path] | None = None,
    metric: TuningMetric = "las",
    strongest: int = 20,
    overwrite: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write a model with explicit features selected from its training lists; what there is to tell.

    model: gives parsers, schema and combiner.  train, lists, dev, dev_lists, test: see `Inputs`.
    strongest: features to tell.
    Raises UserError for models, files and places that do not fit.
    """
    progress = progress or Progress()
    opened = open_model(model)
    check_place(opened, output, overwrite=overwrite)
    check_output(output, overwrite=overwrite)
    inputs = {"train": (train, lists), "dev": (dev, dev_lists)}
    if test is not None:
        inputs["test"] = test
    kept = [path for files, of_them in inputs.values() for path in (*_files(files), of_them)]
    check_outside(output, [*kept, model])
    check_different({name: _files(files) for name, (files, _) in inputs.items()})
    check_different({f"{name}'s lists": of_them for name, (_, of_them) in inputs.items()})
    before = opened.reranker
    progress.begin("reading")
    inventory = LabelInventory()
    parts = {name: _read(before, *given, inventory) for name, given in inputs.items()}
    _warn_of_tags(parts, inputs, progress)
    for name, (right, _) in parts.items():
        schema = before.schema
        if name != "train":
            for note in scored_notes(
                right, _files(inputs[name][0])[0], labels=schema.labels, columns=schema.columns
            ):
                progress.warn(note)
    progress.end("reading")
    gold, pairs = parts.pop("train")
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
    chosen = {
        name: {
            "parsers": _chosen(found.parsers, ready[name][1], n_threads=n_threads),
            "model": _chosen(before, ready[name][1], n_threads=n_threads),
            "selected": _chosen(found.reranker, ready[name][1], n_threads=n_threads),
        }
        for name in ready
    }
    scores = {
        name: {system: _scores(ready[name][0], trees) for system, trees in of_part.items()}
        for name, of_part in chosen.items()
    }
    facts = _facts(found, settings, metric, inputs, scores)
    made = replace(found.reranker, about=_about(before, facts))
    save(
        opened, made, output, overwrite=overwrite,
        scored=(ready["dev"][0], chosen["dev"]["selected"]),
        described=f"{found.weighted:,} features of the space {settings.space}, by `tk-spacy "
        "select`; scores of trees are those with them.",
    )  # fmt: skip
    combination = found.reranker.combination
    return {
        "model": str(output),
        "space": settings.space,
        "threshold": settings.threshold,
        "learner": settings.learner,
        "betas": dict(combination.betas) if combination is not None else {},
        "scores": scores,
        "strongest": strongest_features(found.reranker, strongest),
        "tk_spacy": __version__,
        **found.to_dict(),
    }


def _facts(
    found: Selected,
    settings: SelectionSettings,
    metric: TuningMetric,
    inputs: Mapping[str, tuple[Files, Path]],
    scores: Mapping[str, Any],
) -> dict[str, Any]:
    """What a model tells of its selection: the same for every run with the same input."""
    return {
        "version": __version__,
        # 2 and 2.0 are one value, and one text.
        "settings": asdict(settings)
        | {"threshold": float(settings.threshold), "step": float(settings.step)},
        "metric": metric,
        "features": found.features,
        "weighted": found.weighted,
        "templates": found.templates,
        "basic_features": found.basic_features,
        "iterations": len(found.history),
        "stopped": found.stopped,
        "files": {
            name: [*(path.name for path in _files(files)), lists.name]
            for name, (files, lists) in inputs.items()
        },
        "scores": scores,
    }


def _about(before: Reranker, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A model's `about` after a selection: what it scored before is no longer true."""
    made = Provenance.from_dict(before.about, strict=False)
    return replace(made, scores=None, selected=facts).to_dict()


def _files(given: Files) -> Sequence[Path]:
    return [given] if isinstance(given, Path) else given


def _read(
    model: Reranker, treebank: Files, lists: Path, inventory: LabelInventory
) -> tuple[list[Sentence], list[Pair]]:
    gold = [sentence for path in _files(treebank) for sentence in load_treebank(path)]
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


def _warn_of_tags(
    parts: Mapping[str, tuple[list[Sentence], list[Pair]]],
    inputs: Mapping[str, tuple[Files, Path]],
    progress: Progress,
) -> None:
    """Warn where some lists have the treebank's own tags, and others those of a tagger."""
    right = {
        name: all(
            (g.upos, g.feats) == (s.upos, s.feats) for g, (s, _) in zip(gold, pairs, strict=True)
        )
        for name, (gold, pairs) in parts.items()
    }
    own = [str(inputs[name][1]) for name in right if right[name]]
    others = [str(inputs[name][1]) for name in right if not right[name]]
    if own and others:
        progress.warn(
            f"{', '.join(own)}: the treebank's own tags, while {', '.join(others)} "
            f"{'has' if len(others) == 1 else 'have'} others: what is learnt from the ones does "
            "not suit the others; make lists with `tk-spacy kbest --tags own`, or none of them"
        )


def _chosen(model: Reranker, pairs: Sequence[Pair], *, n_threads: int | None) -> list[Sentence]:
    """The sentences of the lists with the trees that a model chooses."""
    return [
        sentence.with_tree(trees.heads[row], trees.deprels(row))
        for sentence, trees, row in model.choices(pairs, n_threads=n_threads)
    ]


def _scores(gold: Sequence[Sentence], chosen: Sequence[Sentence]) -> dict[str, float]:
    """UAS and LAS of all words and without punctuation."""
    found: Scores = evaluate(gold, chosen)
    return {
        "uas": found.uas,
        "las": found.las,
        "uas_nopunct": found.uas_nopunct,
        "las_nopunct": found.las_nopunct,
    }
