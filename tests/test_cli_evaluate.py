"""`tk-spacy evaluate` and `tk-spacy info`."""

import json
import shutil
from pathlib import Path

import pytest
from samples import NO_TREE, PLAIN
from test_cli import invoke
from trainings import list_files, lists_training, parser_training, treebank

from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.bootstrap import paired_bootstrap
from tk_spacy.evaluation.breakdown import GROUPINGS
from tk_spacy.treebank.conllu import load_treebank


@pytest.fixture
def reranked(tmp_path: Path) -> Path:
    out = tmp_path / "reranked.conllu"
    invoke("rerank", lists_training()[0], list_files()["test"], "-o", out, "--threads", 1)
    return out


def test_cli_evaluate_one_system(reranked: Path) -> None:
    result = invoke("evaluate", treebank()["test"], reranked)
    assert result.exit_code == 0, result.output
    gold = load_treebank(treebank()["test"])
    scores = evaluate(gold, load_treebank(reranked))
    for value in (scores.uas, scores.las, scores.uas_nopunct, scores.clas, scores.exact_match):
        assert f"{value:.2f}" in result.stdout
    assert "bootstrap" not in result.stdout
    assert scores == lists_training()[1].parts["test"].scores["final system"]


def test_cli_evaluate_two_systems(reranked: Path) -> None:
    gold, first = treebank()["test"], list_files()["test"]
    result = invoke(
        "evaluate", gold, first, reranked, "--metric", "las", "--samples", 500, "--seed", 3,
        "--json",
    )  # fmt: skip
    document = json.loads(result.stdout)
    trees = [load_treebank(path) for path in (gold, first, reranked)]
    expected = paired_bootstrap(*trees, metric="las", samples=500, seed=3)
    (found,) = document["comparisons"]
    assert found["difference"] == expected.difference
    assert found["p_two_sided"] == expected.p_two_sided
    assert (found["file"], found["against"]) == (str(reranked), str(first))
    assert [row["uas"] for row in document["systems"]] == [
        evaluate(trees[0], system).uas for system in trees[1:]
    ]


def test_cli_evaluate_the_same_file_twice(reranked: Path) -> None:
    result = invoke("evaluate", treebank()["test"], reranked, reranked)
    assert result.exit_code == 0
    assert "+0.00 UAS" in result.stdout


@pytest.mark.parametrize(
    ("gold", "system", "message"),
    [
        ("plain", "longer", "the gold side ends before it"),
        ("plain", "other", "word 2 is 'sleep' in gold, 'slept' in system"),
        ("no_tree", "plain", "has no HEAD, but trees are needed"),
        ("empty", "empty", "no sentence to score"),
        ("plain", "garbage", "garbage.conllu:1: 1 column instead of 10"),
        ("plain", "folder", "folder: cannot read it: Is a directory"),
    ],
)
def test_cli_evaluate_refuses(tmp_path: Path, gold: str, system: str, message: str) -> None:
    paths = {"folder": tmp_path / "folder"}
    paths["folder"].mkdir()
    for name, text in {
        "plain": PLAIN,
        "longer": PLAIN * 2,
        "other": PLAIN.replace("\tsleep\tsleep", "\tslept\tsleep"),
        "no_tree": NO_TREE,
        "empty": "",
        "garbage": "garbage\n",
    }.items():
        paths[name] = tmp_path / f"{name}.conllu"
        paths[name].write_text(text, encoding="utf-8")
    result = invoke("evaluate", paths[gold], paths[system])
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_cli_evaluate_system_without_trees_scores_nothing(tmp_path: Path) -> None:
    (tmp_path / "gold.conllu").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "none.conllu").write_text(NO_TREE, encoding="utf-8")
    result = invoke("evaluate", tmp_path / "gold.conllu", tmp_path / "none.conllu", "--json")
    assert json.loads(result.stdout)["systems"][0]["uas"] == 0


