"""`--speed` and the component's `speed`: files, refusals, records, and what a training reports."""

from __future__ import annotations

import functools
import json
import pickle
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import spacy
from pipelines import new_docs, predictions, trained_pipeline
from pipelines import trees as trees_of
from spacy.language import Language
from spacy.tokens import Doc
from test_cli import invoke
from test_long_sentences import long_sentence
from trainings import cascade_training, folder, list_files, lists_training, treebank
from tree_file_trainings import files_training

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.report import FINAL, TrainReport
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.pipeline.tk_reranker import TkReranker, add_reranker
from tk_spacy.reranker.calibration import can_fit
from tk_spacy.reranker.cascade import MOST_LOST
from tk_spacy.reranker.speeds import SPEEDS
from tk_spacy.reranker.staged import left_to_quick
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.treebank.conllu import Sentence, check_tree, load_treebank, write_conllu
from tk_spacy.utils.serialization import META
from tk_spacy.workflows.files.batch import rerank_files
from tk_spacy.workflows.files.reranking import FileReranker
from tk_spacy.workflows.info import info
from tk_spacy.workflows.model import Parsers, open_model
from tk_spacy.workflows.train.speeds import quick_sources

needs_sklearn = pytest.mark.skipif(not can_fit(), reason="scikit-learn is not installed")
slow = pytest.mark.slow


@functools.cache
def model_path() -> Path:
    """The cascade's model, at the fast speed of which all is left that breaks no constraint.

    At the balanced one it is half of test.
    """
    path = folder() / "speeds-model"
    shutil.copytree(cascade_training()[0], path)
    set_limits(path, balanced=0.0, fast=1.0)
    set_limits(path, balanced=float(np.median(risks(path))), fast=1.0)
    return path


def set_limits(path: Path, **limits: float) -> None:
    file = path / "tk_reranker" / META
    meta = json.loads(file.read_text(encoding="utf-8"))
    meta["cascade"]["limits"] = limits
    file.write_text(json.dumps(meta), encoding="utf-8")


def gold() -> list[Sentence]:
    return load_treebank(treebank()["test"])


def quick_lists(path: Path) -> list[CandidateList]:
    model = open_model(path)
    own = model.open_parsers(LabelInventory(), n_threads=1)
    source = model.in_order(own.sources, n_threads=1)
    assert model.reranker.cascade is not None
    places = model.reranker.cascade.places([found.names for found in source.sources])
    proposed = source.proposed(gold(), k=own.k, places=places)
    return source.joined(gold(), proposed, k=own.k)


def risks(path: Path) -> np.ndarray:
    cascade = open_model(path).reranker.cascade
    assert cascade is not None
    return cascade.risks([cascade.choose(trees) for trees in quick_lists(path)])


def written(path: Path, target: Path, *, source: Path | None = None, **more: Any) -> bytes:
    file = treebank()["test"] if source is None else source
    rerank_files(path, [file], target, overwrite=True, **{"n_threads": 1, **more})
    return target.read_bytes()


# Files


@slow
@needs_sklearn
def test_files_are_the_same_whatever_the_threads(tmp_path: Path) -> None:
    out = tmp_path / "out.conllu"
    found = {
        (speed, threads): written(model_path(), out, speed=speed, n_threads=threads)
        for speed in SPEEDS
        for threads in (1, 2)
    }
    for speed in SPEEDS:
        assert found[speed, 1] == found[speed, 2]
    assert len(set(found.values())) == 3
    assert written(model_path(), out) == found["exact", 1]


@slow
@needs_sklearn
@pytest.mark.parametrize("well_formed", [False, True])
def test_files_have_quick_trees_or_the_exact_ones(tmp_path: Path, well_formed: bool) -> None:
    path = model_path()
    found = {}
    for speed in SPEEDS:
        out = tmp_path / f"{speed}.conllu"
        written(path, out, speed=speed, well_formed=well_formed)
        found[speed] = load_treebank(out)
    reranker, lists = open_model(path).reranker, quick_lists(path)
    for speed in SPEEDS[1:]:
        quickly = left_to_quick(reranker, gold(), lists, speed=speed, well_formed=well_formed)
        left = sum(decision is not None for decision in quickly)
        assert 0 < left < len(lists)
        for given, decision, tree, exact in zip(
            gold(), quickly, found[speed], found["exact"], strict=True
        ):
            expected = exact if decision is None else decision.chosen(given)
            assert tree.heads.tolist() == expected.heads.tolist()
            assert tree.deprels == expected.deprels


