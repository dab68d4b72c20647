"""The projective parser: parts, exact k-best search, pruning, learning, lists, storage."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_parts import Tree, nearer_sibling, parts_of_tree, projective_trees, score

from tk_spacy.errors import ModelError, UserError
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.projective.decoder import Scorer, decode, kept_heads, score_trees
from tk_spacy.parsers.projective.inspection import arc_marginals, best_of_parts, parts_of
from tk_spacy.parsers.projective.labels import Labeller, label_trees
from tk_spacy.parsers.projective.learner import LabelLearner, Learner
from tk_spacy.parsers.projective.marks import Marks
from tk_spacy.parsers.projective.parser import WEIGHTS, ProjectiveParser, make_scorer
from tk_spacy.parsers.projective.settings import ProjectiveSettings
from tk_spacy.parsers.projective.source import ProjectiveSource
from tk_spacy.parsers.projective.spec import ProjectiveSpec
from tk_spacy.parsers.projective.training import label_places, train_projective_parser
from tk_spacy.parsers.sampling.search.words import Corpus, encode
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate
from tk_spacy.trees.crossing import crossing_arcs
from tk_spacy.trees.validity import check_tree
from tk_spacy.utils.serialization import from_npz, to_npz

SENTENCES = list(generate(200, seed=31))
NEW = list(generate(40, seed=32))
SMALL = ProjectiveSettings(epochs=3, bits=16, label_bits=16, pruner_bits=16)


@functools.cache
def trained() -> ProjectiveParser:
    return train_projective_parser(SENTENCES, settings=SMALL)


def scorer_of(parser: ProjectiveParser) -> Scorer:
    return make_scorer(parser.settings, parser.weights, parser.pruner, parser.schema)


Scores = dict[tuple[str, tuple[int, ...]], float]


# Exact search


def all_arcs(n: int) -> list[list[int]]:
    return [[h for h in range(n + 1) if h != m] for m in range(1, n + 1)]


def some_arcs(rng: np.random.Generator, n: int) -> list[list[int]]:
    """Arcs of one projective tree and some more."""
    trees = projective_trees(n)
    heads = trees[rng.integers(len(trees))]
    return [
        [h for h in range(n + 1) if h != m and (h == heads[m - 1] or rng.random() < 0.4)]
        for m in range(1, n + 1)
    ]


def random_scores(rng: np.random.Generator, *, whole: bool = False) -> Scores:
    """A score of every part, made when it is asked for; whole numbers have many ties."""
    return defaultdict(lambda: float(rng.integers(-2, 3)) if whole else float(rng.normal()))


def search(kept: list[list[int]], scores: Scores, k: int) -> tuple[list[Tree], list[float]]:
    """The decoder's trees by scores of all parts."""
    n = len(kept)
    first = np.array([0, 0, *np.cumsum([len(heads) for heads in kept])], dtype=np.int32)
    heads = np.array([h for own in kept for h in own], dtype=np.int32)
    arcs, chains, triples = parts_of(first, heads)
    root = [
        scores["arc", (0, m)] + scores["sibling", (0, n + 1, m)] if h == 0 else 0.0
        for h, m in arcs.tolist()
    ]
    of_chains = [
        scores["arc", (h, m)] + scores["sibling", (h, s, m)] + scores["grandparent", (g, h, m)]
        + scores["grand-sibling", (g, h, s, m)]
        for g, h, s, m in chains.tolist()
    ]  # fmt: skip
    of_triples = [scores["tri-sibling", tuple(part)] for part in triples.tolist()]
    trees, totals = best_of_parts(
        first, heads,
        *(np.array(values, dtype=np.float32) for values in (root, of_chains, of_triples)), k=k,
    )  # fmt: skip
    return [tuple(tree) for tree in trees.tolist()], totals.tolist()


def test_projective_trees_are_counted() -> None:
    """With one root: n = 1 to 6, OEIS A006013."""
    assert [len(projective_trees(n)) for n in range(1, 7)] == [1, 2, 7, 30, 143, 728]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("pruned", [False, True])
