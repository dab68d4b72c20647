"""Several parsers in one list: merging, folds with several parsers, what is taken over."""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from counting_parser import CountingParser

from tk_spacy.ensemble.full_training import WholeTraining
from tk_spacy.ensemble.jackknife import FoldProgress, fold_seconds, jackknife
from tk_spacy.ensemble.merging import MergedSource, merge
from tk_spacy.ensemble.trained_parsers import RECORD, trained_state, training_fingerprint
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.parsers.kinds import get_kind
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.parsers.sampling.spec import SamplingSpec
from tk_spacy.parsers.specs import parse_specs
from tk_spacy.treebank.conllu import Sentence, check_tree
from tk_spacy.treebank.synthetic import generate

SENTENCES = [sentence for sentence in generate(120, seed=4) if len(sentence) < 9][:16]
A = CountingParser(name="a")
B = CountingParser(name="b", smoothing=5.0)


def opened(directory: Path, *parsers: CountingParser) -> list:
    """Parsers trained on all sentences."""
    inventory = LabelInventory()
    sources = []
    for parser in parsers:
        place = directory / parser.name
        place.mkdir(parents=True)
        half = SENTENCES[:8] if parser.name == "a" else SENTENCES[8:]
        parser.train(half, [], place, n_threads=1, report=lambda done, of: None)
        sources.append(parser.open(place, inventory=inventory))
    return sources


def trees_of(trees: CandidateList) -> set[tuple[tuple[int, ...], tuple[str, ...]]]:
    return {(tuple(trees.heads[row].tolist()), trees.deprels(row)) for row in range(len(trees))}


def tree_of(trees: CandidateList, row: int) -> tuple[list[int], tuple[str, ...]]:
    return trees.heads[row].tolist(), trees.deprels(row)


# Merging


def listed(name: str, scores: dict[str, float], inventory: LabelInventory, base: int = 0):
    """A list over three words; a tree is written as its HEADs, "023"."""
    trees = [([int(h) for h in heads], ["a", "b", "c"], score) for heads, score in scores.items()]
    return CandidateList.build(trees, inventory=inventory, sources=(name,), base=base)


def shown(trees: CandidateList) -> list[str]:
    return ["".join(map(str, heads)) for heads in trees.heads.tolist()]


def test_merge_takes_the_best_of_each_in_turn() -> None:
    inventory = LabelInventory()
    first = listed("a", {"012": -1, "011": -2, "201": -3, "202": -4}, inventory)
    second = listed("b", {"302": 9, "230": 8, "012": 7, "330": 6}, inventory)
    assert set(shown(merge([first, second], k=4))) == {"012", "302", "011", "230"}
    assert shown(merge([second], k=2)) == ["302", "230"]
    whole = merge([first, second], k=25)
    assert shown(whole) == ["012", "011", "201", "202", "302", "230", "330"]
    assert whole.sources == ("a", "b")
    np.testing.assert_array_equal(whole.scores[0], [-1, 7])
    assert np.isnan(whole.scores[4:, 0]).all()
    assert np.isnan(whole.scores[1:4, 1]).all()


def test_merge_keeps_the_own_trees_of_all() -> None:
    inventory = LabelInventory()
    first = listed("a", {"012": -1, "011": -2}, inventory, base=1)
    second = listed("b", {"302": 9, "230": 8, "330": 7}, inventory, base=2)
    merged = merge([first, second], k=2)
    assert shown(merged) == ["011", "330"]
    assert (merged.base, dict(merged.bases)) == (0, {"b": 1})
    merged = merge([first, second], k=1)
    assert (shown(merged), merged.base, dict(merged.bases)) == (["011"], 0, {})
    assert merged.sources == ("a", "b")


def test_merge_keeps_the_main_parser_s_own_tree_before_its_twin_s() -> None:
    inventory = LabelInventory()
    first = listed("a", {"012": -1, "011": -2, "201": -3}, inventory, base=1)
    twins = replace(first, bases={"a-backward": 0})
    second = listed("b", {"302": 9}, inventory)
    merged = merge([twins, second], k=1)
    assert (shown(merged), merged.base, dict(merged.bases)) == (["011"], 0, {})
    merged = merge([twins, second], k=2)
    assert shown(merged) == ["012", "011"]
    assert (merged.base, dict(merged.bases)) == (1, {"a-backward": 0})


