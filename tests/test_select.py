"""`tk-spacy select`: every space, and what other commands and spaCy make of its models."""

from __future__ import annotations

import errno
import functools
import json
import math
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pipelines import new_docs, predictions, trained_pipeline
from test_cli import invoke
from trainings import (
    folder,
    list_files,
    lists_training,
    made_up_list,
    options,
    same_trees,
    stripped,
    treebank,
    write_lists,
)

from tk_spacy.ensemble.combiner.model import ArcCombiner
from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.reranker import explicit_training
from tk_spacy.reranker.explicit_training import SPACES, SelectionSettings
from tk_spacy.reranker.penalties import Penalties
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows import select as workflow
from tk_spacy.workflows.compress import curve
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.select import select
from tk_spacy.workflows.train.pipeline import train_pipeline

QUICK: dict[str, Any] = {"iterations": 2, "threshold": 2, "pretraining": 2}
OF_SPACE: dict[str, dict[str, Any]] = {"tree": {"max_order": 2}, "kernel": {"most": 2000}}
Files = dict[str, Path]


def of_space(space: str) -> dict[str, Any]:
    """Settings by which a selection is quick: those that the space reads."""
    unread = SPACES[space].unread
    return {k: v for k, v in {**QUICK, **OF_SPACE.get(space, {})}.items() if k not in unread}


def arguments(out: Path, *, model: Path | None = None, files: Files | None = None) -> list[object]:
    """Of the command, for a training from lists."""
    f = inputs() if files is None else files
    return [
        "select", model or lists_training()[0], f["train"], "--lists", f["train lists"], "--dev",
        f["dev"], "--dev-lists", f["dev lists"], "-o", out, "--threads", 1,
    ]  # fmt: skip


@functools.cache
def inputs() -> Files:
    return treebank() | {f"{name} lists": path for name, path in list_files().items()}


def flags(**settings: Any) -> list[object]:
    return [part for name, v in settings.items() for part in (f"--{name.replace('_', '-')}", v)]


@functools.cache
def selected(space: str) -> tuple[Path, dict[str, Any]]:
    """A model with features of a space, and what the command said."""
    out, f = folder() / f"selected-{space}", inputs()
    settings = flags(space=space, **of_space(space))
    test = ["--test", f["test"], "--test-lists", f["test lists"], "--strongest", 5, "--json"]
    result = invoke(*arguments(out), *settings, *test)
    assert result.exit_code == 0, result.output
    return out, json.loads(result.stdout)


def made(out: Path, *, model: Path | None = None, files: Files | None = None, **more: Any) -> bytes:
    """The reranker that the workflow writes."""
    f = inputs() if files is None else files
    threads = more.pop("n_threads", 1)
    space = more.pop("space", "quadratic")
    settings = SelectionSettings(space=space, **of_space(space) | more)
    select(
        model or lists_training()[0], f["train"], f["train lists"], f["dev"], f["dev lists"], out,
        settings, n_threads=threads,
    )  # fmt: skip
    return open_model(out).reranker.to_bytes()


def unnamed(model: Path) -> bytes:
    """A reranker without what it tells of the files that were read, and their scores."""
    return replace(open_model(model).reranker, about={}).to_bytes()


def reranked(model: Path, lists: Path, gold: Path, out: Path) -> dict[str, float]:
    """What `rerank` and plain evaluation make of lists."""
    done = invoke("rerank", model, lists, "-o", out, "--threads", 1)
    assert done.exit_code == 0, done.output
    scores = evaluate(load_treebank(gold), load_treebank(out))
    return {name: getattr(scores, name) for name in ("uas", "las", "uas_nopunct", "las_nopunct")}


@pytest.mark.parametrize("space", SPACES)
def test_select_writes_a_model_that_goes_on_as_any_other(space: str, tmp_path: Path) -> None:
    out, told = selected(space)
    f = inputs()
    explicit = open_model(out).reranker.explicit
    assert told["space"] == space
    for part in ("dev", "test"):
        for system, model in (("selected", out), ("model", lists_training()[0])):
            expected = reranked(model, f[f"{part} lists"], f[part], tmp_path / "a.conllu")
            assert told["scores"][part][system] == pytest.approx(expected)
    # It learnt: better than the parser's own first trees, and with other trees than these.
    first = [s.with_tree(t.heads[t.base], t.deprels(t.base)) for s, t in pairs_of(f["dev lists"])]
    parser = evaluate(load_treebank(f["dev"]), first)
    assert told["scores"]["dev"]["selected"]["las"] > parser.las + 5
    shown = invoke("info", out)
    assert shown.exit_code == 0, shown.output
    facts = json.loads(invoke("info", out, "--json").stdout)
    if space == "templates":
        assert explicit is None
        assert facts["explicit"] is None
        assert facts["manual_weights"] == told["weighted"] > 100
        assert told["features"] == 0
        assert told["strongest"] == []
        return
    assert told["weighted"] == len(explicit or [])
    assert explicit is not None
    assert facts["explicit"]["features"] == len(explicit) > 30
    assert facts["explicit"]["templates"] == explicit.n_templates() <= len(explicit)
    assert facts["manual_weights"] == 0
    assert sum(facts["support_parts"].values()) == 0
    kind = {
        "tree": "parts of trees", "slots": "slot combinations", "kernel": "slot combinations"
    }.get(space, "sets of features of an arc")  # fmt: skip
    text = " ".join(re.sub("[│┃]", " ", shown.stdout).split())
    assert f"selected features {len(explicit):,} {kind}, of {explicit.n_templates():,} temp" in text
    assert "manual weights" not in text
    assert "support parts" not in text
    assert "Settings of the model that the features were selected for" in text
    # The strongest first, with the weights of the model.
    weights = dict(explicit.listed())
    assert all(weights.values())
    strengths = [abs(item["weight"]) for item in told["strongest"]]
    assert strengths == sorted(map(abs, weights.values()), reverse=True)[:5]
    assert all(weights[item["feature"]] == item["weight"] for item in told["strongest"])


