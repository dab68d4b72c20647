"""The config of a training: written with comments, read, changed by dotted names, stored."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
from named_pipes import pipe
from tiny_spacy import tiny_config
from trainings import list_files, lists_training, options, treebank

from tk_spacy.errors import OptionError, UserError
from tk_spacy.parsers.kinds import all_kinds
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.reranker.settings import LEFT_OPEN, Settings
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.config_file import is_spacy_config, load_value
from tk_spacy.workflows.train.config_schema import SETTINGS
from tk_spacy.workflows.train.config_text import default_config, training_config
from tk_spacy.workflows.train.options import TrainOptions

PATHS = {"paths.train": "t.conllu", "paths.dev": "d.conllu", "paths.output": "model"}
DEFAULTS = TrainOptions(
    train=Path("t.conllu"), dev=Path("d.conllu"), output=Path("model"), left_open=LEFT_OPEN
)
SAMPLING = {"parsers.names": "sampling"}
NO_PARSER = "No parser is trained that these settings are of: "


def said(made: TrainOptions) -> dict[str, Any]:
    """All options but what is noted of where they come from."""
    noted = ("asked", "places", "remarks")
    return {
        name: getattr(made, name) for name in TrainOptions.__dataclass_fields__ if name not in noted
    }


def read(path: Path, text: str, **changes: Any) -> TrainOptions:
    path.write_text(text, encoding="utf-8")
    return train_options(path, {**PATHS, **changes})


def test_config_without_a_file_is_the_defaults() -> None:
    assert said(train_options(None, PATHS)) == said(DEFAULTS)


def test_config_as_it_is_written_is_the_defaults(tmp_path: Path) -> None:
    assert said(read(tmp_path / "all.cfg", default_config())) == said(DEFAULTS)


def test_config_has_every_setting_below_a_comment() -> None:
    lines = default_config().splitlines()
    section, seen = "", []
    for before, line in zip(["", *lines], lines, strict=False):
        assert len(line) <= 100
        line = re.sub(r"^# (?=\w+ = )", "", line)
        if header := re.fullmatch(r"\[(.+)\]", line):
            assert before.startswith("# ")
            section = header[1]
        elif line and not line.startswith("#"):
            # Settings that share a comment stand below it together.
            assert before.startswith("# ") or " = " in before
            seen.append(f"{section}.{line.split(' = ')[0]}")
    assert seen == list(SETTINGS)
    for name in SamplingSettings.__dataclass_fields__:
        assert f"parsers.sampling.{name}" in seen
    for name in Settings.__dataclass_fields__:
        assert f"reranker.{name}" in seen
    text = default_config()
    assert "\n# order: of the largest parts with features, 1 to 3.\norder = 3\n" in text
    assert "None" not in text


@pytest.mark.parametrize(
    ("name", "text", "field", "expected"),
    [
        ("parsers.names", "sampling, udpipe", "parsers", ("sampling", "udpipe")),
        ("parsers.names", '["spacy"]', "parsers", ("spacy",)),
        ("parsers.sampling.order", "2", "sampling", {"order": 2}),
        ("parsers.sampling.order", "3", "sampling", {}),
        ("parsers.sampling.C", "0.5", "sampling", {"C": 0.5}),
        ("parsers.sampling.seed", "0", "sampling", {"seed": 0}),
        ("parsers.sampling.extra", "suffix2,shape", "sampling", {"extra": ("suffix2", "shape")}),
        ("parsers.biaffine.rate", "1", "biaffine", {"rate": 1.0}),
        ("parsers.spacy.backward", "false", "backward", False),
        ("parsers.spacy.config", "my.cfg", "config", Path("my.cfg")),
        ("lists.k", "12", "k", 12),
        ("lists.folds", "3", "folds", 3),
        ("lists.train", "lists.conllu", "candidates", Path("lists.conllu")),
        ("training.seed", "7", "seed", 7),
        ("training.title", "2024", "title", "2024"),
        ("machine.threads", "2", "threads", 2),
        ("paths.workdir", "2024", "workdir", Path("2024")),
    ],
)
def test_config_changes_have_types(name: str, text: str, field: str, expected: object) -> None:
    of_parser = field in ("sampling", "biaffine")
    section, _, of = name.rpartition(".")
    kind = section.removeprefix("parsers.") if of != "names" else "parsers"
    of_kind = {"parsers.names": kind} if kind in all_kinds() else {}
    made = train_options(None, {**PATHS, **of_kind, name: load_value(text)})
    found = made.parser_settings.get(field, {}) if of_parser else getattr(made, field)
    assert found == expected
    assert type(found) is type(expected)


def test_config_of_the_reranker() -> None:
    changes = {
        "reranker.kernel_parts": "arc,sibling",
        "reranker.manual_parts": "none",
        "reranker.C": "inf",
        "reranker.budget": 9,
        "reranker.kernel_scale": 2,
    }
    made = train_options(None, {**PATHS, **changes})
    assert made.settings == Settings(
        kernel_parts=("arc", "sibling"), manual_parts=(), C=math.inf, budget=9, kernel_scale=2.0
    )
    assert made.left_open == {"list_scale"}


def test_config_of_a_part_needs_no_section_above(tmp_path: Path) -> None:
    text = "[parsers.sampling]\norder = 1\n\n[training]\nseed = 4\n"
    made = read(tmp_path / "a.cfg", text, **SAMPLING)
    assert (
        made.parser_settings.get("sampling", {}),
        made.seed,
        made.parser_settings.get("biaffine", {}),
    ) == ({"order": 1}, 4, {})


def test_config_values_stand_for_other_settings(tmp_path: Path) -> None:
    text = '[training]\nseed = 4\ntitle = "a$$b"\n[parsers.sampling]\nseed = ${training.seed}\n'
    made = read(tmp_path / "a.cfg", text, **SAMPLING)
    assert (made.parser_settings.get("sampling", {}), made.title) == ({"seed": 4}, "a$b")
    changed = read(tmp_path / "a.cfg", text, **SAMPLING, **{"training.seed": 5})
    assert (changed.seed, changed.parser_settings.get("sampling", {})) == (5, {"seed": 5})


def test_config_changes_go_before_the_file(tmp_path: Path) -> None:
    text = "[parsers.sampling]\norder = 1\nepochs = 2\n"
    made = read(tmp_path / "a.cfg", text, **SAMPLING, **{"parsers.sampling.order": 3})
    assert made.parser_settings.get("sampling", {}) == {"epochs": 2}


def test_config_of_other_parsers_trees(tmp_path: Path) -> None:
    for part in ("train", "dev"):
        (tmp_path / f"{part}.conllu").touch()
    names = {"parsers.names": "sampling,file:turbo,file:malt"}
    text = (
        f'[parsers.files]\nturbo = "{tmp_path}"\n'
        '[parsers.files.malt]\ntrain = "a.conllu"\ndev = "b.conllu"\n'
    )
    made = read(tmp_path / "a.cfg", text, **names, **{"parsers.files.malt.dev": "c.conllu"})
    assert made.parser_files == {
        "turbo": {"train": tmp_path / "train.conllu", "dev": tmp_path / "dev.conllu"},
        "malt": {"train": Path("a.conllu"), "dev": Path("c.conllu")},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n[parsers.sampling]\nordr = 2\n", ":3: parsers.sampling.ordr is no setting; the nearest "
         "is parsers.sampling.order"),
        ("[sampling]\norder = 2\n", ":2: sampling.order is no setting; the nearest is "
         "parsers.sampling.order"),
        ("[training]\nfolds = 2\n", "the nearest is lists.folds"),
        ("[parsers.sampling]\norder = 2.5\n", "order is 2.5; expected a whole number"),
        ("[parsers.sampling]\norder = null\n", "is null; expected a whole number"),
        ("[parsers.spacy]\nbackward = 1\n", "is 1; expected true or false"),
        ("[reranker]\nskip = [1]\n", "expected a list of names"),
        ("[paths]\ntest = true\n", "paths.test is True; expected a file name in quotes, or null"),
        ("[parsers.sampling]\n# an order\norder = 9\n", ":3: parsers.sampling.order is 9; it"),
        ("[lists]\nfolds = 1\n", ":2: lists.folds is 1; jackknifing needs at least 2"),
        ('[reranker]\nloss = "log"\n', ":2: reranker.loss is 'log'; choose labelled or heads"),
        ("[lists]\nk = 3\nk = 4\n", "[line 3]: option 'k' in section 'lists' already exists"),
        ("[parsers.spacy]\nmax_steps = 3\nmax_steps = 4\n", "[line 3]: option 'max_steps'"),
        ("seed = 1\n", "is no config: File contains no section headers"),
        ("[training]\nseed = ${training.sede}\n", "'training.sede'"),
        ('[parsers.files.x]\ntraining = "a"\n', "parsers.files.x.training is 'a'; give"),
        ('[parsers.files]\nx = "no/such/directory"\n', "give parsers.files.x a directory"),
        ("[training.seed]\nx = 1\n", ":2: training.seed.x is no setting; the nearest is"),
    ],
)  # fmt: skip
def test_config_mistakes_name_file_line_and_cure(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path / "bad.cfg", text)
    assert str(error.value).startswith(f"{tmp_path / 'bad.cfg'}:")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_config_mistakes_of_changes_are_not_the_file_s(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^seed is -1; it must be"):
        read(tmp_path / "a.cfg", "[training]\nseed = 1\n", **{"training.seed": -1})
    with pytest.raises(UserError, match=r"^order is no setting; .* parsers\.sampling\.order$"):
        train_options(None, {**PATHS, "order": 2})


@pytest.mark.parametrize("name", ["paths.train", "paths.output"])
def test_config_needs_files(name: str) -> None:
    with pytest.raises(OptionError, match=f"no {name} is given"):
        train_options(None, {key: value for key, value in PATHS.items() if key != name})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_config_in_a_pipe_is_refused_and_not_read_as_an_empty_one(tmp_path: Path) -> None:
    with pipe(tmp_path / "pipe", b"[training]\nseed = 7\n") as path:
        assert not is_spacy_config(path)
        with pytest.raises(UserError, match=r"pipe: a pipe or device, .* only once; give a file"):
            train_options(path, PATHS)


def test_config_of_spacy_is_told_from_ours(tmp_path: Path) -> None:
    spacys = tiny_config(tmp_path / "tiny.cfg")
    (tmp_path / "ours.cfg").write_text(default_config())
    assert is_spacy_config(spacys)
    assert not is_spacy_config(tmp_path / "ours.cfg")
    assert not is_spacy_config(tmp_path / "missing.cfg")
    with pytest.raises(UserError, match=r"tiny\.cfg: a spaCy training config, .* parsers\.spacy\."):
        train_options(spacys, PATHS)


def test_config_of_any_options_gives_them_again(tmp_path: Path) -> None:
    wanted = TrainOptions(
        train=Path('a "b" $c ${d}.conllu'),
        dev=Path("é.conllu"),
        output=Path("elsewhere"),
        parsers=("sampling", "sampling:order=2:seed=7", "spacy", "udpipe", "file:x"),
        parser_settings={
            "sampling": {"C": 0.1, "extra": ("suffix2",), "seed": 0},
            "udpipe": {"transition_system": "swap"},
        },
        parser_files={"x": {"train": Path("x t"), "dev": Path("x d")}},
        backward=False,
        config=Path("some.cfg"),
        folds=3,
        k=9,
        settings=Settings(kernel_parts=(), C=math.inf, shuffle_seed=0, list_scale=0.5),
        left_open=frozenset({"manual_parts", "kernel_scale"}),
        tuning_folds=0,
        seed=2**32 - 1,
        threads=2,
        processes=1,
        workdir=Path("kept"),
    )
    path = tmp_path / "training.cfg"
    path.write_text(training_config(wanted), encoding="utf-8")
    made = said(train_options(path, {"paths.output": "elsewhere"}))
    # What no result depends on is left open.
    left = {"workdir": None, "threads": None, "processes": None}
    assert made == {**said(wanted), **left}


def test_a_model_holds_the_config_that_trains_it_again(tmp_path: Path) -> None:
    model = lists_training()[0]
    made = train_options(model / "training.cfg", {"paths.output": tmp_path, "machine.threads": 1})
    assert said(made) == said(options(tmp_path))
    assert made.candidates == list_files()["train"]
    assert made.train == treebank()["train"]


def test_a_file_may_have_settings_of_parsers_that_are_not_trained(tmp_path: Path) -> None:
    """As configs of earlier versions have: all sections, and other defaults."""
    path = tmp_path / "before.cfg"
    text = '[parsers]\nnames = ["sampling"]\n[parsers.sampling]\norder = 2\n[parsers.biaffine]\n'
    path.write_text(f"{text}epochs = 7\nseed = null\n", encoding="utf-8")
    made = train_options(path, PATHS)
    assert made.parser_settings == {"sampling": {"order": 2}}
    assert made.remarks == (f"{NO_PARSER}{path}:6: parsers.biaffine.epochs",)
    with pytest.raises(UserError, match=r"biaffine\.epochs concerns the biaffine parser only"):
        train_options(path, {**PATHS, "parsers.biaffine.epochs": 8})

    both = train_options(path, {**PATHS, "parsers.names": ["sampling", "biaffine"]})
    assert both.parser_settings["biaffine"] == {"epochs": 7}
    assert both.remarks == ()


def test_a_file_with_ready_lists_may_have_settings_of_parsers(tmp_path: Path) -> None:
    path = tmp_path / "before.cfg"
    lists = '[lists]\ntrain = "t"\ndev = "d"\n'
    path.write_text(f"{lists}[parsers.biaffine]\nepochs = 7\n", encoding="utf-8")
    made = train_options(path, PATHS)
    assert made.parser_settings == {}
    assert made.remarks == (f"{NO_PARSER}{path}:5: parsers.biaffine.epochs",)


def test_a_models_config_has_no_settings_of_other_kinds_of_parsers(tmp_path: Path) -> None:
    sections = training_config(train_options(None, {**PATHS, "parsers.names": ["sampling"]}))
    assert "[parsers.sampling]" in sections
    assert "[parsers.biaffine]" not in sections
    assert "[parsers.udpipe]" not in sections
