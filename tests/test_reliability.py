"""Calibration error, risk against coverage and reliability, against sums done one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tk_spacy.evaluation.reliability import (
    Bin,
    calibration_error,
    chance_error,
    reliability,
    risk_coverage,
    risk_coverage_area,
)


def test_reliability_has_bins_of_equal_numbers_in_rising_order():
    right = np.array([True, False, False, True, True])
    found = reliability([0.9, 0.2, 0.1, 0.4, 0.8], right, bins=2)
    # Lowest three: 0.1 wrong, 0.2 wrong, 0.4 right.
    assert found == (
        Bin(3, pytest.approx(0.7 / 3), pytest.approx(1 / 3)),
        Bin(2, pytest.approx(0.85), 1.0),
    )
    error = (3 * (1 / 3 - 0.7 / 3) + 2 * 0.15) / 5
    assert calibration_error([0.9, 0.2, 0.1, 0.4, 0.8], right, bins=2) == pytest.approx(error)


def test_reliability_of_fewer_things_than_bins_has_a_bin_each():
    assert reliability([0.5, 0.25], np.array([True, False])) == (
        Bin(1, 0.25, 0.0),
        Bin(1, 0.5, 1.0),
    )
    assert reliability([], np.zeros(0, dtype=bool)) == ()
    assert calibration_error([], np.zeros(0, dtype=bool)) == 0.0


def test_area_is_the_mean_error_of_the_surest():
    # Surest first: right, wrong, right: errors 0, 1/2, 1/3.
    area = risk_coverage_area([3.0, 7.0, 5.0], np.array([True, True, False]))
    assert area == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
    assert risk_coverage_area([], np.zeros(0, dtype=bool)) == 0.0


def test_equals_count_as_the_mean_over_all_their_orders():
    values = np.array([0.5, 0.5, 0.5, 0.9])
    right = np.array([True, False, False, True])
    areas = []
    for order in itertools.permutations(range(3)):
        hits = [True, *right[list(order)]]
        areas.append(np.mean([1 - np.mean(hits[: m + 1]) for m in range(4)]))
    assert risk_coverage_area(values, right) == pytest.approx(np.mean(areas))
    for order in itertools.permutations(range(4)):
        rows = list(order)
        assert risk_coverage_area(values[rows], right[rows]) == pytest.approx(np.mean(areas))
        assert reliability(values[rows], right[rows], bins=2) == reliability(values, right, bins=2)


def test_chance_error_is_what_true_probabilities_have():
    generator = np.random.default_rng(5)
    values = generator.uniform(0.3, 1.0, size=1500)
    drawn = [calibration_error(values, generator.random(1500) < values) for _ in range(300)]
    assert chance_error(values) == pytest.approx(np.mean(drawn), rel=0.05)
    assert chance_error(np.ones(10)) == 0.0
    assert chance_error([]) == 0.0


@pytest.mark.parametrize(
    ("probabilities", "right", "message"),
    [
        ([0.5], [True, False], "float.n. and bool.n."),
        ([0.5], [1], "bool"),
        ([1.5], [True], "no number from 0 to 1"),
        ([-0.5], [True], "below 0"),
        ([np.nan], [True], "no number"),
    ],
)
def test_what_is_no_probability_is_refused(probabilities, right, message):
    with pytest.raises(ValueError, match=message):
        reliability(probabilities, np.array(right))


def test_no_bin_is_refused():
    with pytest.raises(ValueError, match="bins is 0"):
        reliability([0.5], np.array([True]), bins=0)


def test_risk_and_coverage_by_hand() -> None:
    right = np.array([True, False, True, True])
    curve = risk_coverage([0.9, 0.8, 0.7, 0.6], right, points=4)
    assert np.array(curve) == pytest.approx(
        np.array([(0.25, 0), (0.5, 0.5), (0.75, 1 / 3), (1, 0.25)])
    )
    # Fewer points than asked for where there are fewer things, and equal ones share their errors.
    assert risk_coverage([0.5, 0.5], right[:2]) == ((0.5, 0.5), (1.0, 0.5))
    assert [share for share, _ in risk_coverage(np.arange(100), right.repeat(25))] == (
        pytest.approx(np.arange(1, 21) / 20)
    )
    assert risk_coverage([], np.zeros(0, dtype=bool)) == ()
