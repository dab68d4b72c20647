"""Cross-validation: pooled scores of systems that never saw what they parse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from counting_parser import CountingParser
from memorising_parser import MemorisingParser, gold_sentences
from memorising_tagger import MemorisingTagger
from trainings import list_files, lists_training, treebank
from treebank_folders import QUICK, write_folder

from tk_spacy.ensemble.jackknife import LISTING_SECONDS
from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.reranker.assessment import count_choices, pooled
from tk_spacy.reranker.settings import Settings
from tk_spacy.tokenizing.spec import UdpipeTokenizerSpec
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.utils.progress import Progress, Stages
from tk_spacy.utils.timing import Meter
from tk_spacy.workflows.info import info
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train import estimate as estimate_module
from tk_spacy.workflows.train import inputs as inputs_module
from tk_spacy.workflows.train import pipeline as pipeline_module
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.cross_validation import Validation, cross_validate
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

TRAIN = gold_sentences(12)
SETTINGS = Settings(iterations=2, bits=10, manual_parts=("arc",))


def options(directory: Path, train: Sequence[Sentence], **changes: Any) -> TrainOptions:
    directory.mkdir(exist_ok=True)
    write_conllu(directory / "all.conllu", train)
    given = {
        "train": directory / "all.conllu", "output": directory / "model", "k": 4, "folds": 2,
        "parsers": ("sampling",), "tags": "gold", "cross_validation": True, "processes": 1,
        "threads": 1, "settings": SETTINGS,
    }  # fmt: skip
    return TrainOptions(**{**given, **changes})


def use(monkeypatch: pytest.MonkeyPatch, *parsers: Any) -> None:
    """Have these parsers trained, and nothing but the reranker saved."""
    monkeypatch.setattr(inputs_module, "make_parsers", lambda *_, **__: parsers)
    monkeypatch.setattr(
        pipeline_module,
        "_save_model",
        lambda directory, plan, reranker, *_: reranker.write_files(directory),
    )


def validated(wanted: TrainOptions) -> Validation:
    run = Stages(Progress(), Meter())
    return cross_validate(run, make_plan(wanted), pipeline_module._train_system)


@pytest.mark.parametrize("folds", [2, 3])
def test_cross_validation_no_parser_knows_what_it_is_scored_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folds: int
) -> None:
    parser = MemorisingParser(diary=tmp_path / "diary.txt")
    use(monkeypatch, parser)
    report = train_pipeline(options(tmp_path, TRAIN, folds=folds))
    assert list(report.parts) == ["cross-validation"]
    part = report.parts["cross-validation"]
    assert (part.sentences, part.words) == (12, 72)
    # A parser that had seen one sentence would have it right, and so would the oracle.
    assert {row.uas for row in part.scores.values()} == {0.0}
    everything = {" ".join(s.forms) for s in TRAIN}
    for record in parser.records("parse"):
        assert not set(record["of"]) & set(record["knows"])
    trained = parser.records("train")
    assert all(record["dev"] == [] for record in trained)
    # Of each of the systems the parser and its folds, and the same for the model that is saved.
    assert len(trained) == (folds + 1) * (folds + 1)
    assert sum(set(record["of"]) == everything for record in trained) == 1


def test_cross_validation_judges_no_sentence_by_its_own_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another gold tree changes what is learnt for others, and nothing for the sentence itself."""
    use(monkeypatch, CountingParser(), CountingParser(name="other", smoothing=3.0))
    gold = list(generate(24, seed=3))
    settings = replace(SETTINGS, combiner=True)
    before = validated(options(tmp_path / "a", gold, folds=3, settings=settings))
    assert [s.forms for s in before.gold] == [s.forms for s in gold]
    changed_others = 0
    for fold in range(3):
        own = range(8 * fold, 8 * fold + 8)
        chains = [
            s.with_tree(range(len(s)), ["root", *["obj"] * (len(s) - 1)]) if i in own else s
            for i, s in enumerate(gold)
        ]
        work = tmp_path / f"fold-{fold}"
        after = validated(options(work, chains, folds=3, settings=settings))
        for i, (a, b) in enumerate(zip(before.parsed, after.parsed, strict=True)):
            same = a.heads.tolist() == b.heads.tolist() and a.deprels == b.deprels
            assert same or i not in own
            changed_others += not same
    assert changed_others > 10


