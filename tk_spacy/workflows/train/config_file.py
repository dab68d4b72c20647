"""A config as a file: read, changed by dotted names, and where its settings stand in it."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from configparser import Error as ConfigParserError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tk_spacy.errors import UserError
from tk_spacy.utils.workdir import check_regular
from tk_spacy.workflows.train.config_schema import FILES, SECTIONS, SETTINGS

if TYPE_CHECKING:
    from confection import Config

OF_SPACY = {"nlp", "components", "corpora", "initialize", "pretraining", "system"}
"""Sections that a spaCy training config has, and ours has not."""

NO_CONFIG = (ConfigParserError, ValueError, LookupError, TypeError)
"""What confection raises for a text that it cannot read; its own error is a ValueError."""

WRITTEN_WITH = "Preset of this training:"
"""In a model's own config, a comment: the settings below are this preset's, whatever it says."""

_BREAK = re.compile("[\\0\v\f\\x1c-\\x1e\\x85\u2028\u2029]")
"""What some take for the end of a line, and the readers of configs do not."""

_HEADER = re.compile(r"^\s*\[([^]\n]+)\]\s*$")
_SETTING = re.compile(r"^\s*([^\s=#;\[{\"'][^=]*?)\s*=")


def load_value(text: str) -> Any:
    """The value that a text stands for: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def is_spacy_config(path: Path) -> bool:
    """Whether a file is a spaCy training config, and no config of ours; False if unreadable."""
    try:
        return _is_of_spacy(_from_str(_text(path), interpolate=False))
    except (UserError, *NO_CONFIG):
        return False


def _is_of_spacy(config: Mapping[str, Any]) -> bool:
    return bool(OF_SPACY & config.keys())


def _text(path: Path) -> str:
    """The text of a file."""
    check_regular(path)  # its settings and the places of these are read one after the other
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is no config: not UTF-8 text ({error.reason})") from error
    for number, line in enumerate(text.split("\n"), 1):
        if found := _BREAK.search(line):
            what = f"the character U+{ord(found[0]):04X}, which may end a line or not"
            raise UserError(f"{path}:{number}: holds {what}; remove it, or end the line by LF")
    return text


def _missing_sections(text: str) -> list[str]:
    """The sections above those of a config that are not there themselves, as confection wants."""
    found = [match[1] for line in text.split("\n") if (match := _HEADER.match(line))]
    above = {
        name.rsplit(".", depth)[0] for name in found for depth in range(1, name.count(".") + 1)
    }
    return sorted(above - set(found))


