"""What parsers that never saw a sentence say of it, for an audit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tk_spacy.audit.parsed import Parsed, judge
from tk_spacy.audit.words import Words
from tk_spacy.ensemble.jackknife import (
    FoldProgress,
    JackknifeError,
    jackknife,
    jackknifed_arc_scores,
)
from tk_spacy.errors import UserError
from tk_spacy.features.schema import distrusts_xpos
from tk_spacy.parsers.names import FILE_PREFIX
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.utils.leftovers import temporary_directory
from tk_spacy.utils.progress import Stages
from tk_spacy.utils.workdir import check_work_directory, work_directory
from tk_spacy.workflows.train.candidate_lists import PERCENT, show_step
from tk_spacy.workflows.train.estimate import estimate_folds

FOLDS = 5
TREES = 8
"""Trees that each parser proposes."""


def default_place(output: Path) -> Path:
    """The directory where parsers are kept beside an output, if no other one is given."""
    return output.with_name(f"{output.name}.work")


@contextmanager
def place_of_work(output: Path | None, workdir: Path | None) -> Iterator[Path]:
    """Where parsers are kept, so that the same call after a stop goes on there.

    The directory given, which stays; or one beside the output, or a temporary one, which goes when
    the block has ended well (the temporary one in any case).
    Raises UserError where nothing can be kept, or another one works there.
    """
    if workdir is None and output is None:
        with temporary_directory("audit") as name:
            yield name
        return
    place = workdir
    if place is None:
        assert output is not None
        place = default_place(output)
    check_work_directory(place)
    with work_directory(place):
        yield place
        if workdir is None:
            shutil.rmtree(place, ignore_errors=True)


def jackknifed(
    run: Stages,
    words: Words,
    parsers: Sequence[str],
    *,
    place: Path,
    processes: int | None = None,
) -> Parsed:
    """What parsers trained on the other folds, with the annotated tags, say of the words.

    parsers: names as `train --parsers` takes them.  place: work directory, held by the caller.
    Raises UserError for parsers that cannot be trained here, and for too few sentences.
    """
    sentences = words.sentences
    for name in parsers:
        if name.startswith(FILE_PREFIX):
            raise UserError(
                f"parser {name!r}: an audit trains its parsers itself, so that none has seen what "
                "it judges; name a parser that can be trained"
            )
    specs = make_parsers(parsers, xpos=not distrusts_xpos(sentences))
    if len(sentences) < 2 * FOLDS:
        raise UserError(
            f"{len(sentences)} sentences are too few for parsers of {FOLDS} folds; give at least "
            f"{2 * FOLDS}, or leave out the parsers"
        )
    for sentence in sentences:
        roots = np.flatnonzero(sentence.heads == 0) + 1
        if len(roots) > 1:
            raise UserError(
                f"{sentence.path}:{sentence.line}: words {roots[0]} and {roots[1]} have HEAD 0, "
                "and no parser learns from such a tree; leave the sentence out, or the parsers"
            )
    for spec in specs:
        spec.check(sentences)
    names = " and ".join(spec.name for spec in specs)
    cost = estimate_folds(specs, len(words), folds=FOLDS, processes=processes)
    run.progress.note(f"the parsers take {cost.line()}, less where some are taken over")
    try:
        with run.stage(f"training the {names} parser, {FOLDS} folds") as report:

            def on_step(step: FoldProgress) -> None:
                show_step(run.progress, step)
                report(round(step.overall * PERCENT), PERCENT)

            lists = jackknife(
                sentences,
                specs,
                workdir=place / "folds",
                folds=FOLDS,
                k=TREES,
                processes=processes,
                progress=on_step,
                note=run.progress.note,
            )
    except JackknifeError as error:
        raise UserError(f"{error}; finished parts are kept in {place}") from error
    with run.stage("asking the parsers for arcs") as report:
        scores = jackknifed_arc_scores(
            sentences, specs, workdir=place / "folds", folds=FOLDS, progress=report
        )
    with run.stage("combining the parsers") as report:
        return judge(words, lists, scores.values(), progress=report)
