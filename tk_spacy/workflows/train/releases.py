"""Many treebanks of a release, a model for each: those that fail do not stop the others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tk_spacy.about import __version__
from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import FINAL, TrainReport
from tk_spacy.features.word_properties import Extra
from tk_spacy.utils.atomic_files import is_model
from tk_spacy.utils.progress import Progress, Within
from tk_spacy.utils.workdir import check_outside, check_writable
from tk_spacy.workflows.model import REPORT_JSON
from tk_spacy.workflows.train.config import train_options, values_of
from tk_spacy.workflows.train.config_text import TRAINING_CFG, UNTOLD
from tk_spacy.workflows.train.inputs import check_places
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.parts import files_digest
from tk_spacy.workflows.train.pipeline import train_pipeline
from tk_spacy.workflows.train.places import at_its_place
from tk_spacy.workflows.train.treebanks import find_training_set

OF_ONE_TREEBANK = (
    "dev", "test", "candidates", "dev_candidates", "test_candidates", "parser_files", "title",
    "name",
)  # fmt: skip
"""Options that make no sense for several."""

Status = Literal["trained", "up to date", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreebankResult:
    """What became of one treebank.

    name: of its folder, and of its model in the output.  report: of its training, also of one
    before; None where it failed, with the reason as error, one line.
    """

    name: str
    model: Path
    status: Status
    report: TrainReport | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values: words of train, the final system's UAS and LAS by part, seconds."""
        row: dict[str, Any] = {
            "treebank": self.name,
            "status": self.status,
            "model": None if self.report is None else str(self.model),
            "words": None,
            "scores": {},
            "seconds": None,
            "error": self.error,
        }
        if self.report is not None:
            row["words"] = self.report.about["treebank"]["train"]["words"]
            row["seconds"] = self.report.run_time.total_seconds
            row["scores"] = {
                part: {"uas": found.scores[FINAL].uas, "las": found.scores[FINAL].las}
                for part, found in self.report.parts.items()
            }
        return row


def are_apart(train: Path | Sequence[Path], output: str | os.PathLike[str]) -> bool:
    """Whether each treebank gets a model of its own, in the directory `output`.

    So it is for several folders, where the output ends in a slash or is a directory, but no model.
    Raises UserError where folders and files stand beside each other then.
    """
    paths = [train] if isinstance(train, Path) else list(train)
    folders = [path for path in paths if path.is_dir()]
    if len(folders) < 2:
        return False
    text = os.fspath(output)
    ends = text.endswith(("/", os.sep))
    if not ends and (not Path(text).is_dir() or is_model(Path(text))):
        return False
    if others := [path for path in paths if path not in folders]:
        raise UserError(
            f"{others[0]}: is no folder; in {text} each folder gets a model of its own, and a file "
            "is no treebank: leave it out, or give an output that does not end in '/'"
        )
    return True


def train_treebanks(
    options: TrainOptions, *, progress: Progress | None = None
) -> list[TreebankResult]:
    """A model for each folder of options.train, in options.output under the folder's name.

    A model that is there is kept where it was made from the same files, with the same settings and
    version; another one is replaced only with options.overwrite.  A treebank that fails has its
    reason in its result.  Raises UserError for options that are of one treebank, and for folders of
    the same name.
    """
    with at_its_place(options):
        jobs = _jobs(options)
    progress = progress or Progress()
    progress.note(f"{len(jobs)} treebanks, a model of its own for each in {options.output}")
    places = [
        Within(progress, f"{job.output.name} ({number} of {len(jobs)})")
        for number, job in enumerate(jobs, start=1)
    ]
    # What needs no training is told at once, not after hours of others.
    results = [_guarded(_known, *pair) for pair in zip(jobs, places, strict=True)]
    for i, pair in enumerate(zip(jobs, places, strict=True)):
        results[i] = results[i] or _guarded(_trained, *pair)
    return [result for result in results if result is not None]


def _guarded(
    work: Callable[[TrainOptions, Progress], TreebankResult | None],
    job: TrainOptions,
    progress: Progress,
) -> TreebankResult | None:
    """What work gives, or the reason why it failed, which is a warning too."""
    try:
        with at_its_place(job):
            return work(job, progress)
    except UserError as error:
        reason = str(error)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        reason = f"{place}{error.strerror or error}"
    except Exception as error:
        # A fault of ours, but hours of other treebanks must not be lost to it.
        reason = f"{type(error).__name__}: {error}"
    reason = " ".join(reason.split())
    progress.warn(reason)
    return TreebankResult(name=job.output.name, model=job.output, status="failed", error=reason)


