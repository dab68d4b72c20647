"""The settings of a training's config: sections, names, kinds of values, defaults, comments.

What a parser or the reranker can be told stands in its settings alone, and is taken from there: the
names, the defaults and, from the docstring, the comments.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tk_spacy.features.list_features import LIST_FEATURES
from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.templates import FEATURE_TYPES
from tk_spacy.features.word_properties import CHOICES
from tk_spacy.kbest.candidates import LONG_LIST, SHORT_LIST
from tk_spacy.parsers.kinds import all_kinds, parser_names
from tk_spacy.parsers.names import BIAFFINE, SAMPLING, SEARCHES
from tk_spacy.parsers.udpipe.settings import ORACLES
from tk_spacy.reranker.settings import LEFT_OPEN, SUITED, Settings
from tk_spacy.reranker.training import TUNING_FOLDS
from tk_spacy.tagging.kinds import DEFAULT as DEFAULT_TAGGER
from tk_spacy.tagging.kinds import taggers_help
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.presets import presets_help

Kind = Literal["path", "paths", "text", "flag", "whole", "number", "names"]

EXPECTED: Mapping[Kind, str] = {
    "path": "a file name in quotes",
    "paths": "a file name in quotes, or a list of them",
    "text": "a text in quotes",
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number (or inf)",
    "names": 'a list of names, as in ["one", "two"]',
}

FILES = "parsers.files"
"""The section whose names are the user's: the file parsers."""

RERANKER = "reranker"
KINDS: Mapping[str, type[Any]] = {
    name: kind.settings_class() for name, kind in all_kinds().items() if kind.settings
}
"""The kinds of parsers with settings of their own, `parsers.KIND` in a config."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    about: its comment.  optional: whether it may be null.
    option: the field of TrainOptions that it is, empty where it is one of a parser's or reranker's.
    """

    default: Any
    kind: Kind
    optional: bool
    about: str
    option: str = ""


def _typed(hint: Any) -> tuple[Kind, bool]:
    """The kind of value that a type stands for, and whether it may be None."""
    if hint == Path | tuple[Path, ...]:
        return "paths", False
    if get_origin(hint) in (Union, types.UnionType):
        inner = [arg for arg in get_args(hint) if arg is not type(None)]
        return _typed(inner[0])[0], True
    if get_origin(hint) is tuple:
        return "names", False
    if get_origin(hint) is Literal:
        return "text", False
    known: dict[Any, Kind] = {
        Path: "path", str: "text", bool: "flag", int: "whole", float: "number",
    }  # fmt: skip
    if hint not in known:
        raise TypeError(f"a setting of type {hint!r}; expected {', '.join(map(repr, known))}")
    return known[hint], False


def comments(settings: type[Any]) -> dict[str, str]:
    """What a class's docstring says of each field, as "name: text"; "a, b: text" of both."""
    text = " ".join((settings.__doc__ or "").split())
    name = "|".join(sorted((field.name for field in fields(settings)), key=len, reverse=True))
    found = list(re.finditer(rf"(?<=\s)((?:{name})(?:, (?:{name}))*): ", text))
    ends = [*(match.start() for match in found), len(text)][1:]  # none where nothing is found
    said: dict[str, str] = {}
    for match, end in zip(found, ends, strict=True):
        about = text[match.start() : end].strip()
        said |= dict.fromkeys(match[1].split(", "), re.sub(r"\bNone\b", "null", about))
    return said


def _of_settings(
    settings: type[Any], *, left_open: Mapping[str, str], told: Mapping[str, str]
) -> dict[str, Setting]:
    """The settings of a parser or the reranker.

    left_open: those that are null by default, and what null means.  told: comments to use instead.
    """
    hints, said = get_type_hints(settings), comments(settings)
    said |= {name: f"{name}: {about}" for name, about in told.items()}
    found = {}
    for field in fields(settings):
        kind, optional = _typed(hints[field.name])
        default, about = field.default, said.get(field.name, field.name)
        if field.name in left_open:
            default, optional = None, True
            about = f"{about.rstrip('.')}.  null: {left_open[field.name]}."
        found[field.name] = Setting(default, kind, optional, about)
    return found