def pairs_of(path: Path) -> list[tuple[Sentence, CandidateList]]:
    return list(read_kbest(path, inventory=LabelInventory()))


def test_select_tells_what_it_chose_and_what_it_took(tmp_path: Path) -> None:
    result = invoke(
        *arguments(tmp_path / "m"), *flags(space="quadratic", **QUICK), "--strongest", 3
    )
    assert result.exit_code == 0, result.output
    for text in (
        "the model as it was", "with selected features", "2 iterations of mining", "basic features",
        "Strongest features", f"Model: {tmp_path / 'm'}",
    ):  # fmt: skip
        assert text in result.stdout
    assert result.stdout.count("POS=") >= 3


def test_select_of_a_space_keeps_to_its_degree() -> None:
    for space, most in (("quadratic", 2), ("biquadratic", 4), ("eighth", 8)):
        explicit = open_model(selected(space)[0]).reranker.explicit
        orders = {name.count(" + ") + 1 for name, _ in explicit.listed()}
        assert 1 < max(orders) <= most
    names = [name for name, _ in open_model(selected("tree")[0]).reranker.explicit.listed()]
    assert {name.count("[") for name in names} == {1, 2}
    assert any("]]" in name for name in names)
    assert any("] [" in name for name in names)


def test_select_keeps_the_strongest_of_a_kernel(tmp_path: Path) -> None:
    made(tmp_path / "m", space="kernel", most=30, learner="l1")
    explicit = open_model(tmp_path / "m").reranker.explicit
    assert len(explicit) == 30
    assert selected("kernel")[1]["features"] == 2000
    assert len(open_model(selected("kernel")[0]).reranker.explicit) < 2000  # some never moved


def test_select_with_the_weights_of_mining(tmp_path: Path) -> None:
    made(tmp_path / "m", learner="l1")
    explicit = open_model(tmp_path / "m").reranker.explicit
    assert len(explicit) == selected("quadratic")[1]["features"]
    learnt = dict(open_model(selected("quadratic")[0]).reranker.explicit.listed())
    mined = dict(explicit.listed())
    assert mined.keys() & learnt.keys()
    assert any(mined[name] != learnt.get(name) for name in mined)


def test_info_lists_what_was_selected_how_and_what_it_scores() -> None:
    out, told = selected("tree")
    explicit = open_model(out).reranker.explicit
    found = invoke("info", out, "--features", 7, "--json")
    assert found.exit_code == 0, found.output
    facts = json.loads(found.stdout)
    strongest = sorted(explicit.listed(), key=lambda item: -abs(item[1]))[:7]
    assert [(item["feature"], item["weight"]) for item in facts["strongest"]] == strongest
    about = facts["about"]["selected"]
    assert about["scores"] == told["scores"]
    assert about["settings"] | QUICK | {"space": "tree"} == about["settings"]
    assert about["features"] == told["features"]
    assert about["files"]["dev"] == ["dev.conllu", "dev.kbest.conllu"]
    assert "scores" not in facts["about"]  # of the model before
    shown = " ".join(re.sub("[│┃]", " ", invoke("info", out, "--features", 7).stdout).split())
    for text in (
        "selected by space tree, C = 2, 2 iterations of mining of",
        "weights: a perceptron",
        "dev the parsers' and the combiner's scores alone",
        f"with selected features {told['scores']['test']['selected']['uas']:.2f}",
        strongest[6][0][:40],
    ):
        assert text in shown
    assert "Strongest features" not in invoke("info", out).stdout


def test_info_lists_no_features_where_there_are_none() -> None:
    for model, what in (
        (lists_training()[0], "no model of selected features, which could be listed"),
        (selected("templates")[0], "its features are hashed and cannot be listed; choose another "
         "space"),
    ):  # fmt: skip
        result = invoke("info", model, "--features", 7)
        assert result.exit_code == 1
        assert result.stderr == (
            f"Error: {model}: {what}; `tk-spacy select` makes one, from a kernel's combinations "
            "with the space kernel\n"
        )


