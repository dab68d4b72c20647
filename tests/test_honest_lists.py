"""No parser makes the lists of sentences that it was trained on; nothing learns from dev or test.

A parser that knows its training sentences by heart shows each such leak as a perfect score.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import biaffine_parsers
import numpy as np
import pytest
import sampling_parsers
import tiny_spacy
import udpipe_parsers
from memorising_parser import (
    FAR_TREES,
    KNOWN,
    UNKNOWN,
    MemorisingParser,
    MemorisingSource,
    chains,
    gold_sentences,
)
from memorising_tagger import MemorisingTagger

from tk_spacy.ensemble.full_training import WholeTraining
from tk_spacy.ensemble.jackknife import fold_of_sentences, fold_seconds, jackknife
from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.ensemble.trained_parsers import RECORD, training_fingerprint
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.biaffine.source import BiaffineSource
from tk_spacy.parsers.sampling.source import SamplingSource
from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.parsers.udpipe.source import UdpipeSource
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.settings import Settings
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows.train import inputs as inputs_module
from tk_spacy.workflows.train import pipeline as pipeline_module
from tk_spacy.workflows.train.candidate_lists import seen_notes
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

TRAIN = gold_sentences(11)
DEV = gold_sentences(6, start=100)
TEST = gold_sentences(5, start=200)


def texts(sentences: Sequence[Sentence]) -> list[str]:
    return [" ".join(s.forms) for s in sentences]


def known(sentences: Sequence[Sentence], lists: Sequence[CandidateList]) -> list[bool]:
    """Of each sentence whether its list has the gold tree, heads and labels, anywhere."""
    return [
        any(
            np.array_equal(heads, s.heads) and trees.deprels(row) == s.deprels
            for row, heads in enumerate(trees.heads)
        )
        for s, trees in zip(sentences, lists, strict=True)
    ]


# The jackknife


@pytest.mark.parametrize(
    ("folds", "fold_seed", "processes"), [(2, None, 1), (3, 7, 1), (11, None, 1), (2, 5, 2)]
)
def test_no_fold_parser_knows_what_it_parses(
    tmp_path: Path, folds: int, fold_seed: int | None, processes: int
) -> None:
    parsers = [MemorisingParser(diary=tmp_path / f"{name}.txt", name=name) for name in ("a", "b")]
    lists = jackknife(
        TRAIN, parsers, workdir=tmp_path / "work", folds=folds, k=4,
        processes=processes, fold_seed=fold_seed, n_threads=1,
    )  # fmt: skip
    assert not any(known(TRAIN, lists))
    for s, trees in zip(TRAIN, lists, strict=True):
        found = [(h.tolist(), list(trees.deprels(j))) for j, h in enumerate(trees.heads)]
        assert found == chains(s)
        assert trees.scores.tolist() == [[UNKNOWN - i, UNKNOWN - i] for i in range(3)]
    for parser in parsers:
        records = [
            json.loads((tmp_path / "work" / f"fold-{i:02}" / parser.name / RECORD).read_text())
            for i in range(1, folds + 1)
        ]
        taken = fold_seconds(tmp_path / "work", parser, folds=folds)
        assert taken == pytest.approx(sum(record["seconds"] for record in records))
        trained, parsed = parser.records("train"), parser.records("parse")
        assert len(trained) == len(parsed) == folds
        for seen in trained:
            assert seen["dev"] == []  # what would be held out of the training would be known to it
        if fold_seed is not None:  # dealt at random, the same way each time
            dealt = fold_of_sentences(len(TRAIN), folds=folds, seed=fold_seed)
            assert dealt != sorted(dealt)
            groups = [
                [text for text, own in zip(texts(TRAIN), dealt, strict=True) if own == fold]
                for fold in range(folds)
            ]
            assert sorted(record["of"] for record in parsed) == sorted(groups)
        asked = [text for record in parsed for text in record["of"]]
        assert sorted(asked) == sorted(texts(TRAIN))
        for record in parsed:
            assert not set(record["of"]) & set(record["knows"])
            # All others are learned from: a fold's parser is not weaker than it need be.
            assert set(record["of"]) | set(record["knows"]) == set(texts(TRAIN))


def test_a_fold_is_dealt_the_neighbours_of_its_sentences() -> None:
    # Independent of the rule that the code has: block sizes as even as can be, in order.
    for n, folds in ((7, 3), (10, 5), (11, 4), (5, 5)):
        numbers = fold_of_sentences(n, folds=folds)
        assert numbers == sorted(numbers)
        sizes = [numbers.count(fold) for fold in range(folds)]
        assert sum(sizes) == n
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) >= 1


def test_fold_lists_of_other_sentences_are_not_taken_over(tmp_path: Path) -> None:
    parser = MemorisingParser(diary=tmp_path / "diary.txt")
    options: dict[str, Any] = {"workdir": tmp_path / "work", "folds": 2, "k": 4, "processes": 1}
    jackknife(TRAIN[:6], [parser], **options)
    # Swapped halves: each fold's parser of the first run knows what the second run's parses.
    lists = jackknife([*TRAIN[3:6], *TRAIN[:3]], [parser], **options)
    assert not any(known([*TRAIN[3:6], *TRAIN[:3]], lists))
    assert len(parser.records("train")) == 4


def test_a_changed_sentence_is_learned_from_anew_and_parsed_anew(tmp_path: Path) -> None:
    parser = MemorisingParser(diary=tmp_path / "diary.txt")
    sentences = list(TRAIN[:6])
    options: dict[str, Any] = {"workdir": tmp_path / "work", "folds": 2, "k": 4, "processes": 1}

    def run() -> tuple[list[list[str]], list[list[str]]]:
        """What is trained on, and what is parsed, in one more jackknife."""
        before = [len(parser.records(what)) for what in ("train", "parse")]
        lists = jackknife(sentences, [parser], **options)
        assert not any(known(sentences, lists))
        new = [parser.records(w)[n:] for w, n in zip(("train", "parse"), before, strict=True)]
        return [r["of"] for r in new[0]], [r["of"] for r in new[1]]

    parser.diary.touch()
    first, second = texts(TRAIN[:3]), texts(TRAIN[3:6])
    assert run() == ([second, first], [first, second])
    assert run() == ([], [])
    # Another tree: whoever learns from it learns anew.  (Whoever parses it only parses.)
    s = sentences[4]
    sentences[4] = s.with_tree(next(t for t in FAR_TREES if t != s.heads.tolist()), s.deprels)
    assert run() == ([second], [first, second])
    # Other tags.
    columns = {"forms": s.forms, "upos": ["VERB"] * 6, "heads": s.heads, "deprels": s.deprels}
    sentences[4] = Sentence.from_columns(**columns, sent_id=s.sent_id)
    assert run() == ([second], [first, second])
    # Lists that somebody changed are none of ours.
    file = tmp_path / "work" / "fold-01.conllu"
    file.write_text(file.read_text().replace("chain", "trust"))
    assert run() == ([], [first])
    assert "trust" not in file.read_text()
    assert run() == ([], [])


def test_a_parser_that_seems_to_know_train_is_told_of_by_its_numbers() -> None:
    gold = gold_sentences(100, start=500)  # 600 words
    inventory = LabelInventory()

    def base_lists(right: int) -> list[CandidateList]:
        """Lists whose base tree has all six words right in so many sentences, else none."""
        return [
            CandidateList.build(
                [(s.heads if i < right else chains(s)[0][0], s.deprels, 0.0),
                 (chains(s)[1][0], s.deprels, 9.0)],
                inventory=inventory, sources=("a",),
            )
            for i, s in enumerate(gold)
        ]  # fmt: skip

    part = SimpleNamespace(sentences=gold, words=600)
    plan: Any = SimpleNamespace(jackknifes=False, parts={"train": part, "dev": part})
    (note,) = seen_notes(plan, {"train": base_lists(85), "dev": base_lists(80)})
    assert note.startswith("the base parser has 85.0 UAS on train, but 80.0 on dev: it seems to")
    assert list(seen_notes(plan, {"train": base_lists(84), "dev": base_lists(80)})) == []
    assert list(seen_notes(plan, {"train": base_lists(80), "dev": base_lists(85)})) == []
    plan.jackknifes = True  # beyond suspicion
    assert list(seen_notes(plan, {"train": base_lists(99), "dev": base_lists(1)})) == []


def test_fingerprints_tell_train_from_dev() -> None:
    parser = MemorisingParser(diary=Path("unused"))
    a, b = TRAIN[0].to_conllu(), TRAIN[1].to_conllu()
    keys = [
        training_fingerprint(parser, train, dev)
        for train, dev in (([a, b], []), ([a], [b]), ([b], [a]), ([b, a], []), ([a], []), ([], [a]))
    ]
    keys.append(training_fingerprint(replace(parser, name="other"), [a], []))
    assert len(set(keys)) == len(keys)


# The parsers of all of train


def test_whole_parser_learns_from_train_and_stops_by_dev(tmp_path: Path) -> None:
    parser = MemorisingParser(diary=tmp_path / "diary.txt")
    whole = WholeTraining(TRAIN, DEV, [parser], directory=tmp_path / "work")
    whole.run(n_threads=1)
    (record,) = parser.records("train")
    assert record["of"] == texts(TRAIN)
    assert record["dev"] == texts(DEV)


# All of `train`


def options(tmp_path: Path, **changes: Any) -> TrainOptions:
    tmp_path.mkdir(exist_ok=True)
    paths = {}
    # One dev sentence stands in train too: its list tells which parser made it.
    dev = [TRAIN[4], *DEV[1:]]
    for name, part in (("train", TRAIN), ("dev", dev), ("test", TEST)):
        paths[name] = tmp_path / f"{name}.conllu"
        write_conllu(paths[name], part)
    given = {
        **paths, "output": tmp_path / "model", "parsers": ("sampling",), "k": 2, "folds": 3,
        "tags": "gold",
        "processes": 1, "threads": 1, "seed": 3,
        "settings": Settings(iterations=2, bits=10, manual_parts=("arc",)),
    }  # fmt: skip
    return TrainOptions(**{**given, **changes})


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorisingParser:
    """The only parser of trainings, and nothing but the reranker saved."""
    parser = MemorisingParser(diary=tmp_path / "diary.txt")
    monkeypatch.setattr(inputs_module, "make_parsers", lambda *_, **__: (parser,))
    monkeypatch.setattr(
        pipeline_module,
        "_save_model",
        lambda directory, plan, reranker, *_: reranker.write_files(directory),
    )
    return parser


def test_a_training_shows_each_parser_only_what_it_may_see(
    tmp_path: Path, memory: MemorisingParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: dict[str, Any] = {}
    real = pipeline_module.train_reranker

    def spy(sentences: Any, lists: Any, *args: Any, **kwargs: Any) -> Any:
        learned["sentences"], learned["lists"] = list(sentences), list(lists)
        learned["seed"] = kwargs["seed"]
        return real(sentences, lists, *args, **kwargs)

    monkeypatch.setattr(pipeline_module, "train_reranker", spy)
    report = train_pipeline(options(tmp_path))
    folds = [r for r in memory.records("train") if not r["dev"]]
    (whole,) = [r for r in memory.records("train") if r["dev"]]
    assert len(folds) == 3
    assert whole["of"] == texts(TRAIN)
    assert whole["dev"] == texts([TRAIN[4], *DEV[1:]])
    for record in folds:
        assert set(record["of"]) < set(texts(TRAIN))
    never = set(texts(TEST)) | set(texts(DEV[1:]))
    for record in (*folds, whole):
        assert not never & set(record["of"])
        assert not set(texts(TEST)) & set(record["dev"])
    # The reranker learns from train, and from lists of parsers that did not know its sentences.
    assert texts(learned["sentences"]) == texts(TRAIN)
    assert not any(known(TRAIN, learned["lists"]))
    assert learned["seed"] == 3
    assert {len(trees) for trees in learned["lists"]} == {2}  # of three trees each, k = 2
    assert report.parts["dev"].trees == report.parts["test"].trees == 2
    taken = report.run_time.parsers["memory"]
    assert taken.keys() == {"whole", "folds"}
    assert min(taken.values()) > 0
    assert set(report.run_time.parser_speeds) == {"memory", "all"}
    # Dev and test are parsed by the parser of all of train, which knows the one sentence.
    of_dev = report.parts["dev"].scores
    assert of_dev["base parser"].uas == pytest.approx(100 / 6)
    assert of_dev["oracle"].uas == pytest.approx(100 / 6)
    assert report.parts["test"].scores["oracle"].uas == 0
    assert (report.parts["dev"].sentences, report.parts["test"].sentences) == (6, 5)
    assert (report.parts["dev"].words, report.parts["test"].words) == (36, 30)


def test_a_training_shows_its_parsers_predicted_tags_and_reports_how_right_they_are(
    tmp_path: Path, memory: MemorisingParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger = MemorisingTagger(diary=tmp_path / "taggers.txt")
    monkeypatch.setattr(inputs_module, "make_tagger", lambda *_, **__: tagger)
    learned: list[Any] = []
    real = pipeline_module.train_reranker

    def spy(sentences: Any, *args: Any, **kwargs: Any) -> Any:
        learned.extend(sentences)
        return real(sentences, *args, **kwargs)

    monkeypatch.setattr(pipeline_module, "train_reranker", spy)
    report = train_pipeline(options(tmp_path, tags="own", tokenizer="none"))
    # Every word is a NOUN, and X to a tagger that did not see its sentence: the final one knows the
    # sentence of dev that stands in train, the folds' know none of those that they tag.
    gold, unseen = " ".join(["NOUN"] * 6), " ".join(["X"] * 6)
    trained, asked = memory.records("train"), memory.records("parse")
    assert {tags for record in trained for tags in record["tags"]} == {unseen}
    (whole,) = [record for record in trained if record["dev"]]
    assert whole["dev_tags"] == [gold, *[unseen] * 5]
    of_dev, of_test = (texts(part) for part in ([TRAIN[4], *DEV[1:]], TEST))
    assert [record["of"] for record in asked[-2:]] == [of_dev, of_test]
    for record in asked:
        expected = [gold, *[unseen] * 5] if record["of"] == of_dev else [unseen] * len(record["of"])
        assert record["tags"] == expected
    assert {" ".join(s.upos) for s in learned} == {unseen}
    assert {name: row.upos for name, row in report.tags.items()} == {
        "train": 0, "dev": pytest.approx(100 / 6), "test": 0,
    }  # fmt: skip
    assert {name: row.words for name, row in report.tags.items()} == {
        "train": 66, "dev": 36, "test": 30,
    }  # fmt: skip


def test_lists_of_train_are_still_the_folds_where_a_parser_is_known_for_dev(
    tmp_path: Path, memory: MemorisingParser
) -> None:
    # A kept work directory, whose lists another training may take: nothing in them is known.
    train_pipeline(options(tmp_path, workdir=tmp_path / "work"))
    kept = (tmp_path / "work" / "train.kbest.conllu").read_text(encoding="utf-8")
    assert "gold" not in kept
    assert kept.count("\tchain\t") == 5 * len(TRAIN)
    assert kept.count("# tk_candidate_1 = ") == kept.count("# tk_candidate_2 = ") == len(TRAIN)
    assert "# tk_candidate_3" not in kept
    # As earlier versions left it, so that it can be resumed.
    assert {path.name for path in (tmp_path / "work").iterdir() if path.is_dir()} == {
        "folds", "memory",
    }  # fmt: skip
    assert (tmp_path / "work" / "folds" / "fold-03" / "memory" / RECORD).is_file()
    of_dev = (tmp_path / "work" / "dev.kbest.conllu").read_text(encoding="utf-8")
    assert of_dev.count("\tgold\t") == 5


def test_a_training_with_a_combiner_teaches_the_reranker_the_lists_that_it_extends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: MemorisingParser
) -> None:
    both = tuple(MemorisingParser(diary=memory.diary, name=name) for name in ("a", "b"))
    monkeypatch.setattr(inputs_module, "make_parsers", lambda *_, **__: both)
    learned: list[Any] = []
    made: list[Any] = []
    combine, train = pipeline_module.combine_lists, pipeline_module.train_reranker

    def spy_combine(sentences: Any, lists: Any, *args: Any, **kwargs: Any) -> Any:
        assert texts(sentences) == texts(TRAIN)
        assert not any(known(TRAIN, lists))
        made.append(combine(sentences, lists, *args, **kwargs))
        return made[-1]

    def spy_train(sentences: Any, lists: Any, *args: Any, **kwargs: Any) -> Any:
        learned.append(lists)
        return train(sentences, lists, *args, **kwargs)

    monkeypatch.setattr(pipeline_module, "combine_lists", spy_combine)
    monkeypatch.setattr(pipeline_module, "train_reranker", spy_train)
    report = train_pipeline(options(tmp_path))
    assert {trees.sources for trees in learned[0]} == {("a", "b", "combiner")}
    assert learned[0] is made[0][1]
    assert Reranker.from_disk(tmp_path / "model").combiner is not None
    assert list(report.parts["dev"].scores) == [
        "base parser", "b parser", "first of the list", "plain vote", "arc combiner",
        "base reranker", "kernel reranker", "final system", "oracle",
    ]  # fmt: skip


# Parsers see words, not trees


def blanked(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The same words with a chain in place of the gold tree."""
    return [s.with_tree(*chains(s)[0]) for s in sentences]


