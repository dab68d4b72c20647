"""The transition parser: moves of trees, search, scores, learning, lists, storage."""

from __future__ import annotations

import functools
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_transition import LEFT, RIGHT, SHIFT, SWAP, PlainState, plain_paths, replay

from tk_spacy.errors import ModelError, UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.transition.decoder import Scorer, decode, score_trees, scores_after
from tk_spacy.parsers.transition.learner import Learner
from tk_spacy.parsers.transition.oracle import moves_of
from tk_spacy.parsers.transition.parser import WEIGHTS, TransitionParser
from tk_spacy.parsers.transition.settings import TransitionSettings
from tk_spacy.parsers.transition.source import TransitionSource
from tk_spacy.parsers.transition.spec import TransitionSpec
from tk_spacy.parsers.transition.training import label_places, train_transition_parser
from tk_spacy.parsers.transition.words import Reading
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate
from tk_spacy.trees.crossing import crossing_arcs
from tk_spacy.trees.validity import check_tree
from tk_spacy.utils.serialization import from_npz, to_npz

SENTENCES = list(generate(200, seed=31))
NEW = list(generate(40, seed=32))
SMALL = TransitionSettings(epochs=3, bits=16, training_beam=4, beam=4)
MOVE_FEATURES = 103
"""Of a state, where no FEATS attribute has features of its own."""


@functools.cache
def trained(direction: str = "forward") -> TransitionParser:
    return train_transition_parser(SENTENCES, settings=replace(SMALL, direction=direction))


def scorer_of(parser: TransitionParser) -> Scorer:
    return Scorer(parser.move_weights, parser.label_weights, parser.places)


def random_tree(rng: np.random.Generator, n: int) -> np.ndarray:
    order = rng.permutation(n) + 1
    heads = np.zeros(n, dtype=np.int32)
    for i in range(1, n):
        heads[order[i] - 1] = order[rng.integers(i)]
    return heads


# Moves of trees


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_every_small_tree_has_moves_that_build_it(n: int) -> None:
    seen = set()
    for heads in product(range(n + 1), repeat=n):
        if heads.count(0) != 1 or check_tree(np.array(heads)) is not None:
            continue
        moves = moves_of(np.array(heads, dtype=np.int32))
        assert replay(moves, n).tolist() == list(heads)
        seen.add(tuple(moves.tolist()))
    assert len(seen) == {1: 1, 2: 2, 3: 9, 4: 64, 5: 625}[n]  # n ** (n - 1) trees


def test_random_and_made_up_trees_are_built() -> None:
    rng = np.random.default_rng(5)
    trees = [random_tree(rng, int(rng.integers(6, 25))) for _ in range(300)]
    trees += [sentence.heads for sentence in SENTENCES]
    for heads in trees:
        assert replay(moves_of(heads), len(heads)).tolist() == heads.tolist()
    assert any(SWAP in moves_of(sentence.heads) for sentence in SENTENCES)


def test_projective_trees_need_no_swap_and_have_one_sequence() -> None:
    """All sequences of legal moves without SWAP build different trees."""
    found: dict[tuple[int, ...], list[int]] = {}

    def go(done: list[int], n: int) -> None:
        state = PlainState(n)
        for move in done:
            state.make(move)
        if state.is_final:
            heads = tuple(state.heads[i] for i in range(1, n + 1))
            assert heads not in found
            found[heads] = done
            return
        for move in state.legal():
            if move != SWAP:
                go([*done, move], n)

    go([], 5)
    assert len(found) == 143  # projective trees of five words with a single root
    for heads, moves in found.items():
        assert moves_of(np.array(heads, dtype=np.int32)).tolist() == moves


def test_swaps_wait_for_the_projective_part() -> None:
    heads = np.array([3, 4, 0, 3], dtype=np.int32)  # 2 <- 4 crosses nothing, 1 <- 3 crosses 2 <- 4
    assert moves_of(heads).tolist() == [
        SHIFT, SHIFT, SHIFT, SWAP, LEFT, SHIFT, SHIFT, LEFT, RIGHT, RIGHT
    ]  # fmt: skip


@pytest.mark.parametrize("heads", [[2, 1], [0, 0], [1]])
def test_no_moves_for_what_is_no_tree(heads: list[int]) -> None:
    with pytest.raises(ValueError, match="expected a tree with one root"):
        moves_of(np.array(heads, dtype=np.int32))


# Search and scores


def candidate(sentence: Sentence, heads: Any, labels: Any, names: tuple[str, ...]) -> CandidateList:
    inventory = LabelInventory(names)
    heads = np.array(heads, dtype=np.int32)
    return CandidateList.from_arrays(
        heads, np.array(labels, dtype=np.int32), np.zeros((len(heads), 1)),
        inventory=inventory, sources=("x",),
    )  # fmt: skip


