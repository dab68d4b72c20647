"""What a training says of itself: each option, file, time and parser under its own name.

One training with an own value for every option, small enough to take no second; what it says in the
report and in meta.json is compared with the options and with plain counting.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import spacy
from trainings import Recorder, made_up_list

from tk_spacy.about import __version__
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.reranker.settings import Settings
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train import pipeline as pipeline_module
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline
from tk_spacy.workflows.train.treebanks import find_treebank

LEAST = {
    "epochs": 1, "order": 1, "pruner_epochs": 1, "bits": 12, "pruner_bits": 10, "restarts": 2,
}  # fmt: skip
SIZES = {"train": 17, "dev": 5, "test": 6}


def write_parts(folder: Path) -> dict[str, Path]:
    """A treebank of short sentences."""
    folder.mkdir()
    made = [s for s in generate(300, seed=3) if 3 < len(s) < 9]
    files = {}
    for name, size in SIZES.items():
        files[name] = folder / f"xx_owls-ud-{name}.conllu"
        write_conllu(files[name], [made.pop() for _ in range(size)])
    return files


def rewritten(path: Path, column: int, value: Any) -> None:
    """value: of a row's number, in that column of every word."""
    number = 0
    lines = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        row = line.split("\t")
        if len(row) == 10:
            row[column] = value(number)
            number += 1
        lines.append("\t".join(row))
    path.write_text("\n".join(lines), encoding="utf-8")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def words(path: Path) -> int:
    return sum(map(len, load_treebank(path)))


def single_trees(files: dict[str, Path], folder: Path) -> dict[str, Path]:
    """One tree a sentence of another parser, the chain: whatever it is, it is not the gold one."""
    folder.mkdir()
    made = {}
    for name, path in files.items():
        made[name] = folder / f"chains-{name}.conllu"
        trees = [
            s.with_tree(range(len(s)), ["root", *["dep"] * (len(s) - 1)])
            for s in load_treebank(path)
        ]
        write_conllu(made[name], trees)
    return made


def write_known(path: Path, sentences: list[Sentence], *, known: bool, source: str = "a") -> None:
    """Lists whose base tree is the gold one, or the worst one."""
    rng, inventory = random.Random(1), LabelInventory()
    pairs = []
    for s in sentences:
        trees = made_up_list(s, inventory, rng, k=4)
        gold = (s.heads, s.deprels, 9.0)
        worst = (trees.heads == s.heads).sum(axis=1).argsort()
        wrong = [(trees.heads[j], trees.deprels(j), -float(i)) for i, j in enumerate(worst)]
        rows = [gold, *wrong] if known else wrong
        pairs.append((s, CandidateList.build(rows, inventory=inventory, sources=(source,), base=0)))
    write_kbest(path, pairs)


