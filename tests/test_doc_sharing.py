"""`nlp.pipe` with a reranker that shares its Docs among processes: the same Docs, and faults."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from pipelines import new_docs, new_sentences, trained_pipeline
from pipelines import predictions as of_spacys_parser
from spacy.language import Language
from spacy.tokens import Doc
from test_long_sentences import long_sentence
from test_speeds import model_path, needs_sklearn
from trainings import biaffine_training

from tk_spacy.parallel import sharing
from tk_spacy.parallel.executor import TaskError
from tk_spacy.parallel.sharing import may_fork
from tk_spacy.pipeline import doc_reranking
from tk_spacy.pipeline.doc_sharing import UNDER_WAY
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.spacy_io.doc_trees import NOBODY, DocSentence, read_sentences

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not may_fork(), reason="this process may not fork"),
]
SIZE = 4


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has an item for each process that is made."""
    made: list[int] = []
    before = sharing._Worker.start

    def start(*given: Any) -> Any:
        made.append(1)
        return before(*given)

    monkeypatch.setattr(sharing._Worker, "start", start)
    return made


def pipeline(path: Path, n_threads: int, **config: Any) -> Language:
    own = {"n_threads": n_threads, "candidates": 2, **config}
    return spacy.load(path, config={"components": {"tk_reranker": own}})


def docs_of(nlp: Language) -> list[Doc]:
    """Docs of several sentences, of none, of one word, with white space, long, the same again."""
    made = new_docs(nlp, 14)
    made[3:3] = [Doc(nlp.vocab), *new_docs(nlp, 3, sentences_each=5)]
    made.insert(9, Doc(nlp.vocab, words=["owls"], tags=["N"], pos=["NOUN"], sent_starts=[True]))
    words = [*new_sentences(1)[0].forms, "\n"]
    made.insert(2, Doc(nlp.vocab, words=words, sent_starts=[True] + [False] * (len(words) - 1)))
    made.insert(11, doc_from_sentence(nlp.vocab, long_sentence(420)))
    return [*made, *new_docs(nlp, 14)]


def everything(docs: Iterable[Doc]) -> list[Any]:
    """All that the reranker writes; floats to the last bit."""
    return [
        ([(t.head.i, t.dep, t.is_sent_start) for t in doc], doc._.tk_reranker, doc._.tk_candidates)
        for doc in docs
    ]


@needs_sklearn
@pytest.mark.filterwarnings("ignore:.*(which a Doc lacks|has no sentence bounds|no parse)")
@pytest.mark.parametrize(
    "config",
    [{}, {"speed": "balanced"}, {"well_formed": True}],
    ids=["exact", "balanced", "well-formed"],
)
def test_docs_are_the_same_on_any_number_of_processes(
    config: dict[str, Any], started: list[int]
) -> None:
    found = []
    for n_threads, processes in ((1, 0), (2, 2), (3, 3)):
        nlp = pipeline(model_path(), n_threads, **config)
        found.append(everything(nlp.pipe(docs_of(nlp), batch_size=SIZE)))
        assert len(started) == processes
        started.clear()
    assert any(records for _, records, _ in found[0])
    assert found[0] == found[1] == found[2]
    assert multiprocessing.active_children() == []


def test_explanations_come_from_other_processes(started: list[int]) -> None:
    found = []
    for n_threads in (1, 2):
        nlp = pipeline(biaffine_training()[0], n_threads)
        nlp.get_pipe("tk_reranker").explains = True
        docs = nlp.pipe(new_docs(nlp, 12), batch_size=SIZE)
        found.append([doc._.tk_explanation for doc in docs])
    assert len(started) == 2
    assert found[0] == found[1]
    assert found[0][0][0] is not None


def test_spacys_parsers_are_asked_here() -> None:
    expected, found = (
        of_spacys_parser(nlp.pipe(new_docs(nlp, 14), batch_size=SIZE))
        for nlp in (trained_pipeline(n_threads=1), trained_pipeline(n_threads=2))
    )
    assert found == expected


def test_the_components_before_are_not_far_ahead() -> None:
    nlp = pipeline(biaffine_training()[0], 2)
    read = 0

    def endless() -> Iterator[Doc]:
        nonlocal read
        while True:
            for doc in new_docs(nlp, 30):
                read += 1
                yield doc

    running = nlp.pipe(endless(), batch_size=SIZE)
    for number, _ in zip(range(60), running, strict=False):
        # What is under way, one batch that waits, and what spaCy's own batches hold.
        assert read <= number + (2 * UNDER_WAY + 4) * SIZE
    running.close()
    assert multiprocessing.active_children() == []


