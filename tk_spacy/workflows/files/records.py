"""What made the result files of a directory, so that a rerun knows which of them still stand.

Beside results lies one file, `.tk-spacy.json`.  For each result it holds digests of the input, of
the model and of the result itself, the command and its settings.  A result whose content is not
what was recorded, or that has no record, is not ours to replace.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tk_spacy.about import __version__
from tk_spacy.errors import UserError
from tk_spacy.utils.atomic_files import STDOUT
from tk_spacy.utils.leftovers import temporary_beside
from tk_spacy.utils.workdir import fingerprint
from tk_spacy.utils.write_errors import cure_of
from tk_spacy.workflows.files.external_trees import ExternalFiles
from tk_spacy.workflows.files.worker import Job

try:
    import fcntl
except ImportError:  # Windows: two runs at a time may lose a record there, and make a file again
    fcntl = None  # type: ignore[assignment]

RECORD = ".tk-spacy.json"
FORMAT = 1
PIPE = "pipe"
"""In place of a digest, of what can be read only once: its result is always made again."""
SECONDS_BETWEEN_WRITES = 1.0

State = Literal["missing", "current", "stale", "foreign"]
"""Current: a rerun would give the same.  Foreign: not made by tk-spacy, or changed since."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a result depends on.

    input, model: SHA-256 of the content.  settings: JSON values.  others: SHA-256 of other files
    that it was made from, by what they are for.
    """

    command: str
    input: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Tells it from all others, and from those of other versions of the program.

        Empty where the input is not known before it is read.
        """
        if PIPE in (self.input, *self.others.values()):
            return ""
        text = json.dumps([__version__, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def changes(self, entry: Mapping[str, Any]) -> Iterator[str]:
        """Why a recorded result is not what this recipe makes."""
        if entry.get("command") != self.command:
            yield f"was made by `tk-spacy {entry.get('command')}`"
        if entry.get("input") != self.input:
            yield "has another input now"
        if entry.get("model") != self.model:
            yield "was made by another model"
        before = entry.get("settings")
        before = before if isinstance(before, dict) else {}
        names = [n for n in {**self.settings, **before} if self.settings.get(n) != before.get(n)]
        if names:
            yield f"was made with other settings: {', '.join(names)}"
        if entry.get("others") != dict(self.others):
            yield "was made with other trees beside the input"


def result_state(
    target: Path, recipe: Recipe, known: dict[Path, dict[str, Any]] | None = None
) -> tuple[State, str]:
    """What there is of a result, and why it is stale or foreign.

    known: the records that were read already, by their folders; others are added.
    """
    known = {} if known is None else known
    if not target.exists():
        return "missing", ""
    place = _real(target)
    if place.parent not in known:
        known[place.parent] = _read(place.parent / RECORD)
    entry = known[place.parent].get(place.name)
    if entry is None:
        return "foreign", f"is there already, and no {RECORD} tells that tk-spacy made it"
    if entry.get("sha256") is None:
        return "stale", "was not finished"
    if entry["sha256"] != fingerprint(place):
        return "foreign", "has been changed since tk-spacy made it"
    reasons = list(recipe.changes(entry))
    return ("stale", reasons[0]) if reasons else ("current", "")


def check_single(target: Path, recipe: Recipe) -> None:
    """Raises UserError where the command did not make the file that stands in its result's place.

    Standard output, devices and pipes cannot be lost.
    """
    if not is_recorded(target) or not target.exists():
        return
    state, reason = result_state(target, recipe)
    place = _real(target)
    if state != "foreign":
        maker = _read(place.parent / RECORD)[place.name].get("command")
        if maker == recipe.command:
            return
        reason = f"was made by `tk-spacy {maker}`"
    raise UserError(
        f"{target}: {reason}; replaced only on demand (overwrite), or choose another output"
    )


def is_recorded(target: Path) -> bool:
    """Whether a result is a file that stays."""
    if target == Path(STDOUT) or target.is_relative_to("/dev"):
        return False
    return target.is_file() or not target.exists()


def model_digest(path: Path) -> str:
    """SHA-256 of all files of a model directory, of their names and content.

    Of a pipeline's name, where it is no directory but a package.
    """
    if not path.is_dir():
        return hashlib.sha256(str(path).encode()).hexdigest()
    total = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            total.update(f"{file.relative_to(path).as_posix()}\n{fingerprint(file)}\n".encode())
    return total.hexdigest()


def asked(**choices: str | bool) -> dict[str, str | bool]:
    """Choices that are not "auto" or False, their defaults.

    So results of before there were any stay current.
    """
    return {name: choice for name, choice in choices.items() if choice not in ("auto", False)}


def find_recipes(
    jobs: Sequence[Job],
    command: str,
    model: Path,
    settings: Mapping[str, Any],
    parser_files: ExternalFiles | None = None,
) -> dict[Path, Recipe]:
    """What each result is made from, by its place; none for those that leave no file behind.

    Nor for those whose input cannot be read, which the job itself will tell.
    """
    recipes = {}
    digest = ""
    for job in jobs:
        if not is_recorded(job.target):
            continue
        digest = digest or model_digest(model)
        with suppress(UserError):
            others = parser_files.of(job) if parser_files is not None else {}
            trees = {name: _content(path) for name, path in others.items()}
            recipes[job.target] = Recipe(
                command, _content(job.input), digest, dict(settings), trees
            )
    return recipes


def _content(path: Path) -> str:
    """SHA-256 of a file; PIPE for what can be read once, by the job itself."""
    return fingerprint(path) if path.is_file() else PIPE


def outdated(
    jobs: Sequence[Job], recipes: Mapping[Path, Recipe], *, note: Callable[[str], None]
) -> list[Job]:
    """The jobs whose results are not there, or not what a rerun would give.

    Raises UserError where one would replace a file that is not ours.
    """
    todo = []
    old: dict[State, list[tuple[Path, str]]] = {"stale": [], "foreign": []}
    known: dict[Path, dict[str, Any]] = {}
    for job in jobs:
        recipe = recipes.get(job.target)
        state, reason = (
            ("missing", "") if recipe is None else result_state(job.target, recipe, known)
        )
        if (
            state == "current"
            and recipe is not None
            and PIPE
            in (
                recipe.input,
                *recipe.others.values(),
            )
        ):
            state, reason = "stale", "read from a pipe"
        if state in old:
            old[state].append((job.target, reason))
        if state != "current":
            todo.append(job)
    if foreign := old["foreign"]:
        target, reason = foreign[0]
        more = f" (and so for {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        raise UserError(
            f"{target}: {reason}{more}; replaced only on demand (overwrite), or choose another "
            "output"
        )
    for text in _reasons(old["stale"]):
        note(text)
    return todo


def _reasons(stale: Iterable[tuple[Path, str]]) -> Iterator[str]:
    """For each reason to make results again, a line with the first of them and their number."""
    grouped: dict[str, list[Path]] = {}
    for target, reason in stale:
        grouped.setdefault(reason, []).append(target)
    for reason, targets in grouped.items():
        yield f"made again: {_some(targets)} ({reason})"


class Records:
    """Writes down what becomes of results while they are made; a context manager.

    A result is announced before it is made: a run that is killed leaves it known as unfinished.
    Of one that fails, what was known before is known again.
    """

    def __init__(self) -> None:
        self._open: dict[Path, tuple[Recipe, dict[str, Any] | None]] = {}
        self._changes: dict[Path, dict[str, Any]] = {}
        self._written = 0.0

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *exc: object) -> None:
        for place, (_, before) in self._open.items():
            self._change(place, before if place.exists() else None)
        self._write()

    def begin(self, recipes: Mapping[Path, Recipe | None]) -> None:
        """These results will be made now; None for one that need not be known later.

        Raises UserError where that cannot be written down.
        """
        known: dict[Path, dict[str, Any]] = {}
        for target, recipe in recipes.items():
            place = _real(target)
            # Without its directory there will be no result.
            if recipe is not None and is_recorded(target) and place.parent.is_dir():
                folder = place.parent
                if folder not in known:
                    known[folder] = _read(folder / RECORD)
                self._open[place] = recipe, known[folder].get(place.name)
                self._change(place, {**asdict(recipe), "sha256": None})
        self._write()

    def finish(self, target: Path) -> None:
        """A result that was announced is there."""
        place = _real(target)
        if place not in self._open:
            return
        recipe, _ = self._open.pop(place)
        self._change(place, {**asdict(recipe), "sha256": fingerprint(place)})
        if time.monotonic() - self._written > SECONDS_BETWEEN_WRITES:
            self._write()

    def _change(self, place: Path, entry: dict[str, Any] | None) -> None:
        self._changes.setdefault(place.parent, {})[place.name] = entry

    def _write(self) -> None:
        for folder, changes in self._changes.items():
            try:
                _update(folder, changes)
            except OSError as error:
                raise UserError(
                    f"{folder / RECORD}: cannot be written: {error.strerror}; {cure_of(error)}"
                ) from error
        self._changes.clear()
        self._written = time.monotonic()


def _some(targets: Sequence[Path]) -> str:
    return f"{targets[0]} and {len(targets) - 1} more" if len(targets) > 1 else str(targets[0])


def _real(target: Path) -> Path:
    return Path(os.path.realpath(target))  # as the file itself is written


def _update(folder: Path, changes: Mapping[str, Any]) -> None:
    """Change some entries; others may be changed by another run meanwhile."""
    path = folder / RECORD
    with _locked(folder):
        entries = {**_read(path), **changes}
        files = {name: entry for name, entry in sorted(entries.items()) if entry is not None}
        if not files:
            path.unlink(missing_ok=True)
            return
        # In ASCII: a file's name need not be text.
        text = json.dumps({"format": FORMAT, "files": files}, indent=1)
        with temporary_beside(path) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
            temporary.replace(path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _read(path: Path) -> dict[str, Any]:
    """The entries by file name; none where there is no record, or none that can be read."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        return {}
    files = record.get("files")
    if not isinstance(files, dict):
        return {}
    return {name: entry for name, entry in files.items() if isinstance(entry, dict)}