@slow
@needs_sklearn
def test_files_at_no_risk_are_the_exact_ones(tmp_path: Path) -> None:
    path = tmp_path / "model"
    shutil.copytree(model_path(), path)
    set_limits(path, balanced=0.0, fast=0.0)
    exact = written(path, tmp_path / "a.conllu")
    for speed in ("balanced", "fast"):
        assert written(path, tmp_path / "a.conllu", speed=speed) == exact


@slow
@needs_sklearn
def test_long_sentences_are_left_in_pieces(tmp_path: Path) -> None:
    given = tmp_path / "long.conllu"
    write_conllu(given, [gold()[0], long_sentence(450), gold()[1]])
    found = [
        written(model_path(), tmp_path / "out.conllu", source=given, speed=speed, n_threads=n)
        for speed, n in (("balanced", 1), ("balanced", 2), ("fast", 1))
    ]
    assert found[0] == found[1]
    for sentence in load_treebank(tmp_path / "out.conllu"):
        assert check_tree(sentence.heads.tolist()) is None


@slow
@needs_sklearn
def test_kbest_files_are_always_reranked_exactly(tmp_path: Path) -> None:
    model = open_model(model_path())
    inventory = LabelInventory()
    own = model.open_parsers(inventory, n_threads=1)
    source = model.in_order(own.sources, n_threads=1)
    kbest = tmp_path / "lists.conllu"
    write_kbest(kbest, zip(gold(), source.candidates(gold(), k=own.k), strict=True))
    found = {
        speed: written(model_path(), tmp_path / "out.conllu", source=kbest, speed=speed)
        for speed in SPEEDS
    }
    assert len(set(found.values())) == 1


@slow
@needs_sklearn
def test_results_of_another_speed_are_not_up_to_date(tmp_path: Path) -> None:
    files = [treebank()["dev"], treebank()["test"]]

    def statuses(**more: Any) -> set[str]:
        results = rerank_files(model_path(), files, tmp_path / "out", n_threads=1, **more)
        return {result.status for result in results}

    assert statuses() == {"done"}
    assert statuses(speed="exact") == {"skipped"}
    exact = (tmp_path / "out" / files[1].name).read_bytes()
    for speed in ("fast", "balanced"):
        assert statuses(speed=speed) == {"done"}
        assert (tmp_path / "out" / files[1].name).read_bytes() != exact
        assert statuses(speed=speed) == {"skipped"}
    assert statuses() == {"done"}
    assert (tmp_path / "out" / files[1].name).read_bytes() == exact


# Refusals


def refused(*arguments: object, code: int = 1) -> str:
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())


