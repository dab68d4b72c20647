"""Presets: settings that go together, from a quick training to the best one that is worth its time.

A preset stands in for the defaults: what a config or an option says goes before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from tk_spacy.parsers.names import BIAFFINE, BOTH_WAYS, DEFAULT_PARSERS, SAMPLING, SPACY

Preset = Literal["quick", "standard", "best"]
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
    }
)  # fmt: skip
"""The settings of each preset by dotted names, where they are not the defaults."""

SUMMARY = {
    "quick": "three parsers",
    "standard": "four parsers, trained longer",
    "best": "seven parsers of four kinds, trained longest",
}
"""What each is, for help."""

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

    What it says of parsers that the user leaves out, and of tags where those of the files are
    taken, is left out; where lists of train are ready, from parsers that are known, all of it.
    said: all settings without it, the user's and the defaults.
    names_parsers: whether the user named the parsers.
    """
    if said["lists.train"] is not None:
        return {}
    values = dict(PRESETS[preset])
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
    return values


def del_section(values: dict[str, Any], section: str) -> None:
    """Remove the values of a section of a config."""
    for name in [name for name in values if name.rpartition(".")[0] == section]:
        del values[name]
