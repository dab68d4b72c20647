"""One step in time of an LSTM on arrays of any module and precision, as `lstm_step` takes it.

For arrays on a GPU, and for those in double precision by which gradients are tested.
"""

from __future__ import annotations

from typing import Any

from thinc.api import get_array_module


def forward(
    gates: Any, added: Any, before: Any, mask: Any, cell: Any, squashed: Any, out: Any, onward: Any
) -> None:
    """Gates before they are squashed become gates; see `lstm_step.forward`."""
    xp = get_array_module(gates)
    width = out.shape[-1]
    if added is not None:
        gates += added
    sigmoids = gates[..., : 3 * width]
    sigmoids *= 0.5
    xp.tanh(gates, out=gates)
    sigmoids *= 0.5
    sigmoids += 0.5
    i, f, o, g = (gates[..., k * width : (k + 1) * width] for k in range(4))
    xp.multiply(f, before, out=cell)
    cell += i * g
    xp.tanh(cell, out=squashed)
    xp.multiply(o, squashed, out=out)
    if onward is not None:
        onward[...] = out if mask is None else out * mask


def backward(
    gates: Any,
    before: Any,
    mask: Any,
    squashed: Any,
    d_out: Any,
    d_next: Any,
    d_cell: Any,
    d_gates: Any,
) -> None:
    """The gradients of what `forward` read; see `lstm_step.backward`."""
    width = d_out.shape[-1]
    i, f, o, g = (gates[..., k * width : (k + 1) * width] for k in range(4))
    d = d_out
    if d_next is not None:
        d = d + (d_next if mask is None else d_next * mask)
    slope = d_cell + d * o * (1.0 - squashed * squashed)
    d_gates[..., :width] = slope * g * (i - i * i)
    d_gates[..., width : 2 * width] = slope * before * (f - f * f)
    d_gates[..., 2 * width : 3 * width] = d * squashed * (o - o * o)
    d_gates[..., 3 * width :] = slope * i * (1.0 - g * g)
    d_cell[...] = slope * f