def test_a_wide_beam_finds_all_trees() -> None:
    """Three words: 9 trees with all labels of a treebank that has three, scored one by one."""
    few = [
        sentence.with_tree(
            sentence.heads,
            ["root" if head == 0 else "xy"[i % 2] for i, head in enumerate(sentence.heads)],
        )
        for sentence in SENTENCES[:30]
    ]
    parser = train_transition_parser(few, settings=SMALL)
    assert parser.labels == ("root", "x", "y")
    sentence = Sentence.from_columns(forms="abc", upos=["NOUN", "VERB", "NOUN"])
    trees, labels = [], []
    for heads in product(range(4), repeat=3):
        if heads.count(0) == 1 and check_tree(np.array(heads)) is None:
            for ids in product(*((0,) if head == 0 else (1, 2) for head in heads)):
                trees.append(heads)
                labels.append(ids)
    assert len(trees) == 36
    found = candidate(sentence, trees, labels, parser.labels)
    expected = parser.score([sentence], [found])[0]
    corpus = parser.reading.encode([sentence])
    heads, ids, scores, counts = decode(
        scorer_of(parser), corpus.fields, corpus.starts, corpus.lengths, width=4000,
        n_labels_tried=2, k=40,
    )  # fmt: skip
    assert counts.tolist() == [36]
    own = {(*heads[1:4, j].tolist(), *ids[1:4, j].tolist()): scores[0, j] for j in range(36)}
    assert own == {
        (*found.heads[j].tolist(), *found.labels[j].tolist()): expected[j] for j in range(36)
    }


@pytest.mark.parametrize("most", [12, 40])
def test_beam_1_is_a_greedy_loop(most: int) -> None:
    parser = trained()
    scorer = scorer_of(parser)
    sentences = [sentence for sentence in NEW if len(sentence) <= most]
    assert sentences
    corpus = parser.reading.encode(sentences)
    heads, labels, scores, _ = decode(scorer, corpus.fields, corpus.starts, corpus.lengths, width=1)
    for i, sentence in enumerate(sentences):
        state = PlainState(len(sentence))
        moves: list[int] = []
        given: list[int] = []
        total = 0.0
        while not state.is_final:
            of_moves, of_labels = scores_after(scorer, corpus.fields[corpus.rows(i)], moves, given)
            options = []
            for move in state.legal():
                label, of_label = -1, 0.0
                if move in (LEFT, RIGHT):
                    under_root = move == RIGHT and len(state.stack) == 2
                    may = (parser.places & (1 if under_root else 2)) > 0
                    row = np.where(may, of_labels[move - LEFT], -np.inf)
                    label = int(np.argmax(row))
                    of_label = float(row[label])
                options.append((total + (float(of_moves[move]) + of_label), -move, label))
            total, turned, label = max(options, key=lambda option: option[:2])
            moves.append(-turned)
            given.append(label)
            state.make(-turned, label)
        rows = corpus.rows(i)
        words = range(1, len(sentence) + 1)
        assert heads[rows, 0][1:-1].tolist() == [state.heads[m] for m in words]
        assert labels[rows, 0][1:-1].tolist() == [state.labels[m] for m in words]
        assert scores[i, 0] == total


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_lists_scores_are_those_of_the_trees(direction: str) -> None:
    parser = trained(direction)
    inventory = LabelInventory()
    lists = list(parser.kbest(NEW, k=8, inventory=inventory))
    for trees, scores in zip(lists, parser.score(NEW, lists), strict=True):
        assert scores.tolist() == trees.scores[:, 0].tolist()
        assert (np.diff(scores) <= 0).all()
        assert len({row.tobytes() for row in np.hstack([trees.heads, trees.labels])}) == len(trees)
        assert ((trees.heads == 0).sum(axis=1) == 1).all()
        assert all(check_tree(heads) is None for heads in trees.heads)
    assert np.mean([len(trees) for trees in lists]) > 7


def test_the_best_tree_has_the_beams_score() -> None:
    """Where its moves are the oracle's."""
    parser = trained()
    corpus = parser.reading.encode(NEW)
    scorer = scorer_of(parser)
    heads, labels, scores, _ = decode(scorer, corpus.fields, corpus.starts, corpus.lengths, width=4)
    owners = np.arange(len(NEW) + 1, dtype=np.int32)
    cells = np.ones(len(heads), dtype=bool)
    cells[corpus.starts + corpus.lengths - 1] = False
    again = score_trees(
        scorer, corpus.fields, corpus.starts, corpus.lengths, owners, heads[cells, 0],
        labels[cells, 0],
    )  # fmt: skip
    # A beam may also come to a tree by SWAPs that the oracle does without.
    same = again == scores[:, 0]
    projective = [
        not any(crossing_arcs(heads[corpus.rows(i), 0][1:-1].tolist())) for i in range(len(NEW))
    ]
    assert sum(projective) > 20
    assert same[projective].mean() > 0.9


