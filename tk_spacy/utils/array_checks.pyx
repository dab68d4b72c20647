"""Arguments of compiled functions as arrays of the right kind, or an error that names them.

A cast would hide a mistake: 0.7 would become head 0, and 2 ** 32 + 1 head 1.
"""

import numpy as np

cdef object NDARRAY = np.ndarray
cdef dict DTYPES = {kind: np.dtype(kind) for kind in (np.int32, np.float32, np.float64)}
cdef dict CASTS = {"i": "iu", "u": "iu", "f": "fiu"}   # kinds that may become one of the kind


def checked(str name, values, dtype, *shape):
    """The values as a contiguous array of a dtype and shape; itself where it is one.

    name: of the argument, for messages.  shape: None for any length.
    Raises TypeError for values of another kind, ValueError for another shape and for integers that
    the dtype cannot hold.
    """
    wanted = DTYPES.get(dtype)
    # Nearly always: as short as can be.
    if (
        type(values) is NDARRAY and values.dtype is wanted and values.flags.c_contiguous
        and fits(values.shape, shape)
    ):
        return values
    if wanted is None:
        wanted = np.dtype(dtype)
    array = np.asarray(values)
    if array.dtype != wanted:
        if array.size and array.dtype.kind not in CASTS[wanted.kind]:
            raise TypeError(f"{name} must be {_show(wanted, shape)}, got {_got(array)}")
        if array.size and wanted.kind in "iu":
            limits = np.iinfo(wanted)
            low, high = int(array.min()), int(array.max())
            if low < limits.min or high > limits.max:
                beyond = low if low < limits.min else high
                raise ValueError(f"{name} holds {beyond}, which no {wanted} can be")
    if not fits(array.shape, shape):
        raise ValueError(f"{name} must be {_show(wanted, shape)}, got {_got(array)}")
    return np.ascontiguousarray(array, dtype=wanted)


def checked_target(str name, values, dtype, *shape):
    """The values themselves, an array that is written to: a copy would lose what is written.

    Raises TypeError for what is no array of the dtype, ValueError for another shape, and for one
    that is not contiguous or is read-only.
    """
    wanted = np.dtype(dtype)
    if not isinstance(values, NDARRAY) or values.dtype != wanted:
        got = _got(values) if isinstance(values, NDARRAY) else type(values).__name__
        raise TypeError(f"{name} must be {_show(wanted, shape)}, got {got}")
    if not fits(values.shape, shape):
        raise ValueError(f"{name} must be {_show(wanted, shape)}, got {_got(values)}")
    if not values.flags.c_contiguous or not values.flags.writeable:
        raise ValueError(f"{name} is written to, and must be contiguous and not read-only")
    return values


def checked_range(str name, values, low, high):
    """Raises ValueError where an integer lies outside low..high."""
    if values.size and (int(values.min()) < low or int(values.max()) > high):
        wrong = values[(values < low) | (values > high)]
        raise ValueError(f"{name} holds {int(wrong.flat[0])}, expected {low} to {high}")


cdef bint fits(tuple shape, tuple wanted) except -1:
    cdef Py_ssize_t i
    if len(shape) != len(wanted):
        return False
    for i in range(len(wanted)):
        if wanted[i] is not None and wanted[i] != shape[i]:
            return False
    return True


cdef str _show(dtype, tuple shape):
    return f"{dtype}[{', '.join(['_' if size is None else str(size) for size in shape])}]"


cdef str _got(array):
    return f"{array.dtype} of shape {array.shape}"
