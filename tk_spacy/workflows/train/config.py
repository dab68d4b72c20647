"""A training's options from a config: read, changed by dotted names, checked once.

A config is a file as spaCy has them (read by confection): sections, NAME = VALUE with JSON values,
comments on lines of their own, and ${section.name} for another setting's value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tk_spacy.errors import OptionError, UserError
from tk_spacy.reranker.settings import LEFT_OPEN, Settings
from tk_spacy.workflows.train.config_file import places_of, read_config
from tk_spacy.workflows.train.config_schema import (
    EXPECTED,
    FILES,
    KINDS,
    OF_KINDS,
    OF_RERANKER,
    RERANKER,
    SETTINGS,
    Setting,
)
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.presets import PRESETS, preset_values
from tk_spacy.workflows.train.treebanks import PARTS

PRESET = "training.preset"
NEEDED = ("paths.train", "paths.output")


def train_options(
    config: str | Path | None = None,
    changes: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
) -> TrainOptions:
    """The options of a training.

    config: file with settings that are not at their defaults, any number of them; None for none.
    changes: by dotted name ("parsers.sampling.order"), what goes before the file and the defaults.
    overwrite: replace a model that is there.
    Raises UserError, naming file, line and setting, for what cannot be read or does not exist.
    """
    config = None if config is None else Path(config)
    changes = dict(changes or {})
    values = {name: setting.default for name, setting in SETTINGS.items()}
    files: dict[str, Any] = {}
    # A file's own preset is wanted, as it stands there (see `_together`).
    others = {name: value for name, value in changes.items() if name != PRESET}
    given = {} if config is None else read_config(config, others)
    places: dict[str, str] = {} if config is None else places_of(config)
    said: dict[str, dict[str, Any]] = {}
    for source, where in ((given, str(config)), (changes, "")):
        own = said[where] = {}
        for name, value in source.items():
            place = "" if not where else f"{places.get(name, where)}: "
            if name.startswith(f"{FILES}."):
                _add_file(files, name, value, place)
                continue
            if name not in SETTINGS:
                raise UserError(f"{place}{name} is no setting; the nearest is {nearest(name)}")
            own[name] = _converted(name, SETTINGS[name], value, place)
    values = _together(values, said.get(str(config), {}), said[""])
    for name in NEEDED:
        if values[name] is None:
            raise OptionError(f"no {name} is given: {SETTINGS[name].about}")
    try:
        return _options(values, files, overwrite=overwrite, asked=frozenset(map(asked, changes)))
    except UserError as error:
        ours = {name: place for name, place in places.items() if name not in changes}
        raise UserError(f"{_place_of(str(error), ours)}{error}") from error


def _together(
    defaults: Mapping[str, Any], of_file: Mapping[str, Any], of_changes: Mapping[str, Any]
) -> dict[str, Any]:
    """All settings: a change goes before the file, and that before the preset and the defaults.

    A file may have all settings (a model's own has): where another preset is asked for, those that
    are as the file's own preset has them say nothing.
    """
    asked = of_changes.get(PRESET)
    usual = of_file.get(PRESET, defaults[PRESET])
    if asked not in (None, usual) and usual in PRESETS:
        before = {**defaults, **PRESETS[usual]}
        of_file = {name: value for name, value in of_file.items() if value != before[name]}
    said = {**of_file, **of_changes}
    values = {**defaults, **said}
    preset = asked or usual
    if preset not in PRESETS:
        return {**values, PRESET: preset}  # refused with the other options
    of_preset = preset_values(preset, values, names_parsers="parsers.names" in said)
    return {**defaults, **of_preset, **said, PRESET: preset}


def raw_values(config: Path | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file and the changes to them as they were written, by dotted name.

    Raises UserError for a file that cannot be read.
    """
    return {**({} if config is None else read_config(config, changes)), **changes}


def _place_of(text: str, places: Mapping[str, str]) -> str:
    """FILE:LINE of the setting that a mistake begins with, where it stands in a file."""
    for name, place in places.items():
        section, _, last = name.rpartition(".")
        for called in (f"{section}: {last}", last):
            if text.startswith((f"{called} is ", f"{called.replace('_', ' ')} is ")):
                return f"{place}: "
    return ""


def _options(
    values: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Path]],
    *,
    overwrite: bool,
    asked: frozenset[str],
) -> TrainOptions:
    own: dict[str, Any] = {
        setting.option: values[name] for name, setting in SETTINGS.items() if setting.option
    }
    # A parser's settings at their defaults are not said: they say nothing of which parsers there
    # are.
    of_kinds: dict[str, Any] = {
        kind: {
            name: values[f"parsers.{kind}.{name}"]
            for name, setting in settings.items()
            if values[f"parsers.{kind}.{name}"] != setting.default
        }
        for kind, settings in OF_KINDS.items()
    }
    trained = _trained_kinds(own)
    for kind, given in of_kinds.items():
        said = {name: value for name, value in given.items() if value is not None}
        try:
            KINDS[kind](**said)
        except UserError as error:
            raise UserError(f"parsers.{kind}: {error}") from error
        if kind not in trained:
            # Of a file (see `idle_settings`); what was named beside it is refused below.
            of_kinds[kind] = {
                name: value for name, value in given.items() if f"{kind}.{name}" in asked
            }
    reranker = {name: values[f"{RERANKER}.{name}"] for name in OF_RERANKER}
    left_open = frozenset(name for name in LEFT_OPEN if reranker[name] is None)
    said = {name: value for name, value in reranker.items() if name not in left_open}
    return TrainOptions(
        **own,
        parser_settings={kind: given for kind, given in of_kinds.items() if given},
        parser_files=files,
        settings=Settings(**said),
        left_open=left_open,
        overwrite=overwrite,
        asked=asked,
    )


