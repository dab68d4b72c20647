"""Each row of a report is the score of the system that it names, on the part that it names."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from plain_scoring import Tree, plain_scores
from samples import corrupted
from trainings import SETTINGS, options

from tk_spacy.evaluation.attachment import Scores
from tk_spacy.evaluation.bootstrap import Bootstrap, paired_bootstrap
from tk_spacy.evaluation.report import (
    PartReport,
    RunTime,
    TrainReport,
    bootstrap_note,
    costs_table,
    further_parser,
    scores_table,
    stages_table,
    table_2,
    table_3,
)
from tk_spacy.evaluation.tags import TagScores
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.reranker import assessment as assessment_module
from tk_spacy.reranker.assessment import Choices, assess
from tk_spacy.reranker.decision import Decision
from tk_spacy.treebank.conllu import Sentence, check_tree, load_treebank, write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train import pipeline as pipeline_module
from tk_spacy.workflows.train.pipeline import train_pipeline

N_WORDS, K = 8, 14
LABELS = ("x", "y", "z")
ROWS = ("base parser", "b parser", "c parser", "first of the list", "plain vote", "arc combiner")
ROWS += ("base reranker", "kernel reranker", "final system", "oracle")


def some_tree(rng: random.Random) -> Tree:
    while True:
        heads = [rng.randint(0, N_WORDS) for _ in range(N_WORDS)]
        if check_tree(heads) is None:
            return heads, [rng.choice(LABELS) if head else "root" for head in heads]


def with_another_leaf(tree: Tree, word: int, rng: random.Random) -> Tree:
    """The tree with a leaf hung elsewhere."""
    heads, labels = list(tree[0]), list(tree[1])
    other = [h for h in range(1, N_WORDS + 1) if h not in (word + 1, heads[word])]
    heads[word] = rng.choice(other)
    labels[word] = rng.choice(LABELS)
    assert check_tree(heads) is None
    return heads, labels


@dataclass
class Case:
    """A sentence, its list, and the tree that each system is to choose."""

    gold: Sentence
    given: CandidateList
    completed: CandidateList
    trees: dict[str, Tree]
    row_scores: dict[str, np.ndarray] = field(default_factory=dict)


def make_case(rng: random.Random, inventory: LabelInventory) -> Case:
    while True:
        voted = some_tree(rng)
        leaves = [w for w in range(N_WORDS) if w + 1 not in voted[0] and voted[0][w]]
        if len(leaves) >= 3:
            break
    # Each of the three parsers errs where the two others agree.
    own = [with_another_leaf(voted, leaf, rng) for leaf in rng.sample(leaves, 3)]
    distinct: dict[Any, Tree] = {(tuple(h), tuple(d)): (h, d) for h, d in own}
    while len(distinct) < K:
        heads, deprels = some_tree(rng)
        distinct.setdefault((tuple(heads), tuple(deprels)), (heads, deprels))
    trees = list(distinct.values())
    heads, deprels = some_tree(rng)
    gold = Sentence.from_columns(
        forms=[f"w{i}" for i in range(N_WORDS)],
        upos=[rng.choice(["NOUN", "VERB", "PUNCT"]) for _ in range(N_WORDS)],
        heads=heads,
        deprels=deprels,
    )
    # Another tree than a parser's own is the best by score, and stands first.
    scores = [rng.random() - 10 for _ in trees]
    top = rng.randrange(3, K)
    scores[top] = 1.0
    given = CandidateList.from_arrays(
        np.array([h for h, _ in trees]),
        np.stack([inventory.encode(d) for _, d in trees]),
        np.array(scores)[:, None],
        inventory=inventory, sources=("a",), base=0, bases={"b": 1, "c": 2},
    )  # fmt: skip
    case = Case(gold, given, given, {})
    rows = rng.sample(range(K), 4)
    by_combiner = -np.arange(1.0, K + 1)
    by_combiner[rows[0]] = 0.0
    case.completed = replace(
        given,
        sources=("a", "other", "combiner"),
        scores=np.column_stack([given.scores, [rng.random() for _ in trees], by_combiner]),
    )
    for row, name in zip(rows[1:], ("base reranker", "kernel reranker", "final system")):  # noqa: B905
        case.row_scores[name] = np.array([float(j == row) for j in range(K)])

    def tree(row: int) -> Tree:
        return given.heads[row].tolist(), list(given.deprels(row))

    case.trees = {
        **dict(zip(ROWS, [*own, trees[top], voted, tree(rows[0])])),  # noqa: B905
        "base reranker": tree(rows[1]),
        "kernel reranker": tree(rows[2]),
        "final system": tree(rows[3]),
    }
    return case


class StubReranker:
    """Chooses as it is told; knows nothing of the trees."""

    def __init__(self, cases: list[Case], name: str, *, kernel: bool, combiner: bool) -> None:
        self.cases = {id(case.gold): case for case in cases}
        self.by_list = {id(case.completed): case for case in cases}
        self.name = name
        self.settings = SimpleNamespace(kernel_parts=("arc",) if kernel else ())
        self.combiner = object() if combiner else None
        self.threads: set[int | None] = set()

    def completed(self, sentence: Sentence, trees: CandidateList) -> CandidateList:
        case = self.cases[id(sentence)]
        assert trees is case.given
        return case.completed if self.combiner else case.given

    def batch_scores(self, pairs: Any, *, n_threads: int | None = None) -> list[np.ndarray]:
        self.threads.add(n_threads)
        return [self.cases[id(s)].row_scores[self.name] for s, _ in pairs]

    def decide(
        self,
        sentence: Sentence,
        trees: CandidateList,
        scores: np.ndarray,
        *,
        n_threads: int | None = None,
    ) -> Decision:
        self.threads.add(n_threads)
        case = self.by_list[id(trees)]
        assert case is self.cases[id(sentence)]
        assert scores is case.row_scores[self.name]  # its own, not the base reranker's
        final = case.row_scores["final system"]
        return Decision(trees, final, np.ones(len(trees), dtype=np.bool_))

    def confidences(self, decided: Any, arcs: Any) -> list[None]:
        for _, made in decided:
            assert made.row == int(made.final.argmax())
            assert made.final is self.by_list[id(made.candidates)].row_scores["final system"]
        return [None] * len(decided)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    rng = random.Random(5)
    inventory = LabelInventory(["root", *LABELS])
    return [make_case(rng, inventory) for _ in range(131)]  # more than are scored at a time


def oracles(case: Case) -> tuple[int, int]:
    """By plain counting: the row with the most heads, and that with the most labelled heads."""

    def key(row: int, *, labelled: bool) -> tuple[int, int, int]:
        heads = case.completed.heads[row].tolist()
        right = [h == g for h, g in zip(heads, case.gold.heads.tolist(), strict=True)]
        same = [a == b for a, b in zip(case.completed.deprels(row), case.gold.deprels, strict=True)]
        both = sum(h and d for h, d in zip(right, same, strict=True))
        if labelled:
            return both, sum(right), -row
        return sum(right), sum(same), -row

    rows = range(len(case.completed))
    return (
        max(rows, key=lambda row: key(row, labelled=False)),
        max(rows, key=lambda row: key(row, labelled=True)),
    )


def expected_scores(cases: list[Case]) -> dict[str, dict[str, float]]:
    gold = [case.gold for case in cases]
    expected = {name: plain_scores(gold, [c.trees[name] for c in cases]) for name in ROWS[:-1]}
    found = [oracles(case) for case in cases]
    both = [
        plain_scores(
            gold,
            [
                (c.completed.heads[rows[i]].tolist(), c.completed.deprels(rows[i]))
                for c, rows in zip(cases, found, strict=True)
            ],
        )
        for i in range(2)
    ]
    expected["oracle"] = {name: max(both[0][name], both[1][name]) for name in both[0]}
    return expected


def shown(scores: Scores) -> dict[str, float]:
    data = asdict(scores)
    return {name: data[name] for name in ("uas", "las", "uas_nopunct", "las_nopunct")}


def test_every_row_is_the_score_of_the_system_that_it_names(cases: list[Case]) -> None:
    base = StubReranker(cases, "base reranker", kernel=False, combiner=False)
    kernel = StubReranker(cases, "kernel reranker", kernel=True, combiner=True)
    steps: list[tuple[int, int]] = []
    choices: list[Choices] = []
    gold = [case.gold for case in cases]
    part = assess(
        gold,
        [case.given for case in cases],
        base=base, kernel=kernel, seed=4, n_threads=3,
        progress=lambda done, of: steps.append((done, of)), choices=choices,
    )  # fmt: skip
    expected = expected_scores(cases)
    # No two systems have the same scores: a wrong row cannot hide.
    for one, two in (("uas", "las"), ("uas_nopunct", "las_nopunct")):
        assert len({(round(r[one], 6), round(r[two], 6)) for r in expected.values()}) == len(ROWS)
    assert tuple(part.scores) == ROWS
    for name in ROWS:
        assert shown(part.scores[name]) == pytest.approx(expected[name]), name
    assert {row.sentences for row in part.scores.values()} == {131}
    assert {row.words for row in part.scores.values()} == {131 * N_WORDS}
    no_punctuation = sum(tag != "PUNCT" for s in gold for tag in s.upos)
    assert {row.words_nopunct for row in part.scores.values()} == {no_punctuation}
    assert (part.sentences, part.words, part.trees) == (131, 131 * N_WORDS, K)
    assert part.tokens_per_second > 0
    assert steps == [(128, 131), (131, 131)]
    (chosen,) = choices
    for trees, system in ((chosen.parsed, "final system"), (chosen.before, "base parser")):
        assert [s.forms for s in trees] == [s.forms for s in gold]
        trees_shown = [(s.heads.tolist(), list(s.deprels)) for s in trees]
        assert trees_shown == [case.trees[system] for case in cases]
    assert chosen.sure == [None] * 131
    assert base.threads == kernel.threads == {3}
    for tests, against in ((part.tests, "base parser"), (part.vote_tests, "plain vote")):
        assert [test.metric for test in tests] == ["uas", "las"]
        for test in tests:
            assert test.score_a == pytest.approx(expected[against][test.metric])
            assert test.score_b == pytest.approx(expected["final system"][test.metric])
            trees = [
                [case.gold.with_tree(*case.trees[name]) for case in cases]
                for name in (against, "final system")
            ]
            assert test == paired_bootstrap(gold, *trees, metric=test.metric, seed=4)


def test_the_one_reranker_has_the_row_of_its_kind(cases: list[Case]) -> None:
    some = [replace(c, row_scores={**c.row_scores}) for c in cases[:20]]
    for kernel, name in ((True, "kernel reranker"), (False, "base reranker")):
        only = StubReranker(some, name, kernel=kernel, combiner=False)
        only.by_list = {id(case.given): case for case in some}
        part = assess([c.gold for c in some], [c.given for c in some], base=None, kernel=only)
        others = {"kernel reranker", "base reranker", "arc combiner"} - {name}
        assert not others & set(part.scores)
        expected = plain_scores([c.gold for c in some], [c.trees[name] for c in some])
        assert shown(part.scores[name]) == pytest.approx(expected)


def test_words_a_second_are_those_of_choosing_alone(
    cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = StubReranker(cases, "kernel reranker", kernel=True, combiner=True)
    clock = itertools.count(0.0, 0.25)
    monkeypatch.setattr(assessment_module.time, "perf_counter", lambda: next(clock))
    part = assess([c.gold for c in cases], [c.given for c in cases], base=None, kernel=kernel)
    # Two batches, a quarter of a second each.
    assert part.tokens_per_second == pytest.approx(131 * N_WORDS / 0.5)


def test_lists_of_one_parser_have_no_vote(cases: list[Case]) -> None:
    some = [replace(c, given=replace(c.given, bases={})) for c in cases[:5]]
    only = StubReranker(some, "kernel reranker", kernel=True, combiner=False)
    only.by_list = {id(case.given): case for case in some}
    part = assess([c.gold for c in some], [c.given for c in some], base=None, kernel=only)
    assert "plain vote" not in part.scores
    assert not any(name.startswith(("b ", "c ")) for name in part.scores)
    assert part.vote_tests == []
    with pytest.raises(ValueError, match="5 sentences but 4 candidate lists"):
        assess([c.gold for c in some], [c.given for c in some[:4]], base=None, kernel=only)


def test_a_parser_that_a_list_does_not_know_of_counts_as_the_base_parser(cases: list[Case]) -> None:
    some = [*cases[:6]]
    some[0] = replace(some[0], given=replace(some[0].given, bases={"c": 2}))
    only = StubReranker(some, "kernel reranker", kernel=True, combiner=False)
    only.by_list = {id(case.given): case for case in some}
    part = assess([c.gold for c in some], [c.given for c in some], base=None, kernel=only)
    trees = [some[0].trees["base parser"], *(c.trees["b parser"] for c in some[1:])]
    assert shown(part.scores["b parser"]) == pytest.approx(
        plain_scores([c.gold for c in some], trees)
    )


# The whole training


def write_parts(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Files of small parts, and of bad lists for them: no system chooses well, nor as another."""
    files, lists = {}, {}
    for number, (name, size) in enumerate({"train": 14, "dev": 60, "test": 50}.items()):
        gold = [s for s in generate(300, seed=50 + number) if 4 < len(s) < 15][:size]
        files[name], lists[name] = folder / f"{name}.conllu", folder / f"{name}.kbest.conllu"
        write_conllu(files[name], gold)
        rng, inventory = random.Random(number), LabelInventory()
        parses = [list(corrupted(gold, 0.2 + 0.02 * i, seed=9 * number + i)) for i in range(6)]
        pairs = []
        for s, trees in zip(gold, zip(*parses, strict=True), strict=True):
            scored = [(tree.heads, tree.deprels, rng.random()) for tree in trees]
            own = CandidateList.build(scored, inventory=inventory, sources=("spacy",), base=2)
            pairs.append((s, own))
        write_kbest(lists[name], pairs)
    return files, lists


