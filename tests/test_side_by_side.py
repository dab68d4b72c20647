"""Questions answered at the same time, and what a parser remembers between two of them."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec

import numpy as np
import pytest
import spacy
from biaffine_parsers import NEW, trained
from thinc.api import Model
from threadpoolctl import ThreadpoolController

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parallel.blas import one_thread
from tk_spacy.parallel.side_by_side import answers
from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parsers.biaffine.recent import Recent
from tk_spacy.parsers.biaffine.source import BiaffineSource
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.pipeline.sources import known_parsers
from tk_spacy.pipeline.tk_biaffine import add_biaffine
from tk_spacy.reranker.provenance import Provenance
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.conllu import Sentence


def test_answers_come_in_the_order_of_the_questions() -> None:
    met = threading.Barrier(3, timeout=30)

    def meet(number: int) -> int:
        met.wait()  # only where all three run at the same time
        return number

    assert answers([lambda i=i: meet(i) for i in range(3)], n_threads=3) == [0, 1, 2]
    assert answers([], n_threads=2) == []
    here = threading.get_ident()
    assert answers([threading.get_ident] * 3, n_threads=1) == [here] * 3


def test_no_more_questions_are_asked_at_a_time_than_there_are_threads() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def counted() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1

    answers([counted] * 7, n_threads=2)
    assert most[0] == 2


def test_the_last_question_s_mistake_ends_the_first_one() -> None:
    def waits() -> None:
        while True:
            raise_if_stopped()
            time.sleep(0.01)

    def fails() -> None:
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        answers([waits, fails], n_threads=2)


def test_a_question_has_the_context_of_who_asks() -> None:
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("ours")
    assert answers([variable.get, variable.get], n_threads=2) == ["ours", "ours"]


def test_products_stay_on_one_thread_until_the_last_parser_has_left() -> None:
    def limits() -> set[int]:
        found = ThreadpoolController().select(user_api="blas").info()
        return {library["num_threads"] for library in found}

    before = limits()
    second_is_in, first_is_out = threading.Event(), threading.Event()

    def first() -> None:
        with one_thread():
            second_is_in.wait(30)
        first_is_out.set()

    def second() -> set[int]:
        with one_thread():
            second_is_in.set()
            first_is_out.wait(30)
            return limits()

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        assert answers([first, second], n_threads=2)[1] == {1}
        assert limits() == {2}
    assert limits() == before


@pytest.mark.skipif(find_spec("scipy") is None, reason="scipy is not installed")
def test_products_of_libraries_that_are_loaded_later_are_on_one_thread_too() -> None:
    code = (
        "from threadpoolctl import ThreadpoolController\n"
        "from tk_spacy.parallel.blas import one_thread\n"
        "with one_thread():\n"
        "    pass\n"
        "import scipy.linalg\n"
        "with ThreadpoolController().limit(limits=2, user_api='blas'), one_thread():\n"
        "    found = ThreadpoolController().select(user_api='blas').info()\n"
        "    print(*{library['num_threads'] for library in found})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["1"]


def test_a_question_that_fails_stops_the_others() -> None:
    begun, ended = threading.Event(), threading.Event()

    def waits() -> None:
        begun.set()
        try:
            while True:
                raise_if_stopped()
                time.sleep(0.01)
        finally:
            ended.set()

    def fails() -> None:
        begun.wait(30)
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        answers([fails, waits], n_threads=2)
    assert ended.is_set()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sentences that networks read, call by call."""
    trained()  # now, and not while its reading is counted
    seen: list[int] = []
    predict = Model.predict

    def counting(self: Model, batch: object) -> object:
        sentences = getattr(batch, "sentences", None)
        if sentences is not None:
            seen.append(len(sentences))
        return predict(self, batch)

    monkeypatch.setattr(Model, "predict", counting)
    return seen


def test_a_network_reads_a_sentence_once_for_lists_and_scores(read: list[int]) -> None:
    inventory = LabelInventory()
    source = BiaffineSource(trained(), inventory=inventory)
    lists = list(source.candidates(NEW, k=4))
    assert sum(read) == len(NEW)
    found = source.score(NEW, lists)
    assert sum(read) == len(NEW)
    again = trained().score(NEW, lists)
    assert sum(read) == 2 * len(NEW)
    for own, other in zip(found, again, strict=True):
        np.testing.assert_allclose(own[:, 0], other, atol=1e-5)


def test_parsers_of_one_list_read_a_sentence_once_each(read: list[int]) -> None:
    inventory = LabelInventory()
    two = [BiaffineSource(trained(), inventory=inventory, name=name) for name in ("a", "b")]
    lists = list(MergedSource(two, n_threads=1).candidates(NEW, k=4))
    assert not any(np.isnan(trees.scores).any() for trees in lists)
    assert sum(read) == 2 * len(NEW)


