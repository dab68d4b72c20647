"""Dependency trees as SVG, drawn by displaCy, with words and arcs that stand out."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from html import escape
from typing import Any

from spacy.displacy.render import DependencyRenderer

DIFFERS = "tk-differs"
"""Class of the words and arcs that stand out; the page says how they look."""

LOOK = {
    "color": "currentColor",
    "bg": "transparent",
    "font": "inherit",
    "distance": 110,
    "word_spacing": 32,
    "offset_x": 60,
    "arrow_spacing": 14,
    "arrow_width": 8,
}


def draw_tree(
    forms: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[int],
    deprels: Sequence[str],
    *,
    differing: Collection[int] = (),
    name: str = "tree",
) -> str:
    """A tree over n words as SVG, its texts escaped, in the colours of what is around it.

    heads: 0..n, 0 for the root, whose relation stands below the word.  differing: words, from 1,
    that stand out with the arcs into them (class DIFFERS).  name: unique in a page.
    """
    renderer = _Renderer(differing)
    if is_right_to_left(forms):
        renderer.direction = "rtl"
    words, arcs = [], []
    for word, (form, tag, head, deprel) in enumerate(
        zip(forms, tags, heads, deprels, strict=True), start=1
    ):
        below = tag if head else f"{tag} {deprel}"
        words.append({"text": form, "tag": escape(below)})
        if head:
            start, end = sorted((word - 1, head - 1))
            side = "left" if word < head else "right"
            arcs.append({"start": start, "end": end, "label": escape(deprel), "dir": side})
    svg: str = renderer.render_svg(escape(name), words, arcs)
    return svg


def is_right_to_left(forms: Sequence[str]) -> bool:
    """Whether most letters of a sentence are written from right to left."""
    kinds = [unicodedata.bidirectional(letter) for form in forms for letter in form]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")


class _Renderer(DependencyRenderer):
    def __init__(self, differing: Collection[int]) -> None:
        super().__init__(LOOK)
        self._differing = frozenset(differing)

    def render_word(self, text: str, tag: str, lemma: Any, i: int) -> str:
        svg: str = super().render_word(text, tag, lemma, i)
        return self._marked(svg, i, "displacy-token")

    def render_arrow(self, label: str, start: int, end: int, direction: str, i: int) -> str:
        svg: str = super().render_arrow(label, start, end, direction, i)
        return self._marked(svg, start if direction == "left" else end, "displacy-arrow")

    def _marked(self, svg: str, i: int, kind: str) -> str:
        if i + 1 not in self._differing:
            return svg
        return svg.replace(f'class="{kind}"', f'class="{kind} {DIFFERS}"', 1)
