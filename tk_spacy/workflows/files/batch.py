"""Reranking or parsing many files: what goes where, in one process or several, resumable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.base import columns_read
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.speeds import EXACT, SPEEDS, Speed
from tk_spacy.treebank.enhanced import DEPS_CHOICES, Deps
from tk_spacy.utils.atomic_files import STDOUT, names_stdout
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.validation import check_choice
from tk_spacy.utils.workdir import WORK_MARK
from tk_spacy.workflows.files.external_trees import ExternalFiles
from tk_spacy.workflows.files.inputs import (
    CONLLU_SUFFIXES,
    INPUT_FORMS,
    TEXT_SUFFIX,
    InputForm,
    InputReader,
    estimate_text,
    form_of,
    result_name,
    suffix_of,
)
from tk_spacy.workflows.files.records import Records, asked, check_single, find_recipes, outdated
from tk_spacy.workflows.files.reranking import FileReranker
from tk_spacy.workflows.files.running import Counter, Opener, run_jobs
from tk_spacy.workflows.files.tagging import TAG_CHOICES, TagChoice, of_model
from tk_spacy.workflows.files.worker import FileResult, FileWorker, Job
from tk_spacy.workflows.model import (
    Model,
    fast_pipeline,
    learnt_own_tags,
    open_main_parser,
    open_model,
    open_tagger,
    open_tokenizer,
    pipeline_loader,
)

PACKED = ".gz"
STAGES = {"rerank": "reranking", "parse": "parsing"}
FILE_SUFFIXES = (*CONLLU_SUFFIXES, TEXT_SUFFIX)
"""Names with these are files' names: no new directory gets one."""