def sources(inventory: LabelInventory) -> dict[str, Any]:
    return {
        "sampling": lambda: SamplingSource(
            sampling_parsers.trained(), inventory=inventory, n_threads=1
        ),
        "biaffine": lambda: BiaffineSource(biaffine_parsers.trained(), inventory=inventory),
        "spacy": lambda: SpacySource(
            tiny_spacy.tiny_nlp(backward=True), backward=True, inventory=inventory
        ),
        "udpipe": lambda: UdpipeSource(udpipe_parsers.parser(), inventory=inventory),
    }


@pytest.mark.parametrize(
    "name",
    ["sampling", "biaffine", "spacy", pytest.param("udpipe", marks=udpipe_parsers.needs_udpipe)],
)
def test_lists_and_scores_do_not_depend_on_the_gold_trees(name: str) -> None:
    gold = [s for s in generate(30, seed=77) if len(s) < 15][:6]
    inventory = LabelInventory()
    source = MergedSource([sources(inventory)[name]()], n_threads=1)
    lists = list(source.candidates(gold, k=5))
    again = list(source.candidates(blanked(gold), k=5))
    scores, blank_scores = source.score(gold, lists), source.score(blanked(gold), lists)
    for left, right, a, b in zip(lists, again, scores, blank_scores, strict=True):
        np.testing.assert_array_equal(left.heads, right.heads)
        np.testing.assert_array_equal(left.labels, right.labels)
        np.testing.assert_array_equal(left.scores, right.scores)
        assert (left.base, left.bases) == (right.base, right.bases)
        np.testing.assert_array_equal(a, b)


