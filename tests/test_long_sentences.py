"""Long sentences: where they are cut, how trees and lists are joined, what their parse costs."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import biaffine_parsers
import numpy as np
import pytest
import sampling_parsers
import spacy
from test_cli import invoke
from test_combiner import random_list
from test_kernel import random_tree
from trainings import parsers_training

from tk_spacy.ensemble.combiner.arcs import ListArcs
from tk_spacy.ensemble.combiner.reparsing import best_trees
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.kbest import long_sentences
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.long_sentences import (
    LEAST_WORDS,
    PIECE_WORDS,
    WHOLE_WORDS,
    cut,
    join_lists,
    join_trees,
    link_label,
    piece_ranges,
    project,
    project_list,
    score_cut,
)
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.pipeline.tk_biaffine import add_biaffine
from tk_spacy.pipeline.tk_parser import add_parser
from tk_spacy.pipeline.tk_reranker import TkReranker
from tk_spacy.pipeline.tk_sentences import FINAL
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.conllu import Sentence, check_tree, load_treebank, write_conllu
from tk_spacy.treebank.synthetic import generate

PARSERS = {
    "sampling": sampling_parsers.trained,
    "biaffine": biaffine_parsers.trained,
}


def joined(sentences: Sequence[Sentence], n: int) -> Sentence:
    """Sentences one after the other as one of n words; later roots hang on the first."""
    columns: dict[str, list[str]] = {
        name: [] for name in ("forms", "lemmas", "upos", "xpos", "feats", "deprels")
    }
    heads: list[int] = []
    top = 0
    for sentence in itertools.cycle(sentences):
        start = len(heads)
        if start >= n:
            break
        for name, column in columns.items():
            column += getattr(sentence, name)
        for word, head in enumerate(sentence.heads.tolist(), start=start):
            if head:
                heads.append(head + start)
            else:
                heads.append(top)
                columns["deprels"][word] = "parataxis" if top else "root"
                top = top or word + 1
    # Words whose head is cut off hang on the top.
    heads = [head if head <= n else top for head in heads[:n]]
    return Sentence.from_columns(
        heads=heads, **{name: column[:n] for name, column in columns.items()}
    )


def long_sentence(n: int, seed: int = 32) -> Sentence:
    return joined(list(generate(40, seed=seed)), n)


# Where to cut


def test_cuts_come_after_sentences() -> None:
    def cuts(forms: list[str]) -> list[int]:
        return [own.stop for own in piece_ranges(forms)]

    assert cuts((["w"] * 49 + ["."]) * 5) == [250]
    assert cuts((["w"] * 49 + ["."]) * 6) == [50, 100, 150, 200, 250, 300]
    # No piece is shorter than 20 words.
    assert cuts(["w", "."] * 14 + ["w"] * 262 + [".", "w"] * 5) == [20, 220, 300]
    # A closing mark belongs to the sentence before it.
    assert cuts(["w"] * 150 + ["!", "\N{RIGHT DOUBLE QUOTATION MARK}"] + ["w"] * 148) == [152, 300]
    # The last of other punctuation where no sentence ends, anywhere where there is none.
    assert cuts(["w"] * 30 + [","] + ["w"] * 69 + [","] + ["w"] * 199) == [101, 300]
    assert cuts(["w"] * 300) == [200, 300]
    # What is left over is not shorter, either.
    assert cuts(["w"] * 410) == [200, 390, 410]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_hold_all_words_and_none_is_too_short_or_too_long(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 1500))
    forms = rng.choice(["w", ".", ",", "»", "(", "..."], size=n, p=[0.9, *[0.02] * 5]).tolist()
    ranges = piece_ranges(forms)
    assert list(itertools.chain(*ranges)) == list(range(n))
    if n <= WHOLE_WORDS:
        assert len(ranges) == 1
    else:
        assert all(LEAST_WORDS <= len(own) <= PIECE_WORDS for own in ranges)


def test_short_sentence_is_its_own_piece() -> None:
    sentence = long_sentence(WHOLE_WORDS)
    assert cut(sentence).pieces == (sentence,)
    tree = (sentence.heads, sentence.deprels)
    assert join_trees([tree], link="x") is tree


# Joining


def test_joined_tree_has_the_root_of_the_first_piece() -> None:
    trees = [
        (np.array([2, 0, 2], np.int32), ("x", "root", "y")),
        (np.array([0, 1], np.int32), ("root", "x")),
        (np.array([3, 1, 0], np.int32), ("x", "y", "root")),
    ]
    heads, labels = join_trees(trees, link="parataxis")
    assert heads.tolist() == [2, 0, 2, 2, 4, 8, 6, 2]
    assert labels == ("x", "root", "y", "parataxis", "x", "x", "y", "parataxis")


def test_link_is_one_that_the_parser_knows() -> None:
    assert link_label(["root", "conj", "parataxis"]) == "parataxis"
    assert link_label(["conj", "root", "dep"]) == "conj"
    assert link_label(["root", "OBJ"]) == "OBJ"
    assert link_label(["root"]) == "parataxis"


@pytest.mark.parametrize("seed", range(10))
def test_joined_list_has_the_best_of_all_combinations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inventory = LabelInventory(["root", "parataxis", "l0", "l1", "l2"])
    lists = []
    for _ in range(3):
        found = random_list(rng, int(rng.integers(1, 5)), int(rng.integers(2, 5)))
        lists.append(
            CandidateList.from_arrays(
                found.heads, np.where(found.heads == 0, 0, found.labels + 1), found.scores,
                inventory=inventory, sources=("a", "b"),
                base=int(rng.integers(len(found))), bases={"b": int(rng.integers(len(found)))},
            )
        )  # fmt: skip
    every = {}
    for rows in itertools.product(*(range(len(trees)) for trees in lists)):
        pieces = [
            (trees.heads[row], trees.deprels(row)) for trees, row in zip(lists, rows, strict=True)
        ]
        heads, labels = join_trees(pieces, link="parataxis")
        every[(*heads.tolist(), *labels)] = sum(
            trees.scores[row] for trees, row in zip(lists, rows, strict=True)
        )
    for k in (1, 4, 1000):
        found = join_lists(lists, k=k)
        assert len(found) == min(k, len(every))
        own = [(*heads.tolist(), *found.deprels(row)) for row, heads in enumerate(found.heads)]
        np.testing.assert_allclose(found.scores, [every[tree] for tree in own])
        by_main = sorted((score[0] for score in every.values()), reverse=True)
        # All of the best, but for room that the parsers' own trees take.
        missing = [
            score for score in by_main[:k] if not np.isclose(score, found.scores[:, 0]).any()
        ]
        assert len(missing) <= 2
        base = join_trees([(t.heads[t.base], t.deprels(t.base)) for t in lists], link="parataxis")
        assert own[found.base] == (*base[0].tolist(), *base[1])
        if "b" in found.bases:
            rows = [trees.bases["b"] for trees in lists]
            twin = [(t.heads[r], t.deprels(r)) for t, r in zip(lists, rows, strict=True)]
            heads, labels = join_trees(twin, link="parataxis")
            assert own[found.bases["b"]] == (*heads.tolist(), *labels)


@pytest.mark.parametrize("seed", range(10))
def test_projected_trees_are_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heads = np.stack([random_tree(rng, 12) for _ in range(5)])
    for words in (range(5), range(5, 9), range(9, 12)):
        for own, whole in zip(project(heads, words), heads, strict=True):
            assert check_tree(own) is None
            for word in words:
                if words.start < whole[word] <= words.stop:
                    assert own[word - words.start] == whole[word] - words.start


def test_pieces_of_a_tree_are_called_by_its_root() -> None:
    """Words 2 and 4 are the tops of the first piece, and 4 is the tree's root."""
    inventory = LabelInventory()
    trees = CandidateList.build(
        [([2, 5, 2, 0, 4, 5], ["x", "y", "x", "TOP", "z", "x"], 0.0)],
        inventory=inventory,
        sources=("s",),
    )
    first, _ = project_list(trees, range(4))
    assert first.heads.tolist() == [[2, 0, 2, 2]]
    assert first.deprels(0) == ("x", "TOP", "x", link_label(inventory.names))
    second, _ = project_list(trees, range(4, 6))
    assert second.heads.tolist() == [[0, 1]]
    assert second.deprels(0) == ("TOP", "x")


