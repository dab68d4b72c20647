"""A bidirectional LSTM as one thinc layer, with its gradient written out.

Source: Hochreiter and Schmidhuber (1997) with forget gates; dropout of the input and of the state
by one mask a sentence as in Gal and Ghahramani (2016).  Ours differs in its layout: words of all
sentences of a batch stand one after the other, both directions go through the time steps together,
and since sentences of a batch are about as long as one another, padding is not worth masking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from thinc.api import Model, get_array_module
from thinc.types import Ragged

from tk_spacy.parsers.biaffine.batches import Layout
from tk_spacy.parsers.biaffine.chance import generator, sentence_mask

Array = NDArray[np.floating[Any]]
PARTS = ("input", "state", "bias")
"""The weights' names."""


def make_lstm(width: int, *, dropout: float = 0.0) -> Model[Ragged, Ragged]:
    """A layer from rows of sentences to the states of both directions: Ragged of 2 * width.

    width: of the state in each direction.  dropout: of the input and of the state.
    """
    return Model(
        "tk_lstm",
        forward,
        init=init,
        params=dict.fromkeys(PARTS),
        dims={"nI": None, "nO": 2 * width},
        attrs={"dropout_rate": dropout},
    )


def forward(
    model: Model[Ragged, Ragged], X: Ragged, is_train: bool
) -> tuple[Ragged, Callable[[Ragged], Ragged]]:
    """The states of each row, from the left and from the right."""
    layout = Layout.of(model.ops.to_numpy(X.lengths), model.ops)
    rate = model.attrs["dropout_rate"] if is_train else 0.0
    mask: Any = None
    state_mask: Any = None
    x: Any = X.dataXd
    if rate:
        mask = sentence_mask(model.ops, layout, x.shape[1], rate)
        x = x * mask
        state_mask = model.ops.get_dropout_mask(
            (2, layout.sentences, model.get_dim("nO") // 2), rate
        )
    inputs, inner, bias = map(model.get_param, PARTS)
    states, trace = lstm(inputs, inner, bias, x, layout, state_mask)

    def backprop(d_states: Ragged) -> Ragged:
        d, gradient = lstm_gradient(inputs, inner, trace, d_states.dataXd)
        for name, value in gradient.items():
            model.inc_grad(name, value)
        if mask is not None:
            d *= mask
        return Ragged(d, X.lengths)

    return Ragged(states, X.lengths), backprop


def init(model: Model[Ragged, Ragged], X: Ragged | None = None, Y: Any = None) -> None:
    """Weights: input to gates, state to gates (orthogonal), and biases.

    Gates stand in the order input, forget, output, candidate; the forget gate starts open.
    """
    if X is not None:
        model.set_dim("nI", X.data.shape[1])
    n_in, width = model.get_dim("nI"), model.get_dim("nO") // 2
    rng = generator()
    states = [np.linalg.qr(rng.standard_normal((width, width)))[0] for _ in range(8)]
    bias = np.zeros((2, 4, width), dtype=np.float32)
    bias[:, 1] = 1.0
    scale = np.sqrt(2.0 / (n_in + width))
    values: dict[str, Any] = {
        "input": rng.standard_normal((n_in, 8 * width)) * scale,
        "state": np.stack([np.concatenate(states[:4], axis=1), np.concatenate(states[4:], axis=1)]),
        "bias": bias.reshape(-1),
    }
    for name, value in values.items():
        model.set_param(name, model.ops.asarray_f(value.astype(np.float32)))


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


def lstm(
    inputs: Any,
    inner: Any,
    bias: Any,
    x: Any,
    layout: Layout,
    state_mask: Array | None = None,
) -> tuple[Any, Trace]:
    """The states of each word, from the left and from the right: [rows, 2 * width].

    inputs: [n_in, 8 * width].  inner: [2, width, 4 * width].  bias: [8 * width].
    x: [rows, n_in].  state_mask: [2, sentences, width], factors of the state before it is read.
    """
    xp = get_array_module(x)
    width = inner.shape[1]
    flat = x @ inputs
    flat += bias
    n, steps = layout.sentences, layout.steps
    gates = xp.zeros((steps, 2, n, 4 * width), dtype=x.dtype)
    gates[layout.time, 0, layout.owner] = flat[:, : 4 * width]
    gates[layout.reverse, 1, layout.owner] = flat[:, 4 * width :]
    cells = xp.zeros((steps + 1, 2, n, width), dtype=x.dtype)
    squashed = xp.empty((steps, 2, n, width), dtype=x.dtype)
    states = xp.zeros((steps, 2, n, width), dtype=x.dtype)  # as they are read
    out = xp.empty((steps, 2, n, width), dtype=x.dtype)
    room = xp.empty((2, n, 4 * width), dtype=x.dtype)
    for t in range(steps):
        gate = gates[t]
        if t:
            if state_mask is None:
                states[t] = out[t - 1]
            else:
                xp.multiply(out[t - 1], state_mask, out=states[t])
            xp.matmul(states[t], inner, out=room)
            gate += room
        sigmoids = gate[:, :, : 3 * width]
        sigmoids *= 0.5
        xp.tanh(gate, out=gate)
        sigmoids *= 0.5
        sigmoids += 0.5
        cell = cells[t + 1]
        xp.multiply(gate[:, :, width : 2 * width], cells[t], out=cell)
        cell += gate[:, :, :width] * gate[:, :, 3 * width :]
        xp.tanh(cell, out=squashed[t])
        xp.multiply(gate[:, :, 2 * width : 3 * width], squashed[t], out=out[t])
    result = xp.concatenate(
        [out[layout.time, 0, layout.owner], out[layout.reverse, 1, layout.owner]], axis=1
    )
    return result, Trace(x, gates, cells, squashed, states, layout, state_mask)


def lstm_gradient(
    inputs: Any, inner: Any, trace: Trace, d_result: Any
) -> tuple[Any, dict[str, Any]]:
    """The gradient with respect to x, and those of the weights by their names.

    inputs, inner: as in `lstm`.  d_result: [rows, 2 * width].
    """
    xp = get_array_module(d_result)
    layout = trace.layout
    width = inner.shape[1]
    steps, n = layout.steps, layout.sentences
    d_out = xp.zeros((steps, 2, n, width), dtype=d_result.dtype)
    d_out[layout.time, 0, layout.owner] = d_result[:, :width]
    d_out[layout.reverse, 1, layout.owner] = d_result[:, width:]
    d_gates = xp.empty_like(trace.gates)
    d_cell = xp.zeros((2, n, width), dtype=d_result.dtype)
    back = xp.ascontiguousarray(inner.transpose(0, 2, 1))
    one = xp.empty((2, n, width), dtype=d_result.dtype)
    for t in range(steps - 1, -1, -1):
        gate, d_gate, squashed = trace.gates[t], d_gates[t], trace.squashed[t]
        if t < steps - 1:
            xp.matmul(d_gates[t + 1], back, out=one)
            if trace.state_mask is not None:
                one *= trace.state_mask
            d_out[t] += one
        i, f, o, g = (gate[:, :, k * width : (k + 1) * width] for k in range(4))
        di, df, do, dg = (d_gate[:, :, k * width : (k + 1) * width] for k in range(4))
        xp.multiply(d_out[t], squashed, out=do)
        xp.multiply(squashed, squashed, out=one)
        xp.subtract(1.0, one, out=one)
        one *= d_out[t]
        one *= o
        d_cell += one
        xp.multiply(d_cell, g, out=di)
        xp.multiply(d_cell, trace.cells[t], out=df)
        xp.multiply(d_cell, i, out=dg)
        sigmoids = gate[:, :, : 3 * width]
        slope = sigmoids - sigmoids * sigmoids
        d_gate[:, :, : 3 * width] *= slope
        xp.multiply(g, g, out=one)
        xp.subtract(1.0, one, out=one)
        dg *= one
        d_cell *= f
    d_state = xp.empty_like(inner)
    for direction in range(2):
        read = trace.states[:, direction].reshape(steps * n, width)
        found = d_gates[:, direction].reshape(steps * n, 4 * width)
        d_state[direction] = read.T @ found
    flat = xp.concatenate(
        [d_gates[layout.time, 0, layout.owner], d_gates[layout.reverse, 1, layout.owner]], axis=1
    )
    gradient = {"input": trace.x.T @ flat, "state": d_state, "bias": flat.sum(axis=0)}
    return flat @ inputs.T, gradient
