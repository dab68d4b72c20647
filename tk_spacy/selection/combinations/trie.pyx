"""Combinations in a trie over slots: the score of a part by a walk along what it holds.

    slot      h             m              e
    root -- UPOS=NOUN -- UPOS=ADJ  w1 -- label=amod  w2       a node is a combination, or what one
      |        |             +---------- dist=-1     w3       begins with; a part's score is the sum
      |        +-------- Case=Gen  w4                         of the weights of all that it reaches
      +---- FORM=και ...

Children stand in one table of open addressing, a cell of 16 bytes each: the key (the parent's cell
and the feature, exact; a bit says whether there are children) beside the weight.  Those of the last
slot, an edge's few values, stand one after the other instead, a *run* for each parent: one place in
memory is read then, where each of an edge's features would ask for one of its own.

Parts are taken in the order of their words, and what a part reaches in its first slots is kept for
the next one: parts of the same words share that walk, as those of the same head do theirs.

The sums of a part are taken in an order of its own, so neither the number of threads nor the other
parts of a batch change a bit.
"""

from cython cimport final
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

import numpy as np

from tk_spacy.kernels.template_kernel cimport NODE
from tk_spacy.parallel.stopping cimport Listener, await_others, is_stopped, task_done
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.selection.combinations.slot_keys cimport edge_keys, slot_key
from tk_spacy.selection.key_table cimport Keys, KeyTable, find_key
from tk_spacy.selection.patterns cimport (
    NOWHERE, Patterns, add_pattern, free_patterns, make_patterns, parent_of,
)
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_values
from tk_spacy.utils.prefetch cimport tk_prefetch

cdef enum:
    MAX_SLOTS = 8
    ROOT = -1
    LEFT_OUT = -1
    NO_RUN = -1
    NO_FEATURE = -2
    UNKNOWN = -1            # number of a node's features that were not looked up yet
    FIRST_ROOM = 256
    EDGE_FEATURES = 3
    AT_A_TIME = 64
    AHEAD = 4

cdef uint64_t HAS_CHILDREN = <uint64_t>1 << 31


cdef struct Cell:
    uint64_t key            # 0 where it is empty
    double weight


cdef struct Trie:
    Cell *cells
    uint64_t mask
    int shift
    double at_root
    const int32_t *runs     # of each cell, where its run begins; -1 for none
    int32_t run_of_root
    const int32_t *run_features     # each run ends in -1
    const double *run_weights
    const Keys *table
    int n_slots
    uint64_t first_slot
    int32_t kinds[MAX_SLOTS]
    int32_t columns[MAX_SLOTS]
    int32_t skips[MAX_SLOTS]


cdef struct Reached:
    # What a part reaches before a slot: cells with children, before the last slot their runs; and
    # the sum of the weights so far.
    int32_t *cells
    Py_ssize_t n
    Py_ssize_t room
    double total


cdef struct Lists:
    # Of one batch: list l has nodes from node_starts[l] on, parts from part_starts[l] on.
    const int32_t *nodes
    const int32_t *parts
    const int64_t *node_starts
    const int64_t *part_starts
    Py_ssize_t n_properties
    Py_ssize_t width


cdef struct Walk:
    # Of one list.
    const int32_t *nodes
    Py_ssize_t n_nodes
    Py_ssize_t n_properties
    int32_t *known          # the features of each node in each node slot, as numbers
    int32_t *counts
    Reached reached[MAX_SLOTS + 1]


