"""An audit of treebanks: the mistakes, most suspicious first; and chosen proposals put in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tk_spacy.audit.applying import apply_rows
from tk_spacy.audit.entries import Cluster, Entry, in_two_lists, make_entries, outline
from tk_spacy.audit.parsed import Parsed
from tk_spacy.audit.proposals import Proposer
from tk_spacy.audit.ranking import gather, suspicion
from tk_spacy.audit.rules import Broken
from tk_spacy.audit.tables import read_table, write_table
from tk_spacy.audit.words import Words, name_of
from tk_spacy.errors import OptionError, UserError
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.utils.array_store import arrays_stored_beside
from tk_spacy.utils.progress import Progress, Stages
from tk_spacy.utils.tables import Column, Table
from tk_spacy.utils.timing import Meter
from tk_spacy.workflows.audit_page import page
from tk_spacy.workflows.audit_parsing import jackknifed, place_of_work
from tk_spacy.workflows.audit_places import check_outputs, check_place, write_outputs

ENTRIES = 200
"""Words that entries are made of, at most, by default."""
PROPOSED = ("sent_id", "token_id", "head", "deprel", "new_head", "new_deprel")


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """What was found.

    words: of all files.  scores: float64[n], how likely each is annotated wrongly.
    scattered: entries, most suspicious first.  clusters: systematic inconsistencies.
    broken: rules that the words break.
    """

    words: Words
    scores: Any
    scattered: list[Entry]
    clusters: list[Cluster]
    proposer: Proposer
    broken: Broken

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "sentences": len(self.words.sentences),
            "words": len(self.words),
            "scattered": [self._entry(entry) for entry in self.scattered],
            "systematic": [
                {
                    "query": cluster.pattern.query(),
                    "proposed": cluster.pattern.proposed,
                    "annotated": cluster.annotated,
                    "otherwise": cluster.otherwise,
                    "entries": [self._entry(entry) for entry in cluster.entries],
                }
                for cluster in self.clusters
            ],
        }

    def table_rows(self) -> Iterator[Sequence[object]]:
        """Every word in the order of `tables.COLUMNS`, the most suspicious first.

        Proposals stand beside the words that entries are about.
        """
        proposed = {
            entry.rows[0]: entry.proposal
            for entries in (self.scattered, *(cluster.entries for cluster in self.clusters))
            for entry in entries
        }
        words = self.words
        for row in (-self.scores).argsort(kind="stable").tolist():
            sentence, position = words.place(row)
            found = proposed.get(row)
            yield (
                words.name(int(words.sentence[row])),
                position,
                f"{self.scores[row]:.6f}",
                int(sentence.heads[position - 1]),
                words.deprels[row],
                None if found is None else found.head,
                None if found is None else found.label,
                sentence.path,
            )

    def tables(self, shown: int) -> list[Table]:
        """The first entries and clusters, for the terminal."""
        columns = (
            Column("%", "confidence", digits=0),
            Column("sentence", "sent_id", align="left"),
            Column("word", "token_id"),
            Column("there", "annotated", align="left"),
            Column("proposed", "proposed", align="left"),
        )
        rows = []
        for entry in self.scattered[:shown]:
            told = self._entry(entry)
            new = told["proposal"]
            moved = new is not None and new["head"] != told["head"]
            text = None if new is None else new["deprel"]
            rows.append(
                (
                    100 * entry.confidence, told["sent_id"], told["token_id"],
                    outline(self.words, entry.rows[0]),
                    f"{text} of word {new['head']}" if moved else text,
                )
            )  # fmt: skip
        tables = [Table(title="Scattered mistakes", columns=columns, rows=tuple(rows))]
        if self.clusters:
            tables.append(
                Table(
                    title="Systematic inconsistencies",
                    columns=(
                        Column("entries", "entries"),
                        Column("annotated so", "annotated"),
                        Column("as proposed", "otherwise"),
                        Column("proposed", "proposed", align="left"),
                        Column("query (Grew)", "query", align="left"),
                    ),
                    rows=tuple(
                        (
                            len(found.entries),
                            found.annotated,
                            found.otherwise,
                            found.pattern.proposed,
                            found.pattern.query(),
                        )
                        for found in self.clusters[:shown]
                    ),
                )
            )
        return tables

    def _entry(self, entry: Entry) -> dict[str, Any]:
        words, row = self.words, entry.rows[0]
        sentence, position = words.place(row)
        proposal = entry.proposal
        return {
            "file": sentence.path,
            "sent_id": words.name(int(words.sentence[row])),
            "token_id": position,
            "form": sentence.forms[position - 1],
            "text": " ".join(sentence.forms),
            "head": int(sentence.heads[position - 1]),
            "deprel": words.deprels[row],
            "confidence": entry.confidence,
            "breaks": self.broken.of(row),
            "with": [words.place(other)[1] for other in entry.rows[1:]],
            "proposal": None
            if proposal is None
            else {
                "head": proposal.head,
                "deprel": proposal.label,
                "reasons": list(proposal.reasons),
                "like": [
                    {
                        "sent_id": words.name(int(words.sentence[other])),
                        "token_id": words.place(other)[1],
                    }
                    for other in proposal.like
                ],
            },
        }


def audit(
    inputs: Sequence[str | Path],
    *,
    output: str | Path | Sequence[str | Path] = (),
    ignore: str | Path | None = None,
    most: int = ENTRIES,
    parsers: Sequence[str] = (),
    workdir: str | Path | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Rank the words of treebanks by how likely their annotation is a mistake.

    inputs: CoNLL-U files with trees, which are judged together.
    output: a file to write, or several, whose ending tells the form: .tsv every word, .json the
        entries, .html a page of the entries with their trees.
    ignore: a table of words (sent_id, token_id) that were looked at and are right.  Where it says
        what stood there (head, deprel), a word annotated anew is told of again.
    most: words that entries are made of.
    parsers: names as `train --parsers` takes them, whose jackknifed trees are looked at too; none
        for what can be said without.
    workdir: where trained parsers are kept; None for a directory beside the (first) output that is
        removed at the end.  The same call after a stop goes on there.
    processes: parsers trained at a time, see `ensemble.jackknife`.
    """
    outputs = [Path(path) for path in ([output] if isinstance(output, str | Path) else output)]
    read = {Path(path): "a treebank that is audited" for path in inputs}
    if ignore is not None:
        read[Path(ignore)] = "the table of what was looked at"
    check_outputs(outputs, read)
    if workdir is not None and not parsers:
        raise OptionError("a work directory is for parsers; name parsers, or leave it out")
    run = Stages(progress or Progress(), Meter())
    right = {} if ignore is None else _looked_at(Path(ignore))
    with run.stage("reading the treebank"):
        words = Words.of(_sentences(inputs))
    fitting = _fitting(words, right)
    if len(fitting) < len(right):
        run.progress.warn(
            f"{ignore}: {len(right) - len(fitting)} of {len(right)} words are not in the treebank, "
            "or annotated otherwise by now; they are judged as all others"
        )
    # The parsers are kept until all is written: what fails afterwards can be run again at once.
    with ExitStack() as held:
        parsed = None
        if parsers:
            first = outputs[0] if outputs else None
            place = place_of_work(first, None if workdir is None else Path(workdir))
            work = held.enter_context(place)
            held.enter_context(arrays_stored_beside(work))
            parsed = jackknifed(run, words, parsers, place=work, processes=processes)
        found = _judged(run, words, parsed, ignored=fitting, most=most)
        write_outputs({path: _written(found, path.suffix, inputs, parsers) for path in outputs})
    return found