def test_cli_evaluate_counts_what_is_ill_formed(tmp_path: Path) -> None:
    words = [(2, "nsubj"), (0, "root"), (2, "obl"), (2, "punct")]
    wrong = {"a": {2: (2, "nsubj")}, "b": {2: (2, "nsubj:pass"), 3: (3, "punct")}}
    for name, changes in {"gold": {}, **wrong}.items():
        arcs = [changes.get(i, arc) for i, arc in enumerate(words)]
        tags = ("NOUN", "VERB", "NOUN", "PUNCT")
        lines = [
            f"{i}\tw\t_\t{tag}\t_\t_\t{head}\t{label}\t_\t_\n"
            for i, (tag, (head, label)) in enumerate(zip(tags, arcs, strict=True), 1)
        ]
        (tmp_path / f"{name}.conllu").write_text("".join(lines) + "\n", encoding="utf-8")
    paths = [tmp_path / f"{name}.conllu" for name in ("gold", "a", "b")]
    document = json.loads(invoke("evaluate", *paths, "--json").stdout)
    assert [row["kinds"] for row in document["violations"]] == [
        {}, {"too-many-subjects": 1}, {"too-many-subjects": 1},
    ]  # fmt: skip
    assert [row["file"] for row in document["violations"]] == [str(path) for path in paths]
    shown = invoke("evaluate", *paths).stdout
    assert "Ill-formed trees" in shown
    assert "too-many-subjects" in shown


def test_cli_evaluate_unknown_metric(reranked: Path) -> None:
    result = invoke("evaluate", treebank()["test"], reranked, "--metric", "bleu")
    assert result.exit_code == 2
    assert "bleu" in result.stderr


def test_cli_info_shows_settings_sizes_and_scores() -> None:
    path, report = lists_training()
    result = invoke("info", path)
    assert result.exit_code == 0, result.output
    score = report.parts["test"].scores["final system"].uas
    for text in (
        "reranker alone", "train.conllu: 90 sentences", "infinite", "Scores on UD_Synthetic test",
        f"{score:.2f}", f"{report.run_time.support_parts} arc", "form, form-1, form+1",
    ):  # fmt: skip
        assert text in result.stdout


def test_cli_info_json() -> None:
    path, report = lists_training()
    facts = json.loads(invoke("info", path, "--json").stdout)
    assert facts["settings"]["kernel_parts"] == ["arc"]
    assert facts["report"] == json.loads(json.dumps(report.to_dict()))
    assert facts["combination"]["betas"] == report.betas
    assert facts["about"]["scores"]["dev"]["oracle"]["uas"] > 0


def test_cli_info_without_report(tmp_path: Path) -> None:
    shutil.copytree(lists_training()[0], tmp_path / "model")
    (tmp_path / "model" / "report.json").write_text('{"format": "something else"}')
    assert invoke("info", tmp_path / "model").exit_code == 0
    (tmp_path / "model" / "report.json").write_text("[")
    assert invoke("info", tmp_path / "model", "--json").exit_code == 0


def test_cli_info_of_no_model(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").write_text("")
    result = invoke("info", tmp_path)
    assert result.exit_code == 1
    assert "a spaCy pipeline without a trained tk_reranker" in result.stderr


@pytest.mark.slow
def test_cli_info_of_a_pipeline() -> None:
    path, _ = parser_training()
    result = invoke("info", path)
    assert "spaCy pipeline with reranker" in result.stdout
    assert "with right-to-left twin, 2 folds" in result.stdout


def test_cli_evaluate_by_groupings(reranked: Path) -> None:
    gold, first = treebank()["test"], list_files()["test"]
    arguments = ["evaluate", gold, first, reranked, "--by", "deprel", "--by", "length"]
    shown = invoke(*arguments)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.index("By deprel") < shown.stdout.index("By length")
    document = json.loads(invoke(*arguments, "--json").stdout)
    assert list(document["by"]) == ["deprel", "length"]
    for number, system in enumerate(document["systems"]):
        for rows in document["by"].values():
            own = [row["systems"][number] for row in rows]
            assert sum(row["words"] for row in rows) == system["words"]
            assert 100 * sum(row["heads"] for row in own) / system["words"] == pytest.approx(
                system["uas"]
            )
            assert own[0]["file"] == system["file"]
    errors = [row["systems"][1]["errors"] for row in document["by"]["deprel"]]
    assert errors == sorted(errors, reverse=True)


def test_cli_evaluate_by_all_groupings_and_by_none(reranked: Path) -> None:
    gold = treebank()["test"]
    everything = json.loads(invoke("evaluate", gold, reranked, "--by", "all", "--json").stdout)
    assert list(everything["by"]) == list(GROUPINGS)
    assert json.loads(invoke("evaluate", gold, reranked, "--json").stdout)["by"] == {}
    result = invoke("evaluate", gold, reranked, "--by", "colour")
    assert result.exit_code == 2
    assert "colour" in result.stderr
