"""`parse`, `rerank` and `kbest` of plain text and words one a line, scored as officially."""

from __future__ import annotations

import gc
import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc
from test_cli import invoke, run
from text_treebank import files, model, part, raw, text_options
from trainings import Recorder, sampling_training
from typer.testing import CliRunner
from udtools import udeval

from tk_spacy.cli.app import app
from tk_spacy.errors import UserError
from tk_spacy.spacy_io.conversion import sentences_from_doc
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.treebank.surface import surface_tokens
from tk_spacy.workflows.files.batch import find_jobs, parse_files, rerank_files
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.pipeline import train_pipeline


def text_file(
    tmp_path: Path, name: str = "in.txt", sentences: list[Sentence] | None = None
) -> Path:
    path = tmp_path / name
    path.write_text(raw(part("test") if sentences is None else sentences), encoding="utf-8")
    return path


def official(gold: Path, system: Path) -> Any:
    with warnings.catch_warnings():  # it leaves its files open
        warnings.simplefilter("ignore", ResourceWarning)
        found = udeval.evaluate(*(udeval.load_conllu_file(str(path)) for path in (gold, system)))
        gc.collect()
    return {name: 100 * score.f1 for name, score in found.items()}


@pytest.mark.parametrize("command", ["parse", "rerank"])
def test_text_is_parsed_and_scored_by_the_official_program(tmp_path: Path, command: str) -> None:
    result = invoke(command, model(), text_file(tmp_path), "-o", tmp_path / "out.conllu")
    assert result.exit_code == 0, result.output
    scores = official(files()["test"], tmp_path / "out.conllu")
    # Everything of this language can be known but for which names follow a comma.
    assert scores["Tokens"] == scores["Words"] == scores["Sentences"] == 100
    assert scores["UPOS"] > 98
    assert scores["UAS"] > 90
    assert scores["LAS"] > 90
    lines = (tmp_path / "out.conllu").read_text(encoding="utf-8").splitlines()
    assert lines[:3] == ["# newdoc", "# newpar", "# sent_id = 1"]
    gold = [surface_tokens(s) for s in part("test")]
    assert [surface_tokens(s) for s in load_treebank(tmp_path / "out.conllu")] == gold


def test_text_with_mistakes_is_aligned_by_the_official_program(tmp_path: Path) -> None:
    """What the scores count: a sentence that is not parted, a token that is not split."""
    gold = part("test")
    text = raw(gold).replace("du", "dü", 1)
    (tmp_path / "in.txt").write_text(text, encoding="utf-8")
    parse_files(model(), [tmp_path / "in.txt"], tmp_path / "out.conllu")
    system = tmp_path / "out.conllu"
    changed = system.read_text(encoding="utf-8").replace("dü", "du")
    system.write_text(changed, encoding="utf-8")
    scores = official(files()["test"], system)
    words = sum(map(len, gold))
    assert scores["Tokens"] == 100
    # One token of two words is one word here: its own is wrong, and so is each of the two.
    right = words - 2
    assert scores["Words"] == pytest.approx(100 * 2 * right / (words + words - 1))


def test_text_by_the_pipeline_is_the_same_as_by_the_command(tmp_path: Path) -> None:
    path = text_file(tmp_path)
    rerank_files(model(), [path], tmp_path / "out.conllu")
    nlp = spacy.load(model())
    own = sentences_from_doc(nlp(path.read_text(encoding="utf-8")))
    assert write_conllu(tmp_path / "own.conllu", own) == len(part("test"))
    lines = [
        [line.split("\t")[:8] if "\t" in line else line for line in text.splitlines()]
        for text in (
            (tmp_path / name).read_text(encoding="utf-8") for name in ("out.conllu", "own.conllu")
        )
    ]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("command", ["parse", "rerank", "kbest"])
def test_text_of_standard_input(command: str) -> None:
    text = raw(part("test")[:4])
    arguments = [command, str(model()), "-", "-o", "-", "--quiet"]
    found = CliRunner().invoke(app, arguments, input=text)
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("# newdoc\n# newpar\n# sent_id = 1\n# text = ")
    words = "\n".join(part("test")[0].forms)
    found = CliRunner().invoke(app, [*arguments, "--input", "vertical"], input=words)
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("# sent_id = 1\n# text = ")
    broken = CliRunner().invoke(app, arguments, input="1\tAna\t_\n")
    assert "standard input:1: 3 columns instead of 10" in " ".join(broken.stderr.split())


