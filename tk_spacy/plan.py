"""What a training is to do, and every check that can be made before it begins.

A training may take an hour; a mistake must show in the first seconds, and nothing be written then.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tk_spacy.candidates import CandidateList, LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.kbest_io import FileSource
from tk_spacy.settings import Settings
from tk_spacy.treebank import Sentence, load_treebank

if TYPE_CHECKING:
    from tk_spacy.upstream.loading import Pipeline

Search = Literal["discrepancy", "beam", "both"]
SEARCHES: tuple[Search, ...] = ("discrepancy", "beam", "both")
SOURCE_NAME = "spacy"
"""What the upstream's scores are called in candidate lists."""

WORK_MARK = "tk-spacy-work"
"""A file that tells a work directory, which is removed at success, from any other."""

OVERLAP_WORTH_A_WARNING = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Everything that a user chooses for one training.

    train, dev, test: CoNLL-U files with trees; test may be missing.
    output: directory of the model.  overwrite: replace a model that is there.
    workdir: where parsers and lists are kept, so that a training can be resumed; None for a
        directory beside the output that is removed at success.
    upstream: a spaCy pipeline (directory or package) to use instead of training one.
    backward: train a right-to-left twin of the upstream too: better lists, in twice the time.
    config: spaCy training config for the upstream.  max_steps: of its training.
    folds, processes: of jackknifing; processes None for as many as cores allow.
    k, search: of the candidate lists.
    candidates, dev_candidates, test_candidates: k-best files with ready lists.
    settings: of the kernel reranker; the base reranker has the same without the kernel.
    paper_grid: beta from 0 to 3 in steps of 0.05.
    seed: of the upstream, the folds, the tuning split and the bootstrap.
    threads: None for all cores.
    title: of the treebank, in tables; None for its directory's or file's name.
    """

    train: Path
    dev: Path
    test: Path | None = None
    output: Path
    overwrite: bool = False
    workdir: Path | None = None
    upstream: str | None = None
    backward: bool = True
    config: Path | None = None
    max_steps: int | None = None
    folds: int = 5
    processes: int | None = None
    k: int = 25
    search: Search = "discrepancy"
    candidates: Path | None = None
    dev_candidates: Path | None = None
    test_candidates: Path | None = None
    settings: Settings = field(default_factory=Settings)
    paper_grid: bool = False
    seed: int = 0
    threads: int | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        if self.k < 2:
            raise UserError(f"k is {self.k}; a reranker needs lists of at least 2 candidates")
        if self.search not in SEARCHES:
            raise UserError(f"search is {self.search!r}; choose from {', '.join(SEARCHES)}")
        if self.folds < 2:
            raise UserError(f"folds is {self.folds}; jackknifing needs at least 2")
        for name in ("max_steps", "processes", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} is {value}; it must be at least 1")
        if self.seed < 0:
            raise UserError(f"seed is {self.seed}; it must not be negative")
        if self.upstream is not None and (self.config or self.max_steps):
            raise UserError(
                "an upstream pipeline is given, so none is trained: leave out its training's "
                "config and steps, or the pipeline"
            )
        if self.test_candidates is not None and self.test is None:
            raise UserError("candidates for test are given, but no test treebank")

    @property
    def work_directory(self) -> Path:
        """Where the work in progress is kept."""
        if self.workdir is not None:
            return self.workdir
        output = self.output.resolve()
        return output.with_name(f"{output.name}.work")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of the treebank: its gold sentences, and its lists where they are ready."""

    name: str
    path: Path
    sentences: list[Sentence]
    lists: list[CandidateList] | None = None

    @property
    def words(self) -> int:
        """Number of words."""
        return sum(map(len, self.sentences))

    def about(self) -> dict[str, Any]:
        """File name, sizes and fingerprint."""
        return {
            "file": self.path.name,
            "sentences": len(self.sentences),
            "words": self.words,
            "sha256": fingerprint(self.path),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A training whose input is read and found good.

    parts: "train", "dev" and perhaps "test".  inventory: shared by all lists, ready or to come.
    nlp: the given upstream, loaded; None where one is to be trained, or none is needed.
    parser: name of the parser in the upstream, given or to come.  backward: whether it has a twin.
    notes: warnings.
    """

    options: TrainOptions
    parts: dict[str, Part]
    inventory: LabelInventory
    nlp: Pipeline | None
    parser: str
    backward: bool
    notes: tuple[str, ...]

    @property
    def needs_upstream(self) -> bool:
        """Whether any part's lists are still to be made."""
        return any(part.lists is None for part in self.parts.values())

    @property
    def trains_upstream(self) -> bool:
        """Whether the upstream is to be trained here."""
        return self.nlp is None and self.needs_upstream

    @property
    def jackknifes(self) -> bool:
        """Whether the training lists come from folds."""
        return self.trains_upstream and self.parts["train"].lists is None


def make_plan(options: TrainOptions) -> Plan:
    """Read all input and check everything that can be checked.  Raises UserError."""
    check_output(options.output, overwrite=options.overwrite)
    check_work_directory(options.work_directory)
    paths = {"train": options.train, "dev": options.dev}
    if options.test is not None:
        paths["test"] = options.test
    check_different(paths)
    notes: list[str] = []
    sentences = {name: load_treebank(path) for name, path in paths.items()}
    notes += overlap_notes(sentences)
    inventory = LabelInventory()
    ready = {
        "train": options.candidates,
        "dev": options.dev_candidates,
        "test": options.test_candidates,
    }
    parts = {}
    for name, path in paths.items():
        file = ready[name]
        lists = None if file is None else read_lists(file, sentences[name], inventory, options.k)
        parts[name] = Part(name, path, sentences[name], lists)
    nlp, parser, backward = None, "parser", options.backward
    if options.upstream is not None:
        from tk_spacy.upstream.loading import (  # noqa: PLC0415  (imports spaCy)
            find_parser,
            has_twin,
            load_pipeline,
        )

        nlp = load_pipeline(options.upstream)
        parser = find_parser(nlp, where=options.upstream)
        backward = has_twin(nlp, parser)
    elif any(part.lists is None for part in parts.values()):
        from tk_spacy.upstream.loading import check_config  # noqa: PLC0415  (imports spaCy)

        parser = check_config(options.config, max_steps=options.max_steps, seed=options.seed)
    check_sources(parts)
    if nlp is not None and parts["train"].lists is None:
        notes.append(
            f"the training lists come from {options.upstream} itself: right only if it was not "
            f"trained on {options.train.name} (jackknifing needs an upstream trained here)"
        )
    plan = Plan(options, parts, inventory, nlp, parser, backward, tuple(notes))
    if plan.jackknifes and len(sentences["train"]) < 2 * options.folds:
        raise UserError(
            f"{options.train}: {len(sentences['train'])} sentences are too few for "
            f"{options.folds} folds; give at least {2 * options.folds}, or fewer folds"
        )
    return plan


def check_output(path: Path, *, overwrite: bool) -> None:
    """Raises UserError unless a model directory can be written there."""
    if path.exists() or path.is_symlink():
        if not path.is_dir():
            raise UserError(f"{path}: a file stands where the model directory is to be written")
        if any(path.iterdir()):
            if not overwrite:
                raise UserError(f"{path}: exists already; use --overwrite to replace it")
            if not (path / "meta.json").is_file():
                raise UserError(
                    f"{path}: holds something other than a model; it is not overwritten, "
                    "choose another output"
                )
    check_writable(path)


def check_work_directory(path: Path) -> None:
    """Raises UserError unless work can be kept there."""
    if path.exists():
        if not path.is_dir():
            raise UserError(f"{path}: a file stands where the work directory is to be")
        if any(path.iterdir()) and not (path / WORK_MARK).is_file():
            raise UserError(
                f"{path}: is not empty and no work directory of a training; choose another one"
            )
    check_writable(path / WORK_MARK)


def check_writable(path: Path) -> None:
    """Raises UserError unless something can be made at `path`; leaves nothing behind."""
    parent = path.resolve().parent
    while not parent.exists():
        parent = parent.parent
    try:
        Path(tempfile.mkdtemp(prefix=".tk-spacy-", dir=parent)).rmdir()
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {parent}: {error.strerror}") from error


def check_different(paths: dict[str, Path]) -> None:
    """Raises UserError where two parts are the same file, or files with the same content."""
    seen: dict[str, str] = {}
    for name, path in paths.items():
        key = fingerprint(path)
        if key in seen:
            raise UserError(
                f"{path}: {name} is the same as {seen[key]}; scores on it would mean nothing, "
                "give another file"
            )
        seen[key] = name


def fingerprint(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(
            f"{path}: cannot read it: {error.strerror}; give a CoNLL-U file that exists"
        ) from error


def overlap_notes(sentences: dict[str, list[Sentence]]) -> Iterator[str]:
    """Warnings about parts whose sentences stand in train too."""
    known = {sentence.forms for sentence in sentences["train"]}
    for name, part in sentences.items():
        if name == "train":
            continue
        share = sum(sentence.forms in known for sentence in part) / len(part)
        if share > OVERLAP_WORTH_A_WARNING:
            yield f"{share:.0%} of the sentences of {name} stand in train too: its scores flatter"


def read_lists(
    path: Path, sentences: Sequence[Sentence], inventory: LabelInventory, k: int
) -> list[CandidateList]:
    """Ready lists for all sentences.  Raises CandidateError where they do not fit."""
    return list(FileSource(path, inventory=inventory).candidates(sentences, k=k))


def check_sources(parts: Mapping[str, Part]) -> None:
    """Raises UserError where lists of different parsers would be mixed."""
    names: dict[str, set[str]] = {}
    for part in parts.values():
        if part.lists is None:
            names[f"the upstream parser ({part.name})"] = {SOURCE_NAME}
        else:
            found = {name for trees in part.lists for name in trees.sources}
            names[f"the candidates of {part.name}"] = found
    (first, expected), *rest = names.items()
    for where, found in rest:
        if found != expected:
            raise UserError(
                f"{first} have the scores {_and(expected)}, {where} {_and(found)}: a reranker is "
                "trained and used with the same parsers; give lists of the same ones"
            )


def enter_work_directory(options: TrainOptions) -> Path:
    """Make the work directory, or take up the work there; what fits no more is made anew."""
    path = options.work_directory
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / WORK_MARK).touch()
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def leave_work_directory(options: TrainOptions) -> None:
    """Remove the work of a training that is done, unless the user named the place to keep it."""
    if options.workdir is None:
        shutil.rmtree(options.work_directory, ignore_errors=True)


def _and(names: set[str]) -> str:
    return " and ".join(repr(name) for name in sorted(names)) or "of no parser"