def chosen_scores(gold: list[Sentence], path: Path, row: Any) -> dict[str, float]:
    """Plain scores of one candidate of each list of a file; row: of a gold sentence and a list."""
    lists = [trees for _, trees in read_kbest(path, inventory=LabelInventory())]
    rows = [row(s, trees) for s, trees in zip(gold, lists, strict=True)]
    found = [(t.heads[j].tolist(), t.deprels(j)) for t, j in zip(lists, rows, strict=True)]
    return plain_scores(gold, found)


def test_a_training_reports_each_system_on_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught: list[tuple[int, tuple[str, ...]]] = []
    used: list[Any] = []
    learn, measure = pipeline_module.learn, pipeline_module.assess

    def spy_learn(schema: Any, items: Any, settings: Any, **kwargs: Any) -> Any:
        taught.append((len(items), settings.kernel_parts))
        return learn(schema, items, settings, **kwargs)

    def spy_assess(gold: Any, lists: Any, *, base: Any, kernel: Any, **kwargs: Any) -> Any:
        used.append((base, kernel, kwargs["seed"], kwargs["n_threads"]))
        return measure(gold, lists, base=base, kernel=kernel, **kwargs)

    monkeypatch.setattr(pipeline_module, "learn", spy_learn)
    monkeypatch.setattr(pipeline_module, "assess", spy_assess)
    files, lists = write_parts(tmp_path)
    given = {f"{name}_candidates".removeprefix("train_"): path for name, path in lists.items()}
    report = train_pipeline(options(tmp_path / "model", seed=6, **files, **given))
    assert taught == [(14, ())]  # the base reranker: all lists of train, and no kernel
    assert [(seed, threads) for *_, seed, threads in used] == [(6, 1), (6, 1)]
    base, kernel = used[0][:2]
    assert (base.settings.kernel_parts, base.combination) == ((), None)
    assert kernel.settings == SETTINGS
    model = open_model(tmp_path / "model").reranker
    seen = set()
    for part in ("dev", "test"):
        rows = report.parts[part].scores
        gold, path = load_treebank(files[part]), lists[part]
        chosen = {
            "base parser": lambda _, trees: trees.base,
            "first of the list": lambda _, trees: 0,
            "base reranker": lambda s, trees: int(base.scores(s, trees).argmax()),
            "kernel reranker": lambda s, trees: int(model.scores(s, trees).argmax()),
        }
        expected_of = {name: chosen_scores(gold, path, row) for name, row in chosen.items()}
        # It may have repaired trees, which are in no file.
        pairs = list(read_kbest(path, inventory=LabelInventory()))
        final = [(t.heads[j].tolist(), t.deprels(j)) for _, t, j in model.choices(pairs)]
        expected_of["final system"] = plain_scores(gold, final)
        for name, expected in expected_of.items():
            assert shown(rows[name]) == pytest.approx(expected), (part, name)
            seen.add((part, round(expected["uas"], 6), round(expected["las"], 6)))
        saved = json.loads((tmp_path / "model" / "meta.json").read_text(encoding="utf-8"))
        assert saved["scores"][part] == {name: asdict(row) for name, row in rows.items()}
    assert len(seen) == 10, seen  # no two rows of a part are alike
    assert report.parts["dev"].scores["final system"] != report.parts["test"].scores["final system"]