@pytest.mark.parametrize("form", ["text", "vertical"])
def test_text_has_the_candidates_of_its_sentences_as_conllu(tmp_path: Path, form: str) -> None:
    sentences = part("test")[:6]
    source = text_file(tmp_path, sentences=sentences)
    if form == "vertical":
        words = "\n\n".join("\n".join(s.forms) for s in sentences)
        source.write_text(words, encoding="utf-8")
    out = tmp_path / "out.conllu"
    done = invoke("kbest", model(), source, "-o", out, "--k", "5", "--input", form)
    assert done.exit_code == 0, done.output
    found = load_treebank(out)
    assert [s.forms for s in found] == [s.forms for s in sentences]
    # What comes out is CoNLL-U, whose candidates are the same: whatever the input was.
    done = invoke("kbest", model(), out, "-o", tmp_path / "again.conllu", "--k", "5")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "again.conllu").read_text("utf-8") == out.read_text("utf-8")
    assert "# tk_candidate_5 = " in out.read_text("utf-8")
    if form == "text":
        assert [surface_tokens(s) for s in found] == [surface_tokens(s) for s in sentences]


def test_text_in_directories(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "below").mkdir(parents=True)
    text_file(source, "a.txt", part("test")[:3])
    text_file(source / "below", "b.txt", part("test")[3:5])
    shutil.copy(files()["test"], source / "c.conllu")
    (source / "bad.txt").write_bytes(b"good\nca\xe7a")
    result = invoke("rerank", model(), source, "-o", tmp_path / "out", "--input", "text")
    assert result.exit_code == 1
    assert "bad.txt:2: not UTF-8 text (byte 0xE7" in " ".join(result.stderr.split())
    names = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.conllu")}
    assert names == {"a.conllu", "below/b.conllu"}
    (source / "bad.txt").unlink()
    again = invoke("rerank", model(), source, "-o", tmp_path / "out", "--input", "text")
    assert "2 skipped: up to date" in again.output
    plain = invoke("rerank", model(), source, "-o", tmp_path / "conllu")
    assert plain.exit_code == 0
    assert [p.name for p in (tmp_path / "conllu").glob("*.conllu")] == ["c.conllu"]
    with pytest.raises(UserError, match=r"no \.txt file in this directory or below"):
        find_jobs([tmp_path / "conllu"], tmp_path / "x", form="text")
    shutil.copy(files()["test"], source / "a.conllu")
    with pytest.raises(UserError, match=r"output of both .*a\.conllu and .*a\.txt"):
        find_jobs([source / "a.conllu", source / "a.txt"], tmp_path / "x")


def test_text_one_word_a_line(tmp_path: Path) -> None:
    sentences = part("test")[:10]
    words = tmp_path / "words.txt"
    words.write_text("\n\n".join("\n".join(s.forms) for s in sentences), encoding="utf-8")
    for command in ("parse", "rerank"):
        out = tmp_path / f"{command}.conllu"
        result = invoke(command, model(), words, "-o", out, "--input", "vertical")
        assert result.exit_code == 0, result.output
        found = load_treebank(out)
        assert [s.forms for s in found] == [s.forms for s in sentences]
        same = [(a.heads == b.heads).mean() for a, b in zip(found, sentences, strict=True)]
        assert sum(same) / len(same) > 0.9
    # Words need no tokenizer.
    parsed = parse_files(sampling_training()[0], [words], tmp_path / "x.conllu", form="vertical")
    assert parsed[0].sentences == 10


@pytest.mark.parametrize("command", ["parse", "rerank", "kbest"])
def test_text_mistakes_are_told_in_a_line(tmp_path: Path, command: str) -> None:
    def said(*arguments: object) -> str:
        result = invoke(command, *arguments, "-o", tmp_path / "out.conllu")
        assert result.exit_code in (1, 2)
        assert not (tmp_path / "out.conllu").exists()
        return " ".join(result.stderr.split())

    text = text_file(tmp_path)
    without = sampling_training()[0]
    assert "no CoNLL-U, so taken for text, but the model" in said(without, text)
    assert "has no tokenizer; train one that has" in said(without, text, "--input", "text")
    assert "--input xml: choose from auto, text" in said(model(), text, "--input", "xml")
    # What is no CoNLL-U is no CoNLL-U where it is said to be.
    assert ":1: 1 column instead of 10" in said(model(), text, "--input", "conllu")
    for content in (b"", b" \n \r\n\n"):
        text.write_bytes(content)
        assert "in.txt: the file holds no word; give a file with text" in said(model(), text)
    text.write_bytes(b"a\n\xffb")
    assert "in.txt:2: not UTF-8 text" in said(model(), text)


