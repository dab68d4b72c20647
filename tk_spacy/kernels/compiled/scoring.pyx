"""Scores of parts against weighted support parts, exactly and fast: weight * k(support part, part).

Source: the paper's equation 3, f-hat, by the scheme of this package.  Support parts lie in
blocks (blocks.pyx).  For each block, and for some parts at a time, the rows of the words that the
parts name are added up; then each part is one pass over them.  Arcs of one head and one modifier
share a pass, whatever their labels (tk_pair_sums in simd.h).

Parts are summed block by block, each sum one thread's own, and the blocks in order: results do not
depend on the number of threads.  Weights and products are single precision, sums double.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, uint8_t, uint32_t

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_range
from tk_spacy.kernels.compiled.blocks cimport (
    BLOCK_SIZE, MAX_SLOTS, NO_CODE, TK_MOST_LABELS, Block, BlockView, await_row, build_row,
    code_of, fill_group_row, fill_single_row, tk_edge, tk_pair, tk_pair_sums, tk_part_sum,
)
from tk_spacy.kernels.compiled.node_groups cimport Interner
from tk_spacy.kernels.compiled.row_cache cimport RowKeeper
from tk_spacy.kernels.template_kernel cimport EDGE, NODE, check_part_nodes, length_bin
from tk_spacy.parallel.stopping cimport Listener, await_others, is_stopped, task_done
from tk_spacy.parallel.threads import effective_n_threads

cdef enum:
    MOST_ROWS = 96           # rows that are read together: they fit the second-level cache
    MOST_PARTIAL = 1 << 22   # sums of one part and one block that are held at a time

LARGEST_BYTE = 255
LARGEST_SHORT = 65535


def fits_bytes(n_properties):
    """Whether counts of equal properties, and one for a skipped slot, fit a byte."""
    return n_properties + 1 <= LARGEST_BYTE


cdef class CompiledParts:
    """Support parts of one type, compiled.

    kinds, skips: int32 per slot.  groups: a NodeGroups with at most 254 properties.  frequent,
    limit: see RowKeeper; limit is also the capacity of blocks.
    """

    def __init__(self, kinds, skips, groups, frequent, Py_ssize_t limit):
        if not fits_bytes(groups.n_properties):
            raise ValueError(f"{groups.n_properties} properties, expected at most 254")
        kinds = checked("kinds", kinds, np.int32, None)
        skips = checked("skips", skips, np.int32, len(kinds))
        checked_range("kinds", kinds, 0, 1)
        checked_range("skips", skips, 0, 1)
        self.kinds = kinds.copy()
        self.slot_kinds = self.kinds
        self.skips = np.array(skips, dtype=np.int32)[np.asarray(kinds) == NODE]
        widths = np.asarray(kinds) + 1
        self.node_columns = (np.cumsum(widths) - widths)[np.asarray(kinds) == NODE].astype(np.int32)
        self.n_nodes = len(self.node_columns)
        self.n_edges = len(kinds) - self.n_nodes
        if max(self.n_nodes, self.n_edges) > MAX_SLOTS:
            raise ValueError(f"{len(kinds)} slots, expected at most {MAX_SLOTS} of each kind")
        # An arc's product fits 16 bits: the loop for it is twice as fast, and scores a pair of
        # words with all its labels, which it looks for between the two words.
        self.short_products = (
            self.kinds.tolist() == [NODE, EDGE, NODE]
            and 4 * (groups.n_properties + 1) ** 2 <= LARGEST_SHORT
        )
        self.groups = groups
        self.keeper = RowKeeper(groups, self.n_nodes, frequent, limit)
        self.blocks = []

    def append(self, columns, weights, ids, singles):
        """One more block: see Block, which checks its arguments."""
        self.blocks.append(
            Block(
                columns, weights, self.kinds, ids, singles, self.groups,
                self.keeper.limit,
            )
        )

    @property
    def nbytes(self):
        """Bytes of the compiled arrays and of the kept rows in use."""
        return sum(
            block.nbytes + self.keeper.used * block.row_nbytes for block in self.blocks
        )

    def add_scores(self, ids, singles, parts, out, *, first=0, n_threads=None):
        """Adds to out[i] the weighted kernel of part i with the parts of the blocks from first on.

        ids, singles: of the words, from groups.encode.  parts: int32[p, w], slot form; parts that
        follow each other should share words.  out: float64[p].
        Raises TypeError or ValueError for arrays that do not fit.
        """
        cdef Py_ssize_t start = 0
        check_encoded(self.groups, ids, singles)
        parts = checked("parts", parts, np.int32, None, self.n_nodes + 2 * self.n_edges)
        check_part_nodes(parts, self.kinds, len(ids))
        if len(out) != len(parts):
            raise ValueError(f"out has {len(out)} scores, expected {len(parts)}")
        blocks = self.blocks[first:]
        most = max(1, MOST_PARTIAL // max(1, len(blocks)))
        while blocks and start < len(parts):
            start = self._add_some(
                blocks, ids, singles, parts, out, start, most, effective_n_threads(n_threads)
            )

    cdef Py_ssize_t _add_some(
        self, list blocks, const int32_t[:, ::1] ids, const int32_t[:, ::1] singles,
        const int32_t[:, ::1] parts, double[::1] out, Py_ssize_t start, Py_ssize_t most,
        int n_threads,
    ) except -1:
        """Scores parts from start on, as many as there are rows kept for; returns the next one."""
        cdef Py_ssize_t i, b, stop = min(parts.shape[0], start + most)
        cdef Runs runs = Runs(
            self.n_nodes, ids.shape[0], stop - start, self.keeper, self.short_products
        )
        self.keeper.begin()
        for i in range(start, stop):
            if not runs.add(self.keeper, ids, singles, &parts[i, 0], &self.node_columns[0]):
                stop = i
                break
        if stop == start:
            raise MemoryError(f"a part needs more than the {self.keeper.limit} rows that are kept")
        runs.end()
        sums = np.zeros((len(blocks), stop - start))
        self.fill(blocks, n_threads)
        self._score(blocks, runs, parts[start:stop], sums, n_threads)
        cdef double[:, ::1] of_blocks = sums
        for i in range(stop - start):
            for b in range(of_blocks.shape[0]):
                out[start + i] += of_blocks[b, i]
        return stop

    cdef int fill(self, list blocks, int n_threads) except -1:
        """Sees that every block has the rows of the present batch."""
        cdef RowKeeper keeper = self.keeper
        cdef int32_t[::1] wanted = keeper.wanted()
        cdef Py_ssize_t n = wanted.shape[0], i, b, n_blocks = len(blocks)
        # The values that a row counts: of a group, or one value.
        cdef size_t[::1] values = np.zeros(n + 1, dtype=np.uintp)
        cdef int32_t[::1] widths = np.zeros(n + 1, dtype=np.int32)
        cdef size_t[::1] views = views_of(blocks)
        cdef Interner interner
        cdef int32_t *owner
        for i in range(n):
            owner = &keeper.owners[wanted[i], 0]
            if owner[1] < keeper.n_groups:
                interner = self.groups.interners[owner[1]]
                widths[i] = <int32_t>interner.width
                values[i] = <size_t>(interner.values + owner[2] * interner.width)
            else:
                values[i] = <size_t>(
                    <int32_t *>keeper.value_table[
                        owner[0] * keeper.n_singles + owner[1] - keeper.n_groups
                    ] + owner[2]
                )
        for b in prange(
            n_blocks, nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads
        ):
            _fill_block(
                <const BlockView *>views[b], keeper, &wanted[0] if n else NULL, n, &values[0],
                &widths[0],
            )
        return 0

    cdef int _score(
        self, list blocks, Runs runs, const int32_t[:, ::1] parts, double[:, ::1] sums,
        int n_threads,
    ) except -1:
        cdef Py_ssize_t n_blocks = len(blocks), n_runs = runs.n_runs, task
        cdef size_t[::1] views = views_of(blocks)
        # Rows of words, for each thread.
        cdef uint8_t[:, ::1] rows = np.empty((n_threads, MOST_ROWS * BLOCK_SIZE), dtype=np.uint8)
        cdef Py_ssize_t n_tasks = n_blocks * n_runs
        cdef Listener listener = Listener(<int>n_tasks)
        # Turns of waiting come in chunks, too: of each thread's one begins with such a turn.
        for task in prange(
            n_tasks + 4 * n_threads, nogil=True, schedule="dynamic", chunksize=4,
            num_threads=n_threads,
        ):
            if task >= n_tasks:
                await_others(&listener.watch)
                continue
            if not is_stopped(&listener.watch):
                self._score_run(
                    <const BlockView *>views[task // n_runs], runs, task % n_runs, parts,
                    &sums[task // n_runs, 0], &rows[threadid(), 0],
                )
            task_done(&listener.watch)
        listener.check()
        return 0

    cdef void _score_run(
        self, const BlockView *block, Runs runs, Py_ssize_t run, const int32_t[:, ::1] parts,
        double *sums, uint8_t *rows,
    ) noexcept nogil:
        cdef Py_ssize_t i, first = runs.first_rows[run], n = block.padded
        cdef int slot, row, column, edge
        cdef const uint8_t *nodes[MAX_SLOTS]
        cdef tk_edge edges[MAX_SLOTS]
        for i in range(first, runs.first_rows[run + 1]):
            if i + 1 < runs.first_rows[run + 1]:
                slot, row = runs.slots[i + 1], runs.rows[i + 1]
                await_row(
                    block, slot, &runs.kept[slot, row, 0], runs.width, &runs.rest[slot, row, 0],
                    runs.n_singles,
                )
            slot, row = runs.slots[i], runs.rows[i]
            build_row(
                block, slot, &runs.kept[slot, row, 0], runs.width, &runs.rest[slot, row, 0],
                runs.n_singles, <uint8_t>self.skips[slot], rows + (i - first) * n,
            )
        if self.short_products:
            for i in range(runs.first_pairs[run], runs.first_pairs[run + 1]):
                _score_pair(block, runs, i, parts, rows, sums)
            return
        for i in range(runs.first_parts[run], runs.first_parts[run + 1]):
            for slot in range(self.n_nodes):
                nodes[slot] = rows + runs.local[i * self.n_nodes + slot] * n
            column = edge = 0
            for slot in range(self.slot_kinds.shape[0]):
                if self.slot_kinds[slot] == NODE:
                    column += 1
                else:
                    _code_edge(block, edge, parts[i, column], parts[i, column + 1], &edges[edge])
                    edge += 1
                    column += 2
            sums[i] = tk_part_sum(nodes, self.n_nodes, edges, self.n_edges, block.weights, n)


cdef void _score_pair(
    const BlockView *block, Runs runs, Py_ssize_t pair, const int32_t[:, ::1] parts,
    const uint8_t *rows, double *sums,
) noexcept nogil:
    """Scores all arcs of a pair of words; rows: those of the run."""
    cdef int32_t i = runs.pair_parts[pair]
    cdef int n, k
    cdef int32_t of_parts[TK_MOST_LABELS]
    cdef uint8_t labels[TK_MOST_LABELS]
    cdef uint32_t some[TK_MOST_LABELS]
    cdef double found[TK_MOST_LABELS]
    cdef tk_edge edge
    cdef tk_pair both
    both.head = rows + runs.local[2 * i] * block.padded
    both.modifier = rows + runs.local[2 * i + 1] * block.padded
    _code_edge(block, 0, 0, parts[i, 2], &edge)
    both.label, both.distance, both.length = edge.label, edge.distance, edge.length
    both.of_distance, both.of_length = edge.of_distance, edge.of_length
    both.some_distance = block.some_distance[edge.of_distance]
    both.all_distance = block.all_distance[edge.of_distance]
    both.some_length = block.some_length[edge.of_length]
    both.all_length = block.all_length[edge.of_length]
    while i >= 0:
        n = 0
        while i >= 0 and n < TK_MOST_LABELS:
            of_parts[n] = i
            labels[n] = _code_label(block, 0, parts[i, 1])
            some[n] = block.some_label[labels[n]]
            n += 1
            i = runs.next_parts[i]
        tk_pair_sums(&both, labels, some, n, block.weights, block.padded, found)
        for k in range(n):
            sums[of_parts[k]] = found[k]


cdef class Runs:
    """Parts in runs that share few enough rows.

    Run r has the rows first_rows[r]..first_rows[r + 1] of `slots` and `rows` (the words), and the
    parts first_parts[r]..first_parts[r + 1]; `local` says for each part and node slot which of the
    run's rows it reads.

    Of arcs (has_pairs) it also has the pairs first_pairs[r]..first_pairs[r + 1]: head, modifier and
    distance.  pair_parts names the first arc of each, next_parts after each arc the next one, -1
    for none: they differ in the label alone.
    """

    def __init__(
        self, int n_nodes, Py_ssize_t n_words, Py_ssize_t n_parts, RowKeeper keeper, bint has_pairs
    ):
        self.n_nodes, self.width, self.n_singles = n_nodes, keeper.width, keeper.n_singles
        self.kept = np.empty((n_nodes, n_words, keeper.width), dtype=np.int32)
        self.rest = np.empty((n_nodes, n_words, max(1, keeper.n_singles)), dtype=np.int32)
        self.number = np.full((n_nodes, n_words), -1, dtype=np.int32)
        self.slots = np.empty(n_parts * n_nodes, dtype=np.int32)
        self.rows = np.empty(n_parts * n_nodes, dtype=np.int32)
        self.local = np.empty(n_parts * n_nodes, dtype=np.int32)
        self.first_parts = np.zeros(n_parts + 2, dtype=np.int32)
        self.first_rows = np.zeros(n_parts + 2, dtype=np.int32)
        self.n_runs = self.n_parts = self.n_rows = self.n_pairs = 0
        self.has_pairs = has_pairs
        if has_pairs:
            self.first_pairs = np.zeros(n_parts + 2, dtype=np.int32)
            self.pair_parts = np.empty(n_parts, dtype=np.int32)
            self.last_parts = np.empty(n_parts, dtype=np.int32)
            self.next_parts = np.full(n_parts, -1, dtype=np.int32)
            self.next_pairs = np.empty(n_parts, dtype=np.int32)
            self.distances = np.empty(n_parts, dtype=np.int32)
            self.row_pairs = np.empty(n_parts * n_nodes, dtype=np.int32)

    cdef bint add(
        self, RowKeeper keeper, const int32_t[:, ::1] ids, const int32_t[:, ::1] singles,
        const int32_t *part, const int32_t *node_columns,
    ) except -1:
        """Adds a part; False where there is no room for the rows it needs."""
        cdef int slot, n = 0
        cdef int32_t row
        cdef int32_t first = self.first_rows[self.n_runs]
        for slot in range(self.n_nodes):
            row = part[node_columns[slot]]
            if self.number[slot, row] < 0 and not keeper.want(
                ids, singles, row, slot, &self.kept[slot, row, 0], &self.rest[slot, row, 0]
            ):
                return False
            n += self.number[slot, row] < first
        if self.n_rows - first + n > MOST_ROWS:
            self.end()
            first = self.first_rows[self.n_runs]
        for slot in range(self.n_nodes):
            row = part[node_columns[slot]]
            if self.number[slot, row] < first:
                self.number[slot, row] = <int32_t>self.n_rows
                self.slots[self.n_rows] = slot
                self.rows[self.n_rows] = row
                if self.has_pairs:
                    self.row_pairs[self.n_rows] = -1
                self.n_rows += 1
            self.local[self.n_parts * self.n_nodes + slot] = self.number[slot, row] - first
        if self.has_pairs:
            self._pair(part[2], self.number[0, part[0]], <int32_t>self.n_parts)
        self.n_parts += 1
        return True

    cdef void _pair(self, int32_t distance, int32_t head, int32_t arc) noexcept:
        """Adds an arc to its pair; head: its row, which knows the pairs that it is the head of."""
        cdef int32_t modifier = self.local[2 * arc + 1], other, pair = self.row_pairs[head]
        while pair >= 0:
            other = self.pair_parts[pair]
            if self.local[2 * other + 1] == modifier and self.distances[pair] == distance:
                self.next_parts[self.last_parts[pair]] = arc
                self.last_parts[pair] = arc
                return
            pair = self.next_pairs[pair]
        pair = <int32_t>self.n_pairs
        self.pair_parts[pair] = self.last_parts[pair] = arc
        self.distances[pair] = distance
        self.next_pairs[pair] = self.row_pairs[head]
        self.row_pairs[head] = pair
        self.n_pairs += 1

    cdef int end(self) except -1:
        """Ends the present run."""
        self.n_runs += 1
        self.first_parts[self.n_runs] = <int32_t>self.n_parts
        self.first_rows[self.n_runs] = <int32_t>self.n_rows
        if self.has_pairs:
            self.first_pairs[self.n_runs] = <int32_t>self.n_pairs
        return 0


cdef int check_encoded(groups, ids, singles) except -1:
    """Raises unless arrays are as `groups`.encode gives them, and not from before its clear."""
    cdef const int32_t[:, ::1] of_ids = checked("ids", ids, np.int32, None, len(groups.groups))
    checked("singles", singles, np.int32, len(ids), len(groups.singles))
    cdef Py_ssize_t i, g
    cdef int32_t size
    for g in range(of_ids.shape[1]):
        size = groups.interners[g].size
        for i in range(of_ids.shape[0]):
            if of_ids[i, g] < 0 or of_ids[i, g] >= size:
                raise ValueError(f"ids[{i}, {g}] is {of_ids[i, g]}, expected 0 to {size - 1}")
    return 0


cdef object views_of(list blocks):
    """The addresses of blocks' views, for loops without the interpreter."""
    cdef Block block
    views = np.empty(len(blocks), dtype=np.uintp)
    cdef size_t[::1] addresses = views
    cdef Py_ssize_t i
    for i in range(len(blocks)):
        block = blocks[i]
        addresses[i] = <size_t>&block.view
    return views


