"""What a saved pipeline says of itself in meta.json: `spacy package` and `spacy info` show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import srsly
from spacy.training import Example
from spacy.vocab import Vocab

from tk_spacy.about import __version__
from tk_spacy.pipeline.scorer import score_dependencies, score_tagging
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.tagging.spacy_tagger.tagger import sets_tags
from tk_spacy.treebank.licences import joint_licence

if TYPE_CHECKING:
    from spacy.language import Language

    from tk_spacy.treebank.conllu import Sentence


SELECTED = " In its reranker's place: "
"""Begins what the description says of selected features."""


def describe(
    nlp: Language,
    *,
    name: str,
    version: str,
    licence: str,
    treebank: str,
    licences: Mapping[str, str],
    how: str,
    performance: dict[str, Any],
    scored_on: str | None = "dev",
    own_tags: bool = False,
) -> None:
    """Fill in a pipeline's meta: what a parser in it brought along is that parser's own.

    licence: of the model; where it is empty, the treebanks' own, if each of them states one.
    treebank: what it was trained on.  licences: of each treebank of it, by name.
    how: what it parses by, as in "a reranker of ...".  performance: see `spacy_scores`.
    scored_on: what was parsed for it, None for nothing.
    own_tags: whether the pipeline has a tagger.
    """
    nlp.meta.update(
        name=name,
        version=version,
        license=licence or joint_licence(licences),
        description=(
            f"Dependency parser (tk-spacy {__version__}) trained on {treebank}: {how}. "
            f"{_of_tags(nlp, own_tags=own_tags, scored_on=scored_on)}."
        ),
        sources=[{"name": name, "license": stated} for name, stated in licences.items()],
        performance=performance,
    )


def scored_again(
    directory: Path,
    gold: Sequence[Sentence],
    parsed: Sequence[Sentence],
    *,
    described: str,
) -> None:
    """Bring a stored pipeline's meta up to date after features were selected for its reranker.

    gold, parsed: see `spacy_scores`; scores of other things, such as tags, are kept.
    described: what was selected, for the description, in the place of what was before.
    """
    place = directory / "meta.json"
    meta = srsly.read_json(place)
    meta["performance"] = {**meta.get("performance", {}), **spacy_scores(gold, parsed)}
    before, _, _ = str(meta.get("description", "")).partition(SELECTED)
    meta["description"] = f"{before}{SELECTED}{described}"
    srsly.write_json(place, meta)


def _of_tags(nlp: Language, *, own_tags: bool, scored_on: str | None) -> str:
    """Which tags its parsers read, and were scored with."""
    scored = f"; the scores are those with the gold ones, on {scored_on}"
    if own_tags:
        told = "It predicts tags, features and lemmas"
        scored = f"; the scores are those with its own, on {scored_on}"
    elif brought := [name for name in nlp.pipe_names if sets_tags(nlp, name)]:
        told = (
            f"Its tags, features and lemmas are those of {', '.join(brought)}, which came with "
            "spaCy's parser"
        )
    else:
        told = "It reads tags, features and lemmas and does not predict them"
    return told + scored * (scored_on is not None)


def spacy_scores(
    gold: Sequence[Sentence], parsed: Sequence[Sentence], *, tags: bool = False
) -> dict[str, Any]:
    """Scores as `spacy evaluate` makes them of a pipeline that finds these trees.

    gold, parsed: aligned sentences of the same words.
    tags: whether the pipeline gives tags too, which are those of `parsed`.
    """
    vocab = Vocab()
    examples = [
        Example(
            doc_from_sentence(vocab, found, with_tree=True, gold_tags=tags),
            doc_from_sentence(vocab, right, with_tree=True),
        )
        for right, found in zip(gold, parsed, strict=True)
    ]
    return score_dependencies(examples) | (score_tagging(examples) if tags else {})