def patterns_of(features, n_features):
    """Combinations as patterns, for PatternTable: what is grown feature by feature.

    features: int32[c, s], ascending in each row where they are not -1, for no feature.
    n_features: how many there are.

    Returns (parents, steps, nodes): int64[p] and int64[p], see PatternTable, and int64[c], the
    pattern of each row, -1 for that of no feature.  Raises ValueError for a feature that there is
    not, and for rows that fall or are there twice.
    """
    cdef const int32_t[:, ::1] rows = checked("features", features, np.int32, None, None)
    cdef Patterns patterns
    cdef Py_ssize_t i, n
    if make_patterns(&patterns):
        free_patterns(&patterns)
        raise MemoryError("no memory for a table of combinations")
    try:
        nodes = np.empty(rows.shape[0], dtype=np.int64)
        fill(&patterns, rows, n_features, nodes)
        n = patterns.table.n
        parents, steps = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        for i in range(n):
            parents[i] = parent_of(patterns.keys[i])
            steps[i] = patterns.keys[i] & 0xFFFFFFFF
        return parents, steps, nodes
    finally:
        free_patterns(&patterns)


cdef int fill(
    Patterns *patterns, const int32_t[:, ::1] rows, int32_t n_features, int64_t[::1] nodes
) except -1:
    """Adds the combinations of rows; writes the node of each."""
    cdef Py_ssize_t i, j
    cdef int64_t node
    cdef int32_t before
    cdef int order
    for i in range(rows.shape[0]):
        node, before, order = NOWHERE, -1, 0
        for j in range(rows.shape[1]):
            if rows[i, j] == LEFT_OUT:
                continue
            if not before < rows[i, j] < n_features:
                raise ValueError(
                    f"features[{i}, {j}] is {rows[i, j]}, expected {before + 1} to "
                    f"{n_features - 1}, or -1"
                )
            before = rows[i, j]
            order += 1
            node = add_pattern(patterns, node, <uint64_t>before, order)
            if node == NOWHERE:
                raise MemoryError("no memory for a table of combinations")
        nodes[i] = node
    found = np.sort(np.asarray(nodes))
    if (found[1:] == found[:-1]).any():
        raise ValueError("a combination is there twice, expected each once")
    return 0


