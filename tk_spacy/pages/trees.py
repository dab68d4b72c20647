"""Trees of one sentence side by side, and in words where they differ."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from markupsafe import Markup

from tk_spacy.evaluation.confusions import differing_words
from tk_spacy.pages.content import Arc, DrawnTree, ExampleBlock, Word, WordRow
from tk_spacy.spacy_io.tree_drawing import MARKS, RIGHT, WRONG, draw_tree
from tk_spacy.treebank.sentence import Sentence

MOST_WORDS = 60
"""Words of a sentence whose trees are drawn: of longer ones a screen shows a small part."""


def drawn_tree(
    title: str,
    forms: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[int],
    deprels: Sequence[str],
    *,
    name: str,
    differing: Collection[int] = (),
    right: Collection[int] = (),
    wrong: Collection[int] = (),
) -> DrawnTree:
    """A titled tree; see `draw_tree` for the arguments."""
    svg = draw_tree(
        forms, tags, heads, deprels, differing=differing, right=right, wrong=wrong, name=name
    )
    found = re.search(r'<svg[^>]* width="(\d+)"', svg)
    # draw_tree escapes its texts
    return DrawnTree(title, Markup(svg), width=int(found[1]) if found else 0)


def compared(
    title: str,
    gold: Sentence,
    systems: Sequence[Sentence],
    names: Sequence[str],
    *,
    marked: Collection[int] = (),
    name: str = "",
) -> ExampleBlock:
    """A sentence's gold tree beside those of systems, and the words whose arcs differ.

    names: of gold and of each system.  marked: words, from 1, that stand out in the sentence.
    name: unique in a page, to draw the trees; empty for words alone.
    """
    differing = list(differing_words(gold, systems))
    drawn = []
    for number, tree in enumerate([gold, *systems] if name else ()):
        wrong = set(differing_words(gold, [tree]))
        drawn.append(
            drawn_tree(
                names[number],
                gold.forms,
                gold.upos,
                tree.heads.tolist(),
                tree.deprels,
                name=f"{name}-{number}",
                differing=differing,
                right=set(differing) - wrong if number else (),
                wrong=wrong,
            )
        )
    trees = (gold, *systems)
    return ExampleBlock(
        title=title,
        words=[Word(form, i in marked) for i, form in enumerate(gold.forms, 1)],
        names=names,
        rows=[
            WordRow(word, gold.forms[word - 1], [_arc(gold, tree, word) for tree in trees])
            for word in differing
        ],
        trees=drawn,
    )


def _arc(gold: Sentence, tree: Sentence, word: int) -> Arc:
    head, deprel = int(tree.heads[word - 1]), tree.deprels[word - 1]
    to = f"{head} {gold.forms[head - 1]}" if head > 0 else "no word" if head else "the root"
    if tree is gold:
        return Arc(to, deprel)
    right = head == gold.heads[word - 1] and deprel == gold.deprels[word - 1]
    sign = MARKS[RIGHT if right else WRONG]
    return Arc(to, deprel, "right" if right else "wrong", f"{sign} ")