def by_sources(name: str) -> str:
    """The default of a setting that depends on where the lists come from, in words."""

    def text(value: Any) -> str:
        return ",".join(value) if isinstance(value, tuple) else f"{value:g}"

    usual = text(getattr(Settings(), name))
    return f"{text(SUITED['sampling',][name])} with the sampling parser alone, else {usual}"


SEED = "training.seed"
OPEN: Mapping[str, Mapping[str, str]] = {
    BIAFFINE: {"xpos": "where train and dev fill it with tags"},
}
"""Settings of a kind of parsers, beside the seed, that are null by default, and what null means."""

TOLD: Mapping[str, Mapping[str, str]] = {
    SAMPLING: {
        "extra": f"names of further properties of words that the parser has features of: {CHOICES}."
    },
    BIAFFINE: {"xpos": "whether the XPOS column is read"},
    "udpipe": {
        "transition_oracle": "how it is taught; empty for the system's best. "
        + "; ".join(f"{system}: {', '.join(names)}" for system, names in ORACLES.items())
    },
}
"""Comments on settings where the docstring's would not do here."""

OF_KINDS: Mapping[str, dict[str, Setting]] = {
    kind: _of_settings(
        settings,
        left_open={"seed": SEED, **OPEN.get(kind, {})},
        told=TOLD.get(kind, {}),
    )
    for kind, settings in KINDS.items()
}
OF_RERANKER = _of_settings(
    Settings,
    left_open={name: by_sources(name) for name in sorted(LEFT_OPEN)},
    told={
        "kernel_parts": f"part types that the kernel compares: {', '.join(PART_TYPES)}; [] for "
        "none.",
        "manual_parts": f"part types with manual features: {', '.join(FEATURE_TYPES)}; [] for "
        "none.",
        "list_features": f"what its list says of a candidate: {', '.join(LIST_FEATURES)}; [] for "
        "nothing (the paper).",
        "budget": "support parts that the kernel keeps at most while training: the least "
        "influential updates make room for new ones (BPA-S); null for no bound.",
        "properties": f"further properties of words that the kernel compares: {CHOICES}; misc:NAME "
        "is the value of NAME in MISC; FILE holds a form, a tab and its value in each line (word "
        "clusters, say), of which LENGTH characters count.",
    },
)

_HINTS = get_type_hints(TrainOptions)
_DEFAULTS = {field.name: field.default for field in fields(TrainOptions)}


def _own(option: str, about: str) -> Setting:
    """A setting that is a field of TrainOptions."""
    kind, optional = _typed(_HINTS[option])
    default = _DEFAULTS[option]
    return Setting(
        None if default is MISSING else default,
        kind,
        optional or default is MISSING,
        about,
        option,
    )


