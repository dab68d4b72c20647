"""`-` for standard input and output; names of files for what goes into a directory."""

import json
import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from samples import ODD
from test_cli import invoke
from trainings import list_files, lists_training, treebank
from typer.testing import CliRunner

from tk_spacy.cli.app import app
from tk_spacy.errors import UserError
from tk_spacy.treebank.conllu import read_conllu, write_conllu
from tk_spacy.utils.atomic_files import atomic_output
from tk_spacy.workflows.files.batch import find_jobs


def piped(data: bytes, *arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=data)


def rerank(data: bytes, *arguments: object):
    return piped(data, "rerank", lists_training()[0], *arguments, "--threads", 1)


@pytest.fixture
def reranked(tmp_path: Path) -> bytes:
    invoke("rerank", lists_training()[0], list_files()["test"], "-o", tmp_path / "out.conllu")
    return (tmp_path / "out.conllu").read_bytes()


def test_cli_rerank_from_and_to_standard_streams(reranked: bytes, tmp_path: Path) -> None:
    data = list_files()["test"].read_bytes()
    result = rerank(data, "-", "-o", "-")
    assert result.exit_code == 0, result.output
    assert result.stdout_bytes == reranked
    # What people read is beside the trees, and says where they came from.
    assert "Reranked files" in result.stderr
    assert "standard input" in result.stderr
    assert rerank(data, "-", "-o", "-", "--quiet").stderr == ""
    assert rerank(b"", list_files()["test"], "-o", "-", "-q").stdout_bytes == reranked
    document = json.loads(rerank(data, "-", "-o", tmp_path / "new.conllu", "--json").stdout)
    assert document["files"][0]["input"] == "standard input"
    assert (tmp_path / "new.conllu").read_bytes() == reranked


def test_cli_streams_as_a_program(reranked: bytes) -> None:
    command = [sys.executable, "-m", "tk_spacy", "rerank", str(lists_training()[0]), "-"]
    done = subprocess.run(
        [*command, "-o", "-", "-q"], input=list_files()["test"].read_bytes(), capture_output=True,
        check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (reranked, b"")


def test_cli_streams_whose_reader_leaves() -> None:
    place = " ".join([sys.executable, "-m", "tk_spacy", "rerank", str(lists_training()[0])])
    many = list_files()["train"]
    done = subprocess.run(
        f"{place} {many} -o - -q | head -n 1", shell=True, capture_output=True, check=True
    )
    assert done.stdout.startswith(b"# ")
    assert b"Error" not in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_cli_streams_that_are_full() -> None:
    place = " ".join([sys.executable, "-m", "tk_spacy", "rerank", str(lists_training()[0])])
    done = subprocess.run(
        f"{place} {list_files()['test']} -o - -q > /dev/full", shell=True, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == f"Error: standard output: {os.strerror(28)}\n"


def test_cli_streams_refuse() -> None:
    data = list_files()["test"].read_bytes()
    both = rerank(data, "-", "-o", "-", "--json")
    assert both.exit_code == 2
    assert "--json prints to standard output" in json.loads(both.stdout)["error"]
    broken = rerank(b"1\tonly two columns\n", "-", "-o", "-")
    assert broken.exit_code == 1
    assert "Error: standard input:1: 2 columns instead of 10" in broken.stderr
    empty = rerank(b"", "-", "-o", "-", "-q")
    assert empty.stderr == (
        "Error: standard input: the file holds no sentence; give a file with CoNLL-U in it\n"
    )


def test_cli_evaluate_standard_input(reranked: bytes) -> None:
    gold = treebank()["test"]
    document = json.loads(piped(reranked, "evaluate", gold, "-", gold, "--json").stdout)
    assert [row["file"] for row in document["systems"]] == ["standard input", str(gold)]
    assert (
        document["systems"][0]["las"]
        == lists_training()[1].parts["test"].scores["final system"].las
    )
    shown = piped(reranked, "evaluate", gold, "-")
    assert "standard input" in shown.stdout
    as_gold = json.loads(piped(reranked, "evaluate", "-", gold, gold, "--json").stdout)
    assert as_gold["gold"] == "standard input"
    assert as_gold["systems"][0]["uas"] == document["systems"][0]["uas"]
    assert as_gold["systems"][1]["uas"] == document["systems"][0]["uas"]
    wrong = piped(b"garbage\n", "evaluate", gold, "-")
    assert "Error: standard input:1: 1 column instead of 10" in wrong.stderr


def test_write_conllu_to_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd.conllu").write_bytes(ODD.encode())
    monkeypatch.chdir(tmp_path)
    stream = TextIOWrapper(BytesIO())
    monkeypatch.setattr(sys, "stdout", stream)
    assert write_conllu("-", read_conllu("odd.conllu")) == 1
    assert stream.buffer.getvalue() == ODD.encode()  # type: ignore[attr-defined]
    assert not Path("-").exists()


def test_find_jobs_for_standard_output_and_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "there.conllu").mkdir()
    for name in ("a.conllu", "dir/b.conllu"):
        (tmp_path / name).write_text("")
    a, directory = tmp_path / "a.conllu", tmp_path / "dir"
    assert [job.target for job in find_jobs([a], Path("-"))] == [Path("-")]
    for inputs, output, message in (
        ([directory], "-", r"^-: .*dir is a directory, whose files cannot go to standard output"),
        ([a, directory], "-", "^-: several inputs cannot go to standard output; give a directory"),
        ([directory], "x.conllu", r"x\.conllu: the name of a file, but .*dir is a directory"),
        ([a, directory], "x.CONLLU", "the name of a file, but several inputs go into a directory"),
    ):
        place = Path(output) if output == "-" else tmp_path / output
        with pytest.raises(UserError, match=message):
            find_jobs(inputs, place)
    # A directory may be called anything, once it is there.
    (job,) = find_jobs([directory], tmp_path / "there.conllu")
    assert job.target == tmp_path / "there.conllu" / "b.conllu"


def test_cli_a_directory_into_the_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.conllu").write_bytes(list_files()["test"].read_bytes())
    result = rerank(b"", tmp_path / "in", "-o", tmp_path / "out.conllu")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "out.conllu: the name of a file, but" in result.stderr
    assert not (tmp_path / "out.conllu").exists()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd here")
def test_standard_output_by_its_path_is_no_file_to_replace(tmp_path: Path, name: str) -> None:
    target = tmp_path / "log"
    code = (
        "import sys; from tk_spacy.utils.atomic_files import atomic_output\n"
        f"with atomic_output({name!r}) as out: out.write(b'new\\n')"
    )
    target.write_bytes(b"old\n")
    with target.open("ab") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert target.read_bytes() == b"old\nnew\n"
    piped = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert piped.stdout == b"new\n"


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd here")
def test_a_pipe_by_its_descriptor_is_written_to() -> None:
    reading, writing = os.pipe()
    with atomic_output(f"/dev/fd/{writing}") as out:
        out.write(b"new\n")
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert stream.read() == b"new\n"
