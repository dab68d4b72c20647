"""Presets of a training, what they set, and what they are estimated to cost."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tk_spacy.errors import UserError
from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.reranker.settings import Settings, suit
from tk_spacy.treebank.conllu import write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.config_file import read_config
from tk_spacy.workflows.train.config_schema import SETTINGS
from tk_spacy.workflows.train.config_text import default_config, training_config
from tk_spacy.workflows.train.estimate import (
    Estimate,
    estimate,
    estimate_folds,
    pace,
    rough,
    spread,
)
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.presets import PRESETS

QUICK = ("biaffine", "transition", "transition:direction=backward")
STANDARD = ("biaffine", "biaffine:seed=1", *QUICK[1:])
CONFIG = Path(__file__).parents[1] / "configs" / "paper.cfg"
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


@pytest.mark.parametrize("preset", ["quick", "standard", "best", "paper"])
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


def test_a_jackknife_alone_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tk_spacy.workflows.train.estimate.pace", lambda: 1.0)
    parsers = make_parsers(["transition", "transition:direction=backward"], xpos=True)
    found = estimate_folds(parsers, 10_000, folds=5, processes=1)
    training = sum(parser.seconds(8000) for parser in parsers)
    # Each parser's lists take half a millisecond a word.
    assert found.seconds == pytest.approx(5 * training + 2 * 10_000 * 0.0005)
    assert found.line() == f"about {rough(found.seconds)} on 1 core"


# The first paper's own setting


def of_paper(**changes: Any) -> TrainOptions:
    return options(training__preset="paper", **changes)


def test_preset_paper_is_taub_tabib_et_al_s_setting() -> None:
    paper = of_paper()
    assert (paper.tags, paper.parsers, paper.list_length, paper.folds) == (
        "gold", ("sampling",), 25, 20,
    )  # fmt: skip
    assert paper.parser_settings == {"sampling": {"crossing": False}}
    parser = SamplingSettings(**paper.parser_settings["sampling"])
    assert (parser.order, parser.kernel_scale, parser.extra) == (3, 0.0, ())
    settings = suit(paper.settings, paper.left_open, ("sampling",))
    assert settings == Settings(
        kernel_parts=("arc",),
        manual_parts=("arc", "sibling", "grandparent", "grand-sibling", "tri-sibling"),
        list_features=(),
        list_scale=settings.list_scale,  # of no features
        iterations=10,
        C=math.inf,
        loss="heads",
        competitor="best",
        kernel_scale=1.0,
        combiner=False,
        count_single=True,
    )
    assert (settings.skip, settings.use_lemma, settings.add_gold) == ((), False, False)
    assert (settings.shuffle_seed, settings.budget) == (None, None)
    assert (paper.tuning_folds, paper.paper_grid, paper.raw_scores, paper.tuning_metric) == (
        1, True, True, "uas",
    )  # fmt: skip


def test_preset_paper_and_its_config_say_the_same(tmp_path: Path) -> None:
    by_file, by_preset = options(CONFIG), of_paper()
    assert replace(by_file, asked=by_preset.asked) == by_preset
    assert by_file.remarks == ()
    # All of it stands in the file, also what the preset leaves to the defaults.
    text = CONFIG.read_text(encoding="utf-8")
    alone = tmp_path / "alone.cfg"
    alone.write_text(text.replace('preset = "paper"\n', ""), encoding="utf-8")
    same = options(alone)
    assert same.preset == "standard"
    assert replace(same, preset="paper", asked=by_preset.asked) == by_preset
    said = read_config(CONFIG, {})
    assert {*PRESETS["paper"], "training.preset"} <= said.keys()
    assert all(name in SETTINGS for name in said)


def test_what_the_user_says_goes_before_preset_paper() -> None:
    changed = of_paper(tags__source="own", reranker__kernel_scale=0.1, lists__k=8)
    assert (changed.tags, changed.settings.kernel_scale, changed.list_length) == ("own", 0.1, 8)
    assert changed.folds == 20
    untuned = of_paper(training__tuning_folds=0)
    assert (untuned.paper_grid, untuned.raw_scores, untuned.tuning_metric) == (False, False, "las")
    with pytest.raises(UserError, match="raw_scores would have no effect: tuning_folds is 0"):
        options(training__tuning_folds=0, training__raw_scores=True)
    with pytest.raises(UserError, match="tuning_metric is 'clas'; choose from las, uas"):
        options(training__tuning_metric="clas")


def test_preset_paper_trains_the_reranker_alone_from_ready_lists() -> None:
    lists = {"lists__train": "a.kbest", "lists__dev": "b.kbest", "paths__dev": "dev.conllu"}
    ready = of_paper(**lists)
    assert (ready.folds, ready.list_length, ready.parser_settings) == (None, 25, {})
    assert (ready.settings.loss, ready.settings.kernel_scale) == ("heads", 1.0)
    assert (ready.settings.manual_parts, ready.raw_scores) == (tuple(PART_TYPES), True)
    files = {name: Path(name) for name in ("train", "dev")}
    others = {f"parsers__files__turbo__{name}": str(path) for name, path in files.items()}
    of_files = of_paper(parsers__names="file:turbo", paths__dev="dev.conllu", **others)
    assert (of_files.folds, of_files.settings.loss) == (None, "heads")


def test_a_model_of_preset_paper_trains_again_the_same(tmp_path: Path) -> None:
    config = tmp_path / "training.cfg"
    paper = of_paper()
    config.write_text(training_config(paper), encoding="utf-8")
    again = options(config)
    assert replace(again, places={}, asked=paper.asked) == paper
    assert replace(options(config, training__preset="standard"), asked=frozenset()) == replace(
        options(), asked=frozenset()
    )


def test_the_paper_s_twenty_folds_are_in_the_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {}
    for name, n, seed in (("train", 80, 0), ("dev", 10, 1)):
        files[f"paths__{name}"] = str(tmp_path / f"{name}.conllu")
        write_conllu(tmp_path / f"{name}.conllu", generate(n, seed=seed))
    files["paths__output"] = str(tmp_path / "model")
    plan = make_plan(of_paper(**files, machine__processes=1))
    assert (plan.folds, plan.tagger, plan.tokenizer) == (20, None, None)
    n = plan.parts["train"].words
    (parser,) = plan.parsers
    monkeypatch.setattr("tk_spacy.workflows.train.estimate.pace", lambda: 1.0)
    found = estimate(plan)
    assert list(found.stages) == ["parsers", "reranker"]
    trainings = parser.seconds(n) + 20 * parser.seconds(n - n // 20)
    assert found.stages["parsers"] == pytest.approx(trainings + n // 20 * 20 * 0.0005, rel=0.01)
