"""`tk-spacy init-config`, and how `train` takes settings: --config, --set, options of old."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_cli import invoke
from test_config import DEFAULTS, said
from tiny_spacy import tiny_config
from trainings import lists_training

import tk_spacy.cli.demo as demo_command
import tk_spacy.cli.train as command
from tk_spacy.cli.old_options import OLD_OPTIONS
from tk_spacy.cli.wording import as_options
from tk_spacy.errors import UserError
from tk_spacy.parsers.names import EARLIER_PARSERS
from tk_spacy.reranker.settings import LEFT_OPEN, Settings
from tk_spacy.workflows.train.config_schema import SETTINGS
from tk_spacy.workflows.train.config_text import default_config
from tk_spacy.workflows.train.options import TrainOptions

FILES = ("t.conllu", "--dev", "d.conllu", "-o", "model")


@pytest.fixture
def options_of(monkeypatch: pytest.MonkeyPatch):
    """The options that a command line stands for, and what it says on stderr."""
    seen: list[TrainOptions] = []

    def stop(options: TrainOptions, **_: object) -> None:
        seen.append(options)
        raise UserError("stopped")

    monkeypatch.setattr(command, "train_pipeline", stop)

    def run(*arguments: object) -> tuple[TrainOptions, str]:
        seen.clear()
        result = invoke("train", *arguments)
        assert seen, result.output
        return seen[0], result.stderr.removesuffix("Error: stopped\n")

    return run


def test_cli_init_config_untouched_is_the_defaults(tmp_path: Path, options_of) -> None:
    result = invoke("init-config", tmp_path / "my.cfg")
    assert result.exit_code == 0
    assert (tmp_path / "my.cfg").read_text(encoding="utf-8") == default_config()
    plain, _ = options_of(*FILES)
    with_config, notes = options_of(*FILES, "--config", tmp_path / "my.cfg")
    assert plain == with_config
    assert said(plain) == said(DEFAULTS)
    assert notes == ""


def test_cli_init_config_writes_over_nothing(tmp_path: Path) -> None:
    (tmp_path / "my.cfg").write_text("mine")
    refused = invoke("init-config", tmp_path / "my.cfg")
    assert refused.exit_code == 1
    assert "exists already" in refused.stderr
    assert (tmp_path / "my.cfg").read_text() == "mine"
    shown = invoke("init-config", tmp_path / "my.cfg", "--overwrite", "--json")
    assert json.loads(shown.stdout)["settings"] == len(SETTINGS)
    assert invoke("init-config", "-").stdout == default_config()


def test_cli_train_shows_the_options_of_every_day() -> None:
    shown = invoke("train", "--help").stdout
    everyday, _, advanced = shown.partition("Advanced options")
    flags = set(re.findall(r"(?<=│ )--[a-z-]+", everyday)) - {"--help"}
    assert set(re.findall(r"(?<=│ )--[a-z-]+", advanced)) == {
        "--distill", "--text", "--cluster", "--shared-files",
    }  # fmt: skip
    assert {"--parsers", "--config", "--set", "--folds", "--seed", "--output"} <= flags
    assert len(flags) <= 16
    for option in OLD_OPTIONS:
        for flag in option.flags[0].split("/"):
            assert f"{flag} " not in shown


def test_cli_train_distills_where_it_is_asked_to(options_of) -> None:
    made, _ = options_of(*FILES, "--distill", "--text", "a.txt", "--set", "distillation.joined=2")
    assert (made.distill, made.text, made.joined) == (True, Path("a.txt"), 2)
    assert not options_of(*FILES)[0].distill


def test_cli_train_options_change_a_config(tmp_path: Path, options_of) -> None:
    (tmp_path / "a.cfg").write_text(
        '[paths]\ntrain = "x.conllu"\ndev = "y.conllu"\noutput = "there"\n'
        "[parsers.sampling]\norder = 1\nepochs = 2\n[training]\nseed = 3\n"
    )
    made, notes = options_of(
        "--config", tmp_path / "a.cfg", "--set", "parsers.sampling.order=2", "--seed", 4,
        "--set", "reranker.skip=h,m", "-o", "here", "--parsers", "sampling",
    )  # fmt: skip
    assert (made.train, made.dev, made.output) == (Path("x.conllu"), Path("y.conllu"), Path("here"))
    assert (made.parser_settings.get("sampling", {}), made.seed) == ({"order": 2, "epochs": 2}, 4)
    assert (made.settings.skip, made.parsers) == (("h", "m"), ("sampling",))
    assert notes == ""


# Each option that there was before there was a config, the value that it then had, and what to
# write instead.
OLD: list[tuple[tuple[object, ...], dict[str, Any], str]] = [
    (("--workdir", "w"), {"workdir": Path("w")}, "--set paths.workdir=w"),
    (("--name", "my_model"), {"name": "my_model"}, "--set model.name=my_model"),
    (("--processes", 3), {"processes": 3}, "--set machine.processes=3"),
    (("--views", "sampling"), {"parsers": ("sampling",)}, "--parsers sampling"),
    (
        ("--epochs", 3),
        {"parser_settings": {"sampling": {"epochs": 3}}},
        "--set parsers.sampling.epochs=3",
    ),
    (
        ("--order", 1),
        {"parser_settings": {"sampling": {"order": 1}}},
        "--set parsers.sampling.order=1",
    ),
    (
        ("--restarts", 2),
        {"parser_settings": {"sampling": {"restarts": 2}}},
        "--set parsers.sampling.restarts=2",
    ),
    (
        ("--extra", "shape"),
        {"parser_settings": {"sampling": {"extra": ("shape",)}}},
        "sampling.extra=shape",
    ),
    (
        ("--parser-kernel-scale", 0.1),
        {"parser_settings": {"sampling": {"kernel_scale": 0.1}}},
        "--set parsers.sampling.kernel_scale=0.1",
    ),
    (
        ("--udpipe", "iterations=3,transition_system=swap", "--views", "sampling,udpipe"),
        {
            "parser_settings": {"udpipe": {"iterations": 3, "transition_system": "swap"}},
            "parsers": ("sampling", "udpipe"),
        },
        "--set parsers.udpipe.iterations=3 --set parsers.udpipe.transition_system=swap",
    ),
    (
        ("--view-file", "x.train=a", "--view-file", "x.dev=b", "--views", "sampling,file:x"),
        {
            "parser_files": {"x": {"train": Path("a"), "dev": Path("b")}},
            "parsers": ("sampling", "file:x"),
        },
        "--set parsers.files.x.train=a --set parsers.files.x.dev=b",
    ),
    (
        ("--biaffine-epochs", 2),
        {"parser_settings": {"biaffine": {"epochs": 2}}},
        "parsers.biaffine.epochs=2",
    ),
    (
        ("--upstream", "some"),
        {"parsers": ("spacy",), "spacy_pipeline": "some"},
        "--parsers spacy --set parsers.spacy.pipeline=some",
    ),
    (
        ("--upstream", "some", "--views", "sampling,spacy"),
        {"parsers": ("sampling", "spacy"), "spacy_pipeline": "some"},
        "--set parsers.spacy.pipeline=some",
    ),
    (("--no-backward",), {"backward": False}, "--set parsers.spacy.backward=false"),
    (("--max-steps", 9), {"max_steps": 9}, "--set parsers.spacy.max_steps=9"),
    (("--search", "beam"), {"search": "beam"}, "--set parsers.spacy.search=beam"),
    (("--k", 7), {"k": 7}, "--set lists.k=7"),
    (
        ("--candidates", "a", "--dev-candidates", "b"),
        {"candidates": Path("a"), "dev_candidates": Path("b")},
        "--set lists.train=a --set lists.dev=b",
    ),
    (("--paper-grid",), {"paper_grid": True}, "--set training.paper_grid=true"),
    (("--tuning-folds", 1), {"tuning_folds": 1}, "--set training.tuning_folds=1"),
]
OLD_OF_RERANKER: list[tuple[tuple[object, ...], dict[str, Any], str]] = [
    (("--kernel-parts", "arc, sibling"), {"kernel_parts": ("arc", "sibling")}, "'arc, sibling'"),
    (("--manual-parts", "none"), {"manual_parts": ()}, "reranker.manual_parts=none"),
    (("--list-features", "shares"), {"list_features": ("shares",)}, "list_features=shares"),
    (("--list-scale", 2), {"list_scale": 2.0}, "reranker.list_scale=2.0"),
    (("--iterations", 3), {"iterations": 3}, "reranker.iterations=3"),
    (("-C", 0.5), {"C": 0.5}, "reranker.C=0.5"),
    (("--aggressiveness", 0.5), {"C": 0.5}, "reranker.C=0.5"),
    (("--loss", "heads"), {"loss": "heads"}, "reranker.loss=heads"),
    (("--competitor", "best"), {"competitor": "best"}, "reranker.competitor=best"),
    (("--skip", "h,m"), {"skip": ("h", "m")}, "reranker.skip=h,m"),
    (("--kernel-scale", 3), {"kernel_scale": 3.0}, "reranker.kernel_scale=3.0"),
    (("--bits", 12), {"bits": 12}, "reranker.bits=12"),
    (("--budget", 5), {"budget": 5}, "reranker.budget=5"),
    (("--lemma",), {"use_lemma": True}, "reranker.use_lemma=true"),
    (("--no-combiner",), {"combiner": False}, "reranker.combiner=false"),
    (("--properties", "shape"), {"properties": ("shape",)}, "reranker.properties=shape"),
    (("--shuffle-seed", 0), {"shuffle_seed": 0}, "reranker.shuffle_seed=0"),
    (("--add-gold",), {"add_gold": True}, "reranker.add_gold=true"),
]


@pytest.mark.parametrize(("arguments", "expected", "instead"), OLD)
def test_cli_train_takes_the_options_of_old(
    options_of, arguments: tuple[object, ...], expected: dict[str, Any], instead: str
) -> None:
    made, notes = options_of(*FILES, *arguments)
    # What concerned the parsers of that time alone still does, and says whose setting it is.
    kinds = {
        *expected.get("parser_settings", {}),
        *({"backward", "max_steps", "search"} & {*expected}),
    }
    parsers = {"parsers": EARLIER_PARSERS} if kinds - {"biaffine"} else {}
    assert said(made) == {**said(DEFAULTS), **parsers, **expected}
    (line,) = notes.splitlines()
    assert line.startswith("Options that are settings now work as before; write: --")
    assert instead in line


@pytest.mark.parametrize(("arguments", "expected", "instead"), OLD_OF_RERANKER)
def test_cli_train_takes_the_options_of_old_of_the_reranker(
    options_of, arguments: tuple[object, ...], expected: dict[str, Any], instead: str
) -> None:
    made, notes = options_of(*FILES, *arguments)
    assert made.settings == Settings(**expected)
    assert made.left_open == LEFT_OPEN - expected.keys()
    assert instead in notes


def test_cli_train_knows_every_option_of_old() -> None:
    tested = {
        str(part).split("=")[0]
        for arguments, _, _ in [*OLD, *OLD_OF_RERANKER]
        for part in arguments
        if str(part).startswith("-")
    }
    flags = {flag for option in OLD_OPTIONS for part in option.flags for flag in part.split("/")}
    untested = {"--backward", "--combiner", "--no-lemma", "--no-add-gold", "--test-candidates"}
    assert flags - tested == untested | {"--parser-file"}


def test_cli_train_takes_what_the_old_options_say_to_write(options_of) -> None:
    for arguments, _, _ in [*OLD, *OLD_OF_RERANKER]:
        before, notes = options_of(*FILES, *arguments)
        instead = notes.split("write: ")[1].strip()
        words = [word.strip("'") for word in re.findall(r"(?:[^\s'=]+=)?'[^']*'|\S+", instead)]
        words = [re.sub(r"='(.*)$", r"=\1", word) for word in words]
        if before.parser_files or "udpipe" in before.parser_settings:
            assert "--parsers" in words
        after, silence = options_of(*FILES, *words)
        assert silence == ""
        assert after == before


def test_cli_train_still_takes_a_spacy_config(tmp_path: Path, options_of) -> None:
    config = tiny_config(tmp_path / "tiny.cfg")
    made, notes = options_of(*FILES, "--views", "spacy", "--config", config)
    assert made.config == config
    assert f"--set parsers.spacy.config={config} (a spaCy training config)" in notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dev", "d", "-o", "m"), "no TREEBANK is given: Treebank to train on: a CoNLL-U file;"),
        (("t.conllu", "--dev", "d"), "no --output is given"),
        ((*FILES, "--set", "training.seed=1", "--seed", 2), "--seed and --set training.seed say"),
        ((*FILES, "--set", "lists.k=3", "--k", 4), "--set lists.k say the same thing"),
        ((*FILES, "--set", "training.seed"), "write section.key=value"),
        ((*FILES, "--set", "lists.k=3", "--set", "lists.k=4"), "lists.k is given twice"),
        (
            (*FILES, "--views", "spacy", "--parsers", "spacy"),
            "is the old name of --parsers",
        ),
    ],
)
def test_cli_train_usage_mistakes(arguments: tuple[object, ...], message: str) -> None:
    result = invoke("train", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_cli_train_notes_what_a_file_says_of_other_parsers(tmp_path: Path, options_of) -> None:
    config = tmp_path / "my.cfg"
    config.write_text("[parsers.biaffine]\nepochs = 7\n", encoding="utf-8")
    _, notes = options_of(*FILES, "--config", config, "--parsers", "sampling")
    said_once = "No parser is trained that these settings are of:"
    assert " ".join(notes.split()) == f"{said_once} {config}:2: parsers.biaffine.epochs"
    assert options_of(*FILES, "--config", config)[1] == ""


def test_cli_trains_a_model_again_by_its_own_config(tmp_path: Path) -> None:
    model = lists_training()[0]
    again = invoke(
        "train", "--config", model / "training.cfg", "-o", tmp_path / "model", "--threads", 1, "-q"
    )
    assert again.exit_code == 0, again.output
    for path in model.rglob("*"):
        # Reports hold times.
        if path.is_file() and not path.name.startswith("report."):
            assert (tmp_path / "model" / path.relative_to(model)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("flag", ["--views", "--parsers"])
def test_cli_demo_takes_the_old_name_of_parsers(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    seen: dict[str, Any] = {}

    def stop(directory: Path, **choices: Any) -> None:
        seen.update(choices)
        raise UserError("stopped")

    monkeypatch.setattr(demo_command, "demo", stop)
    invoke("demo", flag, "sampling, spacy")
    assert seen["parsers"] == ("sampling", "spacy")
    assert "--views" not in invoke("demo", "--help").stdout


def test_cli_says_options_where_the_library_says_arguments() -> None:
    said = "m: exists already; replaced only on demand (overwrite)"
    assert as_options(said) == "m: exists already; replaced only on demand (--overwrite)"
    assert as_options("take its arcs alone (arcs_only), or") == (
        "take its arcs alone (--arcs-only), or"
    )
    assert as_options("no paths.output is given: Directory") == "no --output is given: Directory"
    assert as_options("overwrite (the file) is 3") == "overwrite (the file) is 3"


def test_commands_have_one_file_and_work_below() -> None:
    """A command's file declares and shows; it neither reads treebanks nor trains."""
    folder = Path(inspect.getfile(command)).parent
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "load_treebank" not in text
        assert "read_conllu" not in text
        assert "Reranker.from_disk" not in text