def test_merge_needs_one_inventory() -> None:
    lists = [listed(name, {"012": 1}, LabelInventory()) for name in "ab"]
    with pytest.raises(ValueError, match="share one LabelInventory"):
        merge(lists, k=3)


def test_merged_source_has_every_parser_s_trees_and_scores(tmp_path: Path) -> None:
    sources = opened(tmp_path, A, B)
    merged = list(MergedSource(sources).candidates(SENTENCES, k=8))
    alone = [list(source.candidates(SENTENCES, k=8)) for source in sources]
    for sentence, trees, a, b in zip(SENTENCES, merged, *alone, strict=True):
        assert len(trees) <= 8
        assert trees.sources == ("a", "b")
        assert trees_of(trees) <= trees_of(a) | trees_of(b)
        assert tree_of(trees, trees.base) == tree_of(a, a.base)
        assert tree_of(trees, trees.bases["b"]) == tree_of(b, b.base)
        for column, source in enumerate(sources):
            (expected,) = source.score([sentence], [trees])
            np.testing.assert_allclose(trees.scores[:, column], expected[:, 0])
        main = trees.scores[:, 0]
        assert (np.diff(main[~np.isnan(main)]) <= 0).all()
        assert all(check_tree(heads) is None for heads in trees.heads)
    assert any(np.isnan(trees.scores).any() for trees in merged)  # labels of one parser only


def test_merged_source_of_one_parser_is_that_view(tmp_path: Path) -> None:
    (source,) = opened(tmp_path, A)
    pairs = zip(
        MergedSource([source]).candidates(SENTENCES, k=5),
        source.candidates(SENTENCES, k=5),
        strict=True,
    )
    for a, b in pairs:
        np.testing.assert_array_equal(a.heads, b.heads)
        np.testing.assert_array_equal(a.scores, b.scores)


def test_merged_source_needs_different_names(tmp_path: Path) -> None:
    (source,) = opened(tmp_path, A)
    with pytest.raises(ValueError, match="different names"):
        MergedSource([source, source])


def test_merged_source_counts_the_seconds_of_each_source_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(
        "tk_spacy.ensemble.merging.time", SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    )
    merged = MergedSource(opened(tmp_path, A, B), n_threads=1)
    lists = list(merged.candidates(SENTENCES, k=3))
    assert merged.seconds == [2.0, 2.0]  # their lists, and the scores of the others' trees
    merged.score(SENTENCES, lists)
    assert merged.seconds == [3.0, 3.0]


@pytest.mark.parametrize(
    ("parsers", "n_threads", "beside"), [((A, B), 2, True), ((A, B), 1, False), ((A,), 2, False)]
)
def test_sources_work_in_threads_of_their_own_where_they_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parsers: tuple, n_threads: int, beside: bool
) -> None:
    monkeypatch.setattr("tk_spacy.parallel.side_by_side.effective_n_threads", lambda n: n or 8)
    sources, threads = opened(tmp_path, *parsers), set()
    for source in sources:
        real = source.score

        def score(*given, real=real):
            threads.add(threading.get_ident())
            return real(*given)

        source.score = score
    merged = MergedSource(sources, n_threads=n_threads)
    lists = list(merged.candidates(SENTENCES, k=3))
    assert len(lists) == len(merged.score(SENTENCES, lists)) == len(SENTENCES)
    assert threads
    assert (threading.get_ident() not in threads) == beside


