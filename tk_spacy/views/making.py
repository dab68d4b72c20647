"""Views by their names, as a user asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tk_spacy.views.protocol import BIAFFINE, FILE, SAMPLING, SPACY, UDPIPE, View
from tk_spacy.views.specs import parse_specs


def make_views(
    names: Sequence[str],
    *,
    seed: int = 0,
    sampling: Mapping[str, Any] | None = None,
    biaffine: Mapping[str, Any] | None = None,
    udpipe: Mapping[str, Any] | None = None,
    files: Mapping[str, Mapping[str, tuple[Path, Path]]] | None = None,
    upstream: str | None = None,
    config: Path | None = None,
    max_steps: int | None = None,
    backward: bool = True,
    search: str = "discrepancy",
    xpos: bool = True,
) -> tuple[View, ...]:
    """The views of those names (see `specs`), in order; the first is the main one.

    sampling, biaffine, udpipe: settings of all these parsers that are not at their defaults.
    files: of each file view its files, by part (see `FileView.read`).  The rest is of the spaCy
    view: upstream is a pipeline to take instead of training one.
    xpos: whether the parsers may read the XPOS column.
    Raises UserError where a setting makes no sense.
    """
    views: list[View] = []
    for spec in parse_specs(names):
        if spec.kind == SAMPLING:
            from tk_spacy.views.sampling_view import SamplingView  # noqa: PLC0415

            settings = {"seed": seed, **(sampling or {}), **spec.changes}
            views.append(SamplingView.from_settings(settings, name=spec.name))
            continue
        if spec.kind == BIAFFINE:
            from tk_spacy.views.biaffine_view import BiaffineView  # noqa: PLC0415

            settings = {"seed": seed, "xpos": xpos, **(biaffine or {}), **spec.changes}
            views.append(BiaffineView.from_settings(settings, name=spec.name))
            continue
        if spec.kind == FILE:
            from tk_spacy.views.file_view import FileView  # noqa: PLC0415

            views.append(FileView.read(spec.file, (files or {}).get(spec.file, {})))
            continue
        if spec.kind == UDPIPE:
            from tk_spacy.views.udpipe_view import UdpipeView  # noqa: PLC0415

            views.append(UdpipeView.from_settings({"seed": seed, **(udpipe or {})}))
            continue
        assert spec.kind == SPACY
        from tk_spacy.views.spacy_view import (  # noqa: PLC0415  (imports spaCy)
            GivenSpacyView,
            SpacyView,
        )

        if upstream is not None:
            views.append(GivenSpacyView.from_pipeline(upstream, search=search))  # type: ignore[arg-type]
        else:
            views.append(
                SpacyView.from_config(
                    config,
                    max_steps=max_steps,
                    seed=seed,
                    xpos=xpos,
                    backward=backward,
                    search=search,
                )
            )
    return tuple(views)
