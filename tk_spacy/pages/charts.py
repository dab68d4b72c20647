"""Charts as SVG in a page: text as text, colours of the page, the same bytes for the same numbers.

matplotlib draws them, which is optional: its SVG is a few kilobytes a chart and needs no script,
where plotly and Vega would bring megabytes of JavaScript into every page.  Each line has a marker
of its own beside its colour.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tk_spacy.errors import OptionError
from tk_spacy.pages.content import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = (
    "needs matplotlib for its charts, which is not installed; install it with "
    "`pip install 'tk-spacy[report]'`"
)
WIDTH, HEIGHT = 5.0, 3.6
"""Inches of 72 points, which a page takes for its pixels: a telephone shows them at their size."""
MOST_SERIES = 6
"""Lines that a chart has colours and markers for."""
LONGEST_NAME = 40

_TEXT, _GRID = "#000001", "#000002"
_SERIES = tuple(f"#0000{number}" for number in range(10, 10 + MOST_SERIES))
_COLOURS = {_TEXT: "currentColor", _GRID: "var(--line)"} | {
    colour: f"var(--series-{i})" for i, colour in enumerate(_SERIES)
}
_MARKERS = "osD^vX"
_STYLES = ("-", "--", "-.", ":", "-", "--")
_RC: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tk-spacy",
    "font.size": 11,
    "font.family": "sans-serif",
    "text.color": _TEXT,
    "axes.edgecolor": _TEXT,
    "axes.labelcolor": _TEXT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _GRID,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "legend.frameon": False,
    "text.parse_math": False,
    "path.simplify": False,
}

Points = Sequence[tuple[float, float]]


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401, PLC0415  (optional)
    except ImportError:
        return False
    return True


def check_charts() -> None:
    """Raises OptionError, naming the cure, where no chart can be drawn."""
    if not can_draw():
        raise OptionError(f"the page {MISSING}, or leave the page out")


def lines_chart(
    name: str,
    title: str,
    series: Mapping[str, Points],
    *,
    x: str,
    y: str,
    ticks: Sequence[str] = (),
    diagonal: bool = False,
) -> Chart:
    """Lines with markers.

    name: unique in a page.  series: points of each line, MOST_SERIES of them at most are drawn.
    x, y: what the axes are.  ticks: names of the places 0, 1, ... on the x axis.  diagonal: show
    where both axes are equal, from 0 to 100.
    """

    def draw(axes: Axes) -> None:
        if diagonal:
            axes.plot([0, 100], [0, 100], color=_TEXT, linewidth=1, linestyle=":")
        for i, points in enumerate(_drawn(series).values()):
            axes.plot(
                [point[0] for point in points], [point[1] for point in points],
                color=_SERIES[i], marker=_MARKERS[i], linestyle=_STYLES[i], markersize=5,
                label=_label(list(series)[i]),
            )  # fmt: skip
        if ticks:
            axes.set_xticks(range(len(ticks)), ticks)
        elif all(point[0] == int(point[0]) for points in series.values() for point in points):
            axes.locator_params(axis="x", integer=True)  # there is no epoch 1.5
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    return _chart(name, title, _said(series, x, y, ticks), draw, len(series), HEIGHT)


def dots_chart(
    name: str, title: str, series: Mapping[str, Sequence[float]], rows: Sequence[str], *, x: str
) -> Chart:
    """One row a name, in which each series has a marker.

    name: unique in a page.  series: a number for each of the rows, which are shown from the top.
    """

    def draw(axes: Axes) -> None:
        places = list(range(len(rows)))
        for i, values in enumerate(_drawn(series).values()):
            axes.plot(
                values, places, color=_SERIES[i], marker=_MARKERS[i], linestyle="none",
                markersize=6, fillstyle="none" if i % 2 else "full", label=_label(list(series)[i]),
            )  # fmt: skip
        axes.set_yticks(places, rows)
        axes.invert_yaxis()
        axes.set_xlabel(x)

    points = {of: list(enumerate(values)) for of, values in series.items()}
    height = 1.2 + 0.26 * len(rows)
    return _chart(name, title, _said(points, "row", x, rows), draw, len(series), height)


def _drawn(series: Mapping[str, Any]) -> dict[str, Any]:
    return dict(list(series.items())[:MOST_SERIES])


def _label(name: str) -> str:
    # A label that starts with an underscore would be left out of the legend.
    # Paths differ at their ends.
    shown = name if len(name) <= LONGEST_NAME else f"...{name[3 - LONGEST_NAME :]}"
    return f" {shown}" if shown.startswith("_") else shown


def _said(series: Mapping[str, Points], x: str, y: str, ticks: Sequence[str]) -> str:
    """A chart in words, for who does not see it: the ends of each line."""
    parts = []
    for name, points in series.items():
        if points:
            ends = [points[0], points[-1]]
            told = [f"{b:.4g} at {ticks[int(a)] if ticks else f'{a:.4g}'}" for a, b in ends]
            parts.append(f"{name}: {' to '.join(told)}")
    return f"{y} by {x}. " + "; ".join(parts) + "."


def _chart(name: str, title: str, description: str, draw: Any, lines: int, height: float) -> Chart:
    from matplotlib import rc_context  # noqa: PLC0415  (optional)
    from matplotlib.figure import Figure  # noqa: PLC0415

    with rc_context(_RC), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters whose width it cannot measure
        figure: Figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        if lines > 1:
            figure.legend(loc="outside upper left", ncols=1)
        picture = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(picture, format="svg", transparent=True, metadata=nothing)
    return Chart(title, description, Markup(_in_page(picture.getvalue(), name, title, description)))


def _in_page(svg: str, name: str, title: str, description: str) -> str:
    """A picture as a part of a page, with its colours and letters, and told in words."""
    svg = svg[svg.index("<svg") :]
    # Its style sheet would be the whole page's; style.css says the same of charts.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>\s*", "", svg, flags=re.S)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    svg = re.sub(
        r' id="([^"]+)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", svg
    )
    svg = re.sub(r'(url\(|href=")#', rf"\1#{name}-", svg)
    for colour, of_page in _COLOURS.items():
        svg = svg.replace(colour, of_page)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)  # of some versions
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    head, rest = svg.split(">", 1)
    head = re.sub(r' (?:width|height|version)="[^"]*"', "", head)
    return (
        f'{head} role="img" aria-labelledby="{name}-title {name}-desc">\n'
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(description)}</desc>{rest}'
    )
