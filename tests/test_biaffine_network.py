"""The biaffine parser's network: gradients, layout of batches, and scores by plain loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tk_spacy.parsers.biaffine.batches import Layout, make_batches
from tk_spacy.parsers.biaffine.network import (
    FAR,
    N_BUCKETS,
    Batch,
    Pass,
    buckets,
    init_weights,
    log_softmax,
    weight_shapes,
)
from tk_spacy.parsers.biaffine.optimizer import Adam
from tk_spacy.parsers.biaffine.recurrent import lstm
from tk_spacy.parsers.biaffine.settings import BiaffineSettings

TINY = BiaffineSettings(
    word_width=5, tag_width=4, width=3, layers=2, arc_width=4, label_width=3, dropout=0.4
)
LENGTHS = [4, 6, 2]
HEADS = [2, 0, 2, 3, 3, 0, 5, 3, 0]
N_LABELS = 4


def weights_for(settings: BiaffineSettings = TINY) -> dict[str, np.ndarray]:
    """Weights none of which is near 0, in float64."""
    rng = np.random.default_rng(3)
    weights = {}
    for name, array in init_weights(settings, 9, 8, N_LABELS).items():
        weights[name] = array + 0.3 * rng.standard_normal(array.shape)
    weights["words"][0] = weights["tags"][0] = 0
    return weights


def batch_of(lengths: list[int] = LENGTHS) -> Batch:
    rng = np.random.default_rng(5)
    rows = sum(lengths)
    return Batch(
        rng.integers(0, 9, (rows, 3)),
        rng.integers(0, 8, (rows, 5)),
        Layout.of(lengths),
        np.array(HEADS),
        rng.integers(0, N_LABELS, len(HEADS)),
    )


@pytest.mark.parametrize("dropout", [True, False])
def test_network_gradient_equals_finite_differences(dropout: bool) -> None:
    weights, batch = weights_for(), batch_of()

    def run() -> Pass:
        return Pass(weights, TINY, batch, np.random.default_rng(7) if dropout else None)

    gradient: dict[str, np.ndarray] = {}
    network = run()
    network.loss(gradient)
    for name, (rows, values) in network.table_gradients().items():
        gradient[name] = np.zeros_like(weights[name])
        gradient[name][rows] = values
    assert gradient.keys() == weights.keys()
    for name, array in weights.items():
        expected = np.zeros_like(array)
        for place in np.ndindex(*array.shape):
            if name in ("words", "tags") and place[0] == 0:
                continue  # no value: not learnt
            value, step = array[place], 1e-5
            array[place] = value + step
            above = sum(run().loss())
            array[place] = value - step
            expected[place] = (above - sum(run().loss())) / (2 * step)
            array[place] = value
        assert np.abs(expected).max() > 1e-4, name
        np.testing.assert_allclose(gradient[name], expected, atol=1e-8, err_msg=name)


def plain_lstm(x: np.ndarray, inputs: np.ndarray, inner: np.ndarray, bias: np.ndarray):
    """One direction over one sentence, word by word."""
    width = len(inner)
    state, cell, states = np.zeros(width), np.zeros(width), []
    for row in x:
        i, f, o, g = np.split(row @ inputs + state @ inner + bias, 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        cell = f * cell + i * np.tanh(g)
        state = o * np.tanh(cell)
        states.append(state)
    return np.array(states)


def test_lstm_equals_a_plain_loop_in_both_directions() -> None:
    weights, layout = weights_for(), Layout.of(LENGTHS)
    x = np.random.default_rng(1).standard_normal((sum(LENGTHS), 9))
    found, _ = lstm(weights, "lstm 0", x, layout)
    inputs, inner, bias = (weights[f"lstm 0.{part}"] for part in ("input", "state", "bias"))
    start = 0
    for length in LENGTHS:
        own = slice(start, start + length)
        right = plain_lstm(x[own], inputs[:, :12], inner[0], bias[:12])
        left = plain_lstm(x[own][::-1], inputs[:, 12:], inner[1], bias[12:])[::-1]
        np.testing.assert_allclose(found[own], np.concatenate([right, left], axis=1), atol=1e-12)
        start += length


def test_arc_and_label_scores_equal_a_plain_loop() -> None:
    weights, batch = weights_for(), batch_of()
    network = Pass(weights, TINY, batch)
    scores = network.arc_scores()
    hidden = network.encoded @ weights["mlp"] + weights["mlp.bias"]
    out = np.where(hidden > 0, hidden, 0.1 * hidden)
    labels = weights["label"].reshape(4, N_LABELS, 4)
    start = 0
    for sentence, length in enumerate(LENGTHS):
        for m in range(1, length):
            for h in range(length):
                if h == m:
                    continue
                dep, head = out[start + m, :4], out[start + h, 4:8]
                far = sum(abs(h - m) >= least for least in FAR)
                bucket = 0 if h == 0 else far if h > m else far + len(FAR)
                expected = dep @ weights["arc"] @ head + weights["arc.head"] @ head
                expected += np.append(dep, 1) @ weights["arc.distance"][:, bucket]
                assert scores[sentence, m, h] == pytest.approx(expected)
                left = np.append(out[start + m, 8:11], 1)
                right = np.append(out[start + h, 11:14], 1)
                found = network.label_scores(np.array([start + m]), np.array([start + h]))[0]
                for label in range(N_LABELS):
                    assert found[label] == pytest.approx(left @ labels[:, label] @ right)
                every = network.all_label_scores(start + m, 1, start, length)
                np.testing.assert_allclose(every[0, h], found)
            assert np.exp(log_softmax(scores[sentence, m]))[length:].sum() == 0  # no padding
        start += length


@pytest.mark.parametrize("layers", [1, 3])
def test_weight_shapes_are_those_of_the_weights(layers: int) -> None:
    settings = replace(TINY, layers=layers)
    weights = init_weights(settings, 9, 8, N_LABELS)
    found = {name: array.shape for name, array in weights.items()}
    assert found == weight_shapes(settings, 9, 8, N_LABELS)
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}


def test_buckets_tell_sides_and_distances() -> None:
    found = buckets(40)
    assert found.shape == (40, 40)
    assert (found[:, 0] == 0).all()
    assert found[3, 4] == 1
    assert found[3, 2] == 1 + len(FAR)
    assert found[1, 39] == len(FAR)
    assert found[39, 1] == N_BUCKETS - 1
    assert [int(found[1, 1 + d]) for d in (1, 4, 5, 6, 7)] == [1, 4, 5, 5, 6]


def test_a_sentence_s_scores_do_not_depend_on_its_batch() -> None:
    weights, together = weights_for(), batch_of()
    scores = Pass(weights, TINY, together).arc_scores()
    start = 0
    for i, length in enumerate(LENGTHS):
        own = slice(start, start + length)
        alone = Batch(together.words[own], together.tags[own], Layout.of([length]))
        expected = Pass(weights, TINY, alone).arc_scores()[0]
        np.testing.assert_allclose(scores[i, :length, :length], expected, atol=1e-12)
        start += length


def test_batches_hold_every_sentence_once_within_the_size() -> None:
    lengths = np.random.default_rng(2).integers(2, 60, 200).tolist()
    for rng in (None, np.random.default_rng(1)):
        batches = make_batches(lengths, 300, rng=rng)
        assert sorted(i for batch in batches for i in batch) == list(range(200))
        assert all(len(b) * max(lengths[i] for i in b) <= 300 for b in batches)
    assert make_batches([500, 3], 300) == [[1], [0]]


def test_adam_step_is_that_of_the_paper() -> None:
    weights = {"a": np.array([1.0, 2.0]), "table": np.ones((3, 1))}
    adam = Adam(weights, clip=math.inf)
    first = second = np.zeros(2)
    expected = np.array([1.0, 2.0])
    for step in range(1, 4):
        gradient = np.array([0.5, -step])
        first = 0.9 * first + 0.1 * gradient
        second = 0.95 * second + 0.05 * gradient**2
        unbiased = first / (1 - 0.9**step), second / (1 - 0.95**step)
        expected = expected - 0.01 * unbiased[0] / np.sqrt(unbiased[1])
        adam.step({"a": gradient}, {"table": (np.array([1]), np.full((1, 1), 2.0))}, 0.01)
        np.testing.assert_allclose(weights["a"], expected, rtol=1e-6)
    np.testing.assert_allclose(weights["table"][:, 0], [1, 0.97, 1], rtol=1e-6)
