"""A training's options from a config: read, changed by dotted names, checked once.

A config is a file as spaCy has them (read by confection): sections, NAME = VALUE with JSON values,
comments on lines of their own, and ${section.name} for another setting's value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Any

from tk_spacy.errors import IdleError, OptionError, UserError
from tk_spacy.parsers.names import FILE_PREFIX, SPACY
from tk_spacy.parsers.specs import kinds
from tk_spacy.reranker.settings import LEFT_OPEN, Settings
from tk_spacy.utils.stored_values import MOST, shown
from tk_spacy.workflows.train.config_file import places_of, preset_of_model, read_config
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
from tk_spacy.workflows.train.places import blamed, said_of
from tk_spacy.workflows.train.presets import GOVERNED, PRESETS, preset_values
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
    changes = dict(changes or {})
    own = _typed(changes, {})
    if config is None:
        return _made({}, own, None, overwrite=overwrite)
    config = Path(config)
    # A file's own preset is wanted, as it stands there (see `_together`).
    others = {name: value for name, value in changes.items() if name != PRESET}
    given = read_config(config, others)
    places = {name: place for name, place in places_of(config).items() if name in given}
    places |= {name: str(config) for name in given if name not in places}
    of_file = _typed(given, places)
    before = preset_of_model(config)
    idle: dict[str, str] = {}

    def made(*left_out: str) -> TrainOptions:
        kept = {n: v for n, v in of_file.items() if n not in idle and n not in left_out}
        return _made(kept, own, before, overwrite=overwrite)

    def failure(*left_out: str) -> str:
        try:
            made(*left_out)
        except UserError as error:
            return str(error)
        return ""

    ours = {name: place for name, place in places.items() if name not in changes}
    while True:
        try:
            options = made()
            break
        except OptionError:
            raise
        except IdleError as error:
            name = dotted(error.option)
            if name not in ours or name in idle:
                raise
            idle[name] = str(error)
        except UserError as error:
            suspects = [name for name in ours if name not in idle and name not in NEEDED]
            text = str(error)
            suspects = [name for name in suspects if failure(name) != text]
            found = blamed(text, suspects or ours.keys() & NEEDED, changes, sure=bool(suspects))
            raise UserError(text if found is None else said_of(found, text, places)) from error
    options = replace(options, places={n: p for n, p in ours.items() if n not in idle})
    return replace(options, remarks=tuple(_remarks(options, of_file, own, idle, places, before)))


def _typed(given: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    """Settings in the types that they have; files of parsers as they are.

    places: of settings in a file.  Raises UserError for what is no setting, or of another kind.
    """
    found = {}
    for name, value in given.items():
        place = f"{places[name]}: " if name in places else ""
        if name.startswith(f"{FILES}."):
            _add_file({}, name, value, place)
            found[name] = value
        elif name in SETTINGS:
            found[name] = _converted(name, SETTINGS[name], value, place)
        else:
            raise UserError(f"{place}{name} is no setting; the nearest is {nearest(name)}")
    return found


def _made(
    of_file: Mapping[str, Any],
    of_changes: Mapping[str, Any],
    before: str | None,
    *,
    overwrite: bool,
) -> TrainOptions:
    """The options that settings of a file and changes to them make; see `_together`."""
    values = _together(of_file, of_changes, before)
    for name in NEEDED:
        if values[name] is None:
            raise OptionError(f"no {name} is given: {SETTINGS[name].about}")
    files: dict[str, Any] = {}
    for name, value in (*of_file.items(), *of_changes.items()):
        # Trees of parsers that are not asked for stay in the file; see `_remarks`.
        used = name in of_changes or _file_parser(name) in values["parsers.names"]
        if name.startswith(f"{FILES}.") and used:
            _add_file(files, name, value, "")
    return _options(values, files, overwrite=overwrite, asked=frozenset(map(asked, of_changes)))


def _file_parser(name: str) -> str:
    """The parser whose trees a setting of `parsers.files` names."""
    return FILE_PREFIX + name.removeprefix(f"{FILES}.").partition(".")[0]


def _together(
    of_file: Mapping[str, Any], of_changes: Mapping[str, Any], before: str | None
) -> dict[str, Any]:
    """All settings: a change goes before the file, and that before the preset and the defaults.

    A file may have all settings (a model's own has): where another preset is asked for, those that
    are as the file's own preset has them say nothing.  before: the preset that a model's file was
    written with, whatever it says now.
    """
    defaults = {name: setting.default for name, setting in SETTINGS.items()}
    asked = of_changes.get(PRESET)
    usual = of_file.get(PRESET, defaults[PRESET])
    written = before or usual
    if asked not in (None, written) and written in PRESETS:
        then = {**defaults, **PRESETS[written]}
        of_file = {name: value for name, value in of_file.items() if value != then.get(name)}
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


def _remarks(
    options: TrainOptions,
    of_file: Mapping[str, Any],
    of_changes: Mapping[str, Any],
    idle: Mapping[str, str],
    places: Mapping[str, str],
    before: str | None,
) -> Iterator[str]:
    """What is to be told of a file: what in it has no effect here.

    A file may have all settings, as other versions and other models had them, so that these are no
    mistake there; those that are at their defaults are not named.
    idle: settings that were left out, and why.
    """
    trained = _trained_kinds({name: getattr(options, name) for name in _OF_USE})
    of_others = []
    for name in places:
        value = of_file[name]
        kind = name.split(".")[1] if name.count(".") > 1 else ""
        if name in of_changes:
            continue
        if name.startswith(f"{FILES}."):
            is_idle = _file_parser(name) not in options.parsers
        elif kind == SPACY:
            is_idle = name in idle and SPACY not in kinds(options.parsers)
        else:
            is_idle = kind not in trained and value != SETTINGS[name].default
        if kind and is_idle:
            of_others.append(name)
    if of_others:
        named = "; ".join(f"{places[name]}: {name}" for name in of_others)
        yield f"No parser is trained that these settings are of: {named}"
    for name, reason in idle.items():
        if name not in of_others:
            yield f"Not used: {said_of(name, reason, places).rpartition('; ')[0]}"
    preset = of_file.get(PRESET)
    if before in (None, preset) or PRESET in of_changes or options.candidates is not None:
        return
    values, _ = values_of(options)
    of_preset = {
        **{name: SETTINGS[name].default for name in GOVERNED},
        **preset_values(options.preset, values, names_parsers=False),
    }
    differ = [n for n, v in of_preset.items() if n in of_file and values[n] != v]
    if differ:
        yield (
            f"{places[PRESET]}: training.preset is {preset!r} now, but the file has all settings, "
            f"which go before it, and these are another preset's or your own: {', '.join(differ)}; "
            f"take them out of the file, or give --preset {preset} beside it"
        )


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


def dotted(option: str) -> str:
    """The inverse of `asked`, for a setting of the reranker too."""
    for name, setting in SETTINGS.items():
        if option and setting.option == option:
            return name
    return f"{RERANKER}.{option}" if option in OF_RERANKER else f"parsers.{option}"


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
        # A whole number may be beyond all of those with a point.
        case "number" if is_number and (isinstance(value, float) or abs(value) < MOST):
            return float(value)
        case "number" if value in ("inf", "infinity"):
            return inf
        case "names" if isinstance(value, str):
            names = tuple(item.strip() for item in value.split(",") if item.strip())
            return () if names == ("none",) else names
        case "names" if isinstance(value, list | tuple) and all(
            isinstance(item, str) for item in value
        ):
            return tuple(value)
        case "text" if isinstance(value, str) or is_number:
            return str(value)
        case "path" if is_number or (isinstance(value, str | Path) and str(value)):
            return Path(str(value))
        case "paths" if is_number or (isinstance(value, str | Path) and str(value)):
            return Path(str(value))
        case "paths" if isinstance(value, list | tuple) and all(
            isinstance(item, str | Path) and str(item) for item in value
        ):
            paths = tuple(Path(item) for item in value)
            return paths[0] if len(paths) == 1 else paths
    said = '""' if value == "" else "null" if value is None else shown(value)
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