# Tables


def scores(number: float) -> Scores:
    """Scores that all differ."""
    names = (
        "uas las uas_nopunct las_nopunct las_universal clas exact_match single_root".split()
    )  # fmt: skip
    values = {name: float(number + i) for i, name in enumerate(names)}
    return Scores(sentences=2, words=10, words_nopunct=9, **values)


def bootstrap(metric: str, a: float, b: float) -> Bootstrap:
    return Bootstrap(
        metric=metric, score_a=a, score_b=b, difference=b - a, low=b - a - 1, high=b - a + 2,
        p_one_sided=0.02, p_two_sided=0.04, samples=100, sentences=2,
    )  # fmt: skip


def test_tables_show_each_score_under_its_heading() -> None:
    table = scores_table("Scores", {"one": scores(10), "two": scores(30)})
    assert [column.heading for column in table.columns] == [
        "system", "UAS", "LAS", "UAS no punct.", "LAS no punct.",
    ]  # fmt: skip
    assert table.rows == (("one", 10, 11, 12, 13), ("two", 30, 31, 32, 33))
    assert table.to_markdown().splitlines()[2:5] == [
        "| system | UAS | LAS | UAS no punct. | LAS no punct. |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| one | 10.00 | 11.00 | 12.00 | 13.00 |",
    ]


