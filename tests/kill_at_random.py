"""Commands that are killed at random moments: the output is the old one or the new one, whole.

    python tests/kill_at_random.py [--kills 50] [--seed 0] [--only parse,train]

Each command runs on a tiny synthetic treebank and is killed again and again: SIGKILL to the process
alone, SIGKILL to its whole group, SIGTERM; between its start and its usual end, with no output from
before or with an old one.  After each kill no process may be left, and the target must be absent,
the old one or the new one.  Then the same command must end as if nothing had been, with the same
bytes, and leave nothing else, neither in its folder nor in that of temporary files.
Ends with exit code 1 if something was found; the last lines are rows for docs/robustness.md.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import psutil
import typer

from tk_spacy.cli import main as run_command
from tk_spacy.cli.app import COMMANDS as PROGRAM
from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.treebank.synthetic import write_treebank

REPORTS = {"report.json", "report.md", "report.html", ".tk-spacy.json"}
"""Files that tell times, which differ; only that they are there is compared."""

WAYS = ("SIGKILL to the process", "SIGKILL to the group", "SIGTERM")
HANGS = 900.0
"""Seconds after which a command that is not killed is taken to hang."""
PATIENCE = 60.0
"""Seconds in which processes of a killed command must have ended."""

SMALL = (
    "--parsers sampling --tags gold --folds 2 --processes 2 --k 4 --threads 2 --manual-parts arc "
    "--iterations 1 --bits 12 --set parsers.sampling.epochs=1 --set parsers.sampling.order=1 "
    "--set parsers.sampling.bits=14 --set parsers.sampling.restarts=2"
).split()

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class Command:
    """One command line; {old} and {new} are inputs that lead to other outputs of the same name.

    words: {in} is the input's place, {out} the output's name.  outputs: names of what is written.
    """

    name: str
    words: tuple[str, ...]
    outputs: tuple[str, ...]


COMMANDS = (
    Command(
        "train",
        ("train", "{in}/train.conllu", "--dev", "{in}/dev.conllu", "-o", "model", *SMALL),
        ("model",),
    ),
    Command(
        "train-parser",
        (
            *("train-parser", "{in}/train.conllu", "-o", "parser", "--threads", "2"),
            *("--epochs", "1", "--order", "1", "--bits", "14", "--restarts", "2"),
        ),
        ("parser",),
    ),
    Command(
        "parse", ("parse", "{model}", "{in}/many.conllu", "-o", "out", "--threads", "2"), ("out",)
    ),
    Command(
        "parse --jobs 2",
        ("parse", "{model}", "{in}/some", "-o", "out", "--jobs", "2", "--threads", "1"),
        ("out",),
    ),
    Command(
        "rerank",
        ("rerank", "{model}", "{in}/many.conllu", "-o", "out", "--threads", "2"),
        ("out",),
    ),
    Command(
        "kbest", ("kbest", "{model}", "{in}/many.conllu", "-o", "out", "--threads", "2"), ("out",)
    ),
    Command(
        "audit",
        ("audit", "{in}/train.conllu", "-o", "out.tsv", "-o", "out.json", "-o", "out.html"),
        ("out.tsv", "out.json", "out.html"),
    ),
    Command(
        "audit --parsers",
        (
            *("audit", "{in}/train.conllu", "-o", "out.tsv", "--parsers"),
            "sampling:epochs=1:bits=14:order=1",
        ),
        ("out.tsv",),
    ),
)


class Started:
    """A command in a forked process, which need not import all that this one has imported.

    Nothing is written while a command imports, so no moment worth a kill is lost.
    """

    def __init__(self, words: list[str], work: Path, temporary: Path, err: Path) -> None:
        self.code: int | None = None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            return
        code = 70
        try:
            os.setsid()
            os.chdir(work)
            os.environ["TMPDIR"] = str(temporary)
            tempfile.tempdir = None
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, 0)
            os.dup2(nowhere, 1)
            os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), 2)
            run_command(words)
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None where it still runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def wait(self, seconds: float) -> int | None:
        """The same when it has ended, or after so many seconds."""
        last = time.monotonic() + seconds
        while self.poll() is None and (left := last - time.monotonic()) > 0:
            time.sleep(min(left, 0.005))
        return self.poll()

    def send(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send it a signal, or all of its group."""
        if self.poll() is None:
            (os.killpg if group else os.kill)(self.pid, number)

    def kill(self) -> None:
        """End it, if it still runs."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait(PATIENCE)


@dataclass(slots=True)
class Bench:
    """A folder with inputs (`new` and, for older outputs, `old`), a model, and a place to work."""

    folder: Path
    model: Path = field(init=False)

    def __post_init__(self) -> None:
        for name, seed in (("new", 1), ("old", 2)):
            place = self.folder / name
            files = write_treebank(place, train=60, dev=20, test=20, seed=seed)
            test = load_treebank(files["test"])
            write_conllu(place / "many.conllu", test * 10)
            (place / "some").mkdir()
            for number in range(4):
                write_conllu(place / "some" / f"{number}.conllu", test[number * 5 :][:5] * 4)
        self.model = self.folder / "model"
        train = next(command for command in COMMANDS if command.name == "train")
        work = self.folder / "first"
        work.mkdir()
        self.run(train, "new", work)
        (work / "model").rename(self.model)
        shutil.rmtree(work)

    def words(self, command: Command, given: str) -> list[str]:
        """The command line; given: "new" or "old"."""
        places = {"{in}": str(self.folder / given), "{model}": str(getattr(self, "model", ""))}
        found = []
        for word in command.words:
            for name, place in places.items():
                word = word.replace(name, place)
            found.append(word)
        more = [] if command.name.startswith("audit") else ["--overwrite"]
        return [*found, *more, "-q"]

    @contextmanager
    def started(self, command: Command, given: str, work: Path) -> Iterator[Started]:
        """The command, in a session of its own; its temporary files are in `work`.tmp."""
        temporary = Path(f"{work}.tmp")
        temporary.mkdir(exist_ok=True)
        words = self.words(command, given)
        started = Started(words, work, temporary, self.folder / "stderr")
        try:
            yield started
        finally:
            started.kill()

    def run(self, command: Command, given: str, work: Path) -> float:
        """Run it to its end; returns the seconds.  Raises RuntimeError where it fails."""
        begun = time.monotonic()
        with self.started(command, given, work) as started:
            code = started.wait(HANGS)
        if code:
            raise RuntimeError(f"exit code {code}: {self.said()}")
        return time.monotonic() - begun

    def said(self) -> str:
        """What the last run wrote to stderr."""
        return (self.folder / "stderr").read_text(encoding="utf-8", errors="replace").strip()


Content = Mapping[str, str]
"""A digest of each file by its path in a folder; what tells times is there by its name alone."""


def content(folder: Path) -> Content:
    """What lies in a folder, empty folders too."""
    return {
        str(path.relative_to(folder)): (
            "folder" if path.is_dir() else "" if path.name in REPORTS else _digest(path)
        )
        for path in folder.rglob("*")
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def of_output(found: Content, name: str) -> Content:
    """The part of a folder's content that is one output."""
    return {
        path: value for path, value in found.items() if path == name or path.startswith(f"{name}/")
    }