def test_cross_validation_scores_are_those_of_all_sentences_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, CountingParser())
    gold = list(generate(14, seed=5))
    found = validated(options(tmp_path, gold, folds=3))
    scores = found.report.scores["final system"]
    assert scores == evaluate(gold, found.parsed)
    assert 0 < scores.las < 100
    assert found.report.tests[0].sentences == 14


def test_cross_validation_tags_are_those_of_taggers_that_saw_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, CountingParser())
    tagger = MemorisingTagger(diary=tmp_path / "tags.txt")
    monkeypatch.setattr(inputs_module, "make_tagger", lambda *_, **__: tagger)
    gold = [s for s in TRAIN if "X" not in s.upos]
    report = train_pipeline(options(tmp_path, gold, tags="own", tokenizer="none"))
    assert report.tags["cross-validation"].upos == 0
    assert report.tags["cross-validation"].words == 72
    seen = [json.loads(line)["seen"] for line in tagger.diary.read_text().splitlines()]
    assert sum(len(train) == 12 for train, _ in seen) == 1  # the one that is saved
    assert all(dev == [] for _, dev in seen)


def test_cross_validation_pools_as_if_it_were_one_text() -> None:
    path, report = lists_training()
    gold = load_treebank(treebank()["dev"])
    lists = [trees for _, trees in read_kbest(list_files()["dev"], inventory=LabelInventory())]
    kernel = open_model(path).reranker
    parts = [
        count_choices(gold[own], lists[own], base=None, kernel=kernel, n_threads=1)
        for own in (slice(0, 7), slice(7, 8), slice(8, None))
    ]
    found = pooled(parts)
    whole = report.parts["dev"]
    assert (found.sentences, found.words, found.trees) == (
        whole.sentences, whole.words, pytest.approx(whole.trees),
    )  # fmt: skip
    assert found.tests == whole.tests
    assert found.scores == {n: s for n, s in whole.scores.items() if n != "base reranker"}


