"""The command line as a whole: help, version, modes, how commands end."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import typer
from trainings import list_files, lists_training, treebank
from typer.testing import CliRunner

import tk_spacy
from tk_spacy.cli.app import app
from tk_spacy.cli.bars import Lines
from tk_spacy.cli.shell import Shell

COMMANDS = (
    "train", "rerank", "kbest", "train-parser", "add-kernel", "parse", "evaluate", "info",
    "audit", "projectivize", "benchmark", "demo",
)  # fmt: skip


def invoke(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tk_spacy", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def run(*arguments: object) -> tuple[int, str, str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_cli_help_names_every_command() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert re.search(rf"^.? *{command}\b", result.stdout, re.M)


@pytest.mark.parametrize("command", COMMANDS)
def test_cli_help_of_a_command_teaches_by_example(command: str) -> None:
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert f"tk-spacy {command}" in result.stdout
    assert "--json" in result.stdout
    assert "--quiet" in result.stdout


def test_cli_help_does_not_import_spacy() -> None:
    code = "import sys, tk_spacy.cli.app; sys.exit('spacy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_cli_version() -> None:
    assert invoke("--version").stdout == f"tk-spacy {tk_spacy.__version__}\n"


def test_cli_runs_as_module_and_as_script() -> None:
    assert run("--version")[:2] == (0, f"tk-spacy {tk_spacy.__version__}\n")
    script = Path(sys.executable).with_name("tk-spacy")
    if script.exists():
        shown = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert shown.stdout == f"tk-spacy {tk_spacy.__version__}\n"


def test_cli_unknown_command_is_a_usage_error() -> None:
    assert invoke("reparse").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "missing.conllu", "--dev", "dev.conllu", "-o", "model"),
        ("rerank", "missing", "in.conllu", "-o", "out.conllu"),
        ("kbest", "missing", "in.conllu", "-o", "out.conllu"),
        ("train-parser", "missing.conllu", "--dev", "dev.conllu", "-o", "parser"),
        ("parse", "missing", "in.conllu", "-o", "out.conllu"),
        ("evaluate", "missing.conllu", "other.conllu"),
        ("info", "missing"),
        ("benchmark", "missing.conllu"),
    ],
)
def test_cli_a_missing_input_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    assert "missing" in last or "in.conllu" in last
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["train", "rerank", "kbest", "parse"])
def test_cli_lists_that_are_too_long_are_a_usage_error(command: str) -> None:
    result = invoke(command, "--k", 10_001)
    assert result.exit_code == 2
    assert "'--k'" in result.stderr


def test_cli_out_of_memory_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as stop, Shell().guard():
        raise MemoryError("Unable to allocate 279 GiB")
    assert stop.value.exit_code == 1
    assert capsys.readouterr().err == (
        "Error: out of memory (Unable to allocate 279 GiB); ask for less at a time (candidates, "
        "threads, processes, bits), or use a larger machine\n"
    )


def test_cli_json_failure_is_one_document_too() -> None:
    result = invoke("info", "missing", "--json")
    assert result.exit_code == 1
    assert "missing" in json.loads(result.stdout)["error"]


def test_cli_quiet_shows_errors_but_nothing_else_on_stderr(tmp_path: Path) -> None:
    out = tmp_path / "out.conllu"
    good = invoke("rerank", lists_training()[0], list_files()["dev"], "-o", out, "-q")
    assert (good.exit_code, good.stderr) == (0, "")
    bad = invoke("rerank", lists_training()[0], tmp_path / "no", "-o", out, "-q")
    assert bad.exit_code == 1
    assert bad.stderr.startswith("Error: ")


def test_cli_markup_in_names_is_shown_as_it_is(tmp_path: Path) -> None:
    for name in ("[bold]model[/bold]", "a:b:c", ":smiley:"):
        result = invoke("info", tmp_path / name)
        assert f"{tmp_path / name}: no such model directory" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("option", [(), ("--json",)])
def test_cli_result_on_a_full_disk_is_one_clear_line(option: tuple[str, ...]) -> None:
    gold = treebank()["test"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tk_spacy", "evaluate", gold, gold, *option],
            stdout=full, stderr=subprocess.PIPE, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
    assert done.stderr == (
        "Error: standard output: cannot write it: No space left on device; write it elsewhere\n"
    )
    assert done.returncode == 1


def wait_for_busy_children(pid: int, n: int) -> None:
    """Wait until so many child processes have done their imports and work."""
    deadline = time.monotonic() + 300
    busy: list[psutil.Process] = []
    while len(busy) < n and time.monotonic() < deadline:
        time.sleep(0.2)
        children = psutil.Process(pid).children()
        busy = [child for child in children if child.cpu_times().user > 3]
    assert len(busy) == n


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cli_interrupted_training_says_how_to_resume(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    files = treebank()
    process = start(
        "train", files["train"], "--dev", files["dev"], "-o", tmp_path / "model", "--folds", 2,
        "--views", "spacy", "--processes", 2, "--max-steps", 10_000, "--threads", 1,
        "--tags", "gold",
    )  # fmt: skip
    work = tmp_path / "model.work"
    try:
        wait_for_busy_children(process.pid, 2)
        if sent == signal.SIGINT:  # as a terminal sends it: to all processes of the group
            os.killpg(process.pid, sent)
        else:
            process.send_signal(sent)
        # Ends when the last process has closed stderr: children that live on would make this time
        # out.
        out, err = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == code
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert f"run the same command again to resume the work in {work}" in last
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["model.work"]


def test_cli_stopped_demo_says_how_to_resume(tmp_path: Path) -> None:
    play = tmp_path / "play"
    process = start(
        "demo", play, "--parsers", "spacy", "--max-steps", 10_000, "--processes", 2, "--threads", 1
    )
    try:
        wait_for_busy_children(process.pid, 2)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 143
    assert f"terminated; run the same command again to resume the work in {play}" in err


def test_cli_logs_say_when_steps_of_a_stage_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(Shell(quiet=False, as_json=False))
    lines.begin("training")
    for done in (0, 1, 2, 2):
        lines.update("training", done, 2)
        lines.update("  fold 1, parsing", done, 2)
    lines.end("training")
    said = capsys.readouterr().err.splitlines()
    assert said[:2] == ["training ...", "  fold 1, parsing: done"]
    assert len(said) == 3
    assert said[2].startswith("training: ")
