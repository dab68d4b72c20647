"""A training's options as the text of a config, with a comment above each setting."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from tk_spacy.about import __version__
from tk_spacy.parsers.specs import kinds
from tk_spacy.workflows.train.config import values_of
from tk_spacy.workflows.train.config_file import WRITTEN_WITH, value_text
from tk_spacy.workflows.train.config_schema import (
    FILES,
    OF_KINDS,
    OF_SECTIONS,
    SECTIONS,
    SETTINGS,
)
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.presets import GOVERNED

TRAINING_CFG = "training.cfg"
"""The config of its training, in a model's directory."""

UNTOLD = ("paths.output", "paths.workdir", "machine.threads", "machine.processes")
"""What a model's own config leaves open: no result depends on it."""

WIDTH = 98

HEAD = """\
Settings of `tk-spacy train` (tk-spacy {version}), which reads them with --config.
Values are JSON: text in quotes, lists in brackets, true, false, null; inf for no bound.  \
${{section.name}} stands for another setting's value.  Relative paths start where the command is \
run.  A setting that is left out has its default."""


OF_PRESET = """
Settings behind a # are the preset's to say, and stand as --preset standard has them: take the # \
away to settle one whatever the preset."""


OF_MODEL = """
All settings are written out, so that another preset in this file changes none of them; --preset \
beside it does.
{written_with} {preset}."""


def default_config() -> str:
    """A config with all settings at their defaults; those that presets differ in are comments."""
    values = {name: setting.default for name, setting in SETTINGS.items()}
    return config_text(values, {}, of_preset=GOVERNED, more=OF_PRESET)


def training_config(options: TrainOptions) -> str:
    """The config that trains the same model again, wherever it is written.

    Sections of kinds of parsers that the model has not are left out: their defaults may change.
    """
    values, files = values_of(options)
    others = {f"parsers.{kind}" for kind in OF_KINDS.keys() - kinds(options.parsers)}
    more = OF_MODEL.format(written_with=WRITTEN_WITH, preset=options.preset)
    return config_text({**values, **dict.fromkeys(UNTOLD)}, files, left_out=others, more=more)


def config_text(
    values: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Path]],
    *,
    left_out: Collection[str] = (),
    of_preset: Collection[str] = (),
    more: str = "",
) -> str:
    """A config with these values by dotted name, and the files of the file parsers.

    left_out: names of sections.  of_preset: settings that are left to the preset, as comments.
    more: what is told at the top.
    """
    head = HEAD.format(version=__version__) + more
    blocks = ["\n".join(_comment(line) for line in head.split("\n"))]
    for section, settings in SECTIONS.items():
        if section in left_out:
            continue
        blocks.append(f"{_comment(OF_SECTIONS[section])}\n[{section}]")
        # Settings that share a comment stand below it together.
        named = [(f"{section}.{name}", name) for name in settings]
        for about, group in groupby(named, key=lambda both: SETTINGS[both[0]].about):
            lines = [
                f"{'# ' * (dotted in of_preset)}{name} = {value_text(values[dotted])}"
                for dotted, name in group
            ]
            blocks.append("\n".join([_comment(about), *lines]))
        if section == FILES:
            for source, parts in files.items():
                lines = [f"{part} = {value_text(path)}" for part, path in parts.items()]
                blocks.append("\n".join([f"[{FILES}.{source}]", *lines]))
    return "\n\n".join(blocks) + "\n"


def _comment(text: str) -> str:
    prefix = "# "
    return textwrap.fill(
        text if text.endswith((".", ":")) else f"{text}.",
        WIDTH,
        initial_indent=prefix,
        subsequent_indent=prefix,
        break_long_words=False,
        break_on_hyphens=False,
    )