@final
cdef class CombinationTrie:
    """Weighted combinations of one part type.

    features: int32[c, s], numbers of features in the order of the type's slots, -1 where a slot is
    left out.  weights: float64[c].  table: the numbers of features' keys.  of_type: its slots.
    n_nodes: how many nodes there are.
    Raises ValueError for arrays that do not fit, see `patterns_of`.
    """

    cdef Trie trie
    cdef KeyTable _table
    cdef readonly Py_ssize_t n_nodes
    cdef object _kept

    def __cinit__(self, features, weights, KeyTable table not None, of_type):
        cdef Patterns patterns
        cdef int i
        n_slots = len(of_type)
        if not 2 <= n_slots <= MAX_SLOTS or of_type.kinds[n_slots - 1] == NODE:
            raise ValueError(f"{n_slots} slots, expected 2 to {MAX_SLOTS}, the last one an edge")
        features = checked("features", features, np.int32, None, n_slots)
        cdef const double[::1] values = checked("weights", weights, np.float64, len(features))
        self._table = table
        self.trie.table = &table.table
        self.trie.n_slots, self.trie.first_slot = n_slots, of_type.first
        for i in range(n_slots):
            self.trie.kinds[i] = of_type.kinds[i]
            self.trie.columns[i] = of_type.columns[i]
            self.trie.skips[i] = of_type.skips[i]
        if make_patterns(&patterns):
            free_patterns(&patterns)
            raise MemoryError("no memory for a table of combinations")
        try:
            nodes = np.empty(len(features), dtype=np.int64)
            fill(&patterns, features, len(table), nodes)
            self.n_nodes = patterns.table.n
            last = np.zeros(len(table) + 1, dtype=np.uint8)
            last[features[:, n_slots - 1]] = 1  # of -1 the one more than there are features
            self._place(&patterns, nodes, values, last)
        finally:
            free_patterns(&patterns)

    cdef int _place(
        self, const Patterns *patterns, const int64_t[::1] nodes, const double[::1] values,
        const uint8_t[::1] last,
    ) except -1:
        """Puts each node into a cell, parents before their children, or into its parent's run.

        last: 1 for features of the last slot.
        """
        cdef Py_ssize_t n = patterns.table.n, i
        cdef int64_t parent
        cdef int32_t feature
        # Of each node, and of the root in front of them: its children of the last slot.
        sizes = np.zeros(n + 1, dtype=np.int32)
        cdef int32_t[::1] counts = sizes
        for i in range(n):
            feature = <int32_t>(patterns.keys[i] & 0xFFFFFFFF)
            if last[feature]:
                counts[parent_of(patterns.keys[i]) + 1] += 1
        room = np.where(sizes > 0, sizes + 1, 0)
        if room.sum(dtype=np.int64) >= 2**31 - 1:
            raise MemoryError(f"{n} nodes of combinations are too many")
        begins = np.where(sizes > 0, np.cumsum(room) - room, NO_RUN).astype(np.int32)
        run_features = np.full(int(room.sum()) + 1, NO_RUN, dtype=np.int32)
        run_weights = np.zeros(len(run_features))
        self._make_cells(n - int(sizes.sum()))
        runs = np.full(self.trie.mask + 1, NO_RUN, dtype=np.int32)
        self._kept = runs, run_features, run_weights
        cdef const int32_t[::1] starts = begins
        cdef int32_t[::1] ends = begins.copy(), of_cells = runs, in_runs = run_features
        cdef double[::1] run_values = run_weights
        cdef int64_t[::1] places = np.empty(n + 1, dtype=np.int64)
        for i in range(n):
            parent = parent_of(patterns.keys[i])
            feature = <int32_t>(patterns.keys[i] & 0xFFFFFFFF)
            if parent >= 0:
                self.trie.cells[places[parent]].key |= HAS_CHILDREN
            if last[feature]:
                places[i] = ends[parent + 1]
                in_runs[places[i]] = feature
                ends[parent + 1] += 1
            else:
                places[i] = take_cell(
                    &self.trie, child_key(places[parent] if parent >= 0 else ROOT, feature)
                )
                of_cells[places[i]] = starts[i + 1]
        for i in range(nodes.shape[0]):
            if nodes[i] < 0:
                self.trie.at_root = values[i]
            elif last[<int32_t>(patterns.keys[nodes[i]] & 0xFFFFFFFF)]:
                run_values[places[nodes[i]]] = values[i]
            else:
                self.trie.cells[places[nodes[i]]].weight = values[i]
        self.trie.runs, self.trie.run_of_root = &of_cells[0], starts[0]
        self.trie.run_features, self.trie.run_weights = &in_runs[0], &run_values[0]
        return 0

    cdef int _make_cells(self, Py_ssize_t n) except -1:
        cdef int bits = 4
        while (<Py_ssize_t>1 << bits) * 2 < 3 * n:
            bits += 1
        if bits > 30:
            raise MemoryError(f"{n} nodes of combinations are too many")
        self.trie.mask, self.trie.shift = (<uint64_t>1 << bits) - 1, 64 - bits
        self.trie.cells = <Cell *>calloc(<size_t>1 << bits, sizeof(Cell))
        if self.trie.cells == NULL:
            raise MemoryError("no memory for a table of combinations")
        return 0

    def __dealloc__(self):
        free(self.trie.cells)

    def scores(self, nodes, parts, *, n_threads=None):
        """The sum of the weights of the combinations that each part holds.

        For each list: nodes int32[r, P], property ids, and parts int32[p, w], in slot form, naming
        rows of its nodes.  Returns float64[p] for each.
        Raises TypeError or ValueError for arrays that do not fit, MemoryError.
        """
        if len(nodes) != len(parts):
            raise ValueError(f"{len(nodes)} tables of nodes for {len(parts)} of parts")
        if not len(nodes):
            return []
        _check_parts(nodes, parts, self.trie.n_slots, self.trie.kinds, self.trie.columns)
        cdef const int32_t[:, ::1] rows = np.concatenate(nodes)
        cdef const int32_t[:, ::1] given = np.concatenate(parts)
        sizes = [len(some) for some in parts]
        ends = np.cumsum(sizes)
        cdef const int64_t[::1] part_starts = np.concatenate([[0], ends]).astype(np.int64)
        cdef const int64_t[::1] node_starts = np.cumsum(
            [0, *(len(some) for some in nodes)]
        ).astype(np.int64)
        cdef double[::1] out = np.zeros(ends[-1] + 1)
        cdef Lists lists
        lists.nodes = &rows[0, 0] if rows.shape[0] and rows.shape[1] else NULL
        lists.parts = &given[0, 0] if given.shape[0] else NULL
        lists.node_starts, lists.part_starts = &node_starts[0], &part_starts[0]
        lists.n_properties, lists.width = rows.shape[1], given.shape[1]
        cdef Py_ssize_t n = len(nodes), i
        cdef int threads = effective_n_threads(n_threads), failed = 0
        cdef Listener listener = Listener(n)
        for i in prange(
            n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
        ):
            if i < n:
                if not is_stopped(&listener.watch):
                    failed += score_list(&self.trie, &lists, i, &out[part_starts[i]])
                task_done(&listener.watch)
            else:
                await_others(&listener.watch)
        listener.check()
        if failed:
            raise MemoryError("no memory for the scores of a list's parts")
        return np.split(np.asarray(out)[: ends[-1]], ends[:-1])


