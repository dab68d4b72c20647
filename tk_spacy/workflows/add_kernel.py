"""A reranker's kernel put into the search of a sampling parser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.features.part_types import ARC
from tk_spacy.parsers.sampling.kernel.model import PAIRS, SearchKernel, bare
from tk_spacy.parsers.sampling.kernel_tuning import tune_gamma
from tk_spacy.parsers.sampling.parser import read_parser
from tk_spacy.reranker.model import Reranker
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.treebank.data_notes import scored_notes
from tk_spacy.utils.workdir import check_output, check_outside
from tk_spacy.workflows.model import open_model

STAGE = "tuning gamma"


def add_kernel(
    parser: Path,
    model: Path,
    dev: Path,
    output: Path,
    *,
    arcs_only: bool = False,
    overwrite: bool = False,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write a parser that adds the kernel of a model's reranker to its scores, as tuned on dev.

    arcs_only: without the kernel's siblings and grandparents.
    Returns what there is to tell.  Raises UserError for models, files and places that do not fit.
    """
    check_output(output, overwrite=overwrite)
    check_outside(output, [dev, parser, model])
    before = read_parser(parser)
    kernel = search_kernel(open_model(model).reranker, arcs_only=arcs_only)
    if kernel.pairs and before.settings.order == 1:
        raise UserError(
            f"{parser} is of order 1, and its search has no place for the kernel's "
            f"{' and '.join(kernel.pairs)} parts; take its arcs alone (arcs_only), or train a "
            "parser of order 2 or 3"
        )
    sentences = load_treebank(dev, single_root=before.settings.single_root)
    schema = before.schema
    notes = list(scored_notes(sentences, dev, labels=schema.labels, columns=schema.columns))
    tuned, table = tune_gamma(before, kernel, sentences, n_threads=n_threads, progress=progress)
    about = {"kernel_of": str(model), "tuning": [asdict(row) for row in table]}
    replace(tuned, about={**before.about, **about}).to_disk(output)
    return {
        "model": str(output),
        "gamma": 0.0 if tuned.kernel is None else tuned.kernel.gamma,
        "support_parts": len(kernel.support),
        "kernel_parts": list(kernel.support.types),
        "replaced": before.kernel is not None,
        "scores": about["tuning"],
        "notes": notes,
    }


def search_kernel(
    reranker: Reranker, *, arcs_only: bool = False, gamma: float = 1.0
) -> SearchKernel:
    """A reranker's kernel, or its arcs alone.

    Raises UserError where it has no arcs, or other parts that the search has no place for.
    """
    support = reranker.support
    parts = support.types.get(ARC)
    if reranker.explicit is not None:
        raise UserError(
            "the reranker has selected features in place of a kernel, which the parser's search "
            "has no place for; give the model that they were selected for"
        )
    if reranker.kernel_map is not None:
        raise UserError(
            "the reranker has a hashed map in place of its kernel's support parts; give the "
            "model that it was made of"
        )
    if parts is None or not len(parts):
        raise UserError(
            "the reranker's kernel compares no arcs; give a model trained with "
            f"{ARC} among its kernel_parts"
        )
    names: tuple[str, ...] = (ARC,)
    if not arcs_only:
        others = [name for name in support.types if name not in (ARC, *PAIRS)]
        if others:
            raise UserError(
                f"the reranker's kernel compares {' and '.join(others)} parts, which the "
                "parser's search cannot; take its arcs alone (arcs_only), or train one with "
                f"kernel_parts {','.join((ARC, *PAIRS))}"
            )
        # A type of which nothing was learnt scores nothing.
        names += tuple(name for name in PAIRS if len(support.types.get(name, ())))
    return SearchKernel(schema=reranker.schema, support=bare(support, names), gamma=gamma)
