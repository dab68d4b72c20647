"""The cascade: what quick parsers choose, what that may cost, and decisions in stages."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from samples import corrupted
from test_damaged_models import cascade as made_up_cascade
from test_damaged_models import kernel, selected
from test_kernel import random_tree

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.evaluation.well_formed import word_facts
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.well_formed import count_broken
from tk_spacy.reranker import calibration
from tk_spacy.reranker.calibration import Logistic
from tk_spacy.reranker.cascade import (
    MOST_LOST,
    NO_RISK,
    Cascade,
    Quick,
    Seen,
    breaks,
    right_words,
)
from tk_spacy.reranker.compression import hashed
from tk_spacy.reranker.decision import Decision
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.penalties import Penalties
from tk_spacy.reranker.quick_choice import FEATURES, MOST_MARGIN, quick_choice
from tk_spacy.reranker.speeds import SPEEDS
from tk_spacy.reranker.staged import BATCH, Staged, left_to_quick
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate
from tk_spacy.trees.constraints import KINDS
from tk_spacy.utils.serialization import META

needs_sklearn = pytest.mark.skipif(
    not calibration.can_fit(), reason="scikit-learn is not installed"
)
SOURCES = ("good", "fair", "poor")


# What quick parsers choose


def plain_choice(heads, labels, scores, scales, own):
    """The same in plain Python, number by number."""
    k, n = len(heads), len(heads[0])
    totals = [0.0] * k
    for j, scale in enumerate(scales):
        known = [row[j] for row in scores if math.isfinite(row[j])]
        least = min(known) if known else 0.0
        for i in range(k):
            value = scores[i][j]
            totals[i] += (value if math.isfinite(value) else least) / scale
    row = totals.index(max(totals))
    odds = [math.exp(total - totals[row]) for total in totals]
    margin = min([MOST_MARGIN, *(totals[row] - totals[i] for i in range(k) if i != row)])
    arcs = [[(heads[i][w], labels[i][w]) for w in range(n)] for i in range(k)]
    shares = [
        sum(o for o, tree in zip(odds, arcs, strict=True) if tree[w] == arcs[row][w]) / sum(odds)
        for w in range(n)
    ]
    agreeing = [arcs[i][w] == arcs[row][w] for i in own for w in range(n)]
    return row, totals, [
        math.log(n),
        totals[row],
        totals[row] / n,
        margin,
        sum(agreeing) / len(agreeing),
        sum(1 - share for share in shares),
        min(shares),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_quick_choice_is_that_of_plain_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, n, q = (int(rng.integers(1, most)) for most in (9, 12, 4))
    heads = np.stack([random_tree(rng, n) for _ in range(k)]).astype(np.int32)
    labels = rng.integers(0, 3, size=(k, n)).astype(np.int32)
    scores = rng.normal(scale=3.0, size=(k, q))
    if seed % 3 == 0:  # ties, which the first tree wins
        scores = np.round(scores)
    if seed % 2:
        scores[rng.random((k, q)) < 0.3] = np.nan
    if seed % 5 == 0:
        scores[rng.integers(k), rng.integers(q)] = -np.inf
        scores[:, 0] = np.nan if seed % 10 == 0 else np.inf
    scales = rng.uniform(0.1, 5.0, size=q)
    own = rng.integers(0, k, size=int(rng.integers(1, 4))).astype(np.int32)
    row, totals, features = quick_choice(heads, labels, scores, scales, own)
    expected = plain_choice(
        heads.tolist(), labels.tolist(), scores.tolist(), scales.tolist(), own.tolist()
    )
    assert row == expected[0]
    assert totals.tolist() == expected[1]
    assert features == pytest.approx(np.array(expected[2]), rel=1e-12, abs=1e-12)
    assert np.isfinite(features).all()


def test_quick_choice_of_one_tree_over_one_word() -> None:
    one = np.zeros((1, 1), dtype=np.int32)
    row, totals, features = quick_choice(
        one, one, np.array([[-6.0]]), np.array([3.0]), np.zeros(1, dtype=np.int32)
    )
    assert (row, totals.tolist()) == (0, [-2.0])
    told = dict(zip(FEATURES, features.tolist(), strict=True))
    assert told == {
        "words": 0.0, "score": -2.0, "score_a_word": -2.0, "margin": MOST_MARGIN,
        "agreement": 1.0, "doubtful_words": 0.0, "least_sure_word": 1.0,
    }  # fmt: skip


def test_quick_choice_refuses_what_does_not_fit() -> None:
    trees = np.zeros((2, 3), dtype=np.int32)
    scores, scales, own = np.zeros((2, 1)), np.ones(1), np.zeros(1, dtype=np.int32)
    with pytest.raises(ValueError, match="own has 2, expected a row from 0 to 1"):
        quick_choice(trees, trees, scores, scales, own + 2)
    with pytest.raises(ValueError, match="own has -1"):
        quick_choice(trees, trees, scores, scales, own - 1)
    with pytest.raises(ValueError, match="0 choices, expected some"):
        quick_choice(trees, trees, scores, scales, own[:0])
    with pytest.raises(ValueError, match="0 trees"):
        quick_choice(trees[:0], trees[:0], scores[:0], scales, own)
    with pytest.raises((TypeError, ValueError)):
        quick_choice(trees, trees, scores, np.ones(2), own)
    with pytest.raises((TypeError, ValueError)):
        quick_choice(trees, trees[:, :2], scores, scales, own)
    with pytest.raises((TypeError, ValueError)):
        quick_choice(trees * 0.5, trees, scores, scales, own)


# Parsers whose trees are known


@dataclass(slots=True)
class Known:
    """A parser that errs at random words, and scores any tree by the words as in its own.

    asked: the sentences that it was asked for trees of.
    """

    name: str
    rate: float
    inventory: LabelInventory
    in_company: bool = False
    asked: list[Sentence] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def trees(self, sentence: Sentence) -> list[Sentence]:
        base = len(self.name) + len(sentence) + int(sentence.heads.sum())
        return [tree for i in range(3) for tree in corrupted([sentence], self.rate, seed=base + i)]

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[np.ndarray]:
        own = [self.trees(sentence)[0] for sentence in sentences]
        return [
            (trees.heads == tree.heads).mean(axis=1)[:, None] * 8
            for tree, trees in zip(own, lists, strict=True)
        ]

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        self.asked += sentences
        for sentence in sentences:
            distinct = {(t.heads.tobytes(), t.deprels): t for t in self.trees(sentence)}
            given = [(t.heads, t.deprels, 0.0) for t in distinct.values()][:k]
            trees = CandidateList.build(given, inventory=self.inventory, sources=(self.name,))
            yield trees.with_scores(self.score([sentence], [trees])[0])


def parsers() -> MergedSource:
    inventory = LabelInventory()
    pairs = zip(SOURCES, (0.1, 0.15, 0.3), strict=True)
    return MergedSource([Known(name, rate, inventory) for name, rate in pairs], n_threads=1)


def asked(source: MergedSource) -> list[int]:
    return [len(parser.asked) for parser in source.sources]


def with_limit(limit: float, *, quick: tuple[str, ...] = ("good",), **changes) -> Reranker:
    """A reranker whose cascade takes what is nearly tied for a risk."""
    weights = dict.fromkeys(FEATURES, 0.0) | {"margin": -1.0}
    made = Cascade(
        quick=quick,
        scales=dict.fromkeys(quick, 1.0),
        model=Logistic(weights, 0.5),
        limits={"balanced": limit / 2, "fast": limit},
    )
    return replace(kernel(), cascade=made, **{"penalties": Penalties(), **changes})


def same(a: Decision, b: Decision) -> bool:
    """Whether two decisions are equal in all that they tell."""
    one, other = a.candidates, b.candidates
    return (
        np.array_equal(one.heads, other.heads)
        and [one.deprels(i) for i in range(len(one))]
        == [other.deprels(i) for i in range(len(other))]
        and np.array_equal(one.scores, other.scores, equal_nan=True)
        and np.array_equal(a.final, b.final)
        and a.row == b.row
    )


def exact(reranker: Reranker, sentences: Sequence[Sentence], **more: bool) -> list[Decision]:
    pairs = zip(sentences, parsers().candidates(sentences, k=8), strict=True)
    return [decision for _, decision in reranker.decisions(pairs, n_threads=1, **more)]


def quick_decisions(reranker: Reranker, sentences: Sequence[Sentence]) -> list[Quick]:
    source = parsers()
    found = source.proposed(sentences, k=8, places=reranker.cascade.places(names(source)))
    return [reranker.cascade.choose(trees) for trees in source.joined(sentences, found, k=8)]


def names(source: MergedSource) -> list[tuple[str, ...]]:
    return [parser.names for parser in source.sources]


SENTENCES = list(generate(40, seed=5))


# Decisions in stages


@pytest.mark.parametrize("quick", [("good",), ("good", "fair"), ("fair", "poor")])
def test_all_is_left_where_no_risk_is_too_high(quick: tuple[str, ...]) -> None:
    reranker, source = with_limit(1.0, quick=quick), parsers()
    staged = Staged(reranker, source, 8, speed="fast", n_threads=1)
    found = list(staged.decisions(SENTENCES))
    assert [sentence for sentence, _ in found] == SENTENCES
    assert (staged.left, staged.asked) == (len(SENTENCES),) * 2
    assert asked(source) == [len(SENTENCES) * (name in quick) for name in SOURCES]
    for (_, decision), choice in zip(found, quick_decisions(reranker, SENTENCES), strict=True):
        assert decision.row == choice.row
        assert decision.final.tolist() == choice.totals.tolist()
        assert decision.candidates.sources == quick
        assert decision.eligible.all()


@pytest.mark.parametrize("well_formed", [False, True])
def test_nothing_is_left_at_no_risk(well_formed: bool) -> None:
    # Not even what could not be surer.
    reranker, source = with_limit(NO_RISK), parsers()
    certain = replace(reranker.cascade, model=Logistic(dict.fromkeys(FEATURES, 0.0), -1e9))
    assert certain.risks(quick_decisions(reranker, SENTENCES)).max() == 0.0
    staged = Staged(
        replace(reranker, cascade=certain), source, 8,
        speed="fast", well_formed=well_formed, n_threads=1,
    )  # fmt: skip
    found = [decision for _, decision in staged.decisions(SENTENCES)]
    assert (staged.left, asked(source)) == (0, [len(SENTENCES)] * 3)
    expected = exact(reranker, SENTENCES, well_formed=well_formed)
    assert all(same(*pair) for pair in zip(found, expected, strict=True))


@pytest.mark.parametrize("speed", ["balanced", "fast"])
@pytest.mark.parametrize("well_formed", [False, True])
def test_what_is_unsure_is_decided_as_ever(speed, well_formed: bool) -> None:
    risks = with_limit(1.0).cascade.risks(quick_decisions(with_limit(1.0), SENTENCES))
    limit = float(np.median(risks)) * (2 if speed == "balanced" else 1)
    reranker, source = with_limit(limit, penalties=Penalties({KINDS[0]: 0.5})), parsers()
    staged = Staged(reranker, source, 8, speed=speed, well_formed=well_formed, n_threads=1)
    found = [decision for _, decision in staged.decisions(SENTENCES)]
    expected = exact(reranker, SENTENCES, well_formed=well_formed)
    kinds = KINDS if well_formed else KINDS[:1]
    left = 0
    choices = quick_decisions(reranker, SENTENCES)
    for i, (sentence, decision) in enumerate(zip(SENTENCES, found, strict=True)):
        if decision.candidates.sources != ("good",):
            assert same(decision, expected[i])
            broken = count_broken(_quick_list(sentence), word_facts(sentence), kinds)
            assert risks[i] > np.median(risks) or broken[choices[i].row]
            continue
        left += 1
        assert risks[i] <= np.median(risks)
        assert decision.row == choices[i].row
        broken = count_broken(decision.candidates, word_facts(sentence), kinds)
        assert broken[decision.row] == 0
        if well_formed:
            assert decision.eligible.tolist() == (broken == 0).tolist()
    assert 0 < left < len(SENTENCES)
    assert asked(source) == [40, 40 - left, 40 - left]


def _quick_list(sentence: Sentence) -> CandidateList:
    return next(parsers().sources[0].candidates([sentence], k=8))


def test_more_sentences_than_a_batch_and_none() -> None:
    many = [SENTENCES[i % 40] for i in range(BATCH + 3)]
    staged = Staged(with_limit(1.0), parsers(), 8, speed="fast", n_threads=1)
    assert [sentence for sentence, _ in staged.decisions(many)] == many
    assert list(staged.decisions([])) == []
    assert staged.decide([]) == []
    assert staged.left == staged.asked == len(many)


def test_a_single_word_and_a_single_tree() -> None:
    one = Sentence.from_columns(
        forms=["Go"], lemmas=["go"], upos=["VERB"], xpos=["V"], feats=["_"],
        heads=np.zeros(1, dtype=np.int32), deprels=["root"],
    )  # fmt: skip
    staged = Staged(with_limit(1.0), parsers(), 1, speed="fast", n_threads=1)
    for sentence in (one, SENTENCES[0]):
        (decision,) = staged.decide([sentence])
        assert (len(decision.candidates), decision.row) == (1, 0)
    assert staged.left == 2


@pytest.mark.parametrize("quick", [("other",), ("good", "other"), SOURCES, None])
def test_all_is_exact_without_quick_parsers_or_others(quick) -> None:
    reranker = with_limit(1.0) if quick is None else with_limit(1.0, quick=quick)
    if quick is None:
        reranker = replace(reranker, cascade=None)
    staged = Staged(reranker, parsers(), 8, speed="fast", n_threads=1)
    found = [decision for _, decision in staged.decisions(SENTENCES[:8])]
    expected = exact(reranker, SENTENCES[:8])
    assert all(same(*pair) for pair in zip(found, expected, strict=True))
    assert staged.left == 0


def test_the_exact_speed_asks_no_cascade() -> None:
    staged = Staged(with_limit(1.0), parsers(), 8, n_threads=1)
    assert staged.speed == SPEEDS[0] == "exact"
    staged.decide(SENTENCES[:4])
    assert staged.left == 0


def test_the_places_of_quick_parsers() -> None:
    cascade = with_limit(1.0, quick=("a", "a-back")).cascade
    assert cascade.places([("a", "a-back"), ("b",)]) == [0]
    assert cascade.places([("b",), ("a-back",), ("a",)]) == [1, 2]
    assert cascade.places([("a", "a-back")]) == []  # no others
    assert cascade.places([("a",), ("b",)]) == []
    # A parser whose scores the cascade knows in part is none of its quick ones.
    assert cascade.places([("a", "a-back", "c"), ("b",)]) == []


def test_nothing_is_left_without_cascade_and_where_the_risk_is_unknown() -> None:
    reranker = with_limit(1.0)
    lists = [_quick_list(sentence) for sentence in SENTENCES[:3]]
    with pytest.raises(ValueError, match="speed is 'fast', but the reranker has no cascade"):
        left_to_quick(replace(reranker, cascade=None), SENTENCES[:3], lists, speed="fast")
    assert None not in left_to_quick(reranker, SENTENCES[:3], lists, speed="fast")
    unknown = replace(reranker.cascade, model=Logistic(dict.fromkeys(FEATURES, 0.0), math.nan))
    found = left_to_quick(replace(reranker, cascade=unknown), SENTENCES[:3], lists, speed="fast")
    assert found == [None] * 3


# What may be lost


def seen(n: int, *, seed: int, gain: float = 0.5) -> list[Seen]:
    """Sentences of which the whole system sometimes gets more words right, sometimes fewer.

    More often where the parsers are not sure.  gain: how often more.
    """
    rng = np.random.default_rng(seed)
    gold, source = list(generate(n, seed=seed)), parsers()
    found = []
    for sentence, trees in zip(gold, source.candidates(gold, k=8), strict=True):
        cascade = with_limit(1.0, quick=("good", "fair")).cascade
        choice = cascade.choose(trees)
        right = right_words(sentence, trees, choice.row)
        change = 0
        if rng.random() < 0.1 + 0.5 * (choice.features[FEATURES.index("margin")] < 1):
            change = int(rng.integers(1, 4)) * (1 if rng.random() < gain else -1)
        found.append(Seen(sentence, trees, min(max(right + change, 0), len(sentence))))
    return found


def lost_as_limits_grow(cascade: Cascade, given: Sequence[Seen], kinds=()) -> list[tuple]:
    """Risks of sentences that may be left, from the lowest, and words lost up to each of them."""
    rows = []
    for place, item in enumerate(given):
        choice = cascade.choose(item.candidates)
        if not breaks(item.gold, item.candidates, choice.row, kinds):
            lost = item.final - right_words(item.gold, item.candidates, choice.row)
            rows.append((float(cascade.risks([choice])[0]), place, lost))
    out, total = [], 0
    for risk, _, lost in sorted(rows):
        total += lost
        out.append((risk, total))
    return out


@needs_sklearn
@pytest.mark.parametrize("seed", range(6))
def test_a_limit_never_lets_more_be_lost_than_asked(seed: int) -> None:
    train, dev = seen(150, seed=seed, gain=0.7), seen(60, seed=100 + seed, gain=0.7)
    cascade = Cascade.fit(train, dev, ("good", "fair"))
    assert cascade is not None
    alone = Cascade.fit(train, [], ("good", "fair"))
    assert alone is not None
    assert alone.model == cascade.model  # dev is not learnt from
    assert set(cascade.limits) == set(MOST_LOST)
    for speed, most in MOST_LOST.items():
        limit = cascade.limits[speed]
        assert NO_RISK <= limit <= alone.limits[speed] <= 1
        for given in (train, dev):
            words = sum(len(item.gold) for item in given)
            curve = lost_as_limits_grow(cascade, given)
            # Of equal risks all are left, or none.
            kept = {risk: total for risk, total in curve if NO_RISK < risk <= limit}
            assert all(total <= most * words / 100 for total in kept.values())
    assert cascade.limits["balanced"] <= cascade.limits["fast"]
    # The highest such limit: the next sentence of train would be too much.
    curve = lost_as_limits_grow(alone, train)
    words = sum(len(item.gold) for item in train)
    limit = alone.limits["fast"]
    after = [(risk, total) for risk, total in curve if risk > limit]
    assert 0 < limit < 1
    assert any(
        total > MOST_LOST["fast"] * words / 100 for risk, total in after if risk == after[0][0]
    )


@needs_sklearn
def test_dev_lowers_a_limit() -> None:
    train = seen(150, seed=1, gain=0.6)
    alone = Cascade.fit(train, [], ("good",))
    assert alone is not None
    assert alone.limits["fast"] > NO_RISK
    worse = [item._replace(final=len(item.gold)) for item in seen(80, seed=2)]
    lowered = Cascade.fit(train, worse, ("good",))
    assert lowered is not None
    assert lowered.limits["fast"] < alone.limits["fast"]
    # As far as nothing is left, where whatever is left loses.
    source = parsers()
    gold = list(generate(30, seed=9))
    wrong = [
        Seen(s, trees, 1_000) for s, trees in zip(gold, source.candidates(gold, k=8), strict=True)
    ]
    assert Cascade.fit(train, wrong, ("good",)).limits == dict.fromkeys(MOST_LOST, NO_RISK)


@needs_sklearn
def test_no_risk_where_each_sentence_loses_and_none_where_none_does() -> None:
    train = seen(40, seed=3)
    cascade = with_limit(1.0).cascade
    rows = [cascade.choose(item.candidates).row for item in train]
    right = [
        right_words(item.gold, item.candidates, row) for item, row in zip(train, rows, strict=True)
    ]
    equal = [item._replace(final=n) for item, n in zip(train, right, strict=True)]
    assert Cascade.fit(equal, [], ("good",)) is None
    assert Cascade.fit([], [], ("good",)) is None
    all_lose = [item._replace(final=n + 2) for item, n in zip(train, right, strict=True)]
    lost = Cascade.fit(all_lose, [], ("good",))
    assert lost is not None
    assert lost.limits == dict.fromkeys(MOST_LOST, NO_RISK)
    # All gain: all may be left.
    all_gain = [item._replace(final=n - 1) for item, n in zip(train, right, strict=True)]
    gained = Cascade.fit(all_gain, [], ("good",))
    assert gained is not None
    assert gained.limits == dict.fromkeys(MOST_LOST, 1.0)


@needs_sklearn
def test_what_cannot_be_left_limits_nothing() -> None:
    train = seen(80, seed=4)
    cascade = with_limit(1.0, quick=("good",)).cascade
    choices = [cascade.choose(item.candidates) for item in train]
    broken = [
        breaks(item.gold, item.candidates, choice.row, KINDS)
        for item, choice in zip(train, choices, strict=True)
    ]
    assert 0 < sum(broken) < len(train)
    # Only those lose whose trees break a constraint.
    given = [
        item._replace(final=right_words(item.gold, item.candidates, choice.row) + 5 * bad)
        for item, choice, bad in zip(train, choices, broken, strict=True)
    ]
    found = Cascade.fit(given, [], ("good",), kinds=KINDS)
    assert found is not None
    assert found.limits == dict.fromkeys(MOST_LOST, 1.0)
    without = Cascade.fit(given, [], ("good",))
    assert without is not None
    assert without.limits["fast"] < 1.0


@needs_sklearn
def test_a_scale_is_how_far_the_best_tree_leads() -> None:
    train = seen(30, seed=6)
    cascade = Cascade.fit(train, [], ("good", "fair"))
    assert cascade is not None
    for name, scale in cascade.scales.items():
        leads = []
        for item in train:
            column = item.candidates.scores[:, item.candidates.sources.index(name)]
            first, *others = sorted(column.tolist(), reverse=True)
            leads += [first - others[0]] if others else []
        assert scale == pytest.approx(sum(leads) / len(leads))


# Storage


def test_a_cascade_survives_storage() -> None:
    cascade = made_up_cascade()
    again = Cascade.from_dict(json.loads(json.dumps(cascade.to_dict())))
    assert again == cascade
    model = replace(kernel(), cascade=cascade)
    files = model.to_files()
    assert Reranker.from_files(files, where="here").cascade == cascade
    assert "cascade" not in Reranker.from_files(files, where="here").about
    without = replace(model, cascade=None).to_files()
    assert "cascade" not in json.loads(without[META])
    assert Reranker.from_files(without, where="here").cascade is None
    # Models of earlier versions differ in nothing else.
    told = json.loads(files[META])
    del told["cascade"]
    assert told == json.loads(without[META])


def test_equal_limits_are_stored_too() -> None:
    for limit in (NO_RISK, 0.25, 1.0):
        cascade = replace(made_up_cascade(), limits=dict.fromkeys(MOST_LOST, limit))
        assert Cascade.from_dict(cascade.to_dict()) == cascade


def test_a_compressed_model_keeps_its_cascade() -> None:
    # It chooses nearly as before, and is as well calibrated.
    model = replace(kernel(), cascade=made_up_cascade())
    assert hashed(model, 8).cascade == model.cascade


def test_a_model_of_selected_features_has_none() -> None:
    assert selected(trees=False).cascade is None
