"""The k best trees of a model's parsers, written to a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.writer import Form, Pair, kbest_sentences
from tk_spacy.parallel.batches import in_parts
from tk_spacy.parsers.base import columns_read
from tk_spacy.parsers.names import SEARCHES, Search
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.enhanced import DEPS_CHOICES, Deps, DepsColumn
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.validation import check_choice
from tk_spacy.workflows.files.batch import check_not_in_model, estimate_sentences, find_jobs
from tk_spacy.workflows.files.batches import most_words, write_in_parts
from tk_spacy.workflows.files.counted import Part
from tk_spacy.workflows.files.external_trees import ExternalFiles
from tk_spacy.workflows.files.inputs import INPUT_FORMS, InputForm, InputReader
from tk_spacy.workflows.files.records import Records, asked, check_single, find_recipes
from tk_spacy.workflows.files.tagging import TAG_CHOICES, Gaps, TagChoice, of_model
from tk_spacy.workflows.files.worker import Job
from tk_spacy.workflows.model import (
    PipelineLoader,
    learnt_own_tags,
    merged_in_order,
    open_parsers,
    open_tagger,
    open_tokenizer,
    pipeline_loader,
)

FORMS = ("compact", "expanded")
STAGE = "parsing"


def kbest(
    pipeline: str,
    source: Path,
    target: Path,
    *,
    k: int | None = None,
    search: Search = "discrepancy",
    form: Form = "compact",
    parser_files: Mapping[str, Path] | None = None,
    deps: Deps = "blank",
    tags: TagChoice = "auto",
    input_form: InputForm = "auto",
    overwrite: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the k best trees for each sentence of a file; returns what was counted.

    pipeline: see `kbest_source`.  k: None for as many as its reranker learnt from, else LONG_LIST.
    parser_files: other parsers' trees of the sentences, where the model was trained with such.
    deps: what becomes of the column DEPS (see `enhanced`).
    tags: whose tags the words are parsed with (see `FileTags`).
    input_form: what the file is, CoNLL-U or text; see `files.batch.rerank_files`.
    overwrite: replace a file that no such call made.
    n_threads: processes that share the sentences (see `files.batches`), None for all cores.
    Raises UserError where an input is missing or the output cannot be written.
    """
    check_choice("search", search, SEARCHES)
    check_choice("form", form, FORMS)
    check_choice("deps", deps, DEPS_CHOICES)
    check_choice("tags", tags, TAG_CHOICES)
    check_choice("input form", input_form, INPUT_FORMS)
    if source.is_dir():
        raise UserError(f"{source}: a directory; give one file, of CoNLL-U or text")
    (job,) = find_jobs([source], target, form=input_form)
    (size,) = estimate_sentences([source], form=input_form)
    files = ExternalFiles(dict(parser_files or {}), (source,))
    load = pipeline_loader()
    parser, usual = kbest_source(
        pipeline, job, files, search=search, n_threads=n_threads, load=load
    )
    if Path(pipeline).is_dir():
        check_not_in_model([job], Path(pipeline))
    report = progress or Progress()
    of_file = of_model(
        tags,
        partial(open_tagger, Path(pipeline), load=load),
        learnt_own=learnt_own_tags(Path(pipeline)),
    )()
    reader = InputReader(input_form, Path(pipeline), partial(open_tokenizer, Path(pipeline)))
    length = k or usual
    done = 0

    def work(batch: list[tuple[Sentence, Gaps]]) -> Part:
        part, column = Part(tags=of_file.fresh()), DepsColumn(deps)
        assert part.tags is not None
        sentences = part.tags.tagged(batch)
        parser.forget()

        def pairs() -> Iterator[Pair]:
            lists = parser.candidates(sentences, k=length)
            for sentence, trees in zip(sentences, lists, strict=True):
                part.tally.sentences += 1
                part.tally.words += len(sentence)
                part.trees += len(trees)
                part.filled.add(sentence)
                yield sentence, trees

        part.write(kbest_sentences(pairs(), form=form, deps=column))
        part.deps = column.count
        return part

    def tell(sentences: int) -> None:
        nonlocal done
        done += sentences
        report.update(STAGE, min(done, size), size)

    def check(whole: Part) -> None:
        if not whole.tally.sentences:
            raise UserError(f"{job.input}: the file holds no sentence")

    batches = in_parts(
        of_file.looked_into(reader.sentences(job.input)),
        lambda item: len(item[0]),
        most_words=most_words(length),
    )
    files.check_target(job)
    recipes = find_recipes(
        [job],
        "kbest",
        Path(pipeline),
        {"k": k, "search": search, "form": form, "deps": deps} | asked(tags=tags, input=input_form),
        files,
    )
    if not overwrite:
        for place, recipe in recipes.items():
            check_single(place, recipe)
    if job.target in recipes:
        job = replace(job, key=recipes[job.target].key)
    report.begin(STAGE)
    with Records() as records:
        records.begin(recipes)
        whole = write_in_parts(
            job, batches, work, n_threads=n_threads, report=tell, tags=of_file, check=check,
            stays=bool(files.paths),  # whose trees are read as they are asked for
        )  # fmt: skip
        records.finish(job.target)
    report.end(STAGE)
    return {
        "sentences": whole.tally.sentences,
        "words": whole.tally.words,
        "trees": whole.trees,
        "resumed": whole.resumed,
        "trees_per_sentence": whole.trees / whole.tally.sentences,
        "missing_columns": whole.filled.missing(columns_read(parser.sources)),
        "deps": asdict(whole.deps),
        "tags": of_file.note(),
    }


def kbest_source(
    pipeline: str,
    job: Job,
    parser_files: ExternalFiles,
    *,
    search: Search = "discrepancy",
    n_threads: int | None = None,
    load: PipelineLoader | None = None,
) -> tuple[MergedSource, int]:
    """The parsers of a model, and how many trees a sentence they are usually asked for.

    The parsers are those of its reranker, else its spaCy parser, else the first one of ours.

    pipeline: directory or package of a spaCy pipeline, or directory of a parser alone, or of a
        reranker that was trained with trees in files alone.
    parser_files: the trees that the model needs in files, of the job's sentences.
    load: loads the pipeline, None for a new one.
    Raises UserError where there are none, or where those in files are not what the model needs.
    """
    inventory = LabelInventory()
    path = Path(pipeline)
    opened = open_parsers(pipeline, inventory, search=search, n_threads=n_threads, load=load)
    reranker = opened.reranker
    known = {} if reranker is None else reranker.provenance.file_parsers
    parser_files.check(known, model=path)
    if reranker is None:
        return MergedSource(opened.sources, n_threads=n_threads), opened.k
    sources = [*opened.sources, *parser_files.sources(known, job, inventory, model=path)]
    return merged_in_order(reranker, sources, n_threads=n_threads), opened.k
