"""`tk-spacy train-parser`, `parse` and `add-kernel`: the sampling parser alone."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import spacy
from test_cli import invoke
from trainings import (
    folder,
    lists_training,
    sampling_training,
    treebank,
)

from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.well_formed import count_violations, word_facts
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.well_formed import count_broken
from tk_spacy.parsers.sampling.parser import read_parser
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.add_kernel import search_kernel
from tk_spacy.workflows.model import open_model


@pytest.fixture(scope="module")
def parser() -> Path:
    """A parser alone, made by the command."""
    path = folder() / "parser-alone"
    files = treebank()
    result = invoke(
        "train-parser", files["train"], "--dev", files["dev"], "-o", path, "--epochs", 2,
        "--order", 2, "--bits", 16, "--restarts", 5, "--threads", 1, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [row["epoch"] for row in told["epochs"]] == [1, 2]
    assert 40 < told["epochs"][-1]["las"] <= told["epochs"][-1]["uas"] < 100
    assert told["settings"]["order"] == 2
    assert "epoch 2: UAS " in result.stderr
    return path


def test_cli_parse_writes_the_best_trees(parser: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.conllu"
    result = invoke("parse", parser, treebank()["dev"], "-o", out, "--threads", 1, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)["total"]
    gold, found = load_treebank(treebank()["dev"]), load_treebank(out)
    assert told["scores"]["final"]["las"] == evaluate(gold, found).las
    assert "parser" not in told["scores"]
    for sentence, (heads, deprels) in zip(
        found, read_parser(parser).parse(gold, n_threads=1), strict=True
    ):
        assert sentence.heads.tolist() == heads.tolist()
        assert sentence.deprels == deprels
    shown = invoke("parse", parser, treebank()["dev"], "-o", out, "-q")
    assert "LAS" in shown.stdout
    assert "changed" not in shown.stdout


def test_cli_info_of_a_parser_alone(parser: Path, tmp_path: Path) -> None:
    facts = json.loads(invoke("info", parser, "--json").stdout)
    assert facts["kind"] == "sampling parser alone"
    assert facts["about"]["treebank"]["train"]["sentences"] == 90
    assert "epoch 2" in invoke("info", parser).stdout
    result = invoke("rerank", parser, treebank()["dev"], "-o", tmp_path / "out.conllu")
    assert "a sampling parser without a reranker; use `tk-spacy parse`" in result.stderr


def test_cli_parse_writes_lists(parser: Path, tmp_path: Path) -> None:
    for name, command in {"a": "parse", "b": "kbest"}.items():
        out = tmp_path / f"{name}.conllu"
        result = invoke(command, parser, treebank()["dev"], "-o", out, "--k", 5, "-q")
        assert result.exit_code == 0, result.output
    assert (tmp_path / "a.conllu").read_bytes() == (tmp_path / "b.conllu").read_bytes()
    lists = [t for _, t in read_kbest(tmp_path / "a.conllu", inventory=LabelInventory())]
    assert {trees.sources for trees in lists} == {("sampling",)}
    assert 2 < max(map(len, lists)) <= 5


def test_cli_parse_writes_well_formed_trees(parser: Path, tmp_path: Path) -> None:
    def parsed(name: str, *more: object) -> Path:
        result = invoke("parse", parser, treebank()["dev"], "-o", tmp_path / name, "-q", *more)
        assert result.exit_code == 0, result.output
        return tmp_path / name

    plain, formed = parsed("plain"), parsed("formed", "--well-formed", "--threads", 1)
    counts = [sum(count_violations(load_treebank(path)).values()) for path in (plain, formed)]
    assert counts[1] < counts[0] / 2
    again = parsed("again", "--well-formed", "--threads", 3)
    assert again.read_bytes() == formed.read_bytes()
    wide = parsed("wide", "--k", 5)
    lists = read_kbest(wide, inventory=LabelInventory())
    left_out = 0
    for (sentence, trees), (_, kept) in zip(
        lists,
        read_kbest(parsed("lists", "--k", 5, "--well-formed"), inventory=LabelInventory()),
        strict=True,
    ):
        words = word_facts(sentence)
        broken, of_kept = count_broken(trees, words), count_broken(kept, words)
        assert set(of_kept) == {of_kept[0]}
        assert of_kept[0] <= broken.min()
        assert kept.base == 0
        left_out += len(trees) - len(kept)
    assert left_out > 5
    # Another command made the file.
    result = invoke("parse", parser, treebank()["dev"], "-o", formed, "--json")
    assert json.loads(result.stdout)["files"][0]["status"] == "done"
    assert formed.read_bytes() == plain.read_bytes()


def test_cli_add_kernel(parser: Path, tmp_path: Path) -> None:
    dev, model, out = treebank()["dev"], sampling_training()[0], tmp_path / "with-kernel"
    result = invoke("add-kernel", parser, model, "--dev", dev, "-o", out, "--json", "-q")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    best = max(row["las"] for row in told["scores"])
    assert told["scores"][0]["gamma"] == 0
    made, before = read_parser(out), read_parser(parser)
    assert (made.kernel is None) == (told["gamma"] == 0)
    assert made.about["tuning"] == told["scores"]
    gold = load_treebank(dev)
    for one, las in ((made, best), (before, told["scores"][0]["las"])):
        parses = one.parse(gold, n_threads=1)
        found = [
            replace(s, heads=heads, deprels=deprels)
            for s, (heads, deprels) in zip(gold, parses, strict=True)
        ]
        assert evaluate(gold, found).las == pytest.approx(las)
    # Another kernel takes the place of one that is there, and the user is told.
    assert not told["replaced"]
    own = search_kernel(open_model(model).reranker)
    replace(before, kernel=own).to_disk(tmp_path / "has-one")
    facts = json.loads(invoke("info", tmp_path / "has-one", "--json").stdout)
    assert facts["kernel"] == {"gamma": 1.0, "support_parts": {"arc": len(own.support)}}
    shown = invoke("info", tmp_path / "has-one").stdout
    assert f"{len(own.support):,} arc" in shown
    assert json.loads(invoke("info", parser, "--json").stdout)["kernel"] is None
    again = invoke("add-kernel", tmp_path / "has-one", model, "--dev", dev, "-o", tmp_path / "new")
    assert "has-one has a kernel of its own, which is not in" in " ".join(again.output.split())
    assert (tmp_path / "new" / "weights.npz").read_bytes() == (out / "weights.npz").read_bytes()
    assert read_parser(tmp_path / "new").about["tuning"] == told["scores"]
    again = invoke("add-kernel", parser, model, "--dev", dev, "-o", out)
    assert "replaced only on demand (--overwrite)" in again.stderr
    refused = invoke("add-kernel", parser, parser, "--dev", dev, "-o", tmp_path / "other")
    assert "a sampling parser without a reranker" in refused.stderr


BROKEN_TREES = {
    "cycle": lambda row: {"0": "1"}.get(row[6], row[6]),
    "two roots": lambda row: "0",
    "no number": lambda row: "here",
    "far away": lambda row: "999",
    "some missing": lambda row: {"0": "_"}.get(row[6], row[6]),
    "empty": lambda row: "",
}


@pytest.mark.parametrize("fault", BROKEN_TREES)
def test_cli_parses_files_with_broken_trees(parser: Path, tmp_path: Path, fault: str) -> None:
    rows = [line.split("\t") for line in treebank()["dev"].read_text("utf-8").splitlines()]
    for row in rows:
        if len(row) == 10:
            row[6] = BROKEN_TREES[fault](row)
            row[7] = "" if fault == "empty" else "odd label"
    broken = tmp_path / "broken.conllu"
    broken.write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")
    for command, model in (
        ("parse", parser),
        ("kbest", parser),
        ("rerank", sampling_training()[0]),
    ):
        written = {}
        for name, source in {"broken": broken, "good": treebank()["dev"]}.items():
            written[name] = tmp_path / f"{command}-{name}.conllu"
            result = invoke(command, model, source, "-o", written[name], "--json", "-q")
            assert result.exit_code == 0, result.output
            if command != "kbest":
                scores = json.loads(result.stdout)["total"]["scores"]
                assert (scores is None) == (name == "broken" and fault != "two roots")
        assert written["broken"].read_bytes() == written["good"].read_bytes()
    refusing = [("train-parser", broken, "-o", tmp_path / "new")]
    if fault != "two roots":  # which systems may give, and some treebanks have
        refusing.append(("evaluate", broken, treebank()["dev"]))
    for command in refusing:
        refused = invoke(*command)
        assert refused.exit_code == 1
        assert "broken.conllu:" in refused.stderr


def test_cli_parse_a_directory_with_a_broken_file(parser: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.conllu").write_bytes(treebank()["dev"].read_bytes())
    (tmp_path / "in" / "bad.conllu").write_text("1\tonly two columns\n")
    result = invoke("parse", parser, tmp_path / "in", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "bad.conllu:1: 2 columns instead of 10" in result.stderr
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [".tk-spacy.json", "good.conllu"]
    assert "skipped" in invoke("parse", parser, tmp_path / "in", "-o", tmp_path / "out").stdout


def test_cli_parse_does_not_replace_what_kbest_wrote(parser: Path, tmp_path: Path) -> None:
    out, dev = tmp_path / "out.conllu", treebank()["dev"]
    for k in (3, 4):  # the same command may
        assert invoke("kbest", parser, dev, "-o", out, "--k", k, "-q").exit_code == 0
    lists = out.read_bytes()
    refused = invoke("parse", parser, dev, "-o", out)
    assert refused.exit_code == 1
    assert (
        "out.conllu: was made by `tk-spacy kbest`; replaced only on demand (--overwrite)"
        in refused.stderr
    )
    assert out.read_bytes() == lists
    assert invoke("parse", parser, dev, "-o", out, "--overwrite").exit_code == 0
    assert out.read_bytes() != lists
    refused = invoke("kbest", parser, dev, "-o", out)
    assert (
        "out.conllu: was made by `tk-spacy parse`; replaced only on demand (--overwrite)"
        in refused.stderr
    )
    assert invoke("kbest", parser, dev, "-o", out, "--k", 4, "-q", "--overwrite").exit_code == 0
    assert out.read_bytes() == lists


def test_cli_parse_refuses(parser: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.conllu").write_text("")
    spacy.blank("xx").to_disk(tmp_path / "blank")
    for model, source, message in (
        (parser, tmp_path / "empty.conllu", "the file holds no sentence"),
        (tmp_path / "missing", treebank()["dev"], "no such model directory"),
        (tmp_path / "blank", treebank()["dev"], "the pipeline has no dependency parser"),
        (lists_training()[0], treebank()["dev"], "a reranker without a parser of its own; use"),
        (tmp_path, treebank()["dev"], "no tk-spacy sampling parser here"),
    ):
        result = invoke("parse", model, source, "-o", tmp_path / "out.conllu")
        assert result.exit_code == 1
        assert message in result.stderr
        assert not (tmp_path / "out.conllu").exists()


@pytest.mark.parametrize("content", [b'{"form', b"", b"[1]", None])
@pytest.mark.parametrize(
    ("command", "component"), [("rerank", "tk_reranker"), ("parse", "tk_parser")]
)
def test_cli_a_damaged_component_is_named(
    tmp_path: Path, command: str, component: str, content: bytes | None
) -> None:
    model = shutil.copytree(sampling_training()[0], tmp_path / "model")
    meta = model / component / "meta.json"
    if content is None:
        meta.unlink()
    else:
        meta.write_bytes(content)
    result = invoke(command, model, treebank()["dev"], "-o", tmp_path / "out.conllu")
    assert result.exit_code == 1
    reason = "meta.json is damaged or incomplete" if content is not None else "no tk-spacy"
    assert result.stderr.splitlines()[-1].startswith(f"Error: {model / component}: {reason}")
    assert "train it again" in result.stderr
    assert not (tmp_path / "out.conllu").exists()


@pytest.mark.parametrize("place", ["", "weights.npz", "new/out.conllu"])
@pytest.mark.parametrize("command", ["parse", "kbest"])
def test_cli_writes_nothing_into_a_model(parser: Path, command: str, place: str) -> None:
    before = {path.name: path.read_bytes() for path in parser.iterdir()}
    result = invoke(command, parser, treebank()["dev"], "-o", parser / place)
    assert result.exit_code == 1
    assert f"the output lies in the model {parser}; choose another" in result.stderr
    assert {path.name: path.read_bytes() for path in parser.iterdir()} == before


def test_cli_train_parser_for_many_roots(tmp_path: Path) -> None:
    text = "".join(
        f"1\t{verb}\t_\tVERB\t_\t_\t0\troot\t_\t_\n2\t{verb}\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
        for verb in "abcdefgh"
    )
    source, parser, out = (tmp_path / name for name in ("in.conllu", "parser", "out.conllu"))
    source.write_text(text)
    refused = invoke("train-parser", source, "-o", parser)
    assert "in.conllu:2: words 1 and 2 have HEAD 0" in refused.stderr
    result = invoke("train-parser", source, "-o", parser, "--many-roots", "--epochs", 2)
    assert result.exit_code == 0, result.output
    assert "Scores on dev" not in result.stdout  # there is none
    assert "Trained in " in result.stdout
    result = invoke("parse", parser, source, "-o", out)
    assert result.exit_code == 0, result.output
    assert out.read_text() == text


def test_cli_train_parser_refuses(tmp_path: Path, parser: Path) -> None:
    files = treebank()
    for arguments, message in (
        (
            (files["train"], "-o", parser),
            "exists already; replaced only on demand (--overwrite)",
        ),
        ((files["train"], "--dev", files["train"], "-o", tmp_path / "p"), "dev is the same as"),
        ((tmp_path / "missing", "-o", tmp_path / "p"), "missing"),
        ((files["train"], "-o", tmp_path / "p", "-C", "0"), "C is 0.0"),
    ):
        result = invoke("train-parser", *arguments)
        assert result.exit_code == 1
        assert message in result.stderr
    assert list(tmp_path.iterdir()) == []
