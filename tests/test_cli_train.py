"""`tk-spacy train`: options, output, and mistakes that are found before any work."""

import json
import os
from pathlib import Path

import pytest
from samples import NO_TREE
from test_cli import invoke
from tiny_spacy import tiny_config
from trainings import list_files, lists_training, stripped, treebank

from tk_spacy.reranker.settings import Settings
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.options import TrainOptions

QUICK = ("--manual-parts", "arc", "--iterations", 3, "--bits", 12, "--threads", 1)


def train(output: Path, *arguments: object, **files: object):
    """Train from ready lists, with other files where given."""
    found = {**treebank(), **files}
    lists = {f"{name}_lists": path for name, path in list_files().items()} | files
    return invoke(
        "train", found["train"], "--dev", found["dev"], "--test", found["test"], "-o", output,
        "--candidates", lists["train_lists"], "--dev-candidates", lists["dev_lists"],
        "--test-candidates", lists["test_lists"], *QUICK, *arguments,
    )  # fmt: skip


def assert_refused(result, directory: Path, message: str) -> None:
    """One line on stderr says why, nothing is written, no traceback."""
    assert result.exit_code == 1, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert message in line
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert not (directory / "model").exists()
    assert not (directory / "model.work").exists()


def test_cli_train_shows_the_tables(tmp_path: Path) -> None:
    result = train(tmp_path / "model")
    assert result.exit_code == 0, result.output
    for text in (
        "Scores on UD_Synthetic dev", "Scores on UD_Synthetic test", "base parser",
        "base reranker", "kernel reranker", "final system", "oracle", "UAS no punct.",
        "final system - base parser", "support parts", "tokens/s", "Peak memory",
    ):  # fmt: skip
        assert text in result.stdout
    score = lists_training()[1].parts["test"].scores["final system"].uas
    assert f"{score:.2f}" in result.stdout
    assert "training the kernel reranker" in result.stderr


def test_cli_train_json_is_the_report(tmp_path: Path) -> None:
    result = train(tmp_path / "model", "--json", "--quiet")
    document = json.loads(result.stdout)
    assert result.stderr == ""
    assert document["model"] == str(tmp_path / "model")
    saved = json.loads((tmp_path / "model" / "report.json").read_text(encoding="utf-8"))
    assert saved == {name: value for name, value in document.items() if name != "model"}
    report = lists_training()[1].to_dict()
    assert document["parts"]["dev"]["scores"] == report["parts"]["dev"]["scores"]


def test_cli_train_options_reach_the_settings(tmp_path: Path) -> None:
    result = train(
        tmp_path / "model", "--kernel-parts", "arc, sibling", "--manual-parts", "none",
        "--iterations", 2, "-C", "0.5", "--loss", "heads", "--competitor", "violator", "--skip",
        "h,m", "--kernel-scale", "2", "--lemma", "--shuffle-seed", 3, "--add-gold", "--bits", 9,
        "--list-features", "shares", "--list-scale", 2,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert open_model(tmp_path / "model").reranker.settings == Settings(
        kernel_parts=("arc", "sibling"), manual_parts=(), iterations=2, C=0.5, loss="heads",
        competitor="violator", skip=("h", "m"), kernel_scale=2.0, bits=9, use_lemma=True,
        shuffle_seed=3, add_gold=True, list_features=("shares",), list_scale=2.0,
    )  # fmt: skip


def test_cli_train_says_what_the_final_score_is(tmp_path: Path) -> None:
    shown = " ".join(train(tmp_path / "model", "--tuning-folds", 0).output.split())
    assert "Final score = reranker alone: beside it the parser's score was given no" in shown


def test_cli_train_paper_grid(tmp_path: Path) -> None:
    train(tmp_path / "model", "--paper-grid")
    combination = open_model(tmp_path / "model").reranker.combination
    assert combination is not None
    beta = combination.betas["spacy"]
    assert beta <= 3
    assert beta * 20 == pytest.approx(round(beta * 20))


@pytest.mark.parametrize(
    ("option", "value"),
    [("--k", 0), ("--folds", 1), ("--threads", 0), ("--bits", 99), ("--iterations", "many")],
)
def test_cli_train_wrong_numbers_are_usage_errors(
    tmp_path: Path, option: str, value: object
) -> None:
    result = train(tmp_path / "model", option, value)
    assert result.exit_code == 2
    assert option in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--kernel-parts", "arc,cousin", "unknown part type 'cousin'; choose from arc"),
        ("--manual-parts", "arcs", "unknown part type 'arcs'"),
        ("--skip", "x", "unknown slot 'x'"),
        ("--search", "deep", "search is 'deep'"),
        ("--loss", "log", "loss is 'log'"),
        ("--competitor", "worst", "competitor is 'worst'"),
        ("-C", "0", "C is 0.0; it must be positive"),
        ("-C", "nan", "C is nan"),
        ("--kernel-scale", "-1", "kernel scale is -1.0"),
        ("--list-features", "votes", "unknown list features 'votes'; choose from scores"),
        ("--upstream", "no_such_pipeline", "no_such_pipeline: neither a directory"),
    ],
)
def test_cli_train_wrong_choices(tmp_path: Path, option: str, value: str, message: str) -> None:
    assert_refused(train(tmp_path / "model", option, value), tmp_path, message)