def test_an_unknown_label_has_no_score() -> None:
    parser = trained()
    sentence = NEW[0]
    known = CandidateList.build(
        [(sentence.heads, sentence.deprels, 0.0)], inventory=LabelInventory(), sources=("x",)
    )
    other = CandidateList.build(
        [(sentence.heads, ["new"] * len(sentence), 0.0)],
        inventory=LabelInventory(), sources=("x",),
    )  # fmt: skip
    first, second = parser.score([sentence, sentence], [known, other])
    assert np.isfinite(first).all()
    assert np.isnan(second).all()


def test_nothing_depends_on_threads_or_company() -> None:
    parser = trained()
    one = list(parser.kbest(NEW, k=5, inventory=LabelInventory(parser.labels), n_threads=1))
    three = list(parser.kbest(NEW, k=5, inventory=LabelInventory(parser.labels), n_threads=3))
    alone = [
        next(parser.kbest([sentence], k=5, inventory=LabelInventory(parser.labels)))
        for sentence in NEW
    ]
    for a, b, c in zip(one, three, alone, strict=True):
        for other in (b, c):
            assert a.heads.tobytes() == other.heads.tobytes()
            assert a.labels.tobytes() == other.labels.tobytes()
            assert a.scores.tobytes() == other.scores.tobytes()


def test_parse_gives_the_best_of_the_list_and_a_long_sentence_is_cut() -> None:
    parser = trained()
    long = Sentence.from_columns(forms=["a"] * 300, upos=["NOUN"] * 300)
    heads, labels = next(iter(parser.parse([long])))
    assert check_tree(heads) is None
    assert (heads == 0).sum() == 1
    assert set(labels) <= set(parser.labels)
    lists = parser.kbest(NEW, k=2, inventory=LabelInventory())
    same = sum(
        heads.tolist() == trees.heads[0].tolist()
        for (heads, _), trees in zip(parser.parse(NEW), lists, strict=True)
    )
    assert same >= len(NEW) - 4


# Learning


def test_a_first_update_by_hand() -> None:
    """One sentence of two words: before it all weights are 0, and the first label wins."""
    sentence = Sentence.from_columns(
        forms=["a", "b"], upos=["X", "Y"], heads=[2, 0], deprels=["z", "root"]
    )
    reading = Reading.fit([sentence], xpos=True, backward=False, n_feats=0)
    assert reading.labels == ("root", "z")
    corpus = reading.encode([sentence], with_trees=True)
    learner = Learner(16, np.array([1, 2], dtype=np.uint8))
    given = (corpus.fields, corpus.heads, corpus.labels, 1)
    # Beam 1 and equal scores: the first legal move in the order SHIFT, SWAP, LEFT, RIGHT, so the
    # search shifts twice and swaps, where the gold move is LEFT.
    assert not learner.learn(*given)
    moves = learner.move_weights.reshape(-1, 4)
    assert moves[:, SWAP].sum() == -moves[:, LEFT].sum() < 0
    assert not moves[:, [SHIFT, RIGHT]].any()
    first = learner.move_weights.copy()
    assert learner.learn(*given)  # it is right: nothing changes
    assert (learner.move_weights == first).all()
    assert (learner.averaged()[0] == first).all()  # as they were after each sentence
    other = np.array([0, 0, 1, 0], dtype=np.int32), np.array([-1, 0, 1, -1], dtype=np.int32)
    assert not learner.learn(corpus.fields, *other, 1)
    assert np.allclose(learner.averaged()[0], (2 * first + learner.move_weights) / 3)


