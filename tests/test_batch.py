"""Reranking files and directories: results, resuming, failures."""

import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import spacy
from samples import ODD
from trainings import (
    list_files,
    lists_training,
    parser_training,
    same_trees,
    stripped,
    treebank,
)

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.treebank.conllu import load_treebank, read_conllu
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.files.batch import estimate_sentences, find_jobs, rerank_files, total
from tk_spacy.workflows.files.running import Counter, run_jobs
from tk_spacy.workflows.files.worker import FileResult, FileWorker, Job, SentenceReport
from tk_spacy.workflows.model import open_model


def rerank(inputs: list[Path], output: Path, **settings):
    settings.setdefault("n_threads", 1)
    return rerank_files(lists_training()[0], inputs, output, **settings)


def kbest_directory(path: Path) -> Path:
    """A directory with k-best files at two depths."""
    (path / "sub").mkdir(parents=True)
    shutil.copy(list_files()["dev"], path / "dev.conllu")
    shutil.copy(list_files()["test"], path / "sub" / "test.conllu")
    (path / "README.txt").write_text("no treebank")
    return path


def test_batch_reranks_a_kbest_file_as_the_reranker_does(tmp_path: Path) -> None:
    (result,) = rerank([list_files()["test"]], tmp_path / "out.conllu")
    reranker = open_model(lists_training()[0]).reranker
    pairs = list(read_kbest(list_files()["test"], inventory=LabelInventory()))
    chosen = list(reranker.choices(pairs, n_threads=1))
    out = load_treebank(tmp_path / "out.conllu")
    changed = 0
    for sentence, (_, trees, row) in zip(out, chosen, strict=True):
        assert sentence.heads.tolist() == trees.heads[row].tolist()
        assert sentence.deprels == trees.deprels(row)
        other = zip(trees.deprels(trees.base), trees.deprels(row), strict=True)
        labels = [a != b for a, b in other]
        changed += int(((trees.heads[trees.base] != trees.heads[row]) | labels).sum())
    assert result.status == "done"
    assert (result.sentences, result.words) == (len(out), sum(map(len, out)))
    assert result.changed == changed > 0
    assert result.parser is None
    assert "tk_candidate" not in (tmp_path / "out.conllu").read_text(encoding="utf-8")


def test_batch_reads_the_expanded_form_too(tmp_path: Path) -> None:
    read = read_kbest(list_files()["test"], inventory=LabelInventory())
    # The expanded form knows no base tree but the first.
    pairs = [(sentence, replace(trees, base=0)) for sentence, trees in read]
    write_kbest(tmp_path / "compact.conllu", pairs)
    write_kbest(tmp_path / "expanded.conllu", pairs, form="expanded")
    rerank([tmp_path / "compact.conllu"], tmp_path / "a.conllu")
    rerank([tmp_path / "expanded.conllu"], tmp_path / "b.conllu")
    assert (tmp_path / "a.conllu").read_bytes() == (tmp_path / "b.conllu").read_bytes()


