"""Blocks of support parts in the form in which they are scored fast.

A *row* (see the package) tells for one word and one node slot how many properties the
word shares with that slot of each part of the block, a byte a part.  It is the sum of few kept
rows, one for each group of properties, since words share combinations of tags and features, and of
increments for word forms, from an inverted index.  The parts of a block and the rows that are read
together fit a core's second-level cache.

What edges have are bytes too: each block numbers its labels and its distances, at most 253 of each,
and a block ends before it would have more.
"""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_range
from tk_spacy.utils.prefetch cimport tk_prefetch
from tk_spacy.kernels.template_kernel cimport NODE
from tk_spacy.kernels.compiled.node_groups cimport Interner

SIZE = BLOCK_SIZE
"""Parts of a block, at most."""

MAX_NAMES = 253
"""Labels, and distances, of a block, at most: the other bytes are for none and for another."""


def block_bounds(columns, kinds, *, size=SIZE):
    """Where blocks of support parts begin and end.

    columns: int32[v, q], see SupportParts.  kinds: int32 per slot.  size: of a block, at most.
    Returns bounds, ascending from 0 to q.
    """
    bounds = [0]
    edges = edge_rows(kinds)
    start = 0
    while start < columns.shape[1]:
        stop = min(start + size, columns.shape[1])
        for row in [*edges, *(edges + 1)]:
            _, first = np.unique(columns[row, start:stop], return_index=True)
            if len(first) > MAX_NAMES:
                stop = start + int(np.sort(first)[MAX_NAMES])
        bounds.append(stop)
        start = stop
    return bounds


def edge_rows(kinds):
    """Rows of the edge slots' labels in support columns, where an edge slot takes three."""
    widths = 2 * kinds + 1
    return (np.cumsum(widths) - widths)[kinds != NODE]


