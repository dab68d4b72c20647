"""One step in time of an LSTM in single precision: everything but the matrix products.

All arrays are float32 of one direction or both, [1 or 2, n, width] for n sentences, those of gates
[1 or 2, n, 4 * width] (input, forget, output, candidate); each direction's rows stand one after the
other.  `plain_step` does the same with any arrays.
"""

cdef extern from "lstm_step.h":
    void tk_lstm_step(
        float *gates, const float *added, const float *before, const float *mask, float *cell,
        float *squashed, float *out, float *onward, Py_ssize_t rows, Py_ssize_t width
    ) noexcept nogil
    void tk_lstm_back(
        const float *gates, const float *before, const float *mask, const float *squashed,
        const float *d_out, const float *d_next, float *d_cell, float *d_gates,
        Py_ssize_t rows, Py_ssize_t width
    ) noexcept nogil

ctypedef float[:, :, :] Rows


def forward(Rows gates, Rows added, Rows before, Rows mask, Rows cell, Rows squashed, Rows out,
            Rows onward):
    """Gates before they are squashed become gates; cell, squashed and out follow from them.

    added: what comes to the gates from the states before; None at the first step.
    before: the cells before.  mask: factors of `out` in `onward`, or None.
    onward: the states as the next step reads them; None at the last step.
    """
    cdef Py_ssize_t rows = _check("gates", gates, 4 * out.shape[2], out)
    cdef Py_ssize_t width = out.shape[2]
    cdef int d
    for name, array in (("before", before), ("cell", cell), ("squashed", squashed), ("out", out)):
        _check(name, array, width, out)
    if added is not None:
        _check("added", added, 4 * width, out)
    if mask is not None:
        _check("mask", mask, width, out)
    if onward is not None:
        _check("onward", onward, width, out)
    if rows == 0 or width == 0:
        return
    with nogil:
        for d in range(out.shape[0]):
            tk_lstm_step(
                &gates[d, 0, 0],
                NULL if added is None else &added[d, 0, 0],
                &before[d, 0, 0],
                NULL if mask is None else &mask[d, 0, 0],
                &cell[d, 0, 0], &squashed[d, 0, 0], &out[d, 0, 0],
                NULL if onward is None else &onward[d, 0, 0],
                rows, width,
            )


def backward(Rows gates, Rows before, Rows mask, Rows squashed, Rows d_out, Rows d_next,
             Rows d_cell, Rows d_gates):
    """The gradients of what `forward` read, from those of what it gave.

    d_out: of `out` as other layers read it.  d_next: of `onward`; None at the last step.
    d_cell: of `cell` through the next step; becomes that of `before`.  d_gates: filled.
    """
    cdef Py_ssize_t rows = _check("gates", gates, 4 * d_out.shape[2], d_out)
    cdef Py_ssize_t width = d_out.shape[2]
    cdef int d
    _check("d_gates", d_gates, 4 * width, d_out)
    for name, array in (
        ("before", before), ("squashed", squashed), ("d_out", d_out), ("d_cell", d_cell)
    ):
        _check(name, array, width, d_out)
    if mask is not None:
        _check("mask", mask, width, d_out)
    if d_next is not None:
        _check("d_next", d_next, width, d_out)
    if rows == 0 or width == 0:
        return
    with nogil:
        for d in range(d_out.shape[0]):
            tk_lstm_back(
                &gates[d, 0, 0], &before[d, 0, 0],
                NULL if mask is None else &mask[d, 0, 0],
                &squashed[d, 0, 0], &d_out[d, 0, 0],
                NULL if d_next is None else &d_next[d, 0, 0],
                &d_cell[d, 0, 0], &d_gates[d, 0, 0], rows, width,
            )


cdef Py_ssize_t _check(str name, Rows array, Py_ssize_t width, Rows like) except -1:
    """The rows of a direction, which must be as many as in `like`, one after the other."""
    cdef Py_ssize_t directions = like.shape[0], rows = like.shape[1]
    if array.shape[0] != directions or array.shape[1] != rows or array.shape[2] != width:
        raise ValueError(
            f"{name} has shape ({array.shape[0]}, {array.shape[1]}, {array.shape[2]}), "
            f"expected ({directions}, {rows}, {width})"
        )
    cdef Py_ssize_t size = sizeof(float)
    if array.strides[2] != size or (rows > 1 and array.strides[1] != width * size):
        raise ValueError(f"the rows of {name} do not stand one after the other")
    return rows
