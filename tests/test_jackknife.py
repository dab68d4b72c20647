"""The jackknife: honest folds, the same result for any number of processes, resuming, failures."""

import dataclasses
import json
import os
import signal

import numpy as np
import pytest
from tiny_spacy import tiny_config

from tk_spacy.ensemble import jackknife as module
from tk_spacy.ensemble.full_training import WholeTraining
from tk_spacy.ensemble.jackknife import (
    FoldProgress,
    JackknifeError,
    fold_of_sentences,
    jackknife,
    jackknifed_arc_scores,
)
from tk_spacy.ensemble.trained_parsers import RECORD
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.parsers.spacy_transition import spec as spacy_spec
from tk_spacy.parsers.spacy_transition.spec import SpacySpec
from tk_spacy.parsers.spacy_transition.training import train_spacy_parser
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate

SENTENCES = list(generate(16, seed=4))


@pytest.fixture
def parser(tmp_path):
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=3)
    return SpacySpec.from_config(config)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One parser, to stand in for those of all folds where training is not what is tested."""
    config = tiny_config(tmp_path_factory.mktemp("jackknife") / "tiny.cfg", training__max_steps=3)
    return train_spacy_parser(SENTENCES, config=config)


@pytest.fixture
def untrained_folds(monkeypatch, trained):
    monkeypatch.setattr(spacy_spec, "train_spacy_parser", lambda *_, **__: trained)


def run(workdir, parsers, sentences=SENTENCES, **changes):
    """A two-fold jackknife in this process: its lists, and the stages of each fold."""
    seen: list[FoldProgress] = []
    options = {"folds": 2, "k": 4, "processes": 1, "progress": seen.append, **changes}
    parsers = parsers if isinstance(parsers, list) else [parsers]
    lists = jackknife(sentences, parsers, workdir=workdir, **options)
    stages = {
        fold: list(dict.fromkeys(step.stage for step in seen if step.fold == fold))
        for fold in sorted({step.fold for step in seen})
    }
    return lists, stages


def assert_same_lists(a, b) -> None:
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left.heads, right.heads)
        np.testing.assert_array_equal(left.scores, right.scores)
        assert left.deprels(0) == right.deprels(0)
        assert left.base == right.base


FRESH = ["train", "parse", "done"]
UNTRAINED = ["parse", "done"]


def test_arc_scores_are_those_of_the_parser_that_never_saw_the_sentence(tmp_path):
    parsers = make_parsers(
        ["biaffine", "transition"],
        settings={"biaffine": {"epochs": 1}, "transition": {"epochs": 1}},
    )
    run(tmp_path, list(parsers))
    steps = []
    found = jackknifed_arc_scores(
        SENTENCES, parsers, workdir=tmp_path, folds=2, progress=lambda *step: steps.append(step)
    )
    assert list(found) == ["biaffine"]  # the other cannot tell
    assert steps == [(1, 2), (2, 2)]
    for fold, sentences in enumerate((SENTENCES[:8], SENTENCES[8:])):
        other = BiaffineParser.from_disk(tmp_path / f"fold-{fold + 1:02}" / "biaffine")
        expected = other.arc_scores(sentences)
        for own, same in zip(found["biaffine"][8 * fold :], expected, strict=False):
            np.testing.assert_allclose(own, same, rtol=1e-6)


def test_folds_are_contiguous_and_of_nearly_equal_size():
    assert fold_of_sentences(7, folds=3) == [0, 0, 0, 1, 1, 2, 2]


def test_folds_with_a_seed_are_shuffled_the_same_way_each_time():
    shuffled = fold_of_sentences(100, folds=5, seed=1)
    assert shuffled == fold_of_sentences(100, folds=5, seed=1)
    assert shuffled != fold_of_sentences(100, folds=5, seed=2)
    assert sorted(shuffled) == fold_of_sentences(100, folds=5)


def test_folds_need_enough_sentences():
    with pytest.raises(UserError, match="3 sentences cannot make 4 folds"):
        fold_of_sentences(3, folds=4)
    with pytest.raises(ValueError, match="at least 2, got 1"):
        fold_of_sentences(3, folds=1)


def test_jackknife_gives_a_list_for_each_sentence_in_order(tmp_path, parser):
    inventory = LabelInventory()
    lists, stages = run(tmp_path / "work", parser, inventory=inventory, fold_seed=7)
    assert [trees.n_words for trees in lists] == [len(sentence) for sentence in SENTENCES]
    assert all(trees.inventory is inventory and 1 <= len(trees) <= 4 for trees in lists)
    assert stages == {0: FRESH, 1: FRESH}


def test_jackknife_parsers_never_see_the_sentences_they_parse(tmp_path, parser, monkeypatch):
    trained, parsed = [], []
    train, candidates = spacy_spec.train_spacy_parser, spacy_spec.SpacySource.candidates

    def watch_training(sentences, **options):
        trained.append({sentence.sent_id for sentence in sentences})
        return train(sentences, **options)

    def watch_parsing(self, sentences, *, k):
        parsed.append({sentence.sent_id for sentence in sentences})
        return candidates(self, sentences, k=k)

    monkeypatch.setattr(spacy_spec, "train_spacy_parser", watch_training)
    monkeypatch.setattr(spacy_spec.SpacySource, "candidates", watch_parsing)
    run(tmp_path / "work", parser)
    everything = {sentence.sent_id for sentence in SENTENCES}
    for seen, unseen in zip(trained, parsed, strict=True):
        assert not seen & unseen
        assert seen | unseen == everything
    assert parsed[0] | parsed[1] == everything


def test_jackknife_does_not_depend_on_the_number_of_processes(tmp_path, parser):
    alone, _ = run(tmp_path / "one", parser)
    before = dict(os.environ)
    together, stages = run(tmp_path / "two", parser, processes=2)
    assert_same_lists(alone, together)
    assert stages == {0: FRESH, 1: FRESH}
    assert dict(os.environ) == before


def test_jackknife_resumes_finished_folds(tmp_path, parser):
    first, _ = run(tmp_path / "work", parser)
    second, stages = run(tmp_path / "work", parser)
    assert stages == {0: ["resumed"], 1: ["resumed"]}
    assert_same_lists(first, second)
    (tmp_path / "work" / "fold-02.json").unlink()  # as after a crash within the second fold
    notes = []
    third, stages = run(tmp_path / "work", parser, note=notes.append)
    assert stages == {0: ["resumed"], 1: UNTRAINED}
    assert notes == [
        f"taken over from {tmp_path / 'work'}: lists of fold 1; spacy parser of fold 2"
    ]
    assert_same_lists(first, third)
    folds = ("fold-01", "fold-02")
    assert sorted(p.name for p in (tmp_path / "work").iterdir()) == sorted(
        [*folds, *(f"{name}.{suffix}" for name in folds for suffix in ("conllu", "json"))]
    )


@pytest.mark.usefixtures("untrained_folds")
@pytest.mark.parametrize("what", ["seed", "k", "runs", "tree", "config"])
def test_jackknife_does_a_changed_fold_again(tmp_path, parser, what):
    run(tmp_path / "work", parser)
    sentences, changes = SENTENCES, {}
    if what == "seed":
        parser = SpacySpec.from_config(tmp_path / "tiny.cfg", seed=5)
    elif what == "runs":
        parser = dataclasses.replace(parser, runs=2)
    elif what == "k":
        changes = {"k": 3}
    elif what == "tree":
        n = len(SENTENCES[0])
        chain = SENTENCES[0].with_tree(range(n), SENTENCES[0].deprels)
        sentences = [chain, *SENTENCES[1:]]
    else:
        parser = SpacySpec.from_config(tiny_config(tmp_path / "other.cfg", training__max_steps=2))
    assert dataclasses.replace(parser, backward=True).training_key() != parser.training_key()
    _, stages = run(tmp_path / "work", parser, sentences, **changes)
    assert stages == {0: UNTRAINED, 1: UNTRAINED}


@pytest.mark.usefixtures("untrained_folds")
def test_jackknife_does_a_fold_with_a_broken_record_again(tmp_path, parser):
    run(tmp_path / "work", parser)
    (tmp_path / "work" / "fold-01.json").write_text("{")
    (tmp_path / "work" / "fold-02.json").write_text(json.dumps({"fingerprint": "another"}))
    _, stages = run(tmp_path / "work", parser)
    assert stages == {0: UNTRAINED, 1: UNTRAINED}


def test_jackknife_a_users_mistake_in_a_process_is_one_clear_error(tmp_path, parser):
    bad = Sentence.from_columns(
        forms=["a"], upos=["Nn"], heads=[0], deprels=["root"], sent_id="bad-tag"
    )
    with pytest.raises(UserError, match="'Nn' is no universal part of speech"):
        run(tmp_path / "work", parser, [*SENTENCES, bad], processes=2)


def test_jackknife_names_a_component_before_it_trains(tmp_path):
    with pytest.raises(UserError, match=r"tiny.cfg: no component 'biaffine'"):
        SpacySpec.from_config(tiny_config(tmp_path / "tiny.cfg"), component="biaffine")


def crash(here, *_) -> None:
    raise RuntimeError("boom")


def die(here, *_) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (crash, r"^training spacy on fold [12] failed: RuntimeError: boom$"),
        (die, r"^the process of training spacy on fold [12] was killed by SIGKILL .*fewer proc"),
    ],
)
def test_jackknife_a_failing_process_is_one_clear_error(
    tmp_path, parser, monkeypatch, work, reason
):
    monkeypatch.setattr(module, "_train", work)
    with pytest.raises(JackknifeError, match=reason):
        run(tmp_path / "work", parser, processes=2)


def test_jackknife_keeps_what_was_finished_before_a_process_died(tmp_path, parser, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_make_lists", die)
        with pytest.raises(JackknifeError, match=r"the lists of fold [12] was killed by SIGKILL"):
            run(tmp_path / "work", parser, processes=2)
    notes = []
    lists, _ = run(tmp_path / "work", parser, note=notes.append)
    assert notes[0].startswith(f"taken over from {tmp_path / 'work'}: spacy parser of fold ")
    assert_same_lists(lists, run(tmp_path / "new", parser)[0])


def test_jackknife_trains_beside_the_folds(tmp_path, parser):
    seen = []
    whole = WholeTraining(SENTENCES, [], [parser], directory=tmp_path / "all")
    for processes in (1, 2):
        place = tmp_path / str(processes)
        whole = WholeTraining(SENTENCES, [], [parser], directory=place)
        run(place / "folds", parser, processes=processes, beside=whole.tasks(),
            progress=seen.append)  # fmt: skip
        assert not whole.tasks()
        assert (None, "spacy") in {(step.fold, step.parser) for step in seen}
        shares = [step.overall for step in seen if step.stage != "done"]
        assert shares == sorted(shares)
        assert 0 <= shares[0] < shares[-1] <= 1
        seen.clear()
    for file in (tmp_path / "1").rglob("*"):
        if file.is_file() and file.name != RECORD:  # which has the seconds that it took
            other = tmp_path / "2" / file.relative_to(tmp_path / "1")
            assert other.read_bytes() == file.read_bytes(), file
