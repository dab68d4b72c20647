"""The steps from the paper's setting to our defaults, and the tables about them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import benchmark_paper
import pytest
from benchmark_paper import STEPS, app, changes_of, lists_of, options_of, tables
from typer.testing import CliRunner

from tk_spacy.evaluation.attachment import METRICS, Scores
from tk_spacy.evaluation.report import (
    BASE_PARSER,
    BASE_RERANKER,
    FINAL,
    KERNEL_RERANKER,
    ORACLE,
    PartReport,
    RunTime,
    TrainReport,
)
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.options import TrainOptions

TREEBANK = Path("release/UD_Owl-Wood")


def plain(options: TrainOptions) -> TrainOptions:
    """Without what is not about the setting."""
    return replace(options, output=Path("m"), workdir=None, asked=frozenset(), preset="standard")


def by_preset(preset: str) -> TrainOptions:
    given = {"paths.train": (TREEBANK,), "paths.output": "m", "tags.source": "gold"}
    return plain(train_options(None, {**given, "training.preset": preset}))


def test_steps_lead_from_the_paper_s_setting_to_our_defaults() -> None:
    made = [plain(options_of(TREEBANK, Path("w"), step)) for step in range(len(STEPS))]
    assert made[0] == by_preset("paper")
    assert made[-1] == by_preset("standard")
    for before, after in pairwise(made):
        assert before != after


def test_steps_with_the_same_lists_share_a_work_directory() -> None:
    names = [lists_of(step) for step in range(len(STEPS))]
    assert names == ["lists-00"] * 8 + ["lists-08"] + ["lists-09"] * 3
    assert changes_of(0) == {}
    assert changes_of(2) == {
        "reranker.list_features": ("scores", "shares"), "reranker.loss": "labelled",
    }  # fmt: skip
    assert options_of(TREEBANK, Path("w"), 3).workdir == Path("w/UD_Owl-Wood/lists-00")


def scores(uas: float) -> Scores:
    values = dict.fromkeys(METRICS, uas - 10) | {"uas": uas, "uas_nopunct": uas + 1.234}
    return Scores(sentences=3, words=20, words_nopunct=18, **values)


def report(uas: float) -> TrainReport:
    systems = (BASE_PARSER, BASE_RERANKER, KERNEL_RERANKER, FINAL, ORACLE)
    part = PartReport(
        sentences=3, words=20, trees=2.0, tokens_per_second=50.0, tests=[],
        scores={name: scores(uas + i) for i, name in enumerate(systems)},
    )  # fmt: skip
    return TrainReport(
        about={},
        betas={"sampling": 0.35},
        parts={"test": part},
        run_time=RunTime(
            sentences=1460, mean_length=36.6, support_parts=15466, training_seconds=360.0,
            tokens_per_second=551.4, threads=2, stages={}, total_seconds=1.0, peak_bytes=1,
        ),
    )  # fmt: skip


def test_tables_have_the_paper_s_rows_and_a_row_for_each_step() -> None:
    second, third, steps = tables({"UD_Owl-Wood": [report(80), report(81)]}, "test")
    assert second.records() == [
        {"name": name, "UD_Owl-Wood": pytest.approx(value)}
        for name, value in (
            ("base parser", 81.234), ("base reranker", 82.234), ("kernel reranker", 83.234),
            ("final system", 84.234), ("oracle", 85.234),
        )
    ]  # fmt: skip
    assert [(row["name"], row["UD_Owl-Wood"]) for row in third.records()] == [
        ("sentences", "1,460"), ("mean sentence length", "37"), ("support parts", "15,466"),
        ("training time", "6 min 00 s"), ("tokens/sec", "551"), ("threads", "2"),
    ]  # fmt: skip
    first, more = steps.records()
    assert (first["step"], more["step"]) == ("the paper's setting", "+ features of the list")
    assert (first["base parser"], first["final system"]) == ("80.00 / 70.00", "83.00 / 73.00")
    assert (more["final system"], more["beta"]) == ("84.00 / 74.00", "0.35")


def test_what_is_trained_already_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []

    def train(options: TrainOptions, **_: Any) -> TrainReport:
        made = report(80 + len(seen))
        options.output.mkdir(parents=True)
        text = json.dumps(made.to_dict())
        (options.output / "report.json").write_text(text, encoding="utf-8")
        seen.append(options.output)
        return made

    monkeypatch.setattr(benchmark_paper, "train_pipeline", train)
    command = [str(TREEBANK), "--work", str(tmp_path), "--steps"]
    once = CliRunner().invoke(app, [*command, "2"])
    assert once.exit_code == 0, once.output
    folder = tmp_path / "UD_Owl-Wood"
    assert seen == [folder / "step-00", folder / "step-01"]
    again = CliRunner().invoke(app, [*command, "3"])
    assert seen == [folder / "step-00", folder / "step-01", folder / "step-02"]
    for text in ("84.23", "**Table 3", "| + loss on labels too | 82.00 / 72.00 |"):
        assert text in again.output