def rerank_files(
    model: str | Path,
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    k: int | None = None,
    parser_files: Mapping[str, Path] | None = None,
    deps: Deps = "blank",
    tags: TagChoice = "auto",
    form: InputForm = "auto",
    confidence: bool = False,
    well_formed: bool = False,
    speed: Speed = EXACT,
    overwrite: bool = False,
    processes: int = 1,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> list[FileResult]:
    """Rerank files; see `find_jobs` for what goes where.

    parser_files: by name, other parsers' trees of the inputs, where the model needs any: a file or
        a directory for several inputs.
    deps: what becomes of the column DEPS: "blank", "keep" or "copy" (see `enhanced`).
    tags: whose tags the words are parsed with: "gold" the file's, "own" the model's tagger's,
        "auto" the file's where it has some (see `tagging.FileTags`); those are written, too.
    form: what the files are: "conllu" (or k-best files), "text", which the model's tokenizer
        splits, "vertical" with one word a line and a blank line after each sentence; "auto" for
        what their names and contents tell (see `inputs.form_of`).
    confidence: whether to write how sure each head, label and tree is (see `confidence_columns`),
        which needs a model with calibration.
    well_formed: only the trees of a list with the fewest violations of UD's constraints are chosen
        from, repaired ones among them (see `Reranker.decide`).
    speed: "exact", or "balanced" and "fast", where quick parsers decide alone where they are sure
        (see `reranker.cascade`), at a small loss; which needs a model with a cascade.

    A single file's failure raises UserError; of several files, or a directory's, the failed ones
    are named in the results and the rest is done.  Of several files, or a directory's, those are
    skipped whose result is there, made from the same input by the same command, model and settings
    (see `records`).  A file that tk-spacy did not make, or that was changed since, is replaced only
    with `overwrite`; so is a single file that another command made.
    """
    model, places = Path(model), [Path(path) for path in inputs]
    files = ExternalFiles(dict(parser_files or {}), tuple(places))
    return _work_on_files(
        model,
        partial(
            _open_reranker, model, k, files, deps, tags, form, confidence, well_formed, speed
        ),
        places, output, command="rerank",
        settings={
            "k": k, "deps": deps,
            **asked(confidence=confidence, well_formed=well_formed),
            **({} if speed == EXACT else {"speed": speed}),
        },
        tags=tags, form=form,
        parser_files=files, overwrite=overwrite, processes=processes, n_threads=n_threads,
        progress=progress or Progress(),
    )  # fmt: skip


def parse_files(
    model: str | Path,
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    k: int | None = None,
    deps: Deps = "blank",
    tags: TagChoice = "auto",
    form: InputForm = "auto",
    well_formed: bool = False,
    fast: bool = False,
    overwrite: bool = False,
    processes: int = 1,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> list[FileResult]:
    """Parse files with the sampling parser of a model, or else with the first parser that it has.

    All else is as in `rerank_files`.
    k: None for the best trees, else the length of k-best lists.
    well_formed: lists have the trees with the fewest violations of UD's constraints alone, repaired
        ones among them, and the best trees are those of such lists.
    fast: parse with the model's fast parser, with its tagger and tokenizer (see `distilling`).
    """
    model, places = Path(model), [Path(path) for path in inputs]
    if fast:
        model = fast_pipeline(model)
    return _work_on_files(
        model, partial(_open_parser, model, k, deps, tags, form, well_formed),
        places, output, command="parse",
        settings={"k": k, "deps": deps, **asked(well_formed=well_formed)},
        tags=tags, form=form,
        overwrite=overwrite,
        processes=processes, n_threads=n_threads, progress=progress or Progress(),
    )  # fmt: skip


def _cure(reranker: Reranker) -> str:
    """What makes a model with calibrated confidence of one without."""
    if reranker.provenance.selected:
        return "take the model that it was before features were selected"
    return "train it again where scikit-learn is installed (`pip install 'tk-spacy[confidence]'`)"


def _check_speed(model: Model, speed: Speed, *, confidence: bool) -> None:
    """Raises UserError where a model cannot be that fast."""
    if confidence:
        raise UserError(
            f"confidence is known of exact choices alone; leave it out, or the speed {speed}"
        )
    if model.external_parsers:
        raise UserError(
            f"{model.path}: the model needs trees of other parsers in files, and is exact alone; "
            f"leave out the speed {speed}"
        )
    if model.reranker.cascade is None:
        raise UserError(
            f"{model.path}: the model does not know when its quick parsers are sure, and is exact "
            f"alone; train it again with parsers of several kinds, where scikit-learn is installed "
            f"(`pip install 'tk-spacy[confidence]'`), or leave out the speed {speed}"
        )


def _open_reranker(
    model: Path,
    k: int | None,
    parser_files: ExternalFiles,
    deps: Deps,
    tags: TagChoice,
    form: InputForm,
    confidence: bool,
    well_formed: bool,
    speed: Speed,
    n_threads: int | None,
) -> FileWorker:
    check_choice("speed", speed, SPEEDS)
    load = pipeline_loader()
    opened = open_model(model, load=load)
    if speed != EXACT:
        _check_speed(opened, speed, confidence=confidence)
    if confidence and opened.reranker.calibration is None:
        raise UserError(
            f"{model}: the model's confidence is not calibrated; {_cure(opened.reranker)}, or "
            "leave confidence out"
        )
    parser_files.check(opened.external_parsers, model=model)
    return FileReranker(
        opened, k=k, n_threads=n_threads, parser_files=parser_files, deps=deps,
        tags=of_model(
            tags, partial(open_tagger, model, load=load),
            learnt_own=opened.reranker.provenance.tagger is not None,
        ),
        confidence=confidence,
        well_formed=well_formed,
        speed=speed,
        reader=InputReader(form, model, partial(open_tokenizer, model)),
        load=load,
    )  # fmt: skip


def _open_parser(
    model: Path,
    k: int | None,
    deps: Deps,
    tags: TagChoice,
    form: InputForm,
    well_formed: bool,
    n_threads: int | None,
) -> FileWorker:
    from tk_spacy.workflows.files.parsing import FileParser, tree_parser  # noqa: PLC0415  (heavy)

    inventory, load = LabelInventory(), pipeline_loader()
    source = open_main_parser(model, inventory, n_threads=n_threads, load=load)
    parser = tree_parser(source)
    return FileParser(
        parser, k=k, n_threads=n_threads, single_root=parser.single_root,
        columns=tuple(columns_read([source])), deps=deps, inventory=inventory,
        well_formed=well_formed,
        tags=of_model(
            tags, partial(open_tagger, model, load=load), learnt_own=learnt_own_tags(model)
        ),
        reader=InputReader(form, model, partial(open_tokenizer, model)),
    )  # fmt: skip


def _work_on_files(
    model: Path,
    opener: Opener,
    inputs: Sequence[Path],
    output: str | Path,
    *,
    command: str,
    settings: Mapping[str, Any],
    tags: TagChoice,
    form: InputForm,
    parser_files: ExternalFiles | None = None,
    overwrite: bool,
    processes: int,
    n_threads: int | None,
    progress: Progress,
) -> list[FileResult]:
    """Do what is to be done.

    settings: what the results depend on beside tags and form, JSON values.
    """
    check_choice("deps", settings["deps"], DEPS_CHOICES)
    check_choice("tags", tags, TAG_CHOICES)
    check_choice("input form", form, INPUT_FORMS)
    if model.is_file():  # before the files: perhaps the arguments are swapped
        raise UserError(f"{model}: a file, not a model directory; the model is given first")
    if not inputs:
        raise UserError("no input is given; name a file or directory")
    jobs = find_jobs(inputs, output, form=form)
    one_file = len(inputs) == 1 and not inputs[0].is_dir()
    for path in inputs:
        if (text := _packed(path, suffix_of(form))) is not None:
            progress.warn(f"{path}: {text}")
    # Whatever would be wrong with the model is said before any word about files.
    worker = opener(n_threads)
    check_not_in_model(jobs, model)
    if parser_files is not None:
        for job in jobs:
            parser_files.check_target(job)
    settings = {**settings, **asked(tags=tags, form=form)}
    recipes = find_recipes(jobs, command, model, settings, parser_files)
    # What is done of a large file stands for these alone.
    jobs = [
        replace(job, key=recipes[job.target].key) if job.target in recipes else job for job in jobs
    ]
    todo = jobs
    if not overwrite and one_file:
        for target, recipe in recipes.items():
            check_single(target, recipe)
    elif not overwrite:
        todo = outdated(jobs, recipes, note=progress.note)
    wanted = set(todo)
    results = {
        job.input: FileResult(str(job.input), str(job.target), status="skipped")
        for job in jobs
        if job not in wanted
    }
    new = {folder for job in todo for folder in job.target.parents if not folder.exists()}
    sizes = estimate_sentences((job.input for job in todo), form=form)
    stage = STAGES[command]
    progress.begin(stage)
    tell = Counter(todo, sizes, partial(progress.update, stage))
    try:
        if not one_file or _names_directory(output):
            for job in todo:
                with suppress(OSError):  # which the job itself will tell
                    job.target.parent.mkdir(parents=True, exist_ok=True)
        with Records() as records:
            records.begin({job.target: recipes.get(job.target) for job in todo})
            if one_file:
                results[inputs[0]] = worker.do_file(todo[0], partial(tell.add, todo[0]))
                records.finish(todo[0].target)
            elif todo:
                others = parser_files or ExternalFiles()
                for job, result in run_jobs(
                    opener, worker, todo, tell, processes, n_threads,
                    shared=[model] if model.exists() else [],
                    reads=lambda job: (job.input, *others.of(job).values()),
                ):  # fmt: skip
                    results[job.input] = result
                    if result.status == "done":
                        records.finish(job.target)
    finally:
        for folder in sorted(new, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):  # it holds something
                folder.rmdir()
    progress.end(stage)
    return [results[job.input] for job in jobs]


def total(results: Sequence[FileResult]) -> FileResult:
    """The sum of all finished files; the scores are those of the files that have some."""
    done = [result for result in results if result.status == "done"]
    whole = FileResult("", "")
    for result in done:
        whole.sentences += result.sentences
        whole.words += result.words
        whole.changed += result.changed
        whole.seconds += result.seconds
        whole.resumed += result.resumed
        whole.missing = tuple(dict.fromkeys((*whole.missing, *result.missing)))
        whole.deps = whole.deps + result.deps
    parser = [result.parser for result in done if result.parser is not None]
    final = [result.final for result in done if result.final is not None]
    if parser:
        whole.parser = np.sum(parser, axis=0)
    if final:
        whole.final = np.sum(final, axis=0)
    return whole


def find_jobs(inputs: Sequence[Path], output: str | Path, *, form: InputForm = "auto") -> list[Job]:
    """Which file goes where.

    One file goes to the file `output` (STDOUT for standard output), or into it where it is a
    directory, or a text that ends in "/"; directories, or several inputs, go into the directory
    `output`, which mirrors their structure, work directories of trainings left out.  A file may be
    a pipe, which is read once.
    form: what the inputs are; the result of text is called .conllu.
    Raises UserError where an input is missing or holds nothing to do, where an output would replace
    an input, or where several files would go into one.
    """
    into, output = _names_directory(output), Path(output)
    for path in inputs:
        if not path.exists():
            raise UserError(f"{path}: no such file or directory")
        if path.suffix == PACKED and not path.is_dir():
            raise UserError(f"{path}: a packed file, which is not read; unpack it first")
    if len(inputs) == 1 and not inputs[0].is_dir():
        if names_stdout(output):
            return [Job(inputs[0], Path(STDOUT))]
        name = result_name(inputs[0], form).name
        into = into or output.is_dir()
        if into:
            _check_directory(inputs, output)
        target = output / name if into else output
        jobs = [Job(inputs[0], target)]
    else:
        _check_directory(inputs, output)
        jobs = [job for path in inputs for job in _jobs_of(path, output, form)]
    taken: dict[Path, Path] = {}
    read = {job.input.resolve() for job in jobs}
    for job in jobs:
        target = job.target.resolve()
        if target in read:
            raise UserError(f"{job.target}: the output would replace an input; choose another")
        if target in taken:
            raise UserError(f"{job.target}: output of both {taken[target]} and {job.input}")
        taken[target] = job.input
    return jobs


def _names_directory(output: str | Path) -> bool:
    """Whether an output is written as a directory is, which a Path forgets."""
    return isinstance(output, str) and output.endswith(("/", os.sep))


def _check_directory(inputs: Sequence[Path], output: Path) -> None:
    """Raises UserError unless files can go into `output`."""
    if output.is_dir():
        return
    if output.exists():
        raise UserError(f"{output}: a file stands where the output directory is to be")
    if len(inputs) == 1 and not inputs[0].is_dir():
        return
    what = "several inputs" if len(inputs) > 1 else f"{inputs[0]} is a directory, whose files"
    if output == Path(STDOUT):
        raise UserError(
            f"{output}: {what} cannot go to standard output; give a directory to write them into"
        )
    if output.suffix.lower() in FILE_SUFFIXES:
        raise UserError(
            f"{output}: the name of a file, but {what} go into a directory; give the name of one"
        )


def check_not_in_model(jobs: Iterable[Job], model: Path) -> None:
    """Raises UserError for an output in the directory of a model, which it might damage."""
    for job in jobs:
        if job.target != Path(STDOUT) and job.target.resolve().is_relative_to(model.resolve()):
            raise UserError(f"{job.target}: the output lies in the model {model}; choose another")


def _jobs_of(path: Path, output: Path, form: InputForm) -> Iterator[Job]:
    if not path.is_dir():
        yield Job(path, output / result_name(path, form).name)
        return
    suffix = suffix_of(form)
    if output.resolve().is_relative_to(path.resolve()):
        raise UserError(f"{output}: the output lies inside the input {path}; choose another")
    working = [mark.parent for mark in path.rglob(WORK_MARK)]
    files = sorted(
        file
        for file in path.rglob(f"*{suffix}")
        if file.is_file() and not any(file.is_relative_to(folder) for folder in working)
    )
    if not files:
        cures = [_packed(path, suffix)]
        if suffix != TEXT_SUFFIX and any(path.rglob(f"*{TEXT_SUFFIX}")):
            cures.append(f"for its {TEXT_SUFFIX} files give --input text (or vertical)")
        raise UserError(
            "; ".join(
                filter(None, (f"{path}: no {suffix} file in this directory or below", *cures))
            )
        )
    for file in files:
        yield Job(file, output / result_name(file.relative_to(path), form))


def _packed(path: Path, suffix: str) -> str | None:
    """Says how many packed files a directory holds; None where there are none."""
    count = sum(1 for _ in path.rglob(f"*{suffix}{PACKED}")) if path.is_dir() else 0
    return (
        f"{count} {suffix}{PACKED} file{'s' * (count > 1)} left out: unpack first"
        if count
        else None
    )


def estimate_sentences(paths: Iterable[Path], *, form: InputForm = "auto") -> list[int]:
    """About how many sentences files hold, from their bytes alone.

    0 for an unreadable one, and for a pipe, which can be read only once.
    """
    return [
        _estimate(path) if form_of(path, form) == "conllu" else estimate_text(path)
        for path in paths
    ]


def _estimate(path: Path) -> int:
    count, before = 0, b"\n"
    if not path.is_file():
        return 0
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                # A mark may lie across two blocks.
                count += (before[-2:] + block).count(b"\n1\t")
                before = block
    except OSError:
        return 0
    return count