cdef class Block:
    """Compiled support parts.

    columns: int32[v, n], support parts, n at most SIZE.  weights: float[n].  kinds: int32 per slot.
    ids, singles: of the support's nodes, from `groups`.encode.  groups: a NodeGroups.
    capacity: rows that can be kept.
    """

    def __init__(self, columns, weights, kinds, ids, singles, groups, int capacity):
        kinds = checked("kinds", kinds, np.int32, None)
        columns = _check_columns(columns, kinds, len(ids))
        ids = checked("ids", ids, np.int32, None, len(groups.groups))
        singles = checked("singles", singles, np.int32, len(ids), len(groups.singles))
        for values, interner in zip(ids.T, groups.interners):
            checked_range("ids", values, 0, interner.size - 1)
        if capacity < 0:
            raise ValueError(f"capacity is {capacity}, expected at least 0")
        cdef Py_ssize_t n = columns.shape[1]
        self._kept = []
        self.view.n = n
        self.view.padded = max(1, (n + TK_RUN - 1) // TK_RUN) * TK_RUN
        self._weights = self._keep(np.zeros(self.view.padded, dtype=np.float32))
        self.view.weights = &self._weights[0]
        self.weigh(weights)
        nodes = np.ascontiguousarray(columns[np.flatnonzero(_is_node(kinds))])
        self._code_edges(columns, edge_rows(kinds))
        self._number_groups(nodes, ids, groups)
        self._index_singles(nodes, singles)
        cdef uint8_t[::1] rows = self._keep(np.empty(capacity * self.view.padded, dtype=np.uint8))
        cdef uint32_t[::1] have = self._keep(np.zeros(max(capacity, 1), dtype=np.uint32))
        self._rows_nbytes = capacity * self.view.padded
        self.view.rows = &rows[0] if capacity else NULL
        self.view.have = &have[0]

    def __len__(self):
        return self.view.n

    @property
    def nbytes(self):
        """Bytes of the compiled arrays, kept rows not counted."""
        return sum(array.nbytes for array in self._kept) - self._rows_nbytes + self._table.nbytes

    @property
    def row_nbytes(self):
        """Bytes of a kept row."""
        return self.view.padded

    def weigh(self, weights):
        """Gives the parts other weights, float[n].  Raises ValueError for another number."""
        if np.shape(weights) != (self.view.n,):
            raise ValueError(f"weights have shape {np.shape(weights)}, expected ({self.view.n},)")
        self._weights.base[: self.view.n] = weights

    cdef object _keep(self, array):
        self._kept.append(array)
        return array

    cdef object _code_edges(self, columns, rows):
        n_edges = len(rows)
        labels, label_names, n_labels = self._code(columns[rows])
        distances, distance_names, n_distances = self._code(columns[rows + 1])
        lengths = self._keep(np.zeros((max(n_edges, 1), self.view.padded), dtype=np.uint8))
        lengths[:n_edges, : self.view.n] = columns[rows + 2]
        cdef uint8_t[:, ::1] of_labels = labels, of_distances = distances, of_lengths = lengths
        cdef int32_t[:, ::1] names_1 = label_names, names_2 = distance_names
        cdef int32_t[::1] counts_1 = n_labels, counts_2 = n_distances
        self.view.labels, self.view.label_names = &of_labels[0, 0], &names_1[0, 0]
        self.view.distances, self.view.distance_names = &of_distances[0, 0], &names_2[0, 0]
        self.view.lengths = &of_lengths[0, 0]
        self.view.n_labels, self.view.n_distances = &counts_1[0], &counts_2[0]
        cdef uint32_t[:, ::1] some_label = self._runs_with(of_labels)[0]
        some, every = self._runs_with(of_distances)
        cdef uint32_t[:, ::1] some_distance = some, all_distance = every
        some, every = self._runs_with(of_lengths)
        cdef uint32_t[:, ::1] some_length = some, all_length = every
        self.view.some_label = &some_label[0, 0]
        self.view.some_distance, self.view.all_distance = &some_distance[0, 0], &all_distance[0, 0]
        self.view.some_length, self.view.all_length = &some_length[0, 0], &all_length[0, 0]

    cdef object _runs_with(self, const uint8_t[:, ::1] codes):
        """Which runs have a byte: in some of their parts, and in all; uint32[E, 256], bits."""
        some_array = self._keep(np.zeros((codes.shape[0], 256), dtype=np.uint32))
        all_array = self._keep(np.zeros((codes.shape[0], 256), dtype=np.uint32))
        cdef uint32_t[:, ::1] of_some = some_array, of_all = all_array
        cdef Py_ssize_t edge, i, start, n_equal
        cdef uint32_t bit
        for edge in range(codes.shape[0]):
            for start in range(0, self.view.n, TK_RUN):
                bit = <uint32_t>1 << (start // TK_RUN)
                n_equal = 0
                for i in range(start, min(start + <Py_ssize_t>TK_RUN, self.view.n)):
                    of_some[edge, codes[edge, i]] |= bit
                    n_equal += codes[edge, i] == codes[edge, start]
                # The padding weighs 0: it has whatever the others have.
                if n_equal == min(<Py_ssize_t>TK_RUN, self.view.n - start):
                    of_all[edge, codes[edge, start]] |= bit
        return some_array, all_array

    cdef object _code(self, table):
        """Bytes for int32[E, n]; 0 has a byte too, but code_of is never asked for it."""
        n_edges = max(len(table), 1)
        codes = self._keep(np.zeros((n_edges, self.view.padded), dtype=np.uint8))
        names = self._keep(np.zeros((n_edges, 256), dtype=np.int32))
        counts = self._keep(np.zeros(n_edges, dtype=np.int32))
        for i, values in enumerate(table):
            known, code = np.unique(values, return_inverse=True)
            if len(known) > MAX_NAMES:
                raise ValueError(f"a block has {len(known)} names, expected at most {MAX_NAMES}")
            codes[i, : len(code)] = code
            names[i, : len(known)] = known
            counts[i] = len(known)
        return codes, names, counts

    cdef object _number_groups(self, nodes, ids, groups):
        cdef Py_ssize_t n_slots = len(nodes), n_groups = len(groups.groups), j, g, i, w
        cdef int32_t size, width
        cdef Interner interner
        local = self._keep(np.zeros((max(n_slots * n_groups, 1), self.view.padded), np.uint16))
        counts = self._keep(np.zeros(max(n_slots * n_groups, 1), dtype=np.int32))
        pointers = self._keep(np.zeros(max(n_slots * n_groups, 1), dtype=np.uintp))
        cdef uint16_t[:, ::1] of_local = local
        cdef int32_t[::1] of_counts = counts, number, row
        cdef const int32_t[:, ::1] of_ids = ids, of_nodes = nodes
        cdef int32_t[:, ::1] values
        cdef size_t[::1] of_pointers = pointers
        for g in range(n_groups):
            interner = groups.interners[g]
            width = <int32_t>interner.width
            number = np.full(interner.size, -1, dtype=np.int32)
            for j in range(n_slots):
                size = 0
                met = np.empty(self.view.n, dtype=np.int32)
                row = met
                for i in range(self.view.n):
                    w = of_ids[of_nodes[j, i], g]
                    if number[w] < 0:
                        number[w] = size
                        row[size] = <int32_t>w
                        size += 1
                    of_local[j * n_groups + g, i] = <uint16_t>number[w]
                table = self._keep(np.empty((max(width, 1), max(size, 1)), dtype=np.int32))
                values = table
                for i in range(size):
                    number[row[i]] = -1
                    for w in range(width):
                        values[w, i] = interner.values[row[i] * width + w]
                of_counts[j * n_groups + g] = size
                of_pointers[j * n_groups + g] = <size_t>&values[0, 0]
        self.view.n_groups = <int>n_groups
        self.view.local_ids = &of_local[0, 0]
        self.view.n_combinations = &of_counts[0]
        self.view.combinations = <const int32_t **>&of_pointers[0]

    cdef object _index_singles(self, nodes, singles):
        cdef Py_ssize_t n_slots = len(nodes), n_columns = singles.shape[1], n = self.view.n
        cdef Py_ssize_t most = n_slots * n_columns * n, n_keys = 0, i, j, c, k, place
        cdef const int32_t[:, ::1] of_nodes = nodes, of_singles = singles
        cdef int32_t value, total = 0
        # For each part, slot and column the number of its key, -1 for none.
        cdef int32_t[::1] numbers = np.empty(max(most, 1), dtype=np.int32)
        cdef uint64_t[::1] keys = np.empty(max(most, 1), dtype=np.uint64)
        cdef int32_t[::1] counts = np.zeros(max(most, 1), dtype=np.int32)
        # Numbers of the keys of a slot and column, by value.
        cdef int32_t[::1] met = np.empty(2 * SIZE, dtype=np.int32)
        cdef uint16_t[::1] positions = self._keep(np.empty(max(most, 1), dtype=np.uint16))
        cdef Entry *entry
        for j in range(n_slots):
            for c in range(n_columns):
                memset(&met[0], 255, 2 * BLOCK_SIZE * sizeof(int32_t))
                for i in range(n):
                    k = (j * n_columns + c) * n + i
                    value = of_singles[of_nodes[j, i], c]
                    numbers[k] = -1
                    if value == 0:
                        continue
                    place = (<uint32_t>value * <uint32_t>0x9E3779B9) >> 16
                    place = place & (2 * BLOCK_SIZE - 1)
                    while met[place] >= 0 and <int32_t>keys[met[place]] != value:
                        place = (place + 1) & (2 * BLOCK_SIZE - 1)
                    if met[place] < 0:
                        met[place] = <int32_t>n_keys
                        keys[n_keys] = single_key(j, c, value)
                        n_keys += 1
                    numbers[k] = met[place]
                    counts[met[place]] += 1
        self._make_table(2 * n_keys)
        for k in range(n_keys):
            entry = &self.view.entries[find_key(&self.view, keys[k])]
            entry.key, entry.start, entry.count = keys[k], total, counts[k]
            total += counts[k]
            counts[k] = entry.start
        for k in range(most):
            if numbers[k] >= 0:
                positions[counts[numbers[k]]] = <uint16_t>(k % n)
                counts[numbers[k]] += 1
        self.view.positions = &positions[0]

    cdef object _make_table(self, Py_ssize_t wanted):
        cdef Py_ssize_t size = 16
        while size < wanted:
            size *= 2
        self._table = np.zeros(2 * size, dtype=np.uint64)
        self.view.entries = <Entry *>&self._table[0]
        self.view.n_entries = size


def _check_columns(columns, kinds, n_nodes):
    """Support columns as int32[v, n]; raises where they are wider or name nodes that are not."""
    is_node = _is_node(kinds)
    columns = checked("columns", columns, np.int32, len(is_node), None)
    if columns.shape[1] > SIZE:
        raise ValueError(f"columns have {columns.shape[1]} parts, expected at most {SIZE}")
    checked_range("columns", columns[np.flatnonzero(is_node)], 0, n_nodes - 1)
    lengths = columns[edge_rows(kinds) + 2]
    checked_range("lengths in columns", lengths, 0, 8)
    return columns


def _is_node(kinds):
    # One entry for each row of support columns.
    rows = []
    for kind in kinds:
        rows += [True] if kind == NODE else [False] * 3
    return np.array(rows, dtype=bool)


cdef void fill_group_row(
    const BlockView *block, int slot, int group, const int32_t *values, Py_ssize_t width,
    uint8_t *row, uint8_t *table,
) noexcept nogil:
    """How many of a group's values each part's node in a slot shares.

    row: uint8[padded], OUT.  table: uint8[SIZE], scratch.
    """
    cdef Py_ssize_t at = slot * block.n_groups + group, n = block.n_combinations[at], i, w
    cdef const uint16_t *ids = block.local_ids + at * block.padded
    memset(table, 0, n)
    for w in range(width):
        if values[w] != 0:
            tk_count_equal(block.combinations[at] + w * n, n, values[w], table)
    for i in range(block.n):
        row[i] = table[ids[i]]
    memset(row + block.n, 0, block.padded - block.n)


cdef void fill_single_row(
    const BlockView *block, int slot, int column, int32_t value, uint8_t *row
) noexcept nogil:
    """1 for each part whose node in a slot has the value of a single property, else 0."""
    cdef Entry entry = block.entries[find_key(block, single_key(slot, column, value))]
    memset(row, 0, block.padded)
    _add_entry(block, &entry, row)


cdef inline void _add_entry(
    const BlockView *block, const Entry *entry, uint8_t *row
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(entry.start, entry.start + entry.count):
        row[block.positions[i]] += 1


cdef void build_row(
    const BlockView *block, int slot, const int32_t *kept, int n_kept, const int32_t *singles,
    int n_singles, uint8_t skip, uint8_t *row,
) noexcept nogil:
    """A word's row: uint8[padded], OUT.

    kept: places of kept rows, at most MOST_PROPERTIES, -1 for none.  singles: values of single
    properties that are not among them, 0 for none.  skip: 1 where the slot may be left out of a
    combination.
    """
    cdef const uint8_t *rows[MOST_PROPERTIES]
    cdef const Entry *found[MOST_PROPERTIES]
    cdef int i, n = 0, n_found = 0
    cdef const Entry *entry
    # Looked up first: what they name comes from memory while rows are added up.
    for i in range(n_singles):
        if singles[i] != 0:
            entry = &block.entries[find_key(block, single_key(slot, i, singles[i]))]
            if entry.count:
                tk_prefetch(block.positions + entry.start)
                found[n_found] = entry
                n_found += 1
    for i in range(n_kept):
        if kept[i] >= 0:
            rows[n] = block.rows + kept[i] * block.padded
            n += 1
    tk_add_rows(row, rows, n, skip, block.padded)
    for i in range(n_found):
        _add_entry(block, found[i], row)
