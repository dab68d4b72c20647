"""A step of the LSTM in compiled loops: the same as on plain arrays, and as tanh is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tk_spacy.parsers.biaffine import lstm_step, plain_step
from tk_spacy.parsers.biaffine.embedding import (
    build_treebank_embed,
    encoding_once,
    set_vocabulary,
)
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.treebank.conllu import Sentence

N, WIDTH = 3, 5


def arrays(*widths: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [(2 * rng.standard_normal((2, N, w))).astype(np.float32) for w in widths]


@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_compiled_step_equals_the_plain_one(with_mask: bool, first: bool, last: bool) -> None:
    found = []
    for module in (lstm_step, plain_step):
        gates, added, before, mask = arrays(4 * WIDTH, 4 * WIDTH, WIDTH, WIDTH)
        cell, squashed, out, onward = arrays(*[WIDTH] * 4)
        used = mask if with_mask else None
        module.forward(
            gates, None if first else added, before, used, cell, squashed, out,
            None if last else onward,
        )  # fmt: skip
        d_out, d_next, d_cell, d_gates = arrays(WIDTH, WIDTH, WIDTH, 4 * WIDTH, seed=1)
        module.backward(
            gates, before, used, squashed, d_out, None if last else d_next, d_cell, d_gates
        )
        found.append([gates, cell, squashed, out, onward, d_cell, d_gates])
    for own, expected in zip(*found, strict=True):
        np.testing.assert_allclose(own, expected, atol=4e-6)


def test_one_direction_is_as_in_both() -> None:
    gates, added, before = arrays(4 * WIDTH, 4 * WIDTH, WIDTH)
    both = [array.copy() for array in arrays(*[WIDTH] * 4)]
    alone = [array[1:].copy() for array in both]
    own = gates[1:].copy()
    lstm_step.forward(gates, added, before, None, *both)
    lstm_step.forward(own, added[1:], before[1:], None, *alone)
    for whole, part in zip([gates, *both], [own, *alone], strict=True):
        np.testing.assert_array_equal(whole[1:], part)


def test_a_step_by_hand() -> None:
    # One word, width 1: gates i, f, o of 0 are halves, the candidate is tanh(1).
    gates = np.array([[[0, 0, 0, 1]]] * 2, dtype=np.float32)
    before = np.full((2, 1, 1), 2, dtype=np.float32)
    cell, squashed, out = (np.zeros((2, 1, 1), dtype=np.float32) for _ in range(3))
    lstm_step.forward(gates, None, before, None, cell, squashed, out, None)
    np.testing.assert_allclose(gates[0, 0], [0.5, 0.5, 0.5, 0.7615942], atol=1e-6)
    assert cell[1, 0, 0] == pytest.approx(0.5 * 2 + 0.5 * 0.7615942, abs=1e-6)
    assert out[0, 0, 0] == pytest.approx(0.5 * np.tanh(1.3807971), abs=1e-6)


def test_tanh_is_right_to_seven_digits_and_never_beyond_1() -> None:
    x = np.concatenate([np.linspace(-12, 12, 20001), [-1e30, -1e-30, 1e-30, 1e30, 0]])
    n = len(x)
    gates = np.zeros((2, 1, 4 * n), dtype=np.float32)
    gates[:, :, : 3 * n] = 30  # open
    gates[:, :, 3 * n :] = x
    before, cell, squashed, out = (np.zeros((2, 1, n), dtype=np.float32) for _ in range(4))
    lstm_step.forward(gates, None, before, None, cell, squashed, out, None)
    found = gates[0, 0, 3 * n :]
    np.testing.assert_allclose(found, np.tanh(x), atol=5e-7, rtol=5e-7)
    assert np.abs(found).max() <= 1
    assert found[-1] == 0


def test_not_a_number_stays_so() -> None:
    gates = np.full((2, 1, 4), np.nan, dtype=np.float32)
    before, cell, squashed, out = (np.zeros((2, 1, 1), dtype=np.float32) for _ in range(4))
    lstm_step.forward(gates, None, before, None, cell, squashed, out, None)
    assert np.isnan(out).all()


def test_wrong_arrays_are_refused() -> None:
    gates, before, cell, squashed, out = arrays(4 * WIDTH, *[WIDTH] * 4)
    with pytest.raises(ValueError, match=r"cell has shape \(2, 3, 4\), expected \(2, 3, 5\)"):
        lstm_step.forward(gates, None, before, None, cell[:, :, :4].copy(), squashed, out, None)
    wide = np.zeros((2, N, 2 * WIDTH), dtype=np.float32)[:, :, :WIDTH]
    with pytest.raises(ValueError, match="rows of cell do not stand one after the other"):
        lstm_step.forward(gates, None, before, None, wide, squashed, out, None)
    with pytest.raises(ValueError, match="d_next has shape"):
        lstm_step.backward(gates, before, None, squashed, out, before[:, :2], cell, gates.copy())


def test_no_sentence_is_no_step() -> None:
    none, gates = np.zeros((2, 0, WIDTH), np.float32), np.zeros((2, 0, 4 * WIDTH), np.float32)
    lstm_step.forward(gates, None, none, None, none, none, none, None)
    lstm_step.backward(gates, none, None, none, none, None, none, gates)


def test_words_looked_up_once_have_the_same_rows() -> None:
    sentences = [
        Sentence.from_columns(forms=["ab", "ac"], upos=["NOUN", "X"], feats=["A=B", "_"]),
        Sentence.from_columns(forms=["ab"], upos=["NOUN"], feats=["A=B|C=D|E=F"]),
        Sentence.from_columns(forms=["b", "ab", "d"]),
    ]
    model = build_treebank_embed(4, 4)
    vocabulary = Vocabulary.fit(sentences * 3)
    set_vocabulary(model, vocabulary)
    for some in ([2, 0], [1], [0, 0, 2, 1]):
        batch = [sentences[i] for i in some]
        expected = vocabulary.encode_all(batch)
        with encoding_once(model, sentences):
            found = model.attrs["vocabulary"].encode_all(batch)
            assert model.attrs["vocabulary"].rows == vocabulary.rows
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(own, other)
    assert model.attrs["vocabulary"] is vocabulary