def _jobs(options: TrainOptions) -> list[TrainOptions]:
    """The options of each treebank's training, checked as far as they concern each other."""
    for option in OF_ONE_TREEBANK:
        if getattr(options, option):
            raise UserError(
                f"{option} is of one treebank, but {options.output} gets a model of each; leave it "
                "out"
            )
    names: dict[str, Path] = {}
    for path in options.train_paths:
        name = path.resolve().name
        if name in names:
            raise UserError(
                f"{path}: is called as {names[name]}, so that both models would be "
                f"{options.output / name}; train them one after the other"
            )
        names[name] = path
        # Models among a treebank's files, or in place of them, were hardly meant.
        if options.output.resolve().is_relative_to(path.resolve()):
            raise UserError(
                f"{options.output}: the output lies in the treebank {path}; choose another output"
            )
    for name, path in names.items():
        check_outside(options.output / name, [path])
    if options.output.exists() and not options.output.is_dir():
        raise UserError(f"{options.output}: a file stands where the directory of models is to be")
    check_writable(options.output / "model")
    return [
        replace(
            options,
            train=path,
            output=options.output / name,
            workdir=None if options.workdir is None else options.workdir / name,
        )
        for name, path in names.items()
    ]


def _known(job: TrainOptions, progress: Progress) -> TreebankResult | None:
    """The result where the model is there already, None where it is to be trained."""
    report = report_of_the_same(job)
    name = job.output.name
    if report is not None:
        progress.note(f"{job.output} is up to date: the same files, settings and version")
        return TreebankResult(name=name, model=job.output, status="up to date", report=report)
    if job.output.exists() and is_model(job.output) and not job.overwrite:
        raise UserError(
            f"{job.output}: exists already, made with other files, settings or version; replaced "
            "only on demand (overwrite)"
        )
    check_places(job)
    return None


def _trained(job: TrainOptions, progress: Progress) -> TreebankResult:
    report = train_pipeline(job, progress=progress)
    return TreebankResult(name=job.output.name, model=job.output, status="trained", report=report)


def report_of_the_same(job: TrainOptions) -> TrainReport | None:
    """The report of the model that is there already, if this training would make the same again."""
    found = find_training_set(job)
    try:
        report = TrainReport.from_dict(
            json.loads((job.output / REPORT_JSON).read_text(encoding="utf-8"))
        )
        before = train_options(job.output / TRAINING_CFG, {"paths.output": str(job.output)})
    except (OSError, ValueError, LookupError, TypeError, UserError):
        return None
    job = found.decided(job)
    digests = {part: files_digest(files) for part, files in found.files.items()}
    if found.splits_train:
        digests["dev"] = digests["train"]  # which it is a tenth of
    parts: Mapping[str, Any] = report.about.get("treebank", {})
    same = (
        is_model(job.output)
        and report.about.get("tk_spacy") == __version__
        and _settings(before) == _settings(job)
        and {part: facts.get("sha256") for part, facts in parts.items()} == digests
        and not _changed_since(_named_files(job), (job.output / REPORT_JSON).stat().st_mtime)
    )
    return report if same else None


def _named_files(job: TrainOptions) -> list[Path]:
    """What settings name beside the treebank: spaCy configs, pipelines, tables of words."""
    names = [name for own in job.word_properties.values() for name in own]
    tables = [Path(extra.argument) for extra in map(Extra.parse, names) if extra.kind == "table"]
    others = {job.workdir, *job.train_paths, job.dev, job.test}
    return [path for path in (*job.kept_paths, *tables) if path not in others]


def _changed_since(paths: Iterable[Path], time: float) -> bool:
    """Whether a file, or one in a directory, is newer; a package's name is no path."""
    return any(
        file.lstat().st_mtime > time  # a link may lead nowhere
        for path in paths
        if path.exists()
        for file in (path, *path.rglob("*"))
    )


def _settings(options: TrainOptions) -> dict[str, Any]:
    """All settings on which the model depends, but the files of the treebank."""
    values, _ = values_of(options)
    return {
        name: value
        for name, value in values.items()
        if name not in UNTOLD and not name.startswith("paths.")
    }
