"""Where plots are written, and how; matplotlib draws them, which is optional."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from tk_spacy.errors import OptionError
from tk_spacy.utils.atomic_files import atomic_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".png", ".svg")


def check_plot(path: Path) -> None:
    """Raises OptionError where a plot cannot be drawn there: to be known before a long run."""
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise OptionError(f"{path}: a plot: expected a name ending in {' or '.join(PLOT_SUFFIXES)}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise OptionError(f"{path}: no file can be written there; make its directory first")
    try:
        import matplotlib.figure  # noqa: F401, PLC0415  (optional)
    except ImportError:
        raise OptionError(
            "a plot needs matplotlib, which is not installed; install it with "
            "`pip install 'tk-spacy[plot]'`, or leave the plot out"
        ) from None


def save_figure(path: Path, figure: Figure) -> None:
    """Write a figure, in the format that the file's name says."""
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:].lower(), dpi=150)
    with atomic_output(path) as file:
        file.write(picture.getvalue())
