"""What a user chooses for one training, and every check of it that needs no file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from tk_spacy.errors import IdleError, UserError
from tk_spacy.kbest.candidates import LONG_LIST, MAX_K, SHORT_LIST
from tk_spacy.parsers.external import check_files
from tk_spacy.parsers.kinds import find_kind, get_kind
from tk_spacy.parsers.names import (
    BIAFFINE,
    DEFAULT_PARSERS,
    EARLIER_PARSERS,
    FILE,
    SEARCHES,
    SPACY,
    Search,
)
from tk_spacy.parsers.specs import kinds, parse_specs
from tk_spacy.reranker.interpolation import DEFAULT_METRIC, TUNING_METRICS, TuningMetric
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import CALIBRATION_FOLDS
from tk_spacy.tagging.kinds import DEFAULT as DEFAULT_TAGGER
from tk_spacy.tagging.kinds import make_tagger
from tk_spacy.tokenizing.spec import KIND as DEFAULT_TOKENIZER
from tk_spacy.tokenizing.spec import make_tokenizer
from tk_spacy.utils.validation import check_choice
from tk_spacy.workflows.train.presets import DEFAULT as DEFAULT_PRESET
from tk_spacy.workflows.train.presets import NAMES as PRESET_NAMES
from tk_spacy.workflows.train.presets import Preset, concerns_parsers_alone

DEFAULT_STUDENTS = (BIAFFINE,)
SOFT_WEIGHT, SOFT_TEMPERATURE = 0.25, 3.0
"""How much the final system's word counts in what a student learns, and how sure it is.