@pytest.mark.parametrize("space", [space for space in SPACES if space != "templates"])
def test_explanations_name_the_selected_features_of_a_tree(space: str, tmp_path: Path) -> None:
    model = open_model(selected(space)[0]).reranker
    weights, scale = dict(model.explicit.listed()), model.combination.reranker_scale
    assert len(weights) == len(model.explicit)  # no two have one name
    seen = 0
    for sentence, trees in pairs_of(inputs()["test lists"])[:12]:
        explanation = model.explain(sentence, trees)
        trees = model.decide(sentence, trees).candidates  # repaired ones among them
        own = model.scores(sentence, trees)
        for tree in explanation.trees:
            row = trees.row_of(
                np.array(tree.heads, np.int32), trees.inventory.encode(tree.deprels, add=False)
            )
            assert math.fsum(tree.selected.values()) * scale == pytest.approx(own[row])
            for name, share in tree.selected.items():
                times = share * scale / weights[name]
                assert round(times) >= 1
                assert times == pytest.approx(round(times))
                seen += 1
    assert seen > 20
    page = tmp_path / "page.html"
    done = invoke(
        "explain", selected(space)[0], inputs()["test lists"], "--sent-id",
        load_treebank(inputs()["test"])[0].sent_id, "--html", page,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Selected features that differ most" in done.stdout
    assert "<h2>Selected features that differ most</h2>" in page.read_text("utf-8")


def test_rerank_says_what_became_of_the_confidence(tmp_path: Path) -> None:
    result = invoke(
        "rerank", selected("tree")[0], inputs()["dev lists"], "-o", tmp_path / "a", "--confidence"
    )
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {selected('tree')[0]}: the model's confidence is not calibrated; take the model "
        "that it was before features were selected, or leave confidence out\n"
    )


def test_select_tells_what_the_features_add_to(tmp_path: Path) -> None:
    # Without penalties and with one parser's scores, whose order no weight of them changes.
    place, f = tmp_path / "plain", inputs()
    replace(open_model(lists_training()[0]).reranker, penalties=Penalties()).to_disk(place)
    test = ["--test", f["test"], "--test-lists", f["test lists"], "--json"]
    result = invoke(*arguments(tmp_path / "m", model=place), *flags(**QUICK), *test)
    assert result.exit_code == 0, result.output
    for part, scores in json.loads(result.stdout)["scores"].items():
        best = [
            s.with_tree(t.heads[i], t.deprels(i))
            for s, t in pairs_of(f[f"{part} lists"])
            for i in [int(t.scores[:, 0].argmax())]
        ]
        alone = evaluate(load_treebank(f[part]), best)
        assert scores["parsers"]["las"] == pytest.approx(alone.las)
        assert scores["parsers"]["uas_nopunct"] == pytest.approx(alone.uas_nopunct)


# Where its input comes from


@pytest.fixture(scope="module")
def release() -> tuple[Path, Path]:
    """A folder of a release, and a work directory with lists."""
    f, place, work = inputs(), folder() / "UD_Xx-Select", folder() / "select-work"
    place.mkdir()
    work.mkdir()
    for part in ("train", "dev", "test"):
        shutil.copy(f[part], place / f"xx_select-ud-{part}.conllu")
        shutil.copy(f[f"{part} lists"], work / f"{part}.kbest.conllu")
    return place, work


def test_select_finds_its_input_in_folders(release: tuple[Path, Path], tmp_path: Path) -> None:
    treebank_folder, work = release
    model = lists_training()[0]
    result = invoke(
        "select", model, treebank_folder, "--workdir", work, "-o", tmp_path / "m", *flags(**QUICK),
        "--threads", 1, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told, expected = json.loads(result.stdout), selected("quadratic")[1]
    assert told["scores"] == expected["scores"]
    (work / "test.kbest.conllu").rename(work / "test.kept")
    without = workflow.find_inputs(treebank_folder, workdir=work)
    noted = invoke(
        "select", model, treebank_folder, "--workdir", work, "-o", tmp_path / "n", *flags(**QUICK)
    )
    assert noted.exit_code == 0, noted.output
    assert f"{work}: no lists of test are there, so it is not scored\n" in noted.stderr
    (work / "test.kept").rename(work / "test.kbest.conllu")
    assert without.test is None
    assert without.dev_lists == work / "dev.kbest.conllu"
    f = inputs()
    named = workflow.find_inputs(
        treebank_folder, workdir=work, dev=f["dev"], dev_lists=f["dev lists"], test=f["test"],
        test_lists=f["test lists"],
    )  # fmt: skip
    assert (named.dev, named.dev_lists) == ((f["dev"],), f["dev lists"])
    assert named.test == ((f["test"],), f["test lists"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--dev", "dev"], "no candidate lists of train are given; give the file (--lists), or the "
         "work directory of the training (--workdir)"),
        (["--dev", "dev", "--lists", "train lists"], "no candidate lists of dev are given; give "
         "the file (--dev-lists), or"),
        (["--lists", "train lists", "--dev-lists", "dev lists"], "has no dev file; give one to "
         "tune on (--dev), of sentences that no parser of the model learnt from"),
        (["--dev", "dev", "--lists", "train lists", "--dev-lists", "dev lists", "--test", "test"],
         "no candidate lists of test are given; give the file (--test-lists)"),
        (["--dev", "dev", "--lists", "train lists", "--dev-lists", "dev lists", "--test-lists",
          "test lists"], "has no test file, whose lists are given; give it (--test)"),
    ],
)  # fmt: skip
def test_select_says_what_input_is_missing(given: list[str], message: str, tmp_path: Path) -> None:
    f = inputs()
    words = [f.get(word, word) for word in given]
    result = invoke("select", lists_training()[0], f["train"], *words, "-o", tmp_path / "m")
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_select_with_labels_and_without_rare_features(tmp_path: Path) -> None:
    made(tmp_path / "labelled", labelled=True)
    names = [n for n, _ in open_model(tmp_path / "labelled").reranker.explicit.listed()]
    assert any("DEPREL=" in name for name in names)
    unlabelled = open_model(selected("quadratic")[0]).reranker.explicit
    assert not any("DEPREL=" in name for name, _ in unlabelled.listed())
    f = inputs()
    told = select(
        lists_training()[0], f["train"], f["train lists"], f["dev"], f["dev lists"],
        tmp_path / "frequent", SelectionSettings(**QUICK, min_count=20), n_threads=1,
    )  # fmt: skip
    assert 0 < told["basic_features"] < selected("quadratic")[1]["basic_features"]


