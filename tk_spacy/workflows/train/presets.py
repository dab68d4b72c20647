"""Presets: settings that go together, from a quick training to the best one that is worth its time.

And the first paper's own setting (Taub-Tabib et al. 2015), which `configs/paper.cfg` has too, with
where the paper says what; what is our default as well stands there alone.

A preset stands in for the defaults: what a config or an option says goes before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.parsers.names import BIAFFINE, BOTH_WAYS, DEFAULT_PARSERS, FILE, SAMPLING, SPACY

Preset = Literal["quick", "standard", "best", "paper"]
NAMES: tuple[Preset, ...] = get_args(Preset)
DEFAULT: Preset = "standard"

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "quick": {
            "tags.tokenizer": "udpipe:epochs=10",
            "parsers.names": (BIAFFINE, *BOTH_WAYS),
            f"parsers.{BIAFFINE}.epochs": 30,
        },
        "standard": {},
        "best": {
            "parsers.names": (*DEFAULT_PARSERS, f"{BIAFFINE}:seed=2", SAMPLING, SPACY),
            f"parsers.{BIAFFINE}.epochs": 100,
            f"parsers.{SPACY}.max_steps": 1500,
        },
        "paper": {
            "tags.source": "gold",
            "parsers.names": (SAMPLING,),
            f"parsers.{SAMPLING}.crossing": False,
            "lists.k": 25,
            "lists.folds": 20,
            "reranker.manual_parts": tuple(PART_TYPES),
            "reranker.list_features": (),
            "reranker.loss": "heads",
            "reranker.competitor": "best",
            "reranker.kernel_scale": 1.0,
            "reranker.combiner": False,
            "reranker.count_single": True,
            "training.tuning_folds": 1,
            "training.penalties": False,
            "training.paper_grid": True,
            "training.raw_scores": True,
            "training.tuning_metric": "uas",
        },
    }
)  # fmt: skip
"""The settings of each preset by dotted names, where they are not the defaults."""

SUMMARY = {
    "quick": "three parsers",
    "standard": "four parsers, trained longer",
    "best": "seven parsers of four kinds, trained longest",
    "paper": "one parser, gold tags and 20 folds, as Taub-Tabib et al. have it",
}
"""What each is, for help."""

OF_READY_LISTS = ("reranker.", "training.", "lists.k")
"""How settings begin that count also where no parser is trained."""

TUNING = ("training.paper_grid", "training.raw_scores", "training.tuning_metric")
"""Settings that say nothing where nothing is tuned."""

GOVERNED = frozenset(name for values in PRESETS.values() for name in values)
"""Settings that some preset has at another value than the defaults."""

KINDS_WITH_SETTINGS = {
    name.split(".")[1]
    for name in GOVERNED
    if name.startswith("parsers.") and name != "parsers.names"
}
"""Kinds of parsers of which a preset says something."""


def presets_help() -> str:
    """All presets in words."""
    return "; ".join(f"{name}: {SUMMARY[name]}" for name in NAMES)


def preset_values(
    preset: Preset, said: Mapping[str, Any], *, names_parsers: bool
) -> dict[str, Any]:
    """The settings of a preset that concern a training.

    said: all settings without it, the user's and the defaults.
    names_parsers: whether the user named the parsers.

    What it says of parsers that the user leaves out, of folds where nothing is jackknifed, of tags
    where those of the files are taken, and of tuning where there is none, is left out; where lists
    of train are ready, from parsers that are known, all but what is said of reranking.
    """
    values = dict(PRESETS[preset])
    if said["training.tuning_folds"] == 0:
        values = {name: value for name, value in values.items() if name not in TUNING}
    if said["lists.train"] is not None:
        return {name: value for name, value in values.items() if name.startswith(OF_READY_LISTS)}
    if said["tags.source"] == "gold":
        del_section(values, "tags")
    if said["parsers.spacy.pipeline"] is not None:
        del_section(values, f"parsers.{SPACY}")
    names = said["parsers.names"]
    if not names_parsers:
        names = values.get("parsers.names", names)
    kinds = {name.partition(":")[0] for name in names}
    for kind in KINDS_WITH_SETTINGS - kinds:
        del_section(values, f"parsers.{kind}")
    given = {FILE} if said["parsers.spacy.pipeline"] is None else {FILE, SPACY}
    if kinds <= given:
        values.pop("lists.folds", None)
    return values


def concerns_parsers_alone(preset: Preset) -> bool:
    """Whether a preset has nothing to say where no parser is trained."""
    return not any(name.startswith(OF_READY_LISTS) for name in PRESETS[preset])


def del_section(values: dict[str, Any], section: str) -> None:
    """Remove the values of a section of a config."""
    for name in [name for name in values if name.rpartition(".")[0] == section]:
        del values[name]