def test_a_link_is_no_subtype_of_root() -> None:
    assert link_label(["root", "root:x", "OBJ"]) == "OBJ"


@pytest.mark.parametrize("kind", PARSERS)
def test_scores_of_joined_lists_are_those_of_their_pieces(kind: str) -> None:
    parser = PARSERS[kind]()
    sentence = long_sentence(300)
    trees = next(iter(parser.kbest([sentence], k=6, inventory=LabelInventory(parser.labels))))
    assert len(trees) == 6
    scores = parser.score([sentence], [trees])[0]
    np.testing.assert_allclose(scores, trees.scores[:, 0], rtol=1e-6)


def test_scores_of_short_sentences_are_asked_for_as_they_come() -> None:
    sentence = long_sentence(50)
    asked = []

    def score(sentences, lists):
        asked.append((sentences, lists))
        return ["scores"]

    sentences, lists = [sentence], ["list"]
    assert score_cut(sentences, lists, score) == ["scores"]
    assert asked == [(sentences, lists)]


# Parsers


@pytest.mark.parametrize("kind", PARSERS)
def test_sentences_up_to_the_limit_are_parsed_whole(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule makes no difference where its limit is not reached, whatever the limit is."""
    parser = PARSERS[kind]()
    sentences = [long_sentence(n, seed=n) for n in (40, 120, 200, WHOLE_WORDS)]

    def found() -> list:
        lists = parser.kbest(sentences, k=3, inventory=LabelInventory(parser.labels))
        return [
            *((heads.tolist(), labels) for heads, labels in parser.parse(sentences)),
            *(
                (trees.heads.tolist(), trees.labels.tolist(), trees.scores.tolist())
                for trees in lists
            ),
        ]

    limited = found()
    monkeypatch.setattr(long_sentences, "WHOLE_WORDS", 10**9)
    assert found() == limited


@pytest.mark.parametrize("kind", PARSERS)
def test_long_sentence_is_parsed_as_well_in_pieces(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = PARSERS[kind]()
    gold = long_sentence(500)

    def las() -> float:
        (tree,) = parser.parse([gold])
        assert check_tree(tree[0]) is None
        return evaluate([gold], [gold.with_tree(*tree)]).las

    in_pieces = las()
    monkeypatch.setattr(long_sentences, "WHOLE_WORDS", 10**9)
    assert in_pieces > las() - 1


@pytest.mark.parametrize("kind", PARSERS)
def test_long_sentences_do_not_depend_on_threads_or_neighbours(kind: str) -> None:
    parser = PARSERS[kind]()
    long, short = long_sentence(430), long_sentence(30, seed=1)
    alone = [(h.tolist(), labels) for h, labels in parser.parse([long], n_threads=1)]
    among = [(h.tolist(), labels) for h, labels in parser.parse([short, long, short], n_threads=2)]
    assert among[1:2] == alone


@pytest.mark.parametrize("kind", PARSERS)
def test_memory_of_a_parse_does_not_grow_with_the_square(kind: str) -> None:
    """numpy tells tracemalloc of its arrays: eight times the words, less than twelve times the peak
    (the square would be 64)."""
    parser = PARSERS[kind]()
    peaks = []
    for n in (400, 3200):
        sentence = long_sentence(n)
        list(parser.kbest([sentence], k=4, inventory=LabelInventory(parser.labels)))  # warm
        tracemalloc.start()
        list(parser.kbest([sentence], k=4, inventory=LabelInventory(parser.labels)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 12 * peaks[0]


@pytest.mark.parametrize("kind", PARSERS)
def test_no_search_sees_more_words_than_a_piece_has(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work of a search grows faster than its words; so it is their number that is bounded, and
    the number of searches grows with the words."""
    seen: list[int] = []
    parser = PARSERS[kind]()
    name = "_lists" if isinstance(parser, SamplingParser) else "_map"
    owner = SamplingParser if isinstance(parser, SamplingParser) else BiaffineParser
    inner = getattr(owner, name)

    def counted(self, sentences, *rest):
        sentences = list(sentences)
        seen.extend(map(len, sentences))
        return inner(self, sentences, *rest)

    monkeypatch.setattr(owner, name, counted)
    numbers = []
    for n in (1000, 2000, 4000):
        seen.clear()
        list(parser.parse([long_sentence(n)]))
        assert sum(seen) == n
        assert max(seen) <= PIECE_WORDS
        numbers.append(len(seen))
    assert numbers[0] <= 1000 // LEAST_WORDS
    assert numbers[2] <= 4 * numbers[0] + 4


# The combiner's trees over given lists


@pytest.mark.parametrize("seed", range(12))
def test_best_trees_of_a_long_list_are_those_of_all_its_arcs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no more words have a choice than may be chosen anew, nothing is lost."""
    rng = np.random.default_rng(seed)
    trees = random_list(rng, int(rng.integers(1, 5)), int(rng.integers(2, 12)))
    arcs = ListArcs.of(trees)
    scores = rng.normal(size=len(arcs))
    k = int(rng.integers(1, 8))
    whole = best_trees(arcs, scores, k)
    monkeypatch.setattr("tk_spacy.ensemble.combiner.reparsing.WHOLE_WORDS", 1)
    long = best_trees(arcs, scores, k)
    assert len(long) == len(whole)
    np.testing.assert_allclose(scores[long].sum(axis=1), scores[whole].sum(axis=1))
    assert {tuple(row) for row in long.tolist()} == {tuple(row) for row in whole.tolist()}


@pytest.mark.parametrize("seed", range(8))
def test_best_trees_of_a_long_list_are_trees_where_few_words_may_change(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    trees = random_list(rng, 6, 40)
    arcs = ListArcs.of(trees)
    scores = rng.normal(size=len(arcs))
    monkeypatch.setattr("tk_spacy.ensemble.combiner.reparsing.WHOLE_WORDS", 1)
    monkeypatch.setattr("tk_spacy.ensemble.combiner.reparsing.MOST_FREE", 5)
    found = best_trees(arcs, scores, 4)
    best = scores[arcs.of_tree].sum(axis=1).max()
    assert scores[found[0]].sum() >= best - 1e-9
    for row in found:
        assert check_tree(arcs.heads[row]) is None
    start = arcs.of_tree[scores[arcs.of_tree].sum(axis=1).argmax()]
    for row in found:
        assert (arcs.heads[row] != arcs.heads[start]).sum() <= 5


def free_above(head: int, heads: Sequence[int], free: Sequence[int]) -> int:
    """The first of a head and those above it that is free to change its own, else 0."""
    while head and head - 1 not in free:
        head = heads[head - 1]
    return head


@pytest.mark.parametrize("seed", range(30))
def test_best_trees_of_a_long_list_are_the_best_by_the_words_that_promise_most(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All combinations of the heads of the few words, with a head for each piece of the tree."""
    most_free, n = 3, 7
    rng = np.random.default_rng(seed)
    trees = random_list(rng, 4, n)
    arcs = ListArcs.of(trees)
    scores = rng.normal(size=len(arcs))
    monkeypatch.setattr("tk_spacy.ensemble.combiner.reparsing.WHOLE_WORDS", n - 1)
    monkeypatch.setattr("tk_spacy.ensemble.combiner.reparsing.MOST_FREE", most_free)
    found = best_trees(arcs, scores, 4)
    # By word: its heads, and of each the arc with the best label.
    best: list[dict[int, int]] = [{} for _ in range(n)]
    for arc, (word, head) in enumerate(zip(arcs.words.tolist(), arcs.heads.tolist(), strict=True)):
        if head not in best[word] or scores[arc] > scores[best[word][head]]:
            best[word][head] = arc
    start = max(range(len(trees)), key=lambda j: scores[arcs.of_tree[j]].sum())
    heads = trees.heads[start].tolist()
    gains = {
        word: max(scores[arc] for head, arc in own.items() if head != heads[word])
        - scores[own[heads[word]]]
        for word, own in enumerate(best)
        if len(own) > 1
    }
    free = sorted(gains, key=lambda word: gains[word], reverse=True)[:most_free]
    totals: dict[tuple[int, ...], float] = {}
    for choice in itertools.product(*(best[word] for word in free)):
        changed = list(heads)
        for word, head in zip(free, choice, strict=True):
            changed[word] = head
        if check_tree(np.array(changed, np.int32)) is None:
            total = sum(scores[best[word][head]] for word, head in enumerate(changed))
            pieces = tuple(free_above(head, heads, free) for head in choice)
            totals[pieces] = max(total, totals.get(pieces, -np.inf))
    np.testing.assert_allclose(scores[found].sum(axis=1), sorted(totals.values(), reverse=True)[:4])
    assert all(check_tree(arcs.heads[row]) is None for row in found)


@pytest.mark.parametrize("seed", range(8))
def test_of_equal_words_and_heads_of_a_long_list_the_first_are_taken(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    trees = random_list(rng, 6, 60, labels=1)
    arcs = ListArcs.of(trees)
    monkeypatch.setattr("tk_spacy.ensemble.combiner.reparsing.WHOLE_WORDS", 1)
    monkeypatch.setattr("tk_spacy.ensemble.combiner.reparsing.MOST_FREE", 5)
    scores = rng.integers(0, 3, size=len(arcs)).astype(np.float64)
    found = best_trees(arcs, scores, 20)
    pairs = zip(arcs.words.tolist(), arcs.heads.tolist(), strict=True)
    score = dict(zip(pairs, scores, strict=True))
    heads = trees.heads[scores[arcs.of_tree].sum(axis=1).argmax()].tolist()
    choices = [sorted(set(column)) for column in trees.heads.T.tolist()]
    gains = {
        word: max(score[word, head] for head in own if head != heads[word])
        - score[word, heads[word]]
        for word, own in enumerate(choices)
        if len(own) > 1
    }
    free = sorted(gains, key=lambda word: -gains[word])[:5]  # of equals the first
    root_is_free = heads.index(0) in free
    changed = set()
    for row in arcs.heads[found].tolist():
        changed |= {word for word in range(60) if row[word] != heads[word]}
        for word in free:
            above = free_above(row[word], heads, free)
            alike = [
                head
                for head in choices[word]
                if free_above(head, heads, free) == above and (head or root_is_free)
            ]
            assert row[word] == max(alike, key=lambda head: score[word, head])
    assert changed <= set(free)
    assert changed


# Files


@pytest.mark.slow
def test_rerank_and_kbest_of_a_long_sentence(tmp_path: Path) -> None:
    model = parsers_training()[0]
    gold = [long_sentence(30, seed=3), long_sentence(700), long_sentence(20, seed=4)]
    source = tmp_path / "in.conllu"
    write_conllu(source, gold)
    for command in ("rerank", "parse"):
        target = tmp_path / f"{command}.conllu"
        assert invoke(command, model, source, "-o", target).exit_code == 0
        found = load_treebank(target)
        assert [len(s) for s in found] == [30, 700, 20]
        assert all(check_tree(s.heads) is None for s in found)
        assert evaluate(gold, found).las > 40
    lists = tmp_path / "lists.conllu"
    assert invoke("kbest", model, source, "-o", lists, "--k", "5").exit_code == 0
    target = tmp_path / "of_lists.conllu"
    assert invoke("rerank", model, lists, "-o", target).exit_code == 0
    assert [len(s) for s in load_treebank(target)] == [30, 700, 20]


# Docs


def without_bounds(nlp: spacy.Language, sentence: Sentence) -> spacy.tokens.Doc:
    doc = doc_from_sentence(nlp.vocab, sentence)
    words = spacy.tokens.Doc(nlp.vocab, words=[token.text for token in doc])
    for token, tagged in zip(words, doc, strict=True):
        token.tag_, token.pos_ = tagged.tag_, tagged.pos_
        token.lemma_ = tagged.lemma_
        token.set_morph(tagged.morph)
    return words


@pytest.mark.parametrize("kind", PARSERS)
def test_component_warns_once_of_a_long_doc_without_bounds(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp = spacy.blank("xx")
    component = (
        add_parser(nlp, sampling_parsers.trained(), n_threads=1)
        if kind == "sampling"
        else add_biaffine(nlp, biaffine_parsers.trained())
    )
    events: list[str] = []
    parse = type(component.parser).parse
    monkeypatch.setattr(
        type(component.parser),
        "parse",
        lambda *args, **rest: events.append("parse") or parse(*args, **rest),
    )
    monkeypatch.setattr(warnings, "warn", lambda text, *_, **__: events.append(str(text)))
    usual = long_sentence(PIECE_WORDS)
    inner = tuple("," if form in FINAL else form for form in usual.forms)
    nlp(without_bounds(nlp, replace(usual, forms=inner)))
    bounded = doc_from_sentence(nlp.vocab, long_sentence(300))
    for token in bounded:
        token.is_sent_start = token.i % 100 == 0
    nlp(bounded)
    assert events == ["parse"] * 2
    events.clear()
    for _ in range(2):
        doc = nlp(without_bounds(nlp, long_sentence(300)))
        assert len(list(doc.sents)) == 1
    assert [event.partition(":")[0] for event in events] == [component.name, "parse", "parse"]
    assert "a Doc of 300 words has no sentence bounds" in events[0]


@pytest.mark.slow
def test_reranker_of_docs_chooses_in_pieces_and_warns_once() -> None:
    nlp = spacy.load(parsers_training()[0])
    reranker = next(pipe for _, pipe in nlp.pipeline if isinstance(pipe, TkReranker))
    gold = long_sentence(450)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        docs = [nlp(without_bounds(nlp, gold)) for _ in range(2)]
        assert sum("no sentence bounds" in str(item.message) for item in caught) == 1
    (record,) = docs[0]._.tk_reranker
    assert (record["start"], record["end"]) == (0, 450)
    assert 0 < record["confidence"] <= 1
    assert record["n_candidates"] > 3
    assert docs[0].to_array(["HEAD", "DEP"]).tolist() == docs[1].to_array(["HEAD", "DEP"]).tolist()
    # The reranker alone, after a parse without a warning, warns itself.
    parsed = without_bounds(nlp, gold)
    for _, pipe in nlp.pipeline:
        if pipe is reranker:
            break
        parsed = pipe(parsed)
    for _, pipe in nlp.components:
        if hasattr(pipe, "_warned"):
            pipe._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reranker(parsed)
        assert sum("no sentence bounds" in str(item.message) for item in caught) == 1