With two folds its jackknifed trees are worse than a student's own: on a dev set of 10,000 words a
weight of 0.5 or 0.75 at temperature 0.5 cost 0.3 and 1.1 LAS, 0.25 at 1 cost 0.2, at 3 nothing.
"""
MOST_JOINED = 3
"""Parsers whose scores the fast one may take the mean of."""

WITHOUT_DISTILLATION: Mapping[str, Any] = {
    "distill": False,
    "text": None,
    "students": DEFAULT_STUDENTS,
    "joined": MOST_JOINED,
    "soft_weight": SOFT_WEIGHT,
    "soft_temperature": SOFT_TEMPERATURE,
}
"""The options of distillation, as they are where there is none."""

DEFAULT_FOLDS = 5
"""Of small treebanks, and of cross-validation."""

HOW_TO_TUNE = {"paper_grid": False, "raw_scores": False, "tuning_metric": DEFAULT_METRIC}
"""The options that say nothing where nothing is tuned, and their defaults."""

Tags = Literal["own", "gold"]
DEFAULT_TAGS: Tags = "own"


def package_name(text: str) -> str:
    """Words as the name of a spaCy model: UD_Greek-GDT as ud_greek_gdt."""
    words = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return words if words[:1].isalpha() else f"model_{words}".rstrip("_")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Everything that a user chooses for one training.

    train: CoNLL-U files with trees, or folders of a Universal Dependencies release, which stand for
        their files (see `treebanks`); several are one training set.
    dev, test: CoNLL-U files with trees, in place of the folders' own.  Without any dev a tenth of
        train takes its place (see `arrangement`).
    cross_validation: score by cross-validation, every sentence parsed by a system that was trained
        on the other folds, and save a model of all (see `cross_validation`).  None for where there
        is a test part alone, or a train part alone and folds are asked for.
    output: directory of the model.  overwrite: replace a model that is there.
    workdir: where parsers and lists are kept, so that a training can be resumed; None for a
        directory beside the output that is removed at success.
    tags: what the parsers and the reranker learn from: "own", the tags of a tagger that is trained
        here and becomes part of the model, on train by jackknifing; or "gold", the files'.
    tagger: that is trained, such as "udpipe" (see `tagging.kinds.make_tagger`).
    tokenizer: that is trained beside it, where the treebank tells how its text is written, such as
        "udpipe:epochs=50"; "none" for none.
    parsers: the parsers that propose and score trees, the main one first: "sampling", "spacy",
        "biaffine", "sampling:order=2" (see `specs`), "udpipe", "file:NAME" for any other
        parser's trees.
    parser_files: of each such NAME the files of its trees, by the names of the parts.
    parser_settings: by the name of a kind of parsers ("sampling", "biaffine", "udpipe", ...), the
        settings of all its parsers that are not at their defaults.
    spacy_pipeline: a spaCy pipeline (directory or package) to use instead of training a parser.
    backward: train a right-to-left twin of the spaCy parser too: better lists, in twice the time.
    config: spaCy training config of the spaCy parser.  max_steps: of its training.
    folds, processes: of jackknifing; folds None for as many as the treebank's size asks for (see
        `arrangement.folds_for`), processes None for as many as cores allow.
    k, search: of the candidate lists; k None for what suits the parsers, see `list_length`.
    candidates, dev_candidates, test_candidates: k-best files with ready lists.
    settings: of the kernel reranker; the base reranker has the same without the kernel.
    left_open: names of settings that are replaced by what suits the lists (settings.suit).
    paper_grid: beta from 0 to 3 in steps of 0.05.  raw_scores: of parsers' and reranker's scores as
        they are, not divided by their spread.  tuning_metric: what beta is tuned by.
    tuning_folds: rerankers trained to tune beta, each on the lists of the other folds; 1 for the
        paper's single one, on nine tenths.
    calibration_folds: rerankers trained to calibrate confidence, where none is trained to tune; 0
        for no calibration.
    penalties: tune penalties on ill-formed trees by dev, where there is one.
    preset: what the settings that nobody named were taken from; it is only told.
    seed: of the parsers, the folds, the tuning split and the bootstrap.
    threads: None for all cores.
    title: of the treebank, in tables; None for its directory's or file's name.
    name, version, licence: of the model, for spaCy's meta.json and `spacy package`; the name in
        letters, digits and underscores, None for the title's; an empty licence is the
        treebank's.
    distill: train a fast parser, too, that learns from the gold trees and from what the final
        system says of the arcs of train (see `distilling`); it is a pipeline of its own in the
        model.
    text: a text of the user's, plain or CoNLL-U, whose sentences the final system parses for it.
    students: the parsers that are trained for that, of which the best on dev is kept; named as
        `parsers`, with the settings of `parser_settings`.
    joined: parsers whose scores the fast one may take the mean of, at most; 1 for students alone.
    soft_weight: what the final system's arcs count beside the gold ones, from 0 to 1.
    soft_temperature: of the softmax of its scores, in units of their mean spread within a list.
    examples: whether the model keeps the training sentences that its kernel compares with, for
        explanations, and its page (report.html) sentences of dev.
    asked: names of options ("folds", "sampling.order") that the user named, be it their defaults:
        where they have no effect beside the others, that is a mistake.
    places: FILE:LINE of the settings that a config's file has, by dotted name.
    remarks: what is to be told of that file, in a line each.
    """

    train: Path | tuple[Path, ...]
    dev: Path | None = None
    test: Path | None = None
    output: Path
    overwrite: bool = False
    workdir: Path | None = None
    tags: Tags = DEFAULT_TAGS
    tagger: str = DEFAULT_TAGGER
    tokenizer: str = DEFAULT_TOKENIZER
    parsers: tuple[str, ...] = DEFAULT_PARSERS
    parser_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parser_files: Mapping[str, Mapping[str, Path]] = field(default_factory=dict)
    spacy_pipeline: str | None = None
    backward: bool = True
    config: Path | None = None
    max_steps: int | None = None
    folds: int | None = None
    processes: int | None = None
    k: int | None = None
    search: Search = "discrepancy"
    candidates: Path | None = None
    dev_candidates: Path | None = None
    test_candidates: Path | None = None
    settings: Settings = field(default_factory=Settings)
    left_open: frozenset[str] = frozenset()
    paper_grid: bool = False
    raw_scores: bool = False
    tuning_metric: TuningMetric = DEFAULT_METRIC
    tuning_folds: int | None = None
    calibration_folds: int = CALIBRATION_FOLDS
    penalties: bool = True
    cross_validation: bool | None = None
    distill: bool = False
    text: Path | None = None
    students: tuple[str, ...] = DEFAULT_STUDENTS
    joined: int = MOST_JOINED
    soft_weight: float = SOFT_WEIGHT
    soft_temperature: float = SOFT_TEMPERATURE
    preset: Preset = DEFAULT_PRESET
    seed: int = 0
    threads: int | None = None
    title: str | None = None
    name: str | None = None
    version: str = "0.1.0"
    licence: str = ""
    examples: bool = True
    asked: frozenset[str] = frozenset()
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    remarks: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.train_paths:
            raise UserError("train is empty; name at least one file or folder to learn from")
        parse_specs(self.parsers)
        check_choice("preset", self.preset, PRESET_NAMES)
        check_choice("tags", self.tags, get_args(Tags))
        make_tagger(self.tagger)
        if self.tags == "gold" and (self.tagger != DEFAULT_TAGGER or "tagger" in self.asked):
            raise IdleError("tagger", "tagger would have no effect: tags is 'gold'; leave it out")
        make_tokenizer(self.tokenizer)
        if self.tags == "gold" and (
            self.tokenizer != DEFAULT_TOKENIZER or "tokenizer" in self.asked
        ):
            raise IdleError(
                "tokenizer",
                "tokenizer would have no effect: tags is 'gold', and text has none; leave it out",
            )
        if self.list_length < 2:
            raise UserError(f"k is {self.k}; a reranker needs lists of at least 2 candidates")
        if self.list_length > MAX_K:
            raise UserError(f"k is {self.k}; it must be {MAX_K} or less")
        check_choice("search", self.search, SEARCHES)
        if self.folds is not None and self.folds < 2:
            raise UserError(f"folds is {self.folds}; jackknifing needs at least 2")
        for name, least in (
            ("max_steps", 1),
            ("processes", 1),
            ("threads", 1),
            ("tuning_folds", 0),
            ("calibration_folds", 0),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"{name} is {value}; it must be at least {least}")
        check_choice("tuning_metric", self.tuning_metric, TUNING_METRICS)
        for name, usual in HOW_TO_TUNE.items():
            if self.tuning_folds == 0 and getattr(self, name) != usual:
                raise IdleError(
                    name, f"{name} would have no effect: tuning_folds is 0; leave one out"
                )
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed is {self.seed}; it must be from 0 to {2**32 - 1}")
        self._check_meta()
        self._check_distillation()
        if self.spacy_pipeline is not None and (self.config or self.max_steps):
            raise IdleError(
                "config" if self.config else "max_steps",
                "a spaCy pipeline is given, so none is trained; leave out its training's "
                "config and steps, or the pipeline",
            )
        self._check_parser_settings()
        self._check_choice()
        if not any(path.is_dir() for path in self.train_paths):
            named = {"dev": self.dev, "test": self.test}
            self.check_parts(["train", *(name for name, path in named.items() if path)])

    def check_parts(self, parts: Collection[str]) -> None:
        """Raises UserError for lists and options that do not fit the parts that there are.

        parts: those of train, dev and test that have a file, named or in a folder.
        """
        lists = {
            "train": self.candidates,
            "dev": self.dev_candidates,
            "test": self.test_candidates,
        }
        missing = [name for name in parts if lists[name] is None]
        if "dev" not in parts and (self.parser_files or self.candidates):
            raise UserError(
                "no dev is given, and a tenth of train cannot take its place: lists and trees in "
                "files are those of whole files; give a dev file"
            )
        check_files(self.parser_files, parsers=self.parsers, parts=missing)
        for name in ("dev", "test"):
            if lists[name] is not None and name not in parts:
                raise UserError(f"candidates for {name} are given, but no {name} treebank")
        self._check_use(ready=not missing)

    def _check_meta(self) -> None:
        """Raises UserError for what spaCy cannot take as name or version of a package."""
        if self.name is not None and not re.fullmatch(r"[A-Za-z]\w*", self.name, re.ASCII):
            raise UserError(
                f"name is {self.name!r}; it must be ASCII letters, digits and underscores, and "
                f"begin with a letter, as in {package_name(self.name)!r}"
            )
        if not re.fullmatch(r"\d+(\.\d+)*((a|b|rc|\.dev|\.post)\d+)?", self.version, re.ASCII):
            raise UserError(f"version is {self.version!r}; it must be one such as '0.1.0'")
        for name, value in (("licence", self.licence), ("title", self.title or "")):
            if not value.isprintable() or value.isspace():
                raise UserError(f"{name} is {value!r}; it must be one line of text")

    def _check_distillation(self) -> None:
        """Raises UserError for a distillation that cannot be, or settings of one that is not."""
        if not self.distill:
            for name, usual in WITHOUT_DISTILLATION.items():
                if name == "distill":
                    continue
                if name in self.asked or getattr(self, name) != usual:
                    raise IdleError(
                        name,
                        f"{name} would have no effect: nothing is distilled; ask for that "
                        "(distill), or leave it out",
                    )
            return
        for request in parse_specs(self.students):
            if request.kind == FILE:
                raise UserError(
                    f"students are {','.join(self.students)}: trees in files are no parser that "
                    "can be trained; name others, such as biaffine"
                )
        if not 1 <= self.joined <= 16:
            raise UserError(f"joined is {self.joined}; it must be from 1 to 16")
        if not 0 <= self.soft_weight <= 1:
            raise UserError(f"soft_weight is {self.soft_weight}; it must be from 0 to 1")
        if not 0.01 <= self.soft_temperature <= 100:
            raise UserError(
                f"soft_temperature is {self.soft_temperature}; it must be from 0.01 to 100"
            )
        if self.text is not None and FILE in kinds(self.parsers):
            raise UserError(
                "text cannot be parsed: the trees of some of the parsers "
                f"({','.join(self.parsers)}) come from files, which have none of its; leave text "
                "out, or those parsers"
            )

    def _check_parser_settings(self) -> None:
        """Raises UserError for settings of a parser that is not among the parsers."""
        of_spacy = (
            ("spacy_pipeline", "a spaCy pipeline", self.spacy_pipeline is not None),
            ("config", "a config", self.config is not None),
            ("max_steps", "max_steps", self.max_steps is not None),
            ("backward", "no backward twin", not self.backward),
            ("search", f"search by {self.search}", self.search != SEARCHES[0]),
            # Beside ready lists they are refused for another reason.
            ("backward", "backward", "backward" in self.asked and self.candidates is None),
            ("search", "search", "search" in self.asked and self.candidates is None),
        )
        of_parser: dict[str, list[tuple[str, str]]] = {
            SPACY: [(option, called) for option, called, given in of_spacy if given],
        }
        for parser, settings in self.parser_settings.items():
            kind = get_kind(parser)
            own = [(f"{parser}.{name}", kind.concerns(name)) for name in settings]
            of_parser.setdefault(parser, []).extend(own)
        for name in sorted(self.asked):
            parser, _, setting = name.partition(".")
            if setting and (known := find_kind(parser)) is not None:
                of_parser.setdefault(parser, []).append((name, known.concerns(setting)))
        for parser, asked in of_parser.items():
            if asked and parser not in kinds(self.parsers):
                option, called = asked[0]
                raise IdleError(
                    option,
                    f"{called} concerns the {parser} parser only, but the parsers are "
                    f"{','.join(self.parsers)}; add {parser} to the parsers, or leave it out",
                )

    def _check_choice(self) -> None:
        """Raises UserError for parsers that never leave a choice."""
        (only, *others) = parse_specs(self.parsers)
        if others or None not in (self.candidates, self.dev_candidates):
            return
        if get_kind(only.kind).one_tree:
            raise UserError(
                f"the {only.name} parser gives one tree a sentence, which leaves no choice; name "
                "one beside it"
            )

    def _check_use(self, *, ready: bool) -> None:
        """Raises UserError for options that have no effect beside the others.

        ready: whether there are lists for all parts.
        """
        if self.settings.properties and not self.settings.kernel_parts:
            raise IdleError(
                "properties",
                f"properties ({', '.join(self.settings.properties)}) would have no effect: the "
                "kernel compares them, and kernel parts are none; leave one of them out",
            )
        own = [
            get_kind(parser).concerns(name)
            for parser, settings in self.parser_settings.items()
            for name in settings
        ]
        # A model's own file of settings may have what was the default when it was trained.
        usual = self.parsers in (DEFAULT_PARSERS, EARLIER_PARSERS)
        changed = {
            "parsers": not usual and self.spacy_pipeline is None,
            **dict.fromkeys(own, True),
            "config": self.config is not None,
            "max_steps": self.max_steps is not None,
            "backward": not self.backward,
            "search": self.search != SEARCHES[0],
            "folds": self.folds not in (None, DEFAULT_FOLDS),
            "distill": self.distill,
            "processes": self.processes is not None,
            "name": self.name is not None,
            "licence": bool(self.licence),
        }
        own += sorted(name for name in self.asked if find_kind(name.partition(".")[0]))
        of_training = [*own, "config", "max_steps"]
        if ready and self.spacy_pipeline is None:
            useless = ["preset", "parsers", *of_training, "backward", "search"]
            useless += ["folds", "processes", "distill"]
            useless += ["name", "version", "licence"]
            reason = "candidates are given for all parts, so no parser is trained or asked"
        elif ready:
            useless = ["preset", *of_training, "backward", "folds", "processes", "distill"]
            reason = "candidates are given for all parts, so no parser is trained"
            for request in parse_specs(self.parsers):
                if request.kind not in (SPACY, FILE):
                    raise UserError(
                        f"the {request.name} parser cannot be used: {reason}; leave it out"
                    )
        elif kinds(self.parsers) == {FILE}:
            useless = ["folds", "processes", "distill", "name", "version", "licence"]
            reason = "all trees are in files, so no parser is trained or saved"
        elif self.candidates is not None:
            useless = ["preset", "folds", "processes", "distill"]
            reason = "candidates are given for train, so there is no jackknife"
        elif self.spacy_pipeline is not None and kinds(self.parsers) <= {SPACY, FILE}:
            useless = ["backward", "folds", "processes", "distill"]
            reason = "a spaCy pipeline is given, so no parser is trained"
        else:
            return
        for name in useless:
            if name == "preset" and not concerns_parsers_alone(self.preset):
                continue
            if name in self.asked or changed.get(name):
                raise IdleError(name, f"{name} would have no effect: {reason}; leave it out")

    @property
    def train_paths(self) -> tuple[Path, ...]:
        """The files and folders to learn from."""
        return (self.train,) if isinstance(self.train, Path) else tuple(self.train)

    @property
    def word_properties(self) -> dict[str, tuple[str, ...]]:
        """The further properties of words that reranker and parsers read, by dotted setting."""
        of_parsers = {
            f"parsers.{kind}.extra": tuple(own["extra"])
            for kind, own in self.parser_settings.items()
            if "extra" in own
        }
        return {"reranker.properties": self.settings.properties, **of_parsers}

    @property
    def list_length(self) -> int:
        """Candidates of a sentence, at most.

        Parsers of several kinds leave a wide choice in short lists: on three dev sets their final
        system was as good with lists of 8 as with lists of 25, and half as fast again.
        """
        if self.k is not None:
            return self.k
        ready = self.candidates is not None
        return LONG_LIST if ready or len(self.parsers) == 1 else SHORT_LIST

    @property
    def kept_paths(self) -> list[Path]:
        """All that the user gave and keeps, whatever becomes of the output."""
        paths = (
            self.workdir, *self.train_paths, self.dev, self.test, self.text, self.config,
            self.candidates,
            self.dev_candidates, self.test_candidates,
            self.spacy_pipeline and Path(self.spacy_pipeline),
            *(path for files in self.parser_files.values() for path in files.values()),
            *(
                Path(str(request.changes["config"])) for request in parse_specs(self.parsers)
                if request.kind == SPACY and "config" in request.changes
            ),
        )  # fmt: skip
        return [path for path in paths if path]

    @property
    def work_directory(self) -> Path:
        """Where the work in progress is kept."""
        if self.workdir is not None:
            return self.workdir
        output = self.output.resolve()
        return output.with_name(f"{output.name}.work")
