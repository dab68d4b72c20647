"""Options of `tk-spacy train` that are settings of its config now: they keep working, unseen.

One table has them all: what they were called, the setting that each is, and what it takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.training import parser_files
from tk_spacy.errors import OptionError
from tk_spacy.kbest.candidates import MAX_K
from tk_spacy.parsers.names import EARLIER_PARSERS, SAMPLING, SPACY
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.workflows.train.config_file import load_value, value_text
from tk_spacy.workflows.train.config_schema import SETTINGS


@dataclass(frozen=True, slots=True)
class OldOption:
    """An option by its flags, the dotted name of its setting, and the type and bounds it has."""

    flags: tuple[str, ...]
    setting: str
    type: Any = str
    least: float | None = None
    most: float | None = None

    @property
    def name(self) -> str:
        """Of the parameter."""
        return "old_" + self.flags[-1].split("/")[0].lstrip("-").replace("-", "_")

    def parameter(self) -> inspect.Parameter:
        """As typer takes it: hidden, and None where it is not given."""
        option = typer.Option(*self.flags, hidden=True, min=self.least, max=self.most)
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[self.type | None, option],
        )


VIEWS, VIEW_FILES, UDPIPE, UPSTREAM = "views", "view files", "udpipe", "upstream"
"""Options that stand for several settings, or take a text of their own."""

OLD_OPTIONS = (
    OldOption(("--workdir",), "paths.workdir", Path),
    OldOption(("--name",), "model.name"),
    OldOption(("--views",), VIEWS),
    OldOption(("--epochs",), "parsers.sampling.epochs", int, 1),
    OldOption(("--order",), "parsers.sampling.order", int, 1, 3),
    OldOption(("--restarts",), "parsers.sampling.restarts", int, 1),
    OldOption(("--extra",), "parsers.sampling.extra"),
    OldOption(("--parser-kernel-scale",), "parsers.sampling.kernel_scale", float),
    OldOption(("--udpipe",), UDPIPE),
    OldOption(("--parser-file", "--view-file"), VIEW_FILES, list[str]),
    OldOption(("--biaffine-epochs",), "parsers.biaffine.epochs", int, 1),
    OldOption(("--upstream",), UPSTREAM),
    OldOption(("--backward/--no-backward",), "parsers.spacy.backward", bool),
    OldOption(("--max-steps",), "parsers.spacy.max_steps", int, 1),
    OldOption(("--search",), "parsers.spacy.search"),
    OldOption(("--k",), "lists.k", int, 2, MAX_K),
    OldOption(("--candidates",), "lists.train", Path),
    OldOption(("--dev-candidates",), "lists.dev", Path),
    OldOption(("--test-candidates",), "lists.test", Path),
    OldOption(("--kernel-parts",), "reranker.kernel_parts"),
    OldOption(("--manual-parts",), "reranker.manual_parts"),
    OldOption(("--list-features",), "reranker.list_features"),
    OldOption(("--list-scale",), "reranker.list_scale", float),
    OldOption(("--iterations",), "reranker.iterations", int, 1),
    OldOption(("-C", "--aggressiveness"), "reranker.C", float),
    OldOption(("--loss",), "reranker.loss"),
    OldOption(("--competitor",), "reranker.competitor"),
    OldOption(("--skip",), "reranker.skip"),
    OldOption(("--kernel-scale",), "reranker.kernel_scale", float),
    OldOption(("--bits",), "reranker.bits", int, 8, 30),
    OldOption(("--budget",), "reranker.budget", int, 1),
    OldOption(("--lemma/--no-lemma",), "reranker.use_lemma", bool),
    OldOption(("--combiner/--no-combiner",), "reranker.combiner", bool),
    OldOption(("--properties",), "reranker.properties"),
    OldOption(("--shuffle-seed",), "reranker.shuffle_seed", int, 0),
    OldOption(("--add-gold/--no-add-gold",), "reranker.add_gold", bool),
    OldOption(("--processes",), "machine.processes", int, 1),
    OldOption(("--paper-grid",), "training.paper_grid", bool),
    OldOption(("--tuning-folds",), "training.tuning_folds", int, 0),
)


def with_old_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the old options, which it gets as `old`: setting by setting."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "old"]
    added = [option.parameter() for option in OLD_OPTIONS]

    @wraps(command)
    def wrapped(**values: Any) -> None:
        old = {option: values.pop(option.name) for option in OLD_OPTIONS}
        command(**values, old={option: value for option, value in old.items() if value is not None})

    shown = signature.replace(parameters=[*own, *added])
    wrapped.__signature__ = shown  # type: ignore[attr-defined]  # what typer looks at
    wrapped.__annotations__ = {name: p.annotation for name, p in shown.parameters.items()}
    return wrapped


def changes_of(
    old: Mapping[OldOption, Any], *, parsers: str | None
) -> tuple[dict[str, Any], list[str]]:
    """The settings that old options stand for, by dotted name, and what to write instead.

    parsers: what --parsers says, None where it is not given.
    Raises UserError for a value that cannot be.
    """
    changes: dict[str, Any] = {}
    instead = []
    for option, value in old.items():
        if option.setting == VIEWS:
            if parsers is not None:
                raise OptionError("--views is the old name of --parsers; give one of them")
            changes["parsers.names"] = value
            instead.append(f"--parsers {value}")
            continue
        found: dict[str, Any] = {option.setting: value}
        if option.setting == UDPIPE:
            settings = UdpipeSettings.from_text(value)
            found = {f"parsers.udpipe.{name}": one for name, one in settings.items()}
        elif option.setting == VIEW_FILES:
            found = {
                f"parsers.files.{name}.{part}": path
                for name, parts in parser_files(value).items()
                for part, path in parts.items()
            }
        elif option.setting == UPSTREAM:
            found = {"parsers.spacy.pipeline": value}
            if parsers is None and not any(other.setting == VIEWS for other in old):
                found["parsers.names"] = (SPACY,)
                instead.append(f"--parsers {SPACY}")
        changes |= found
        instead += [
            f"--set {name}={_shown(one)}" for name, one in found.items() if name != "parsers.names"
        ]
    return changes, instead


def parsers_of(changes: Mapping[str, Any]) -> str | None:
    """The parsers that were the default when old options concerned theirs; None where none does."""
    kinds = {name.split(".")[1] for name in changes if name.startswith("parsers.")}
    return ",".join(EARLIER_PARSERS) if kinds & {SAMPLING, SPACY} else None


def _shown(value: Any) -> str:
    """A value as --set takes it."""
    text = str(value) if isinstance(value, str | Path) else value_text(value)
    return f"'{text}'" if any(c in ' []{}$"' for c in text) else text


def parsed(values: list[str]) -> dict[str, Any]:
    """The changes of --set, by dotted name.  Raises OptionError for what is no NAME=VALUE."""
    changes: dict[str, Any] = {}
    for text in values:
        name, is_pair, value = text.partition("=")
        name = name.strip()
        if not is_pair or not name:
            raise OptionError(f"--set {text}: write section.key=value, as in training.seed=1")
        if name in changes:
            raise OptionError(f"--set {text}: {name} is given twice")
        found = load_value(value.strip())
        is_text = name in SETTINGS and SETTINGS[name].kind in ("text", "path", "paths")
        # A text that looks like a number stays as it is: version 0.10 is not 0.1.
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        changes[name] = value.strip() if is_text and is_number else found
    return changes