def test_a_wrong_label_is_learnt_from_where_all_moves_are_right() -> None:
    sentence = Sentence.from_columns(
        forms=["a", "b"], upos=["X", "Y"], heads=[2, 0], deprels=["z", "root"]
    )
    corpus = Reading.fit([sentence], xpos=True, backward=False, n_feats=0).encode(
        [sentence], with_trees=True
    )
    learner = Learner(16, np.array([1, 2, 2], dtype=np.uint8))
    heads = np.array([0, 2, 0, 0], dtype=np.int32)
    first, second = (np.array([-1, label, 0, -1], dtype=np.int32) for label in (1, 2))
    assert not learner.learn(corpus.fields, heads, first, 1)
    assert learner.learn(corpus.fields, heads, first, 1)
    moves = learner.move_weights.copy()
    # The same tree with the other label: its moves are found, the label is not.
    assert not learner.learn(corpus.fields, heads, second, 1)
    assert (learner.move_weights == moves).all()
    assert learner.learn(corpus.fields, heads, second, 1)
    assert not learner.learn(corpus.fields, heads, first, 1)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_it_learns_from_where_the_best_state_is_furthest_ahead(width: int) -> None:
    """The sums of all weights of each move change as a plain beam search says."""
    few = [sentence for sentence in SENTENCES if len(sentence) < 9][:25]
    reading = Reading.fit(few, xpos=True, backward=False, n_feats=0)
    corpus = reading.encode(few, with_trees=True)
    places = label_places(corpus, len(reading.labels))
    learner = Learner(18, places)
    learnt, ends = 0, set()
    for i, sentence in enumerate(few):
        rows = corpus.rows(i)
        state, gold = PlainState(len(sentence)), []
        for move in moves_of(sentence.heads).tolist():
            word = state.stack[-2 if move == LEFT else -1]
            label = reading.label_id(sentence.deprels[word - 1]) if move >= LEFT else -1
            gold.append((move, label))
            state.make(move, label)
        scorer = Scorer(learner.move_weights.copy(), learner.label_weights.copy(), places)
        right, wrong = plain_paths(scorer, corpus.fields[rows], gold, places, width)
        before = learner.move_weights.reshape(-1, 4).sum(axis=0, dtype=np.float64)
        was_found = learner.learn(
            corpus.fields[rows], corpus.heads[rows], corpus.labels[rows], width
        )
        after = learner.move_weights.reshape(-1, 4).sum(axis=0, dtype=np.float64)
        assert was_found == (right == wrong == [])
        count = [sum(m == move for m, _ in right) - sum(m == move for m, _ in wrong)
                 for move in range(4)]  # fmt: skip
        assert (after - before).tolist() == [MOVE_FEATURES * c for c in count]
        learnt += not was_found
        ends.add(len(right) == len(gold))
    assert learnt > 10
    assert ends == {True, False}


def test_it_tells_how_many_sentences_it_knew_in_each_epoch() -> None:
    curve = trained().about["curve"]
    assert curve["of"] == "training sentences parsed right, %"
    assert len(curve["values"]) == SMALL.epochs
    assert 0 <= curve["values"][0] < curve["values"][-1] <= 100


def test_it_learns_its_own_sentences() -> None:
    parser = train_transition_parser(
        SENTENCES[:60], settings=replace(SMALL, epochs=15, bits=18, training_beam=8, beam=8)
    )
    right = sum(
        heads.tolist() == sentence.heads.tolist()
        for (heads, _), sentence in zip(parser.parse(SENTENCES[:60]), SENTENCES, strict=False)
    )
    assert right > 50


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_it_learns_what_holds_of_new_sentences(direction: str) -> None:
    words = sum(map(len, NEW))
    parsed = list(trained(direction).parse(NEW))
    right = sum(
        int((heads == sentence.heads).sum())
        for (heads, _), sentence in zip(parsed, NEW, strict=True)
    )
    assert right / words > 0.6


def mirrored(sentence: Sentence) -> Sentence:
    """The words from right to left, with the same tree."""
    n = len(sentence)
    heads = [head and n + 1 - head for head in sentence.heads.tolist()]
    columns = ("forms", "lemmas", "upos", "xpos", "feats", "deprels")
    return Sentence.from_columns(
        heads=heads[::-1], **{name: getattr(sentence, name)[::-1] for name in columns}
    )


def test_backward_is_forward_on_mirrored_sentences() -> None:
    backward = trained("backward")
    forward = train_transition_parser([mirrored(s) for s in SENTENCES], settings=SMALL)
    assert forward.move_weights.tobytes() == backward.move_weights.tobytes()
    assert forward.label_weights.tobytes() == backward.label_weights.tobytes()
    turned = forward.parse([mirrored(s) for s in NEW])
    for sentence, (heads, labels), other in zip(NEW, backward.parse(NEW), turned, strict=True):
        expected = mirrored(mirrored(sentence).with_tree(*other))
        assert heads.tolist() == expected.heads.tolist()
        assert labels == expected.deprels


def test_same_seed_same_bytes() -> None:
    again = train_transition_parser(SENTENCES, settings=SMALL)
    assert again.to_bytes() == trained().to_bytes()
    other = train_transition_parser(SENTENCES, settings=replace(SMALL, seed=1))
    assert other.to_files()[WEIGHTS] != again.to_files()[WEIGHTS]