def read_config(path: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that stand in a file, by dotted name.

    changes: values that ${...} in the file stands for where they are given.
    """
    text = _text(path)
    _check_quotes(path, text)
    above = _missing_sections(text)
    try:
        if _is_of_spacy(_parse(text, interpolate=False)):
            raise UserError(
                f"{path}: a spaCy training config, which configures spaCy's parser alone; give it "
                "as parsers.spacy.config"
            )
        return dict(_flat(_parse(_with_changes(text, changes))))
    except UserError:
        raise
    except NO_CONFIG as error:
        raise UserError(f"{path}: is no config: {_reason(error, len(above))}") from error


def _parse(text: str, *, interpolate: bool = True) -> Config:
    above = "".join(f"[{name}]\n" for name in _missing_sections(text))
    return _from_str(_in_order(above + text), interpolate=interpolate)


def _from_str(text: str, *, interpolate: bool) -> Config:
    # With pydantic it takes longer to import than all of ours, and most commands read no config.
    from confection import Config  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single quotes, of which more is said here
        return Config().from_str(text, interpolate=interpolate)


def _check_quotes(path: Path, text: str) -> None:
    """Raises UserError for values with quotes or brackets that are no JSON, as 'a' and [a].

    confection takes them for plain texts, quotes and all.
    """
    lines, places = text.split("\n"), _lines_of(text)
    for name, number in places.items():
        if _HEADER.match(lines[number]):
            continue
        block = lines[number : _end(lines, places, number)]
        kept = [line for line in block if not line.lstrip().startswith(("#", ";"))]
        value = " ".join("\n".join(kept).split("=", 1)[1].split())
        if value[:1] not in ("'", '"', "[", "{") or not value or "${" in value:
            continue
        try:
            json.loads(value)
        except ValueError:
            cure = 'write texts in double quotes, lists as in ["one", "two"]'
            if re.fullmatch("'[^']*'", value):
                is_bare = name in SETTINGS and SETTINGS[name].kind in ("flag", "whole", "number")
                cure = f"write {value[1:-1] if is_bare else value_text(value[1:-1])}"
            raise UserError(
                f"{path}:{number + 1}: {name} is {value}, which is no JSON; {cure}"
            ) from None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _end(lines: Sequence[str], places: Mapping[str, int], line: int) -> int:
    """The line of the next setting or section, up to which a value may go on."""
    return min((other for other in places.values() if other > line), default=len(lines))


def _in_order(text: str) -> str:
    """The text with each section behind those that it lies in, as confection wants them."""
    head, *sections = re.split(r"(?m)^(?=[ \t]*\[[^]\n]+\][ \t]*$)", text + "\n")
    return head + "".join(sorted(sections, key=lambda block: block.split("]")[0].count(".")))


def _with_changes(text: str, changes: Mapping[str, Any]) -> str:
    """The text with changed values in place of its own, so that ${...} stands for the new ones."""
    for name, value in changes.items():
        section, _, last = name.rpartition(".")
        if section not in SECTIONS or isinstance(value, Mapping):
            continue
        lines, places = text.split("\n"), _lines_of(text)
        changed = f"{last} = {value_text(value)}"
        if (line := places.get(name)) is not None:
            end = _end(lines, places, line)
            lines[line:end] = [_indent(lines[line]) + changed, *[""] * (end - line - 1)]
        elif (line := places.get(section)) is not None:
            # Set in as the next one is, which would be a part of its value otherwise.
            end = _end(lines, places, line)
            lines.insert(line + 1, "".join(map(_indent, lines[end : end + 1])) + changed)
        text = "\n".join(lines)
    return text


def _reason(error: Exception, above: int) -> str:
    """What confection or configparser says, in one line and without its title.

    above: lines that were put above the file's own.
    """
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    titles = ("Config validation error", "Make sure the sections", "Error parsing config")
    said = [line for line in lines if not line.startswith(titles)]
    return re.sub(
        r"(line:? )(\d+)",
        lambda match: f"{match[1]}{int(match[2]) - above}",
        " ".join(said or lines).replace("'<string>'", "it"),
    )


def _flat(config: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The values of sections and sections within them, by dotted name."""
    for name, value in config.items():
        dotted = f"{above}.{name}" if above else name
        is_section = dotted in SECTIONS or dotted.startswith(f"{FILES}.")
        if isinstance(value, dict) and (is_section or value):
            yield from _flat(value, dotted)
        elif not (isinstance(value, dict) and is_section):
            yield dotted, value


def preset_of_model(path: Path) -> str | None:
    """The preset that a model's own config was written with, None for any other config."""
    found = re.search(rf"(?m)^# {re.escape(WRITTEN_WITH)} (\w+)\.$", _text(path))
    return found and found[1]


def places_of(path: Path) -> dict[str, str]:
    """FILE:LINE of each section and setting of a file that can be read."""
    return {name: f"{path}:{line + 1}" for name, line in _lines_of(_text(path)).items()}


def _lines_of(text: str) -> dict[str, int]:
    """The lines of the sections and settings of a config, from 0, by dotted name."""
    found, section = {}, ""
    for number, line in enumerate(text.split("\n")):
        if header := _HEADER.match(line):
            section = header[1]
            found[section] = number
        elif setting := _SETTING.match(line):
            found[f"{section}.{setting[1]}"] = number
    return found


def value_text(value: Any) -> str:
    """A value as it stands in a config."""
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    if isinstance(value, tuple):
        value = [str(item) if isinstance(item, Path) else item for item in value]
    # $ begins what stands for another setting's value; as an escape it is a plain character.
    return json.dumps(value, ensure_ascii=False).replace("$", "\\u0024")