def test_a_bootstrap_says_which_system_is_better_by_how_much() -> None:
    assert bootstrap_note("base parser", "final system", bootstrap("las", 80.0, 82.5)) == (
        "final system - base parser: +2.50 LAS [+1.50, +4.50], one-sided p = 0.020, two-sided "
        "p = 0.040 (paired bootstrap)"
    )
    part = PartReport(
        sentences=1200, words=34567, trees=7.25, tokens_per_second=1.0,
        scores={"final system": scores(10)},
        tests=[bootstrap("uas", 1, 3)], vote_tests=[bootstrap("las", 5, 4)],
    )  # fmt: skip
    table = table_2("dev", part, "UD_Owls")
    assert table.title == "Scores on UD_Owls dev"
    first, second, third, _ = table.notes
    assert first.startswith("final system - base parser: +2.00 UAS")
    assert second.startswith("final system - plain vote: -1.00 LAS")
    assert third == "1,200 sentences, 34,567 words, 7.2 candidates a sentence."


def test_a_report_says_the_same_in_markdown_and_after_json() -> None:
    run = RunTime(
        sentences=1234, mean_length=20.25, support_parts=5678, training_seconds=9.5, threads=2,
        tokens_per_second=4321.0, stages={"one": 1.0}, total_seconds=70.0, peak_bytes=3 * 2**20,
    )  # fmt: skip
    parts = {
        name: PartReport(
            sentences=2, words=10, trees=3.5, tokens_per_second=1.0,
            scores={"base parser": scores(number), "final system": scores(number + 10)},
            tests=[bootstrap("uas", number, number + 10)], vote_tests=[bootstrap("las", 1, 2)],
        )
        for number, name in ((20, "dev"), (40, "test"))
    }  # fmt: skip
    report = TrainReport(
        about={"title": "UD_Owls"}, betas={"a": 0.5, "b": 0.0, "c": 2.0}, parts=parts,
        run_time=run, notes=("Owls sleep.",),
    )  # fmt: skip
    text = report.to_markdown()
    assert text.startswith(
        "# UD_Owls\n\n**Scores on UD_Owls dev, gold tags**\n\n| system | UAS | LAS |"
    )
    of_dev, of_test = text.split("**Scores on UD_Owls test, gold tags**")
    for found, number in ((of_dev, 20), (of_test, 40)):
        for name, low in (("base parser", number), ("final system", number + 10)):
            values = " | ".join(f"{low + i:.2f}" for i in range(4))
            assert f"| {name} | {values} |" in found
        assert "final system - base parser: +10.00 UAS [+9.00, +12.00]" in found
        assert "final system - plain vote: +1.00 LAS" in found
    assert (
        "**Runtime of the kernel reranker**\n\n|  |  |\n| --- | ---: |\n| sentences | 1,234 |\n"
        "| mean sentence length | 20.2 |\n| support parts | 5,678 |\n"
        "| training time of the reranker | 9.50 s |\n| reranking, tokens/s | 4,321 |\n"
        "| threads | 2 |\n\n**Wall time**\n\n| stage | time |\n| --- | ---: |\n| one | 1.00 s |\n"
        "| whole command | 1 min 10 s |\n\n"
    ) in of_test
    assert table_3(run).records()[0] == {"quantity": "sentences", "value": 1234}
    assert stages_table(run).records()[0] == {"stage": "one", "time": "1.00 s"}
    assert "What the parsers cost" not in text  # no parser was trained
    assert text.endswith(
        "Peak memory, child processes included: 3 MB.\n\n"
        "Weight of further scores beside the reranker's: a 0.5, c 2.\n\nNote: Owls sleep.\n"
    )
    data = json.loads(json.dumps(report.to_dict()))
    assert (data["format"], data["format_version"]) == ("tk-spacy training report", 1)
    again = TrainReport.from_dict(data)
    assert again.parts == parts
    assert again.run_time == run
    assert again.to_markdown() == text
    assert (again.about, again.betas) == (report.about, report.betas)
    for part in data["parts"].values():  # as older reports are
        del part["vote_tests"]
    assert TrainReport.from_dict(data).parts["dev"].vote_tests == []
    bare = replace(report, about={}, betas={}, notes=())
    assert bare.to_markdown().startswith("# Training report\n\n**Scores dev, gold tags**\n")
    assert bare.to_markdown().endswith("beside the reranker's: none.\n")


