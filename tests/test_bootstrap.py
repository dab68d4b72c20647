"""The paired bootstrap against a plain loop, at its extremes, and its calibration."""

import numpy as np
import pytest
from samples import corrupted, random_trees

from tk_spacy.evaluation.attachment import METRICS, SentenceCounts, count_sentences, evaluate
from tk_spacy.evaluation.bootstrap import bootstrap_counts, paired_bootstrap
from tk_spacy.treebank.conllu import Sentence


@pytest.fixture
def made_up() -> list[Sentence]:
    return random_trees()


@pytest.mark.parametrize("metric", list(METRICS))
def test_bootstrap_equals_plain_loop(made_up: list[Sentence], metric: str) -> None:
    """The same drawn sentences, put together as lists and scored by ``evaluate``."""
    a, b = list(corrupted(made_up, 0.4, 1)), list(corrupted(made_up, 0.3, 2))
    result = paired_bootstrap(made_up, a, b, metric=metric, samples=50, seed=7)
    drawn = np.random.default_rng(7).integers(0, 40, size=(50, 40))
    differences = []
    for row in drawn.tolist():
        gold = [made_up[i] for i in row]
        scores = [evaluate(gold, [system[i] for i in row]) for system in (a, b)]
        differences.append(getattr(scores[1], metric) - getattr(scores[0], metric))
    found = np.round(differences, 9)
    worse, better = (1 + (found <= 0).sum()) / 51, (1 + (found >= 0).sum()) / 51
    assert result.p_one_sided == pytest.approx(worse)
    assert result.p_two_sided == pytest.approx(min(1, 2 * min(worse, better)))
    assert [result.low, result.high] == pytest.approx(np.percentile(differences, [2.5, 97.5]))
    assert result.score_a == pytest.approx(getattr(evaluate(made_up, a), metric))
    assert result.score_b == pytest.approx(getattr(evaluate(made_up, b), metric))
    assert result.difference == pytest.approx(result.score_b - result.score_a)


def test_bootstrap_extremes(made_up: list[Sentence]) -> None:
    bad = list(corrupted(made_up, 0.5, 1))
    good = paired_bootstrap(made_up, bad, made_up, samples=999)
    assert good.p_one_sided == 0.001
    assert good.p_two_sided == 0.002
    assert good.low > 0
    worse = paired_bootstrap(made_up, made_up, bad, samples=999)
    assert worse.p_one_sided == 1
    assert worse.p_two_sided == 0.002
    same = paired_bootstrap(made_up, bad, bad, samples=99)
    assert (same.difference, same.p_one_sided, same.p_two_sided) == (0, 1, 1)


def test_bootstrap_depends_on_the_seed_only(made_up: list[Sentence]) -> None:
    a, b = list(corrupted(made_up, 0.3, 1)), list(corrupted(made_up, 0.3, 2))
    results = [paired_bootstrap(made_up, a, b, samples=500, seed=seed) for seed in (1, 1, 2)]
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_bootstrap_pools_treebanks(made_up: list[Sentence]) -> None:
    a, b = list(corrupted(made_up, 0.3, 1)), list(corrupted(made_up, 0.2, 2))
    pairs = [
        (count_sentences(made_up[part], a[part]), count_sentences(made_up[part], b[part]))
        for part in (slice(10), slice(10, 40))
    ]
    pooled = bootstrap_counts(pairs, metric="las", samples=300)
    assert pooled.sentences == 40
    assert pooled.score_b == pytest.approx(evaluate(made_up, b).las)
    # A treebank of one sentence has no spread: drawn within treebanks, it is drawn once each time.
    single = bootstrap_counts([(pairs[0][0][:1], pairs[0][1][:1])] * 3, samples=20)
    assert single.low == single.high == pytest.approx(single.difference)


def test_bootstrap_p_values_are_calibrated() -> None:
    """Two systems that are equally good by construction: p < 0.1 in about a tenth of the trials."""
    rng = np.random.default_rng(0)
    low = 0
    for trial in range(200):
        tables = []
        for _ in range(2):
            table = np.zeros((150, len(SentenceCounts._fields)), np.int64)
            table[:, 0], table[:, 1] = 1, 10
            table[:, 3] = rng.binomial(10, 0.8, size=150)
            tables.append(table)
        result = bootstrap_counts([(tables[0], tables[1])], samples=400, seed=trial)
        low += result.p_two_sided < 0.1
    assert 8 <= low <= 34


def test_bootstrap_mistakes(made_up: list[Sentence]) -> None:
    counts = count_sentences(made_up, made_up)
    with pytest.raises(ValueError, match=r"metric must be one of uas, las, .*, got 'UAS'"):
        bootstrap_counts([(counts, counts)], metric="UAS")
    with pytest.raises(ValueError, match="samples must be at least 1, got 0"):
        bootstrap_counts([(counts, counts)], samples=0)
    with pytest.raises(ValueError, match="at least one treebank"):
        bootstrap_counts([])
    with pytest.raises(ValueError, match=r"a \(40 sentences\) and b \(39\) must be of the same"):
        bootstrap_counts([(counts, counts[1:])])
