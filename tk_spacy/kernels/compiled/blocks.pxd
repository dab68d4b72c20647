# A block of support parts, compiled for scoring (see blocks.pyx), and what nogil loops read of it.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

from tk_spacy.utils.prefetch cimport tk_prefetch
from tk_spacy.utils.sorted_values cimport find_value

cdef extern from "simd.h":
    enum:
        TK_RUN
        TK_MOST_LABELS
        TK_TILE_ROWS
        TK_TILE_COLUMNS
    ctypedef struct tk_edge:
        const uint8_t *label
        const uint8_t *distance
        const uint8_t *length
        uint8_t of_label, of_distance, of_length
    ctypedef struct tk_pair:
        const uint8_t *head
        const uint8_t *modifier
        const uint8_t *label
        const uint8_t *distance
        const uint8_t *length
        uint8_t of_distance, of_length
        uint32_t some_distance, all_distance, some_length, all_length
    void tk_pair_sums(
        const tk_pair *pair, const uint8_t *of_labels, const uint32_t *some_label, int n_labels,
        const float *weight, Py_ssize_t n, double *sums,
    ) noexcept nogil
    double tk_part_sum(
        const uint8_t *const *nodes, int n_nodes, const tk_edge *edges, int n_edges,
        const float *weight, Py_ssize_t n,
    ) noexcept nogil
    void tk_add_rows(
        uint8_t *out, const uint8_t *const *rows, int n_rows, uint8_t base, Py_ssize_t n
    ) noexcept nogil
    void tk_count_equal(
        const int32_t *column, Py_ssize_t n, int32_t value, uint8_t *out
    ) noexcept nogil
    void tk_left_tile(
        float *out, const uint8_t *rows, Py_ssize_t step, int n_rows, const float *weight,
        Py_ssize_t n,
    ) noexcept nogil
    void tk_right_tile(
        float *out, const uint8_t *rows, Py_ssize_t step, int n_rows, Py_ssize_t n
    ) noexcept nogil
    void tk_tile(
        float *out, const float *left, Py_ssize_t left_step, const float *right,
        Py_ssize_t right_step, Py_ssize_t n,
    ) noexcept nogil


cdef enum:
    BLOCK_SIZE = 4096  # parts of a block, at most; a position fits 16 bits
    MAX_SLOTS = 8      # node slots of a part type, and edge slots of one
    MOST_PROPERTIES = 254  # of a node: their count, and 1 for a skipped slot, fit a byte
    NO_CODE = 255      # a label, distance or length that no part of the block has


cdef struct Entry:
    uint64_t key              # 0: of none
    int32_t start, count      # its positions


cdef struct BlockView:
    Py_ssize_t n, padded
    const float *weights
    # Edge slots: bytes [E][padded]; what a byte stands for, ascending int32[E][256].
    const uint8_t *labels
    const uint8_t *distances
    const uint8_t *lengths
    const int32_t *label_names
    const int32_t *distance_names
    const int32_t *n_labels
    const int32_t *n_distances
    # For each edge slot and byte, the runs of TK_RUN parts that have it, a bit a run: some of their
    # parts, all of them.  uint32[E][256]
    const uint32_t *some_label
    const uint32_t *some_distance
    const uint32_t *all_distance
    const uint32_t *some_length
    const uint32_t *all_length
    # Groups: for node slot j and group g the numbers [J * G][padded] that the block itself gives to
    # its combinations, their values, property by property, and how many there are.
    int n_groups
    const uint16_t *local_ids
    const int32_t **combinations
    const int32_t *n_combinations
    # Single properties: positions of the parts that have a value, by a hash table of keys.
    Py_ssize_t n_entries
    Entry *entries
    const uint16_t *positions
    # Kept rows uint8[capacity][padded], and of which use of its place each is.
    uint8_t *rows
    uint32_t *have


cdef class Block:
    cdef BlockView view
    cdef list _kept
    cdef float[::1] _weights
    cdef uint64_t[::1] _table
    cdef Py_ssize_t _rows_nbytes
    cdef object _keep(self, array)
    cdef object _code_edges(self, columns, rows)
    cdef object _code(self, table)
    cdef object _runs_with(self, const uint8_t[:, ::1] codes)
    cdef object _number_groups(self, nodes, ids, groups)
    cdef object _index_singles(self, nodes, singles)
    cdef object _make_table(self, Py_ssize_t wanted)


cdef inline uint64_t single_key(Py_ssize_t slot, Py_ssize_t column, int32_t value) noexcept nogil:
    """The key of a value of a single property in a node slot; never 0."""
    return (<uint64_t>(slot * 4096 + column + 1) << 32) | <uint64_t><uint32_t>value


cdef inline Py_ssize_t first_place(const BlockView *block, uint64_t key) noexcept nogil:
    """Where the search for a key begins."""
    cdef uint64_t code = key * <uint64_t>0x9E3779B97F4A7C15ULL
    return <Py_ssize_t>((code >> 32) & <uint64_t>(block.n_entries - 1))


cdef inline Py_ssize_t find_key(const BlockView *block, uint64_t key) noexcept nogil:
    """The key's place in the table, or that of an empty entry."""
    cdef Py_ssize_t place = first_place(block, key)
    while block.entries[place].key != 0 and block.entries[place].key != key:
        place = (place + 1) & (block.n_entries - 1)
    return place


cdef inline uint8_t code_of(const int32_t *names, int n, int32_t name) noexcept nogil:
    """The byte that stands for a name, NO_CODE where the block has none."""
    cdef Py_ssize_t place = find_value(names, n, name)
    return <uint8_t>place if place >= 0 else <uint8_t>NO_CODE


cdef void fill_group_row(
    const BlockView *block, int slot, int group, const int32_t *values, Py_ssize_t width,
    uint8_t *row, uint8_t *table,
) noexcept nogil
cdef void fill_single_row(
    const BlockView *block, int slot, int column, int32_t value, uint8_t *row
) noexcept nogil
cdef void build_row(
    const BlockView *block, int slot, const int32_t *kept, int n_kept, const int32_t *singles,
    int n_singles, uint8_t skip, uint8_t *row,
) noexcept nogil


cdef inline void await_row(
    const BlockView *block, int slot, const int32_t *kept, int n_kept, const int32_t *singles,
    int n_singles,
) noexcept nogil:
    """Asks for the memory that build_row, with the same arguments, will read first."""
    cdef int i
    for i in range(n_singles):
        if singles[i] != 0:
            tk_prefetch(block.entries + first_place(block, single_key(slot, i, singles[i])))
    for i in range(n_kept):
        if kept[i] >= 0:
            tk_prefetch(block.rows + kept[i] * block.padded)
            tk_prefetch(block.rows + kept[i] * block.padded + 64)