def test_text_of_a_megabyte_keeps_memory_flat(tmp_path: Path) -> None:
    import tracemalloc

    from tk_spacy.workflows.files.inputs import InputReader
    from tk_spacy.workflows.model import open_tokenizer

    small = raw(part("test"))
    path = tmp_path / "large.txt"
    path.write_text(small * (300_000 // len(small)), encoding="utf-8")
    reader = InputReader("auto", model(), lambda: open_tokenizer(model()))
    tracemalloc.start()
    number = sum(1 for _ in reader.sentences(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert number == len(part("test")) * (300_000 // len(small))
    assert peak < 10_000_000


# Training


def test_text_training_says_what_it_does(tmp_path: Path) -> None:
    assert (model() / "tokenizer" / "meta.json").is_file()
    made = open_model(model()).reranker.provenance
    assert made.tokenizer is not None
    assert made.tokenizer["epochs"] == 1
    assert made.multiword == {"al": "a lo", "du": "de lo"}  # in case that others tokenize
    info = invoke("info", model())
    assert "UDPipe, 1 epoch" in info.stdout
    report = json.loads((model() / "report.json").read_text(encoding="utf-8"))
    assert report["run_time"]["tagger"]["tokenizer"] > 0


def test_text_training_without_a_tokenizer_says_what_is_not_split(tmp_path: Path) -> None:
    for changes in (
        {"tokenizer": "none"},
        {"tags": "gold", "tokenizer": "udpipe", "tagger": "bilstm"},
    ):
        plan = make_plan(text_options(tmp_path / "model", **changes))
        assert plan.tokenizer is None
        assert plan.multiword == {"al": "a lo", "du": "de lo"}
        (note,) = [note for note in plan.notes if "multiword" in note]
        assert "multiword tokens, as " in note
        assert "spaCy's tokenizer, which the model has, does not split them" in note
    plan = make_plan(text_options(tmp_path / "model"))
    assert plan.multiword == {"al": "a lo", "du": "de lo"}
    assert not any("multiword" in note for note in plan.notes)


def test_text_training_where_no_text_is_known(tmp_path: Path) -> None:
    bare = []
    for sentence in part("train"):
        misc = ("_",) * len(sentence)
        layout = sentence.layout._replace(extras=())
        bare.append(replace(sentence, misc=misc, comments=(), layout=layout))
    write_conllu(tmp_path / "train.conllu", bare)
    plan = make_plan(text_options(tmp_path / "model", train=tmp_path / "train.conllu"))
    assert plan.tokenizer is None
    assert any("so no tokenizer can be trained; the model reads words" in n for n in plan.notes)
    asked = {"train": tmp_path / "train.conllu", "asked": frozenset({"tokenizer"})}
    with pytest.raises(UserError, match="no tokenizer can be trained; leave it out"):
        make_plan(text_options(tmp_path / "model", **asked))
    with pytest.raises(UserError, match="tokenizer would have no effect: tags is 'gold'"):
        text_options(tmp_path / "model", tags="gold", tagger="bilstm")


def test_text_pipeline_warns_once_of_tokens_that_are_not_split(tmp_path: Path) -> None:
    options = text_options(
        tmp_path / "model", tags="gold", tagger="bilstm", tokenizer="udpipe", overwrite=True
    )
    progress = Recorder()
    train_pipeline(options, progress=progress)
    assert any("does not split them" in warning for warning in progress.warnings)
    nlp = spacy.load(tmp_path / "model")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text in ("Ana canta .", "Ana canta al mar .", "Ole viene Du rio ."):
            nlp(text)
    told = [str(w.message) for w in caught if "multiword" in str(w.message)]
    assert told == [
        "tk_reranker: 'al' is a multiword token in the treebank (a lo), which the tokenizer does "
        "not split: such sentences are parsed worse; give Docs with the treebank's words, or train "
        "a model with a tokenizer of its own"
    ]


def test_text_components_under_another_tokenizer_warn_of_tokens_that_are_not_split() -> None:
    own, other = spacy.load(model()), spacy.blank("xx")
    for name in own.pipe_names:
        other.add_pipe(name, source=own)
    words = "Ana canta al mar .".split()
    told = {}
    for nlp in (own, other):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                nlp(Doc(nlp.vocab, words=words))
        told[nlp] = [str(w.message) for w in caught if "multiword" in str(w.message)]
    assert told[own] == []
    assert told[other] == [
        "tk_reranker: 'al' is a multiword token in the treebank (a lo), which the tokenizer does "
        "not split: such sentences are parsed worse; give Docs with the treebank's words, or take "
        "the tokenizer of the pipeline that the component comes from"
    ]


def test_text_command_as_a_program(tmp_path: Path) -> None:
    code, out, err = run("parse", model(), text_file(tmp_path), "-o", "-", "--quiet")
    assert (code, err) == (0, "")
    assert out.startswith("# newdoc\n")