def test_a_report_says_whose_tags_were_read_and_how_right_they_are() -> None:
    run = RunTime(
        sentences=1, mean_length=1.0, support_parts=0, training_seconds=0.0, threads=1,
        tokens_per_second=1.0, stages={}, total_seconds=0.0, peak_bytes=0,
    )  # fmt: skip
    part = PartReport(
        sentences=1, words=1, trees=1.0, tokens_per_second=1.0, scores={"oracle": scores(1)},
        tests=[],
    )  # fmt: skip
    gold = TrainReport(about={"title": "UD_Owls"}, betas={}, parts={"dev": part}, run_time=run)
    assert "**Scores on UD_Owls dev, gold tags**" in gold.to_markdown()
    assert "**Tags**" not in gold.to_markdown()
    tags = {
        "train": TagScores(words=1, upos=11.5, xpos=12.5, ufeats=13.5, lemmas=14.5),
        "dev": TagScores(words=2, upos=21.5, xpos=22.5, ufeats=23.5, lemmas=24.5),
    }
    report = replace(gold, tags=tags)
    text = report.to_markdown()
    assert "**Scores on UD_Owls dev, predicted tags**" in text
    assert "gold tags" not in text
    assert (
        "**Tags**\n\n| part | UPOS | XPOS | UFeats | lemmas |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| train | 11.50 | 12.50 | 13.50 | 14.50 |\n| dev | 21.50 | 22.50 | 23.50 | 24.50 |\n"
    ) in text
    again = TrainReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.tags == tags
    assert again.to_markdown() == text


