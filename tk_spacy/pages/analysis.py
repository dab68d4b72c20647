"""Sections on where systems err and how sure they are, which the pages of reports share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, zip_longest

from tk_spacy.evaluation.bootstrap import Bootstrap
from tk_spacy.evaluation.breakdown import (
    GROUPINGS,
    PAGE_GROUPINGS,
    Breakdown,
    breakdown_table,
    ordered_groups,
)
from tk_spacy.evaluation.confidence import ConfidenceScores, confidence_table, reliability_table
from tk_spacy.evaluation.confusions import (
    Confusion,
    Confusions,
    Example,
    confusions_table,
    relations_table,
)
from tk_spacy.pages.charts import dots_chart, lines_chart
from tk_spacy.pages.content import (
    Beside,
    Block,
    Chart,
    Charts,
    ExampleBlock,
    Folded,
    Section,
    TableBlock,
    Words,
)
from tk_spacy.pages.trees import CUT_TOLD, MOST_WORDS, compared
from tk_spacy.utils.tables import Column, Table, show_p

RELATIONS_DRAWN = 15
CONFUSIONS_SHOWN = 20
TREE_BYTES = 3_500_000
"""Of all trees of a page, which stays below five megabytes with them."""
CUT_BYTES = 1_000_000
"""Of these, kept for parts of long trees: they are what is looked at."""
_PARTS = {
    "length": "Score by distance of the head",
    "sentence": "Score by length of the sentence",
    "upos": "Score by UPOS",
}


class Analysis:
    """What the sections are made of.

    names: of the systems, each once.  breakdowns, confusions: of the same sentences and systems.
    charts: whether they are drawn.  prefix: of names of charts and trees, unique in a page.
    """

    def __init__(
        self,
        names: Sequence[str],
        breakdowns: Sequence[Breakdown],
        confusions: Confusions,
        *,
        charts: bool = True,
        prefix: str = "",
    ) -> None:
        self.names, self.confusions = list(names), confusions
        self.breakdowns = dict(zip(names, breakdowns, strict=True))
        self.charts, self.prefix = charts, prefix

    def by_relation(self) -> list[Block]:
        """F1 of each relation: a chart of those with most errors, and the table of all."""
        relations = self.confusions.relations()
        table = TableBlock(relations_table(relations, self.names))
        if not self.charts:
            return [table]
        rows = list(relations)[:RELATIONS_DRAWN]
        series = {name: [relations[row][i].f1 for row in rows] for i, name in enumerate(self.names)}
        title = f"F1 of the {len(rows)} relations with most errors"
        chart = dots_chart(f"{self.prefix}relations", title, series, rows, x="F1, %")
        return [Beside(Charts([chart]), table)]

    def by_groups(self, grouping: str) -> list[Block]:
        """LAS of groups of words: a chart, and the table.

        Empty where nothing tells the groups apart, as without tags.
        """
        systems = list(self.breakdowns.values())
        groups = ordered_groups(grouping, systems)
        if groups == ["_"]:
            return []
        table = TableBlock(breakdown_table(grouping, self.breakdowns))
        heading, order = GROUPINGS[grouping].heading, GROUPINGS[grouping].order
        scores = {name: of.scores(grouping) for name, of in self.breakdowns.items()}
        values = {name: [own[g].las for g in groups] for name, own in scores.items()}
        where, title = f"{self.prefix}{grouping}", f"LAS by {heading}"
        if not self.charts:
            return [table]
        if isinstance(order, tuple) and grouping != "signed-length":
            series = {name: list(enumerate(own)) for name, own in values.items()}
            chart = lines_chart(where, title, series, x=heading, y="LAS, %", ticks=groups)
        else:
            chart = dots_chart(where, title, values, groups, x="LAS, %")
        return [Beside(Charts([chart]), table)]

    def sections(self, groupings: Sequence[str] = (), *, of: str = "") -> list[Section]:
        """By relation, PAGE_GROUPINGS, and further groupings; of: added to the titles."""
        names = dict.fromkeys((*PAGE_GROUPINGS, *(name for name in groupings if name != "deprel")))
        return [
            Section(f"Score by relation{of}", self.by_relation()),
            *(
                Section(f"{_PARTS.get(name, f'Score by {name}')}{of}", self.by_groups(name))
                for name in names
            ),
        ]

    def confusion_section(self, *, sentences: bool = True, of: str = "") -> Section:
        """The most frequent confusions, and the sentences behind each where they may be shown."""
        found = self.confusions.confusions(CONFUSIONS_SHOWN)
        kinds = self.confusions.kinds()
        title = f"Relations taken for others{of}"
        if not found:
            return Section(title, [Words("No relation is taken for another one.")])
        blocks: list[Block] = [TableBlock(confusions_table(found, self.names, kinds=kinds))]
        if not sentences:
            return Section(title, blocks)
        shown = [self.names[0], self.names[-1]] if len(self.names) > 1 else self.names
        drawn, undrawn = _examples(found, ["gold", *shown], prefix=self.prefix)
        blocks.append(
            Words(
                "Open a confusion for its sentences: the gold tree beside "
                + " and ".join(shown)
                + ". Words with the confusion stand in boxes. Arcs that differ are bold; wrong "
                "ones have a cross and are dashed, right ones a check mark."
            )
        )
        blocks.append(Words(CUT_TOLD))
        for number, (confusion, examples) in enumerate(zip(found, drawn, strict=True), 1):
            told = f"{len(examples)} of {confusion.sentences:,} sentences with it"
            if len(shown) > 1:
                told += " in one tree or both"
            counts = " → ".join(f"{n:,}" for n in confusion.counts)
            words = "word" if counts == "1" else "words"
            blocks.append(
                Folded(
                    f"{confusion.gold} taken for {confusion.given}: {counts} {words}",
                    [Words(f"{told}, the shortest ones:"), *examples],
                    name=f"{self.prefix}confusion-{number}",
                )
            )
        if undrawn:
            blocks.append(
                Words(
                    f"{undrawn} of the sentences are not drawn, or not whole, to keep the page "
                    f"small, or as they have more than {MOST_WORDS} words."
                )
            )
        return Section(title, blocks)


def comparisons_table(results: Sequence[tuple[str, str, Bootstrap]]) -> Table:
    """Paired bootstraps, one row each: of a system, against another one."""
    return Table(
        title="Is the difference chance? (paired bootstrap)",
        columns=(
            Column("system", "system", align="left"),
            Column("against", "against", align="left"),
            Column("metric", "metric", align="left"),
            Column("difference", "difference"),
            Column("95% interval", "interval"),
            Column("one-sided", "p_one_sided"),
            Column("two-sided", "p_two_sided"),
        ),
        rows=tuple(
            (
                system, against, of.metric.upper(), f"{of.difference:+.2f}",
                f"{of.low:+.2f} to {of.high:+.2f}",
                show_p(of.p_one_sided), show_p(of.p_two_sided),
            )
            for system, against, of in results
        ),
        notes=(
            "One-sided: small where the system is reliably better than the other one; two-sided: "
            "where they reliably differ.",
        ),
    )  # fmt: skip


def confidence_section(
    systems: Mapping[str, Mapping[str, ConfidenceScores]],
    *,
    charts: bool = True,
    prefix: str = "",
    of: str = "",
    note: str = "",
) -> Section:
    """What the probabilities of systems are worth; empty where none has some.

    note: what a reader must know of them first.
    """
    sure = {name: own for name, own in systems.items() if own}
    if not sure:
        return Section("Probabilities")
    blocks: list[Block] = [Words(note)] if note else []
    for number, (name, kinds) in enumerate(sure.items() if charts else ()):
        where = f"{prefix}sure-{number}"
        reliable = {
            kind: [(100 * item.probability, 100 * item.right) for item in own.bins]
            for kind, own in kinds.items()
        }
        risk = {
            kind: [(100 * coverage, 100 * errors) for coverage, errors in own.curve]
            for kind, own in kinds.items()
        }
        drawn: list[Chart] = [
            lines_chart(
                f"{where}-reliability", f"Reliability of {name}", reliable,
                x="probability, %", y="right, %", diagonal=True,
            ),
            lines_chart(
                f"{where}-risk", f"Risk and coverage of {name}", risk,
                x="surest words (or trees), %", y="errors among them, %",
            ),
        ]  # fmt: skip
        blocks.append(Charts(drawn))
    blocks.append(TableBlock(confidence_table(sure)))
    blocks += [TableBlock(reliability_table(name, own)) for name, own in sure.items()]
    blocks += [TableBlock(_risk_table(name, own)) for name, own in sure.items()]
    return Section(f"Probabilities{of}", blocks)


def _risk_table(name: str, kinds: Mapping[str, ConfidenceScores]) -> Table:
    """The numbers behind the curve of risk."""
    longest = max(kinds.values(), key=lambda own: len(own.curve)).curve
    return Table(
        title=f"Risk and coverage of {name}, %",
        columns=(Column("surest", "coverage", digits=0), *(Column(kind, kind) for kind in kinds)),
        rows=tuple(
            (
                100 * coverage,
                *(100 * own.curve[i][1] if i < len(own.curve) else None for own in kinds.values()),
            )
            for i, (coverage, _) in enumerate(longest)
        ),
        notes=("Errors among so many of the surest words (or trees).",),
    )


def _examples(
    confusions: Sequence[Confusion], names: Sequence[str], *, prefix: str
) -> tuple[list[list[ExampleBlock]], int]:
    """The blocks of each confusion's examples, and how many of them are not drawn whole.

    The first of each confusion are drawn before the second ones, as far as there is room.
    """
    made: dict[tuple[int, int], ExampleBlock] = {}
    room, undrawn, numbers = TREE_BYTES, 0, count(1)
    for rank, row in enumerate(zip_longest(*(of.examples for of in confusions))):
        for place, example in enumerate(row):
            if example is None:
                continue
            name = f"{prefix}tree-{next(numbers)}"
            made[place, rank] = block = _example(
                example, names, name=name if room > 0 else "", whole=room > CUT_BYTES
            )
            trees = [*block.trees, *block.whole]
            # In bytes: few letters of some treebanks take one.
            room -= sum(len(tree.svg.encode("utf-8", "replace")) for tree in trees)
            undrawn += not block.drawn_whole
    blocks = [
        [made[place, rank] for rank in range(len(of.examples))]
        for place, of in enumerate(confusions)
    ]
    return blocks, undrawn


def _example(example: Example, names: Sequence[str], *, name: str, whole: bool) -> ExampleBlock:
    known = example.gold.sent_id
    title = f"Sentence {example.number}" + (f" ({known})" if known else "")
    trees = example.systems
    return compared(title, example.gold, trees, names, marked=example.words, name=name, whole=whole)