cdef int _check_parts(
    nodes, parts, int n_slots, const int32_t *kinds, const int32_t *columns
) except -1:
    cdef int slot
    width = sum(1 + (kinds[slot] != NODE) for slot in range(n_slots))
    for rows, some in zip(nodes, parts):
        rows = checked("nodes", rows, np.int32, None, nodes[0].shape[1])
        some = checked("parts", some, np.int32, None, width)
        for slot in range(n_slots):
            if kinds[slot] == NODE and len(some):
                check_values(
                    np.ascontiguousarray(some[:, columns[slot]]), 0, <int32_t>(len(rows) - 1),
                    "nodes of parts",
                )
    return 0


cdef inline uint64_t child_key(int64_t parent, int32_t feature) noexcept nogil:
    # Never 0, as features count from 1; the root is parent 0.
    return <uint64_t>(parent + 1) << 32 | <uint64_t>(feature + 1)


cdef inline uint64_t key_place(const Trie *trie, uint64_t key) noexcept nogil:
    return (key * <uint64_t>0x9E3779B97F4A7C15) >> trie.shift


cdef inline int64_t take_cell(Trie *trie, uint64_t key) noexcept nogil:
    """The cell of a new key."""
    cdef uint64_t at = key_place(trie, key)
    while trie.cells[at].key != 0:
        at = (at + 1) & trie.mask
    trie.cells[at].key = key
    return <int64_t>at


cdef inline const Cell *find_child(
    const Trie *trie, uint64_t key, uint64_t at
) noexcept nogil:
    """The cell of a key, from its place on; NULL where there is none."""
    while trie.cells[at].key != 0:
        if (trie.cells[at].key & ~HAS_CHILDREN) == key:
            return &trie.cells[at]
        at = (at + 1) & trie.mask
    return NULL