class Watcher(Recorder):
    """Remembers the steps too."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, int, int]] = []

    def update(self, stage: str, done: int, total: int) -> None:
        self.steps.append((stage, done, total))


class Run:
    """A training of three parsers, one of them in files, with an own value for every option."""

    def __init__(self, folder: Path) -> None:
        self.files = write_parts(folder / "UD_Owls")
        (folder / "UD_Owls" / "README.md").write_text("License: CC BY 4.0\n", encoding="utf-8")
        # Tags in train alone, which nothing can learn from.
        rewritten(self.files["dev"], 4, lambda _: "_")
        self.trees = single_trees(self.files, folder / "trees")
        self.options = TrainOptions(
            **self.files,
            output=folder / "model",
            parsers=("sampling", "sampling:order=2:seed=5", "file:chains"),
            parser_settings={"sampling": LEAST}, parser_files={"chains": self.trees},
            folds=3, processes=1, threads=1, k=4, seed=6, tags="gold",
            settings=Settings(
                iterations=2, bits=10, manual_parts=("arc",), budget=40, use_lemma=True,
                properties=("suffix2",),
            ),
            paper_grid=True, tuning_folds=2,
            title="Eulen von Århus", name="owls", version="2.3.1", licence="CC0-1.0",
        )  # fmt: skip
        self.taught: list[Any] = []
        self.base: list[Any] = []
        self.recorder = Watcher()
        learn, train = pipeline_module.learn, pipeline_module.train_reranker

        def spy_learn(schema: Any, items: Any, settings: Any, **kwargs: Any) -> Any:
            self.base.append((schema, settings, kwargs["n_threads"]))
            return learn(schema, items, settings, **kwargs)

        def spy_train(sentences: Any, lists: Any, settings: Any, **kwargs: Any) -> Any:
            made = train(sentences, lists, settings, **kwargs)
            self.taught.append((settings, kwargs, made[1]))
            return made

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pipeline_module, "learn", spy_learn)
            patch.setattr(pipeline_module, "train_reranker", spy_train)
            self.report = train_pipeline(self.options, progress=self.recorder)
        self.meta = json.loads((folder / "model" / "meta.json").read_text(encoding="utf-8"))
        self.nlp = spacy.load(folder / "model")
        self.reranker = open_model(folder / "model").reranker


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("record"))


def test_a_model_says_what_it_was_made_from(run: Run) -> None:
    about = dict(run.reranker.about)
    scores, views = about.pop("scores"), about.pop("views")
    assert about == {
        "title": "Eulen von Århus",
        "tk_spacy": __version__,
        "treebank": {
            name: {
                "file": f"xx_owls-ud-{name}.conllu", "sentences": size, "words": words(path),
                "sha256": digest(path),
            }
            for (name, size), path in zip(SIZES.items(), run.files.values(), strict=True)
        },
        "upstream": {"trained": True, "pipeline": None, "folds": 3},
        "sources": ["sampling", "sampling-order2-seed5", "chains"],
        "candidates": {"k": 4, "search": "discrepancy", "files": {}},
        "backward": None, "seed": 6, "paper_grid": True, "tuning_folds": 2,
    }  # fmt: skip
    assert list(views) == ["sampling", "sampling-order2-seed5", "file:chains"]
    assert [views[name]["seed"] for name in list(views)[:2]] == [6, 5]
    assert views["file:chains"]["files"] == {
        name: f"chains-{name}.conllu" for name in ("train", "dev", "test")
    }
    assert list(scores) == ["dev", "test"]
    said = dict(run.report.about)
    assert said.pop("settings") == run.options.settings.to_dict()
    assert said == {**about, "views": views}


def test_both_rerankers_learn_with_the_settings_that_were_asked_for(run: Run) -> None:
    ((settings, how, stats),) = run.taught
    assert settings == run.options.settings
    assert {name: how[name] for name in ("seed", "paper_grid", "tuning_folds", "n_threads")} == {
        "seed": 6, "paper_grid": True, "tuning_folds": 2, "n_threads": 1,
    }  # fmt: skip
    ((schema, base, n_threads),) = run.base
    assert base == replace(settings, kernel_parts=(), budget=None)
    assert schema is how["schema"]
    assert n_threads == 1
    # The labels that a tree can have are those of the lists.
    seen = {d for path in run.files.values() for s in load_treebank(path) for d in s.deprels}
    assert {"root", "dep"} <= set(schema.labels) <= seen | {"dep"}
    # The words are those of train, and dev is asked for no more than whether tags can be read.
    forms = {form for s in load_treebank(run.files["train"]) for form in s.forms}
    assert set(schema.values[0]) == forms
    assert schema.pos_column == "UPOS"
    assert schema.use_lemma
    assert [extra.name for extra in schema.extras] == ["suffix2"]
    run_time = run.report.run_time
    assert run_time.training_seconds == stats.seconds > 0
    assert run_time.support_parts == stats.support_parts > 0


def test_the_pipeline_says_whose_it_is(run: Run) -> None:
    assert {name: run.meta[name] for name in ("name", "version", "license", "sources")} == {
        "name": "owls", "version": "2.3.1", "license": "CC0-1.0",
        "sources": [{"name": "Eulen von Århus", "license": "CC BY 4.0"}],
    }  # fmt: skip
    # Trees in files are no part of a model.
    assert "a reranker of the trees of sampling, sampling-order2-seed5. " in run.meta["description"]
    assert run.nlp.component_names == ["tk_parser", "tk_parser_order2_seed5", "tk_reranker"]
    assert run.nlp.get_pipe("tk_reranker").k == 4  # type: ignore[attr-defined]
    final = run.report.parts["dev"].scores["final system"]
    found = run.meta["performance"]
    assert 100 * found["dep_uas_with_punct"] == pytest.approx(final.uas)
    assert 100 * found["dep_las_with_punct"] == pytest.approx(final.las)


def test_the_times_of_a_training_are_told(run: Run) -> None:
    time = run.report.run_time
    both = ["sampling", "sampling-order2-seed5"]
    assert list(time.stages) == [
        "reading the treebank",
        "training the sampling and sampling-order2-seed5 parser, 3 folds",
        "candidates of dev", "candidates of test", "combining the parsers",
        "training the base reranker", "training the kernel reranker", "scoring dev",
        "scoring test", "saving",
    ][: len(time.stages)]  # fmt: skip
    assert len(time.stages) >= 9  # the report is written while "saving" goes on
    assert list(time.parsers) == both
    assert all(taken.keys() == {"whole", "folds"} for taken in time.parsers.values())
    assert list(time.parser_speeds) == [*both, "file:chains", "all"]
    assert time.sentences == SIZES["train"]
    assert time.mean_length == pytest.approx(words(run.files["train"]) / SIZES["train"])
    assert time.tokens_per_second == run.report.parts["test"].tokens_per_second
    assert time.tokens_per_second != run.report.parts["dev"].tokens_per_second
    assert 0 < sum(time.stages.values()) <= time.total_seconds
    assert time.threads == 1
    assert run.recorder.begun == run.recorder.ended == [*list(time.stages)[:9], "saving"]


def test_each_stage_tells_how_far_it_is(run: Run) -> None:
    last = {stage: (done, total) for stage, done, total in run.recorder.steps}
    assert last["scoring dev"] == (SIZES["dev"], SIZES["dev"])
    assert last["scoring test"] == (SIZES["test"], SIZES["test"])
    assert last["combining the parsers"][0] == last["combining the parsers"][1] > 1
    # Two epochs over 17 lists; of the kernel's reranker parts are trained before, to tune it.
    assert last["training the base reranker"] == last["  training"] == (34, 34)
    assert last["  tuning"][0] == last["  tuning"][1] > 1


def test_what_is_written_is_what_is_told(run: Run) -> None:
    output = run.options.output
    text = (output / "report.json").read_text(encoding="utf-8")
    # For people too: a value a line, and names as they are written.
    assert '\n    "title": "Eulen von Århus",\n' in text
    assert text.endswith("}\n")
    saved = TrainReport.from_dict(json.loads(text))
    assert json.loads(text) == json.loads(json.dumps(run.report.to_dict()))
    assert (saved.parts, saved.run_time) == (run.report.parts, run.report.run_time)
    assert (output / "report.md").read_text(encoding="utf-8") == run.report.to_markdown()
    assert "seed = 6" in (output / "training.cfg").read_text(encoding="utf-8")
    assert list(run.report.betas) == ["sampling", "sampling-order2-seed5", "chains", "combiner"]
    assert run.report.betas == dict(run.reranker.combination.betas)
    assert run.reranker.combiner is not None
    for part in run.report.parts.values():
        assert list(part.scores) == [
            "base parser", "sampling-order2-seed5 parser", "chains parser", "first of the list",
            "plain vote", "arc combiner", "base reranker", "kernel reranker", "final system",
            "oracle",
        ]  # fmt: skip
    # What nobody asked to keep is gone.
    assert not run.options.work_directory.exists()
    assert {path.name for path in output.parent.iterdir()} == {"UD_Owls", "trees", "model"}


def test_each_warning_is_told_once(run: Run, tmp_path: Path) -> None:
    licence, *warned = run.report.notes
    assert licence == (
        "licence of the model: CC0-1.0, as was chosen; treebank: CC BY 4.0 in README.md of Eulen "
        "von Århus"
    )
    assert licence in run.recorder.notes
    assert run.recorder.warnings == warned
    assert len(set(run.recorder.warnings)) == len(run.recorder.warnings)
    # Lists that know train's trees, and not dev's.
    lists = {}
    for name, path in run.files.items():
        lists[name] = tmp_path / f"{name}.kbest.conllu"
        write_known(lists[name], load_treebank(path), known=name == "train")
    recorder = Recorder()
    report = train_pipeline(
        TrainOptions(
            **run.files, output=tmp_path / "model", threads=1, candidates=lists["train"],
            dev_candidates=lists["dev"], test_candidates=lists["test"],
            settings=Settings(iterations=1, bits=10, manual_parts=("arc",), kernel_parts=()),
        ),
        progress=recorder,
    )  # fmt: skip
    assert recorder.warnings == list(report.notes)
    assert "training the base reranker" in recorder.begun
    assert "training the kernel reranker" not in recorder.begun
    *others, last = recorder.warnings
    assert last.startswith("the base parser has 100.0 UAS on train, but ")
    assert others
    assert len(set(recorder.warnings)) == len(recorder.warnings)
    assert report.about["candidates"] == {
        "k": 25, "search": "discrepancy",
        "files": {name: f"{name}.kbest.conllu" for name in SIZES},
    }  # fmt: skip
    assert report.about["upstream"] == {"trained": False, "pipeline": None, "folds": None}
    assert report.about["views"] == {}
    assert report.about["title"] == "UD_Owls"


def test_settings_left_open_suit_the_lists_of_train(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A forked process, as tests of mutants are, uses one thread whatever it is asked for.
    monkeypatch.setattr(pipeline_module, "effective_n_threads", lambda asked: asked)
    lists = {name: tmp_path / f"{name}.kbest.conllu" for name in ("train", "dev")}
    for name, path in lists.items():
        write_known(path, load_treebank(run.files[name]), known=False, source="sampling")
    report = train_pipeline(
        TrainOptions(
            train=run.files["train"], dev=run.files["dev"], output=tmp_path / "model", threads=2,
            candidates=lists["train"], dev_candidates=lists["dev"],
            settings=Settings(iterations=1, bits=10, manual_parts=("arc",)),
            left_open=frozenset({"list_scale"}),
        )
    )  # fmt: skip
    settings = report.about["settings"]
    # What suits the sampling parser; the others were chosen.
    assert (settings["list_scale"], settings["kernel_scale"]) == (0.3, 0.1)
    assert settings["manual_parts"] == ("arc",)
    assert report.run_time.threads == 2
    assert report.run_time.tokens_per_second == report.parts["dev"].tokens_per_second


def test_a_model_is_there_though_the_work_cannot_be_removed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmdir = os.rmdir

    def refuse(path: Any, **where: Any) -> None:
        if str(path).endswith(".work"):
            raise PermissionError(13, "Permission denied", str(path))
        rmdir(path, **where)

    monkeypatch.setattr(os, "rmdir", refuse)
    files = {name: run.files[name] for name in ("train", "dev")}
    made = train_pipeline(
        TrainOptions(
            **files, output=tmp_path / "model", parsers=("sampling",), folds=2, processes=1,
            threads=1, k=3, parser_settings={"sampling": LEAST}, tags="gold",
            settings=Settings(iterations=1, bits=10, manual_parts=("arc",), kernel_parts=()),
        )
    )  # fmt: skip
    assert open_model(tmp_path / "model").report is not None
    assert list(made.parts) == ["dev"]
    # Without title and name of its own a model is called as its treebank.
    meta = json.loads((tmp_path / "model" / "meta.json").read_text(encoding="utf-8"))
    assert meta["sources"] == [{"name": "UD_Owls", "license": "CC BY 4.0"}]
    assert (meta["name"], meta["version"], meta["license"]) == ("ud_owls", "0.1.0", "CC BY 4.0")
    # Of a training that trains no parser a work directory beside it is none of its business.
    (tmp_path / "other.work").mkdir()
    lists = {name: tmp_path / f"{name}.kbest.conllu" for name in files}
    for name, path in lists.items():
        write_known(path, load_treebank(files[name]), known=False)
    monkeypatch.undo()
    train_pipeline(
        TrainOptions(
            **files, output=tmp_path / "other", threads=1, candidates=lists["train"],
            dev_candidates=lists["dev"],
            settings=Settings(iterations=1, bits=10, manual_parts=("arc",), kernel_parts=()),
        )
    )  # fmt: skip
    assert (tmp_path / "other.work").is_dir()


def test_lists_that_were_given_leave_the_pipeline_to_the_parsers(run: Run) -> None:
    """What spaCy's parser says of its twin is told of the model: its component asks for it."""
    plan: Any = SimpleNamespace(
        tagger=None,
        tokenizer=None,
        multiword=0,
        title="UD_Owls",
        options=TrainOptions(
            train=run.files["train"],
            dev=run.files["dev"],
            output=Path("model"),
            k=4,
            parsers=("spacy",),
            spacy_pipeline="xx_owls",
            search="beam",
        ),
        parts={},
        parsers=[
            SimpleNamespace(kind="sampling", name="other", about=lambda: {"backward": False}),
            SimpleNamespace(kind="spacy", name="spacy", about=lambda: {"backward": True}),
        ],
        trains_parsers=True,
        jackknifes=False,
    )
    made = pipeline_module._provenance(plan, [SimpleNamespace(sources=("other", "spacy"))])
    assert made.backward is True
    assert made.folds is None
    assert made.pipeline == "xx_owls"
    assert (made.candidates.k, made.candidates.search) == (4, "beam")  # type: ignore[union-attr]
    assert made.sources == ("other", "spacy")
    assert made.title == "UD_Owls"


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("UD_French-GSD/fr_gsd-ud-train.conllu", "UD_French-GSD"),
        ("corpora/fr_gsd-ud-train.conllu", "fr_gsd-ud"),
        ("corpora/owls_train.conllu", "owls"),
        ("corpora/owls.train.conllu", "owls"),
        ("corpora/owls.conllu", "owls"),
        ("corpora/MAX-train.conllu", "MAX"),
        ("owls/train.conllu", "owls"),
        ("owls/-train.conllu", "owls"),
    ],
)
def test_a_treebank_is_called_by_its_folder_or_file(path: str, title: str, tmp_path: Path) -> None:
    assert find_treebank(tmp_path / path).name == title
