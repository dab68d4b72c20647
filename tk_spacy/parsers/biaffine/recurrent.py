"""A bidirectional LSTM as one thinc layer, with its gradient written out.

Source: Hochreiter and Schmidhuber (1997) with forget gates; dropout of the input and of the state
by one mask a sentence as in Gal and Ghahramani (2016).  Ours differs in its layout: words of all
sentences of a batch stand one after the other, both directions go through the time steps together,
and since sentences of a batch are about as long as one another, padding is not worth masking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from thinc.api import Model, get_array_module
from thinc.types import Ragged

from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.parsers.biaffine import lstm_step, plain_step
from tk_spacy.parsers.biaffine.batches import Layout
from tk_spacy.parsers.biaffine.chance import generator, sentence_mask

PARTS = ("input", "state", "bias")
"""The weights' names."""
BLOCK = 12
"""Rows that OpenBLAS multiplies side by side: to the last bit, the product of a row depends on its
place in such a block alone."""
GATE_ROWS = 256
"""Rows whose gates are held at a time, about as many as a core's own cache has room for."""


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
    trace: Trace | None = None
    if is_train:
        states, trace = lstm(inputs, inner, bias, x, layout, state_mask)
    else:
        states = lstm_states(inputs, inner, bias, x, layout)

    def backprop(d_states: Ragged) -> Ragged:
        # Who does not learn seldom asks for gradients.
        known = lstm(inputs, inner, bias, x, layout)[1] if trace is None else trace
        d, gradient = lstm_gradient(inputs, inner, known, d_states.dataXd)
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
    """What the gradient needs; arrays stand in the layout of `_places`.

    x: what was read.  gates, cells, squashed, states: of each step; cells those before it, too.
    """

    x: Any
    gates: Any
    cells: Any
    squashed: Any
    states: Any
    layout: Layout
    state_mask: Any


def lstm(
    inputs: Any,
    inner: Any,
    bias: Any,
    x: Any,
    layout: Layout,
    state_mask: Any = None,
) -> tuple[Any, Trace]:
    """The states of each word, from the left and from the right: [rows, 2 * width].

    inputs: [n_in, 8 * width].  inner: [2, width, 4 * width].  bias: [8 * width].
    x: [rows, n_in].  state_mask: [2, sentences, width], factors of the state before it is read.
    """
    xp = get_array_module(x)
    width = inner.shape[1]
    n, steps = layout.sentences, layout.steps
    read, weights = _in_time(xp, x, layout), _by_direction(inputs)
    gates = xp.empty((2, steps, n, 4 * width), dtype=x.dtype)
    cells = xp.zeros((2, steps + 1, n, width), dtype=x.dtype)
    squashed = xp.empty((2, steps, n, width), dtype=x.dtype)
    states = xp.zeros((2, steps, n, width), dtype=x.dtype)  # as they are read
    out = xp.empty((2, steps, n, width), dtype=x.dtype)
    room = xp.empty((2, n, 4 * width), dtype=x.dtype)
    step = _step_of(x).forward

    def run(some: slice) -> None:
        flat = gates[some].reshape(-1, steps * n, 4 * width)
        xp.matmul(read[some], weights[some], out=flat)
        flat += bias.reshape(2, 1, 4 * width)[some]
        mask = None if state_mask is None else state_mask[some]
        for t in range(steps):
            if t:
                xp.matmul(states[some, t], inner[some], out=room[some])
            step(
                gates[some, t], room[some] if t else None, cells[some, t], mask,
                cells[some, t + 1], squashed[some, t], out[some, t],
                states[some, t + 1] if t + 1 < steps else None,
            )  # fmt: skip

    _in_directions(run)
    result = xp.concatenate(_in_rows(out, layout), axis=1)
    return result, Trace(read, gates, cells, squashed, states, layout, state_mask)