@pytest.mark.parametrize("method", ["candidates", "score"])
@pytest.mark.parametrize("short", [(0,), (1,), (0, 1)])
def test_merged_source_refuses_lists_or_scores_that_are_too_few(
    tmp_path: Path, method: str, short: tuple[int, ...]
) -> None:
    sources = opened(tmp_path, A, B)
    merged = MergedSource(sources, n_threads=1)
    lists = list(merged.candidates(SENTENCES, k=3))
    for number in short:
        real = getattr(sources[number], method)
        setattr(sources[number], method, lambda *a, real=real, **k: list(real(*a, **k))[:-1])
    with pytest.raises(ValueError, match=r"shorter|longer|lists|scored other trees"):
        list(merged.candidates(SENTENCES, k=3))
    if method == "score" and len(short) == 1:
        with pytest.raises(ValueError, match=r"shorter|longer"):
            merged.score(SENTENCES, lists)


def test_merged_lists_come_back_from_a_file(tmp_path: Path) -> None:
    merged = list(MergedSource(opened(tmp_path, A, B)).candidates(SENTENCES, k=5))
    path = tmp_path / "k.conllu"
    write_kbest(path, zip(SENTENCES, merged, strict=True))
    for (_, found), trees in zip(read_kbest(path, inventory=LabelInventory()), merged, strict=True):
        np.testing.assert_array_equal(found.heads, trees.heads)
        np.testing.assert_array_equal(found.scores, trees.scores)
        assert (found.base, found.bases, found.sources) == (trees.base, trees.bases, trees.sources)
    text = path.read_text("utf-8")
    for bad, reason in (("99", r"tk_base_b is 99, but there are \d"), ("x", "'x' is no number")):
        path.write_text(text.replace("# tk_base_b = ", f"# tk_base_b = {bad}\n# x = ", 1), "utf-8")
        with pytest.raises(UserError, match=reason):
            list(read_kbest(path, inventory=LabelInventory()))
    path.write_text(text.replace("# tk_base_b = ", "# tk_base_c = ", 1), "utf-8")
    with pytest.raises(UserError, match="tk_base_c: candidate 1 has no score of 'c'"):
        list(read_kbest(path, inventory=LabelInventory()))


# Folds


def folded(workdir: Path, *parsers: CountingParser, **changes):
    """Lists of two folds, the (fold, stage, parser) steps, and the notes."""
    seen: list[FoldProgress] = []
    notes: list[str] = []
    options = {"folds": 2, "k": 6, "processes": 1, **changes}
    lists = jackknife(
        SENTENCES, parsers, workdir=workdir, progress=seen.append, note=notes.append, **options
    )
    return lists, list(dict.fromkeys((s.fold, s.stage, s.parser) for s in seen)), notes


def test_jackknife_trains_each_parser_in_turn(tmp_path: Path) -> None:
    lists, steps, notes = folded(tmp_path, A, B)
    fold = [("train", "a"), ("train", "b"), ("parse", ""), ("done", "")]
    assert steps == [(number, *step) for number in (0, 1) for step in fold]
    assert notes == []
    assert {trees.sources for trees in lists} == {("a", "b")}
    assert all("b" in trees.bases for trees in lists)
    assert fold_seconds(tmp_path, A, folds=2) > 0
    assert fold_seconds(tmp_path, CountingParser(), folds=2) == 0


def test_jackknife_with_another_parser_trains_that_one_only(tmp_path: Path) -> None:
    folded(tmp_path, A)
    _, steps, (note,) = folded(tmp_path, A, B)
    assert note == f"taken over from {tmp_path}: a parser of fold 1, 2"
    trained = {parser for _, stage, parser in steps if stage == "train"}
    assert trained == {"b"}
    _, steps, (note,) = folded(tmp_path, A, B)
    assert note == f"taken over from {tmp_path}: lists of fold 1, 2"
    assert {stage for _, stage, _ in steps} == {"resumed"}
    changed, steps, (note,) = folded(tmp_path, replace(A, smoothing=0.2), B)
    assert note.endswith(": b parser of fold 1, 2")
    assert {parser for _, stage, parser in steps if stage == "train"} == {"a"}
    expected, _, _ = folded(tmp_path / "new", replace(A, smoothing=0.2), B)
    for a, b in zip(changed, expected, strict=True):
        np.testing.assert_array_equal(a.scores, b.scores)