@pytest.mark.parametrize(
    ("n", "changes", "message"),
    [
        (12, {"folds": 5}, "12 sentences are too few for cross-validation with 5 folds, each of"),
        (7, {"folds": 2}, r"again; give at least 8$"),
    ],
)
def test_cross_validation_refuses(
    tmp_path: Path, n: int, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        make_plan(options(tmp_path, TRAIN[:n], **changes))


def test_cross_validation_refuses_parsers_that_were_trained_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Given(CountingParser):
        given = True

    use(monkeypatch, Given(name="given"))
    with pytest.raises(UserError, match="not possible with the given parser given: it may have"):
        make_plan(options(tmp_path, TRAIN))


def test_cross_validation_of_a_test_file_alone_and_its_config(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_T", start=0, test=12)
    (folder / "LICENSE.txt").write_text("Free\nas air.\n", encoding="utf-8")
    changes = {"paths.train": str(folder), **QUICK, "lists.folds": 2, "machine.threads": 1}
    model = tmp_path / "model"
    report = train_pipeline(train_options(None, {**changes, "paths.output": str(model)}))
    assert list(report.parts) == ["cross-validation"]
    nlp = spacy.load(model)
    assert nlp.meta["sources"] == [{"name": "UD_T", "license": "Free as air."}]
    assert nlp.meta["license"] == "Free as air."
    said = "licence of the model: Free as air. (Free as air. in LICENSE.txt of UD_T)"
    assert said in report.notes
    assert said in (model / "report.md").read_text(encoding="utf-8")
    tables, facts = info(model)
    assert facts["licence"] == dict(tables[0].rows)["licence"] == "Free as air."
    assert nlp.meta["performance"]["dep_uas"] >= 0
    assert "on cross-validation." in nlp.meta["description"]
    about = open_model(model).reranker.about
    assert about["treebank"].keys() == {"train"}
    assert about["treebank"]["train"]["file"] == "x_syn-ud-test.conllu"
    assert about["scores"].keys() == {"cross-validation"}
    assert report.run_time.stages.keys() >= {
        "cross-validation, fold 1 of 2", "cross-validation, fold 2 of 2",
    }  # fmt: skip
    # Its config says what was decided, and trains the same again.
    text = (model / "training.cfg").read_text(encoding="utf-8")
    assert "\ncross_validation = true\n" in text
    again = train_options(model / "training.cfg", {"paths.output": str(tmp_path / "again")})
    train_pipeline(again)
    for path in model.rglob("*"):
        if path.is_file() and not path.name.startswith("report"):
            other = tmp_path / "again" / path.relative_to(model)
            assert other.read_bytes() == path.read_bytes(), path
    assert not list(tmp_path.glob("*.work"))


def test_cross_validation_plans_know_nothing_of_what_is_held_out(tmp_path: Path) -> None:
    train = list(generate(12, seed=3))
    odd = train[5].with_tree(train[5].heads, ["odd" if h else "root" for h in train[5].heads])
    plan = make_plan(options(tmp_path, [*train[:5], odd, *train[6:]]))
    whole = plan.parts["train"].sentences
    assert "odd" in plan.inventory.names
    apart = inputs_module.fold_plan(plan, whole[6:], whole[:6])
    assert "odd" not in apart.inventory.names
    assert apart.parts["train"].sentences == whole[6:]
    assert apart.parts["held-out"].sentences == whole[:6]
    assert apart.dev == []


def test_cross_validation_is_estimated_with_all_its_trainings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, CountingParser())
    tagger = MemorisingTagger(diary=tmp_path / "tags.txt")
    monkeypatch.setattr(inputs_module, "make_tagger", lambda *_, **__: tagger)
    monkeypatch.setattr(estimate_module, "pace", lambda: 1.0)
    plan = make_plan(options(tmp_path, TRAIN, folds=3, tags="own", tokenizer="none"))
    found = estimate_module.estimate(plan)
    # The three systems learn from 48 words of 72 each, the last one from all; each of them trains
    # on all that it has, and three times on two thirds of it.
    of_system = {words: words + 3 * words * 2 // 3 for words in (48, 72)}
    trained = 3 * of_system[48] + of_system[72]
    assert trained == 648
    listed = 3 * 48 + 72
    assert found.stages == {
        "tags": pytest.approx(trained / 1000),  # as tagger and parser say of a thousand words
        "parsers": pytest.approx(trained / 1000 + listed * LISTING_SECONDS),
        "reranker": pytest.approx(listed * estimate_module.RERANKER_SECONDS),
    }
    assert found.cores == 1
    spec = UdpipeTokenizerSpec()
    told = estimate_module.estimate(replace(plan, tokenizer=spec))
    # Of the four systems the last one alone has a tokenizer; all that is trained is so on one core.
    assert told.stages == {
        **found.stages,
        "tags": pytest.approx(trained / 1000 + spec.seconds(0)),
    }
    once = estimate_module.estimate(
        replace(plan, options=replace(plan.options, cross_validation=False))
    )
    assert once.stages["tags"] == pytest.approx(of_system[72] / 1000)


def test_estimates_count_the_cores_that_a_training_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, CountingParser())
    monkeypatch.setattr(estimate_module, "available_threads", lambda: 4)
    plan = make_plan(options(tmp_path, TRAIN, folds=3))
    for processes, threads, cores in ((None, None, 4), (None, 1, 4), (2, None, 2), (9, 1, 4)):
        changed = replace(plan.options, processes=processes, threads=threads)
        assert estimate_module.estimate(replace(plan, options=changed)).cores == cores


def test_cross_validation_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = MemorisingParser(diary=tmp_path / "diary.txt")
    use(monkeypatch, parser)
    real, calls = pipeline_module.train_reranker, []

    def stop_second(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline_module, "train_reranker", stop_second)
        with pytest.raises(KeyboardInterrupt):
            train_pipeline(options(tmp_path, TRAIN))
    trained = len(parser.records("train"))
    assert trained == 6  # of two folds the parser and its own two folds
    report = train_pipeline(options(tmp_path, TRAIN))
    # Of the two systems nothing is trained a second time, only the one of all sentences is.
    assert len(parser.records("train")) == 9
    assert report.parts["cross-validation"].sentences == 12
    assert not (tmp_path / "model.work").exists()