@pytest.mark.parametrize(
    "option",
    [
        ("--views", "sampling"), ("--views", "spacy"), ("--biaffine-epochs", 15), ("--folds", 5),
        ("--processes", 1), ("--backward",),
        ("--search", "discrepancy"),
    ],
)  # fmt: skip
def test_cli_train_refuses_options_of_parsers_that_it_does_not_need(
    tmp_path: Path, option: tuple[object, ...]
) -> None:
    name = str(option[0]).removeprefix("--").replace("views", "parsers")
    name = name.removeprefix("biaffine-")
    message = f"{name} would have no effect: candidates are given for all parts, so no parser"
    assert_refused(train(tmp_path / "model", *option), tmp_path, message)


@pytest.mark.parametrize("part", ["train", "dev", "test", "train_lists", "dev_lists"])
@pytest.mark.parametrize("fault", ["missing", "directory", "empty", "garbage", "binary"])
def test_cli_train_bad_files(tmp_path: Path, part: str, fault: str) -> None:
    bad = tmp_path / "bad.conllu"
    if fault == "directory":
        bad.mkdir()
    elif fault == "garbage":
        bad.write_text("Once upon a time there was no tab.\n")
    elif fault != "missing":
        bad.write_bytes(b"" if fault == "empty" else bytes(range(256)))
    assert_refused(train(tmp_path / "model", **{part: bad}), tmp_path, "bad.conllu")


def test_cli_train_dev_without_trees(tmp_path: Path) -> None:
    bare = stripped(treebank()["dev"], tmp_path / "bare.conllu")
    assert_refused(train(tmp_path / "model", dev=bare), tmp_path, "bare.conllu:3: word 1 (")


def test_cli_train_candidates_without_candidates(tmp_path: Path) -> None:
    result = train(tmp_path / "model", train_lists=treebank()["train"])
    assert_refused(result, tmp_path, "no k-best file")


def test_cli_train_output_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    for output, message in (
        (tmp_path / "file", "a file stands where the model directory"),
        (tmp_path / "file" / "model", "cannot be written"),
        (treebank()["train"].parent, "exists already; replaced only on demand (--overwrite)"),
    ):
        result = train(output)
        assert_refused(result, tmp_path, message)
    assert (tmp_path / "file").read_text() == "here"


def test_cli_train_bad_config(tmp_path: Path) -> None:
    (tmp_path / "bad.cfg").write_text("[nlp\n")
    bad = ("train", treebank()["train"], "--dev", treebank()["dev"], "-o", tmp_path / "model")
    for config in (tmp_path / "bad.cfg", tmp_path / "missing.cfg", tmp_path):
        result = invoke(*bad, "--views", "spacy", "--config", config)
        assert_refused(result, tmp_path, str(config))


def test_cli_train_tiny_treebank(tmp_path: Path) -> None:
    tiny = tmp_path / "tiny.conllu"
    tiny.write_text(NO_TREE.replace("\t_\t_\t_\tSpace", "\t0\troot\t_\tSpace"))
    result = invoke("train", tiny, "--dev", treebank()["dev"], "-o", tmp_path / "model")
    assert_refused(result, tmp_path, "tiny.conllu")


@pytest.mark.slow
def test_cli_train_the_whole_path(tmp_path: Path) -> None:
    files = treebank()
    result = invoke(
        "train", files["train"], "--dev", files["dev"], "-o", tmp_path / "model", "--folds", 2,
        "--tags", "gold",
        "--k", 5, "--views", "spacy", "--config", tiny_config(tmp_path / "tiny.cfg"),
        "--max-steps", 10, "--no-backward", *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    shown = invoke("info", tmp_path / "model", "--json")
    about = json.loads(shown.stdout)["about"]
    assert about["upstream"] == {"trained": True, "pipeline": None, "folds": 2}
    assert about["views"] == {
        "spacy": {
            "config": "tiny.cfg", "max_steps": 10, "backward": False, "search": "discrepancy",
        },
    }  # fmt: skip
    assert about["sources"] == ["spacy"]
    assert about["backward"] is False


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_train_tells_where_the_work_of_a_linked_output_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "model").symlink_to(tmp_path / "disk" / "model")

    def stop(options: TrainOptions, **_: object) -> None:
        options.work_directory.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr("tk_spacy.cli.train.train_pipeline", stop)
    result = invoke("train", treebank()["train"], "-o", tmp_path / "model")
    assert result.exit_code == 130
    assert f"to resume the work in {tmp_path / 'disk' / 'model.work'}" in result.stderr
