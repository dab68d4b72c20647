"""Dependency trees as SVG, drawn by displaCy, whole or cut out, with words and arcs that stand out.

displaCy gives every word the width of the longest one, and has arcs grow higher with it; here each
word has its own, so that a screen shows more of a tree.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from html import escape
from itertools import accumulate, pairwise
from typing import Any

from spacy.displacy.render import DependencyRenderer
from spacy.displacy.templates import TPL_DEP_SVG

DIFFERS, RIGHT, WRONG, DOUBTED = "tk-differs", "tk-right", "tk-wrong", "tk-doubted"
"""Classes of the words and arcs that stand out; the page says how they look."""
MARKS = {RIGHT: "\u2713", WRONG: "\u2717", DOUBTED: "?"}
"""Signs before the relations of such arcs: a check mark, a cross, ..., for who sees no colours."""
ASKED, BESIDE = "tk-asked", "tk-beside"
"""Classes of the boxes around the words that a drawing is about, and those that belong to them."""
OPEN = "tk-open"
"""Class of arcs from words that are left out."""
LEFT_OUT = "\u2026"
SIGN = "\u2717 "
"""For which there is room everywhere."""

LOOK = {
    "color": "currentColor",
    "bg": "transparent",
    "font": "inherit",
    "word_spacing": 32,
    "arrow_width": 8,
}
LETTER, BOLD, LABEL_LETTER = 9, 10.5, 7.5
"""Pixels that a letter takes, about: of words, of bold ones, and of relations."""
NARROWEST, AROUND = 44, 12
"""Pixels of a column at least, and what stands around its word."""
BETWEEN = 4
"""Pixels between boxes."""
LEVEL = 40
"""Pixels that an arc is higher than those below it."""
APART = 10
"""Pixels from the middle of a word to where the arc to its right begins."""
WORD = (
    '\n<text class="displacy-token{kind}" fill="currentColor" text-anchor="middle" y="{y}">'
    '<tspan class="displacy-word" fill="currentColor" x="{x:g}">{text}</tspan>'
    '<tspan class="displacy-tag" dy="2em" fill="currentColor" x="{x:g}">{tag}</tspan></text>'
)
ARROW = """
<g class="{kind}">
    <path class="displacy-arc" stroke-width="{stroke}px" d="{arc}" fill="none" stroke="currentColor"/>
    <text class="displacy-label" x="{x:g}" y="{y:g}" fill="currentColor" text-anchor="middle" style="font-size: 0.8em">{label}</text>
    <path class="displacy-arrowhead" d="{head}" fill="currentColor"/>