_OF_USE = ("parsers", "test", "candidates", "dev_candidates", "test_candidates")
"""The options that tell which kinds of parsers are trained."""


def _trained_kinds(own: Mapping[str, Any]) -> set[str]:
    """The kinds of parsers that are trained, by what options are called."""
    lists = [own["candidates"], own["dev_candidates"]]
    if own["test"] is not None:
        lists.append(own["test_candidates"])
    if None not in lists:
        return set()
    return {name.partition(":")[0] for name in own["parsers"]}


def idle_settings(config: Path, options: TrainOptions) -> list[str]:
    """What stands in a file about kinds of parsers that are not trained, as FILE:LINE: NAME.

    A file may have all settings, as other versions and other models had them, so that these are no
    mistake there; those that are at their defaults are not named.
    """
    trained = _trained_kinds({name: getattr(options, name) for name in _OF_USE})
    idle = {
        f"parsers.{kind}.{name}": setting
        for kind in OF_KINDS.keys() - trained
        for name, setting in OF_KINDS[kind].items()
        if f"{kind}.{name}" not in options.asked
    }
    places = places_of(config)
    return [
        f"{places.get(name, config)}: {name}"
        for name, value in read_config(config, {}).items()
        if name in idle and _converted(name, idle[name], value, "") != idle[name].default
    ]


def values_of(options: TrainOptions) -> tuple[dict[str, Any], dict[str, dict[str, Path]]]:
    """The values of all settings by dotted names, and the files of the file parsers."""
    values = {
        name: getattr(options, setting.option)
        for name, setting in SETTINGS.items()
        if setting.option
    }
    for kind, settings in OF_KINDS.items():
        given = options.parser_settings.get(kind, {})
        for name, setting in settings.items():
            values[f"parsers.{kind}.{name}"] = given.get(name, setting.default)
    for field in fields(Settings):
        is_open = field.name in options.left_open
        values[f"{RERANKER}.{field.name}"] = (
            None if is_open else getattr(options.settings, field.name)
        )
    return values, {name: dict(files) for name, files in options.parser_files.items()}


def asked(name: str) -> str:
    """What TrainOptions calls a setting with this dotted name."""
    if name in SETTINGS and SETTINGS[name].option:
        return SETTINGS[name].option
    return "parser_files" if name.startswith(f"{FILES}.") else name.removeprefix("parsers.")


def nearest(name: str) -> str:
    """The setting whose dotted name is most like this one, with the same last part if any has."""
    last = name.rsplit(".", 1)[-1]
    same = [known for known in SETTINGS if known.rsplit(".", 1)[-1] == last]
    return get_close_matches(name, same or list(SETTINGS), n=1, cutoff=0.0)[0]


def _converted(name: str, setting: Setting, value: Any, place: str) -> Any:
    """The value of a setting in the type that it has.  Raises UserError for another kind."""
    if value is None and setting.optional:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match setting.kind:
        case "flag" if isinstance(value, bool):
            return value
        case "whole" if is_number and isinstance(value, int):
            return value
        case "number" if is_number:
            return float(value)
        case "number" if value in ("inf", "infinity"):
            return math.inf
        case "names" if isinstance(value, str):
            names = tuple(item.strip() for item in value.split(",") if item.strip())
            return () if names == ("none",) else names
        case "names" if isinstance(value, list | tuple) and all(
            isinstance(item, str) for item in value
        ):
            return tuple(value)
        case "text" if isinstance(value, str) or is_number:
            return str(value)
        case "path" if isinstance(value, str | Path) or is_number:
            return Path(str(value))
        case "paths" if isinstance(value, str | Path) or is_number:
            return Path(str(value))
        case "paths" if isinstance(value, list | tuple) and all(
            isinstance(item, str | Path) and str(item) for item in value
        ):
            paths = tuple(Path(item) for item in value)
            return paths[0] if len(paths) == 1 else paths
    said = '""' if value == "" else "null" if value is None else repr(value)
    null = ", or null" if setting.optional else ""
    raise UserError(f"{place}{name} is {said}; expected {EXPECTED[setting.kind]}{null}")


def _add_file(files: dict[str, Any], name: str, value: Any, place: str) -> None:
    """Note the files of a file parser: `parsers.files.NAME` or `parsers.files.NAME.PART`."""
    source, _, part = name.removeprefix(f"{FILES}.").partition(".")
    if isinstance(value, Mapping):
        for key, file in value.items():
            _add_file(files, f"{FILES}.{source}.{key}", file, place)
        return
    if value is None and part in PARTS:
        files.get(source, {}).pop(part, None)
        return
    if isinstance(value, str | Path) and str(value):
        path = Path(value)
        if part in PARTS:
            files.setdefault(source, {})[part] = path
            return
        if not part and path.is_dir():
            inside = {part: path / f"{part}.conllu" for part in PARTS}
            files[source] = {part: file for part, file in inside.items() if file.exists()}
            return
    raise UserError(
        f"{place}{name} is {str(value)!r}; give {FILES}.{source} a directory with train.conllu, "
        f"dev.conllu and perhaps test.conllu in it, or {FILES}.{source}.PART a file, where PART is "
        f"{', '.join(PARTS)}"
    )
