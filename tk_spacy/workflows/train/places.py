"""Where a mistake stands: FILE:LINE of the setting of a config that a message is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tk_spacy.errors import OptionError, UserError
from tk_spacy.utils.validation import words_of
from tk_spacy.workflows.train.config_schema import FILES, SETTINGS
from tk_spacy.workflows.train.options import TrainOptions


def blamed(
    text: str, suspects: Collection[str], changes: Collection[str], *, sure: bool
) -> str | None:
    """The setting of a file that a mistake is about: of the suspects the first one that it names.

    changes: settings that the user gave beside the file; a message that begins with one of them is
    about that.  sure: whether it is about a suspect even where it names none.
    """
    if not suspects:
        return None
    best = min(suspects, key=lambda name: _mention(name, text))
    first = _mention(best, text) == 0
    if not first and (not sure or any(_mention(name, text) == 0 for name in changes)):
        return None
    return best


def said_of(name: str, text: str, places: Mapping[str, str]) -> str:
    """A message with the place of its setting, and the setting's dotted name, before it."""
    section = name.rpartition(".")[0]
    text = text.removeprefix(f"{section}: ")
    for called in _called(name):
        if text.startswith(f"{called} "):
            return f"{places[name]}: {name}{text.removeprefix(called)}"
    return f"{places[name]}: {name}: {text}"


@contextmanager
def at_its_place(options: TrainOptions, *names: str) -> Iterator[None]:
    """Have mistakes that are found in the block told with the place of their setting in the file.

    names: the settings that it can be about.  A message that begins with a path is about the
    setting that has it; without names also where that is one of the treebank's, or the output.
    """
    try:
        yield
    except UserError as error:
        text, places = str(error), options.places
        told = any(text.startswith(f"{place}: ") for place in places.values())
        by_path = [
            name
            for name in _with_paths(options)
            if not (names and name.startswith("paths.")) and _begins_with_path(text, options, name)
        ]
        suspects = [name for name in by_path or names or places if name in places]
        if told or not suspects:
            raise  # a path that was given beside the file is not the file's mistake
        rest = text.partition(": ")[2] if by_path else text
        found = blamed(rest, suspects, (), sure=bool(by_path or names))
        if found is None:
            raise
        kind = OptionError if isinstance(error, OptionError) else UserError
        raise kind(said_of(found, text, places)) from error


def _with_paths(options: TrainOptions) -> list[str]:
    """The settings that are paths, or a pipeline's, by dotted name."""
    own = [n for n, s in SETTINGS.items() if s.option == "spacy_pipeline" or "path" in s.kind]
    of_parsers = [
        f"{FILES}.{source}.{part}"
        for source, files in options.parser_files.items()
        for part in files
    ]
    return [*own, *of_parsers, *(name for name in options.places if name.startswith(f"{FILES}."))]


def _called(name: str) -> list[str]:
    """What messages call a setting."""
    last = name.rpartition(".")[2]
    option = SETTINGS[name].option if name in SETTINGS else ""
    return [n for n in (name, name.removeprefix(f"{FILES}."), option, last, words_of(last)) if n]


def _mention(name: str, text: str) -> int:
    """The first place in a message where it names a setting, its length where nowhere."""
    text = text.removeprefix(f"{name.rpartition('.')[0]}: ")
    found = (re.search(rf"(?<![\w./-]){re.escape(n)}(?!\w|\.\w)", text) for n in _called(name))
    return min((match.start() for match in found if match), default=len(text))


def _begins_with_path(text: str, options: TrainOptions, name: str) -> bool:
    """Whether a message begins with the path that a setting is, or one below it.

    A message about a line of a file has its place already.
    """
    values: list[Path | None]
    if name.startswith(f"{FILES}."):
        source, _, part = name.removeprefix(f"{FILES}.").partition(".")
        files = options.parser_files.get(source, {})
        values = [path for key, path in files.items() if part in ("", key)]
    else:
        value = getattr(options, SETTINGS[name].option)
        values = list(value) if isinstance(value, tuple) else [value]
    paths = [re.escape(str(path)) for path in values if path is not None]
    return any(re.match(rf"{path}(/[^:]*)?: ", text) for path in paths)
