"""Training a reranker from spaCy Examples, as `TkReranker.initialize` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.training import Example

from tk_spacy.ensemble.jackknife import FoldProgress, jackknife
from tk_spacy.errors import CandidateError
from tk_spacy.features.schema import Schema, morph_note
from tk_spacy.features.word_properties import check_extras
from tk_spacy.kbest.candidates import CandidateList, LabelInventory, check_alternatives
from tk_spacy.kbest.matching import Matcher, matched
from tk_spacy.kbest.reader import TreesFile
from tk_spacy.kbest.writer import Pair
from tk_spacy.parsers.base import ParserSpec
from tk_spacy.parsers.biaffine.chance import chance_kept
from tk_spacy.parsers.names import backward_name
from tk_spacy.parsers.spacy_transition.kind import KIND
from tk_spacy.parsers.spacy_transition.source import Search, listened_pipes
from tk_spacy.parsers.spacy_transition.spec import SpacySpec
from tk_spacy.pipeline.sources import parser_names
from tk_spacy.reranker.calibration import MISSING, can_fit
from tk_spacy.reranker.examples import Examples
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.provenance import Candidates, Provenance
from tk_spacy.reranker.settings import Settings, suit
from tk_spacy.reranker.training import CALIBRATION_FOLDS, combine_lists, train_reranker
from tk_spacy.spacy_io.gold import gold_sentences
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.leftovers import temporary_directory
from tk_spacy.utils.workdir import work_directory

if TYPE_CHECKING:
    from spacy.language import Language

LineReport = Callable[[str], None]

MAX_STEPS, MAX_EPOCHS = 1000, 50
"""Of the training of a fold's spaCy parser, where nothing else is asked for."""
BATCH_WORDS = 500
"""What a batch has, about, where the config gives no number."""


def train_from_examples(
    nlp: Language,
    examples: Iterable[Example],
    *,
    sources: Sequence[str],
    search: Search,
    k: int,
    candidates: str | Path | None = None,
    folds: int = 5,
    max_steps: int | None = None,
    processes: int | None = 1,
    workdir: str | Path | None = None,
    seed: int = 0,
    keep_examples: bool = True,
    settings: Settings,
    left_open: frozenset[str] = frozenset(),
    n_threads: int | None = None,
    report: LineReport = lambda _: None,
) -> Reranker:
    """Train a reranker from gold trees and the candidates of parsers that did not see them.

    nlp, sources: the pipeline and its parsers, whose configuration the folds' parsers take.
    keep_examples: whether the model keeps the sentences that support parts came from.
    left_open: settings that are replaced by what suits the sources (settings.suit).
    candidates: a k-best file with lists for all sentences, instead of jackknifing.
    The rest: see `TkReranker.initialize`.  report: called with lines about the progress.
    """
    sentences = gold_sentences(examples)
    if (note := morph_note(sentences)) is not None:
        report(note)
    check_extras(settings.properties, sentences, where="the training examples")
    inventory = LabelInventory()
    if max_steps is None:
        words = sum(map(len, sentences)) * (folds - 1) // folds
        max_steps = suitable_steps(nlp, words)
    called = parser_names(nlp, sources)
    parsers = [
        pipeline_spec(
            nlp, source, search=search, max_steps=max_steps, seed=seed, name=name,
            number=sum(other.split("-")[0] == name.split("-")[0] for other in called[:place]),
        )
        for place, (source, name) in enumerate(zip(sources, called, strict=True))
    ]  # fmt: skip
    names = [name for parser in parsers for name in parser.sources]
    # The folds' parsers have a right-to-left twin if the pipeline's has.
    twins = [parser.backward for parser in parsers if isinstance(parser, SpacySpec)]
    made = Provenance(
        sources=tuple(names),
        candidates=Candidates(k=k, search=search),
        backward=twins[0] if twins else None,
        seed=seed,
    )
    if candidates is not None:
        lists = lists_from_file(candidates, sentences, sources=names, inventory=inventory, k=k)
    else:
        lists = _jackknifed(
            parsers, sentences, k=k, folds=folds, processes=processes, workdir=workdir,
            inventory=inventory, n_threads=n_threads, report=report,
        )  # fmt: skip
    settings = suit(settings, left_open, lists[0].sources)
    combiner, combined = combine_lists(sentences, lists, settings)
    schema = Schema.fit(
        sentences,
        labels=inventory.names,
        use_lemma=settings.use_lemma,
        extras=settings.properties,
    )
    if not can_fit():
        report(MISSING)
    reranker, stats = train_reranker(
        sentences, combined, settings, schema=schema, seed=seed, n_threads=n_threads,
        calibration_folds=CALIBRATION_FOLDS if can_fit() else 0,
    )  # fmt: skip
    report(
        f"trained on {stats.sentences} sentences in {stats.seconds:.1f} s: "
        f"{stats.support_parts} support parts"
    )
    kept = None
    if keep_examples and len(reranker.support):
        kept = Examples.of(reranker.support, sentences)
    return replace(reranker, about=made.to_dict(), combiner=combiner, examples=kept)


