"""Embedding tables of which an update changes only the rows that were read.

A treebank's tables have some ten thousand rows, a batch reads some hundreds of them.  thinc's
parameters are updated whole: the moments of all rows are read and written at every step, which
would take longer than the rest of a step.  So the tables stand in a shim, thinc's place for weights
with an update of their own, and hand their rows to thinc's optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import srsly
from numpy.typing import NDArray
from thinc.api import Optimizer, Shim, get_current_ops, get_ops

Rows = NDArray[np.int32]


class Tables(Shim):
    """Tables by name: float32[rows, width], whose row 0 is no value and stays 0."""

    def __init__(self) -> None:
        super().__init__(None)
        self.ops: Any = get_current_ops()
        self.arrays: dict[str, Any] = {}
        self._slopes: dict[str, list[tuple[Rows, Any]]] = {}

    def read(self, name: str, ids: Rows) -> Any:
        """The sums of rows [n, width]; ids: int32[n, columns]."""
        return self.ops.gather_add(self.arrays[name], ids)

    def add_slopes(self, name: str, ids: Rows, d: Any) -> None:
        """Note the gradient of what was read: d [n, width] of ids int32[n, columns]."""
        found, places = self.ops.xp.unique(ids, return_inverse=True)
        places = places.reshape(ids.shape).astype(np.int32)
        slopes = self.ops.xp.zeros((len(found), d.shape[1]), dtype=d.dtype)
        d = self.ops.xp.ascontiguousarray(d)
        for column in range(ids.shape[1]):
            self.ops.scatter_add(slopes, self.ops.xp.ascontiguousarray(places[:, column]), d)
        used = slice(int(len(found) > 0 and int(found[0]) == 0), None)
        self._slopes.setdefault(name, []).append((found[used], slopes[used]))

    def gradient(self, name: str) -> tuple[Rows, Any]:
        """The rows that were read since the last update, each once, and their gradient."""
        noted = self._slopes.get(name, [])
        if len(noted) == 1:
            return noted[0]
        if not noted:
            table = self.arrays[name]
            return np.empty(0, np.int32), self.ops.xp.zeros((0, table.shape[1]), table.dtype)
        rows = self.ops.xp.concatenate([own for own, _ in noted])
        found, places = self.ops.xp.unique(rows, return_inverse=True)
        total = self.ops.xp.zeros((len(found), noted[0][1].shape[1]), dtype=noted[0][1].dtype)
        values = self.ops.xp.concatenate([slopes for _, slopes in noted])
        self.ops.scatter_add(total, places.astype(np.int32), values)
        return found, total

    # As thinc wants it

    def finish_update(self, optimizer: Optimizer) -> None:
        """Hand the rows that were read, or with averages the whole tables, to the optimizer.

        Rows that were not read keep their moments, and are not decayed.  The average of a table
        changes in all of its rows at every step, so with averages nothing is spared.
        """
        for name in list(self._slopes):
            rows, slopes = self.gradient(name)
            table, key = self.arrays[name], (self.id, name)
            if optimizer.averages is not None:
                whole = self.ops.xp.zeros_like(table)
                whole[rows] = slopes
                self.arrays[name] = optimizer(key, table, whole)[0]
            elif len(rows):
                self._update_rows(optimizer, key, table, rows, slopes)
        self._slopes.clear()

    def _update_rows(
        self, optimizer: Optimizer, key: tuple[int, str], table: Any, rows: Rows, slopes: Any
    ) -> None:
        kept = (self.id, f"{key[1]}, all rows")
        both: list[Any] = [optimizer.mom1, optimizer.mom2]
        for moments in both:
            if kept not in moments:
                moments[kept] = self.ops.xp.zeros_like(table)
            moments[key] = moments[kept][rows].reshape(-1)
        table[rows] = optimizer(key, table[rows], slopes)[0]
        for moments in both:
            moments[kept][rows] = moments.pop(key).reshape(slopes.shape)

    @contextmanager
    def use_params(self, params: Any) -> Iterator[None]:
        """Other tables while this lasts, by (id, name)."""
        own = dict(self.arrays)
        self.arrays.update({n: params[self.id, n] for n in own if (self.id, n) in params})
        try:
            yield
        finally:
            self.arrays = own

    def copy(self) -> Self:
        """Tables of the same values, with an id of their own by which optimizers know them."""
        copied = type(self)()
        copied.ops = self.ops
        copied.arrays = {name: table.copy() for name, table in self.arrays.items()}
        return copied

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the tables."""
        self.ops = get_ops("cupy" if device_type == "gpu" else "cpu", device_id=device_id)
        self.arrays = {n: self.ops.asarray_f(table) for n, table in self.arrays.items()}
        self._slopes.clear()

    def to_bytes(self) -> bytes:
        """The tables."""
        packed: bytes = srsly.msgpack_dumps(
            {n: self.ops.to_numpy(table, byte_order="<") for n, table in self.arrays.items()}
        )
        return packed

    def from_bytes(self, data: bytes) -> Self:
        """Take the tables of `to_bytes`."""
        found = srsly.msgpack_loads(data)
        self.arrays = {name: self.ops.asarray_f(table).copy() for name, table in found.items()}
        return self
