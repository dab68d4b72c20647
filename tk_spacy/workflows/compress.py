"""TODO."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.reranker.model import Reranker
from tk_spacy.utils.atomic_files import replace_directory
from tk_spacy.utils.workdir import check_output, check_outside
from tk_spacy.workflows.model import REPORT_JSON, REPORT_MARKDOWN, Model


@contextmanager
def _copy(path: Path, output: Path) -> Iterator[Path]:
    with replace_directory(output) as directory:
        shutil.copytree(
            path,
            directory,
            ignore=shutil.ignore_patterns(REPORT_JSON, REPORT_MARKDOWN),
            dirs_exist_ok=True,
        )
        yield directory


def check_place(model: Model, output: Path, *, overwrite: bool = False) -> None:
    """Raises UserError where `save` would write over the model or into it, or cannot write."""
    if output.resolve() == model.path.resolve():
        raise UserError(f"{output}: the model itself; give another directory")
    if output.resolve().is_relative_to(model.path.resolve()):
        raise UserError(f"{output}: lies in the model {model.path}; give a directory outside it")
    check_output(output, overwrite=overwrite)
    check_outside(output, [model.path])


def save(model: Model, reranker: Reranker, output: Path, *, overwrite: bool = False) -> None:
    """Write a model directory that differs from another in its reranker.

    The report of the training is left out: it is of another model.  Raises UserError where the
    output is there already, unless overwrite is set, or holds something else.
    """
    check_place(model, output, overwrite=overwrite)
    if model.component is None:
        reranker.to_disk(output)
        return
    with _copy(model.path, output) as directory:
        place = directory / model.component
        for name in Reranker.FILES:
            (place / name).unlink(missing_ok=True)
        reranker.write_files(place)
