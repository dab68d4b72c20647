"""`tk-spacy evaluate`: scores of system files against a gold file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.shell import Json, Quiet, Shell
from tk_spacy.cli.streams import standard_input
from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import METRICS, Scores, aligned, count_pairs, scores_from_counts
from tk_spacy.evaluation.bootstrap import Bootstrap, bootstrap_counts
from tk_spacy.evaluation.breakdown import GROUPINGS, Breakdown, breakdown_records, breakdown_table
from tk_spacy.evaluation.report import MORE_SCORE_COLUMNS, bootstrap_note, scores_table
from tk_spacy.treebank.conllu import read_conllu
from tk_spacy.treebank.data_notes import Blanks
from tk_spacy.utils.tables import Table

ALL = "all"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of each system, and of each but the first a paired bootstrap against the first.

    groupings: by which the words are divided; breakdowns: those of each system.
    notes: on words without HEAD or DEPREL.
    """

    gold: str
    systems: tuple[tuple[str, Scores], ...]
    comparisons: tuple[Bootstrap, ...]
    groupings: tuple[str, ...] = ()
    breakdowns: tuple[Breakdown, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The systems' names, each once."""
        return _unique([name for name, _ in self.systems])

    def table(self) -> Table:
        """One row a system."""
        names = self.names
        scores = {name: row for name, (_, row) in zip(names, self.systems, strict=True)}
        first = self.systems[0][1]
        notes = [
            f"{first.sentences:,} sentences, {first.words:,} words, "
            f"{first.words_nopunct:,} of them no punctuation."
        ]
        notes += [
            bootstrap_note(names[0], name, result)
            for name, result in zip(names[1:], self.comparisons, strict=True)
        ]
        return scores_table(
            f"Scores against {self.gold}", scores, columns=MORE_SCORE_COLUMNS, notes=notes
        )

    def tables(self) -> list[Table]:
        """That of the systems, and one for each grouping."""
        found = dict(zip(self.names, self.breakdowns, strict=True))
        return [self.table(), *(breakdown_table(name, found) for name in self.groupings)]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        found = dict(zip(self.names, self.breakdowns, strict=True))
        return {
            "gold": self.gold,
            "systems": [{"file": name, **asdict(scores)} for name, scores in self.systems],
            "comparisons": [
                {"file": name, "against": self.systems[0][0], **asdict(result)}
                for (name, _), result in zip(self.systems[1:], self.comparisons, strict=True)
            ],
            "by": {name: breakdown_records(name, found) for name in self.groupings},
            "notes": list(self.notes),
        }


def evaluate(
    gold: Path,
    systems: Sequence[Path],
    *,
    metric: str = "uas",
    samples: int = 10_000,
    seed: int = 0,
    by: Sequence[str] = (),
) -> Evaluation:
    """Score system files against the gold file; all are read as streams.

    by: keys of `breakdown.GROUPINGS`.
    Raises UserError where a file is broken or holds other sentences than the gold file.
    """
    tables = []
    blanks = [Blanks() for _ in systems]
    breakdowns = tuple(Breakdown(by) for _ in systems)
    for path, breakdown, blank in zip(systems, breakdowns, blanks, strict=True):
        system = read_conllu(path, trees="optional", single_root=False)
        try:
            pairs = aligned(read_conllu(gold, single_root=False), system)
            tables.append(count_pairs(breakdown.watch(blank.watch(pairs))))
        except UserError as error:
            if str(error).startswith((str(gold), str(path))):
                raise
            raise UserError(f"{gold} and {path}: {error}") from error
    return Evaluation(
        gold=str(gold),
        systems=tuple(
            (str(path), scores_from_counts(table))
            for path, table in zip(systems, tables, strict=True)
        ),
        comparisons=tuple(
            bootstrap_counts([(tables[0], table)], metric=metric, samples=samples, seed=seed)
            for table in tables[1:]
        ),
        groupings=tuple(dict.fromkeys(by)),
        breakdowns=breakdowns,
        notes=tuple(
            dict.fromkeys(
                note
                for path, blank in zip(systems, blanks, strict=True)
                for note in blank.notes(gold, path)
            )
        ),
    )


def evaluate_cli(
    gold: Annotated[
        Path, typer.Argument(help="CoNLL-U file with the right trees; - for standard input.")
    ],
    systems: Annotated[
        list[Path],
        typer.Argument(
            help="CoNLL-U files with the trees of one or more systems; - for standard input.",
            metavar="SYSTEM",
        ),
    ],
    metric: Annotated[
        str, typer.Option(help=f"Score that the bootstrap compares: {', '.join(METRICS)}.")
    ] = "uas",
    samples: Annotated[int, typer.Option(min=1, help="Resamplings of the bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUPING",
            help="Show also where the errors are, in a table of scores by groups of words: "
            f"{', '.join(GROUPINGS)}, or all of these. Can be given several times.",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Score trees against gold trees.

    Reports UAS and LAS with and without punctuation, LAS on universal labels and CLAS (both as in
    the CoNLL 2018 shared task), and sentences whose every head is right. With several systems, each
    is compared with the first by a paired bootstrap over sentences.

        tk-spacy evaluate gold.conllu parsed.conllu

        tk-spacy evaluate gold.conllu before.conllu after.conllu --metric las

    With --by, the words are also divided by their gold relation, by the distance of their gold
    head, by whether its arc crosses another one, and so on, to see where systems err and differ:

        tk-spacy evaluate gold.conllu before.conllu after.conllu --by deprel --by length
    """
    if metric not in METRICS:
        raise typer.BadParameter(
            f"{metric!r} is none of {', '.join(METRICS)}", param_hint="'--metric'"
        )
    for name in by or ():
        if name not in {*GROUPINGS, ALL}:
            raise typer.BadParameter(
                f"{name!r} is none of {', '.join(GROUPINGS)}, {ALL}", param_hint="'--by'"
            )
    groupings = list(GROUPINGS) if ALL in (by or ()) else by or []
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard(), standard_input([gold, *systems]) as given:
        result = evaluate(
            given.paths[0], given.paths[1:], metric=metric, samples=samples, seed=seed, by=groupings
        )
        named = tuple((given.named(name), scores) for name, scores in result.systems)
        notes = tuple(given.named(note) for note in result.notes)
        result = replace(result, gold=given.named(result.gold), systems=named, notes=notes)
        shell.result(result.tables(), result.to_dict())
        for note in notes:
            shell.warn(note)


def _unique(names: Sequence[str]) -> list[str]:
    """Names to tell rows apart: a file given twice gets a number."""
    return [
        f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]