def _judged(
    run: Stages, words: Words, parsed: Parsed | None, *, ignored: Set[int], most: int
) -> Audit:
    with run.stage("looking for what is rare or varies"):
        evidence = gather(words, parsed)
        scores = suspicion(evidence)
        proposer = Proposer(words, evidence)
    with run.stage("making entries"):
        entries = make_entries(words, scores, proposer.of, most=most, ignored=ignored.__contains__)
        scattered, clusters = in_two_lists(words, entries)
    return Audit(words, scores, scattered, clusters, proposer, evidence.broken)


def apply(source: str | Path, table: str | Path, output: str | Path) -> Mapping[str, Any]:
    """Write a treebank with the proposals of a table's rows to `output`; see `applying`.

    Everything but HEAD and DEPREL of these words stays byte for byte.  Nothing is written where a
    row cannot be.  Raises UserError for that, too.
    """
    source, table, output = Path(source), Path(table), Path(output)
    check_place(output, {source: "the treebank", table: "the table of chosen rows"})
    rows = read_table(table, needed=PROPOSED)
    if not rows:
        raise UserError(f"{table}: has no row; keep the rows of the audit's table to be applied")
    sentences = load_treebank(source, single_root=False)
    made = list(apply_rows(sentences, rows, table=table))
    write_conllu(output, made)
    changed = sum(
        (old.heads[i], old.deprels[i]) != (new.heads[i], new.deprels[i])
        for old, new in zip(sentences, made, strict=True)
        for i in range(len(old) if new is not old else 0)
    )
    return {"input": str(source), "output": str(output), "changed": changed}


def _written(
    found: Audit, form: str, inputs: Sequence[str | Path], parsers: Sequence[str]
) -> Iterator[str]:
    """What a file of such an ending holds, in parts."""
    if form == ".tsv":
        yield from write_table(found.table_rows())
    elif form == ".json":
        yield json.dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n"
    else:
        yield page(
            found.words,
            found.scattered,
            found.clusters,
            found.broken,
            files=[str(path) for path in inputs],
            parsers=parsers,
        )


def _sentences(inputs: Sequence[str | Path]) -> list[Sentence]:
    if not inputs:
        raise OptionError("no treebank; give a CoNLL-U file")
    sentences: list[Sentence] = []
    seen: dict[str, str] = {}
    for path in inputs:
        if any(character in str(path) for character in "\t\n\r"):
            raise UserError(
                f"{str(path)!r}: has a tab or a line break in its name, which no table can hold; "
                "rename the file"
            )
        for sentence in load_treebank(path, single_root=False):
            place = f"{sentence.path}:{sentence.line}"
            name = name_of(sentence)
            if name in seen:
                raise UserError(
                    f"{place}: sent_id {name} is that of {seen[name]}, too; give each sentence its "
                    "own, so that entries can name it"
                )
            seen[name] = place
            sentences.append(sentence)
    return sentences


def _fitting(
    words: Words, right: Mapping[tuple[str, int], tuple[int | None, str | None]]
) -> set[int]:
    """The rows of words that were looked at and are annotated as they were then."""
    found = set()
    for number, sentence in enumerate(words.sentences):
        name, start = words.name(number), int(words.starts[number])
        for word in range(len(sentence)):
            known = right.get((name, word + 1))
            now = int(sentence.heads[word]), sentence.deprels[word]
            if known is not None and all(
                old is None or old == new for old, new in zip(known, now, strict=True)
            ):
                found.add(start + word)
    return found


def _looked_at(path: Path) -> dict[tuple[str, int], tuple[int | None, str | None]]:
    return {(row.sent_id, row.token_id): (row.head, row.deprel) for row in read_table(path)}
