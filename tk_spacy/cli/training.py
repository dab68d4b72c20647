"""What `tk-spacy train` and `demo` share: defaults that depend on others, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from tk_spacy.cli.shell import Shell, split
from tk_spacy.features import FEATURE_TYPES
from tk_spacy.report import TrainReport
from tk_spacy.settings import SUITED, Settings
from tk_spacy.views.protocol import DEFAULT_VIEWS, SPACY


def by_sources(name: str) -> str:
    """The default of a setting that depends on where the lists come from, in words."""

    def text(value: Any) -> str:
        return ",".join(value) if isinstance(value, tuple) else f"{value:g}"

    usual = getattr(Settings(), name)
    usual = "all" if usual == FEATURE_TYPES else text(usual)
    return f"{text(SUITED['sampling',][name])} with the sampling parser alone, else {usual}"


def chosen_views(views: str | None, *, upstream: str | None = None) -> tuple[str, ...]:
    """The views that a user named, or those that are meant without a name."""
    if views is not None:
        return split(views)
    return (SPACY,) if upstream is not None else DEFAULT_VIEWS


def named_options(context: typer.Context) -> frozenset[str]:
    """The names of the options that a user gave, be it their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(
        name for name, source in sources.items() if source is not None and source.name != "DEFAULT"
    )


def sampling_changes(**given: float | None) -> dict[str, float]:
    """The settings of the sampling parser that a user gave."""
    return {name: value for name, value in given.items() if value is not None}


def show_training(
    shell: Shell,
    report: TrainReport,
    output: Path | None,
    *,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """The result of a training, for `train` and `demo`; output is None where it is not kept."""
    document = {"model": output and str(output), **(extra or {}), **report.to_dict()}
    shell.result(report.tables(), document)
    betas = ", ".join(f"{beta:g} * {name}" for name, beta in report.betas.items())
    shell.say(f"\nFinal score = reranker + {betas or 'nothing'} (each score scaled to its spread).")
    if output is not None:
        shell.say(f"Model: {output}")