def test_lists_are_those_of_enumeration(n: int, pruned: bool) -> None:
    rng = np.random.default_rng((n, pruned))
    for _ in range(12 if pruned else 5):
        kept = some_arcs(rng, n) if pruned else all_arcs(n)
        scores = random_scores(rng)
        possible = {
            tree: score(tree, scores)
            for tree in projective_trees(n)
            if all(h in own for h, own in zip(tree, kept, strict=True))
        }
        expected = sorted(possible, key=lambda tree: -possible[tree])
        for k in (1, 2, 10, len(projective_trees(n)) + 3):
            trees, totals = search(kept, scores, k)
            assert trees == expected[:k]
            assert totals == pytest.approx([possible[tree] for tree in trees], abs=1e-4)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_trees_of_equal_scores_are_all_found_once(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        scores = random_scores(rng, whole=True)
        possible = {tree: score(tree, scores) for tree in projective_trees(n)}
        for k in (7, len(possible)):
            trees, totals = search(all_arcs(n), scores, k)
            assert len(set(trees)) == len(trees) == min(k, len(possible))
            assert totals == [possible[tree] for tree in trees]
            assert totals == sorted(possible.values(), reverse=True)[:k]


def test_no_tree_where_the_arcs_form_none() -> None:
    assert search([[2], [1]], random_scores(np.random.default_rng(0)), 3) == ([], [])


def test_a_known_tree_has_these_parts() -> None:
    """he <- gave -> her, gave -> book -> a: 2 0 2 5 2."""
    heads = (2, 0, 2, 5, 2)
    assert [nearer_sibling(heads, m) for m in range(1, 6)] == [6, 6, 6, 6, 3]
    parts = parts_of_tree(heads)
    assert ("grand-sibling", (0, 2, 3, 5)) in parts
    assert ("tri-sibling", (2, 6, 3, 5)) in parts
    assert ("grandparent", (2, 5, 4)) in parts
    assert len(parts) == 2 * 5 + 2 * 4 + 1


# Pruning


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_marginals_are_those_of_enumeration(n: int) -> None:
    scores = np.random.default_rng(n).normal(size=(n + 1, n + 1)) * 2
    weights = {
        tree: np.exp(sum(scores[h, m] for m, h in enumerate(tree, 1)))
        for tree in projective_trees(n)
    }
    expected = np.zeros((n + 1, n + 1))
    for tree, weight in weights.items():
        for m, h in enumerate(tree, 1):
            expected[h, m] += weight / sum(weights.values())
    assert arc_marginals(scores) == pytest.approx(expected)


def test_the_pruner_keeps_its_best_tree_and_gold_heads() -> None:
    parser = trained()
    corpus = encode(parser.schema, NEW, with_trees=True)
    where = (corpus.fields, corpus.starts, corpus.lengths)
    few = replace(parser.settings, max_heads=1, least=1.0)
    scorer = make_scorer(few, parser.weights, parser.pruner, parser.schema)
    kept, first = kept_heads(scorer, *where)
    assert len(decode(scorer, *where)[2]) == decode(scorer, *where)[2].sum() == len(NEW)
    assert 1 <= np.diff(first)[words_of(corpus)].max() <= 2
    with_gold, at = kept_heads(scorer, *where, gold_heads=corpus.heads)
    for row in np.flatnonzero(words_of(corpus)).tolist():
        own = with_gold[at[row] : at[row + 1]].tolist()
        assert own == sorted({corpus.heads[row], *kept[first[row] : first[row + 1]].tolist()})


def words_of(corpus: Corpus) -> np.ndarray:
    rows = np.ones(len(corpus.fields), dtype=bool)
    rows[corpus.starts] = rows[corpus.starts + corpus.lengths - 1] = False
    return rows


def test_heads_kept_before_are_searched_as_those_kept_now() -> None:
    parser = trained()
    corpus = encode(parser.schema, NEW)
    where = (corpus.fields, corpus.starts, corpus.lengths)
    scorer = scorer_of(parser)
    now = decode(scorer, *where, k=4)
    before = decode(scorer, *where, k=4, kept=kept_heads(scorer, *where))
    for a, b in zip(now, before, strict=True):
        assert a.tobytes() == b.tobytes()
    some = np.array([7, 2], dtype=np.int32)
    heads, scores, counts = decode(scorer, *where, some, k=4)
    assert scores.tobytes() == now[1][some].tobytes()
    assert counts.tolist() == now[2][some].tolist()
    assert heads[: corpus.lengths[7]].tobytes() == now[0][corpus.rows(7)].tobytes()


def test_a_long_sentence_keeps_fewer_heads() -> None:
    """All weights are 0, so all heads are alike and every cell is there."""
    parser = trained()
    empty = replace(parser, pruner=np.zeros_like(parser.pruner), settings=replace(SMALL, least=0.0))
    long = Sentence.from_columns(forms=["a"] * 250, upos=["NOUN"] * 250)
    wide = replace(empty.settings, max_heads=200)
    corpus = encode(parser.schema, [long])
    scorer = make_scorer(wide, parser.weights, empty.pruner, parser.schema)
    _, first = kept_heads(scorer, corpus.fields, corpus.starts, corpus.lengths)
    assert 1 <= np.diff(first).max() < 100
    widest = Scorer(
        parser.weights, empty.pruner, max_heads=2**31 - 1, least=0.0,
        morph_end=parser.schema.n_columns,
    )  # fmt: skip
    _, first = kept_heads(widest, corpus.fields, corpus.starts, corpus.lengths)
    assert 1 <= np.diff(first).max() < 100


# Scores, learning, labels


def test_the_search_finds_what_the_scores_of_trees_say() -> None:
    """Of all trees of five words the list is the best ones by `score_trees`."""
    parser = trained()
    all_kept = replace(parser.settings, max_heads=6, least=0.0)
    scorer = make_scorer(all_kept, parser.weights, parser.pruner, parser.schema)
    sentences = [Sentence.from_columns(forms=s.forms[:5], upos=s.upos[:5]) for s in NEW[:10]]
    corpus = encode(parser.schema, sentences)
    where = (corpus.fields, corpus.starts, corpus.lengths)
    trees = np.array([(0, *tree) for tree in projective_trees(5)], dtype=np.int32)
    owners = (len(trees) * np.arange(len(sentences) + 1)).astype(np.int32)
    expected = score_trees(scorer, *where, owners, np.tile(trees.ravel(), len(sentences)))
    heads, scores, counts = decode(scorer, *where, k=len(trees))
    assert (counts == len(trees)).all()
    for i, row in enumerate(expected.reshape(len(sentences), -1)):
        found = heads[corpus.rows(i)][1:-1].T
        place = {tuple(tree[1:]): score for tree, score in zip(trees.tolist(), row, strict=True)}
        assert [place[tuple(tree)] for tree in found.tolist()] == scores[i].tolist()
        assert scores[i] == pytest.approx(np.sort(row)[::-1])


def test_wrong_arcs_gain_their_cost_in_the_search_alone() -> None:
    """The rivals that the gold tree must outscore: best by score and wrong heads together."""
    parser = trained()
    all_kept = replace(parser.settings, max_heads=6, least=0.0)
    scorer = make_scorer(all_kept, parser.weights, parser.pruner, parser.schema)
    sentence = Sentence.from_columns(forms=NEW[0].forms[:5], upos=NEW[0].upos[:5])
    corpus = encode(parser.schema, [sentence])
    where = (corpus.fields, corpus.starts, corpus.lengths)
    trees = projective_trees(5)
    cells = np.array([(0, *tree) for tree in trees], dtype=np.int32)
    plain = score_trees(scorer, *where, np.array([0, len(trees)]), cells.ravel())
    gold = trees[int(plain.argsort()[len(trees) // 2])]
    wrong = np.array([sum(h != g for h, g in zip(tree, gold, strict=True)) for tree in trees])
    for cost in (0.5, 20.0):
        heads, scores, counts = decode(
            scorer, *where, k=6, gold_heads=np.array([0, *gold, 0], dtype=np.int32), cost=cost
        )
        assert counts.tolist() == [6]
        own = [trees.index(tuple(tree)) for tree in heads[1:-1].T.tolist()]
        with_cost = plain + cost * wrong
        assert with_cost[own] == pytest.approx(np.sort(with_cost)[::-1][:6], abs=1e-4)
        assert scores[0] == pytest.approx(with_cost[own], abs=1e-4)


def test_an_update_makes_the_margin_right_and_no_more() -> None:
    """The gold tree outscores both others by their wrong heads, one of them exactly."""
    learner = Learner(size=1 << 16, C=np.inf, morph_end=4)
    schema = Schema.fit(SENTENCES)
    sentence = Sentence.from_columns(
        forms=["a", "b", "c"], upos=["X", "Y", "Z"], heads=[2, 0, 2], deprels=["x", "root", "x"]
    )
    corpus = encode(schema, [sentence], with_trees=True)
    others = np.array([[0, 0], [2, 3], [3, 3], [0, 0], [0, 0]], dtype=np.int32)
    fields = np.ascontiguousarray(corpus.fields)
    assert learner.learn(fields, corpus.heads, others)
    scorer = Scorer(
        learner.weights, np.zeros(2, dtype=np.float32), max_heads=3, least=0.0, morph_end=4
    )
    trees = np.array([[0, 2, 0, 2], [0, 2, 3, 0], [0, 3, 3, 0]], dtype=np.int32)
    scores = score_trees(
        scorer, fields, corpus.starts, corpus.lengths, np.array([0, 3]), trees.ravel()
    )
    margins = scores[0] - scores[1:]
    assert (margins >= [2 - 1e-3, 3 - 1e-3]).all()
    assert (margins - [2, 3]).min() == pytest.approx(0, abs=1e-3)
    before = learner.weights.copy()
    assert not learner.learn(fields, corpus.heads, others[:, :1].copy())
    assert not learner.learn(fields, corpus.heads, corpus.heads[:, None].copy())
    assert (learner.weights == before).all()
    assert np.allclose(learner.averaged(), before)


def test_a_label_learns_to_outscore_the_others() -> None:
    schema = Schema.fit(SENTENCES)
    corpus = encode(schema, SENTENCES[:1], with_trees=True)
    labels = np.maximum(corpus.labels - 3, -1).astype(np.int32)
    places = label_places(corpus.heads, labels, len(schema.labels))
    learner = LabelLearner(size=1 << 18, places=places, C=np.inf, morph_end=schema.n_columns)
    updates = -1
    while learner.updates != updates:
        updates = learner.updates
        learner.learn(corpus.fields, corpus.heads, labels)
    labeller = Labeller(learner.weights, places, morph_end=schema.n_columns)
    found, less = label_trees(
        labeller, corpus.fields, corpus.starts, corpus.lengths, np.array([0, 1]),
        corpus.heads[:-1], labels[:-1],
    )  # fmt: skip
    assert found[1:].tolist() == labels[1:-1].tolist()
    assert less.tolist() == [0.0]


def test_labels_that_are_given_are_what_others_are_judged_beside() -> None:
    """The best label of a word depends on the one that its head was given."""
    parser = trained()
    corpus = encode(parser.schema, NEW, with_trees=True)
    where = (corpus.fields, corpus.starts, corpus.lengths)
    labeller = Labeller(parser.label_weights, parser.places, morph_end=parser.schema.n_columns)
    trees = np.concatenate([corpus.heads[corpus.rows(i)][:-1] for i in range(len(NEW))])
    owners = np.arange(len(NEW) + 1)
    own, none_less = label_trees(labeller, *where, owners, trees)
    again, less = label_trees(labeller, *where, owners, trees, own)
    assert again.tolist() == own.tolist()
    assert none_less.tolist() == less.tolist() == [0.0] * len(NEW)
    changed = 0
    for label in range(len(parser.schema.labels)):
        found, less = label_trees(
            labeller, *where, owners, trees, np.where(own < 0, own, label).astype(np.int32)
        )
        changed += int((found != own).sum())
        assert (less <= 0).all()
    assert changed > 0


def test_it_learns_its_own_sentences_and_new_ones() -> None:
    words = right = 0
    for (heads, labels), sentence in zip(trained().parse(NEW), NEW, strict=True):
        assert check_tree(heads) is None
        right += sum(
            h == g and a == b
            for h, g, a, b in zip(heads, sentence.heads, labels, sentence.deprels, strict=True)
        )
        words += len(sentence)
    assert right / words > 0.6
    parser = train_projective_parser(SENTENCES[:40], settings=replace(SMALL, epochs=12, bits=18))
    same = sum(
        (heads.tolist(), labels) == (sentence.heads.tolist(), sentence.deprels)
        for (heads, labels), sentence in zip(
            parser.parse(SENTENCES[:40]), SENTENCES[:40], strict=True
        )
    )
    assert same >= 36


def test_crossing_arcs_are_learnt_and_found() -> None:
    """Every sentence has the same tree, in which 1 <- 3 crosses 2 <- 4."""
    sentence = Sentence.from_columns(
        forms=["a", "b", "c", "d"], upos=["P", "Q", "R", "S"],
        heads=[3, 4, 4, 0], deprels=["v", "w", "x", "root"],
    )  # fmt: skip
    assert any(crossing_arcs(sentence.heads))
    parser = train_projective_parser([sentence] * 5, settings=SMALL)
    assert parser.labels == ("root", "v", "w", "x")
    heads, labels = next(iter(parser.parse([sentence])))
    assert (heads.tolist(), labels) == (sentence.heads.tolist(), sentence.deprels)
    trees = next(iter(parser.kbest([sentence], k=5, inventory=LabelInventory())))
    assert sum(any(crossing_arcs(heads)) for heads in trees.heads.tolist()) > 0
    assert parser.score([sentence], [trees])[0].tolist() == trees.scores[:, 0].tolist()
    # The gold tree is scored as the tree without crossing arcs that was found in its place.
    corpus = encode(parser.schema, [sentence])
    best = decode(scorer_of(parser), corpus.fields, corpus.starts, corpus.lengths)[1][0, 0]
    assert trees.scores[trees.heads.tolist().index(sentence.heads.tolist()), 0] == best


def test_labels_with_marks_cannot_be_learnt() -> None:
    sentence = Sentence.from_columns(forms=["a"], heads=[0], deprels=["root↑"])
    with pytest.raises(UserError, match=r"^sentence 2: DEPREL of word 1 is 'root↑', but ↑ and ↓"):
        train_projective_parser([NEW[0], sentence], settings=SMALL)
    # Where there is a file its line is named, before anything is trained.
    with pytest.raises(UserError, match=r"^a\.conllu:7: DEPREL of word 1 is 'root↑'"):
        ProjectiveSpec.from_settings({}).check([replace(sentence, path="a.conllu", line=7)])


def test_labels_with_marks_in_others_lists_are_unknown() -> None:
    """Such as another parser's that learnt from a treebank made projective."""
    marks = Marks(["dep", "nmod", "nmod↑", "root", "root↓"])
    trees = [((3, 4, 4, 0), ("dep", "nmod", "dep", root), 0.0) for root in ("root", "root↓")]
    trees[1:] += [((0, 1, 1, 1), ("root", "nmod", "nmod↑", "dep"), 0.0)]
    lists = CandidateList.build(trees, inventory=LabelInventory(), sources=("a",))
    heads, labels = marks.made_projective(lists)
    names = [tuple(lists.deprels(row)) for row in range(3)]
    lifted, *others = (names.index(tree[1]) for tree in trees)
    assert heads[lifted].tolist() == [4, 4, 4, 0]
    assert (labels[lifted] >= 0).all()
    for row in others:
        assert heads[row].tolist() == lists.heads[row].tolist()
        assert [label < 0 for label in labels[row]] == [
            any(m in n for m in "↑↓") for n in names[row]
        ]


# Lists


def test_the_lists_scores_are_those_of_the_trees() -> None:
    parser = trained()
    lists = list(parser.kbest(NEW, k=8, inventory=LabelInventory()))
    for trees, scores in zip(lists, parser.score(NEW, lists), strict=True):
        assert scores.tolist() == trees.scores[:, 0].tolist()
        assert (np.diff(scores) <= 0).all()


def test_other_labels_cost_and_unknown_ones_have_no_score() -> None:
    parser = trained()
    sentence = NEW[0]
    best = next(iter(parser.kbest([sentence], k=1, inventory=LabelInventory())))
    names = best.deprels(0)
    # The last word is one whose label no other word's features read.
    variants = [(*names[:-1], label) for label in (names[-1], *parser.labels, "new")]
    lists = [
        CandidateList.build(
            [(best.heads[0], deprels, 0.0)], inventory=LabelInventory(), sources=("x",)
        )
        for deprels in variants
    ]
    same, *others, unknown = (row[0] for row in parser.score([sentence] * len(lists), lists))
    assert same == best.scores[0, 0]
    assert max(others) == same
    assert min(others) < same - 0.1
    assert np.isnan(unknown)


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


def test_a_long_sentence_is_cut() -> None:
    parser = trained()
    long = Sentence.from_columns(forms=["a"] * 300, upos=["NOUN"] * 300)
    heads, labels = next(iter(parser.parse([long])))
    assert check_tree(heads) is None
    assert (heads == 0).sum() == 1
    assert set(labels) <= set(parser.labels)


def test_same_seed_same_bytes_whatever_the_threads() -> None:
    few = SENTENCES[:50]
    one, two = (train_projective_parser(few, settings=SMALL, n_threads=n) for n in (1, 2))
    assert one.to_bytes() == two.to_bytes()
    other = train_projective_parser(few, settings=replace(SMALL, seed=1))
    assert other.to_files()[WEIGHTS] != one.to_files()[WEIGHTS]


def test_no_sentence_and_no_tree_are_refused() -> None:
    with pytest.raises(ValueError, match="no training sentence"):
        train_projective_parser([])
    with pytest.raises(ValueError, match="sentence 1 has no tree"):
        train_projective_parser([Sentence.from_columns(forms=["a"])], settings=SMALL)


def test_one_word_sentences_are_enough() -> None:
    word = Sentence.from_columns(forms=["a"], heads=[0], deprels=["root"])
    parser = train_projective_parser([word], settings=SMALL)
    heads, labels = next(iter(parser.parse([Sentence.from_columns(forms=["a", "b"])])))
    assert sorted(heads.tolist()) in ([0, 1], [0, 2])
    assert labels == ("root", "root")


# Settings, storage, spec


def test_settings_are_checked() -> None:
    for changes, message in (
        ({"training_k": 0}, "training k is 0"),
        ({"least": 2.0}, "least is 2"),
        ({"width": 3}, "unknown settings: width"),
    ):
        with pytest.raises(UserError, match=message):
            ProjectiveSettings.from_dict(changes)
    for settings in (SMALL, replace(SMALL, C=1.0)):
        assert ProjectiveSettings.from_dict(settings.to_dict()) == settings


def test_storage_round_trip(tmp_path: Path) -> None:
    parser = trained()
    parser.to_disk(tmp_path / "parser")
    again = ProjectiveParser.from_disk(tmp_path / "parser")
    assert again.to_bytes() == parser.to_bytes()
    for (a, b), (c, d) in zip(parser.parse(NEW), again.parse(NEW), strict=True):
        assert (a.tolist(), b) == (c.tolist(), d)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("places", lambda a: a[:-1]),
        ("places", lambda a: a + 4),
        ("places", lambda a: a * 0),
        ("parts_ids", lambda a: a + np.uint32(1 << 16)),
        ("pruner_values", lambda a: a * np.float32(np.nan)),
        ("labels_values", lambda a: a.astype(np.float64)),
        ("parts_values", lambda a: a * np.float32(1e30)),
    ],
)
def test_damaged_weights_are_refused(name: str, change: Any) -> None:
    files = trained().to_files()
    arrays = from_npz(files[WEIGHTS])
    arrays[name] = change(arrays[name])
    with pytest.raises(ModelError, match="damaged or incomplete"):
        ProjectiveParser.from_files({**files, WEIGHTS: to_npz(arrays)})


def test_arrays_that_do_not_fit_are_refused() -> None:
    parser = trained()
    corpus = encode(parser.schema, NEW[:2])
    where = (corpus.fields, corpus.starts, corpus.lengths)
    scorer = scorer_of(parser)
    heads, first = kept_heads(scorer, *where)
    for kept, message in (
        ((heads[:-1], first), "must ascend from 0"),
        ((heads + 100, first), "beyond their sentence"),
        ((heads[::-1].copy(), first), "kept heads"),
    ):
        with pytest.raises(ValueError, match=message):
            decode(scorer, *where, kept=kept)
    with pytest.raises(ValueError, match="sentences holds 2"):
        decode(scorer, *where, [2])
    with pytest.raises(ValueError, match="k is 0"):
        decode(scorer, *where, k=0)
    with pytest.raises(ValueError, match="max_heads is 0"):
        Scorer(parser.weights, parser.pruner, max_heads=0, least=0.0, morph_end=4)
    cells = np.full(len(NEW[0]) + 1, 99, dtype=np.int32)
    with pytest.raises(ValueError, match="heads are no trees"):
        score_trees(scorer, *where, np.array([0, 1, 1]), cells)
    labeller = Labeller(parser.label_weights, parser.places, morph_end=parser.schema.n_columns)
    circle = np.where(np.arange(len(NEW[0]) + 1) == 1, 2, 1).astype(np.int32)
    with pytest.raises(ValueError, match="in a circle"):
        label_trees(labeller, *where, np.array([0, 1, 1]), circle)


def test_gold_heads_must_be_in_their_sentence() -> None:
    """What stands beside the words is not looked at."""
    parser = trained()
    corpus = encode(parser.schema, NEW[:2], with_trees=True)
    where = (corpus.fields, corpus.starts, corpus.lengths)
    scorer = scorer_of(parser)
    n = len(NEW[1])
    row = int(corpus.starts[1]) + 2
    for head in (-1, 2, n + 1, 10**6):
        gold = corpus.heads.copy()
        gold[row] = head
        with pytest.raises(ValueError, match=f"hold {head} for word 2 of {n}, expected another"):
            kept_heads(scorer, *where, gold_heads=gold)
    with pytest.raises(ValueError, match="gold_heads must be"):
        kept_heads(scorer, *where, gold_heads=corpus.heads[:-1])
    beside = np.where(words_of(corpus), corpus.heads, 10**6).astype(np.int32)
    for expected, found in zip(
        kept_heads(scorer, *where, gold_heads=corpus.heads),
        kept_heads(scorer, *where, gold_heads=beside),
        strict=True,
    ):
        assert expected.tobytes() == found.tobytes()


def test_fields_must_have_the_columns_behind_those_of_feats() -> None:
    parser = trained()
    corpus = encode(parser.schema, NEW[:1], with_trees=True)
    end = parser.schema.n_columns
    assert corpus.fields.shape[1] == end + 6
    fields = np.ascontiguousarray(corpus.fields[:, :-1])
    labels = np.maximum(corpus.labels - 3, -1).astype(np.int32)
    where = (fields, corpus.starts, corpus.lengths)
    owners, tree = np.array([0, 1]), corpus.heads[:-1]
    labeller = Labeller(parser.label_weights, parser.places, morph_end=end)
    learner = Learner(size=64, C=1.0, morph_end=end)
    of_labels = LabelLearner(size=64, places=parser.places, C=1.0, morph_end=end)
    for call in (
        lambda: decode(scorer_of(parser), *where),
        lambda: kept_heads(scorer_of(parser), *where),
        lambda: score_trees(scorer_of(parser), *where, owners, tree),
        lambda: label_trees(labeller, *where, owners, tree),
        lambda: learner.learn(fields, corpus.heads, corpus.heads[:, None].copy()),
        lambda: of_labels.learn(fields, corpus.heads, labels),
    ):
        with pytest.raises(ValueError, match=f"{end + 5} columns, expected at least {end + 6}"):
            call()
    for make in (
        lambda: Scorer(parser.weights, parser.pruner, max_heads=1, least=0.0, morph_end=3),
        lambda: Labeller(parser.label_weights, parser.places, morph_end=-1),
        lambda: Learner(size=64, C=1.0, morph_end=3),
        lambda: LabelLearner(size=64, places=parser.places, C=1.0, morph_end=3),
    ):
        with pytest.raises(ValueError, match=r"morph_end is (3|-1), expected at least 4"):
            make()


@pytest.mark.parametrize(
    ("first", "heads", "message"),
    [
        ([0, 0], [], "first holds 2 numbers, expected 3 at least"),
        ([0, 1, 2], [0, 0], r"first\[1\] is 1, expected 0"),
        ([0, 0, 2], [0], "must ascend from 0 to 1"),
        ([0, 0, 2, 1], [0, 0], "must ascend from 0 to 2"),
        ([0, 0, 1, 2], [0, 3], "beyond their sentence, or a word's own"),
        ([0, 0, 1, 2], [1, 0], "beyond their sentence, or a word's own"),
        ([0, 0, 2, 3], [2, 0, 0], "do not ascend"),
    ],
)
def test_arcs_that_no_sentence_has_are_refused(
    first: list[int], heads: list[int], message: str
) -> None:
    arcs = (np.array(first, dtype=np.int32), np.array(heads, dtype=np.int32))
    with pytest.raises(ValueError, match=message):
        parts_of(*arcs)
    with pytest.raises(ValueError, match=message):
        best_of_parts(*arcs, np.zeros(len(heads), dtype=np.float32), [], [], k=1)


def test_no_tree_is_not_asked_for() -> None:
    arcs = (np.array([0, 0, 1], dtype=np.int32), np.zeros(1, dtype=np.int32))
    with pytest.raises(ValueError, match="k is 0, expected at least 1"):
        best_of_parts(*arcs, np.zeros(1, dtype=np.float32), [], [], k=0)
    trees, scores = best_of_parts(*arcs, np.ones(1, dtype=np.float32), [], [], k=2)
    assert (trees.tolist(), scores.tolist()) == ([[0]], [1.0])


def test_many_more_heads_than_words_take_no_more_memory() -> None:
    parser = trained()
    corpus = encode(parser.schema, NEW[:5])
    where = (corpus.fields, corpus.starts, corpus.lengths)
    few, many = (
        Scorer(
            parser.weights, parser.pruner, max_heads=most, least=0.0,
            morph_end=parser.schema.n_columns,
        )
        for most in (100, 2**31 - 1)
    )  # fmt: skip
    assert corpus.lengths.max() < 100
    for a, b in zip(kept_heads(few, *where), kept_heads(many, *where), strict=True):
        assert a.tobytes() == b.tobytes()
    for a, b in zip(decode(few, *where, k=2), decode(many, *where, k=2), strict=True):
        assert a.tobytes() == b.tobytes()


def test_the_source_is_called_as_it_was_asked_for() -> None:
    spec = ProjectiveSpec.from_settings({"training_k": 3}, name="projective-x")
    source = ProjectiveSpec.source_of(
        trained(), inventory=LabelInventory(), n_threads=1, name=spec.name
    )
    assert isinstance(source, ProjectiveSource)
    lists = list(source.candidates(NEW[:3], k=3))
    assert [trees.sources for trees in lists] == [("projective-x",)] * 3
    assert [s.shape for s in source.score(NEW[:3], lists)] == [(len(t), 1) for t in lists]
    assert set(source.columns) <= {"LEMMA", "UPOS", "XPOS", "FEATS"}


def test_the_estimate_grows_with_what_is_done() -> None:
    spec = ProjectiveSpec.from_settings({})
    twice = ProjectiveSpec.from_settings({"epochs": 2 * spec.settings.epochs})
    assert twice.seconds(1000) == pytest.approx(2 * spec.seconds(1000))
    assert spec.training_key() != twice.training_key()


def test_the_component_parses_and_is_stored(tmp_path: Path) -> None:
    import spacy

    from tk_spacy.pipeline.tk_projective import add_projective
    from tk_spacy.spacy_io.conversion import doc_from_sentence

    nlp = spacy.blank("xx")
    add_projective(nlp, trained())
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    heads, _ = next(iter(trained().parse(NEW[:1])))
    for pipeline in (nlp, again):
        doc = pipeline.get_pipe("tk_projective")(doc_from_sentence(pipeline.vocab, NEW[0]))
        found = [0 if token.head is token else token.head.i + 1 for token in doc]
        assert [0 if head == i + 1 else head for i, head in enumerate(found)] == heads.tolist()