cdef int score_list(
    const Trie *trie, const Lists *lists, Py_ssize_t at, double *out
) noexcept nogil:
    """Writes the score of each part of a list; returns 1 where there is no memory."""
    cdef const int32_t *parts = lists.parts + lists.part_starts[at] * lists.width
    cdef Py_ssize_t n = lists.part_starts[at + 1] - lists.part_starts[at], i, cells
    cdef int32_t *order
    cdef Walk walk
    cdef int failed = 0
    if n == 0:
        return 0
    memset(&walk, 0, sizeof(walk))
    walk.n_nodes = lists.node_starts[at + 1] - lists.node_starts[at]
    walk.n_properties = lists.n_properties
    walk.nodes = lists.nodes + lists.node_starts[at] * lists.n_properties
    cells = trie.n_slots * walk.n_nodes
    order = <int32_t *>malloc(n * sizeof(int32_t))
    walk.known = <int32_t *>malloc((cells * walk.n_properties + 1) * sizeof(int32_t))
    walk.counts = <int32_t *>malloc((cells + 1) * sizeof(int32_t))
    walk.reached[0].cells = <int32_t *>malloc(sizeof(int32_t))
    if (
        order == NULL or walk.known == NULL or walk.counts == NULL
        or walk.reached[0].cells == NULL
    ):
        failed = 1
    else:
        for i in range(cells):
            walk.counts[i] = UNKNOWN
        walk.reached[0].cells[0] = ROOT
        walk.reached[0].n, walk.reached[0].total = 1, trie.at_root
        sort_parts(trie, parts, lists.width, n, order)
        failed = walk_parts(trie, &walk, parts, lists.width, order, n, out)
    free(order)
    free(walk.known)
    free(walk.counts)
    for i in range(trie.n_slots + 1):
        free(walk.reached[i].cells)
    return failed


cdef int walk_parts(
    const Trie *trie, Walk *walk, const int32_t *parts, Py_ssize_t width, const int32_t *order,
    Py_ssize_t n, double *out,
) noexcept nogil:
    """The parts in their order; each begins where it is no longer like the one before it."""
    cdef Py_ssize_t i
    cdef const int32_t *part
    cdef const int32_t *before = NULL
    cdef int slot
    for i in range(n):
        part = parts + order[i] * width
        slot = 0
        while before != NULL and slot < trie.n_slots and same_in(trie, slot, part, before):
            slot += 1
        while slot < trie.n_slots:
            if advance(trie, walk, part, slot):
                return 1
            slot += 1
        out[order[i]] = walk.reached[trie.n_slots].total
        before = part
    return 0


cdef inline bint same_in(
    const Trie *trie, int slot, const int32_t *a, const int32_t *b
) noexcept nogil:
    cdef int column = trie.columns[slot]
    return a[column] == b[column] and (
        trie.kinds[slot] == NODE or a[column + 1] == b[column + 1]
    )


cdef int advance(const Trie *trie, Walk *walk, const int32_t *part, int slot) noexcept nogil:
    """Through one slot: from what a part reaches before it to what it reaches after it."""
    cdef const Reached *now = &walk.reached[slot]
    cdef Reached *next = &walk.reached[slot + 1]
    cdef int32_t of_edge[EDGE_FEATURES]
    cdef const int32_t *features
    cdef const Cell *child
    cdef uint64_t places[AT_A_TIME]
    cdef int32_t n, j, first, stop
    cdef Py_ssize_t i
    next.n, next.total = 0, now.total
    if now.n == 0:
        return 0
    if trie.kinds[slot] == NODE:
        features = known_of(trie, walk, slot, part[trie.columns[slot]], &n)
    else:
        features = of_edge
        n = known_of_edge(trie, slot, part + trie.columns[slot], of_edge)
    if slot + 1 == trie.n_slots:
        for i in range(now.n):
            if i + AHEAD < now.n:
                tk_prefetch(&trie.run_features[now.cells[i + AHEAD]])
            next.total += run_sum(trie, now.cells[i], features, n)
        return 0
    for i in range(now.n):
        if trie.skips[slot] and keep(trie, next, slot, now.cells[i]):
            return 1
        first = 0
        while first < n:
            stop = min(n, first + AT_A_TIME)
            # All places first: the table is larger than a cache, and waits then overlap.
            for j in range(first, stop):
                places[j - first] = key_place(trie, child_key(now.cells[i], features[j]))
                tk_prefetch(&trie.cells[places[j - first]])
            for j in range(first, stop):
                child = find_child(trie, child_key(now.cells[i], features[j]), places[j - first])
                if child == NULL:
                    continue
                next.total += child.weight
                if child.key & HAS_CHILDREN and keep(
                    trie, next, slot, <int32_t>(child - trie.cells)
                ):
                    return 1
            first = stop
    return 0


