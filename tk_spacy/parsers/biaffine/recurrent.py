"""A bidirectional LSTM layer and its gradient, in plain numpy.

Source: Hochreiter and Schmidhuber (1997) with forget gates; dropout of the input and of the state
by one mask a sentence as in Gal and Ghahramani (2016).  Ours differs in its layout: words of all
sentences of a batch stand one after the other, both directions go through the time steps together,
and since sentences of a batch are about as long as one another, padding is not worth masking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.biaffine.batches import Layout

Array = NDArray[np.floating[Any]]
Arrays = dict[str, Array]


@dataclass(slots=True)
class Trace:
    """What the gradient needs: of each step the gates, cell, squashed cell and state before."""

    x: Array
    gates: Array
    cells: Array
    squashed: Array
    states: Array
    layout: Layout
    state_mask: Array | None


def init_lstm(rng: np.random.Generator, name: str, n_in: int, width: int) -> Arrays:
    """Weights of a layer: input to gates, state to gates (orthogonal), and biases.

    Gates stand in the order input, forget, output, candidate; the forget gate starts open.
    """
    states = [np.linalg.qr(rng.standard_normal((width, width)))[0] for _ in range(8)]
    bias = np.zeros((2, 4, width), dtype=np.float32)
    bias[:, 1] = 1.0
    scale = np.sqrt(2.0 / (n_in + width))
    return {
        f"{name}.input": (rng.standard_normal((n_in, 8 * width)) * scale).astype(np.float32),
        f"{name}.state": np.stack(
            [np.concatenate(states[:4], axis=1), np.concatenate(states[4:], axis=1)]
        ).astype(np.float32),
        f"{name}.bias": bias.reshape(-1),
    }


def lstm(
    weights: Mapping[str, Array],
    name: str,
    x: Array,
    layout: Layout,
    state_mask: Array | None = None,
) -> tuple[Array, Trace]:
    """The states of each word, from the left and from the right: [rows, 2 * width].

    x: [rows, n_in].  state_mask: [2, sentences, width], factors of the state before it is read.
    """
    inner = weights[f"{name}.state"]
    width = inner.shape[1]
    flat = x @ weights[f"{name}.input"]
    flat += weights[f"{name}.bias"]
    n, steps = layout.sentences, layout.steps
    gates = np.zeros((steps, 2, n, 4 * width), dtype=x.dtype)
    gates[layout.time, 0, layout.owner] = flat[:, : 4 * width]
    gates[layout.reverse, 1, layout.owner] = flat[:, 4 * width :]
    cells = np.zeros((steps + 1, 2, n, width), dtype=x.dtype)
    squashed = np.empty((steps, 2, n, width), dtype=x.dtype)
    states = np.zeros((steps, 2, n, width), dtype=x.dtype)  # as they are read
    out = np.empty((steps, 2, n, width), dtype=x.dtype)
    room = np.empty((2, n, 4 * width), dtype=x.dtype)
    for t in range(steps):
        gate = gates[t]
        if t:
            if state_mask is None:
                states[t] = out[t - 1]
            else:
                np.multiply(out[t - 1], state_mask, out=states[t])
            np.matmul(states[t], inner, out=room)
            gate += room
        sigmoids = gate[:, :, : 3 * width]
        sigmoids *= 0.5
        np.tanh(gate, out=gate)
        sigmoids *= 0.5
        sigmoids += 0.5
        cell = cells[t + 1]
        np.multiply(gate[:, :, width : 2 * width], cells[t], out=cell)
        cell += gate[:, :, :width] * gate[:, :, 3 * width :]
        np.tanh(cell, out=squashed[t])
        np.multiply(gate[:, :, 2 * width : 3 * width], squashed[t], out=out[t])
    result = np.concatenate(
        [out[layout.time, 0, layout.owner], out[layout.reverse, 1, layout.owner]], axis=1
    )
    return result, Trace(x, gates, cells, squashed, states, layout, state_mask)


def lstm_gradient(
    weights: Mapping[str, Array], name: str, trace: Trace, d_result: Array, gradient: Arrays
) -> Array:
    """The gradient with respect to x; that of the weights is put into `gradient`.

    d_result: [rows, 2 * width].
    """
    layout = trace.layout
    inner = weights[f"{name}.state"]
    width = inner.shape[1]
    steps, n = layout.steps, layout.sentences
    d_out = np.zeros((steps, 2, n, width), dtype=d_result.dtype)
    d_out[layout.time, 0, layout.owner] = d_result[:, :width]
    d_out[layout.reverse, 1, layout.owner] = d_result[:, width:]
    d_gates = np.empty_like(trace.gates)
    d_cell = np.zeros((2, n, width), dtype=d_result.dtype)
    back = np.ascontiguousarray(inner.transpose(0, 2, 1))
    one = np.empty((2, n, width), dtype=d_result.dtype)
    for t in range(steps - 1, -1, -1):
        gate, d_gate, squashed = trace.gates[t], d_gates[t], trace.squashed[t]
        if t < steps - 1:
            np.matmul(d_gates[t + 1], back, out=one)
            if trace.state_mask is not None:
                one *= trace.state_mask
            d_out[t] += one
        i, f, o, g = (gate[:, :, k * width : (k + 1) * width] for k in range(4))
        di, df, do, dg = (d_gate[:, :, k * width : (k + 1) * width] for k in range(4))
        np.multiply(d_out[t], squashed, out=do)
        np.multiply(squashed, squashed, out=one)
        np.subtract(1.0, one, out=one)
        one *= d_out[t]
        one *= o
        d_cell += one
        np.multiply(d_cell, g, out=di)
        np.multiply(d_cell, trace.cells[t], out=df)
        np.multiply(d_cell, i, out=dg)
        sigmoids = gate[:, :, : 3 * width]
        slope = sigmoids - sigmoids * sigmoids
        d_gate[:, :, : 3 * width] *= slope
        np.multiply(g, g, out=one)
        np.subtract(1.0, one, out=one)
        dg *= one
        d_cell *= f
    for direction in range(2):
        read = trace.states[:, direction].reshape(steps * n, width)
        found = d_gates[:, direction].reshape(steps * n, 4 * width)
        if direction == 0:
            d_state = np.empty_like(inner)
        d_state[direction] = read.T @ found
    gradient[f"{name}.state"] = d_state
    flat = np.concatenate(
        [d_gates[layout.time, 0, layout.owner], d_gates[layout.reverse, 1, layout.owner]], axis=1
    )
    gradient[f"{name}.bias"] = flat.sum(axis=0)
    gradient[f"{name}.input"] = trace.x.T @ flat
    return flat @ weights[f"{name}.input"].T
