"""The whole path on a made-up treebank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.evaluation.before_after import BeforeAfter, most_mended
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.names import BIAFFINE, SAMPLING, SPACY
from tk_spacy.parsers.specs import kinds
from tk_spacy.reranker.settings import LEFT_OPEN, Settings
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.treebank.synthetic import write_treebank
from tk_spacy.utils.leftovers import temporary_directory
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

PARSERS = (SAMPLING, SPACY, BIAFFINE)
"""Three kinds, which err differently."""
PARSER_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    SAMPLING: {"order": 2, "epochs": 4, "training_restarts": 1},
    BIAFFINE: {
        "epochs": 15,
        "steps": 0,
        "batch": 150,
        "rate": 0.008,
        "dropout": 0.15,
        "word_width": 48,
        "tag_width": 48,
        "width": 64,
        "layers": 1,
        "arc_width": 64,
        "label_width": 32,
    },
}
"""Small parsers, quick to train on little data, and about as good as each other.

A vote gains where its voters are equals.  A network of the default width, made for treebanks twenty
times as large, would still be far behind the others after thrice the time.
"""

RERANKER_SETTINGS = Settings(iterations=5, list_features=())
"""The paper's reranker, which sees the trees alone.

The combiner, whose score is added to its own, knows the list.  Features of the list would have it
learn the same again, and from so little data they gain nothing.
"""

MAX_STEPS = 250
"""Of the spaCy parser, for the same reason; more than small.cfg's."""

SYNTHETIC = (
    "THE DATA ARE SYNTHETIC: sentences of an invented language, made up by a program. The scores "
    "show that the path works, and say nothing about any real language."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What a demonstration gave.

    report: of the training.  example: the test sentence whose tree the final system mended most,
    beside the main parser's own; None where it mended none.
    """

    report: TrainReport
    example: BeforeAfter | None


def demo(
    directory: Path,
    *,
    sentences: int = 600,
    seed: int = 0,
    parsers: tuple[str, ...] = PARSERS,
    epochs: int | None = None,
    max_steps: int | None = None,
    threads: int | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> DemoResult:
    """Write a synthetic treebank into a directory and train on it, with small parsers.

    The directory then holds the treebank's three files and `model`.  The same arguments give the
    same scores and example.  epochs: of the sampling parser, max_steps: of spaCy's; None for the
    demonstration's own.  Raises UserError where there is a model, or another treebank, already.
    """
    model = directory / "model"
    trained = kinds(parsers)
    if model.exists():
        raise UserError(f"{model}: exists already; choose another directory")
    files = _write_files(directory, sentences=sentences, seed=seed)
    with resources.as_file(resources.files("tk_spacy.configs") / "small.cfg") as config:
        of_spacy: dict[str, Any] = {}
        if SPACY in trained:
            steps = MAX_STEPS if max_steps is None else max_steps
            of_spacy = {"config": config, "backward": False, "max_steps": steps}
        elif max_steps is not None:
            of_spacy = {"max_steps": max_steps}  # refused: there is nothing that it concerns
        options = TrainOptions(
            train=files["train"],
            dev=files["dev"],
            test=files["test"],
            output=model,
            tags="gold",  # the story is about parsers
            parsers=parsers,
            parser_settings=_parser_settings(trained, epochs),
            **of_spacy,
            folds=3,
            settings=RERANKER_SETTINGS,
            left_open=LEFT_OPEN,
            title="the synthetic treebank",
            seed=seed,
            threads=threads,
            processes=processes,
        )
        report = train_pipeline(options, progress=progress)
    gold = load_treebank(files["test"])
    before, after = _parsed(model, gold, threads=threads)
    return DemoResult(report=report, example=most_mended(gold, before, after))


def _write_files(directory: Path, *, sentences: int, seed: int) -> dict[str, Path]:
    """Write the treebank.  Raises UserError where files of another one are in its place."""

    def write(where: Path) -> dict[str, Path]:
        return write_treebank(
            where,
            train=sentences,
            dev=max(20, sentences // 4),
            test=max(20, sentences),  # large: the steps are told apart by a point or less
            seed=seed,
        )

    names = [directory / f"{part}.conllu" for part in ("train", "dev", "test")]
    there = [path for path in names if path.exists()]
    if there:  # all of them ours, left by a demonstration that was stopped?
        with temporary_directory("demo") as folder:
            own = {path.name: path.read_bytes() for path in write(folder).values()}
        for path in there:
            if not path.is_file() or path.read_bytes() != own[path.name]:
                raise UserError(f"{path}: exists already; choose another directory")
    return write(directory)


def _parser_settings(trained: set[str], epochs: int | None) -> dict[str, dict[str, Any]]:
    """PARSER_SETTINGS of the kinds that are trained; epochs: of the sampling parser, if given."""
    settings = {kind: dict(own) for kind, own in PARSER_SETTINGS.items() if kind in trained}
    if epochs is not None:  # of whatever is trained: where there is no such parser it is refused
        settings.setdefault(SAMPLING, {})["epochs"] = epochs
    return settings


def _parsed(
    path: Path, sentences: list[Sentence], *, threads: int | None
) -> tuple[list[Sentence], list[Sentence]]:
    """The main parser's own trees of sentences, and the final system's, by the model as saved."""
    model = open_model(path)
    inventory = LabelInventory()
    parsers = model.open_parsers(inventory, n_threads=threads)
    source = model.in_order(parsers.sources, n_threads=threads)
    lists = source.candidates(sentences, k=parsers.k)
    before, after = [], []
    pairs = zip(sentences, lists, strict=True)
    for sentence, trees, row in model.reranker.choices(pairs, n_threads=threads):
        before.append(sentence.with_tree(trees.heads[trees.base], trees.deprels(trees.base)))
        after.append(sentence.with_tree(trees.heads[row], trees.deprels(row)))
    return before, after