</g>
"""  # noqa: E501


Tree = tuple[Sequence[int], Sequence[str]]
"""HEAD and DEPREL of each word."""


def draw_tree(
    forms: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[int],
    deprels: Sequence[str],
    *,
    differing: Collection[int] = (),
    signs: Mapping[int, str] = {},
    asked: Collection[int] = (),
    beside: Collection[int] = (),
    shown: Collection[int] | None = None,
    room_for: Sequence[Tree] = (),
    name: str = "tree",
) -> str:
    """A tree over n words as SVG, its texts escaped, in the colours of what is around it.

    heads: 0..n, 0 for the root, whose relation stands below the word; -1 for none.  differing:
    words, from 1, that stand out with the arcs into them (class DIFFERS).  signs: those of them
    whose arcs have a sign too, and that class, one of MARKS.  asked, beside: words in boxes (ASKED,
    BESIDE).  shown: words that are drawn, each with the arc into it; what lies between them is
    LEFT_OUT, from where arcs of heads left out run (OPEN).  None for all.  room_for: other trees of
    these words, which are drawn with the words in the same places.  name: unique in a page.

    data-from and data-to are the ends, in pixels, of the part with the words that it is about
    (asked and beside, else differing) and their heads.
    """
    columns = _columns(len(forms), shown)
    kinds = dict.fromkeys(differing, f" {DIFFERS}")
    kinds |= {word: f" {DIFFERS} {kind}" for word, kind in signs.items()}
    boxes = dict.fromkeys(beside, BESIDE) | dict.fromkeys(asked, ASKED)
    words = []
    for column in columns:
        if len(column) > 1:
            words.append(_word(LEFT_OUT, f"{len(column)} words", " tk-left-out"))
            continue
        (word,) = column
        tag = tags[word - 1]
        if not heads[word - 1]:
            tag += f" {_label(word, deprels, signs)}"
        words.append(_word(forms[word - 1], tag, kinds.get(word, ""), boxes.get(word, "")))
    arcs = _arcs(columns, heads, deprels, kinds, signs)
    roots = [
        (column[0], f"{tags[column[0] - 1]} {SIGN}{labels[column[0] - 1]}")
        for others, labels in ((heads, deprels), *room_for)
        for column in columns
        if len(column) == 1 and not others[column[0] - 1]
    ]
    renderer = _Renderer(_widths(columns, words, roots))
    for others, labels in ((heads, deprels), *room_for):
        renderer.make_room(_arcs(columns, others, labels, {}, {}))
    if is_right_to_left(forms):
        renderer.direction = "rtl"
    svg = renderer.render_svg(escape(name), words, arcs)
    aims = {*asked, *beside} or set(differing)
    aims |= {others[word - 1] for others, _ in ((heads, deprels), *room_for) for word in aims}
    place = [i for i, column in enumerate(columns) if len(column) == 1 and column[0] in aims]
    start, end = renderer.extent(place[0], place[-1]) if place else (0, 0)
    return svg.replace("<svg", f'<svg data-from="{start}" data-to="{end}"', 1)


def is_right_to_left(forms: Sequence[str]) -> bool:
    """Whether most letters of a sentence are written from right to left."""
    kinds = [unicodedata.bidirectional(letter) for form in forms for letter in form]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")


def _columns(n: int, shown: Collection[int] | None) -> list[range]:
    """What stands beside each other: a word, or several that are left out (one takes no more)."""
    if shown is None:
        return [range(word, word + 1) for word in range(1, n + 1)]
    columns: list[range] = []
    edges = [0, *sorted(shown), n + 1]
    for before, after in pairwise(edges):
        between = range(before + 1, after)
        if between:
            columns.append(between)
        if after <= n:
            columns.append(range(after, after + 1))
    return columns


def _label(word: int, deprels: Sequence[str], signs: Mapping[int, str]) -> str:
    sign = f"{MARKS[signs[word]]} " if word in signs else ""
    return sign + deprels[word - 1]


def _arcs(
    columns: Sequence[range],
    heads: Sequence[int],
    deprels: Sequence[str],
    kinds: Mapping[int, str],
    signs: Mapping[int, str],
) -> list[dict[str, Any]]:
    """The arcs into the words that are shown."""
    place = {word: i for i, column in enumerate(columns) for word in column}
    arcs = []
    for column in columns:
        word, head = column[0], heads[column[0] - 1]
        if len(column) > 1 or head <= 0:
            continue
        start, end = sorted((place[word], place[head]))
        kind = kinds.get(word, "") + (f" {OPEN}" if len(columns[place[head]]) > 1 else "")
        side = "left" if word < head else "right"
        label = _label(word, deprels, signs)
        arcs.append({"start": start, "end": end, "label": label, "dir": side, "kind": kind})
    return arcs


def _widths(
    columns: Sequence[range],
    words: Sequence[Mapping[str, Any]],
    roots: Sequence[tuple[int, str]],
) -> list[float]:
    """Of each column in pixels.  roots: words, and what stands below them in one of the trees."""
    below: dict[int, int] = {}
    for number, tag in roots:
        below[number] = max(below.get(number, 0), _letters(tag))
    found: list[float] = []
    for column, word in zip(columns, words, strict=True):
        letters = max(_letters(word["text"]), _letters(word["tag"]), below.get(column[0], 0))
        bold = word["box"] or DIFFERS in word["kind"]
        wide = max(NARROWEST, (BOLD if bold else LETTER) * letters + AROUND)
        if word["box"]:
            wide = max(wide, BOLD * _letters(word["text"]) + AROUND + BETWEEN)
        found.append(wide)
    return found


def _word(text: str, tag: str, kind: str, box: str = "") -> dict[str, Any]:
    return {"text": text, "tag": tag, "kind": kind, "box": box}


def _letters(text: str) -> int:
    """The letters of a text, those of Chinese and the like twice."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


