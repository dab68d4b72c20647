"""Views by their names, as a user asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.views.protocol import BIAFFINE, SAMPLING, SPACY, VIEW_NAMES, View


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of views; raises UserError where there is none, an unknown one, or one twice."""
    for name in names:
        if name not in VIEW_NAMES:
            raise UserError(f"unknown view {name!r}; choose from {', '.join(VIEW_NAMES)}")
    if not names or len(set(names)) < len(names):
        raise UserError(
            f"views are {','.join(names) or 'none'}; name one or more different ones of "
            f"{', '.join(VIEW_NAMES)}"
        )
    return tuple(names)


def make_views(
    names: Sequence[str],
    *,
    seed: int = 0,
    sampling: Mapping[str, Any] | None = None,
    biaffine: Mapping[str, Any] | None = None,
    upstream: str | None = None,
    config: Path | None = None,
    max_steps: int | None = None,
    backward: bool = True,
    search: str = "discrepancy",
) -> tuple[View, ...]:
    """The views of those names, in order; the first is the main one.

    sampling, biaffine: settings of these parsers that are not at their defaults.  The rest is of
    the spaCy view: upstream is a pipeline to take instead of training one.
    Raises UserError where a setting makes no sense.
    """
    views: list[View] = []
    for name in check_names(names):
        if name == SAMPLING:
            from tk_spacy.views.sampling_view import SamplingView  # noqa: PLC0415

            views.append(SamplingView.from_settings({"seed": seed, **(sampling or {})}))
            continue
        if name == BIAFFINE:
            from tk_spacy.views.biaffine_view import BiaffineView  # noqa: PLC0415

            views.append(BiaffineView.from_settings({"seed": seed, **(biaffine or {})}))
            continue
        assert name == SPACY
        from tk_spacy.views.spacy_view import (  # noqa: PLC0415  (imports spaCy)
            GivenSpacyView,
            SpacyView,
        )

        if upstream is not None:
            views.append(GivenSpacyView.from_pipeline(upstream, search=search))  # type: ignore[arg-type]
        else:
            views.append(
                SpacyView.from_config(
                    config, max_steps=max_steps, seed=seed, backward=backward, search=search
                )
            )
    return tuple(views)
