"""Combinations in a trie over slots: the score of a part by a walk along what it holds.

    slot      h             m              e
    root -- UPOS=NOUN -- UPOS=ADJ  w1 -- label=amod  w2       a node is a combination, or what one
      |        |             +---------- dist=-1     w3       begins with; a part's score is the sum
      |        +-------- Case=Gen  w4                         of the weights of all that it reaches
      +---- FORM=και ...

All children stand in one table of open addressing, a cell of 16 bytes each: the key (the parent's
cell and the feature, exact; a bit says whether there are children) beside the weight.  Parts are
taken in the order of their words, and what a part reaches in its first slots is kept for the next
one: parts of the same words share that walk, as those of the same head do theirs.

The sums of a part are taken in an order of its own, so neither the number of threads nor the other
parts of a batch change a bit.
"""

from cython cimport final
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t
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

cdef enum:
    MAX_SLOTS = 8
    ROOT = -1
    LEFT_OUT = -1
    UNKNOWN = -1            # number of a node's features that were not looked up yet
    FIRST_ROOM = 256
    EDGE_FEATURES = 3

cdef uint64_t HAS_CHILDREN = <uint64_t>1 << 31


cdef struct Cell:
    uint64_t key            # 0 where it is empty
    double weight


cdef struct Trie:
    Cell *cells
    uint64_t mask
    int shift
    double at_root
    const Keys *table
    int n_slots
    uint64_t first_slot
    int32_t kinds[MAX_SLOTS]
    int32_t columns[MAX_SLOTS]
    int32_t skips[MAX_SLOTS]


cdef struct Reached:
    # What a part reaches before a slot: cells with children, and the sum of the weights so far.
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

    def __cinit__(self, features, weights, KeyTable table not None, of_type):
        cdef Patterns patterns
        cdef int i
        n_slots = len(of_type)
        if n_slots > MAX_SLOTS:
            raise ValueError(f"{n_slots} slots, expected {MAX_SLOTS} at most")
        cdef const int32_t[:, ::1] rows = checked("features", features, np.int32, None, n_slots)
        cdef const double[::1] values = checked("weights", weights, np.float64, rows.shape[0])
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
            nodes = np.empty(rows.shape[0], dtype=np.int64)
            fill(&patterns, rows, len(table), nodes)
            self.n_nodes = patterns.table.n
            self._place(&patterns, nodes, values)
        finally:
            free_patterns(&patterns)

    cdef int _place(
        self, const Patterns *patterns, const int64_t[::1] nodes, const double[::1] values
    ) except -1:
        """Puts each node into a cell, parents before their children."""
        cdef Py_ssize_t n = patterns.table.n, i
        cdef Trie *trie = &self.trie
        cdef int64_t parent
        cdef uint64_t key, at
        cdef int bits = 4
        while (<Py_ssize_t>1 << bits) * 2 < 3 * n:
            bits += 1
        if bits > 30:
            raise MemoryError(f"{n} nodes of combinations are too many")
        trie.mask, trie.shift = (<uint64_t>1 << bits) - 1, 64 - bits
        trie.cells = <Cell *>calloc(<size_t>1 << bits, sizeof(Cell))
        if trie.cells == NULL:
            raise MemoryError("no memory for a table of combinations")
        cdef int64_t[::1] cells = np.empty(n + 1, dtype=np.int64)
        for i in range(n):
            parent = parent_of(patterns.keys[i])
            if parent >= 0:
                parent = cells[parent]
                trie.cells[parent].key |= HAS_CHILDREN
            key = child_key(parent, <int32_t>(patterns.keys[i] & 0xFFFFFFFF))
            at = key_place(trie, key)
            while trie.cells[at].key != 0:
                at = (at + 1) & trie.mask
            trie.cells[at].key = key
            cells[i] = <int64_t>at
        for i in range(nodes.shape[0]):
            if nodes[i] < 0:
                trie.at_root = values[i]
            else:
                trie.cells[cells[nodes[i]]].weight = values[i]
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
    # Never 0: the root's children have the parent 0, so features count from 1.
    return <uint64_t>(parent + 1) << 32 | <uint64_t>(feature + 1)


cdef inline uint64_t key_place(const Trie *trie, uint64_t key) noexcept nogil:
    return (key * <uint64_t>0x9E3779B97F4A7C15) >> trie.shift


cdef inline const Cell *find_child(
    const Trie *trie, int64_t parent, int32_t feature
) noexcept nogil:
    """The cell of a child, NULL where there is none."""
    cdef uint64_t key = child_key(parent, feature), at = key_place(trie, key)
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
    cdef int32_t n, j
    cdef Py_ssize_t i
    cdef bint last = slot + 1 == trie.n_slots
    next.n, next.total = 0, now.total
    if now.n == 0:
        return 0
    if trie.kinds[slot] == NODE:
        features = known_of(trie, walk, slot, part[trie.columns[slot]], &n)
    else:
        features = of_edge
        n = known_of_edge(trie, slot, part + trie.columns[slot], of_edge)
    for i in range(now.n):
        if trie.skips[slot] and not last and push(next, now.cells[i]):
            return 1
        for j in range(n):
            child = find_child(trie, now.cells[i], features[j])
            if child == NULL:
                continue
            next.total += child.weight
            if child.key & HAS_CHILDREN and not last and push(
                next, <int32_t>(child - trie.cells)
            ):
                return 1
    return 0


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