def test_a_component_reads_a_sentence_once_for_its_tree_and_lists(read: list[int]) -> None:
    nlp = spacy.blank("xx")
    component = add_biaffine(nlp, trained())
    docs = [doc_from_sentence(nlp.vocab, sentence) for sentence in NEW]
    parsed = component.predict(docs)
    assert sum(read) == len(NEW)

    def source() -> ParserSource:
        return component.source(trained(), inventory=LabelInventory(), n_threads=1)

    for own, trees in zip(parsed, source().candidates(NEW, k=4), strict=True):
        assert own[0].heads.tolist() == trees.heads[0].tolist()
        assert own[0].deprels == trees.deprels(0)
    assert sum(read) == len(NEW)
    with contextmanager(component.use_params)({}):  # other weights, perhaps
        list(source().candidates(NEW, k=4))
    assert sum(read) == 2 * len(NEW)
    component.parser = trained()
    list(source().candidates(NEW, k=4))
    assert sum(read) == 3 * len(NEW)


def test_copies_remember_nothing() -> None:
    recent: Recent[int] = Recent()
    recent.keep(NEW[0], 1)
    assert copy.deepcopy(recent).find(NEW[0]) is None


def test_what_is_remembered_is_bounded_and_of_these_tags() -> None:
    def sentence(n: int, upos: str = "X") -> Sentence:
        return Sentence.from_columns(forms=[str(n)] * n, upos=[upos] * n)

    recent: Recent[int] = Recent(size=1 * 65 + 2 * 66 + 3 * 67)
    for n in (3, 2, 3, 1):
        recent.keep(sentence(n), n)
    assert [recent.find(sentence(n)) for n in (1, 2, 3)] == [1, 2, 3]
    assert recent.find(sentence(3, "Y")) is None
    recent.keep(sentence(4), 4)  # the oldest, of three words and of two, make room
    assert [recent.find(sentence(n)) for n in (1, 2, 3, 4)] == [1, None, None, 4]
    recent.keep(sentence(9), 9)  # longer than all that may be: remembered alone
    assert [recent.find(sentence(n)) for n in (1, 4, 9)] == [None, None, 9]


def test_labels_have_ids_before_anything_is_parsed() -> None:
    # The relation that joins the pieces of a long sentence is chosen among them.
    inventory = LabelInventory()
    BiaffineSource(trained(), inventory=inventory)
    assert set(trained().labels) <= set(inventory.names)


def test_weights_that_were_lent_leave_no_scores_behind(read: list[int]) -> None:
    component = add_biaffine(spacy.blank("xx"), trained())
    source = component.source(trained(), inventory=LabelInventory(), n_threads=1)
    lent = component.use_params({})
    next(lent)
    source = component.source(trained(), inventory=LabelInventory(), n_threads=1)
    list(source.candidates(NEW, k=4))
    lent.close()  # what becomes of it where an exception ends the loan
    read.clear()
    source = component.source(trained(), inventory=LabelInventory(), n_threads=1)
    list(source.candidates(NEW, k=4))
    assert sum(read) == len(NEW)


def test_rows_of_words_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tk_spacy.parsers.biaffine.vocabulary.MOST_KNOWN", 3)
    vocabulary = Vocabulary.fit(NEW)
    for sentence in NEW:
        vocabulary.encode(sentence)
        assert len(vocabulary._known) <= 3


def test_parsers_are_known_by_their_components_in_any_order() -> None:
    nlp = spacy.blank("xx")
    for name in ("tk_biaffine", "tk_biaffine_seed1", "mine"):
        add_biaffine(nlp, trained(), name=name)
    nlp.add_pipe("tk_transition")
    nlp.add_pipe("parser")
    made = Provenance(parsers={"biaffine": {}, "biaffine-seed1": {}, "transition": {}, "spacy": {}})

    def named(*components: str) -> list[str]:
        return known_parsers(nlp, components, made)

    usual = ["tk_biaffine", "tk_biaffine_seed1", "tk_transition", "parser"]
    assert named(*usual) == ["biaffine", "biaffine-seed1", "transition", "spacy"]
    assert named(*usual[::-1]) == ["spacy", "transition", "biaffine-seed1", "biaffine"]
    # A component of another name takes the place of the one of its kind that is missing.
    assert named("mine", "tk_transition", "parser", "tk_biaffine") == [
        "biaffine-seed1", "transition", "spacy", "biaffine",
    ]  # fmt: skip
    # Others than the model learnt from go by their kinds.
    assert named("mine", "tk_biaffine", "tk_biaffine_seed1", "parser") == [
        "biaffine", "biaffine-tk_biaffine", "biaffine-tk_biaffine_seed1", "spacy",
    ]  # fmt: skip
