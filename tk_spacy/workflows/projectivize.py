"""Treebanks with projective trees in the place of all others, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tk_spacy.errors import TreebankError, UserError
from tk_spacy.treebank.conllu import Sentence, atomic_output, read_conllu, write_sentences
from tk_spacy.treebank.enhanced import DEPS_CHOICES, Deps, DepsColumn, DepsCount
from tk_spacy.trees.pseudo_projective import (
    LIFTED,
    SCHEMES,
    Scheme,
    deprojectivize,
    foreign_mark,
    lost_arcs,
    projectivize,
)
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.validation import check_choice
from tk_spacy.workflows.files.batch import estimate_sentences, find_jobs
from tk_spacy.workflows.files.records import is_recorded
from tk_spacy.workflows.files.worker import Job

STAGE = "lifting arcs"
UNDO_STAGE = "putting arcs back"


@dataclass(slots=True)
class ProjectedFile:
    """What became of one file.

    changed: sentences with another tree now, or without marks that they had.
    lifted: words that were attached elsewhere; on the way back, those that are marked so.
    lost: those that the way back does, or did, not put where they were.
    deps: what became of the column DEPS.
    """

    input: str
    output: str
    sentences: int = 0
    changed: int = 0
    words: int = 0
    lifted: int = 0
    lost: int = 0
    deps: DepsCount = field(default_factory=DepsCount)

    def __add__(self, other: ProjectedFile) -> ProjectedFile:
        """The sum, of no file."""
        return ProjectedFile(
            "",
            "",
            self.sentences + other.sentences,
            self.changed + other.changed,
            self.words + other.words,
            self.lifted + other.lifted,
            self.lost + other.lost,
            self.deps + other.deps,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def projectivize_files(
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    scheme: Scheme = "path",
    undo: bool = False,
    deps: Deps = "blank",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[ProjectedFile]:
    """Write files with projective trees, whose labels tell what the trees were; or undo that.

    inputs, output: what goes where is said in `files.batch.find_jobs`.
    scheme: see `trees.pseudo_projective`; the way back needs that of the way there.
    deps: what becomes of the column DEPS (see `enhanced`) of sentences that change; all others are
        written as they were, byte for byte.
    All files are written, or none.  Raises UserError where one cannot be read or written, where an
    output is there already (unless `overwrite`), or a label holds a mark before the way there.
    """
    check_choice("scheme", scheme, SCHEMES)
    check_choice("deps", deps, DEPS_CHOICES)
    if not inputs:
        raise UserError("no input is given; name a file or directory")
    jobs = find_jobs([Path(path) for path in inputs], output, form="conllu")
    for job in jobs:
        if not overwrite and is_recorded(job.target) and job.target.exists():
            raise UserError(
                f"{job.target}: is there already; replaced only on demand (overwrite), or choose "
                "another output"
            )
    report, stage = progress or Progress(), UNDO_STAGE if undo else STAGE
    total, done = sum(estimate_sentences([job.input for job in jobs], form="conllu")), 0
    results = []
    report.begin(stage)
    with _folders(jobs, Path(output)), ExitStack() as written:
        for job in jobs:
            result = ProjectedFile(str(job.input), str(job.target))
            out = written.enter_context(atomic_output(job.target))
            write_sentences(out, _changed(job, result, scheme, DepsColumn(deps), undo=undo))
            results.append(result)
            done += result.sentences
            report.update(stage, min(done, total), total)
    report.end(stage)
    return results


def _changed(
    job: Job, result: ProjectedFile, scheme: Scheme, deps: DepsColumn, *, undo: bool
) -> Iterator[Sentence]:
    """The sentences of a file with their new trees, which are counted."""
    change = _put_back if undo else _lift
    for sentence in read_conllu(job.input, single_root=not undo):
        result.sentences += 1
        result.words += len(sentence)
        new = change(sentence, result, scheme)
        if new is not sentence:
            result.changed += 1
            new = deps(new, sentence)
        yield new
    if not result.sentences:
        raise TreebankError(job.input, 0, "the file holds no sentence; give a file with CoNLL-U")
    result.deps = deps.count


def _lift(sentence: Sentence, result: ProjectedFile, scheme: Scheme) -> Sentence:
    """The sentence with a projective tree; itself where it has one.

    Raises TreebankError for labels with marks.
    """
    try:
        heads, deprels = projectivize(sentence.heads, sentence.deprels, scheme)
    except UserError as error:
        raise TreebankError(sentence.path, sentence.line, str(error)) from error
    lifted = _moved(sentence, heads)
    if not lifted:
        return sentence
    result.lifted += lifted
    result.lost += lost_arcs(sentence.heads, sentence.deprels, scheme)
    return sentence.with_tree(heads, deprels)


def _put_back(sentence: Sentence, result: ProjectedFile, scheme: Scheme) -> Sentence:
    """The sentence with the tree that its labels tell; itself where they tell nothing.

    Raises TreebankError for marks that another scheme writes.
    """
    if (found := foreign_mark(sentence.deprels, scheme)) is not None:
        word, other = found
        raise TreebankError(
            sentence.path,
            sentence.line,
            f"DEPREL of word {word} is {sentence.deprels[word - 1]!r}, as the scheme {other} marks "
            f"arcs and {scheme} does not; undo it with that scheme (scheme)",
        )
    heads, deprels = deprojectivize(sentence.heads, sentence.deprels, scheme)
    if tuple(deprels) == sentence.deprels:
        return sentence
    marked = sum(LIFTED in label for label in sentence.deprels)
    result.lifted += marked
    result.lost += marked - _moved(sentence, heads)
    return sentence.with_tree(heads, deprels, single_root=False)


def _moved(sentence: Sentence, heads: list[int]) -> int:
    return sum(old != new for old, new in zip(sentence.heads.tolist(), heads, strict=True))


@contextmanager
def _folders(jobs: Sequence[Job], output: Path) -> Iterator[None]:
    """Makes the folders below `output` that results go into; leaves no empty one behind."""
    into = {job.target.parent for job in jobs if job.target != output}
    new = {folder for path in into for folder in (path, *path.parents) if not folder.exists()}
    try:
        for folder in into:
            with suppress(OSError):  # which the file in it will tell
                folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in sorted(new, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):  # it holds something
                folder.rmdir()
