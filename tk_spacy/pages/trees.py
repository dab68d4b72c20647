"""Trees of one sentence side by side, the part that is asked about, and in words what differs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup

from tk_spacy.evaluation.confusions import differing_words
from tk_spacy.pages.content import Arc, DrawnTree, ExampleBlock, Word, WordRow
from tk_spacy.spacy_io.tree_drawing import DOUBTED, MARKS, RIGHT, WRONG, Tree, draw_tree
from tk_spacy.treebank.sentence import Sentence

MOST_WORDS = 60
"""Words of a sentence whose trees are drawn whole: of longer ones a screen shows a small part."""
AIM = "data-from", "data-to"
SHORT = 12
"""Words of a sentence that is drawn whole at once."""
CUT_SHARE = 0.75
"""Of a sentence's words that a part of it has at most; else the whole trees stand in its place."""
CUT_TOLD = (
    "Of long sentences a part is drawn: the words in question, the words beside them, and their "
    "heads in each tree. The sign \u2026 stands for words that are left out, and dotted arcs come "
    "from them; the whole trees unfold below."
)


def drawn_tree(
    title: str,
    forms: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[int],
    deprels: Sequence[str],
    *,
    name: str,
    differing: Collection[int] = (),
    signs: Mapping[int, str] = {},
    asked: Collection[int] = (),
    beside: Collection[int] = (),
    shown: Collection[int] | None = None,
    room_for: Sequence[Tree] = (),
) -> DrawnTree:
    """A titled tree; see `draw_tree` for the arguments."""
    svg = draw_tree(
        forms, tags, heads, deprels,
        differing=differing, signs=signs, asked=asked, beside=beside, shown=shown,
        room_for=room_for, name=name,
    )  # fmt: skip
    numbers = [re.search(rf'<svg[^>]* {of}="(\d+)"', svg) for of in ("width", *AIM)]
    width, start, end = (int(found[1]) if found else 0 for found in numbers)
    told = title if shown is None else f"{title}, {len(shown)} of {len(forms)} words"
    # draw_tree escapes its texts
    return DrawnTree(title, Markup(svg), width=width, told=told, aim=(start, end - start))


def cut_out(n: int, asked: Iterable[int], heads: Iterable[Sequence[int]]) -> set[int] | None:
    """The words of n that a drawing about some of them shows; None where it is no shorter.

    asked: words, from 1.  heads: of each tree, whose arcs into these words are seen.
    """
    seen = set(asked)
    shown = {near for word in seen for near in (word - 1, word, word + 1)}
    shown |= {tree[word - 1] for tree in heads for word in seen}
    shown &= set(range(1, n + 1))
    # The sign for words left out takes the room of one.
    edges = [0, *sorted(shown), n + 1]
    shown |= {before + 1 for before, after in pairwise(edges) if after - before == 2}
    return shown if n > SHORT and shown and len(shown) <= CUT_SHARE * n else None


def compared(
    title: str,
    gold: Sentence,
    systems: Sequence[Sentence],
    names: Sequence[str],
    *,
    marked: Collection[int] = (),
    beside: Collection[int] = (),
    doubted: bool = False,
    name: str = "",
    whole: bool = True,
) -> ExampleBlock:
    """A sentence's gold tree beside those of systems, and the words whose arcs differ.

    names: of gold and of each system.  marked: words, from 1, that are asked about; beside: others
    that belong to them.  doubted: arcs that differ from `gold` are not wrong, but open to doubt.
    name: unique in a page, to draw the trees; empty for words alone.  whole: whether trees that are
    cut out are drawn whole as well.
    """
    differing = list(differing_words(gold, systems))
    trees = [gold, *systems]
    asked = {*marked, *beside} or set(differing)
    shown = cut_out(len(gold), asked, [tree.heads.tolist() for tree in trees])
    otherwise = DOUBTED if doubted else WRONG
    room_for = [(tree.heads.tolist(), tree.deprels) for tree in trees]

    def drawn(words: Collection[int] | None, ending: str = "") -> list[DrawnTree]:
        made = []
        for number, tree in enumerate(trees):
            other = set(differing_words(gold, [tree]))
            signs = {word: otherwise if word in other else RIGHT for word in differing}
            made.append(
                drawn_tree(
                    names[number],
                    gold.forms,
                    gold.upos,
                    tree.heads.tolist(),
                    tree.deprels,
                    name=f"{name}-{number}{ending}",
                    differing=differing,
                    signs=signs if number else {},
                    asked=marked,
                    beside=beside,
                    shown=words,
                    room_for=room_for,
                )
            )
        return made

    drawn_whole = bool(name) and len(gold) <= MOST_WORDS
    cut = drawn(shown) if name and shown is not None else []
    full = drawn(None, "-whole") if drawn_whole and (whole or not cut) else []
    return ExampleBlock(
        title=title,
        words=[
            Word(form, "asked" if i in marked else "belongs" if i in beside else "")
            for i, form in enumerate(gold.forms, 1)
        ],
        names=names,
        rows=[
            WordRow(
                word,
                gold.forms[word - 1],
                [_arc(gold, tree, word, otherwise) for tree in trees],
            )
            for word in differing
        ],
        trees=cut or full,
        whole=full if cut else (),
        part=bool(cut),
    )


def _arc(gold: Sentence, tree: Sentence, word: int, otherwise: str) -> Arc:
    head, deprel = int(tree.heads[word - 1]), tree.deprels[word - 1]
    to = f"{head} {gold.forms[head - 1]}" if head > 0 else "no word" if head else "the root"
    if tree is gold:
        return Arc(to, deprel)
    right = head == gold.heads[word - 1] and deprel == gold.deprels[word - 1]
    kind = RIGHT if right else otherwise
    return Arc(to, deprel, kind.removeprefix("tk-"), f"{MARKS[kind]} ")
