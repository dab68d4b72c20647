"""In a terminal and a shell: times, narrow tables, streams that are closed or left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from test_cli import invoke
from test_cli_streams import piped
from trainings import list_files, lists_training, treebank

from tk_spacy.cli.bars import clock
from tk_spacy.cli.file_commands import batch_table
from tk_spacy.errors import TreebankError
from tk_spacy.utils.tables import Column, Table
from tk_spacy.workflows.files.batch import total
from tk_spacy.workflows.files.worker import FileResult

COMMAND = f"{sys.executable} -m tk_spacy"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs a shell and terminals of POSIX")


def shell(line: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, encoding="utf-8",
        check=False, env={**os.environ, **changes}, timeout=600,
    )  # fmt: skip


def on_terminal(arguments: list[str], *, columns: int) -> str:
    """All that a program shows on a terminal of that width, without colours and movements."""
    import pty

    seen = []
    parent, child = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=child, stderr=child, env=env
    ) as process:
        os.close(child)
        try:
            while True:
                seen.append(os.read(parent, 65536))
        except OSError:  # the program is over
            pass
        assert process.wait(600) == 0
    os.close(parent)
    return ESCAPES.sub("", b"".join(seen).decode())


# Times

BARS = """
import time
from tk_spacy.cli.bars import Bars
from tk_spacy.cli.shell import Shell
with Bars(Shell()) as bars:
    bars.begin("training the sampling and spacy and biaffine parser, 5 folds")
    for step in range(1, 5):
        time.sleep(0.3)
        bars.update("training the sampling and spacy and biaffine parser, 5 folds", step, 8)
    bars.begin("a stage of unknown length")
    time.sleep(0.3)
