"""An audit as a page: its entries, each with the trees side by side and what argues for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tk_spacy.audit.entries import Cluster, Entry, outline
from tk_spacy.audit.rules import Broken
from tk_spacy.audit.words import Words as TreebankWords
from tk_spacy.pages.content import Block, Folded, Section, TableBlock, Words, report_page
from tk_spacy.pages.trees import CUT_TOLD, compared
from tk_spacy.pages.versions import versions_table
from tk_spacy.utils.short_names import short_names, shortened
from tk_spacy.utils.tables import Column, Table

DRAWN = 100
"""Entries whose trees are drawn, the most suspicious ones: a drawing takes some ten kilobytes."""
PROPOSED, ANNOTATED = "proposed", "annotated"
TOLD = (
    "Each entry unfolds to its reasons and trees. The suspicious word stands in a box, and words "
    "that are suspicious with it in boxes with dotted lines. The arc that a proposal would change "
    "is bold, and has a question mark as it is annotated."
)


def page(
    words: TreebankWords,
    scattered: Sequence[Entry],
    clusters: Sequence[Cluster],
    broken: Broken,
    *,
    files: Sequence[str],
    parsers: Sequence[str],
) -> str:
    """The page, as text; the same for the same audit.

    scattered, clusters: the two lists.  broken: rules that the words break.
    files: that were judged.  parsers: that were asked.
    """
    entries = [*scattered, *(entry for cluster in clusters for entry in cluster.entries)]
    short = dict(zip(files, short_names(files), strict=True))
    drawing = _Drawing(words, broken, entries, short)
    lead = [
        f"{', '.join(short.values())}: {len(words.sentences):,} sentences, {len(words):,} words.",
        f"Parsers: {', '.join(parsers) or 'none'}.",
        TOLD,
        CUT_TOLD,
    ]
    systematic = [block for cluster in clusters for block in _cluster(cluster, drawing)]
    sections = [
        Section("Scattered mistakes", [drawing.entry(entry) for entry in scattered]),
        Section("Systematic inconsistencies", systematic),
        Section("Versions", [TableBlock(versions_table())]),
    ]
    return report_page("Audit of a treebank", lead, sections)


class _Drawing:
    """Entries as blocks, of which the first ones have trees."""

    def __init__(
        self,
        words: TreebankWords,
        broken: Broken,
        entries: Sequence[Entry],
        short: Mapping[str, str],
    ) -> None:
        self._words, self._broken, self._short = words, broken, short
        first = sorted(entries, key=lambda entry: -entry.confidence)[:DRAWN]
        self._drawn = {entry.rows[0] for entry in first}

    def entry(self, entry: Entry) -> Folded:
        """An entry, folded: what stands there and is proposed can be seen without opening it."""
        words, row = self._words, entry.rows[0]
        sentence, position = words.place(row)
        name = self._name(row)
        there = outline(words, row)
        proposal = entry.proposal
        new = "no proposal"
        if proposal is not None:
            moved = proposal.head != int(sentence.heads[position - 1])
            head = sentence.forms[proposal.head - 1] if proposal.head else "the root"
            new = f"{proposal.label} of {proposal.head} {head}" if moved else proposal.label
        summary = f"{100 * entry.confidence:.0f} %: {name}, word {position}: {there} → {new}"
        return Folded(summary, [*self._arguments(entry), self._trees(entry)], f"row-{row}")

    def _name(self, row: int) -> str:
        """What a row's sentence is called: some by file and line."""
        words = self._words
        return shortened(words.name(int(words.sentence[row])), self._short)

    def _arguments(self, entry: Entry) -> Iterator[Block]:
        words, row = self._words, entry.rows[0]
        sentence, _ = words.place(row)
        if rules := self._broken.of(row):
            yield Words(f"Breaks rules of UD: {', '.join(rules)}.")
        for reason in () if entry.proposal is None else entry.proposal.reasons:
            yield Words(shortened(reason, self._short))
        if others := entry.rows[1:]:
            places = (words.place(other)[1] for other in others)
            told = ", ".join(f"{place} {sentence.forms[place - 1]}" for place in places)
            yield Words(f"Suspicious with it: word{'s' * (len(others) > 1)} {told}.")

    def _trees(self, entry: Entry) -> Block:
        words, row = self._words, entry.rows[0]
        sentence, position = words.place(row)
        beside = [words.place(other)[1] for other in entry.rows[1:]]
        name = f"tree-{row}" if row in self._drawn else ""
        title = self._name(row)
        trees, names = [sentence], [ANNOTATED]
        if (proposal := entry.proposal) is not None:
            heads = np.array(sentence.heads)
            heads[position - 1] = proposal.head
            labels = list(sentence.deprels)
            labels[position - 1] = proposal.label
            trees = [sentence.with_tree(heads, labels, single_root=False), sentence]
            names = [PROPOSED, ANNOTATED]
        return compared(
            title, trees[0], trees[1:], names,
            marked=[position], beside=beside, doubted=True, name=name,
        )  # fmt: skip


def _cluster(cluster: Cluster, drawing: _Drawing) -> Iterator[Block]:
    pattern = cluster.pattern
    yield TableBlock(
        Table(
            title=f"{pattern.label} → {pattern.proposed}",
            columns=(
                Column("query (Grew)", "query", align="left"),
                Column("entries", "entries"),
                Column("annotated so", "annotated"),
                Column("as proposed", "otherwise"),
            ),
            rows=((pattern.query(), len(cluster.entries), cluster.annotated, cluster.otherwise),),
        )
    )
    yield from map(drawing.entry, cluster.entries)