cdef inline double run_sum(
    const Trie *trie, int32_t at, const int32_t *features, int32_t n
) noexcept nogil:
    """The sum of the weights in a run of up to three features."""
    cdef double total = 0.0
    cdef int32_t a = features[0] if n > 0 else NO_FEATURE
    cdef int32_t b = features[1] if n > 1 else NO_FEATURE
    cdef int32_t c = features[2] if n > 2 else NO_FEATURE
    cdef int32_t feature = trie.run_features[at]
    while feature >= 0:
        if feature == a or feature == b or feature == c:
            total += trie.run_weights[at]
        at += 1
        feature = trie.run_features[at]
    return total


cdef inline int keep(const Trie *trie, Reached *reached, int slot, int32_t cell) noexcept nogil:
    """A cell that is reached in a slot, or its run where only the last slot is left; 1: no memory.
    """
    if slot + 2 < trie.n_slots:
        return push(reached, cell)
    cell = trie.run_of_root if cell == ROOT else trie.runs[cell]
    return cell != NO_RUN and push(reached, cell)


cdef inline int push(Reached *reached, int32_t cell) noexcept nogil:
    cdef int32_t *grown
    if reached.n == reached.room:
        reached.room = max(<Py_ssize_t>FIRST_ROOM, 2 * reached.room)
        grown = <int32_t *>realloc(reached.cells, reached.room * sizeof(int32_t))
        if grown == NULL:
            return 1
        reached.cells = grown
    reached.cells[reached.n] = cell
    reached.n += 1
    return 0


cdef const int32_t *known_of(
    const Trie *trie, Walk *walk, int slot, int32_t node, int32_t *n
) noexcept nogil:
    """The numbers of a node's features in a slot, looked up when first asked for."""
    cdef Py_ssize_t at = slot * walk.n_nodes + node, i
    cdef int32_t *found = walk.known + at * walk.n_properties
    cdef const int32_t *row = walk.nodes + node * walk.n_properties
    cdef int32_t number, known = 0
    if walk.counts[at] == UNKNOWN:
        for i in range(walk.n_properties):
            if row[i] == 0:
                continue
            number = find_key(trie.table, slot_key(trie.first_slot + slot, i, row[i]))
            if number >= 0:
                found[known] = number
                known += 1
        walk.counts[at] = known
    n[0] = walk.counts[at]
    return found


cdef int32_t known_of_edge(
    const Trie *trie, int slot, const int32_t *edge, int32_t *out
) noexcept nogil:
    cdef uint64_t keys[EDGE_FEATURES]
    cdef int n = edge_keys(edge[0], edge[1], trie.first_slot + slot, keys), i
    cdef int32_t number, known = 0
    for i in range(n):
        number = find_key(trie.table, keys[i])
        if number >= 0:
            out[known] = number
            known += 1
    return known


cdef void sort_parts(
    const Trie *trie, const int32_t *parts, Py_ssize_t width, Py_ssize_t n, int32_t *order
) noexcept nogil:
    """By slots (Shell 1959)."""
    cdef Py_ssize_t gap = n // 2, i, j
    cdef int32_t moved
    for i in range(n):
        order[i] = <int32_t>i
    while gap > 0:
        for i in range(gap, n):
            moved = order[i]
            j = i
            while j >= gap and comes_before(
                trie, parts + moved * width, parts + order[j - gap] * width
            ):
                order[j] = order[j - gap]
                j -= gap
            order[j] = moved
        gap //= 2


cdef bint comes_before(const Trie *trie, const int32_t *a, const int32_t *b) noexcept nogil:
    cdef int slot, column
    for slot in range(trie.n_slots):
        column = trie.columns[slot]
        if a[column] != b[column]:
            return a[column] < b[column]
        if trie.kinds[slot] != NODE and a[column + 1] != b[column + 1]:
            return a[column + 1] < b[column + 1]
    return False
