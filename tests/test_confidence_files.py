"""Probabilities in files: written by `rerank --confidence`, told the worth of by `evaluate`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from samples import ODD, PLAIN
from test_cli import invoke
from trainings import list_files, lists_training, treebank

from tk_spacy.errors import UserError
from tk_spacy.evaluation.reliability import calibration_error, risk_coverage_area
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.reranker.calibration import can_fit
from tk_spacy.treebank.confidence_columns import read_confidence, with_confidence
from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.utils.serialization import META
from tk_spacy.workflows.model import open_model

needs_sklearn = pytest.mark.skipif(not can_fit(), reason="scikit-learn is not installed")


def read_text(text: str, path: Path):
    path.write_text(text, encoding="utf-8")
    return load_treebank(path, single_root=False)


# Columns


def test_probabilities_stand_in_misc_in_the_order_of_the_alphabet(tmp_path):
    (sentence,) = read_text(
        PLAIN.replace("\t_\t_\n", "\t_\tGloss=x|Translit=y\n", 1), tmp_path / "a.conllu"
    )
    new = with_confidence(sentence, heads=[0.5, 1.0, 0], labels=[0.12345, 0.9, 1], tree=0.25)
    assert new.misc == (
        "Gloss=x|HeadProb=0.5000|LabelProb=0.1235|Translit=y",
        "HeadProb=1.0000|LabelProb=0.9000|SpaceAfter=No",
        "HeadProb=0.0000|LabelProb=1.0000",
    )
    assert new.comments == ("# sent_id = plain-1", "# tk_tree_prob = 0.2500")
    # Earlier ones are replaced.
    again = with_confidence(new, heads=[1, 1, 1], labels=[1, 1, 1], tree=1.0)
    assert again.misc[1] == "HeadProb=1.0000|LabelProb=1.0000|SpaceAfter=No"
    assert again.comments == ("# sent_id = plain-1", "# tk_tree_prob = 1.0000")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SpaceAfter=No", "HeadProb=0.5|HeadProb=0.6", ":3: has HeadProb twice; keep one of them"),
        ("SpaceAfter=No", "LabelProb=1|LabelProb=1", ":3: has LabelProb twice; keep one of them"),
        ("SpaceAfter=No", "HeadProb=0_1", ":3: HeadProb is '0_1'; expected a number from 0 to 1"),
        ("SpaceAfter=No", "HeadProb=", ":3: HeadProb is ''; expected a number from 0 to 1"),
        (
            "# sent_id",
            "# tk_tree_prob = 0.1\n# tk_tree_prob = 0.2\n# sent_id",
            ":1: has tk_tree_prob twice; keep one of them",
        ),
    ],
)
def test_probabilities_that_say_two_things_or_nothing_are_refused(tmp_path, old, new, message):
    (sentence,) = read_text(PLAIN.replace(old, new, 1), tmp_path / "a.conllu")
    with pytest.raises(UserError) as caught:
        read_confidence(sentence)
    assert str(caught.value) == f"{tmp_path / 'a.conllu'}{message}"


def test_numbers_of_other_programs_are_read(tmp_path):
    for text, value in (("1e-1", 0.1), (".5", 0.5), ("1.", 1.0), ("+0.25", 0.25), ("1E-2", 0.01)):
        (sentence,) = read_text(
            PLAIN.replace("SpaceAfter=No", f"HeadProb={text}"), tmp_path / "a.conllu"
        )
        assert read_confidence(sentence).heads[1] == value


def test_probabilities_leave_all_else_of_an_odd_sentence_as_it_is(tmp_path):
    (odd,) = read_text(ODD, tmp_path / "odd.conllu")
    n = len(odd)
    new = with_confidence(odd, heads=np.full(n, 0.5), labels=np.full(n, 0.25), tree=0.125)
    text = new.to_conllu().replace("# tk_tree_prob = 0.1250\n", "")
    text = text.replace("|HeadProb=0.5000|LabelProb=0.2500", "")
    text = text.replace("HeadProb=0.5000|LabelProb=0.2500|", "")
    assert text.replace("HeadProb=0.5000|LabelProb=0.2500", "_") == ODD
    write_conllu(tmp_path / "new.conllu", [new])
    (read,) = load_treebank(tmp_path / "new.conllu", single_root=False)
    said = read_confidence(read)
    assert said.heads.tolist() == [0.5] * n
    assert said.labels.tolist() == [0.25] * n
    assert said.tree == 0.125


def test_words_without_probabilities_say_nothing(tmp_path):
    (sentence,) = read_text(
        PLAIN.replace("SpaceAfter=No", "SpaceAfter=No|HeadProb=0.75"), tmp_path / "a.conllu"
    )
    said = read_confidence(sentence)
    np.testing.assert_array_equal(said.heads, [np.nan, 0.75, np.nan])
    assert np.isnan(said.labels).all()
    assert np.isnan(said.tree)


@pytest.mark.parametrize("value", ["1.5", "-0.1", "nan", "high", ""])
def test_what_is_no_probability_is_refused_with_its_place(tmp_path, value):
    path = tmp_path / "a.conllu"
    (sentence,) = read_text(PLAIN.replace("SpaceAfter=No", f"LabelProb={value}"), path)
    with pytest.raises(UserError, match=f"a.conllu:3: LabelProb is '{value}'; expected a number"):
        read_confidence(sentence)
    (sentence,) = read_text(f"# tk_tree_prob = {value}\n{PLAIN}", path)
    with pytest.raises(UserError, match=f"a.conllu:1: tk_tree_prob is '{value}'"):
        read_confidence(sentence)


def test_probabilities_of_other_words_are_refused(tmp_path):
    (sentence,) = read_text(PLAIN, tmp_path / "a.conllu")
    with pytest.raises(ValueError, match="expected 3"):
        with_confidence(sentence, heads=[1.0], labels=[1.0] * 3, tree=1.0)
    with pytest.raises(ValueError, match="0 to 1"):
        with_confidence(sentence, heads=[1.0] * 3, labels=[1.0] * 3, tree=1.25)


# Commands


def rerank(model: Path, out: Path, *more: object) -> str:
    result = invoke("rerank", model, list_files()["test"], "-o", out, "--threads", 1, *more)
    assert result.exit_code == 0, result.output
    return out.read_text(encoding="utf-8")


@needs_sklearn
@pytest.mark.parametrize("more", [(), ("--well-formed",)])
def test_cli_rerank_writes_what_the_model_says(tmp_path, more):
    model = lists_training()[0]
    plain = rerank(model, tmp_path / "plain.conllu", *more)
    assert "Prob=" not in plain
    rerank(model, tmp_path / "sure.conllu", "--confidence", *more)
    found = load_treebank(tmp_path / "sure.conllu")
    before = load_treebank(tmp_path / "plain.conllu")
    reranker = open_model(model).reranker
    pairs = read_kbest(list_files()["test"], inventory=LabelInventory())
    repaired = 0
    for sentence, own, (given, trees) in zip(found, before, pairs, strict=True):
        decision = reranker.decide(given, trees, well_formed=bool(more), n_threads=1)
        repaired += len(decision.repairs)
        expected = reranker.confidence(decision.candidates, decision.final, decision.row)
        said = read_confidence(sentence)
        assert said.heads.tolist() == pytest.approx(expected.heads.tolist(), abs=6e-5)
        assert said.labels.tolist() == pytest.approx(expected.labels.tolist(), abs=6e-5)
        assert said.tree == pytest.approx(expected.tree, abs=6e-5)
        assert sentence.heads.tolist() == own.heads.tolist()
        assert sentence.comments[:-1] == own.comments
    assert repaired
    # Another command made the file: it is made again.
    result = invoke(
        "rerank", model, list_files()["test"], "-o", tmp_path / "sure.conllu", "--json", *more
    )
    assert json.loads(result.stdout)["files"][0]["status"] == "done"
    assert (tmp_path / "sure.conllu").read_text(encoding="utf-8") == plain


def test_new_trees_have_no_probabilities_of_others(tmp_path):
    lists = tmp_path / "lists.conllu"
    pairs = read_kbest(list_files()["test"], inventory=LabelInventory())
    write_kbest(
        lists,
        (
            (with_confidence(s, heads=[0.5] * len(s), labels=[0.5] * len(s), tree=0.5), trees)
            for s, trees in pairs
        ),
    )
    assert "HeadProb=0.5" in lists.read_text("utf-8")
    out = tmp_path / "out.conllu"
    done = invoke("rerank", lists_training()[0], lists, "-o", out)
    assert done.exit_code == 0, done.output
    assert "Prob=" not in out.read_text("utf-8")
    assert "tk_tree_prob" not in out.read_text("utf-8")


def test_cli_rerank_refuses_confidence_of_a_model_without_calibration(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(lists_training()[0], model)
    meta = json.loads((model / META).read_text())
    meta.pop("calibration", None)
    (model / META).write_text(json.dumps(meta))
    result = invoke(
        "rerank", model, list_files()["test"], "-o", tmp_path / "out.conllu", "--confidence"
    )
    assert result.exit_code == 1
    assert "confidence is not calibrated; train it again where scikit-learn is" in " ".join(
        result.stderr.split()
    )
    assert not (tmp_path / "out.conllu").exists()
    # Without the option the trees are the same with and without calibration.
    assert rerank(model, tmp_path / "a.conllu") == rerank(
        lists_training()[0], tmp_path / "b.conllu"
    )


def test_cli_evaluate_tells_the_worth_of_probabilities(tmp_path):
    gold = load_treebank(treebank()["test"])
    generator = np.random.default_rng(3)
    system, values, right = [], [], []
    for sentence in gold:
        heads = sentence.heads.tolist()
        sure = generator.uniform(0.5, 1.0, size=len(heads)).round(4)
        system.append(with_confidence(sentence, heads=sure, labels=sure, tree=0.5))
        values += sure.tolist()
        right += [True] * len(heads)
    wrong = next(i for i, s in enumerate(system) if len(s) > 3)
    deprels = ["wrong", *system[wrong].deprels[1:]]
    system[wrong] = system[wrong].with_tree(system[wrong].heads, deprels)
    write_conllu(tmp_path / "sys.conllu", system)
    result = invoke("evaluate", treebank()["test"], tmp_path / "sys.conllu", "--json")
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)["confidence"]
    heads = found["heads"]
    assert heads["size"] == len(values)
    assert heads["right"] == 1.0
    assert heads["calibration_error"] == pytest.approx(calibration_error(values, np.array(right)))
    assert len(heads["bins"]) == 15
    place = sum(len(s) for s in gold[:wrong])
    labels = np.array(right)
    labels[place] = False
    assert found["labels"]["risk_coverage_area"] == pytest.approx(
        risk_coverage_area(values, labels)
    )
    assert found["trees"]["right"] == pytest.approx(1 - 1 / len(gold))
    shown = invoke("evaluate", treebank()["test"], tmp_path / "sys.conllu")
    assert "Reliability of" in shown.stdout
    assert "15 bins of equally many words" in " ".join(shown.stdout.split())


def test_cli_evaluate_says_nothing_of_confidence_where_there_is_none(tmp_path):
    result = invoke("evaluate", treebank()["test"], treebank()["test"])
    assert "Confidence" not in result.stdout
    result = invoke("evaluate", treebank()["test"], treebank()["test"], "--json")
    assert json.loads(result.stdout)["confidence"] == []
