"""`tk-spacy train` with a sampling parser, alone and beside a spaCy parser: models and commands."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from test_cli import invoke
from trainings import (
    QUICK_SAMPLING,
    Recorder,
    folder,
    list_files,
    lists_training,
    same_trees,
    sampling_options,
    sampling_training,
    treebank,
    views_training,
)

from tk_spacy.batch import parse_files, rerank_files
from tk_spacy.candidates import SHORT_LIST, LabelInventory
from tk_spacy.cli.training import chosen_views
from tk_spacy.errors import UserError
from tk_spacy.evaluation import evaluate
from tk_spacy.kbest_reading import read_kbest
from tk_spacy.models import open_model, read_parser
from tk_spacy.pipeline import train_pipeline
from tk_spacy.report import COMBINER_ROW, SYSTEMS, VOTE, TrainReport, costs_table
from tk_spacy.treebank import Sentence, load_treebank, write_conllu
from tk_spacy.upstream.corpus import doc_from_sentence, sentence_from_doc
from tk_spacy.views.sampling_view import Counter


def parsed_by_pipeline(path: Path, sentences: list[Sentence]) -> list[Sentence]:
    nlp = spacy.load(path)
    docs = nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in sentences)
    return [sentence_from_doc(doc) for doc in docs]


def assert_consistent(path: Path, report: TrainReport, tmp_path: Path) -> None:
    """The report, `rerank` and the spaCy pipeline agree on test."""
    gold = load_treebank(treebank()["test"])
    scores = report.parts["test"].scores
    assert evaluate(gold, parsed_by_pipeline(path, gold)) == scores["final system"]
    (result,) = rerank_files(path, [treebank()["test"]], tmp_path / "out.conllu", n_threads=1)
    found = result.to_dict()["scores"]
    assert found["parser"]["las"] == scores["base parser"].las
    assert found["final"]["las"] == scores["final system"].las
    # The base parser's trees are the first of its lists, which are searched longer than one tree.
    k = spacy.load(path).get_pipe("tk_reranker").k
    lists = tmp_path / "lists.conllu"
    parse_files(path, [treebank()["test"]], lists, k=k, n_threads=1)
    if len(report.run_time.views) == 1 or k > SHORT_LIST:  # in company short lists are quicker made
        assert evaluate(gold, load_treebank(lists)) == scores["base parser"]
    (result,) = parse_files(path, [treebank()["test"]], tmp_path / "one.conllu", n_threads=1)
    trees = read_parser(path).parse(gold, n_threads=1)
    own = [sentence.with_tree(*tree) for sentence, tree in zip(gold, trees, strict=True)]
    assert result.to_dict()["scores"]["final"]["las"] == evaluate(gold, own).las


def test_sampling_model_needs_no_spacy_parser(tmp_path: Path) -> None:
    path, report = sampling_training()
    assert spacy.load(path).component_names == ["tk_parser", "tk_reranker"]
    alone = tuple(name for name in SYSTEMS if name not in (VOTE, COMBINER_ROW))
    assert tuple(report.parts["test"].scores) == alone
    assert list(report.betas) == ["sampling"]
    assert set(report.run_time.views) == {"sampling"}
    assert all(seconds > 0 for seconds in report.run_time.views["sampling"].values())
    about = open_model(path).reranker.about
    assert about["sources"] == ["sampling"]
    assert about["views"]["sampling"]["epochs"] == 2
    assert about["upstream"] == {"trained": True, "pipeline": None, "folds": 2}
    assert_consistent(path, report, tmp_path)


def test_sampling_model_takes_words_that_spacy_cannot(tmp_path: Path) -> None:
    # UPOS outside UD: a sampling parser does not mind, and `rerank` asks spaCy for nothing.
    path = tmp_path / "in.conllu"
    sentence = Sentence.from_columns(forms=["ba", "be"], upos=["Nn", "Vv"], sent_id="odd")
    write_conllu(path, [sentence])
    rerank_files(sampling_training()[0], [path], tmp_path / "out.conllu", n_threads=1)
    assert load_treebank(tmp_path / "out.conllu")[0].has_tree


def test_sampling_training_gives_the_same_model_again(tmp_path: Path) -> None:
    path, report = sampling_training()
    again = train_pipeline(sampling_options(tmp_path / "model", threads=2))
    assert again.parts["dev"].scores == report.parts["dev"].scores
    for name in ("tk_parser", "tk_reranker"):
        for file in (path / name).iterdir():
            assert (tmp_path / "model" / name / file.name).read_bytes() == file.read_bytes()


def test_sampling_training_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    wanted = sampling_options(tmp_path / "model", workdir=work)
    train_pipeline(wanted)
    with monkeypatch.context() as patch:  # nothing is trained a second time
        patch.setattr("tk_spacy.views.sampling_view.train_sampling_parser", None)
        recorder = Recorder()
        train_pipeline(sampling_options(tmp_path / "again", workdir=work), progress=recorder)
    assert recorder.notes == [
        f"taken over from {work}: sampling parser of all of train",
        f"taken over from {work / 'folds'}: lists of fold 1, 2",
    ]
    changed = {**QUICK_SAMPLING, "epochs": 1}
    wanted = sampling_options(tmp_path / "new", workdir=work, sampling=changed)
    monkeypatch.setattr("tk_spacy.views.sampling_view.train_sampling_parser", None)
    with pytest.raises(TypeError):  # other settings, another training
        train_pipeline(wanted)


@pytest.mark.slow
def test_both_views_in_one_model(tmp_path: Path) -> None:
    path, report = views_training()
    nlp = spacy.load(path)
    assert nlp.pipe_names == ["tk_parser", "tk_reranker"]
    assert nlp.component_names == ["parser", "tk_parser", "tk_reranker"]
    for part in report.parts.values():
        assert tuple(part.scores) == ("base parser", "spacy parser", *SYSTEMS[1:])
        assert [test.metric for test in part.vote_tests] == ["uas", "las"]
    assert list(report.betas) == ["sampling", "spacy", "combiner"]
    costs = {row[0]: row[1:] for row in costs_table(report).rows}
    assert costs.keys() == {"sampling parser", "spacy parser", "final system"}
    assert costs["spacy parser"][0] == report.parts["test"].scores["spacy parser"].las
    assert costs["final system"][-1] < min(costs[f"{n} parser"][-1] for n in ("sampling", "spacy"))
    assert set(report.run_time.views) == {"sampling", "spacy"}
    assert_consistent(path, report, tmp_path)
    # The sampling parser is the one that it is without a view beside it.
    alone = sampling_training()[0]
    assert read_parser(path).to_bytes() == read_parser(alone).to_bytes()


@pytest.mark.slow
def test_two_sampling_parsers_in_one_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    report = train_pipeline(
        sampling_options(
            path, views=("sampling", "sampling:order=1:seed=3"), sampling={"epochs": 2}
        )
    )
    nlp = spacy.load(path)
    assert nlp.component_names == ["tk_parser", "tk_parser_order1_seed3", "tk_reranker"]
    assert nlp.disabled == ["tk_parser_order1_seed3"]
    name = "sampling-order1-seed3"
    assert list(report.betas) == ["sampling", name, "combiner"]
    assert {f"{name} parser", "plain vote", "arc combiner"} <= report.parts["test"].scores.keys()
    about = open_model(path).reranker.about["views"]
    assert [about[view]["order"] for view in ("sampling", name)] == [3, 1]
    assert_consistent(path, report, tmp_path)


@pytest.mark.slow
def test_both_views_in_kbest_files(tmp_path: Path) -> None:
    path, lists = views_training()[0], tmp_path / "k.conllu"
    result = invoke("kbest", path, treebank()["test"], "-o", lists, "--k", 6, "-q")
    assert result.exit_code == 0, result.output
    pairs = list(read_kbest(lists, inventory=LabelInventory()))
    assert {trees.sources for _, trees in pairs} == {("sampling", "spacy")}
    assert all("spacy" in trees.bases for _, trees in pairs)
    filled = np.mean([np.isfinite(trees.scores).mean() for _, trees in pairs])
    assert filled > 0.8
    rerank_files(path, [lists], tmp_path / "a.conllu", n_threads=1)
    rerank_files(path, [treebank()["test"]], tmp_path / "b.conllu", n_threads=1)
    assert same_trees(tmp_path / "a.conllu", tmp_path / "b.conllu")


def test_lists_of_one_set_of_views_are_refused_by_a_model_of_another(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="scores of spacy, but the model needs those of sampling"):
        rerank_files(sampling_training()[0], [list_files()["dev"]], tmp_path / "out", n_threads=1)
    wanted = sampling_options(tmp_path / "model", candidates=list_files()["train"])
    with pytest.raises(UserError, match="parsers have the scores 'sampling', the candidates of"):
        train_pipeline(wanted)
    text = list_files()["train"].read_text("utf-8")
    for name in ("sampling", "spacy+backward"):
        twin = tmp_path / "twin.conllu"
        twin.write_text(text.replace("= spacy:", f"= {name}:"), "utf-8")
        wanted = sampling_options(
            tmp_path / "model", views=("spacy",), sampling={}, backward=False, candidates=twin
        )
        with pytest.raises(UserError, match="have the scores 'spacy', the candidates of train '"):
            train_pipeline(wanted)


# Commands


def test_cli_kbest_and_info_of_a_sampling_model(tmp_path: Path) -> None:
    path = sampling_training()[0]
    result = invoke("kbest", path, treebank()["dev"], "-o", tmp_path / "k.conllu", "--json", "-q")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["trees_per_sentence"] > 2
    shown = invoke("info", path)
    assert shown.exit_code == 0, shown.output
    assert "sampling parser" in shown.stdout
    assert "trained, order 3, 2 epochs, 2 folds" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--views", "turbo"), "unknown view 'turbo'; choose from sampling, spacy"),
        (("--views", "none"), "views are none; name one or more different ones"),
        (("--views", "sampling", "--no-backward"), "no backward twin concerns the spacy view only"),
        (("--views", "sampling", "--max-steps", 3), "max_steps concerns the spacy view only"),
        (("--views", "sampling", "--config", "a.cfg"), "a config concerns the spacy view only"),
        (("--views", "spacy", "--order", 2), "order concerns the sampling view only"),
        (("--upstream", "some", "--epochs", 2), "epochs concerns the sampling view only"),
        (("--views", "sampling", "--upstream", "x"), "an upstream pipeline concerns the spacy"),
    ],
)
def test_cli_train_options_of_a_view_that_is_not_there(
    tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    files = treebank()
    result = invoke(
        "train", files["train"], "--dev", files["dev"], "-o", tmp_path / "m", *arguments
    )
    assert result.exit_code == 1
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_cli_train_chooses_the_views_that_are_meant() -> None:
    assert chosen_views(None) == ("sampling", "spacy", "biaffine")
    assert chosen_views(None, upstream="some") == ("spacy",)
    assert chosen_views(" spacy , sampling") == ("spacy", "sampling")


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
    again = invoke("add-kernel", parser, model, "--dev", dev, "-o", out)
    assert "use --overwrite to replace it" in again.stderr
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
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.conllu"]
    assert "skipped" in invoke("parse", parser, tmp_path / "in", "-o", tmp_path / "out").stdout


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
    reason = "damaged or incomplete" if content is not None else "no tk-spacy"
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
        ((files["train"], "-o", parser), "exists already; use --overwrite"),
        ((files["train"], "--dev", files["train"], "-o", tmp_path / "p"), "dev is the same as"),
        ((tmp_path / "missing", "-o", tmp_path / "p"), "missing"),
        ((files["train"], "-o", tmp_path / "p", "-C", "0"), "C is 0.0"),
    ):
        result = invoke("train-parser", *arguments)
        assert result.exit_code == 1
        assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_sampling_progress_is_one_count() -> None:
    from tk_spacy.sampling.training import EpochProgress

    seen: list[tuple[int, int]] = []
    count = Counter(lambda done, of: seen.append((done, of)))
    for stage, epochs in (("pruner", 2), ("parser", 3)):
        for epoch in range(1, epochs + 1):
            count(EpochProgress(stage, epoch, epochs, 10, 10))
    assert seen == [(10, 20), (20, 20), (30, 50), (40, 50), (50, 50)]