# Merging


def test_merged_lists_mark_the_own_tree_of_each_parser() -> None:
    # Each parser knows one sentence; the scores that the other one gives are its own.
    sentences = gold_sentences(2, start=300)
    inventory = LabelInventory()
    made = []
    for name, s in zip("ab", sentences, strict=True):
        parser = SimpleNamespace(name=name, _write=lambda *_, **__: None)
        tree = [s.heads.tolist(), list(s.deprels)]
        made.append(MemorisingSource(parser, {" ".join(s.forms): tree}, inventory))
    of_first, of_second = MergedSource(made, n_threads=1).candidates(sentences, k=4)
    assert of_first.heads[of_first.base].tolist() == sentences[0].heads.tolist()
    assert of_first.heads[of_first.bases["b"]].tolist() == chains(sentences[0])[0][0]
    assert of_second.heads[of_second.base].tolist() == chains(sentences[1])[0][0]
    assert of_second.heads[of_second.bases["b"]].tolist() == sentences[1].heads.tolist()
    assert of_first.scores.tolist() == [
        [KNOWN, UNKNOWN - 2],
        [UNKNOWN, UNKNOWN],
        [UNKNOWN - 1, UNKNOWN - 1],
        [UNKNOWN - 2, UNKNOWN - 2],
    ]
    assert of_second.scores.tolist() == [
        [UNKNOWN, UNKNOWN],
        [UNKNOWN - 1, UNKNOWN - 1],
        [UNKNOWN - 2, UNKNOWN - 2],
        [UNKNOWN - 2, KNOWN],
    ]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("names", ["a", "ab"])
