"""Speed of kernel scoring beside straightforward loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tk_spacy.about import __version__
from tk_spacy.errors import OptionError, UserError
from tk_spacy.features.encoder import ListEncoder
from tk_spacy.features.part_types import ARC
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kernels.compiled.scoring import fits_bytes
from tk_spacy.reranker.model import Reranker
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.treebank.data_notes import FilledColumns, missing_note
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.benchmark.data import (
    Arcs,
    ListMaker,
    SupportArcs,
    arcs_of,
    build_support,
)
from tk_spacy.workflows.benchmark.timing import Benchmark, run_benchmark
from tk_spacy.workflows.model import open_model

SIZES = (1000, 10_000, 58_842, 200_000)
"""58,842 parts has the paper's Bulgarian model, which it reports to score 99 tokens/s."""
STAGE = "support"


def benchmark(
    treebank: Path | None,
    *,
    model: Path | None = None,
    text: Path | None = None,
    candidates: Path | None = None,
    sizes: tuple[int, ...] = SIZES,
    threads: tuple[int, ...] = (1, 2),
    repeat: int = 5,
    k: int = 25,
    words: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Benchmark:
    """Times straightforward loops and the compiled form, and compares their scores.

    treebank: whose trees make the support, and the lists to score unless text or candidates do.
    model: whose support is used instead.  candidates: k-best file with the lists to score.
    words: of the text that is scored.
    Raises UserError where an input is missing or cannot be used.
    """
    if treebank is None and (model is None or (text is None and candidates is None)):
        raise OptionError(
            "no treebank; it can be left out only where a model is given, and a text or candidates"
        )
    progress = progress or Progress()
    rng = np.random.default_rng(seed)
    reranker = None if model is None else open_model(model).reranker
    own = [] if treebank is None else _shuffled(load_treebank(treebank), rng)
    other = _shuffled(load_treebank(text), rng) if text else []
    schema = reranker.schema if reranker else Schema.fit(own)
    if not fits_bytes(len(schema.properties)):
        raise UserError(
            f"words have {len(schema.properties)} properties; more than 254 are never compiled, so "
            "there is nothing to compare"
        )
    maker = ListMaker([*own, *other], k, rng) if own or other else None
    pairs: list[tuple[Sentence, CandidateList]] = []
    if candidates:
        lists = read_kbest(candidates, inventory=LabelInventory(), k=k)
        pairs = _first(lists, words)
    elif maker:
        pairs = _first(((s, maker(s)) for s in other or own), words)
    if reranker and (missing := FilledColumns(s for s, _ in pairs).missing(schema.columns)):
        where = candidates or text or treebank
        assert where is not None  # checked above
        progress.warn(missing_note(missing, where))
    encoder = ListEncoder(schema, kernel_parts=(ARC,), manual_parts=())
    arcs = arcs_of(encoder.encode_all(pairs))
    if reranker:
        supports = [SupportArcs.of(reranker.support)]
    else:
        assert maker is not None
        # Sentences to score come last: real ones were not in training.
        n = 0 if other or candidates else len(pairs)
        progress.begin(STAGE)
        whole = build_support(
            [*own[n:], *own[:n]],
            schema,
            max(sizes),
            maker=maker,
            rng=rng,
            update=lambda done, total: progress.update(STAGE, done, total),
        )
        progress.end(STAGE)
        supports = [whole.first(size) for size in sorted(set(sizes))]
    result = run_benchmark(
        supports,
        arcs,
        schema.property_groups(),
        threads=threads,
        repeat=repeat,
        progress=progress,
    )
    about = _about(arcs, supports, schema, reranker, k=k, made_up=candidates is None)
    files = {"treebank": treebank, "model": model, "text": text, "candidates": candidates}
    about["files"] = {name: str(path) for name, path in files.items() if path}
    about |= {"seed": seed, "k": k, "repeat": repeat}
    return replace(result, about=about)


def _shuffled(sentences: list[Sentence], rng: np.random.Generator) -> list[Sentence]:
    return [sentences[i] for i in rng.permutation(len(sentences)).tolist()]


def _first(lists: Any, words: int) -> list[tuple[Sentence, CandidateList]]:
    """The first lists with so many words, one at least."""
    found: list[tuple[Sentence, CandidateList]] = []
    total = 0
    for pair in lists:
        if found and total + len(pair[0]) > words:
            break
        found.append(pair)
        total += len(pair[0])
    return found


def _about(
    arcs: Arcs,
    supports: list[SupportArcs],
    schema: Schema,
    reranker: Reranker | None,
    *,
    k: int,
    made_up: bool,
) -> dict[str, Any]:
    each = len(arcs) / arcs.words
    properties = float(np.mean(np.concatenate(arcs.nodes) != 0)) * len(schema.properties)
    notes = [
        f"Text: {arcs.words:,} words, {len(arcs):,} arcs that not all trees of their list share "
        f"({each:.2f} a word), each scored once; {len(schema.properties)} node properties, "
        f"{properties:.1f} of them filled on a word. The loops score fewer sentences where "
        "it would take long; the ratio is of the same arcs in turns.",
    ]
    if made_up:
        notes.append(
            f"The lists are MADE UP: the text's own trees and up to {k - 1} with other heads and "
            "labels drawn at random; a parser's can be given instead (candidates)."
        )
    if reranker:
        notes.append("The support is the model's.")
    else:
        notes.append(
            "The support is MADE UP: arcs that trees of the treebank and such others do not share, "
            "with random weights; it says nothing about accuracy."
        )
    for support in supports:
        if support.paired:
            notes.append(
                f"Of {len(support):,} support parts {support.paired:,} are words of one sentence "
                "paired at random: the treebank has no more."
            )
    notes.append(
        "cold: no rows kept, all kept rows are made; warm: the text scored again; all arcs: every "
        "pair of words of a sentence, with every label, cold."
    )
    return {
        "tk_spacy": __version__,
        "words": arcs.words,
        "arcs": len(arcs),
        "arcs_per_word": each,
        "properties": len(schema.properties),
        "filled_properties": properties,
        "lists_made_up": made_up,
        "support_made_up": reranker is None,
        "paired_at_random": [support.paired for support in supports],
        "notes": notes,
    }
