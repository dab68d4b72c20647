"""Logarithms of softmaxes in compiled loops: as numpy finds them, and as they are."""

from __future__ import annotations

import numpy as np
import pytest

from tk_spacy.parsers.biaffine.softmax import log_softmax_parts

WIDTHS = (1, 2, 7, 8, 9, 16, 17, 127, 128, 129, 300)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("scale", [1, 40])
def test_logarithms_of_softmaxes_side_by_side(n: int, scale: float) -> None:
    rng = np.random.default_rng(0)
    scores = (rng.standard_normal((n, sum(WIDTHS) + 3)) * scale).astype(np.float32)
    scores[:, sum(WIDTHS[:4])] = -np.inf
    found = log_softmax_parts(scores, WIDTHS)
    assert found.shape == (n, sum(WIDTHS))
    assert found.dtype == np.float32
    start = 0
    for width in WIDTHS:
        own = scores[:, start : start + width].astype(np.float64)
        for row, logs in zip(own, found[:, start : start + width], strict=True):
            expected = row - row.max() - np.log(np.exp(row - row.max()).sum())
            np.testing.assert_allclose(logs, expected, rtol=1e-5, atol=1e-6)
        start += width


@pytest.mark.parametrize("width", WIDTHS)
def test_sums_are_numpys_to_the_last_bit(width: int) -> None:
    scores = np.random.default_rng(width).standard_normal((20, width)).astype(np.float32) * 5
    shifted = scores - scores.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(log_softmax_parts(scores, [width]), shifted)


def test_not_a_number_spoils_its_own_softmax_alone() -> None:
    scores = np.zeros((2, 40), dtype=np.float32)
    scores[0, [0, 25]] = np.nan
    found = log_softmax_parts(scores, [2, 18, 20])
    assert np.isnan(found[0, :2]).all()
    assert np.isnan(found[0, 20:]).all()
    assert not np.isnan(found[0, 2:20]).any()
    assert not np.isnan(found[1]).any()


def test_no_row_is_no_logarithm() -> None:
    assert log_softmax_parts(np.zeros((0, 4), np.float32), [1, 3]).shape == (0, 4)


@pytest.mark.parametrize("sizes", [[], [0, 2], [3, 2], [-1, 3]])
def test_sizes_that_do_not_fit_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="expected columns of 4 scores"):
        log_softmax_parts(np.zeros((2, 4), np.float32), sizes)


def test_other_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="scores must be"):
        log_softmax_parts(np.zeros(4, np.float32), [4])
