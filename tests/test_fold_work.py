"""What trainings of parsers tell, leave behind and take over: each number, file and name."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from counting_parser import CountingParser
from test_parsers import SENTENCES, A, B, folded
from test_training_record import SIZES, Watcher, words, write_known, write_parts

from tk_spacy.ensemble import full_training, jackknife, trained_parsers
from tk_spacy.ensemble.full_training import WholeTraining
from tk_spacy.ensemble.jackknife import FoldProgress, JackknifeError
from tk_spacy.ensemble.trained_parsers import (
    RECORD,
    digest,
    read_record,
    remove,
    train_and_record,
    trained_state,
    training_seconds,
)
from tk_spacy.errors import UserError
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.parallel.executor import TaskError
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.utils.progress import Stages
from tk_spacy.utils.timing import Meter
from tk_spacy.workflows.train import candidate_lists as module
from tk_spacy.workflows.train import inputs
from tk_spacy.workflows.train.candidate_lists import candidate_lists
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.options import TrainOptions

HALVES = [sum(map(len, SENTENCES[:8])), sum(map(len, SENTENCES[8:]))]


class Hard(CountingParser):
    """Its training takes four times as long as that of most."""

    def seconds(self, words: int) -> float:
        return 4 * CountingParser.seconds(self, words)


# What is told


def test_a_jackknife_tells_how_much_of_all_its_work_is_done(tmp_path: Path) -> None:
    """A training costs its seconds, lists half a millisecond a word for each parser."""
    seen: list[FoldProgress] = []
    hard = Hard(name="hard")
    jackknife.jackknife(
        SENTENCES, [A, hard], workdir=tmp_path / "a" / "b", folds=2, k=4, processes=1,
        progress=seen.append,
    )  # fmt: skip
    first, second = HALVES
    costs = []  # of each report
    for fold, (out, learned) in enumerate(((first, second), (second, first))):
        for parser, effort in (("a", 1), ("hard", 4)):
            costs += [(fold, "train", i, 8, parser, learned * effort / 8) for i in range(1, 9)]
        costs += [(fold, "parse", i, 8, "", out * 0.5 * 2 / 8) for i in range(1, 9)]
        costs += [(fold, "done", 1, 1, "", 0.0)]
    total = sum(cost for *_, cost in costs)
    assert total == pytest.approx(5 * (first + second) + first + second)
    done = 0.0
    assert len(seen) == len(costs)
    for step, (fold, stage, number, of, parser, cost) in zip(seen, costs, strict=True):
        done += cost
        shown = (step.fold, step.stage, step.step, step.of, step.parser)
        assert shown == (fold, stage, number, of, parser)
        assert step.overall == pytest.approx(done / total)
    seen.clear()
    again: dict[str, Any] = {"workdir": tmp_path / "a" / "b", "folds": 2, "k": 4, "processes": 1}
    jackknife.jackknife(SENTENCES, [A, hard], **again, progress=seen.append)
    assert seen == [FoldProgress(fold, "resumed", 1, 1) for fold in (0, 1)]
    jackknife.jackknife(SENTENCES, [A, hard], **again)  # to nobody
    # Parsers that are taken over are no work.
    for fold in ("fold-01", "fold-02"):
        (tmp_path / "a" / "b" / f"{fold}.json").unlink()
    seen.clear()
    jackknife.jackknife(SENTENCES, [A, hard], **again, progress=seen.append)
    assert {step.stage for step in seen} == {"parse", "done"}
    assert seen[0].overall == pytest.approx(first / 8 / (first + second))
    assert seen[-1].overall == 1.0


def test_what_a_parser_in_files_costs_is_its_lists(tmp_path: Path) -> None:
    class Given(CountingParser):
        given = True

        def open(self, directory: Path, **options: Any) -> Any:
            return super().open(tmp_path, **options)

    A.train(SENTENCES, [], tmp_path, n_threads=1, report=lambda done, of: None)
    seen: list[FoldProgress] = []
    jackknife.jackknife(
        SENTENCES, [A, Given(name="given")], workdir=tmp_path / "w", folds=2, k=4, processes=1,
        progress=seen.append,
    )  # fmt: skip
    first, second = HALVES
    trained = next(step for step in seen if (step.fold, step.stage) == (0, "parse"))
    whole = first + second + 2 * 0.5 * (first + second)
    assert trained.overall == pytest.approx((second + first / 8) / whole)
    assert {step.parser for step in seen if step.stage == "train"} == {"a"}
    _, _, notes = folded(tmp_path / "w", A, Given(name="given"), k=5)
    assert notes == [f"taken over from {tmp_path / 'w'}: a parser of fold 1, 2"]


def test_a_parser_that_counts_wrongly_is_at_most_done(tmp_path: Path) -> None:
    class Odd(CountingParser):
        """Knows at first not how many steps there are, and then makes more than it said."""

        def train(self, *given: Any, report: Any, **how: Any) -> None:
            super().train(*given, report=lambda done, of: None, **how)
            for step in ((0, 0), (1, 2), (3, 2), (1, 2)):
                report(*step)

    seen: list[FoldProgress] = []
    jackknife.jackknife(
        SENTENCES, [Odd(name="odd")], workdir=tmp_path, folds=2, k=4, processes=1,
        progress=seen.append,
    )  # fmt: skip
    first, second = HALVES
    whole = 1.5 * (first + second)
    steps = [step.overall for step in seen if (step.fold, step.stage) == (0, "train")]
    assert steps == pytest.approx([0.0, second / 2 / whole, second / whole, second / whole])


def test_the_seconds_of_a_training_decide_what_is_begun_first() -> None:
    tasks = WholeTraining(SENTENCES, [], [A, Hard(name="h")], directory="unused").tasks()
    assert [task.cost for task in tasks] == [sum(HALVES) / 1000, 4 * sum(HALVES) / 1000]
    assert [task.name for task in tasks] == [
        "training a on all of train", "training h on all of train",
    ]  # fmt: skip


class Broken:
    """An executor in which every task fails."""

    def __init__(self, *, killed: bool) -> None:
        self.killed = killed

    def run(self, tasks: Any, **_: Any) -> Any:
        raise TaskError(f"{tasks[0].name} failed", killed=self.killed)
        yield


@pytest.mark.parametrize("killed", [True, False])
def test_a_task_that_fails_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    for where in (jackknife, full_training):
        monkeypatch.setattr(where, "make_executor", lambda *_, **__: Broken(killed=killed))
    with pytest.raises(JackknifeError) as error:
        folded(tmp_path / "folds", A)
    cure = "; run again with fewer processes" if killed else ""
    assert str(error.value) == f"training a on fold 1 failed{cure}"
    with pytest.raises(UserError) as mistake:
        WholeTraining(SENTENCES, [], [A], directory=tmp_path / "all").run()
    assert str(mistake.value) == (
        f"training a on all of train failed; what is finished is kept in {tmp_path / 'all'}"
    )


def test_threads_and_processes_are_those_that_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    waiting: list[Any] = []

    def spied(where: Any) -> Callable[..., Any]:
        make = where.make_executor

        def spy(tasks: Any, **how: Any) -> Any:
            asked.append((len(tasks), how))
            waiting.append({task.name: task.after for task in tasks})
            return make(tasks, processes=1, n_threads=how["n_threads"])

        return spy

    for where in (jackknife, full_training):
        monkeypatch.setattr(where, "make_executor", spied(where))
    monkeypatch.setattr(jackknife, "available_threads", lambda: 5)
    whole = WholeTraining(SENTENCES, [], [A], directory=tmp_path / "all")
    folded(tmp_path / "1", A, B, processes=3, n_threads=2, beside=whole.tasks())
    folded(tmp_path / "2", A, processes=None)
    WholeTraining(SENTENCES, [], [A, B], directory=tmp_path / "all").run(processes=4, n_threads=1)
    assert asked == [
        (7, {"processes": 3, "n_threads": 2}),
        (4, {"processes": 5, "n_threads": None}),
        (1, {"processes": 4, "n_threads": 1}),
    ]
    # A fold's lists wait for its own parsers, and for no other.
    assert waiting[0] == {
        **{f"training {name} on fold {fold}": () for fold in (1, 2) for name in "ab"},
        "the lists of fold 1": ("training a on fold 1", "training b on fold 1"),
        "the lists of fold 2": ("training a on fold 2", "training b on fold 2"),
        "training a on all of train": (),
    }
    asked.clear()
    WholeTraining(SENTENCES, [], [A, B], directory=tmp_path / "new").run()
    assert asked == [(2, {"processes": 1, "n_threads": None})]


def test_parsers_are_given_their_part_of_the_data_and_the_threads(tmp_path: Path) -> None:
    told: list[Any] = []

    class Telling(CountingParser):
        def train(
            self, train: Any, dev: Any, directory: Path, *, n_threads: int | None, report: Any
        ) -> None:
            told.append(("train", texts(train), texts(dev), n_threads))
            super().train(train, dev, directory, n_threads=n_threads, report=report)

        def open(self, directory: Path, *, inventory: Any, n_threads: int | None = None) -> Any:
            told.append(("open", n_threads))
            return super().open(directory, inventory=inventory, n_threads=n_threads)

    def texts(sentences: Any) -> list[str]:
        return [" ".join(s.forms) for s in sentences]

    dev = SENTENCES[:3]
    parser = Telling(name="a")
    WholeTraining(SENTENCES, dev, [parser], directory=tmp_path / "all").run(n_threads=3)
    assert told == [("train", texts(SENTENCES), texts(dev), 3)]
    told.clear()
    folded(tmp_path / "folds", parser, n_threads=2)
    assert told == [
        ("train", texts(SENTENCES[8:]), [], 2), ("open", 2),
        ("train", texts(SENTENCES[:8]), [], 2), ("open", 2),
    ]  # fmt: skip


# What is left behind and taken over


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_fold_leaves_its_lists_its_parsers_and_their_records(tmp_path: Path) -> None:
    folded(tmp_path, A)
    parts = [
        [name, f"{name}.conllu", f"{name}.json", f"{name}/a", f"{name}/a/counts.json",
         f"{name}/a/{RECORD}"]
        for name in ("fold-01", "fold-02")
    ]  # fmt: skip
    assert names(tmp_path) == sorted(itertools.chain(*parts))
    record = json.loads((tmp_path / "fold-02.json").read_text(encoding="utf-8"))
    assert record["sha256"] == digest(tmp_path / "fold-02.conllu")


def test_lists_of_other_sentences_are_never_taken(tmp_path: Path) -> None:
    folded(tmp_path, A)
    lists, record = tmp_path / "fold-02.conllu", tmp_path / "fold-02.json"
    pairs = lists.read_text(encoding="utf-8").split("\n\n")
    lists.write_text("\n\n".join([*pairs[:2], *pairs[3:4], *pairs[2:3], *pairs[4:]]), "utf-8")
    data = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps({**data, "sha256": digest(lists)}), encoding="utf-8")
    line = sum(part.count("\n") + 2 for part in pairs[:2]) + 1
    with pytest.raises(JackknifeError) as error:
        folded(tmp_path, A)
    assert str(error.value) == f"{lists}:{line}: not the sentence expected"


def test_lists_without_a_digest_are_made_again(tmp_path: Path) -> None:
    folded(tmp_path, A)
    record = tmp_path / "fold-01.json"
    data = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps({"fingerprint": data["fingerprint"]}), encoding="utf-8")
    (tmp_path / "fold-01.conllu").unlink()
    _, steps, notes = folded(tmp_path, A)
    assert notes[1:] == [f"damaged in {tmp_path} and made again: lists of fold 1"]
    assert [step for step in steps if step[0] == 0] == [(0, "parse", ""), (0, "done", "")]


def test_another_search_makes_the_lists_again_and_trains_nothing(tmp_path: Path) -> None:
    class Searching(CountingParser):
        def search_key(self) -> list[Any]:
            return ["wide"]

    folded(tmp_path, A)
    _, steps, notes = folded(tmp_path, Searching(name="a"))
    assert {stage for _, stage, _ in steps} == {"parse", "done"}
    assert notes == [f"taken over from {tmp_path}: a parser of fold 1, 2"]

    class Other(Searching):
        @property
        def sources(self) -> tuple[str, ...]:
            return ("a", "twin")

    _, steps, _ = folded(tmp_path, Other(name="a"))
    assert {stage for _, stage, _ in steps} == {"parse", "done"}


def test_no_record_stands_beside_lists_of_another_run(tmp_path: Path) -> None:
    class Gone(CountingParser):
        def open(self, *_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

    folded(tmp_path, A)
    with pytest.raises(KeyboardInterrupt):
        folded(tmp_path, Gone(name="a"), k=5)
    # As a training that is stopped leaves it: nothing of the lists, and the data of the folds.
    for fold in ("fold-01", "fold-02"):
        assert not (tmp_path / f"{fold}.conllu").exists()
        assert not (tmp_path / f"{fold}.json").exists()
    first, second = SENTENCES[:8], SENTENCES[8:]
    for fold, out, learned in (("fold-01", first, second), ("fold-02", second, first)):
        held = load_treebank(tmp_path / f"{fold}.held-out.conllu")
        assert [s.forms for s in held] == [s.forms for s in out]
        others = load_treebank(tmp_path / f"{fold}.train.conllu")
        assert [s.forms for s in others] == [s.forms for s in learned]


def test_parsers_of_all_of_train_lie_under_their_names(tmp_path: Path) -> None:
    whole = WholeTraining(SENTENCES, SENTENCES[:2], [A, B], directory=str(tmp_path))
    assert (whole.kept, whole.damaged) == ([], [])
    whole.run()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert (whole.kept, whole.damaged, whole.tasks()) == (["a", "b"], [], [])
    (tmp_path / "b" / "counts.json").write_text("{")
    assert (whole.kept, whole.damaged) == (["a"], ["b"])
    assert [task.name for task in whole.tasks()] == ["training b on all of train"]


# Records of trained parsers


def trained(place: Path, parser: CountingParser = A) -> None:
    train_and_record(
        parser, SENTENCES, [], place, fingerprint="one", n_threads=1, report=lambda done, of: None
    )


def test_a_record_has_the_seconds_and_all_files_of_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nested(CountingParser):
        def train(self, train: Any, dev: Any, directory: Path, **options: Any) -> None:
            super().train(train, dev, directory, **options)
            (directory / "more" / "deep").mkdir(parents=True)
            (directory / "more" / "deep" / "weights").write_bytes(b"123")

    clock = iter([100.0, 102.5])
    monkeypatch.setattr(trained_parsers, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    trained(tmp_path / "a", Nested())
    assert training_seconds(tmp_path / "a") == 2.5
    record = read_record(tmp_path / "a" / RECORD)
    assert record["fingerprint"] == "one"
    assert record["sha256"] == {
        name: digest(tmp_path / "a" / name) for name in ("counts.json", "more/deep/weights")
    }
    assert (tmp_path / "a" / RECORD).read_text(encoding="utf-8").endswith("}\n")
    (tmp_path / "a" / "more" / "deep" / "weights").write_bytes(b"124")
    assert trained_state(tmp_path / "a", "one") == "damaged"


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, 0.0), (3, 3.0), (999_999_999.5, 999_999_999.5), (1e9, 0.0)]
)
def test_a_time_of_up_to_thirty_years_is_one(
    tmp_path: Path, seconds: float, expected: float
) -> None:
    (tmp_path / RECORD).write_text(json.dumps({"seconds": seconds}))
    found = training_seconds(tmp_path)
    assert (found, type(found)) == (expected, float)
    assert training_seconds(tmp_path / "none") == 0.0


@pytest.mark.parametrize("digests", [{}, [], "x", 3])
def test_a_record_without_digests_is_damaged(tmp_path: Path, digests: object) -> None:
    trained(tmp_path / "a")
    record = {"fingerprint": "one", "sha256": digests}
    (tmp_path / "a" / RECORD).write_text(json.dumps(record))
    assert trained_state(tmp_path / "a", "one") == "damaged"


def test_a_parser_that_is_there_is_not_trained_again(tmp_path: Path) -> None:
    class Again(CountingParser):
        def train(self, *_: Any, **__: Any) -> None:
            raise AssertionError("trained again")

    trained(tmp_path / "a")
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    trained(tmp_path / "a", Again(name="a"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before


def test_work_of_earlier_versions_is_found_by_the_same_fingerprint() -> None:
    first, second = (s.to_conllu() for s in SENTENCES[:2])
    made = trained_parsers.training_fingerprint(CountingParser(name="a"), [first], [second])
    text = f'[{trained_parsers.FORMAT}, "a", 0.1]train{first}dev{second}'
    assert made == hashlib.sha256(text.encode()).hexdigest()
    assert trained_parsers.FORMAT == 2  # raised where the same settings give another parser


def test_a_given_parser_is_never_trained(tmp_path: Path) -> None:
    class Given(CountingParser):
        given = True

    trained(tmp_path / "a", Given())
    assert not (tmp_path / "a").exists()


def test_what_is_removed_is_the_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    remove(tmp_path / "link")
    assert names(tmp_path) == ["real", "real/deep"]
    (tmp_path / "file").write_text("")
    for name in ("file", "real", "none"):
        remove(tmp_path / name)
    assert names(tmp_path) == []


def test_what_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(UserError) as error:
        remove(tmp_path / "a")
    assert str(error.value) == (
        f"{tmp_path / 'a'}: is damaged and cannot be removed: Permission denied; remove it"
    )


# Lists for a training


def planned(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *parsers: CountingParser, **changes: Any
) -> Any:
    """A plan of a training with these parsers on small parts."""
    files = {name: folder / "UD_Owls" / f"xx_owls-ud-{name}.conllu" for name in SIZES}
    if not (folder / "UD_Owls").exists():
        write_parts(folder / "UD_Owls")
    monkeypatch.setattr(inputs, "make_parsers", lambda *_, **__: parsers)
    given: dict[str, Any] = {"processes": 1, "folds": 2}
    if "candidates" in changes:
        given = {}
    return make_plan(
        TrainOptions(
            **{
                **files, **given, "output": folder / "model", "workdir": folder / "work",
                "parsers": ("sampling", "sampling:order=2"), "k": 3, "threads": 1, **changes,
            }
        )
    )  # fmt: skip


def test_lists_are_made_with_steps_that_say_of_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher()
    plan = planned(tmp_path, monkeypatch, A, B)
    made = candidate_lists(Stages(watcher, Meter()), plan)
    work = tmp_path / "work"
    training = "training the a and b parser, 2 folds"
    assert watcher.begun == watcher.ended == [training, "candidates of dev", "candidates of test"]
    assert watcher.notes == watcher.warnings == []
    told = watcher.steps
    for name in ("dev", "test"):
        of = SIZES[name]
        own = [(done, total) for stage, done, total in told if stage == f"candidates of {name}"]
        assert own == [(i, of) for i in range(1, of + 1)]
    percents = [done for stage, done, total in told if stage == training and total == 100]
    assert percents == sorted(percents)
    assert percents[0] < 10
    assert percents[-1] == 100
    assert len(set(percents)) > 20
    for fold, (held, seen) in enumerate(((9, 8), (8, 9)), start=1):
        for parser in "ab":
            assert (f"  fold {fold}, training {parser}", seen, seen) in told
        parsed = [done for stage, done, total in told
                  if (stage, total) == (f"  fold {fold}, parsing", held)]  # fmt: skip
        assert parsed == list(range(1, held + 1))
    for parser in "ab":
        assert (f"  all of train, training {parser}", 17, 17) in told
    assert {stage for stage, *_ in told if stage.startswith(" ")} == {
        *(f"  {where}, training {parser}" for where in ("fold 1", "fold 2", "all of train")
          for parser in "ab"),
        "  fold 1, parsing", "  fold 2, parsing",
    }  # fmt: skip
    # The lists, in files too.
    assert {name: len(lists) for name, lists in made.lists.items()} == SIZES
    for name, lists in made.lists.items():
        stored = read_kbest(work / f"{name}.kbest.conllu", inventory=plan.inventory)
        for (sentence, found), trees, gold in zip(
            stored, lists, plan.parts[name].sentences, strict=True
        ):
            assert sentence.forms == gold.forms
            assert found.heads.tolist() == trees.heads.tolist()
            assert trees.sources == ("a", "b")
            assert trees.inventory is plan.inventory
            assert 1 < len(trees) <= 3
    assert [source.names for source in made.sources] == [("a",), ("b",)]
    # Seconds are those of the records.
    for parser in "ab":
        folds = [training_seconds(work / "folds" / f"fold-0{i}" / parser) for i in (1, 2)]
        assert made.seconds[parser] == {
            "whole": training_seconds(work / parser), "folds": pytest.approx(sum(folds)),
        }  # fmt: skip
        assert min(*folds, made.seconds[parser]["whole"]) > 0
    assert list(made.seconds) == ["a", "b"]
    # Once more: all is taken over, save what was damaged.
    (work / "b" / "counts.json").write_text("{")
    again = Watcher()
    candidate_lists(Stages(again, Meter()), plan)
    assert again.notes == [
        f"taken over from {work}: a parser of all of train",
        f"damaged in {work} and made again: b parser of all of train",
        f"taken over from {work / 'folds'}: lists of fold 1, 2",
    ]
    for damage, told_first in (("kept", f"taken over from {work}: a, b"),
                               ("damaged", f"damaged in {work} and made again: a, b")):  # fmt: skip
        if damage == "damaged":
            for parser in "ab":
                (work / parser / "counts.json").write_text("{")
        again = Watcher()
        candidate_lists(Stages(again, Meter()), plan)
        assert again.notes[0] == f"{told_first} parser of all of train"


def test_words_a_second_are_counted_of_the_lists_that_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Timed(module.MergedSource):
        def candidates(self, *what: Any, **how: Any) -> Any:
            yield from super().candidates(*what, **how)
            self.seconds = [0.5, 4.0]

    clock = iter([10.0, 18.0])
    plan = planned(tmp_path, monkeypatch, A, B)
    monkeypatch.setattr(module, "MergedSource", Timed)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    made = candidate_lists(Stages(Watcher(), Meter()), plan)
    found = sum(words(plan.parts[name].path) for name in ("dev", "test"))
    assert made.speeds == {"a": found / 0.5, "b": found / 4, "all": found / 8}


def known_lists(folder: Path, *names: str) -> dict[str, Path]:
    """Ready lists of parts, with scores of a parser "a"."""
    made = {}
    for name in names:
        path = folder / f"{name}.kbest.conllu"
        gold = load_treebank(folder / "UD_Owls" / f"xx_owls-ud-{name}.conllu")
        write_known(path, gold, known=True)
        made["candidates" if name == "train" else f"{name}_candidates"] = path
    return made


def test_ready_lists_are_used_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(tmp_path, monkeypatch, A)
    ready = known_lists(tmp_path, "train", "dev")
    plan = planned(tmp_path, monkeypatch, A, **ready)
    watcher = Watcher()
    made = candidate_lists(Stages(watcher, Meter()), plan)
    assert made.lists["train"] is plan.parts["train"].lists
    assert made.lists["dev"] is plan.parts["dev"].lists
    assert len(made.lists["test"]) == SIZES["test"]
    # The parser is trained on all of train, and there are no folds.
    assert watcher.begun == watcher.ended == ["training the a parser", "candidates of test"]
    assert ("  all of train, training a", 17, 17) in watcher.steps
    assert not any("fold" in stage for stage, *_ in watcher.steps)
    assert not (tmp_path / "work" / "folds").exists()
    assert made.seconds == {"a": {"whole": training_seconds(tmp_path / "work" / "a")}}
    assert {path.name for path in (tmp_path / "work").glob("*.kbest.conllu")} == {
        f"{name}.kbest.conllu" for name in SIZES
    }


def test_lists_of_folds_alone_have_no_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(tmp_path, monkeypatch, A)
    plan = planned(tmp_path, monkeypatch, A, **known_lists(tmp_path, "dev", "test"))
    watcher = Watcher()
    made = candidate_lists(Stages(watcher, Meter()), plan)
    assert watcher.begun == ["training the a parser, 2 folds"]
    assert made.lists["dev"] is plan.parts["dev"].lists
    assert len(made.lists["train"]) == SIZES["train"]
    assert made.speeds == {}  # the folds' parsers are no part of the model
    assert made.seconds["a"].keys() == {"whole", "folds"}


def test_without_parsers_there_is_nothing_to_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(tmp_path, monkeypatch, A)
    files = {n: tmp_path / "UD_Owls" / f"xx_owls-ud-{n}.conllu" for n in ("train", "dev")}
    ready = known_lists(tmp_path, "train", "dev")
    plan = make_plan(TrainOptions(**files, output=tmp_path / "model", k=3, **ready))
    watcher = Watcher()
    made = candidate_lists(Stages(watcher, Meter()), plan)
    assert {name: lists is plan.parts[name].lists for name, lists in made.lists.items()} == {
        "train": True, "dev": True,
    }  # fmt: skip
    assert (made.sources, made.seconds, made.speeds, watcher.begun) == ((), {}, {}, [])


def given_parser(folder: Path, name: str) -> CountingParser:
    """A parser that was trained before, elsewhere."""

    class Given(CountingParser):
        given = True

        def open(self, directory: Path, **options: Any) -> Any:
            assert options["n_threads"] == 1  # as the training was told
            return super().open(folder, **options)

    A.train(SENTENCES, [], folder, n_threads=1, report=lambda done, of: None)
    return Given(name=name)


def test_a_given_parser_makes_all_lists_and_keeps_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, monkeypatch, given_parser(tmp_path, "a"))
    watcher = Watcher()
    made = candidate_lists(Stages(watcher, Meter()), plan)
    assert watcher.begun == ["candidates of train", "candidates of dev", "candidates of test"]
    assert {name: len(lists) for name, lists in made.lists.items()} == SIZES
    assert made.seconds == {}
    assert list(made.speeds) == ["a", "all"]
    assert not (tmp_path / "work").exists()


def test_a_given_parser_beside_a_trained_one_takes_no_time_to_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, monkeypatch, given_parser(tmp_path, "g"), A)
    made = candidate_lists(Stages(Watcher(), Meter()), plan)
    assert made.seconds.keys() == {"a"}
    assert [source.names for source in made.sources] == [("g",), ("a",)]
    assert list(made.speeds) == ["g", "a", "all"]


def test_a_given_parser_is_opened_for_the_model_though_all_lists_are_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(tmp_path, monkeypatch, A)
    files = {n: tmp_path / "UD_Owls" / f"xx_owls-ud-{n}.conllu" for n in ("train", "dev")}
    ready = known_lists(tmp_path, "train", "dev")
    options = TrainOptions(**files, output=tmp_path / "model", k=3, threads=1, **ready)
    plan = replace(make_plan(options), parsers=(given_parser(tmp_path, "a"),))
    made = candidate_lists(Stages(Watcher(), Meter()), plan)
    assert [source.names for source in made.sources] == [("a",)]
    assert made.lists["dev"] is plan.parts["dev"].lists


def test_a_training_that_fails_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, monkeypatch, A)
    monkeypatch.setattr(jackknife, "make_executor", lambda *_, **__: Broken(killed=False))
    with pytest.raises(UserError) as error:
        candidate_lists(Stages(Watcher(), Meter()), plan)
    assert str(error.value) == (
        f"training a on fold 1 failed; finished parts are kept in {tmp_path / 'work'}"
    )


def test_processes_are_as_many_as_may_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Stopped(Exception):
        pass

    def spy(*_: Any, **how: Any) -> Any:
        asked.append((how["processes"], how["n_threads"], how["k"], how["folds"], how["workdir"]))
        raise Stopped

    monkeypatch.setattr(module, "jackknife", spy)
    monkeypatch.setattr(module, "available_threads", lambda: 7)
    for processes in (None, 3):
        plan = replace(planned(tmp_path, monkeypatch, A), notes=())
        plan = replace(plan, options=replace(plan.options, processes=processes))
        with pytest.raises(Stopped):
            candidate_lists(Stages(Watcher(), Meter()), plan)
    assert asked == [(n, 1, 3, 2, tmp_path / "work" / "folds") for n in (7, 3)]