def test_no_sentence_and_no_tree_are_refused() -> None:
    with pytest.raises(ValueError, match="no training sentence"):
        train_transition_parser([])
    with pytest.raises(ValueError, match="sentence 1 has no tree"):
        train_transition_parser([Sentence.from_columns(forms=["a"])], settings=SMALL)


def test_one_word_sentences_are_enough() -> None:
    word = Sentence.from_columns(forms=["a"], heads=[0], deprels=["root"])
    parser = train_transition_parser([word], settings=SMALL)
    two = Sentence.from_columns(forms=["a", "b"])
    heads, labels = next(iter(parser.parse([two])))
    assert sorted(heads.tolist()) in ([0, 1], [0, 2])
    assert labels == ("root", "root")


# Settings, storage, spec


def test_settings_are_checked() -> None:
    for changes, message in (
        ({"direction": "up"}, "direction is 'up'; choose from forward, backward"),
        ({"beam": 0}, "beam is 0"),
        ({"feats": 17}, "feats is 17"),
        ({"width": 3}, "unknown settings: width"),
    ):
        with pytest.raises(UserError, match=message):
            TransitionSettings.from_dict(changes)
    assert TransitionSettings.from_dict(SMALL.to_dict()) == SMALL


def test_storage_round_trip(tmp_path: Path) -> None:
    parser = trained("backward")
    parser.to_disk(tmp_path / "parser")
    again = TransitionParser.from_disk(tmp_path / "parser")
    assert again.to_bytes() == parser.to_bytes()
    for (a, b), (c, d) in zip(parser.parse(NEW), again.parse(NEW), strict=True):
        assert (a.tolist(), b) == (c.tolist(), d)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("places", lambda a: a[:-1]),
        ("places", lambda a: a + 4),
        ("moves_ids", lambda a: a + np.uint32(1 << 16)),
        ("labels_values", lambda a: a * np.float32(np.inf)),
        ("labels_values", lambda a: a.astype(np.float64)),
        ("moves_values", lambda a: a * np.float32(1e30)),
    ],
)
def test_damaged_weights_are_refused(name: str, change: Any) -> None:
    files = trained().to_files()
    arrays = from_npz(files[WEIGHTS])
    arrays[name] = change(arrays[name])
    with pytest.raises(ModelError, match="damaged or incomplete"):
        TransitionParser.from_files({**files, WEIGHTS: to_npz(arrays)})


def test_the_source_is_called_as_it_was_asked_for() -> None:
    spec = TransitionSpec.from_settings({"direction": "backward"}, name="transition-x")
    source = TransitionSpec.source_of(
        trained(), inventory=LabelInventory(), n_threads=1, name=spec.name
    )
    assert isinstance(source, TransitionSource)
    lists = list(source.candidates(NEW[:3], k=3))
    assert [trees.sources for trees in lists] == [("transition-x",)] * 3
    assert [s.shape for s in source.score(NEW[:3], lists)] == [(len(t), 1) for t in lists]
    assert set(source.columns) <= {"LEMMA", "UPOS", "XPOS", "FEATS"}


def test_the_estimate_grows_with_what_is_done() -> None:
    spec = TransitionSpec.from_settings({})
    twice = TransitionSpec.from_settings({"epochs": 2 * spec.settings.epochs})
    assert twice.seconds(1000) == pytest.approx(2 * spec.seconds(1000))
    assert spec.training_key() == TransitionSpec.from_settings({"beam": 5}).training_key()
    assert spec.search_key() != TransitionSpec.from_settings({"beam": 5}).search_key()


def test_the_component_parses_and_is_stored(tmp_path: Path) -> None:
    import spacy

    from tk_spacy.pipeline.tk_transition import add_transition
    from tk_spacy.spacy_io.conversion import doc_from_sentence

    nlp = spacy.blank("xx")
    add_transition(nlp, trained())
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    heads, _ = next(iter(trained().parse(NEW[:1])))
    for pipeline in (nlp, again):
        doc = pipeline.get_pipe("tk_transition")(doc_from_sentence(pipeline.vocab, NEW[0]))
        found = [0 if token.head is token else token.head.i + 1 for token in doc]
        assert [0 if head == i + 1 else head for i, head in enumerate(found)] == heads.tolist()
    again(" \n")  # white space lacks nothing
    with pytest.warns(UserWarning, match=r"parser uses TAG, POS, MORPH, LEMMA, which a Doc lacks"):
        again("ba be bi")
