"""The versions of what made a page."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from tk_spacy.about import __version__
from tk_spacy.utils.tables import Column, Table

PACKAGES = ("spacy", "numpy", "jinja2", "matplotlib")


def versions_table() -> Table:
    """One row each, of packages that are installed."""
    rows = [("tk-spacy", __version__), ("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:  # matplotlib is optional
            continue
    return Table(
        title="Versions",
        columns=(Column("package", "name", align="left"), Column("version", "value", align="left")),
        rows=tuple(rows),
    )
