"""The polynomial kernel's sums against an enumeration of feature combinations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_subtrees import combinations_of_arcs, shared
from test_tree_kernel import ragged

from tk_spacy.kernels.polynomial_kernel import PolynomialSupport


def random_sets(rng, n, n_features=7):
    return [
        sorted(rng.choice(n_features, size=rng.integers(0, n_features), replace=False).tolist())
        for _ in range(n)
    ]


@pytest.mark.parametrize("degree", [1, 2, 4, 8])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_sum_over_support(degree, n_threads):
    rng = np.random.default_rng(degree)
    support, rows = random_sets(rng, 30), random_sets(rng, 9)
    weights = rng.integers(-3, 4, size=30).astype(float)
    averaged = rng.normal(size=30)
    kept = PolynomialSupport(7, degree)
    kept.append(*ragged(support[:13]), weights[:13], averaged[:13])
    kept.append(*ragged(support[13:]), weights[13:], averaged[13:])
    for values, since, mean in ((weights, 0, False), (averaged, 0, True), (weights, 20, False)):
        out = np.ones(9)
        kept.add_scores(*ragged(rows), out, since=since, averaged=mean, n_threads=n_threads)
        expected = [
            1 + sum(
                w * (len(set(row) & set(other)) + 1) ** degree
                for w, other in zip(values[since:], support[since:], strict=True)
            )
            for row in rows
        ]  # fmt: skip
        assert np.allclose(out, expected, rtol=1e-12)


def test_degree_two_counts_combinations():
    # (a . b + 1) ** 2 = 1 + 3 single features + 2 pairs: what mining looks for lies in the kernel.
    rng = np.random.default_rng(0)
    for a, b in zip(random_sets(rng, 20), random_sets(rng, 20), strict=True):
        kept = PolynomialSupport(7, 2)
        kept.append(*ragged([b]), np.ones(1), np.ones(1))
        out = np.zeros(1)
        kept.add_scores(*ragged([a]), out)
        ones = shared(combinations_of_arcs([a], degree=1), combinations_of_arcs([b], degree=1))
        pairs = shared(*(combinations_of_arcs([x], degree=2) for x in (a, b))) - ones
        assert out[0] == 1 + 3 * ones + 2 * pairs


def test_whole_trees_are_multisets():
    kept = PolynomialSupport(5, 2)
    kept.append(*ragged([[1, 3]]), np.ones(1), np.ones(1), counts=[2, 3])
    out = np.zeros(1)
    kept.add_scores(*ragged([[0, 1, 3]]), out, counts=[7, 5, 1])
    assert out[0] == (2 * 5 + 3 * 1 + 1) ** 2


def test_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="degree is 0, expected 1 to 16"):
        PolynomialSupport(3, 0)
    kept = PolynomialSupport(3, 2)
    with pytest.raises(ValueError, match=r"ids\[1\] is 3, expected 0 to 2"):
        kept.append(*ragged([[0, 3]]), np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="since is 1, expected 0 to 0"):
        kept.add_scores(*ragged([[0]]), np.zeros(1), since=1)
    assert math.isfinite(len(kept))
