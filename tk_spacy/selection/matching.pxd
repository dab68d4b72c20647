# A finished set of patterns, and where they occur in lists (see matching.pyx).

from libc.stdint cimport int32_t, int64_t, uint32_t

from tk_spacy.selection.corpus cimport Lists


cdef enum:
    MANY = 32       # a pattern of so many extensions has a table of them


cdef struct Cell:
    uint32_t step
    int32_t position        # 0 where a cell is empty: no extension stands there


cdef struct Index:
    # Each pattern has a position: those of one feature come first, then those that extend the
    # first of these, and so on; those that extend the same one stand in the order of their steps.
    const int32_t *firsts       # the position of each feature alone, NOWHERE for none
    int64_t n_firsts            # so many features
    int64_t n                   # so many patterns
    const int32_t *numbers      # in the PatternTable, of the pattern at each position
    const uint32_t *steps       # the last step of each
    const int32_t *starts       # position i is extended by starts[i] to starts[i + 1] - 1
    int highest                 # number of features of the longest
    # Those that have many extensions have a table of these: tables[i] is its number, NOWHERE for
    # none; it fills cells[first_cells[t]:first_cells[t + 1]], a power of two.
    const int32_t *tables
    const int64_t *first_cells
    const Cell *cells


# What is called with each pattern that occurs, and after each unit.
ctypedef void (*Found)(void *context, int32_t position) noexcept nogil
ctypedef void (*End)(void *context, int64_t unit) noexcept nogil


cdef struct Finding:
    const Index *index
    Found found
    End end
    void *context


cdef inline uint32_t cell_of(uint32_t step, uint32_t mask) noexcept nogil:
    """Where a step's cell is in a table, or the first of those to look at."""
    step *= <uint32_t>0x9E3779B1
    return (step ^ step >> 15) & mask


# Writes the tables of an index; all cells are empty.
cdef void fill_tables(const Index *index, Cell *cells) noexcept nogil


# Scores are summed of units: the distinct arcs of a list, or the nodes of its forest (`trees`),
# each looked through once.  Only what not all candidates have is found.
# visit_units returns 1 where there is no memory.
cdef int visit_units(
    const Lists *lists, Py_ssize_t at, bint trees, const Finding *finding
) noexcept nogil
# Writes for each candidate the sum of its units' values.
cdef void sum_units(
    const Lists *lists, Py_ssize_t at, bint trees, const double *values, double *out
) noexcept nogil


cdef inline int64_t n_units(const Lists *lists, Py_ssize_t at, bint trees) noexcept nogil:
    if trees:
        return lists.first_top[at + 1] - lists.first_top[at]
    return lists.first_arc[at + 1] - lists.first_arc[at]


cdef inline const int32_t *units_of(
    const Lists *lists, Py_ssize_t at, int32_t row, bint trees, int32_t *n
) noexcept nogil:
    """The units of a candidate, -1 for none; their number is written to n."""
    cdef int32_t words = lists.n[at]
    if trees:
        n[0] = words + 1
        return lists.nodes + lists.first_node[at] + <int64_t>row * (words + 1)
    n[0] = words
    return lists.members + lists.first_member[at] + <int64_t>row * words
