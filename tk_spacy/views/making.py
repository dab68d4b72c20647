"""Views by their names, as a user asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.views.protocol import FILE_PREFIX, SAMPLING, SPACY, UDPIPE, VIEW_NAMES, View


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of views; raises UserError where there is none, an unknown one, or one twice."""
    for name in names:
        if name not in VIEW_NAMES and not name.startswith(FILE_PREFIX):
            raise UserError(
                f"unknown view {name!r}; choose from {', '.join(VIEW_NAMES)}, {FILE_PREFIX}NAME"
            )
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
    udpipe: Mapping[str, Any] | None = None,
    files: Mapping[str, Mapping[str, tuple[Path, Path]]] | None = None,
    upstream: str | None = None,
    config: Path | None = None,
    max_steps: int | None = None,
    backward: bool = True,
    search: str = "discrepancy",
) -> tuple[View, ...]:
    """The views of those names, in order; the first is the main one.

    sampling, udpipe: settings of these parsers that are not at their defaults.
    files: of each file view its files, by part (see `FileView.read`).  The rest is of the spaCy
    view: upstream is a pipeline to take instead of training one.
    Raises UserError where a setting makes no sense.
    """
    views: list[View] = []
    for name in check_names(names):
        if name == SAMPLING:
            from tk_spacy.views.sampling_view import SamplingView  # noqa: PLC0415

            views.append(SamplingView.from_settings({"seed": seed, **(sampling or {})}))
            continue
        if name.startswith(FILE_PREFIX):
            from tk_spacy.views.file_view import FileView  # noqa: PLC0415

            source = name.removeprefix(FILE_PREFIX)
            views.append(FileView.read(source, (files or {}).get(source, {})))
            continue
        if name == UDPIPE:
            from tk_spacy.views.udpipe_view import UdpipeView  # noqa: PLC0415

            views.append(UdpipeView.from_settings({"seed": seed, **(udpipe or {})}))
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