cdef void _fill_block(
    const BlockView *block, RowKeeper keeper, const int32_t *wanted, Py_ssize_t n,
    const size_t *values, const int32_t *widths,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef int32_t place
    cdef uint8_t table[BLOCK_SIZE]
    cdef uint8_t *row
    for i in range(n):
        place = wanted[i]
        if block.have[place] == keeper.generations[place]:
            continue
        block.have[place] = keeper.generations[place]
        row = block.rows + place * block.padded
        if keeper.owners[place, 1] < keeper.n_groups:
            fill_group_row(
                block, keeper.owners[place, 0], keeper.owners[place, 1],
                <const int32_t *>values[i], widths[i], row, table,
            )
        else:
            fill_single_row(
                block, keeper.owners[place, 0], keeper.owners[place, 1] - keeper.n_groups,
                (<const int32_t *>values[i])[0], row,
            )


cdef inline void _code_edge(
    const BlockView *block, int edge, int32_t label, int32_t distance, tk_edge *out
) noexcept nogil:
    """The edge in the block's bytes; no label and no distance (0) equal nothing."""
    out.label = block.labels + edge * block.padded
    out.distance = block.distances + edge * block.padded
    out.length = block.lengths + edge * block.padded
    out.of_label = _code_label(block, edge, label)
    out.of_distance = out.of_length = NO_CODE
    if distance != 0:
        out.of_distance = code_of(
            block.distance_names + edge * 256, block.n_distances[edge], distance
        )
        out.of_length = <uint8_t>length_bin(distance)


cdef inline uint8_t _code_label(const BlockView *block, int edge, int32_t label) noexcept nogil:
    if label == 0:
        return NO_CODE
    return code_of(block.label_names + edge * 256, block.n_labels[edge], label)