def test_a_model_without_cascade_has_one_speed(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(lists_training()[0], model)
    out = tmp_path / "out.conllu"
    text = refused("rerank", model, list_files()["test"], "-o", out, "--speed", "fast")
    assert "the model does not know when its quick parsers are sure, and is exact alone" in text
    assert text.endswith("or leave out the speed fast")
    assert not out.exists()
    done = invoke("rerank", model, list_files()["test"], "-o", out, "--speed", "exact")
    assert done.exit_code == 0, done.output


@slow
@needs_sklearn
def test_confidence_is_of_exact_choices_alone(tmp_path: Path) -> None:
    text = refused(
        "rerank", model_path(), treebank()["test"], "-o", tmp_path / "out.conllu",
        "--speed", "balanced", "--confidence",
    )  # fmt: skip
    assert text == (
        "Error: confidence is known of exact choices alone; leave it out, or the speed balanced"
    )
    assert not (tmp_path / "out.conllu").exists()


@slow
def test_trees_in_files_rule_out_a_speed(tmp_path: Path) -> None:
    path, _ = files_training()
    text = refused(
        "rerank", path, treebank()["test"], "-o", tmp_path / "out.conllu", "--speed", "fast"
    )
    assert "needs trees of other parsers in files, and is exact alone" in text


def test_an_unknown_speed(tmp_path: Path) -> None:
    model, file = lists_training()[0], list_files()["test"]
    text = refused("rerank", model, file, "-o", tmp_path / "out", "--speed", "slow", code=2)
    assert "exact" in text
    assert "fast" in text
    with pytest.raises(UserError, match="speed"):
        rerank_files(model, [file], tmp_path / "out", speed="slow")  # type: ignore[arg-type]


@slow
@needs_sklearn
def test_a_pipeline_without_the_quick_parsers_is_refused() -> None:
    model = open_model(model_path())
    own = model.open_parsers(LabelInventory(), n_threads=1)
    fast = FileReranker(model, speed="fast")
    fast._check_quick(own)
    for sources in (own.sources[:1], own.sources[1:]):
        few = Parsers(sources, own.reranker, own.k)
        with pytest.raises(
            UserError, match=r"quick parsers \(biaffine\).*leave out the speed fast"
        ):
            fast._check_quick(few)
        FileReranker(model)._check_quick(few)


@slow
@needs_sklearn
def test_a_damaged_cascade_is_told_by_file_and_value(tmp_path: Path) -> None:
    path = tmp_path / "model"
    shutil.copytree(model_path(), path)
    set_limits(path, balanced=0.5, fast=-1.0)
    text = refused("rerank", path, treebank()["test"], "-o", tmp_path / "out", "--speed", "fast")
    assert META in text
    assert "'fast' of cascade.limits is -1.0, expected 0 to 1" in text


# The component


def reranker_of(nlp: Language) -> TkReranker:
    found = nlp.get_pipe("tk_reranker")
    assert isinstance(found, TkReranker)
    return found


def pipeline(speed: str, **config: Any) -> Language:
    own = {"speed": speed, "n_threads": 1, **config}
    return spacy.load(model_path(), config={"components": {"tk_reranker": own}})


def docs(nlp: Language) -> list[Doc]:
    return [doc_from_sentence(nlp.vocab, sentence) for sentence in gold()]


@slow
@needs_sklearn
def test_component_speed_is_stored(tmp_path: Path) -> None:
    assert reranker_of(spacy.load(model_path())).speed == "exact"
    nlp = pipeline("balanced")
    expected = predictions(nlp.pipe(docs(nlp)))
    nlp.to_disk(tmp_path / "saved")
    for again in (
        spacy.load(tmp_path / "saved"),
        pickle.loads(pickle.dumps(nlp)),
    ):
        assert reranker_of(again).speed == "balanced"
        assert reranker_of(again).reranker.cascade == reranker_of(nlp).reranker.cascade
        assert predictions(again.pipe(docs(again))) == expected


@slow
@needs_sklearn
@pytest.mark.parametrize("well_formed", [False, True])
@pytest.mark.parametrize("speed", SPEEDS)
def test_component_chooses_as_files_do(tmp_path: Path, speed: str, well_formed: bool) -> None:
    written(model_path(), tmp_path / "out.conllu", speed=speed, well_formed=well_formed)
    nlp = pipeline(speed, well_formed=well_formed)
    found = [sentence_from_doc(doc) for doc in nlp.pipe(docs(nlp))]
    for given, expected in zip(found, load_treebank(tmp_path / "out.conllu"), strict=True):
        assert given.heads.tolist() == expected.heads.tolist()
        assert given.deprels == expected.deprels


@slow
@needs_sklearn
def test_component_records_of_what_is_left() -> None:
    nlp, exact = pipeline("balanced", candidates=3), pipeline("exact", candidates=3)
    before = {doc.text: doc for doc in exact.pipe(docs(exact))}
    lists = dict(zip((s.forms for s in gold()), quick_lists(model_path()), strict=True))
    cascade = reranker_of(nlp).reranker.cascade
    left = 0
    for doc in nlp.pipe(docs(nlp)):
        (record,), (shown,) = doc._.tk_reranker, doc._.tk_candidates
        if record["calibrated"]:
            other = before[doc.text]
            assert trees_of([doc]) == trees_of([other])
            assert (doc._.tk_reranker, doc._.tk_candidates) == (
                other._.tk_reranker, other._.tk_candidates,
            )  # fmt: skip
            continue
        left += 1
        assert record["head_probs"] is record["label_probs"] is None
        assert {token._.tk_head_prob for token in doc} == {None}
        trees = lists[tuple(token.text for token in doc)]
        choice = cascade.choose(trees)
        assert record["n_candidates"] == len(trees)
        ranked = np.sort(choice.totals)[::-1]
        odds = np.exp(ranked - ranked[0])
        # The last digits depend on what else a network reads at a time.
        assert record["confidence"] == pytest.approx(odds[0] / odds.sum(), rel=1e-4)
        if len(trees) > 1:
            assert record["margin"] == pytest.approx(ranked[0] - ranked[1], rel=1e-4)
        assert [item["score"] for item in shown] == pytest.approx(ranked[:3].tolist(), rel=1e-4)
        assert shown[0]["heads"] == [token.head.i for token in doc]
        assert shown[0]["labels"] == [token.dep_ for token in doc]
    assert 0 < left < len(lists)


@slow
@needs_sklearn
@pytest.mark.filterwarnings("ignore:.* has no sentence bounds")
def test_component_leaves_some_pieces_of_a_long_sentence(tmp_path: Path) -> None:
    long = long_sentence(450)
    nlp = pipeline("balanced", candidates=2)
    doc = nlp(doc_from_sentence(nlp.vocab, long))
    (record,) = doc._.tk_reranker
    assert record["end"] == 450
    # Some pieces are left: of the whole nothing calibrated is known.
    assert record["calibrated"] is False
    assert record["head_probs"] is None
    assert 0 < record["confidence"] < 1
    write_conllu(tmp_path / "long.conllu", [long])
    out = tmp_path / "out.conllu"
    written(model_path(), out, source=tmp_path / "long.conllu", speed="balanced")
    (expected,) = load_treebank(out)
    assert sentence_from_doc(doc).heads.tolist() == expected.heads.tolist()


@slow
@needs_sklearn
def test_component_explains_exact_choices() -> None:
    nlp, exact = pipeline("fast"), pipeline("exact")
    for one in (nlp, exact):
        reranker_of(one).explains = True
    found, expected = (list(one.pipe(docs(one)[:6])) for one in (nlp, exact))
    assert predictions(found) == predictions(expected)
    assert [d._.tk_explanation for d in found] == [d._.tk_explanation for d in expected]


@slow
@needs_sklearn
@pytest.mark.filterwarnings("ignore:.* which a Doc lacks")
def test_component_leaves_single_words_and_empty_docs_alone() -> None:
    nlp, exact = pipeline("fast"), pipeline("exact")
    given = [
        [Doc(one.vocab), Doc(one.vocab, words=["owls"], tags=["N"], pos=["NOUN"])]
        for one in (nlp, exact)
    ]
    pairs = zip((nlp, exact), given, strict=True)
    found, expected = (predictions(one.pipe(own)) for one, own in pairs)
    assert found == expected


def test_component_warns_once_where_the_model_has_no_cascade() -> None:
    exact = trained_pipeline()
    expected = predictions(exact.pipe(new_docs(exact, 4)))
    nlp = trained_pipeline(speed="fast")
    with pytest.warns(UserWarning, match="speed is 'fast', but the model does not know when"):
        found = predictions(nlp.pipe(new_docs(nlp, 4)))
    assert found == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert predictions(nlp.pipe(new_docs(nlp, 4))) == expected


@slow
@needs_sklearn
def test_component_warns_where_the_quick_parsers_are_all() -> None:
    whole = pipeline("fast")
    model = reranker_of(whole).reranker
    nlp = spacy.load(model_path(), exclude=["tk_reranker"])
    add_reranker(nlp, model, source="tk_biaffine", speed="fast", n_threads=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(nlp.pipe(docs(nlp)[:3]))
    text = "does not know when quick parsers of this pipeline are sure"
    assert sum(text in str(warning.message) for warning in caught) == 1


def test_component_refuses_an_unknown_speed() -> None:
    with pytest.raises(UserError, match="x: speed is 'slow'; choose exact, balanced, fast"):
        TkReranker(spacy.blank("xx"), "x", speed="slow")


# Training


@slow
@needs_sklearn
def test_training_reports_what_the_speeds_are_worth() -> None:
    path, report = cascade_training()
    cascade = open_model(path).reranker.cascade
    assert cascade is not None
    assert cascade.quick == ("biaffine",)
    for name in ("dev", "test"):
        speeds = report.parts[name].speeds
        assert tuple(speeds) == SPEEDS
        assert speeds["exact"].left == 0
        assert speeds["exact"].las == pytest.approx(report.parts[name].scores[FINAL].las)
        assert 0 <= speeds["balanced"].left <= speeds["fast"].left <= 100
        assert all(row.tokens_per_second > 0 for row in speeds.values())
    # What the limits promise, by the lists that the quick parsers make alone.
    dev = report.parts["dev"].speeds
    assert dev["fast"].left > 0
    for speed, most in MOST_LOST.items():
        assert dev[speed].las >= dev["exact"].las - most - 1e-9
    stored = json.loads((path / "report.json").read_text(encoding="utf-8"))
    assert stored["parts"]["dev"]["speeds"]["fast"]["left"] == dev["fast"].left
    assert TrainReport.from_dict(stored).parts["dev"].speeds == dev
    for file in ("report.md", "report.html"):
        text = (path / file).read_text(encoding="utf-8")
        assert "left, %" in text
    markdown = (path / "report.md").read_text(encoding="utf-8")
    assert f"| fast | {dev['fast'].left:.2f} | {dev['fast'].uas:.2f} |" in markdown


@slow
@needs_sklearn
def test_what_a_training_reports_is_what_files_get(tmp_path: Path) -> None:
    path, report = cascade_training()
    for speed in SPEEDS:
        out = tmp_path / f"{speed}.conllu"
        rerank_files(path, [treebank()["dev"]], out, speed=speed, n_threads=1)
        las = evaluate(load_treebank(treebank()["dev"]), load_treebank(out)).las
        assert las == pytest.approx(report.parts["dev"].speeds[speed].las)


def test_reports_of_before_open() -> None:
    path, report = lists_training()
    stored = json.loads((path / "report.json").read_text(encoding="utf-8"))
    for part in stored["parts"].values():
        assert part.pop("speeds") == {}
    again = TrainReport.from_dict(stored)
    assert again.parts["dev"].speeds == {}
    assert again.to_markdown() == report.to_markdown()
    assert "Speeds on" not in again.to_markdown()


@slow
@needs_sklearn
def test_info_tells_the_speeds() -> None:
    tables, facts = info(cascade_training()[0])
    rows = {row["name"]: row["value"] for row in tables[0].records()}
    assert rows["speeds"] == "exact, balanced, fast; quick: biaffine"
    assert facts["cascade"]["quick"] == ["biaffine"]
    assert [t.title.split()[-1] for t in tables if t.title.startswith("Speeds")] == ["dev", "test"]
    tables, facts = info(lists_training()[0])
    rows = {row["name"]: row["value"] for row in tables[0].records()}
    assert rows["speeds"] == "exact"
    assert facts["cascade"] is None


def quick_of(*kinds: str, sources: bool = True) -> tuple[str, ...]:
    plan = SimpleNamespace(parsers=[SimpleNamespace(kind=kind) for kind in kinds])
    named = [
        SimpleNamespace(names=(f"{kind}{i}", f"{kind}{i}-back")) for i, kind in enumerate(kinds)
    ]
    return quick_sources(plan, SimpleNamespace(sources=named if sources else ()))  # type: ignore[arg-type]


def test_quick_parsers_are_those_of_the_main_ones_kind() -> None:
    assert quick_of("a", "b") == ("a0", "a0-back")
    assert quick_of("a", "b", "a") == ("a0", "a0-back", "a2", "a2-back")
    assert quick_of("a", "a") == quick_of("a") == quick_of() == ()
    assert quick_of("a", "b", "file") == ()
    assert quick_of("a", "b", sources=False) == ()
