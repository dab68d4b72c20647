"""A smaller or faster form of a trained model, and what it costs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tk_spacy.about import __version__
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.matching import matched_pairs
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.reranker.compression import check_support, hashed, pruned
from tk_spacy.reranker.model import Pair, Reranker
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.treebank.data_notes import scored_notes
from tk_spacy.utils.atomic_files import replace_directory
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.workdir import check_output, check_outside
from tk_spacy.workflows.compression_curve import (
    BESIDE,
    EXACT,
    HASHED,
    NONE,
    PRUNED,
    Point,
    measure,
    without_kernel,
)
from tk_spacy.workflows.model import (
    REPORT_HTML,
    REPORT_JSON,
    REPORT_MARKDOWN,
    Model,
    main_source,
    open_model,
)
from tk_spacy.workflows.train.config_text import TRAINING_CFG

KEEPS = (0.05, 0.1, 0.25, 0.5)
BITS = (14, 16, 18, 20)
"""What a curve has by default: shares of the support parts, and bits."""


def compress(
    model: Path,
    output: Path,
    *,
    keep: int | None = None,
    hash_bits: int | None = None,
    influence_lists: Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Compress a model into a new directory; facts about both, as JSON values.

    Exactly one of keep and hash_bits.  influence_lists: k-best file to measure influences on.
    Raises UserError where it cannot be done.
    """
    opened = open_model(model)
    check_place(opened, output, overwrite=overwrite)
    if keep is not None:
        made = pruned(opened.reranker, keep, lists=_lists(influence_lists))
    elif hash_bits is not None:
        made = hashed(opened.reranker, hash_bits)
    else:
        raise ValueError("neither keep nor hash_bits, expected one of them")
    save(opened, made, output, overwrite=overwrite)
    return {
        "model": str(model),
        "output": str(output),
        "keep": keep,
        "hash_bits": hash_bits,
        "before": _facts(opened.reranker),
        "after": _facts(made),
        "tk_spacy": __version__,
    }


def _facts(reranker: Reranker) -> dict[str, Any]:
    return {
        "support_parts": len(reranker.support),
        "hash_bits": reranker.kernel_map.bits if reranker.kernel_map else None,
        "bytes": sum(map(len, reranker.to_files().values())),
    }


def _lists(path: Path | None) -> list[Pair] | None:
    return None if path is None else list(read_kbest(path, inventory=LabelInventory()))


def curve(
    model: Path,
    lists: Path,
    dev: Path,
    *,
    keeps: Sequence[int] | None = None,
    bits: Sequence[int] | None = None,
    beside: Sequence[Path] = (),
    influence_lists: Path | None = None,
    repeat: int = 5,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Point]:
    """Accuracy, speed and size of a model's forms on one treebank part.

    lists: k-best file for dev, whose tags count.  keeps, bits: of the pruned and hashed forms, None
    for some.
    beside: further models to measure in the same run.  Raises UserError.
    """
    reranker = open_model(model).reranker
    check_support(reranker)
    gold = load_treebank(dev)
    schema = reranker.schema
    for note in scored_notes(gold, dev, labels=schema.labels, columns=schema.columns):
        (progress or Progress()).warn(note)
    pairs = list(
        matched_pairs(lists, gold, inventory=LabelInventory(), source=main_source(reranker), k=1000)
    )
    size = len(reranker.support)
    own = tuple(reranker.support.types)
    if keeps is None:
        keeps = sorted({max(1, round(share * size)) for share in KEEPS if size > 1})
    if bits is None:
        bits = BITS if own == ("arc",) else ()
    forms: dict[str, tuple[str, int, Reranker]] = {
        f"{EXACT}, {size:,} parts": (EXACT, size, reranker)
    }
    of_lists = _lists(influence_lists)
    for keep in keeps:
        made = pruned(reranker, keep, lists=of_lists)
        forms[f"{PRUNED} to {keep:,} parts"] = (PRUNED, keep, made)
    for b in bits:
        forms[f"{HASHED} to {b} bits"] = (HASHED, b, hashed(reranker, b))
    for path in beside:
        other = open_model(path).reranker
        size = len(other.support if other.explicit is None else other.explicit)
        forms[str(path)] = (BESIDE, size, other)
    if reranker.settings.manual_parts:
        forms["the kernel's scores left out"] = (NONE, 0, without_kernel(reranker))
    return measure(forms, gold, pairs, repeat=repeat, n_threads=threads, progress=progress)


@contextmanager
def _copy(path: Path, output: Path) -> Iterator[Path]:
    def copied(source: str, target: str) -> str:
        # The first error ends it: copytree goes on and lists all that it could not copy.
        try:
            return shutil.copy2(source, target)
        except OSError as error:
            raise UserError(
                f"{output}: {source} cannot be copied there: {error.strerror or error}"
            ) from error

    with replace_directory(output) as directory:
        shutil.copytree(
            path,
            directory,
            ignore=shutil.ignore_patterns(REPORT_JSON, REPORT_MARKDOWN, REPORT_HTML, TRAINING_CFG),
            copy_function=copied,
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


def save(
    model: Model,
    reranker: Reranker,
    output: Path,
    *,
    overwrite: bool = False,
    scored: tuple[Sequence[Sentence], Sequence[Sentence]] | None = None,
    described: str = "",
) -> None:
    """Write a model directory that differs from another in its reranker.

    The training's report and config are left out: they are of another model.
    scored: right sentences, and what the new model makes of them, for the scores in a pipeline's
        meta.json; None where those of before still hold.  described: of its selected features, for
        its description.
    Raises UserError where the output is there already, unless overwrite is set, or holds something
    else.
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
        if scored is not None:
            from tk_spacy.pipeline.model_meta import scored_again  # noqa: PLC0415  (spaCy)

            scored_again(directory, *scored, described=described)
