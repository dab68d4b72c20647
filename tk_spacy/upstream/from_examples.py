"""Training a reranker from spaCy Examples, as `TkReranker.initialize` does."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from tk_spacy.candidates import CandidateError, CandidateList, LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.kbest_io import read_kbest
from tk_spacy.properties import Schema
from tk_spacy.reranker import Reranker
from tk_spacy.settings import Settings
from tk_spacy.training import train_reranker
from tk_spacy.treebank import Sentence
from tk_spacy.upstream.doc_trees import read_sentences
from tk_spacy.upstream.jackknife import FoldProgress, UpstreamSettings, jackknife
from tk_spacy.upstream.spacy_parser import Search, listened_pipes
from tk_spacy.upstream.train_parser import backward_name

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

SOURCE_NAME = "spacy"
"""What the scores of the pipeline's parser are called in candidate lists."""

Report = Callable[[str], None]


def find_model(path: str | Path, component: str) -> Reranker:
    """The model in a directory: a reranker's own, or a pipeline that has one in `component`."""
    path = Path(path)
    inside = path / component
    is_pipeline = (path / "config.cfg").is_file() and inside.is_dir()
    return Reranker.from_disk(inside if is_pipeline else path)


def gold_sentences(examples: Iterable[Example]) -> list[Sentence]:
    """The sentences of the references, with their trees.

    Tags are those of the predicted Doc where it has some, as it will when the model is applied,
    else the reference's.  Sentences without a usable tree are left out.
    Raises UserError where none is left.
    """
    sentences = []
    for example in examples:
        tagged = _tagged(example)
        for sentence in read_sentences(example.reference):
            if sentence.heads is not None:
                sentences.append(sentence.as_sentence(tags_from=tagged))
    if not sentences:
        raise UserError(
            "the training examples hold no dependency tree: give the training corpus heads and "
            "labels, or load a trained model (model = PATH)"
        )
    return sentences


def _tagged(example: Example) -> Doc | None:
    predicted, reference = example.predicted, example.reference
    if not any(predicted.has_annotation(name) for name in ("TAG", "POS", "MORPH")):
        return None
    if [token.text for token in predicted] != [token.text for token in reference]:
        return None
    return predicted


def train_from_examples(
    nlp: Language,
    examples: Iterable[Example],
    *,
    source: str,
    search: Search,
    k: int,
    candidates: str | Path | None = None,
    folds: int = 5,
    max_steps: int = 1000,
    processes: int | None = 1,
    workdir: str | Path | None = None,
    seed: int = 0,
    settings: Settings,
    n_threads: int | None = None,
    report: Report = lambda _: None,
) -> Reranker:
    """Train a reranker from gold trees and the candidates of parsers that did not see them.

    nlp, source: the pipeline and its parser, whose configuration the folds' parsers take.
    candidates: a k-best file with lists for all sentences, instead of jackknifing.
    The rest: see `TkReranker.initialize`.  report: called with lines about the progress.
    """
    sentences = gold_sentences(examples)
    inventory = LabelInventory()
    about: dict[str, Any] = {"search": search, "k": k}
    if candidates is not None:
        lists = lists_from_file(candidates, sentences, inventory=inventory, k=k)
    else:
        # The folds' parsers have a right-to-left twin if the pipeline's has.
        about["backward"] = backward = backward_name(source) in nlp.component_names
        lists = _jackknifed(
            nlp, sentences, source=source, backward=backward, search=search, k=k, folds=folds,
            max_steps=max_steps, processes=processes, workdir=workdir, inventory=inventory,
            report=report,
        )  # fmt: skip
    schema = Schema.fit(sentences, labels=inventory.names, use_lemma=settings.use_lemma)
    reranker, stats = train_reranker(
        sentences, lists, settings, schema=schema, seed=seed, n_threads=n_threads
    )
    report(
        f"trained on {stats.sentences} sentences in {stats.seconds:.1f} s: "
        f"{stats.support_parts} support parts"
    )
    return replace(reranker, about=about)


def lists_from_file(
    path: str | Path, sentences: Sequence[Sentence], *, inventory: LabelInventory, k: int
) -> list[CandidateList]:
    """The lists of a k-best file, matched to sentences by their words (Docs have no sent_id).

    Raises CandidateError where a sentence has none, or the pipeline's parser did not score them.
    """
    found: dict[tuple[str, ...], deque[CandidateList]] = defaultdict(deque)
    for sentence, trees in read_kbest(path, inventory=inventory, source=SOURCE_NAME, k=k):
        if SOURCE_NAME not in trees.sources:
            raise CandidateError(
                f"{path}:{sentence.line}: candidates scored by {', '.join(trees.sources)}, but a "
                f"pipeline's parser is {SOURCE_NAME!r}: make the file with it (tk-spacy kbest)"
            )
        found[sentence.forms].append(trees)
    lists = []
    for number, sentence in enumerate(sentences, start=1):
        if not found[sentence.forms]:
            shown = " ".join(sentence.forms[:8]) + (" ..." if len(sentence) > 8 else "")
            raise CandidateError(f"{path}: no candidates for training sentence {number}: {shown}")
        lists.append(found[sentence.forms].popleft())
    return lists


def _jackknifed(
    nlp: Language,
    sentences: Sequence[Sentence],
    *,
    source: str,
    backward: bool,
    search: Search,
    k: int,
    folds: int,
    max_steps: int,
    processes: int | None,
    workdir: str | Path | None,
    inventory: LabelInventory,
    report: Report,
) -> list[CandidateList]:
    def on_progress(state: FoldProgress) -> None:
        if state.stage == "resumed" or (state.stage in ("train", "parse") and state.step == 1):
            words = {"train": "training a parser", "parse": "parsing", "resumed": "done before"}
            report(f"fold {state.fold + 1} of {folds}: {words[state.stage]}")

    with (
        tempfile.TemporaryDirectory(prefix="tk_spacy_folds_") as temporary,
        _random_state_kept(),
    ):
        config = Path(temporary) / "upstream.cfg"
        config.write_text(fold_config(nlp, source, max_steps=max_steps), encoding="utf-8")
        return jackknife(
            sentences,
            workdir=temporary if workdir is None else workdir,
            folds=folds,
            k=k,
            settings=UpstreamSettings(
                config=str(config), component=source, search=search, backward=backward
            ),
            processes=processes,
            inventory=inventory,
            progress=on_progress,
        )


def fold_config(nlp: Language, source: str, *, max_steps: int) -> str:
    """Training config of a pipeline's parser alone, with the components that it listens to."""
    config = nlp.config.copy()
    # Before the variables are filled in: the learning rate mostly goes by the number of steps.
    config["training"]["max_steps"] = max_steps
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
    return config.to_str()


@contextmanager
def _random_state_kept() -> Iterator[None]:
    """A training here seeds the generators that a `spacy train` around it goes on to use."""
    python, array = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(array)  # noqa: NPY002