SECTIONS: Mapping[str, Mapping[str, Setting]] = {
    "paths": {
        "train": _own(
            "train",
            "Treebank to train on: a CoNLL-U file; a folder of a Universal Dependencies release, "
            "for its train, dev and test files; or a list of such, which are one training set.",
        ),
        "dev": _own(
            "dev",
            "Treebank part to measure on.  null: the folders' own; where they have none, a tenth "
            "of train, which is not learnt from, or cross-validation.",
        ),
        "test": _own("test", "A second part to measure on.  null: the folders' own, or none."),
        "output": _own("output", "Directory of the model to write."),
        "workdir": _own(
            "workdir",
            "Parsers and candidate lists are kept here, also after success.  null: OUTPUT.work, "
            "removed at success.",
        ),
    },
    "tags": {
        "source": _own(
            "tags",
            "Where parsers and reranker take UPOS, XPOS, FEATS and LEMMA from.  own: a tagger that "
            "is trained here (by jackknifing for paths.train) and becomes part of the model, so "
            "that it parses words without tags as well as was measured.  gold: the files.",
        ),
        "tagger": _own(
            "tagger",
            f'The tagger: {taggers_help()}; with settings, as in "{DEFAULT_TAGGER}:epochs=20".',
        ),
        "tokenizer": _own(
            "tokenizer",
            "The tokenizer and sentence splitter that is trained with it, so that the model takes "
            "plain text, where the treebank tells how its text is written: udpipe (UDPipe 1's, "
            'which splits multiword tokens); with settings, as in "udpipe:epochs=50"; none for '
            "spaCy's own.",
        ),
    },
    "parsers": {
        "names": _own(
            "parsers",
            "Parsers that propose trees and score those of all, the main one first: "
            f"{', '.join(parser_names())}; file:NAME for any other parser's trees; another one of "
            'a kind differs in a setting, as in "sampling:order=2:seed=7".',
        ),
    },
    f"parsers.{SAMPLING}": OF_KINDS[SAMPLING],
    "parsers.spacy": {
        "pipeline": _own(
            "spacy_pipeline",
            "Take this spaCy pipeline (directory or package) instead of training one.  It must not "
            "have been trained on paths.train, unless lists.train is given.",
        ),
        "config": _own(
            "config",
            "spaCy training config of the parser.  null: a parser that sees TAG, POS, MORPH and "
            "LEMMA.",
        ),
        "max_steps": _own("max_steps", "Steps of its training.  null: the config's."),
        "backward": _own(
            "backward",
            "Train a second parser that reads from right to left: both together make better lists, "
            "in twice the training time.",
        ),
        "search": _own("search", f"How it looks for its k best trees: {', '.join(SEARCHES)}."),
    },
    **{f"parsers.{kind}": of for kind, of in OF_KINDS.items() if kind != SAMPLING},
    FILES: {},
    "lists": {
        "k": _own(
            "k",
            f"Candidates a sentence.  null: {SHORT_LIST}, or {LONG_LIST} of a single parser or "
            "ready lists.",
        ),
        "folds": _own(
            "folds",
            "Folds of the jackknife that makes the training lists: each is parsed by parsers "
            "trained on all others.  null: 2 to 5, by the treebank's size.",
        ),
        "train": _own(
            "candidates",
            "k-best file with ready lists for paths.train, matched by sent_id; no jackknife then.",
        ),
        "dev": _own(
            "dev_candidates",
            "The same for paths.dev.  With lists for all parts no parser is trained, and the model "
            "reranks k-best files only (unless parsers.spacy.pipeline is given).",
        ),
        "test": _own("test_candidates", "The same for paths.test."),
    },
    RERANKER: OF_RERANKER,
    "training": {
        "preset": _own(
            "preset",
            f"Settings that go together, in place of the defaults: {presets_help()}.  What is "
            "said of a single setting goes before it.",
        ),
        "seed": _own("seed", "Seed of the parsers, the folds, the tuning split and the bootstrap."),
        "tuning_folds": _own(
            "tuning_folds",
            "Rerankers trained to tune the parser's weight, each on all folds but one; 1 for a "
            "single one, on nine tenths (the paper); 0 for no weight beside the reranker's own.  "
            f"null: {TUNING_FOLDS}; 0 with the combiner.",
        ),
        "calibration_folds": _own(
            "calibration_folds",
            "Rerankers trained to calibrate the final one's confidence, each on all folds but one; "
            "none where there are tuning folds, which serve for it too.  0: no calibration.  Needs "
            "scikit-learn (the extra `confidence`).",
        ),
        "penalties": _own(
            "penalties",
            "Tune on dev what a tree loses for each of UD's constraints that it breaks (two "
            "subjects of a head, a dependent of a punctuation mark, ...), and repair candidates.",
        ),
        "paper_grid": _own(
            "paper_grid",
            "Tune the parser's weight from 0 to 3 in steps of 0.05, as the paper does, not from "
            "0.01 to 100.",
        ),
        "raw_scores": _own(
            "raw_scores",
            "Weigh the parsers' and the reranker's scores as they are, as the paper does, not "
            "divided by their mean spread within a list.",
        ),
        "tuning_metric": _own(
            "tuning_metric",
            "What the weight is tuned by: las, or uas (the paper), of all words.",
        ),
        "cross_validation": _own(
            "cross_validation",
            "Measure without dev and test: every sentence of train is parsed by a system that was "
            "trained on the other folds, as many times as there are folds, and the saved model is "
            "trained on all.  null: where there is a test file alone, or a train file alone and "
            "--folds is given.",
        ),
        "title": _own(
            "title", "What tables call the treebank.  null: its directory's or file's name."
        ),
    },
    "distillation": {
        "distill": _own(
            "distill",
            "Train a fast parser, too: one parser that learns from the gold trees and from how "
            "probable the final system finds each arc of train, by jackknifing.  It is MODEL/fast, "
            "a pipeline with tagger and tokenizer, and what `tk-spacy parse --fast` uses.",
        ),
        "text": _own(
            "text",
            "A text (plain, or CoNLL-U for its words) that the final system parses, for the fast "
            "parser to learn from besides, if that helps on dev.  null: none.",
        ),
        "students": _own(
            "students",
            "Parsers that are trained for it, of which the best on dev is kept; they learn from "
            "probabilities of arcs, as biaffine does, and have its settings, or others, as in "
            '"biaffine:width=96".',
        ),
        "joined": _own(
            "joined",
            "Parsers whose scores the fast one may take the mean of, at most: a student, and the "
            "parsers of its kind and settings among parsers.names, which are trained already.  "
            "Each takes as long to parse.  1: students alone.",
        ),
        "weight": _own(
            "soft_weight",
            "What the final system's arcs count beside the gold ones, from 0 (gold alone) to 1.",
        ),
        "temperature": _own(
            "soft_temperature",
            "Of the softmax that makes probabilities of the final system's scores, in units of "
            "their mean spread within a list: the lower, the surer.",
        ),
    },
    "model": {
        "name": _own(
            "name",
            "Name of the model as a spaCy package, in letters, digits and underscores.  null: the "
            "treebank's.",
        ),
        "version": _own("version", "Version of the model as a spaCy package."),
        "licence": _own(
            "licence",
            "Licence of the model, for its meta.json and `spacy package`; your choice, as far as "
            "the treebank's allows.  Empty: the treebank's.",
        ),
        "examples": _own(
            "examples",
            "Keep the words of the training sentences that the kernel compares with in the model, "
            "so that `tk-spacy explain` can show them, and sentences of dev in report.html.",
        ),
    },
    "machine": {
        "threads": _own("threads", "Threads; no result depends on it.  null: all cores."),
        "processes": _own(
            "processes",
            "Parsers trained at a time, each in a process of its own; no result depends on it.  "
            "null: one a core.",
        ),
    },
}
"""All sections of a config in their order, and their settings."""

SETTINGS: Mapping[str, Setting] = {
    f"{section}.{name}": setting
    for section, settings in SECTIONS.items()
    for name, setting in settings.items()
}
"""The same by dotted names."""

OF_SECTIONS: Mapping[str, str] = {
    "paths": "Files and directories.",
    "tags": "Tags and lemmas of words, and the words of a text.",
    "parsers": "The parsers, together; settings of each kind are below.",
    **{f"parsers.{name}": f"The {name} parser: {k.summary}." for name, k in all_kinds().items()},
    FILES: "Trees of other parsers, of each file:NAME among parsers.names: CoNLL-U with one tree a "
    "sentence, or k-best files.  Those of train must come from parsers that did not see the "
    "sentence.  NAME is a directory with train.conllu, dev.conllu and perhaps test.conllu; or "
    "[parsers.files.NAME] is a section with train, dev and test.",
    "lists": "Lists of candidate trees.",
    RERANKER: "The reranker.",
    "training": "The training as a whole.",
    "distillation": "The fast parser that learns from all others together.",
    "model": "What the model says of itself, to spaCy too.",
    "machine": "What the work may use.",
}
"""What a section is about."""
