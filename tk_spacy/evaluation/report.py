"""What a training measured, and its tables: the paper's Tables 2 and 3, scores, costs, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tk_spacy.evaluation.attachment import Scores
from tk_spacy.evaluation.bootstrap import Bootstrap
from tk_spacy.evaluation.tags import TagScores
from tk_spacy.evaluation.well_formed import violations_table
from tk_spacy.utils.tables import MEBIBYTE, Cell, Column, Table, show_p, show_seconds

# Scores


SCORE_COLUMNS = (
    Column("UAS", "uas"),
    Column("LAS", "las"),
    Column("UAS no punct.", "uas_nopunct"),
    Column("LAS no punct.", "las_nopunct"),
)
MORE_SCORE_COLUMNS = (
    *SCORE_COLUMNS,
    Column("LAS universal", "las_universal"),
    Column("CLAS", "clas"),
    Column("exact", "exact_match"),
)


def scores_table(
    title: str,
    systems: Mapping[str, Scores],
    *,
    columns: Sequence[Column] = SCORE_COLUMNS,
    notes: Sequence[str] = (),
) -> Table:
    """One row of scores for each system."""
    rows = tuple(
        (name, *(getattr(scores, column.key) for column in columns))
        for name, scores in systems.items()
    )
    return Table(
        title=title,
        columns=(Column("system", "system", align="left"), *columns),
        rows=rows,
        notes=tuple(notes),
    )


def bootstrap_note(name_a: str, name_b: str, result: Bootstrap) -> str:
    """One line about a paired bootstrap of two systems."""
    return (
        f"{name_b} - {name_a}: {result.difference:+.2f} {result.metric.upper()} "
        f"[{result.low:+.2f}, {result.high:+.2f}], one-sided {show_p(result.p_one_sided)}, "
        f"two-sided {show_p(result.p_two_sided)} (paired bootstrap)"
    )


# The report of a training


GOLD = "gold"
BASE_PARSER, BASE_RERANKER = "base parser", "base reranker"
FIRST = "first of the list"
"""The tree that the parsers score highest: with two parsers, by both."""
KERNEL_RERANKER, FINAL, ORACLE = "kernel reranker", "final system", "oracle"
FAST = "fast parser"
"""The one parser that learnt from the final system, where there is one."""
REPORT_FORMAT = "tk-spacy training report"


def further_parser(source: str) -> str:
    """Name of the row with the own trees of a parser beside the base parser, by its source."""
    return f"{source.partition('+')[0]} parser"


VOTE, COMBINER_ROW = "plain vote", "arc combiner"
SYSTEMS = (BASE_PARSER, FIRST, VOTE, COMBINER_ROW, BASE_RERANKER, KERNEL_RERANKER, FINAL, ORACLE)
"""Those that there are, in this order: vote and combiner need several parsers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedReport:
    """What one speed of the final system is worth (see `reranker.cascade`).

    left: percent of the sentences that were left to the quick parsers.
    tokens_per_second: of proposing and choosing, tags given.
    """

    left: float
    uas: float
    las: float
    tokens_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """What was measured on dev or test.

    scores: of each of SYSTEMS, and of further parsers (see `further_parser`).  tests: paired
    bootstraps of the final system against the base parser; vote_tests: against the plain vote,
    where there is one.  trees: mean number of candidates.
    tokens_per_second: of choosing among ready lists.  violations: what is ill-formed in the gold
    trees, the base parser's and the final system's, by kind; empty in reports of earlier versions.
    speeds: of the final system, the exact one among them; empty where it has one alone.
    """

    sentences: int
    words: int
    trees: float
    tokens_per_second: float
    scores: Mapping[str, Scores]
    tests: Sequence[Bootstrap]
    vote_tests: Sequence[Bootstrap] = ()
    violations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    speeds: Mapping[str, SpeedReport] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Curve:
    """What a training measured as it went.

    of: what the values are, such as "LAS on dev, %".  steps: after so many of them each value was
    measured; 0 where it was after each epoch.
    """

    of: str
    values: Sequence[float]
    steps: int = 0

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Curve:
        """One that a trained parser or tagger keeps, or a report.  Raises KeyError for others."""
        return cls(data["of"], tuple(data["values"]), data.get("steps", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    """The paper's Table 3 and the cost of the whole command.

    sentences, mean_length: of the training treebank.  support_parts: of the kernel reranker.
    training_seconds: of its last training.  threads: of training and reranking.  stages: wall
    seconds of the command's stages.  peak_bytes: memory with children.  parsers: wall seconds of
    each parser's trainings, "whole" and (all together) "folds".  parser_speeds: words a second that
    each proposed and scored trees of, "all" together; empty where the lists were ready.  tagger:
    as `parsers`, of the tagger.
    """

    sentences: int
    mean_length: float
    support_parts: int
    training_seconds: float
    tokens_per_second: float
    threads: int
    stages: Mapping[str, float]
    total_seconds: float
    peak_bytes: int
    parsers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    parser_speeds: Mapping[str, float] = field(default_factory=dict)
    tagger: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FastReport:
    """What was measured of the fast parser, and of what else might have become it.

    taken: name of the one that it is.  tried: scores on dev of each, none without dev.
    seconds: wall time of each one's training, None of those that are others joined.
    speeds: words a second of each on dev, with tags that were there; none without dev.
    """

    taken: str
    tried: Mapping[str, Scores]
    seconds: Mapping[str, float | None]
    speeds: Mapping[str, float]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FastReport:
        """The inverse of `asdict`.  Raises KeyError or TypeError for other data."""
        tried = {name: Scores(**row) for name, row in data["tried"].items()}
        return cls(**{**data, "tried": tried})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainReport:
    """Everything that a training measured.

    about: settings and provenance, JSON values, the same in every run.  parts: "dev", "test".
    betas: weights of the final score.  notes: warnings, as they were shown.
    tags: how right the predicted tags are, of each part; empty where the files' were learnt from.
    curves: learning curves by what was trained, where it measured something.
    fast: of the fast parser, None where none was distilled.
    """

    about: Mapping[str, Any]
    betas: Mapping[str, float]
    parts: Mapping[str, PartReport]
    run_time: RunTime
    notes: Sequence[str] = field(default=())
    tags: Mapping[str, TagScores] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    fast: FastReport | None = None

    def tables(self) -> list[Table]:
        """Tables 2 (one for each part) and 3, what is ill-formed, and the wall times."""
        title = self.about.get("title", "")
        where = f" on {title}" if title else ""
        return [
            *(
                table_2(name, part, title, tags=self.kind_of_tags)
                for name, part in self.parts.items()
            ),
            *(
                violations_table(f"Ill-formed trees{where} {name}", part.violations)
                for name, part in self.parts.items()
                if part.violations
            ),
            *([tags_table(self.tags)] if self.tags else []),
            *(
                speeds_table(f"Speeds{where} {name}", part.speeds)
                for name, part in self.parts.items()
                if part.speeds
            ),
            *([fast_table(self.fast)] if self.fast is not None else []),
            table_3(self.run_time),
            *([costs_table(self)] if self.run_time.parser_speeds else []),
            stages_table(self.run_time),
        ]

    @property
    def kind_of_tags(self) -> str:
        """What the parsers saw, for titles."""
        return "predicted tags" if self.tags else "gold tags"

    def to_markdown(self) -> str:
        """All tables and notes."""
        betas = [f"{name} {beta:g}" for name, beta in self.betas.items() if beta]
        parts = [f"# {self.about.get('title') or 'Training report'}"]
        parts += [table.to_markdown().rstrip() for table in self.tables()]
        parts.append(
            f"Weight of further scores beside the reranker's: {', '.join(betas) or 'none'}."
        )
        parts += [f"Note: {note}" for note in self.notes]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"format": REPORT_FORMAT, "format_version": 1, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainReport:
        """The inverse of `to_dict`.  Raises KeyError or TypeError for other data."""
        parts = {
            name: PartReport(
                **{
                    **part,
                    "scores": {system: Scores(**row) for system, row in part["scores"].items()},
                    "tests": [Bootstrap(**test) for test in part["tests"]],
                    "vote_tests": [Bootstrap(**test) for test in part.get("vote_tests", ())],
                    "speeds": {
                        name: SpeedReport(**row) for name, row in part.get("speeds", {}).items()
                    },
                }
            )
            for name, part in data["parts"].items()
        }
        return cls(
            about=data["about"],
            betas=data["betas"],
            parts=parts,
            run_time=RunTime(**data["run_time"]),
            notes=data["notes"],
            tags={n: TagScores.from_dict(row) for n, row in data.get("tags", {}).items()},
            curves={name: Curve.from_dict(curve) for name, curve in data.get("curves", {}).items()},
            fast=None if data.get("fast") is None else FastReport.from_dict(data["fast"]),
        )


def tags_table(scores: Mapping[str, TagScores]) -> Table:
    """How right predicted tags are, one row a part."""
    return Table(
        title="Tags",
        columns=(
            Column("part", "part", align="left"),
            Column("UPOS", "upos"),
            Column("XPOS", "xpos"),
            Column("UFeats", "ufeats"),
            Column("lemmas", "lemmas"),
        ),
        rows=tuple(
            (name, row.upos, row.xpos, row.ufeats, row.lemmas) for name, row in scores.items()
        ),
        notes=("train: by taggers that did not see the sentence (jackknifed).",),
    )


def table_2(name: str, part: PartReport, title: str = "", *, tags: str = "") -> Table:
    """The paper's Table 2 for one treebank part, with and without punctuation.

    tags: what the parsers saw, such as "gold tags".
    """
    notes = [bootstrap_note(BASE_PARSER, FINAL, test) for test in part.tests]
    notes += [bootstrap_note(VOTE, FINAL, test) for test in part.vote_tests]
    notes.append(
        f"{part.sentences:,} sentences, {part.words:,} words, {part.trees:.1f} candidates a "
        "sentence."
    )
    notes.append(
        "base parser: the (first) parser's own tree; first of the list: the tree that it scores "
        "highest; plain vote: the spanning tree with the most votes of the parsers' own trees; arc "
        "combiner: with votes weighed as it learned; rerankers: their own scores alone; final "
        "system: with the parser's score, or the combiner's; oracle: the best candidate by each "
        "score."
    )
    where = f" on {title}" if title else ""
    kind = f", {tags}" if tags else ""
    return scores_table(f"Scores{where} {name}{kind}", part.scores, notes=notes)


def table_3(run: RunTime) -> Table:
    """The paper's Table 3."""
    rows: tuple[tuple[Cell, ...], ...] = (
        ("sentences", run.sentences),
        ("mean sentence length", f"{run.mean_length:.1f}"),
        ("support parts", run.support_parts),
        ("training time of the reranker", show_seconds(run.training_seconds)),
        ("reranking, tokens/s", round(run.tokens_per_second)),
        ("threads", run.threads),
    )
    return Table(
        title="Runtime of the kernel reranker",
        columns=(Column("", "quantity", align="left"), Column("", "value")),
        rows=rows,
    )


def speeds_table(title: str, speeds: Mapping[str, SpeedReport]) -> Table:
    """What the speeds of the final system are worth, a row each."""
    return Table(
        title=title,
        columns=(
            Column("speed", "speed", align="left"),
            Column("left, %", "left"),
            Column("UAS", "uas"),
            Column("LAS", "las"),
            Column("tokens/s", "tokens_per_second"),
        ),
        rows=tuple(
            (name, row.left, row.uas, row.las, round(row.tokens_per_second))
            for name, row in speeds.items()
        ),
        notes=(
            "By tk-spacy rerank --speed; left: share of the sentences that are left to the quick "
            "parsers, as these were sure, and which no other parser and no reranker saw; tokens/s: "
            "proposing and choosing, tags given.",
        ),
    )


def fast_table(fast: FastReport) -> Table:
    """What was tried for the fast parser, and what it is worth on dev."""
    rows = tuple(
        (
            name,
            fast.tried[name].uas if name in fast.tried else None,
            fast.tried[name].las if name in fast.tried else None,
            None if seconds is None else show_seconds(seconds),
            round(fast.speeds[name]) if name in fast.speeds else None,
            "taken" if name == fast.taken else "",
        )
        for name, seconds in fast.seconds.items()
    )
    return Table(
        title="The fast parser",
        columns=(
            Column("", "parser", align="left"),
            Column("UAS dev", "uas"),
            Column("LAS dev", "las"),
            Column("training", "training"),
            Column("tokens/s", "tokens_per_second"),
            Column("", "taken", align="left"),
        ),
        rows=rows,
        notes=(
            "distilled: learnt from the gold trees and from the final system's probabilities of "
            "arcs; +: the mean of several parsers' scores; tokens/s: parsing, tags given.",
        ),
    )


def costs_table(report: TrainReport) -> Table:
    """What each parser and the whole cost, beside what they are worth."""
    run = report.run_time
    part = list(report.parts)[-1]
    scores = report.parts[part].scores
    rows: list[tuple[Cell, ...]] = []
    for number, parser in enumerate(name for name in run.parser_speeds if name != "all"):
        system = BASE_PARSER if not number else further_parser(parser)
        times = run.parsers.get(parser, {})
        rows.append(
            (
                f"{parser} parser",
                scores[system].las if system in scores else None,
                show_seconds(times["whole"]) if "whole" in times else None,
                show_seconds(times["folds"]) if "folds" in times else None,
                round(run.parser_speeds[parser]),
            )
        )
    if "whole" in run.tagger:
        kind = (report.about.get("tagger") or {}).get("kind", "")
        folds = show_seconds(run.tagger["folds"]) if "folds" in run.tagger else None
        rows.append(
            (f"{kind} tagger".strip(), None, show_seconds(run.tagger["whole"]), folds, None)
        )
    if "tokenizer" in run.tagger:
        rows.append(("tokenizer", None, show_seconds(run.tagger["tokenizer"]), None, None))
    rows.append((FINAL, scores[FINAL].las, None, None, round(_whole_speed(run))))
    return Table(
        title="What the parsers cost",
        columns=(
            Column("", "system", align="left"),
            Column(f"LAS {part}", "las"),
            Column("training", "training"),
            Column("of the folds", "folds"),
            Column("tokens/s", "tokens_per_second"),
        ),
        rows=tuple(rows),
        notes=(
            "training: of the whole treebank's parser or tagger, and of all folds' together, each "
            "of them on one thread; tokens/s: proposing and scoring trees, beside each other.",
        ),
    )


def _whole_speed(run: RunTime) -> float:
    """Words a second with proposing and choosing, one after the other."""
    speeds = [run.parser_speeds["all"], run.tokens_per_second]
    return 1.0 / sum(1.0 / max(speed, 1e-9) for speed in speeds)


def stages_table(run: RunTime) -> Table:
    """Wall time of each stage of the command."""
    rows = [(name, show_seconds(seconds)) for name, seconds in run.stages.items()]
    rows.append(("whole command", show_seconds(run.total_seconds)))
    return Table(
        title="Wall time",
        columns=(Column("stage", "stage", align="left"), Column("time", "time")),
        rows=tuple(rows),
        notes=(f"Peak memory, child processes included: {run.peak_bytes / MEBIBYTE:,.0f} MB.",),
    )
