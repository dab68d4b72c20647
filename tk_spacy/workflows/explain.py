"""Why a model chose the tree of one sentence of a file: candidates, reranker, explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from tk_spacy.about import __version__
from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.long_sentences import WHOLE_WORDS, is_long
from tk_spacy.kbest.reader import TreesFile
from tk_spacy.reranker.explain import EXAMPLES, Explanation, find_row
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.training import with_gold
from tk_spacy.treebank.conllu import Sentence, read_conllu
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.files.inputs import InputForm, InputReader
from tk_spacy.workflows.files.tagging import TagChoice, of_model
from tk_spacy.workflows.info import licence_of
from tk_spacy.workflows.model import (
    Model,
    main_source,
    open_model,
    open_tagger,
    open_tokenizer,
    pipeline_loader,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExplainedSentence:
    """An explanation, and where all of it comes from.

    model, file: as they were given.  treebank: that the model learnt from, None where it is not
    known; licence: of the model, None where it is no pipeline, empty where none is stated.
    number: of the sentence in the file, from 1.
    """

    explanation: Explanation
    model: str
    file: str
    treebank: str | None
    licence: str | None
    number: int = 1

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "model": self.model,
            "file": self.file,
            "sentence": self.number,
            "treebank": self.treebank,
            "licence": self.licence,
            **self.explanation.to_dict(),
            "tk_spacy": __version__,
        }


def explain(
    model: Path,
    file: Path,
    *,
    sent_id: str | None = None,
    tree: Path | None = None,
    most: int = EXAMPLES,
    k: int | None = None,
    tags: TagChoice = "auto",
    form: InputForm = "auto",
    well_formed: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> ExplainedSentence:
    """Explain a model's choice for one sentence of a file, as `tk-spacy rerank` makes it.

    file: CoNLL-U, a k-best file, or text.  sent_id: of the sentence; may be left out where the file
        has a single one.
    tree: a CoNLL-U file with the tree to compare the winner with, in a sentence of the same
        sent_id and words, or the only one; None for the runner-up.  A tree that is no candidate is
        added to the list, whose other trees' scores may change by that.
    most: support parts that are told of each arc.  k, tags, form, well_formed: see
        `rerank_files`.
    Of several sentences with the sent_id the first one is taken, with a warning.
    Raises UserError for files that do not fit, and for a sentence that is not there or too long.
    """
    progress = progress or Progress()
    opened = open_model(model)
    given = None if tree is None else _tree_of(tree, sent_id, progress)
    inventory, load = LabelInventory(), pipeline_loader()
    reader = InputReader(form, model, partial(open_tokenizer, model))
    trees_file = TreesFile(file) if reader.form_of(file) == "conllu" else None
    source: MergedSource | None = None
    if trees_file is not None and trees_file.form is not None:
        lists = trees_file.lists(inventory=inventory, source=main_source(opened.reranker), k=k)
        (sentence, candidates), number = _chosen(
            lists, sent_id, file, lambda pair: pair[0].sent_id, progress
        )
        _check_sources(opened.reranker, candidates, file)
    else:
        _check_parsers(opened)
        if trees_file is not None:
            sentences = list(trees_file.sentences(trees="any", single_root=False))
        else:
            sentences = list(reader.sentences(file))
        _, number = _chosen(sentences, sent_id, file, _sent_id, progress)
        tagged = of_model(
            tags, partial(open_tagger, model, load=load),
            learnt_own=opened.reranker.provenance.tagger is not None,
        )()  # fmt: skip
        # Of the tagged ones no more are made than to the wanted one.
        sentence = next(islice(tagged(iter(sentences)), number - 1, None))
        if is_long(sentence):
            raise UserError(
                f"{_place(sentence, file)}: the sentence has {len(sentence)} words, and those of "
                f"more than {WHOLE_WORDS} are parsed in pieces; give a piece of it"
            )
        parsers = opened.open_parsers(inventory, n_threads=n_threads, load=load)
        source = opened.in_order(parsers.sources, n_threads=n_threads)
        (candidates,) = source.candidates([sentence], k=k or parsers.k)
    other = None
    if given is not None and tree is not None:
        if given.forms != sentence.forms:
            raise UserError(
                f"{_place(given, tree)}: the tree has other words than the sentence in {file}; "
                "give a tree of the same words"
            )
        other = given.heads.tolist(), given.deprels
        candidates = _with_tree(opened.reranker, sentence, candidates, given, source, progress)
    explanation = opened.reranker.explain(
        sentence, candidates, tree=other, most=most, well_formed=well_formed, n_threads=n_threads
    )
    return ExplainedSentence(
        explanation=explanation,
        model=str(model),
        file=str(file),
        treebank=opened.reranker.provenance.title,
        licence=None if opened.component is None else licence_of(model),
        number=number,
    )


def _chosen(
    items: Iterable[T],
    sent_id: str | None,
    file: Path,
    sent_id_of: Callable[[T], str | None],
    progress: Progress,
) -> tuple[T, int]:
    """The first item with a sent_id, or the only one; and its number, from 1."""
    found: T | None = None
    numbers: list[int] = []
    n = 0
    for item in items:
        n += 1
        if sent_id is None and n > 1:
            raise UserError(
                f"{file}: has more than one sentence; say which one to explain (--sent-id)"
            )
        if sent_id is None or sent_id_of(item) == sent_id:
            found = found if numbers else item
            numbers.append(n)
    if not n:
        raise UserError(f"{file}: the file holds no sentence; give one with a sentence to explain")
    if not numbers:
        raise UserError(
            f"{file}: none of its {n:,} sentences has the sent_id {sent_id!r}; give one that is "
            "there"
        )
    if len(numbers) > 1:
        progress.warn(
            f"{file}: {len(numbers):,} sentences have the sent_id {sent_id!r}; sentence "
            f"{numbers[0]:,} is taken, the first of them"
        )
    return cast(T, found), numbers[0]


def _tree_of(path: Path, sent_id: str | None, progress: Progress) -> Sentence:
    """The sentence with the tree to compare with."""
    found, _ = _chosen(read_conllu(path), sent_id, path, _sent_id, progress)
    return found


def _sent_id(sentence: Sentence) -> str | None:
    return sentence.sent_id


def _check_sources(reranker: Reranker, candidates: CandidateList, file: Path) -> None:
    missing = [name for name in reranker.needed_sources if name not in candidates.sources]
    if missing:
        raise UserError(
            f"{file}: has the scores of {', '.join(candidates.sources)}, but the model needs those "
            f"of {', '.join(missing)}: it was trained with another parser's lists"
        )


def _check_parsers(opened: Model) -> None:
    if opened.external_parsers:
        raise UserError(
            f"{opened.path}: was trained with trees of {', '.join(opened.external_parsers)} in "
            "files; make a k-best file by `tk-spacy kbest`, and explain a sentence of that"
        )


def _with_tree(
    reranker: Reranker,
    sentence: Sentence,
    candidates: CandidateList,
    given: Sentence,
    source: MergedSource | None,
    progress: Progress,
) -> CandidateList:
    """The list, with a tree that it lacks added and scored."""
    try:
        find_row(reranker.completed(sentence, candidates), given.heads.tolist(), given.deprels)
        return candidates
    except ValueError:
        longer = with_gold(sentence.with_tree(given.heads, given.deprels), candidates)
    if source is None:
        progress.warn(
            "the tree is none of the file's candidates, so no parser's score of it is known: it "
            "counts as the lowest of the list"
        )
        return longer
    (scores,) = source.score([sentence], [longer])
    scores = np.where(np.isfinite(scores), scores, np.nan)  # of a relation that a parser lacks
    return longer.with_scores(np.where(np.isnan(longer.scores), scores, longer.scores))


def _place(sentence: Sentence, file: Path) -> str:
    return f"{file}:{sentence.line}" if sentence.line else str(file)
