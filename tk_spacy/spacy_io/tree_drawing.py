"""Dependency trees as SVG, drawn by displaCy, with words and arcs that stand out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

from spacy.displacy.render import DependencyRenderer

DIFFERS, RIGHT, WRONG = "tk-differs", "tk-right", "tk-wrong"
"""Classes of the words and arcs that stand out; the page says how they look."""
MARKS = {RIGHT: "\u2713", WRONG: "\u2717"}
"""Signs before the relations of such arcs: a check mark and a cross, for who sees no colours."""

LOOK = {
    "color": "currentColor",
    "bg": "transparent",
    "font": "inherit",
    "word_spacing": 32,
    "offset_x": 60,
    "arrow_spacing": 14,
    "arrow_width": 8,
}
LETTER = 9
"""Pixels that a letter takes, about."""
NARROWEST, WIDEST = 75, 160
"""Pixels between words, by the longest one."""


def draw_tree(
    forms: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[int],
    deprels: Sequence[str],
    *,
    differing: Collection[int] = (),
    right: Collection[int] = (),
    wrong: Collection[int] = (),
    name: str = "tree",
) -> str:
    """A tree over n words as SVG, its texts escaped, in the colours of what is around it.

    heads: 0..n, 0 for the root, whose relation stands below the word; -1 for none.  differing:
    words, from 1, that stand out with the arcs into them (class DIFFERS).  right, wrong: those of
    them whose arcs have a sign too, and the class RIGHT or WRONG.  name: unique in a page.
    """
    kinds = dict.fromkeys(differing, DIFFERS)
    signs: dict[int, str] = {}
    for marked, kind in ((right, RIGHT), (wrong, WRONG)):
        kinds |= dict.fromkeys(marked, f"{DIFFERS} {kind}")
        signs |= dict.fromkeys(marked, f"{MARKS[kind]} ")
    longest = max(map(len, forms), default=0)
    renderer = _Renderer(kinds, distance=min(WIDEST, max(NARROWEST, LETTER * (longest + 2))))
    if is_right_to_left(forms):
        renderer.direction = "rtl"
    words, arcs = [], []
    for word, (form, tag, head, deprel) in enumerate(
        zip(forms, tags, heads, deprels, strict=True), start=1
    ):
        sign = signs.get(word, "")
        below = tag if head else f"{tag} {sign}{deprel}"
        words.append({"text": form, "tag": escape(below)})
        if head > 0:
            start, end = sorted((word - 1, head - 1))
            side = "left" if word < head else "right"
            arcs.append({"start": start, "end": end, "label": sign + escape(deprel), "dir": side})
    svg: str = renderer.render_svg(escape(name), words, arcs)
    return svg


def is_right_to_left(forms: Sequence[str]) -> bool:
    """Whether most letters of a sentence are written from right to left."""
    kinds = [unicodedata.bidirectional(letter) for form in forms for letter in form]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")


_LABEL = re.compile(r"<text\b.*?</text>", re.S)


class _Renderer(DependencyRenderer):
    def __init__(self, kinds: Mapping[int, str], *, distance: int) -> None:
        super().__init__({**LOOK, "distance": distance})
        self._kinds, self._top = kinds, (0.0, 0.0)

    def get_levels(self, arcs: list[dict[str, Any]]) -> dict[tuple[int, int, str], int]:
        """How high each arc is, short ones first; by start, end and label.

        displaCy's own order of equally long arcs is that of a set of texts: another one each time.
        """
        keys = sorted({(arc["start"], arc["end"], arc["label"]) for arc in arcs})
        heights = [0] * max((end for _, end, _ in keys), default=0)
        levels = {}
        for start, end, label in sorted(keys, key=lambda key: key[1] - key[0]):
            levels[start, end, label] = level = max(heights[start:end]) + 1
            heights[start:end] = [level] * (end - start)
        return levels

    def render_word(self, text: str, tag: str, lemma: Any, i: int) -> str:
        svg: str = super().render_word(text, tag, lemma, i)
        return self._marked(svg, i, "displacy-token")

    def render_arrow(self, label: str, start: int, end: int, direction: str, i: int) -> str:
        svg: str = super().render_arrow(label, start, end, direction, i)
        x, y = self._top
        text = (
            f'<text class="displacy-label" x="{x:g}" y="{y:g}" fill="currentColor" '
            f'text-anchor="middle" style="font-size: 0.8em">{label}</text>'
        )
        svg = _LABEL.sub(lambda _: text, svg, count=1)
        return self._marked(svg, start if direction == "left" else end, "displacy-arrow")

    def get_arc(self, x_start: int, y: int, y_curve: int, x_end: int) -> str:
        # Labels stand upright above their arcs: along them, as displaCy has them, they are hard to
        # read, and upside down where words run from right to left.
        self._top = (x_start + x_end) / 2, y - 0.75 * (y - y_curve) - 4
        arc: str = super().get_arc(x_start, y, y_curve, x_end)
        return arc

    def _marked(self, svg: str, i: int, kind: str) -> str:
        if i + 1 not in self._kinds:
            return svg
        return svg.replace(f'class="{kind}"', f'class="{kind} {self._kinds[i + 1]}"', 1)