def test_every_sentence_has_its_own_list_however_many_there_are(names: str, n_threads: int) -> None:
    # More than are parsed at a time.
    sentences = gold_sentences(300, start=400)
    by_heart = {" ".join(s.forms): [s.heads.tolist(), list(s.deprels)] for s in sentences}
    inventory = LabelInventory()
    made = [
        MemorisingSource(SimpleNamespace(name=name, _write=lambda *_, **__: None), known, inventory)
        for name, known in zip(names, (by_heart, {}), strict=False)
    ]
    started = time.perf_counter()
    merged = MergedSource(made, n_threads=n_threads)
    lists = list(merged.candidates(sentences, k=4))
    assert [trees.heads[trees.base].tolist() for trees in lists] == [
        s.heads.tolist() for s in sentences
    ]
    assert {len(trees) for trees in lists} == {4}
    assert {trees.sources for trees in lists} == {tuple(names)}
    assert all(np.isfinite(trees.scores).all() for trees in lists)
    assert merged.names == tuple(names)
    assert [source.in_company for source in made] == [len(names) > 1] * len(names)
    assert all(0 < seconds < time.perf_counter() - started for seconds in merged.seconds)
    scores = merged.score(sentences, lists)
    for trees, own in zip(lists, scores, strict=True):
        assert own.shape == (4, len(names))
        assert own[trees.base, 0] == KNOWN
    with pytest.raises(ValueError, match="sources must have different names"):
        MergedSource([made[0], made[0]])
