"""Smaller and faster forms of a trained reranker: fewer support parts, or a hashed map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.features.encoder import EncodedList, ListEncoder
from tk_spacy.kbest.scores import mean_deviation
from tk_spacy.kernels.hashed_kernel import KernelMap, without_parts
from tk_spacy.kernels.pruning import contributions, norms, prune
from tk_spacy.reranker.model import Pair, Reranker

COMPRESSED = "compressed"
"""Name in meta.json of what was done to a model, and from what (`Provenance.compressed`)."""


def pruned(reranker: Reranker, keep: int, *, lists: Sequence[Pair] | None = None) -> Reranker:
    """The model with the `keep` support parts of the most influence.

    lists: to measure influences on, and how pruning changes the spread of the scores, which the
    combination with the parser's scores then allows for; None for the parts' norms, and no such
    allowance.  No trees of the sentences are read.
    Raises UserError where there is nothing to leave out.
    """
    check_support(reranker)
    size = len(reranker.support)
    if not 0 < keep < size:
        raise UserError(
            f"{keep:,} support parts to keep, of {size:,}; give a smaller number, at least 1"
        )
    support = reranker.support
    if lists is not None:
        lists = [(sentence, reranker.completed(sentence, trees)) for sentence, trees in lists]
    influence = norms(support) if lists is None else contributions(support, encode(reranker, lists))
    kept = prune(support, keep, influence)
    made = replace(
        reranker,
        support=kept,
        examples=None if reranker.examples is None else reranker.examples.kept(kept),
        about=_about(reranker, {"keep": keep, "by": "norm" if lists is None else "contribution"}),
    )
    return made if lists is None else _rescaled(made, reranker, lists)


def _rescaled(made: Reranker, before: Reranker, lists: Sequence[Pair]) -> Reranker:
    """The scale of the reranker's scores changed as their mean deviation within lists has."""
    if made.combination is None:
        return made
    factor = mean_deviation(made.batch_scores(lists)) / mean_deviation(before.batch_scores(lists))
    scale = made.combination.reranker_scale * factor
    return replace(made, combination=replace(made.combination, reranker_scale=scale))


def hashed(reranker: Reranker, bits: int) -> Reranker:
    """The model with a hashed map of 2 ** bits cells in place of its support.

    Raises UserError where it can have none, see KernelMap.of.
    """
    check_support(reranker)
    made = KernelMap.of(reranker.support, bits)
    return replace(
        reranker,
        kernel_map=made,
        support=without_parts(reranker.support),
        examples=None,
        about=_about(reranker, {"hash_bits": bits}),
    )


def encode(reranker: Reranker, pairs: Sequence[Pair]) -> list[EncodedList]:
    """The kernel's parts of candidate lists."""
    encoder = ListEncoder(
        reranker.schema, kernel_parts=reranker.settings.kernel_parts, manual_parts=()
    )
    return encoder.encode_all(pairs)


def check_support(reranker: Reranker) -> None:
    """Raises UserError where a model has no support parts that could be pruned or hashed."""
    if reranker.explicit is not None:
        raise UserError(
            "the model has selected features in place of a kernel's support parts; compress the "
            "model that they were selected for"
        )
    if reranker.kernel_map is not None:
        raise UserError(
            "the model has a hashed map in place of its support parts; compress the model that it "
            "was made of"
        )
    if not len(reranker.support):
        raise UserError("the model has no support parts: there is nothing to compress")


def _about(reranker: Reranker, how: dict[str, Any]) -> dict[str, Any]:
    before = {name: len(parts) for name, parts in reranker.support.types.items()}
    steps = [*reranker.provenance.compressed, {**how, "support_parts_before": before}]
    return {**reranker.about, COMPRESSED: steps}