def test_an_error_is_that_of_its_docs_alone(
    monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    path = biaffine_training()[0]
    before = doc_reranking.choose_trees
    bad = new_sentences(24)[-1].forms

    def choose(reranker: Any, sources: Any, sentences: Any, **given: Any) -> Any:
        if any(sentence.plain.forms == bad for sentence in sentences):
            raise RuntimeError("in the middle")
        return before(reranker, sources, sentences, **given)

    monkeypatch.setattr(doc_reranking, "choose_trees", choose)
    nlp = pipeline(path, 2)
    failed: list[tuple[str, int, str]] = []
    nlp.set_error_handler(
        lambda name, pipe, docs, error: failed.append((name, len(docs), str(error)))
    )
    docs = list(nlp.pipe(new_docs(nlp, 26), batch_size=SIZE))
    assert failed == [("tk_reranker", SIZE, "in the middle")]
    assert len(docs) == 26 - SIZE
    assert len(started) == 2
    with pytest.raises(RuntimeError, match="in the middle"):
        list(pipeline(path, 2).pipe(new_docs(nlp, 26), batch_size=SIZE))
    assert multiprocessing.active_children() == []


def test_an_error_in_writing_is_that_of_its_docs_alone(
    monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    found = []
    for n_threads in (1, 2):
        nlp = pipeline(biaffine_training()[0], n_threads)
        component = nlp.get_pipe("tk_reranker")
        docs = new_docs(nlp, 26)
        before = component.set_annotations

        def write(given: Any, choices: Any, before: Any = before, bad: Doc = docs[21]) -> None:
            if any(doc is bad for doc in given):
                raise ValueError("cannot be written")
            before(given, choices)

        monkeypatch.setattr(component, "set_annotations", write)
        failed: list[tuple[str, int, str]] = []
        nlp.set_error_handler(
            lambda name, pipe, docs, error, failed=failed: failed.append(
                (name, len(docs), str(error))
            )
        )
        found.append((everything(nlp.pipe(docs, batch_size=SIZE)), failed))
    assert len(started) == 2
    assert found[0][1] == [("tk_reranker", SIZE, "cannot be written")]
    assert len(found[0][0]) == 26 - SIZE
    assert found[0] == found[1]


def test_a_killed_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    before = doc_reranking.choose_trees

    def choose(*given: Any, **more: Any) -> Any:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return before(*given, **more)

    monkeypatch.setattr(doc_reranking, "choose_trees", choose)
    nlp = pipeline(biaffine_training()[0], 2)
    with pytest.raises(TaskError, match=r"the reranker: a process .* killed by SIGKILL"):
        list(nlp.pipe(new_docs(nlp, 26), batch_size=SIZE))


def test_a_sentence_alone_tells_the_same() -> None:
    nlp = pipeline(biaffine_training()[0], 1)
    words = ["\t", "owls", " ", "see", "mice", "\n"]
    own = Doc(nlp.vocab, words=words, lemmas=words, pos=["NOUN"] * 6, morphs=["Case=Nom"] * 6)
    own.from_array(["HEAD", "DEP"], doc_tree(own, [1, 2, -1, 0, -1, -1]))
    (sentence,) = read_sentences(own)
    alone = sentence.alone()
    assert alone.doc is None
    assert alone.plain.forms == sentence.plain.forms == ("owls", "see", "mice")
    assert alone.plain.feats == ("Case=Nom",) * 3
    assert alone.heads.tolist() == sentence.heads.tolist()
    assert alone.deprels == sentence.deprels
    assert (alone.start, alone.end) == (0, 6)
    assert isinstance(NOBODY, DocSentence)
    assert NOBODY.heads is None


def doc_tree(doc: Doc, offsets: list[int]) -> Any:
    """HEAD and DEP of a Doc's tokens, the arcs' labels "dep" but the root's."""
    labels = [doc.vocab.strings.add("dep" if offset else "ROOT") for offset in offsets]
    rows = [[o % 2**64, n] for o, n in zip(offsets, labels, strict=True)]
    return np.array(rows, dtype=np.uint64)
