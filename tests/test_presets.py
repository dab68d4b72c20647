"""Presets of a training, what they set, and what they are estimated to cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tk_spacy.errors import UserError
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.config_text import default_config, training_config
from tk_spacy.workflows.train.estimate import Estimate, pace, rough, spread
from tk_spacy.workflows.train.options import TrainOptions

QUICK = ("biaffine", "transition", "transition:direction=backward")
STANDARD = ("biaffine", "biaffine:seed=1", *QUICK[1:])
FILES = {"paths.train": "train.conllu", "paths.output": "model"}


def options(config: Path | None = None, **changes: Any) -> TrainOptions:
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return train_options(config, {**FILES, **named})


def test_preset_standard_is_the_defaults() -> None:
    assert options(training__preset="standard").parsers == options().parsers
    assert options().preset == "standard"
    assert (options().parsers, options().folds) == (STANDARD, None)


def test_preset_quick_and_best() -> None:
    quick, best = options(training__preset="quick"), options(training__preset="best")
    assert (quick.parsers, quick.folds) == (QUICK, None)
    assert quick.parser_settings == {"biaffine": {"epochs": 30}}
    assert quick.tokenizer == "udpipe:epochs=10"
    assert best.parsers == (*STANDARD, "biaffine:seed=2", "sampling", "spacy")
    assert (best.folds, best.max_steps) == (None, 1500)
    assert best.parser_settings == {"biaffine": {"epochs": 100}}


def test_what_the_user_says_goes_before_a_preset(tmp_path: Path) -> None:
    own = options(training__preset="quick", lists__folds=4)
    assert (own.folds, own.parsers) == (4, QUICK)
    config = tmp_path / "own.cfg"
    config.write_text('[training]\npreset = "quick"\n[lists]\nfolds = 7\n', encoding="utf-8")
    assert (options(config).folds, options(config).tokenizer) == (7, "udpipe:epochs=10")
    # Another preset for a model's own file, which has all settings, changes what was not chosen.
    made = tmp_path / "training.cfg"
    made.write_text(training_config(options(config)), encoding="utf-8")
    again = options(made)
    assert (again.folds, again.preset, again.parsers) == (7, "quick", QUICK)
    standard = options(made, training__preset="standard")
    assert (standard.folds, standard.tokenizer) == (7, "udpipe")
    assert standard.parsers == STANDARD


@pytest.mark.parametrize("preset", ["quick", "standard", "best"])
def test_a_preset_written_into_an_untouched_config_counts(tmp_path: Path, preset: str) -> None:
    config = tmp_path / "my.cfg"
    text = default_config()
    assert text.count('preset = "standard"') == 1
    config.write_text(text.replace('preset = "standard"', f'preset = "{preset}"'), encoding="utf-8")
    made, plain = options(config), options(training__preset=preset)
    assert replace(made, asked=plain.asked) == plain


def test_a_preset_says_nothing_of_parsers_left_out_by_name() -> None:
    best = options(training__preset="best", parsers__names=list(STANDARD))
    assert (best.parsers, best.max_steps) == (STANDARD, None)
    assert best.parser_settings == {"biaffine": {"epochs": 100}}


def test_a_preset_says_nothing_of_what_there_is_not() -> None:
    gold = options(training__preset="quick", tags__source="gold")
    assert gold.tokenizer == "udpipe"
    alone = options(training__preset="best", parsers__names="sampling")
    assert (alone.parser_settings, alone.max_steps) == ({}, None)
    lists = {"lists__train": "a.kbest", "lists__dev": "b.kbest", "paths__dev": "dev.conllu"}
    with pytest.raises(UserError, match="preset would have no effect: candidates are given"):
        options(training__preset="quick", **lists)
    with pytest.raises(UserError, match="preset is 'fast'; choose from quick, standard, best"):
        options(training__preset="fast")


def test_a_training_takes_as_long_as_its_fullest_core() -> None:
    assert spread([3, 1, 1, 1], 2) == 3
    assert spread([3, 1, 1, 1], 1) == 6
    assert spread([2, 2, 2], 2) == 4
    assert spread([], 2) == 0


def test_pace_tells_a_machine_half_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.2 <= pace() <= 5
    monkeypatch.setattr("tk_spacy.workflows.train.estimate.PRODUCT_SECONDS", 1e-9)
    assert pace() == 5
    ticks = iter(range(100))
    monkeypatch.setattr("tk_spacy.workflows.train.estimate.PRODUCT_SECONDS", 0.5)
    monkeypatch.setattr("time.thread_time", lambda: float(next(ticks)))
    assert pace() == 2


def test_an_estimate_in_a_line() -> None:
    found = Estimate({"tags": 120.0, "parsers": 1500.0, "reranker": 60.0}, cores=2)
    assert found.line() == "about 30 minutes on 2 cores (tags 2 minutes, parsers 25 minutes)"
    assert [rough(s) for s in (1, 44, 100, 1200, 7200)] == [
        "10 seconds", "40 seconds", "2 minutes", "20 minutes", "2.0 hours",
    ]  # fmt: skip