def left_processes(session: int) -> list[psutil.Process]:
    """Processes of a session that run."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def wait_for_session(session: int) -> list[psutil.Process]:
    """The processes of a session that do not end in time."""
    last = time.monotonic() + PATIENCE
    while (left := left_processes(session)) and time.monotonic() < last:
        time.sleep(0.02)
    return left


@dataclass(slots=True)
class Trial:
    """What a trial is, and what was found."""

    command: Command
    way: str
    moment: float
    had_old: bool
    state: str = ""
    faults: list[str] = field(default_factory=list)


def try_once(bench: Bench, trial: Trial, expected: Content, old: Path) -> None:
    """Kill a command once, look, and run it again.

    expected: the folder after a run that nothing stopped.  old: a folder with an older output.
    """
    command = trial.command
    work = bench.folder / "work"
    if trial.had_old:
        shutil.copytree(old, work)
    else:
        work.mkdir()
    before = content(work)
    with bench.started(command, "new", work) as process:
        was_running = process.wait(trial.moment) is None
        number = signal.SIGTERM if trial.way == "SIGTERM" else signal.SIGKILL
        process.send(number, group=trial.way == "SIGKILL to the group")
        code = process.wait(PATIENCE)
        if code is None:
            trial.faults.append(f"it does not end after {trial.way}")
        left = wait_for_session(process.pid)
    for other in left:
        trial.faults.append(f"a process is left: {other.pid}")
        with suppress(psutil.Error):
            other.kill()
    said = bench.said()
    if "Traceback" in said:
        trial.faults.append(f"a traceback: {said}")
    if trial.way == "SIGTERM" and was_running and code not in (0, 143, -signal.SIGTERM):
        trial.faults.append(f"exit code {code} after SIGTERM: {said}")
    after = content(work)
    states = set()
    for name in command.outputs:
        parts = output_states(after, before, expected, name)
        states |= parts
        if "broken" in parts:
            trial.faults.append(f"{name} is neither old nor new: {sorted(of_output(after, name))}")
    trial.state = "+".join(sorted(states)) if was_running else "was over"
    if trial.way == "SIGTERM" and (inside := sorted(content(Path(f"{work}.tmp")))):
        trial.faults.append(f"SIGTERM left temporary files: {inside}")
    try:
        bench.run(command, "new", work)
    except RuntimeError as error:
        trial.faults.append(f"the same command then failed: {error}")
    finally:
        again = content(work)
        for path in sorted(again.keys() ^ expected.keys()):
            trial.faults.append(f"{path} is {'left over' if path in again else 'missing'} then")
        for path in sorted(again.keys() & expected.keys()):
            if again[path] != expected[path]:
                trial.faults.append(f"{path} has other bytes then")
        if inside := sorted(content(Path(f"{work}.tmp"))):
            trial.faults.append(f"temporary files are left over then: {inside}")
        shutil.rmtree(work)
        shutil.rmtree(f"{work}.tmp")


def output_states(after: Content, before: Content, expected: Content, name: str) -> set[str]:
    """What an output is now: absent, old or new; broken where it is none of them.

    A model is one whole; of a folder of results each file is.
    """
    found, old, new = (of_output(every, name) for every in (after, before, expected))
    if "meta.json" in {Path(path).name for path in new}:
        states = {"absent": {}, "old": old, "new": new}
        return {next((state for state, whole in states.items() if whole == found), "broken")}
    states = set()
    for path in new.keys() | found.keys():
        if path.rpartition("/")[2].startswith(".") or new.get(path) == "folder":
            continue  # what is on its way, and the list of results
        value = found.get(path)
        known = {old.get(path): "old", new.get(path): "new", None: "absent"}
        states.add(
            "broken" if value is not None and path not in new else known.get(value, "broken")
        )
    return states


@app.command()
def main(
    kills: Annotated[int, typer.Option(help="Of each command.", min=1)] = 40,
    seed: Annotated[int, typer.Option(help="Of moments and ways.")] = 0,
    only: Annotated[str, typer.Option(help="Commands by name, with commas.")] = "",
    minutes: Annotated[float, typer.Option(help="To take at most.")] = 1e9,
) -> None:
    """Kill commands at random moments."""
    wanted = [c for c in COMMANDS if not only or c.name in only.split(",")]
    if not wanted:
        raise typer.BadParameter(f"commands are {', '.join(c.name for c in COMMANDS)}")
    end = time.monotonic() + 60 * minutes
    for place in ("spacy", "tk_spacy.workflows.train.pipeline", *PROGRAM.values()):
        pkgutil.resolve_name(place)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="kill-at-random-") as name:
        bench = Bench(Path(name))
        ready = []
        for command in wanted:
            old, new = (bench.folder / f"{kind}-{len(ready)}" for kind in ("old", "new"))
            for given, work in (("old", old), ("new", new)):
                work.mkdir()
                seconds = bench.run(command, given, work)
            ready.append((command, old, content(new), seconds, random.Random(f"{seed} {command}")))
        for _ in range(kills):
            for command, old, expected, seconds, rng in ready:
                if time.monotonic() > end:
                    break
                trial = Trial(
                    command, rng.choice(WAYS), rng.uniform(0, seconds), rng.random() < 0.5
                )
                try_once(bench, trial, expected, old)
                trials.append(trial)
                for fault in trial.faults:
                    typer.echo(f"{command.name}, {trial.way} after {trial.moment:.2f} s: {fault}")
    show(trials)
    if any(trial.faults for trial in trials):
        raise typer.Exit(1)


def show(trials: Sequence[Trial]) -> None:
    """A row for each command."""
    typer.echo(f"| Command | {' | '.join(WAYS)} | Output then | Faults |")
    typer.echo("|---|" + "--:|" * len(WAYS) + "---|--:|")
    for name in dict.fromkeys(trial.command.name for trial in trials):
        own = [trial for trial in trials if trial.command.name == name]
        ways = Counter(trial.way for trial in own)
        states = ", ".join(f"{n} {state}" for state, n in Counter(t.state for t in own).items())
        faults = sum(bool(trial.faults) for trial in own)
        counts = " | ".join(str(ways[way]) for way in WAYS)
        typer.echo(f"| `{name}` | {counts} | {states} | {faults} |")
    typer.echo(f"{len(trials)} kills")


if __name__ == "__main__":
    app()
