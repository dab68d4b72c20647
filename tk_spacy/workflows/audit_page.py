"""An audit as a page: its entries, each with the trees side by side and what argues for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tk_spacy.audit.entries import Cluster, Entry, outline
from tk_spacy.audit.rules import Broken
from tk_spacy.audit.words import Words as TreebankWords
from tk_spacy.pages.content import Block, Folded, Section, TableBlock, Words, report_page
from tk_spacy.pages.trees import MOST_WORDS, compared
from tk_spacy.pages.versions import versions_table
from tk_spacy.utils.tables import Column, Table

DRAWN = 100
"""Entries whose trees are drawn, the most suspicious ones: a drawing takes some ten kilobytes."""
PROPOSED, ANNOTATED = "proposed", "annotated"


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
    drawing = _Drawing(words, broken, entries)
    lead = [
        f"{', '.join(files)}: {len(words.sentences):,} sentences, {len(words):,} words.",
        f"Parsers: {', '.join(parsers) or 'none'}.",
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

    def __init__(self, words: TreebankWords, broken: Broken, entries: Sequence[Entry]) -> None:
        self._words, self._broken = words, broken
        first = sorted(entries, key=lambda entry: -entry.confidence)[:DRAWN]
        self._drawn = {entry.rows[0] for entry in first}

    def entry(self, entry: Entry) -> Folded:
        """An entry, folded: what stands there and is proposed can be seen without opening it."""
        words, row = self._words, entry.rows[0]
        sentence, position = words.place(row)
        name = words.name(int(words.sentence[row]))
        there = outline(words, row)
        proposal = entry.proposal
        new = "no proposal"
        if proposal is not None:
            moved = proposal.head != int(sentence.heads[position - 1])
            head = sentence.forms[proposal.head - 1] if proposal.head else "the root"
            new = f"{proposal.label} of {proposal.head} {head}" if moved else proposal.label
        summary = f"{100 * entry.confidence:.0f} %: {name}, word {position}: {there} → {new}"
        return Folded(summary, [*self._arguments(entry), self._trees(entry)], f"row-{row}")

    def _arguments(self, entry: Entry) -> Iterator[Block]:
        words, row = self._words, entry.rows[0]
        if rules := self._broken.of(row):
            yield Words(f"Breaks rules of UD: {', '.join(rules)}.")
        for reason in () if entry.proposal is None else entry.proposal.reasons:
            yield Words(reason)
        if others := entry.rows[1:]:
            numbers = ", ".join(str(words.place(other)[1]) for other in others)
            yield Words(f"Suspicious with it: word{'s' * (len(others) > 1)} {numbers}.")

    def _trees(self, entry: Entry) -> Block:
        words, row = self._words, entry.rows[0]
        sentence, position = words.place(row)
        drawn = row in self._drawn and len(sentence) <= MOST_WORDS
        marked = [words.place(other)[1] for other in entry.rows]
        name = f"tree-{row}" if drawn else ""
        title = words.name(int(words.sentence[row]))
        if entry.proposal is None:
            return compared(title, sentence, (), (ANNOTATED,), marked=marked, name=name)
        heads = np.array(sentence.heads)
        heads[position - 1] = entry.proposal.head
        labels = list(sentence.deprels)
        labels[position - 1] = entry.proposal.label
        proposed = sentence.with_tree(heads, labels, single_root=False)
        names = PROPOSED, ANNOTATED
        return compared(title, proposed, (sentence,), names, marked=marked, name=name)


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