def test_batch_mirrors_a_directory(tmp_path: Path) -> None:
    source = kbest_directory(tmp_path / "in")
    results = rerank([source], tmp_path / "out")
    assert [result.status for result in results] == ["done", "done"]
    found = sorted(p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*.*"))
    assert found == [
        Path(".tk-spacy.json"), Path("dev.conllu"), Path("sub/.tk-spacy.json"),
        Path("sub/test.conllu"),
    ]  # fmt: skip
    whole = total(results)
    assert whole.words == sum(result.words for result in results)
    assert whole.sentences == 60


def test_batch_in_processes_gives_the_same_files(tmp_path: Path) -> None:
    source = kbest_directory(tmp_path / "in")
    rerank([source], tmp_path / "one")
    rerank([source], tmp_path / "two", processes=2)
    for path in (tmp_path / "one").rglob("*.conllu"):
        assert (
            path.read_bytes()
            == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
        )


def test_batch_reads_ahead_with_the_same_result(tmp_path: Path) -> None:
    for n_threads in (1, 2):
        target = tmp_path / f"{n_threads}.conllu"
        (result,) = rerank([list_files()["test"]], target, n_threads=n_threads)
        assert result.status == "done"
    assert (tmp_path / "1.conllu").read_bytes() == (tmp_path / "2.conllu").read_bytes()


def test_batch_leaves_nothing_of_a_file_that_breaks_while_read_ahead(tmp_path: Path) -> None:
    text = list_files()["dev"].read_text(encoding="utf-8")
    head, mark, tail = text.rpartition(" 0:root")
    (tmp_path / "in.conllu").write_text(head + mark.replace("0", "99") + tail, encoding="utf-8")
    with pytest.raises(UserError, match=r"in.conllu:\d+: .*HEAD of word \d+ is 99"):
        rerank([tmp_path / "in.conllu"], tmp_path / "out.conllu", n_threads=2)
    assert [path.name for path in tmp_path.iterdir()] == ["in.conllu"]
    assert "ahead" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("processes", [1, 2])
def test_batch_does_the_rest_beside_a_broken_file(tmp_path: Path, processes: int) -> None:
    source = kbest_directory(tmp_path / "in")
    text = list_files()["dev"].read_text(encoding="utf-8")
    (source / "broken.conllu").write_text(text.replace(" 0:root", " 99:root", 1))
    (source / "empty.conllu").write_text("")
    results = {
        Path(result.input).name: result
        for result in rerank([source], tmp_path / "out", processes=processes)
    }
    assert results["broken.conllu"].status == "failed"
    assert "broken.conllu:" in (results["broken.conllu"].error or "")
    assert "99" in (results["broken.conllu"].error or "")
    assert results["empty.conllu"].status == "failed"
    assert results["dev.conllu"].status == results["test.conllu"].status == "done"
    found = {path.name for path in (tmp_path / "out").rglob("*.conllu")}
    assert found == {"dev.conllu", "test.conllu"}


def test_batch_leaves_work_directories_out(tmp_path: Path) -> None:
    source = kbest_directory(tmp_path / "in")
    shutil.copytree(source / "sub", source / "model.work" / "folds")
    (source / "model.work" / "tk-spacy-work").touch()
    names = {Path(job.input).name for job in find_jobs([source], tmp_path / "out")}
    assert names == {"dev.conllu", "test.conllu"}
    with pytest.raises(UserError, match=r"model.work: no .conllu file in this directory"):
        find_jobs([source / "model.work"], tmp_path / "out")


@pytest.mark.parametrize("processes", [1, 2])
def test_batch_leaves_no_directory_in_which_it_wrote_nothing(
    tmp_path: Path, processes: int
) -> None:
    for name in ("a", "b/c"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "empty.conllu").write_text("")
    (tmp_path / "there").mkdir()
    for output in (tmp_path / "new" / "out", tmp_path / "there"):
        results = rerank([tmp_path / "in"], output, processes=processes)
        assert [result.status for result in results] == ["failed", "failed"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "there"]
    assert not list((tmp_path / "there").iterdir())


class Dying(FileWorker):
    """Does one file, and is killed at the next."""

    def do_file(self, job: Job, report: SentenceReport | None = None) -> FileResult:
        if job.input.name == "b":
            while not job.input.with_name("a.done").exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        job.target.write_text("done")
        return FileResult(str(job.input), str(job.target))


def open_dying(n_threads: int | None) -> FileWorker:
    return Dying()


def test_batch_names_the_file_whose_process_was_killed(tmp_path: Path) -> None:
    jobs = [Job(tmp_path / name, tmp_path / f"{name}.done") for name in ("a", "b")]
    counter = Counter(jobs, [1, 1], lambda done, total: None)
    found = []
    reason = r"b was killed by SIGKILL .*; finished files are kept, so run again with fewer proc"
    with pytest.raises(UserError, match=reason):
        found.extend(run_jobs(open_dying, Dying(), jobs, counter, 2, 1))
    assert [path.name for path in tmp_path.iterdir()] == ["a.done"]


def test_batch_counts_progress_up_to_the_end(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    class Recorder(Progress):
        def update(self, stage: str, done: int, total: int) -> None:
            seen.append((done, total))

    rerank([kbest_directory(tmp_path / "in")], tmp_path / "out", progress=Recorder())
    assert seen[-1] == (60, 60)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_batch_estimates_sentences() -> None:
    assert estimate_sentences([treebank()["train"], Path("missing")]) == [90, 0]


def test_batch_refuses_a_parse_without_parser(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no parser of its own; give it k-best files"):
        rerank([treebank()["dev"]], tmp_path / "out.conllu")
    assert list(tmp_path.iterdir()) == []


def test_batch_refuses_lists_of_another_parser(tmp_path: Path) -> None:
    text = list_files()["dev"].read_text(encoding="utf-8").replace("= spacy:", "= turbo:")
    (tmp_path / "in.conllu").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"scores of turbo, but the model needs those of spacy"):
        rerank([tmp_path / "in.conllu"], tmp_path / "out.conllu")
    assert not (tmp_path / "out.conllu").exists()


def test_batch_finds_places_for_outputs(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "out").mkdir()
    for name in ("a.conllu", "dir/b.conllu"):
        (tmp_path / name).write_text("")
    a, directory, out = tmp_path / "a.conllu", tmp_path / "dir", tmp_path / "out"
    assert [job.target for job in find_jobs([a], tmp_path / "x.conllu")] == [tmp_path / "x.conllu"]
    assert [job.target for job in find_jobs([a], out)] == [out / "a.conllu"]
    # A slash makes a directory, which need not be there.
    assert [job.target for job in find_jobs([a], f"{tmp_path}/new/")] == [tmp_path / "new/a.conllu"]
    assert [job.target for job in find_jobs([a], f"{tmp_path}/new")] == [tmp_path / "new"]
    targets = [job.target for job in find_jobs([a, directory], tmp_path / "new")]
    assert targets == [tmp_path / "new" / "a.conllu", tmp_path / "new" / "b.conllu"]


def test_batch_refuses_places_that_would_lose_something(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "empty").mkdir()
    for name in ("a.conllu", "dir/a.conllu"):
        (tmp_path / name).write_text("")
    a, directory = tmp_path / "a.conllu", tmp_path / "dir"
    for inputs, output, message in (
        ([a], a, "would replace an input"),
        ([directory], directory, "lies inside the input"),
        ([directory], directory / "out", "lies inside the input"),
        ([a, directory], tmp_path / "out", "output of both"),
        ([a, directory], a, "a file stands where"),
        ([a], f"{a}/", "a file stands where"),
        ([tmp_path / "empty"], tmp_path / "out", "no .conllu file"),
        ([tmp_path / "missing"], tmp_path / "out", "no such file or directory"),
    ):
        with pytest.raises(UserError, match=message):
            find_jobs(inputs, output)


# With a parser


@pytest.mark.slow
def test_batch_parses_as_the_pipeline_does(tmp_path: Path) -> None:
    path = parser_training()[0]
    source = treebank()["test"]
    (result,) = rerank_files(path, [source], tmp_path / "out.conllu", n_threads=1)
    nlp = spacy.load(path)
    out = load_treebank(tmp_path / "out.conllu")
    for sentence in out:
        doc = nlp(doc_from_sentence(nlp.vocab, sentence))
        parsed = sentence_from_doc(doc)
        assert parsed.heads.tolist() == sentence.heads.tolist()
        assert parsed.deprels == sentence.deprels
    scores = result.to_dict()["scores"]
    report = parser_training()[1].parts["test"].scores
    assert scores["parser"]["uas"] == report["base parser"].uas
    assert scores["final"]["las"] == report["final system"].las


@pytest.mark.slow
def test_batch_needs_no_trees_and_keeps_all_else(tmp_path: Path) -> None:
    path = parser_training()[0]
    bare = stripped(treebank()["test"], tmp_path / "bare.conllu")
    (result,) = rerank_files(path, [bare], tmp_path / "a.conllu", n_threads=1)
    assert result.parser is None
    rerank_files(path, [treebank()["test"]], tmp_path / "b.conllu", n_threads=1)
    assert same_trees(tmp_path / "a.conllu", tmp_path / "b.conllu")
    odd = tmp_path / "odd.conllu"
    odd.write_bytes(ODD.encode())
    rerank_files(path, [odd], tmp_path / "c.conllu", deps="keep", n_threads=1)

    def other_columns(file: Path) -> list[str]:
        lines = file.read_bytes().decode().split("\n")
        return ["\t".join((c := line.split("\t"))[:6] + c[8:]) for line in lines]

    assert other_columns(tmp_path / "c.conllu") == other_columns(odd)
    assert all(s.has_tree for s in read_conllu(tmp_path / "c.conllu"))


def test_batch_takes_paths_as_texts(tmp_path: Path) -> None:
    model = lists_training()[0]
    source, target = list_files()["test"], tmp_path / "out.conllu"
    (result,) = rerank_files(str(model), [str(source)], str(target))
    assert result.target == str(target)
    assert open_model(str(model)).path == model
    with pytest.raises(UserError, match="no input is given"):
        rerank_files(str(model), [], str(target))