def lstm_states(inputs: Any, inner: Any, bias: Any, x: Any, layout: Layout) -> Any:
    """The states that `lstm` finds, without a mask and without what a gradient needs.

    A sentence that has ended is left out of further steps where it is shorter than those after it,
    so that batches sorted by length cost little for their padding.  The products are the same to
    the last bit as those of whole batches, since rows keep their places in blocks.
    inputs, inner, bias, x, layout: as in `lstm`.
    """
    xp = get_array_module(x)
    width = inner.shape[1]
    n, steps = layout.sentences, layout.steps
    # Of each step, the first sentence that has not ended.
    firsts = np.searchsorted(np.maximum.accumulate(layout.lengths), np.arange(steps), side="right")
    read, by_direction = _in_time(xp, x, layout), _by_direction(inputs)
    bias = bias.reshape(2, 1, 4 * width)
    some = max(1, GATE_ROWS // n)  # steps whose gates are held
    held = xp.empty((2, some * n + 3 * BLOCK, 4 * width), dtype=x.dtype)
    cells = xp.zeros((2, 2, n, width), dtype=x.dtype)  # by turns before and after a step
    squashed = xp.empty((2, n, width), dtype=x.dtype)
    out = xp.zeros((2, steps, n, width), dtype=x.dtype)
    room = xp.empty((2, n, 4 * width), dtype=x.dtype)
    step = _step_of(x).forward
    start = 0
    for t, first in enumerate(firsts.tolist()):
        if t % some == 0:
            own = firsts[t : t + some].tolist()
            spans = [((t + i) * n + f, (t + i + 1) * n) for i, f in enumerate(own)]
            spans = _blocks(spans, steps * n)
            start = spans[0][0]
            for a, b in spans:
                gates = held[:, a - start : b - start]
                xp.matmul(read[:, a:b], by_direction, out=gates)
                gates += bias
        if t:
            ((a, b),) = _blocks([(first, n)], n)
            xp.matmul(out[:, t - 1, a:b], inner, out=room[:, a:b])
        place = t * n - start
        step(
            held[:, place + first : place + n], room[:, first:] if t else None,
            cells[t % 2, :, first:], None, cells[1 - t % 2, :, first:],
            squashed[:, first:], out[:, t, first:], None,
        )  # fmt: skip
    result: Any = xp.concatenate(_in_rows(out, layout), axis=1)
    return result


def _blocks(spans: Sequence[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """Spans of rows, in order, as spans of whole blocks of all rows up to `end`.

    None is of a single row, whose product is no matrix product, unless there is no other row.
    """
    found: list[tuple[int, int]] = []
    for a, b in spans:
        a, b = a - a % BLOCK, min(b + -b % BLOCK, end)
        if b - a == 1 and a:
            a -= BLOCK
        if found and a <= found[-1][1]:
            a = found.pop()[0]
        found.append((a, b))
    return found


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
    d_out = xp.zeros((2, steps, n, width), dtype=d_result.dtype)
    d_out[0, layout.time, layout.owner] = d_result[:, :width]
    d_out[1, layout.reverse, layout.owner] = d_result[:, width:]
    d_gates = xp.empty_like(trace.gates)
    d_cell = xp.zeros((2, n, width), dtype=d_result.dtype)
    back = xp.ascontiguousarray(inner.transpose(0, 2, 1))
    d_next = xp.empty((2, n, width), dtype=d_result.dtype)
    weights = _by_direction(inputs).transpose(0, 2, 1)
    d_inputs = xp.empty((2, len(inputs), 4 * width), dtype=d_result.dtype)
    d_inner = xp.empty(inner.shape, dtype=d_result.dtype)
    d_read = xp.empty((2, steps * n, len(inputs)), dtype=d_result.dtype)
    step = _step_of(d_result).backward

    def run(some: slice) -> None:
        mask = None if trace.state_mask is None else trace.state_mask[some]
        for t in range(steps - 1, -1, -1):
            last = t == steps - 1
            if not last:
                xp.matmul(d_gates[some, t + 1], back[some], out=d_next[some])
            step(
                trace.gates[some, t], trace.cells[some, t], mask, trace.squashed[some, t],
                d_out[some, t], None if last else d_next[some], d_cell[some], d_gates[some, t],
            )  # fmt: skip
        flat = d_gates[some].reshape(-1, steps * n, 4 * width)
        states = trace.states[some].reshape(-1, steps * n, width)
        xp.matmul(trace.x[some].transpose(0, 2, 1), flat, out=d_inputs[some])
        xp.matmul(states.transpose(0, 2, 1), flat, out=d_inner[some])
        xp.matmul(flat, weights[some], out=d_read[some])

    _in_directions(run)
    gradient = {
        "input": xp.concatenate([d_inputs[0], d_inputs[1]], axis=1),
        "state": d_inner,
        "bias": d_gates.reshape(2, steps * n, 4 * width).sum(axis=1).reshape(-1),
    }
    left, right = _in_rows(d_read.reshape(2, steps, n, -1), layout)
    return left + right, gradient


# Both directions at a time, where a thread is given to each


_SECOND: ContextVar[ThreadPoolExecutor | None] = ContextVar("second", default=None)
"""Where the direction from the right is worked on; None for the thread that asks."""


@contextmanager
def directions_apart(n_threads: int | None) -> Iterator[None]:
    """While this lasts, both directions learn side by side where there are two threads for them.

    Neither looks at the other's numbers, so these do not depend on it.
    n_threads: None for all cores.
    """
    if effective_n_threads(n_threads) < 2:
        yield
        return
    with ThreadPoolExecutor(1) as pool:
        token = _SECOND.set(pool)
        try:
            yield
        finally:
            _SECOND.reset(token)


def _in_directions(run: Callable[[slice], None]) -> None:
    """Work on both directions, which are given as a slice of them."""
    second = _SECOND.get()
    if second is None:
        run(slice(0, 2))
        return
    from_right = second.submit(run, slice(1, 2))
    try:
        run(slice(0, 1))
    finally:
        from_right.result()


# Words of all sentences at each step, from the left and from the right: [2, steps, sentences, ...]


def _in_time(xp: Any, x: Any, layout: Layout) -> Any:
    """Rows by the steps at which each direction reads them: [2, steps * sentences, n_in]."""
    read = xp.zeros((2, layout.steps, layout.sentences, x.shape[1]), dtype=x.dtype)
    read[0, layout.time, layout.owner] = x
    read[1, layout.reverse, layout.owner] = x
    return read.reshape(2, layout.steps * layout.sentences, x.shape[1])


def _in_rows(values: Any, layout: Layout) -> tuple[Any, Any]:
    """The values of each row, from the left and from the right."""
    return values[0, layout.time, layout.owner], values[1, layout.reverse, layout.owner]


def _by_direction(inputs: Any) -> Any:
    """The weights of each direction: [2, n_in, 4 * width]."""
    return inputs.reshape(len(inputs), 2, -1).transpose(1, 0, 2)


def _step_of(x: Any) -> Any:
    """Where a step of these arrays is taken."""
    return lstm_step if type(x) is np.ndarray and x.dtype == np.float32 else plain_step