def test_costs_stand_beside_the_score_of_the_same_parser_on_the_last_part() -> None:
    def part(number: float) -> PartReport:
        rows = {"base parser": number, further_parser("b+x"): number + 100, "final system": number}
        return PartReport(
            sentences=1, words=1, trees=1.0, tokens_per_second=1.0,
            scores={name: scores(value) for name, value in rows.items()}, tests=[],
        )  # fmt: skip

    assert further_parser("b+x") == "b parser"
    run = RunTime(
        sentences=1, mean_length=1.0, support_parts=0, training_seconds=0.0, threads=1,
        tokens_per_second=100.0, stages={}, total_seconds=0.0, peak_bytes=0,
        parsers={"a": {"whole": 2.0, "folds": 5.0}, "b": {"whole": 3.0}},
        parser_speeds={"a": 50.0, "b": 70.0, "all": 25.0},
    )  # fmt: skip
    report = TrainReport(about={}, betas={}, parts={"dev": part(1), "test": part(5)}, run_time=run)
    assert costs_table(report).rows == (
        ("a parser", 6, "2.00 s", "5.00 s", 50),
        ("b parser", 106, "3.00 s", None, 70),
        ("final system", 6, None, None, 20),  # of 25 and 100 words a second, one after the other
    )
    (shown,) = [table for table in report.tables() if table.title == "What the parsers cost"]
    lines = shown.to_markdown().splitlines()
    assert lines[2:5] == [
        "|  | LAS test | training | of the folds | tokens/s |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| a parser | 6.00 | 2.00 s | 5.00 s | 50 |",
    ]
    assert shown.records()[1] == {
        "system": "b parser", "las": 106, "training": "3.00 s", "folds": None,
        "tokens_per_second": 70,
    }  # fmt: skip
    # Without test data dev's scores stand there; a parser that was given cost no training.
    given = replace(run, parsers={}, parser_speeds={"a": 50.0, "all": 25.0})
    only = replace(report, parts={"dev": part(1)}, run_time=given)
    assert costs_table(only).rows == (
        ("a parser", 2, None, None, 50),
        ("final system", 2, None, None, 20),
    )
    assert costs_table(only).columns[1].heading == "LAS dev"