@pytest.mark.parametrize("space", ["quadratic", "tree", "slots", "kernel", "templates"])
def test_select_makes_the_same_bytes_with_any_threads(space: str, tmp_path: Path) -> None:
    two = made(tmp_path / "two", n_threads=2, space=space)
    assert two == made(tmp_path / "one", space=space)
    assert unnamed(tmp_path / "two") == unnamed(selected(space)[0])


# Tags


def blurred(path: Path, target: Path) -> Path:
    """A file whose words all have the same tags."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        columns = line.split("\t")
        if len(columns) == 10:
            columns[3:6] = ["NOUN", "NC", "_"]
        lines.append("\t".join(columns))
    target.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def with_blurred() -> Files:
    place = folder() / "blurred"
    place.mkdir()
    return {name: blurred(path, place / name) for name, path in inputs().items()}


def test_select_reads_the_tags_of_the_lists(with_blurred: Files, tmp_path: Path) -> None:
    f = inputs()
    made(tmp_path / "both", files=with_blurred)
    gold = {name: path for name, path in f.items() if "lists" not in name}
    made(tmp_path / "lists", files=with_blurred | gold)
    both = unnamed(tmp_path / "both")
    assert unnamed(tmp_path / "lists") == both
    assert both != unnamed(selected("quadratic")[0])


def test_select_warns_of_lists_with_other_tags_than_the_others(
    with_blurred: Files, tmp_path: Path
) -> None:
    f = inputs()
    mixed = {**f, "dev lists": with_blurred["dev lists"]}
    result = invoke(*arguments(tmp_path / "m", files=mixed), *flags(**QUICK))
    assert result.exit_code == 0, result.output
    assert (
        f"Warning: {f['train lists']}: the treebank's own tags, while {mixed['dev lists']} has "
        "others: what is learnt from the ones does not suit the others"
    ) in result.stderr
    alike = invoke(*arguments(tmp_path / "n", files=f), *flags(**QUICK))
    assert "the treebank's own tags" not in alike.stderr


def test_compress_curve_reads_the_tags_of_the_lists(with_blurred: Files) -> None:
    f = inputs()

    def scores(lists: Path, dev: Path) -> list[tuple[float, ...]]:
        points = curve(lists_training()[0], lists, dev, keeps=[40], bits=[], repeat=1, threads=1)
        return [(p.uas, p.las, p.final_uas, p.final_las) for p in points]

    both = scores(with_blurred["dev lists"], with_blurred["dev"])
    assert scores(with_blurred["dev lists"], f["dev"]) == both
    assert scores(f["dev lists"], f["dev"]) == scores(f["dev lists"], with_blurred["dev"]) != both


# Other commands


@pytest.mark.parametrize("space", ["quadratic", "slots"])
def test_compress_refuses_a_model_of_selected_features(space: str, tmp_path: Path) -> None:
    out, f = selected(space)[0], inputs()
    for form in (
        ("-o", tmp_path / "c", "--keep", 5),
        ("-o", tmp_path / "c", "--hash-bits", 12),
        ("--curve", f["dev lists"], "--dev", f["dev"]),
    ):
        result = invoke("compress", out, *form)
        assert result.exit_code == 1
        assert result.stderr == (
            "Error: the model has selected features in place of a kernel's support parts; "
            "compress the model that they were selected for\n"
        )
    assert not (tmp_path / "c").exists()


def test_compress_measures_selected_features_beside_a_kernel() -> None:
    f = inputs()
    result = invoke(
        "compress", lists_training()[0], "--curve", f["dev lists"], "--dev", f["dev"], "--keep", 20,
        "--beside", selected("quadratic")[0], "--repeat", 1, "--threads", 1, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (point,) = (p for p in json.loads(result.stdout)["points"] if p["way"] == "another model")
    explicit = open_model(selected("quadratic")[0]).reranker.explicit
    assert point["size"] == len(explicit)
    assert point["final_las"] == selected("quadratic")[1]["scores"]["dev"]["selected"]["las"]
    assert point["kernel_tokens_per_second"] is None
    assert (selected("quadratic")[0] / "explicit.npz").stat().st_size < point["kernel_bytes"]
    assert point["kernel_bytes"] < point["bytes"]


def test_add_kernel_refuses_a_model_of_selected_features(tmp_path: Path) -> None:
    from sampling_parsers import trained

    trained().to_disk(tmp_path / "parser")
    result = invoke(
        "add-kernel", tmp_path / "parser", selected("slots")[0], "--dev", inputs()["dev"], "-o",
        tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "Error: the reranker has selected features in place of a kernel, which the parser's search "
        "has no place for; give the model that they were selected for\n"
    )
    assert not (tmp_path / "out").exists()


def test_select_again_from_a_model_of_selected_features(tmp_path: Path) -> None:
    made(tmp_path / "again", model=selected("slots")[0])
    assert unnamed(tmp_path / "again") == unnamed(selected("quadratic")[0])
    with pytest.raises(UserError, match="no support parts, whose combinations could be listed"):
        made(tmp_path / "kernel", model=selected("slots")[0], space="kernel")


# A pipeline with a parser


@functools.cache
def pipeline_files() -> tuple[Path, Files]:
    """A spaCy pipeline with parser and reranker, and what features are selected from."""
    place = folder() / "select-pipeline"
    trained_pipeline().to_disk(place)
    files = {}
    for name, n, seed in (("train", 60, 4), ("dev", 25, 5)):
        sentences = list(generate(n, seed=seed))
        files[name] = folder() / f"of-pipeline-{name}.conllu"
        write_conllu(files[name], sentences)
        files[f"{name} lists"] = write_lists(
            folder() / f"of-pipeline-{name}.kbest.conllu", sentences, seed=seed
        )
    return place, files


@pytest.mark.parametrize("space", ["tree", "slots"])
def test_select_of_a_pipeline_works_in_spacy_and_in_every_command(
    space: str, tmp_path: Path
) -> None:
    import spacy

    from tk_spacy.spacy_io.conversion import doc_from_sentence

    whole, files = pipeline_files()
    out = tmp_path / "selected"
    made(out, model=whole, files=files, space=space)
    assert {p.name for p in out.iterdir()} == {p.name for p in whole.iterdir()}
    assert (out / "tk_reranker" / "explicit.npz").is_file()
    assert not (whole / "tk_reranker" / "explicit.npz").exists()
    dev = stripped(files["dev"], tmp_path / "bare.conllu")
    done = invoke("rerank", out, dev, "-o", tmp_path / "a.conllu", "--threads", 1)
    assert done.exit_code == 0, done.output
    before = invoke("rerank", whole, dev, "-o", tmp_path / "b.conllu", "--threads", 1)
    assert before.exit_code == 0, before.output
    assert not same_trees(tmp_path / "a.conllu", tmp_path / "b.conllu")
    # The parser alone is as it was.
    for model, name in ((out, "c"), (whole, "d")):
        done = invoke("parse", model, dev, "-o", tmp_path / f"{name}.conllu", "--threads", 1)
        assert done.exit_code == 0, done.output
    assert same_trees(tmp_path / "c.conllu", tmp_path / "d.conllu")
    nlp = spacy.load(out)
    trees = load_treebank(tmp_path / "a.conllu")
    docs = list(nlp.pipe(doc_from_sentence(nlp.vocab, s) for s in trees))
    for own, doc in zip(trees, docs, strict=True):
        assert [0 if t.head == t else t.head.i + 1 for t in doc] == own.heads.tolist()
        assert [t.dep_.lower() for t in doc] == [label.lower() for label in own.deprels]
    expected = predictions(nlp(doc) for doc in new_docs(nlp, 6))
    nlp.to_disk(tmp_path / "copy")
    assert predictions(spacy.load(tmp_path / "copy").pipe(new_docs(nlp, 6))) == expected
    other = trained_pipeline()
    assert predictions(other(doc) for doc in new_docs(other, 6)) != expected
    other.from_bytes(nlp.to_bytes())
    assert predictions(other(doc) for doc in new_docs(other, 6)) == expected
    shown = invoke("info", out)
    assert shown.exit_code == 0, shown.output
    assert "selected features" in shown.stdout
    # What spaCy tells of it is of the new reranker.
    meta = json.loads((out / "meta.json").read_text(encoding="utf-8"))
    right = sum(
        (g.heads[i], g.deprels[i]) == (s.heads[i], s.deprels[i])
        for g, s in zip(load_treebank(files["dev"]), chosen(out, files, tmp_path), strict=True)
        for i in range(len(g))
        if g.deprels[i] != "punct"
    )
    words = sum(sum(d != "punct" for d in g.deprels) for g in load_treebank(files["dev"]))
    assert meta["performance"]["dep_las"] == pytest.approx(right / words, abs=0.01)
    assert f"features of the space {space}, by `tk-spacy select`" in meta["description"]
    first = json.loads((whole / "meta.json").read_text(encoding="utf-8"))
    known = first.get("performance", {})
    assert meta["performance"] == {**known, **meta["performance"]}
    tags = {"tag_acc", "pos_acc", "morph_acc", "lemma_acc"}
    assert not tags & (meta["performance"].keys() - known.keys())
    again = tmp_path / "again"
    made(again, model=out, files=files)
    last = json.loads((again / "meta.json").read_text(encoding="utf-8"))["description"]
    assert last.count("`tk-spacy select`") == 1
    assert "features of the space quadratic" in last


def chosen(model: Path, files: Files, place: Path) -> list[Sentence]:
    """What a model makes of the lists of dev."""
    done = invoke("rerank", model, files["dev lists"], "-o", place / "chosen", "--threads", 1)
    assert done.exit_code == 0, done.output
    return load_treebank(place / "chosen")


# A combiner


@functools.cache
def combined_files() -> tuple[Path, Files]:
    """A model with a combiner, and lists of two parsers."""
    files = dict(inputs())
    for name in ("train", "dev", "test"):
        rng, inventory, pairs = random.Random(7), LabelInventory(), []
        for s in load_treebank(treebank()[name]):
            one = made_up_list(s, inventory, rng)
            trees = [
                (one.heads[i], one.deprels(i), (one.scores[i, 0], rng.gauss(0, 1)))
                for i in range(len(one))
            ]
            pairs.append(
                (s, CandidateList.build(trees, inventory=inventory, sources=("a", "b"), base=0))
            )
        files[f"{name} lists"] = folder() / f"{name}-two.kbest.conllu"
        write_kbest(files[f"{name} lists"], pairs)
    lists = {
        "candidates": files["train lists"],
        "dev_candidates": files["dev lists"],
        "test_candidates": files["test lists"],
    }
    model = folder() / "combined-model"
    train_pipeline(options(model, **lists))
    return model, files


def test_select_of_a_model_with_a_combiner(tmp_path: Path) -> None:
    model, f = combined_files()
    before = open_model(model).reranker
    assert before.combiner is not None
    out = tmp_path / "m"
    told = select(
        model, f["train"], f["train lists"], f["dev"], f["dev lists"], out,
        SelectionSettings(**QUICK), test=(f["test"], f["test lists"]), n_threads=1,
    )  # fmt: skip
    after = open_model(out).reranker
    assert after.combiner is not None
    assert after.combiner.weights.tolist() == before.combiner.weights.tolist()
    assert set(told["betas"]) == {"a", "b", "combiner"}
    for part in ("dev", "test"):
        for system, place in (("selected", out), ("model", model)):
            expected = reranked(place, f[f"{part} lists"], f[part], tmp_path / "a.conllu")
            assert told["scores"][part][system] == pytest.approx(expected)
    # Lists of another parser are refused before anything is learnt.
    mixed = inputs()
    for wrong in ("train lists", "dev lists"):
        with pytest.raises(UserError, match=rf"{mixed[wrong].name}: has the scores of spacy, but"):
            made(tmp_path / "x", model=model, files=f | {wrong: mixed[wrong]})
    assert not (tmp_path / "x").exists()


def test_select_learns_from_lists_that_no_combiner_saw_and_tunes_on_dev(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, f = combined_files()
    given: list[Any] = []

    def caught(*arguments: Any, **more: Any) -> Any:
        given.extend(arguments)
        return explicit_training.train_explicit(*arguments, **more)

    monkeypatch.setattr(workflow, "train_explicit", caught)
    made(tmp_path / "m", model=model, files=f)
    _, gold, pairs, dev_gold, dev_pairs, _ = given
    for found, name in ((gold, "train"), (dev_gold, "dev")):
        assert [s.forms for s in found] == [s.forms for s in load_treebank(f[name])]
    inventory = LabelInventory()
    lists = [trees for _, trees in read_kbest(f["train lists"], inventory=inventory)]
    _, apart = ArcCombiner.fit_apart(load_treebank(f["train"]), lists)
    for (_, trees), expected in zip(pairs, apart, strict=True):
        assert trees.sources == expected.sources == ("a", "b", "combiner")
        assert trees.heads.tolist() == expected.heads.tolist()
        np.testing.assert_allclose(trees.scores, expected.scores)
    reranker = open_model(model).reranker
    for (_, trees), (s, dev_trees) in zip(dev_pairs, pairs_of(f["dev lists"]), strict=True):
        np.testing.assert_allclose(trees.scores, reranker.completed(s, dev_trees).scores)


# Memory


def test_select_stops_at_the_limit_of_memory_and_keeps_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explicit_training, "own_peak", lambda: 0)
    out = tmp_path / "m"
    result = invoke(
        *arguments(out), *flags(space="tree", threshold=1, max_order=3, pretraining=1),
        "--memory", 1 / 64, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    most = (1 << 24) // explicit_training.BYTES_OF_A_PATTERN
    assert re.fullmatch(
        rf"more than {most} patterns in iteration 1; what it had before is kept", told["stopped"]
    )
    assert (
        f"Warning: mining ended before its time: {told['stopped']}; give a higher --threshold, or "
        "more --memory\n"
    ) in result.stderr
    assert 0 < told["features"] < most
    assert len(open_model(out).reranker.explicit) > 30


def test_select_without_memory_for_anything_is_not_told_to_take_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explicit_training, "own_peak", lambda: 0)
    result = invoke(
        *arguments(tmp_path / "m"), *flags(space="tree", threshold=0.5), "--memory", 0.001
    )
    assert result.exit_code == 0, result.output
    warnings = [line for line in result.stderr.splitlines() if "--threshold" in line]
    assert warnings == [
        "Warning: mining ended before its time: more than 4194 patterns in pre-training; nothing "
        "is selected; give a higher --threshold, or more --memory"
    ]
    assert (
        "Warning: no feature was selected: the model chooses by the parsers' scores alone\n"
    ) in result.stderr
    assert re.search(r"│ tree +│0\.5 │", result.stdout), result.stdout


@pytest.mark.parametrize("space", ["quadratic", "slots"])
def test_select_refuses_more_basic_features_than_have_numbers(
    space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explicit_training, "MAX_FEATURES", 50)
    result = invoke(*arguments(tmp_path / "m"), "--space", space)
    assert result.exit_code == 1
    assert re.fullmatch(
        r"Error: there are [\d,]+ basic features, and 50 can be numbered; raise the least count "
        r"\(--min-count\)",
        result.stderr.splitlines()[-1],
    )
    assert list(tmp_path.iterdir()) == []


def test_select_refuses_less_memory_than_the_lists_take(tmp_path: Path) -> None:
    result = invoke(*arguments(tmp_path / "m"), "--memory", 0.001)
    assert result.exit_code == 1
    assert re.fullmatch(
        r"Error: the lists and their features take [\d.]+ GiB already, of 0\.001 GiB of memory; "
        r"allow more memory \(--memory\), or raise the least count \(--min-count\)\n",
        result.stderr.splitlines(keepends=True)[-1],
    )
    assert list(tmp_path.iterdir()) == []


def test_select_warns_where_nothing_is_selected(tmp_path: Path) -> None:
    result = invoke(*arguments(tmp_path / "m"), "--threshold", 1e8)
    assert result.exit_code == 0, result.output
    assert (
        "Warning: no feature was selected: the model chooses by the parsers' scores alone; give a "
        "lower --threshold\n"
    ) in result.stderr
    assert len(open_model(tmp_path / "m").reranker.explicit) == 0


def test_select_says_where_no_basic_feature_is_left(tmp_path: Path) -> None:
    result = invoke(*arguments(tmp_path / "m"), "--min-count", 100000)
    assert result.exit_code == 0, result.output
    assert ("alone; give a lower --min-count, all basic features are left out\n") in result.stderr


# Refusals


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            ("--space", "cubic"),
            2,
            "--space is 'cubic', which is unknown; choose from quadr",
        ),
        (
            ("--learner", "svm"),
            2,
            "--learner is 'svm', which is unknown; choose from perc",
        ),
        (("--metric", "clas"), 2, "--metric is 'clas'; choose las or uas"),
        (("-C", -1), 2, "--threshold is -1; it must be from 0 to 1e+09"),
        (("-C", "nan"), 2, "--threshold is nan; it must be"),
        (("--iterations", -1), 2, "--iterations is -1; it must be from 0"),
        (("--step", 0), 2, "--step is 0; it must be"),
        (("--pretraining", -1), 2, "--pretraining is -1"),
        (("--max-order", 3), 2, "--max-order is 3; it must be from 1 to 2"),
        (("--space", "slots", "--max-order", 1), 2, "--max-order has no effect in the space slots"),
        (("--space", "kernel", "--labelled"), 2, "--labelled has no effect in the space kernel"),
        (("--space", "kernel", "-C", 2), 2, "--threshold has no effect in the space kernel; leave"),
        (("--space", "kernel", "--iterations", 2), 2, "--iterations has no effect in the space"),
        (("--space", "quadratic", "--most", 9), 2, "--most has no effect in the space quadratic"),
        (("--space", "tree", "--most", 9), 2, "--most has no effect in the space tree; leave it"),
        (("--space", "slots", "--most", 9), 2, "--most has no effect in the space slots; leave"),
        (("--space", "templates", "-C", 9), 2, "--threshold has no effect in the space templates"),
        (
            ("--space", "templates", "--learner", "l1"),
            2,
            "--learner has no effect in the space te",
        ),
        (("--space", "kernel", "--most", 0), 2, "--most is 0; it must be from 1"),
        (("--min-count", 0), 2, "--min-count is 0; it must be from 1"),
        (("--min-count", 100000), 0, ""),
        (("--memory", 0), 2, "--memory is 0; give a positive number of GiB"),
        (("--memory", "nan"), 2, "--memory is nan; give a positive number of GiB"),
        (("--strongest", -1), 2, "should be greater than or equal to 0"),
        (("--threads", 0), 2, "should be greater than or equal to 1"),
    ],
)
def test_select_refuses_options(
    options: tuple[object, ...], code: int, message: str, tmp_path: Path
) -> None:
    given = [inputs()["dev"] if word == "DEV" else word for word in options]
    result = invoke(*arguments(tmp_path / "m"), *given)
    assert result.exit_code == code, result.output
    assert message in " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())
    assert (tmp_path / "m").exists() == (code == 0)


def few_lists(path: Path, target: Path) -> Path:
    write_kbest(target, pairs_of(path)[:5])
    return target


def single(path: Path, target: Path) -> Path:
    """Lists of one tree each."""
    write_kbest(target, list(read_kbest(path, inventory=LabelInventory(), k=1)))
    return target


WRONG: dict[str, tuple[Callable[[Path], Files], str]] = {
    "no treebank": (lambda p: {"train": p / "none"}, "none: is not there; give a CoNLL-U file"),
    "dev that is train": (
        lambda p: {"dev": inputs()["train"], "dev lists": inputs()["train lists"]},
        "dev is the same as train",
    ),
    "no lists": (lambda p: {"train lists": p / "none"}, "none: .*No such file"),
    "lists of other sentences": (
        lambda p: {"train lists": inputs()["dev lists"]}, "dev.kbest.conllu"
    ),
    "lists of too few sentences": (
        lambda p: {"dev lists": few_lists(inputs()["dev lists"], p / "few.conllu")},
        "few.conllu: no candidates for sentence",
    ),
    "a treebank for lists": (lambda p: {"dev lists": inputs()["dev"]}, "dev.conllu"),
    "no trees": (
        lambda p: {"dev": stripped(inputs()["dev"], p / "bare.conllu")}, r"bare.conllu:\d+"
    ),
    "lists of one tree": (
        lambda p: {"train lists": single(inputs()["train lists"], p / "one.conllu")},
        "no candidate list has more than one tree",
    ),
    "another parser's lists": (
        lambda p: {"dev lists": combined_files()[1]["dev lists"]}, "needs those of spacy"
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_select_refuses_files_in_one_line_and_writes_nothing(wrong: str, tmp_path: Path) -> None:
    change, message = WRONG[wrong]
    (tmp_path / "in").mkdir()
    files = inputs() | change(tmp_path / "in")
    before = sorted(tmp_path.rglob("*"))
    result = invoke(*arguments(tmp_path / "out", files=files), "-q")
    assert result.exit_code == 1, result.output
    assert re.search(message, result.stderr)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_select_writes_no_model_into_the_work_directory(
    release: tuple[Path, Path],
) -> None:
    treebank_folder, work = release
    result = invoke(
        "select", lists_training()[0], treebank_folder, "--workdir", work, "-o", work / "new"
    )
    assert result.exit_code == 2
    assert f"{work / 'new'}: lies in the work directory {work}; write it else" in result.stderr
    assert not (work / "new").exists()


def test_select_leaves_an_older_model_where_it_fails(tmp_path: Path) -> None:
    model = Path(shutil.copytree(selected("slots")[0], tmp_path / "m"))
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    first = invoke(*arguments(model), *flags(**QUICK))
    assert first.exit_code == 1
    assert "exists already; replaced only on demand (--overwrite)" in first.stderr
    wrong = inputs() | {"dev lists": inputs()["test lists"]}
    failed = invoke(*arguments(model, files=wrong), *flags(**QUICK), "--overwrite")
    assert failed.exit_code == 1
    assert before == {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    done = invoke(*arguments(model), *flags(**QUICK), "--overwrite")
    assert done.exit_code == 0, done.output
    assert open_model(model).reranker.to_bytes() == made(tmp_path / "new")
    itself = invoke(*arguments(model, model=model), "--overwrite")
    assert itself.exit_code == 1
    assert "the model itself; give another directory" in itself.stderr


def test_select_names_the_first_file_that_the_disk_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", source, None, target)

    whole, files = pipeline_files()
    monkeypatch.setattr(shutil, "copy2", full)
    out = tmp_path / "out"
    result = invoke(*arguments(out, model=whole, files=files), *flags(**QUICK), "-q")
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert re.fullmatch(
        rf"Error: {re.escape(str(out))}: {re.escape(str(whole))}\S+ cannot be copied there: "
        "No space left on device",
        last,
    )
    assert list(tmp_path.iterdir()) == []


def test_select_refuses_a_model_without_a_kernel(tmp_path: Path) -> None:
    reranker = open_model(lists_training()[0]).reranker
    without = replace(
        reranker,
        settings=replace(reranker.settings, kernel_parts=()),
        support=replace(reranker.support, types={}, skips={}).compact(),
    )
    without.to_disk(tmp_path / "m")
    for space, message in (
        ("slots", "the model's kernel compares no parts"),
        ("kernel", "the model has no support parts"),
    ):
        with pytest.raises(UserError, match=message):
            made(tmp_path / "out", model=tmp_path / "m", space=space)
    made(tmp_path / "out", model=tmp_path / "m")  # features of arcs need none
    assert len(open_model(tmp_path / "out").reranker.explicit) > 30