def pipeline_spec(
    nlp: Language,
    component: str,
    *,
    search: Search,
    max_steps: int,
    seed: int,
    name: str | None = None,
    number: int = 0,
) -> ParserSpec:
    """The spec of parsers like a component of a pipeline.

    name: of the parser, None for that of its kind.
    number: of those of its kind before it.  The configs of spaCy's parsers have one seed together:
        of those that are alike each gets another one, or they would be the same parser.
    """
    from tk_spacy.pipeline.parser_base import ParserComponent  # noqa: PLC0415

    parser = nlp.get_pipe(component)
    if isinstance(parser, ParserComponent):
        return parser.spec(seed=seed, name=name)
    return SpacySpec(
        config=fold_config(nlp, component, max_steps=max_steps, number=number),
        name=KIND.name if name is None else name,
        component=component,
        search=search,
        backward=backward_name(component) in nlp.component_names,
    )


def suitable_steps(nlp: Language, words: int) -> int:
    """Training steps of a fold's spaCy parser: enough for so many words, and no more.

    A few sentences are one batch, and a thousand passes over them teach nothing more.
    """
    size = nlp.config["training"].get("batcher", {}).get("size")
    batches = -(-words // size) if isinstance(size, int) and size > 0 else words // BATCH_WORDS + 1
    return min(MAX_STEPS, MAX_EPOCHS * batches)


def lists_from_file(
    path: str | Path,
    sentences: Sequence[Sentence],
    *,
    sources: Sequence[str],
    inventory: LabelInventory,
    k: int,
) -> Sequence[CandidateList]:
    """The lists of a k-best file, matched to sentences by their words (Docs have no sent_id).

    sources: the pipeline's parsers, the main one first.
    Raises CandidateError where a sentence has no list, or other parsers scored it.
    """
    file = TreesFile(path)

    def checked() -> Iterator[Pair]:
        for sentence, trees in file.lists(inventory=inventory, source=sources[0], k=k):
            if set(trees.sources) != set(sources):
                raise CandidateError(
                    f"{file.name}:{sentence.line}: candidates scored by "
                    f"{', '.join(trees.sources)}, but the pipeline's parsers are "
                    f"{', '.join(sources)}: make the file with it (tk-spacy kbest)"
                )
            yield sentence, trees

    matcher = Matcher(checked(), where=file.name, what="candidates", by="words")
    lists = [trees for _, trees in matched(matcher, sentences)]
    check_alternatives(lists, where=str(path))
    return lists


def _jackknifed(
    parsers: Sequence[ParserSpec],
    sentences: Sequence[Sentence],
    *,
    k: int,
    folds: int,
    processes: int | None,
    workdir: str | Path | None,
    inventory: LabelInventory,
    n_threads: int | None,
    report: LineReport,
) -> Sequence[CandidateList]:
    seen: set[tuple[int | None, str, str]] = set()

    def on_progress(state: FoldProgress) -> None:
        key = (state.fold, state.stage, state.parser)
        if state.fold is None or state.stage == "done" or key in seen:
            return
        seen.add(key)
        words = {"train": "training a parser", "parse": "parsing", "resumed": "done before"}
        report(f"fold {state.fold + 1} of {folds}: {words[state.stage]}")

    with (
        temporary_directory("folds") as temporary,
        chance_kept(),  # a `spacy train` around it goes on with the generators
        nullcontext() if workdir is None else work_directory(Path(workdir)),
    ):
        return jackknife(
            sentences,
            parsers,
            workdir=temporary if workdir is None else workdir,
            folds=folds,
            k=k,
            processes=processes,
            inventory=inventory,
            n_threads=n_threads,
            progress=on_progress,
            note=report,
        )


def fold_config(nlp: Language, source: str, *, max_steps: int, number: int = 0) -> str:
    """Training config of a pipeline's parser alone, with the components that it listens to.

    number: to be added to its seed.
    """
    config = nlp.config.copy()
    # Before the variables are filled in: the learning rate mostly goes by the number of steps.  In
    # the config of a saved pipeline that number stands itself.
    training = config["training"]
    rate = training.get("optimizer", {}).get("learn_rate")
    if isinstance(rate, dict) and rate.get("total_steps") == training.get("max_steps"):
        rate["total_steps"] = max_steps
    training["max_steps"] = max_steps
    config = config.interpolate()
    parser = nlp.get_pipe(source)
    before = listened_pipes(nlp, parser)
    names = [name for name, pipe in nlp.components if pipe is parser or pipe in before]
    config["nlp"]["pipeline"] = names
    config["nlp"]["disabled"] = []
    config["components"] = {name: config["components"][name] for name in names}
    initialize = config["initialize"]
    initialize["components"] = {
        name: values for name, values in initialize["components"].items() if name in names
    }
    config["training"].update(
        frozen_components=[],
        annotating_components=[],
        before_to_disk=None,
        before_update=None,
        score_weights={"dep_uas": 0.0, "dep_las": 1.0},
    )
    if number:
        config["training"]["seed"] = (config["training"].get("seed") or 0) + number
    return config.to_str()