class _Renderer(DependencyRenderer):
    """Words where there is room for them, and for the relations between neighbours.

    widths: of the words.
    """

    def __init__(self, widths: Sequence[float]) -> None:
        super().__init__(LOOK)
        self._widths = widths
        self._steps = [(a + b) / 2 for a, b in pairwise(widths)]

    def make_room(self, arcs: Sequence[Mapping[str, Any]]) -> None:
        """Room for the relations of arcs, and a sign before each."""
        for arc in arcs:
            if arc["end"] - arc["start"] == 1:
                room = LABEL_LETTER * _letters(SIGN + arc["label"]) + APART
                self._steps[arc["start"]] = max(self._steps[arc["start"]], room)

    def extent(self, first: int, last: int) -> tuple[int, int]:
        """Where two columns and those between them begin and end, once they are drawn."""
        start = self._middles[first] - self._widths[first] / 2
        end = self._middles[last] + self._widths[last] / 2
        return round(min(self._x(start), self._x(end))), round(max(self._x(start), self._x(end)))

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

    def render_svg(
        self, render_id: int | str, words: list[dict[str, Any]], arcs: list[dict[str, Any]]
    ) -> str:
        first, last = (self._widths[0] / 2, self._widths[-1] / 2) if words else (0, 0)
        self._middles = list(accumulate(self._steps, initial=first))
        self._wide = self._middles[-1] + last
        self.levels = self.get_levels(arcs)
        self.highest_level = max(self.levels.values(), default=0)
        # Arcs are curves of which three quarters of the height are reached; labels stand above.
        self.offset_y = round(LEVEL * 0.75 * self.highest_level) + 24
        content = [self._drawn_word(word, i) for i, word in enumerate(words)]
        content += [self._drawn_arc(arc) for arc in arcs]
        svg: str = TPL_DEP_SVG.format(
            id=render_id,
            width=round(self._wide),
            height=self.offset_y + 3 * self.word_spacing,
            color=self.color, bg=self.bg, font=self.font,
            content="".join(content),
            dir=self.direction, lang=self.lang,
        )  # fmt: skip
        return svg

    def _x(self, x: float) -> float:
        return self._wide - x if self.direction == "rtl" else x

    def _drawn_word(self, word: Mapping[str, Any], i: int) -> str:
        x, y = self._x(self._middles[i]), self.offset_y + self.word_spacing
        text = WORD.format(
            kind=word["kind"], text=escape(word["text"]), tag=escape(word["tag"]), x=x, y=y
        )
        if not word["box"]:
            return text
        wide = BOLD * _letters(word["text"]) + AROUND
        return (
            f'\n<rect class="{word["box"]}" x="{x - wide / 2:g}" y="{y - 18}" width="{wide:g}" '
            f'height="26" rx="4"/>{text}'
        )

    def _drawn_arc(self, arc: Mapping[str, Any]) -> str:
        level = self.levels[arc["start"], arc["end"], arc["label"]]
        # High arcs end right of low ones, so that arrows do not cover each other.
        back = APART * (self.highest_level - level) / max(1, self.highest_level)
        start = self._x(self._middles[arc["start"]] + APART)
        end = self._x(self._middles[arc["end"]] - back)
        foot, top = self.offset_y, self.offset_y - LEVEL * level
        arrow = self.get_arrowhead(arc["dir"], start, foot, end)  # type: ignore[arg-type]
        return ARROW.format(
            kind="displacy-arrow" + arc["kind"],
            stroke=self.arrow_stroke,
            arc=self.get_arc(start, foot, top, end),  # type: ignore[arg-type]
            head=arrow,
            label=escape(arc["label"]),
            x=(start + end) / 2,
            # Labels stand upright above their arcs: along them, as displaCy has them, they are hard
            # to read, and upside down where words run from right to left.
            y=foot - 0.75 * (foot - top) - 4,
        )
