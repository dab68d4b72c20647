"""The column DEPS, enhanced dependencies, beside a new tree in HEAD and DEPREL.

DEPS and the empty nodes (lines such as 5.1, which only DEPS refers to) belong to the tree that the
input had.  Beside another tree they contradict it, and those of a gold file would give the answers
away, so parsers (UDPipe 2 among them) leave DEPS blank.  Without DEPS an empty node hangs nowhere,
which UD's validator refuses: "blank" and "copy" leave their lines out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from tk_spacy.treebank.sentence import Layout, Sentence

Deps = Literal["blank", "keep", "copy"]
DEPS_CHOICES: tuple[Deps, ...] = get_args(Deps)


@dataclass(slots=True)
class DepsCount:
    """What became of DEPS.

    replaced: words whose DEPS were blanked or written anew.  empty_nodes: left out.
    contradicting: words whose new arc is not among their kept DEPS.
    """

    replaced: int = 0
    empty_nodes: int = 0
    contradicting: int = 0

    def __add__(self, other: DepsCount) -> DepsCount:
        return DepsCount(
            self.replaced + other.replaced,
            self.empty_nodes + other.empty_nodes,
            self.contradicting + other.contradicting,
        )


@dataclass(slots=True)
class DepsColumn:
    """Treats the DEPS of sentences whose trees are new, and counts what it did.

    mode: "blank" writes "_"; "copy" HEAD:DEPREL of the new tree; "keep" what the input has.
    Raises ValueError for another mode.
    """

    mode: Deps = "blank"
    count: DepsCount = field(default_factory=DepsCount)

    def __post_init__(self) -> None:
        if self.mode not in DEPS_CHOICES:
            raise ValueError(f"deps must be one of {', '.join(DEPS_CHOICES)}, got {self.mode!r}")

    def __call__(
        self, sentence: Sentence, before: Sentence | None = None, *, counts: bool = True
    ) -> Sentence:
        """The sentence, which has its new tree, with the DEPS that go with it.

        before: the same with the tree that its DEPS were made for; words whose arcs are as they
            were contradict nothing.  None where that tree is not known.
        counts: False for further trees of a sentence that was counted.
        """
        found = DepsCount()
        if self.mode == "keep":
            found.contradicting = count_contradicting(sentence, before)
        else:
            new = ("_",) * len(sentence)
            if self.mode == "copy":
                arcs = zip(sentence.heads.tolist(), sentence.deprels, strict=True)
                new = tuple([f"{head}:{deprel}" for head, deprel in arcs])
            given = zip(sentence.deps, new, strict=True)
            found.replaced = sum(old not in ("_", deps) for old, deps in given)
            lines = len(sentence.layout.extras)
            if found.replaced or new != sentence.deps:
                sentence = replace(sentence, deps=new)
            sentence = without_empty_nodes(sentence)
            found.empty_nodes = lines - len(sentence.layout.extras)
        if counts:
            self.count.replaced += found.replaced
            self.count.empty_nodes += found.empty_nodes
            self.count.contradicting += found.contradicting
        return sentence


def without_empty_nodes(sentence: Sentence) -> Sentence:
    """The same sentence without the lines of its empty nodes; those of multiword tokens stay."""
    layout = sentence.layout
    if not any(_is_empty_node(line) for _, line in layout.extras):
        return sentence
    eols = list(layout.eols)
    above = len(sentence.comments)
    kept = []
    for number, (words, line) in reversed(list(enumerate(layout.extras))):
        if not _is_empty_node(line):
            kept.append((words, line))
        elif len(layout.eols) > 1:  # mixed: the line takes its own end along
            del eols[min(above + words + number, len(eols) - 1)]
    ends = tuple(eols) if len(eols) > 0 else layout.eols[:1]
    return replace(
        sentence,
        layout=Layout(layout.before, ends, layout.after, tuple(reversed(kept))),
    )


def count_contradicting(sentence: Sentence, before: Sentence | None = None) -> int:
    """Words with DEPS, and with an arc that is new and none of these.

    A relation of DEPS may say more than DEPREL: "obl:in" goes with "obl".
    """
    if all(deps == "_" for deps in sentence.deps):
        return 0
    same = np.zeros(len(sentence), dtype=bool)
    if before is not None and before.has_tree:
        labels = [a == b for a, b in zip(sentence.deprels, before.deprels, strict=True)]
        same = (sentence.heads == before.heads) & np.array(labels)
    rows = zip(sentence.deps, sentence.heads.tolist(), sentence.deprels, same.tolist(), strict=True)
    return sum(
        deps != "_" and not kept and not _holds(deps, f"{head}:{deprel}")
        for deps, head, deprel, kept in rows
    )


def _holds(deps: str, arc: str) -> bool:
    return any(item == arc or item.startswith(f"{arc}:") for item in deps.split("|"))


def _is_empty_node(line: str) -> bool:
    return "." in line.partition("\t")[0]
