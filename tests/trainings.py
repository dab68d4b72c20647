"""Small trainings that several test modules use: made once, in seconds; not to be changed."""

from __future__ import annotations

import atexit
import functools
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from biaffine_parsers import QUICK
from tiny_spacy import tiny_config

from tk_spacy.evaluation.report import TrainReport
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.reranker.settings import Settings
from tk_spacy.treebank.conllu import Sentence, check_tree, load_treebank
from tk_spacy.treebank.synthetic import write_treebank
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

SETTINGS = Settings(iterations=3, bits=12, manual_parts=("arc",))


class Recorder(Progress):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []

    def begin(self, stage: str) -> None:
        self.begun.append(stage)

    def end(self, stage: str) -> None:
        self.ended.append(stage)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@functools.cache
def folder() -> Path:
    """A directory that is removed when the tests are over."""
    path = Path(tempfile.mkdtemp(prefix="tk-spacy-tests-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def treebank() -> dict[str, Path]:
    """Files of a synthetic treebank: train, dev and test."""
    return write_treebank(folder() / "UD_Synthetic", train=90, dev=30, test=30, seed=11)


def made_up_list(
    sentence: Sentence, inventory: LabelInventory, rng: random.Random, *, k: int = 6
) -> CandidateList:
    """Trees near the gold one, with a score that likes the better ones a little.

    The parser's own tree is the first one made, which often is not the best-scored one.
    """
    gold = sentence.heads.tolist()
    trees = []
    while len(trees) < k:
        heads, deprels = list(gold), list(sentence.deprels)
        for _ in range(rng.randint(0 if trees else 1, 3)):
            word = rng.randrange(len(heads))
            if heads[word]:
                heads[word] = rng.randint(1, len(heads))
                deprels[word] = rng.choice(["obj", "nmod", deprels[word]])
        if check_tree(heads) is None:
            wrong = sum(a != b for a, b in zip(heads, gold, strict=True))
            trees.append((heads, deprels, -wrong + rng.gauss(0, 1.5)))
    return CandidateList.build(trees, inventory=inventory, sources=("spacy",), base=0)


def write_lists(path: Path, sentences: Sequence[Sentence], *, seed: int = 0) -> Path:
    """A k-best file for sentences."""
    rng, inventory = random.Random(seed), LabelInventory()
    write_kbest(path, [(s, made_up_list(s, inventory, rng)) for s in sentences])
    return path


@functools.cache
def list_files() -> dict[str, Path]:
    """k-best files for the treebank's parts."""
    return {
        name: write_lists(folder() / f"{name}.kbest.conllu", load_treebank(path))
        for name, path in treebank().items()
    }


def options(output: Path, **changes: Any) -> TrainOptions:
    """Options for a training from ready lists: no parser, a second or so.

    changes: by the names of TrainOptions, and settings of parsers by the names of their kinds.
    """
    kinds = ("sampling", "biaffine", "udpipe")
    of_parsers = {kind: changes.pop(kind) for kind in kinds if changes.get(kind)}
    changes = {name: value for name, value in changes.items() if name not in kinds}
    if of_parsers:
        changes["parser_settings"] = {**changes.get("parser_settings", {}), **of_parsers}
    ready, files = list_files(), treebank()
    made = TrainOptions(
        train=files["train"],
        dev=files["dev"],
        test=files["test"],
        output=output,
        candidates=ready["train"],
        dev_candidates=ready["dev"],
        test_candidates=ready["test"],
        settings=SETTINGS,
        tags="gold",
        threads=1,
    )
    return replace(made, **changes)


@functools.cache
def lists_training() -> tuple[Path, TrainReport]:
    """A model without parser, and its report."""
    path = folder() / "lists-model"
    return path, train_pipeline(options(path))


@functools.cache
def parser_training() -> tuple[Path, TrainReport]:
    """A model with a tiny parser and its twin, made by the whole path; some ten seconds."""
    path = folder() / "parser-model"
    config = tiny_config(folder() / "tiny.cfg")
    return path, train_pipeline(parser_options(path, config=config))


QUICK_SAMPLING = {"epochs": 2, "pruner_epochs": 1, "bits": 16, "pruner_bits": 14, "restarts": 5}


@functools.cache
def sampling_training() -> tuple[Path, TrainReport]:
    """A model with a quick sampling parser, made by the whole path."""
    path = folder() / "sampling-model"
    return path, train_pipeline(sampling_options(path))


@functools.cache
def parsers_training() -> tuple[Path, TrainReport]:
    """A model with a sampling parser and a tiny spaCy parser."""
    path = folder() / "parsers-model"
    config = tiny_config(folder() / "tiny.cfg")
    parsers = {
        "parsers": ("sampling", "spacy"),
        "config": config,
        "backward": False,
        "max_steps": 15,
    }
    return path, train_pipeline(sampling_options(path, **parsers))


@functools.cache
def biaffine_training() -> tuple[Path, TrainReport]:
    """A model with a quick sampling parser and a tiny biaffine one."""
    path = folder() / "biaffine-model"
    small = {name: value for name, value in QUICK.to_dict().items() if name != "seed"}
    parsers = {"parsers": ("sampling", "biaffine"), "biaffine": small | {"epochs": 4}}
    return path, train_pipeline(sampling_options(path, **parsers))


@functools.cache
def cascade_training() -> tuple[Path, TrainReport]:
    """A model that knows when its quick parser, a tiny biaffine one, is sure; some seconds.

    It needs scikit-learn.
    """
    path = folder() / "cascade-model"
    small = {name: value for name, value in QUICK.to_dict().items() if name != "seed"}
    parsers = {"parsers": ("biaffine", "transition"), "max_steps": None}
    return path, train_pipeline(
        parser_options(path, **parsers, biaffine=small | {"epochs": 20}, k=10)
    )


def sampling_options(output: Path, **changes: Any) -> TrainOptions:
    """Options for a training that trains a sampling parser."""
    own = {"parsers": ("sampling",), "sampling": QUICK_SAMPLING, "max_steps": None}
    return parser_options(output, **{**own, **changes})


def parser_options(output: Path, **changes: Any) -> TrainOptions:
    """Options for a training that trains its parsers, or is given one."""
    none = {"candidates": None, "dev_candidates": None, "test_candidates": None}
    quick = {"parsers": ("spacy",), "folds": 2, "processes": 1, "k": 6, "max_steps": 15}
    if changes.get("spacy_pipeline") or changes.get("candidates"):  # no jackknife
        quick = {"parsers": ("spacy",), "k": 6, "max_steps": quick["max_steps"]}
    return options(output, **{**none, **quick, **changes})


def stripped(path: Path, target: Path) -> Path:
    """A copy of a CoNLL-U file without trees."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        columns = line.split("\t")
        if len(columns) == 10:
            columns[6:8] = ["_", "_"]
        lines.append("\t".join(columns))
    target.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return target


def same_trees(a: Path, b: Path) -> bool:
    """Whether two files hold the same trees."""
    pairs = zip(load_treebank(a), load_treebank(b), strict=True)
    return all(np.array_equal(x.heads, y.heads) and x.deprels == y.deprels for x, y in pairs)
