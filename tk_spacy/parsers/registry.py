"""Views by their names, as a user asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parsers.base import View
from tk_spacy.parsers.names import BIAFFINE, FILE, SAMPLING, SPACY, UDPIPE
from tk_spacy.parsers.specs import ViewSpec, parse_specs


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
            from tk_spacy.parsers.sampling.spec import SamplingView  # noqa: PLC0415

            settings = {"seed": seed, **(sampling or {}), **spec.changes}
            with _of_view(spec):
                views.append(SamplingView.from_settings(settings, name=spec.name))
            continue
        if spec.kind == BIAFFINE:
            from tk_spacy.parsers.biaffine.spec import BiaffineView  # noqa: PLC0415

            settings = {"seed": seed, "xpos": xpos, **(biaffine or {}), **spec.changes}
            with _of_view(spec):
                views.append(BiaffineView.from_settings(settings, name=spec.name))
            continue
        if spec.kind == FILE:
            from tk_spacy.parsers.external import FileView  # noqa: PLC0415

            views.append(FileView.read(spec.file, (files or {}).get(spec.file, {})))
            continue
        if spec.kind == UDPIPE:
            from tk_spacy.parsers.udpipe.spec import UdpipeView  # noqa: PLC0415

            views.append(UdpipeView.from_settings({"seed": seed, **(udpipe or {})}))
            continue
        assert spec.kind == SPACY
        from tk_spacy.parsers.spacy_transition.spec import (  # noqa: PLC0415  (imports spaCy)
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
    _check_different(views)
    return tuple(views)


@contextmanager
def _of_view(spec: ViewSpec) -> Iterator[None]:
    """Mistakes in the settings of a view of its own name it."""
    if "extra" in spec.changes:
        raise UserError(
            f"view {spec.text!r}: extra cannot be one view's alone; leave it out, and give the "
            "names to all sampling parsers (--extra)"
        )
    try:
        yield
    except UserError as error:
        raise UserError(f"view {spec.text!r}: {error}" if spec.changes else str(error)) from error


def _check_different(views: Sequence[View]) -> None:
    """Raises UserError for parsers of one kind that are the same but for their names."""
    known: list[tuple[object, str]] = []
    for view in views:
        settings = getattr(view, "settings", None)
        if settings is None:
            continue
        for other, name in known:
            if type(other) is type(settings) and other == settings:
                raise UserError(
                    f"the views {name} and {view.name} have the same settings and would be the "
                    "same parser; leave one out, or give it another seed"
                )
        known.append((settings, view.name))