def test_jackknife_in_another_order_has_another_main_parser(tmp_path: Path) -> None:
    folded(tmp_path, A, B)
    lists, steps, _ = folded(tmp_path, B, A)
    assert lists[0].sources == ("b", "a")
    assert not [step for step in steps if step[1] == "train"]


def test_jackknife_after_a_stop_within_a_fold(tmp_path: Path) -> None:
    expected, _, _ = folded(tmp_path / "whole", A, B)

    def stop(step: FoldProgress) -> None:
        if (step.fold, step.stage) == (1, "parse"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jackknife(
            SENTENCES, [A, B], workdir=tmp_path / "w", folds=2, k=6, processes=1, progress=stop
        )
    lists, steps, (note,) = folded(tmp_path / "w", A, B)
    assert "lists of fold 1; a parser of fold 2; b parser of fold 2" in note
    assert not [step for step in steps if step[1] == "train"]
    for a, b in zip(lists, expected, strict=True):
        np.testing.assert_array_equal(a.scores, b.scores)


# All of train


@pytest.mark.parametrize("processes", [1, 2])
def test_whole_training_keeps_each_parser(tmp_path: Path, processes: int) -> None:
    seen: list[FoldProgress] = []

    def training(*parsers: CountingParser) -> WholeTraining:
        return WholeTraining(SENTENCES, SENTENCES[:2], parsers, directory=tmp_path)

    whole = training(A)
    assert whole.kept == []
    whole.run(processes=processes, progress=seen.append)
    assert (seen[-1].fold, seen[-1].parser, seen[-1].step, seen[-1].of) == (None, "a", 16, 16)
    seen.clear()
    whole = training(A, B, CountingParser(name="c"))
    assert (whole.kept, len(whole.tasks())) == (["a"], 2)
    whole.run(processes=processes, progress=seen.append)
    assert not whole.tasks()
    assert {step.parser for step in seen} == {"b", "c"}
    texts = [[s.to_conllu() for s in part] for part in (SENTENCES, SENTENCES[:2])]
    assert trained_state(tmp_path / "b", training_fingerprint(B, *texts)) == "kept"
    assert json.loads((tmp_path / "b" / RECORD).read_text())["seconds"] > 0
    assert trained_state(tmp_path / "b", training_fingerprint(B, texts[0])) == "missing"


def test_whole_training_a_users_mistake_is_one_clear_error(tmp_path: Path) -> None:
    class Refusing(CountingParser):
        def train(self, *_: object, **__: object) -> None:
            raise UserError("no tree here")

    whole = WholeTraining(SENTENCES, [], [Refusing()], directory=tmp_path)
    with pytest.raises(UserError, match="no tree here"):
        whole.run()
    assert list(tmp_path.iterdir()) == []


# Names


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["turbo"], "unknown parser 'turbo'; choose from sampling, spacy"),
        ([], "parsers are none; name one or more"),
        (["spacy", "spacy"], "parsers are spacy,spacy; name one or more different ones"),
    ],
)
def test_parsers_wrong_names(names: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_specs(names)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spacy:depth=2", "parser 'spacy:depth=2': unknown settings: depth; choose from config"),
        ("spacy:max_steps=0", "max steps is 0; it must be from 1 to 1000000000"),
        ("spacy:max_steps=few", "max steps is 'few'; it must be a whole number"),
        ("spacy:seed=true", "parser 'spacy:seed=true': seed is True; it must be a whole number"),
        ("spacy:config=3", "parser 'spacy:config=3': config is 3; it must be a text"),
        ("spacy:config=none.cfg", "none.cfg: not a config that spaCy can read: "),
        ("spacy:backward=1", "parser 'spacy:backward=1': backward is 1; it must be true or false"),
        ("spacy:pipeline=fr", "pipeline cannot be one parser's alone; leave it out, and name it"),
        ("spacy:search=beam", "search cannot be one parser's alone; leave it out, and choose it"),
        ("sampling:order", "'order' is no setting; write NAME=VALUE once for each"),
        ("sampling:order=2:order=3", "'order=3' is no setting"),
        ("sampling:order=9", "parser 'sampling:order=9': order is 9; it must be from 1 to 3"),
        (
            "sampling:depth=2",
            "parser 'sampling:depth=2': unknown settings: depth; choose from order",
        ),
        (
            "biaffine:seed=abc",
            "parser 'biaffine:seed=abc': seed is 'abc'; it must be a whole number",
        ),
        (
            "biaffine:depth=2",
            "parser 'biaffine:depth=2': unknown settings: depth; choose from epochs",
        ),
        (
            "sampling:extra=lemma",
            "parser 'sampling:extra=lemma': extra cannot be one parser's alone",
        ),
    ],
)
def test_parsers_wrong_settings_of_their_own(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_parsers([name])


def test_parsers_of_one_kind_differ_in_name_and_settings() -> None:
    first, second = make_parsers(["sampling", "sampling:order=2:C=0.5"], seed=3)
    assert (first.name, second.name) == ("sampling", "sampling-order2-C0.5")
    assert second.sources == ("sampling-order2-C0.5",)
    assert (first.about()["order"], second.about()["order"]) == (3, 2)
    assert (second.about()["C"], second.about()["seed"]) == (0.5, 3)
    # A word needs not be told what it is a setting of.
    backward = make_parsers(["transition:direction=backward"])[0]
    assert (backward.name, backward.about()["direction"]) == ("transition-backward", "backward")
    assert get_kind("transition").component_name(backward.name) == "tk_transition_backward"
    with pytest.raises(UserError, match="name one or more different ones"):
        make_parsers(["sampling:order=2", "sampling:order=2"])


@pytest.mark.parametrize(
    "names",
    [
        ("sampling", "sampling:order=3"),  # the default, spelt out
        ("biaffine", "spacy", "biaffine:seed=3"),  # the seed of all
        ("spacy", "sampling", "spacy:seed=3"),
        ("spacy:xpos=true:seed=1", "spacy:seed=1:xpos=true"),
        ("sampling:order=2:C=1", "sampling:C=1.0:order=2"),
    ],
)
def test_parsers_that_are_the_same_parser(names: tuple[str, ...]) -> None:
    shown = f"{names[0]} and {names[-1]}".replace(":", "-").replace("=", "")
    shown = shown.replace("true", "True")
    with pytest.raises(UserError, match=f"the parsers {shown} have the same settings"):
        make_parsers(names, seed=3)


def test_parsers_by_name() -> None:
    (parser,) = make_parsers(["spacy"], seed=3, max_steps=7, backward=True)
    assert (parser.name, parser.sources[0], parser.given) == ("spacy", "spacy+backward", False)
    assert parser.about() == {
        "config": "default", "max_steps": 7, "backward": True, "search": "discrepancy",
    }  # fmt: skip
    (single,) = make_parsers(["spacy"], seed=3, max_steps=7, backward=False)
    assert single.sources == ("spacy",)
    bad = Sentence.from_columns(forms=["a"], upos=["Nn"], heads=[0], deprels=["root"])
    with pytest.raises(UserError, match="'Nn' is no universal part of speech"):
        parser.check([bad])


def test_a_changed_search_takes_the_trained_sampling_parser(tmp_path: Path) -> None:
    quick = {"epochs": 1, "pruner_epochs": 1, "bits": 14, "pruner_bits": 12, "order": 1}
    parser = SamplingSpec.from_settings(quick)
    parser.train(SENTENCES, [], tmp_path, n_threads=1, report=lambda done, of: None)
    for change in ({"restarts": 2}, {"label_share": 0.5}, {"exact_starts": 4}):
        other = SamplingSpec.from_settings({**quick, **change})
        assert other.training_key() == parser.training_key()
        assert other.search_key() != parser.search_key()
        found = other.open(tmp_path, inventory=LabelInventory())
        assert found.parser.settings == other.settings
    trained_otherwise = SamplingSpec.from_settings({**quick, "order": 2})
    assert trained_otherwise.training_key() != parser.training_key()