"""


@needs_posix
@pytest.mark.parametrize("columns", [60, 120])
def test_terminal_elapsed_and_left_have_labels_of_their_own(columns: int) -> None:
    shown = on_terminal([sys.executable, "-c", BARS], columns=columns)
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", shown)]
    assert max(map(len, lines)) <= columns
    with_times = [line for line in lines if "elapsed" in line]
    assert any(re.search(r" 4/8 0:0\d elapsed, 0:0\d left$", line) for line in with_times)
    for line in with_times:
        assert re.search(r"\d+:\d\d elapsed(, \d+:\d\d left)?$", line), line
    # Of unknown length: no time is left that anybody knew.
    assert any(re.search(r"0/\? 0:0\d elapsed$", line) for line in with_times)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (59.6, "1:00"), (725, "12:05"), (3753, "1:02:33")]
)
def test_terminal_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


@needs_posix
@pytest.mark.slow
def test_terminal_the_longest_stage_shows_how_much_is_left(tmp_path: Path) -> None:
    files = treebank()
    shown = on_terminal(
        [
            *COMMAND.split(), "train", str(files["train"]), "--dev", str(files["dev"]),
            "-o", str(tmp_path / "m"), "--parsers", "sampling", "--epochs", "2", "--order", "1",
            "--folds", "3", "--processes", "2", "--k", "4", "--threads", "1", "--tags", "gold",
        ],
        columns=120,
    )  # fmt: skip
    stage = re.findall(r"training the sampling parser, 3 folds .*? (\d+)/100 (.*)", shown)
    seen = [int(percent) for percent, times in stage if "left" in times]
    assert seen == sorted(seen)
    assert {0 < percent < 100 for percent in seen} >= {True}


# Tables


def numbers(text: str) -> list[str]:
    return re.findall(r"\d[\d,]*\.\d+", text)


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 200])
def test_terminal_narrow_tables_keep_their_numbers(columns: int) -> None:
    headings = ["UAS", "LAS", "UAS no punct.", "LAS no punct.", "CLAS", "complete"]
    values = [[12.34 + 10 * row + column for column in range(6)] for row in range(3)]
    table = Table(
        title="Scores of a treebank with a name",
        columns=(Column("system", "system", align="left"), *(Column(h, h) for h in headings)),
        rows=tuple((f"a/long/name/of/a/system-{i}", *row) for i, row in enumerate(values)),
    )
    out = StringIO()
    Console(file=out, width=columns).print(table)
    lines = out.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= columns
    expected = [f"{value:.2f}" for row in values for value in row]
    assert sorted(numbers(out.getvalue())) == sorted(expected)
    assert out.getvalue().count("Scores of a") == 1
    if columns == 200:
        assert sum("system-1" in line for line in lines) == 1


def test_terminal_evaluate_at_60_columns() -> None:
    gold = treebank()["test"]
    document = json.loads(invoke("evaluate", gold, gold, list_files()["test"], "--json").stdout)
    done = shell(f"{COMMAND} evaluate {gold} {gold} {list_files()['test']}", COLUMNS="60")
    assert done.returncode == 0
    assert max(len(line.rstrip()) for line in done.stdout.splitlines() if "│" in line) <= 60
    for name in ("uas", "las", "uas_nopunct", "las_nopunct", "clas"):
        for system in document["systems"]:
            assert f"{system[name]:.2f}" in numbers(done.stdout)


# Streams


@needs_posix
def test_terminal_closed_streams_are_one_line(tmp_path: Path) -> None:
    gold = treebank()["test"]
    done = shell(f"{COMMAND} evaluate {gold} - <&-")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: standard input: is closed; send something to it, or give a file\n"
    )
    model, lists = lists_training()[0], list_files()["test"]
    for arguments in (f"evaluate {gold} {gold}", f"rerank {model} {lists} -o - -q"):
        done = shell(f"{COMMAND} {arguments} >&-")
        assert done.returncode == 1
        assert re.fullmatch(r"Error: standard output: .*Bad file descriptor.*\n", done.stderr)
    out = tmp_path / "out.conllu"
    done = shell(f"{COMMAND} rerank {model} {lists} -o {out} --threads 1 <&- >&- 2>&-")
    assert done.returncode == 1  # the table could not be shown
    assert out.read_text(encoding="utf-8").startswith("# ")  # and is not in the result


def test_terminal_standard_input_is_read_once() -> None:
    gold = treebank()["test"].read_bytes()
    for arguments in (
        ("evaluate", "-", "-"),
        ("evaluate", "-", treebank()["test"], "-"),
        ("rerank", lists_training()[0], "-", "-", "-o", "out"),
    ):
        result = piped(gold, *arguments)
        assert result.exit_code == 2
        assert "(standard input) is named 2 times, but can be read only once" in result.stderr


@needs_posix
@pytest.mark.parametrize("reader", ["head -n 1", "true"])
@pytest.mark.parametrize("what", ["trees", "table", "help", "json"])
def test_terminal_a_reader_that_leaves_ends_the_program_quietly(what: str, reader: str) -> None:
    gold = treebank()["train"]
    line = {
        "trees": f"rerank {lists_training()[0]} {list_files()['train']} -o - -q",
        "table": f"evaluate {gold} {gold}",
        "help": "train --help",
        "json": f"evaluate {gold} {gold} --json",
    }[what]
    done = shell(f"{COMMAND} {line} | {reader}")
    assert done.returncode in (0, 141)
    assert done.stderr == ""
    if what == "trees":
        assert done.returncode == 141


def test_terminal_other_exit_codes_stay(tmp_path: Path) -> None:
    assert shell(f"{COMMAND} --version").returncode == 0
    assert shell(f"{COMMAND} evaluate {tmp_path}/no {tmp_path}/no").returncode == 1
    assert shell(f"{COMMAND} evaluate").returncode == 2


# Training


def test_terminal_train_looks_at_the_output_before_it_reads(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "file").write_text("mine")
    result = invoke(
        "train", tmp_path / "no.conllu", "--dev", tmp_path / "no", "-o", tmp_path / "model"
    )
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {tmp_path / 'model'}: exists already; replaced only on demand (--overwrite)\n"
    )


# Totals


def results() -> Iterator[FileResult]:
    from tk_spacy.evaluation.attachment import count_sentences
    from tk_spacy.treebank.conllu import load_treebank

    gold = load_treebank(treebank()["test"])
    right = count_sentences(gold, gold).sum(axis=0)
    yield FileResult("a", "x/a", sentences=30, words=7, parser=right, final=right)
    yield FileResult("b", "x/b", sentences=10, words=5)
    yield FileResult("c", "x/c", status="failed", error=str(TreebankError("c", 1, "is broken")))
    yield FileResult("d", "x/d", status="skipped")


def test_terminal_total_is_of_the_files_that_have_trees() -> None:
    found = list(results())
    whole = total(found).to_dict()
    assert (whole["sentences"], whole["words"]) == (40, 12)
    assert whole["scores"]["final"]["uas"] == whole["scores"]["parser"]["las"] == 100.0
    table = batch_table([result.to_dict() for result in found], whole)
    assert "The total's scores are those of the 1 file that has trees." in table.notes
    assert table.rows[-1][0] == "total"
    assert 100.0 in table.rows[-1]
    scored = [found[0], found[0]]
    table = batch_table([result.to_dict() for result in scored], total(scored).to_dict())
    assert not [note for note in table.notes if "total" in note]
