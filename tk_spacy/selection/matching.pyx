"""Which patterns of a finished set occur in arcs and trees.

Where a pattern of the set has few extensions, each of them is looked for among the features of an
arc; where it has many, it has a table of them, in which each of the arc's features is looked up.
So the time depends on how much is found, and hardly on how many patterns there are.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from tk_spacy.selection.corpus cimport (
    Arc, Lists, Tree, get_arc, get_tree, has_feature, spread_marks,
)
from tk_spacy.selection.patterns cimport FEATURE_BITS, MAX_DEPTH, NOWHERE, Reach, lengthen, reaches
from tk_spacy.utils.prefetch cimport tk_prefetch


cdef struct TreeWalk:
    # What stays the same while the patterns below a word are found.
    const Lists *lists
    Tree tree
    Reach reach
    const Finding *finding


cdef void fill_tables(const Index *index, Cell *cells) noexcept nogil:
    cdef int64_t at
    cdef Py_ssize_t i
    cdef uint32_t mask, cell
    cdef Cell *table
    for i in range(index.n):
        if index.tables[i] == NOWHERE:
            continue
        table = cells + index.first_cells[index.tables[i]]
        mask = table_mask(index, index.tables[i])
        for at in range(index.starts[i], index.starts[i + 1]):
            cell = cell_of(index.steps[at], mask)
            while table[cell].position:
                cell = (cell + 1) & mask
            table[cell].step, table[cell].position = index.steps[at], <int32_t>at


cdef inline uint32_t table_mask(const Index *index, int32_t table) noexcept nogil:
    return <uint32_t>(index.first_cells[table + 1] - index.first_cells[table] - 1)


cdef inline int32_t find_step(const Cell *table, uint32_t mask, uint32_t step) noexcept nogil:
    """The position of the extension by a step, 0 for none."""
    cdef uint32_t cell = cell_of(step, mask)
    while table[cell].position and table[cell].step != step:
        cell = (cell + 1) & mask
    return table[cell].position


cdef void match_arc(const Arc *arc, const Finding *finding) noexcept nogil:
    """All patterns of one arc, or part."""
    cdef int32_t i, position
    for i in range(arc.n):
        if arc.ids[i] >= finding.index.n_firsts:
            return
        position = finding.index.firsts[arc.ids[i]]
        if position != NOWHERE:
            match_set(arc, i + 1, position, finding)


cdef void match_set(
    const Arc *arc, int32_t start, int32_t position, const Finding *finding
) noexcept nogil:
    """A pattern that an arc has, and what extends it; no feature before `start` does."""
    cdef const Index *index = finding.index
    cdef int32_t table = index.tables[position], i, child
    cdef const Cell *cells
    cdef uint32_t mask
    finding.found(finding.context, position)
    if table == NOWHERE:
        for child in range(index.starts[position], index.starts[position + 1]):
            if has_feature(arc, <int32_t>index.steps[child]):
                match_set(arc, start, child, finding)
        return
    cells, mask = index.cells + index.first_cells[table], table_mask(index, table)
    for i in range(start, arc.n):
        child = find_step(cells, mask, <uint32_t>arc.ids[i])
        if child:
            match_set(arc, i + 1, child, finding)


cdef void match_below(TreeWalk *walk, int32_t top) noexcept nogil:
    """All patterns of a tree whose top is one word."""
    cdef int32_t path[MAX_DEPTH]
    cdef int32_t word = walk.tree.first_child[top]
    path[0] = top
    while word:
        match_word(walk, path, 0, word, NOWHERE, 0, False)
        word = walk.tree.next_sibling[word]


cdef void match_tree(
    TreeWalk *walk, const int32_t *path, int depth, int32_t position, int order, bint marked
) noexcept nogil:
    """What extends a pattern that ends in path[depth]: by words on it, then on those above."""
    cdef const Index *index = walk.finding.index
    cdef int32_t first = index.starts[position], last = index.starts[position + 1], word
    cdef int i
    if first == last:
        return
    # The last one has the greatest depth.
    if depth + 1 < MAX_DEPTH and index.steps[last - 1] >= <uint32_t>depth << FEATURE_BITS:
        word = walk.tree.first_child[path[depth]]
        while word:
            match_word(walk, path, depth, word, position, order, marked)
            word = walk.tree.next_sibling[word]
    for i in range(index.steps[first] >> FEATURE_BITS, depth):
        word = walk.tree.next_sibling[path[i + 1]]
        if word:
            match_word(walk, path, i, word, position, order, marked)


cdef void match_word(
    TreeWalk *walk, const int32_t *path, int depth, int32_t word, int32_t position, int order,
    bint marked,
) noexcept nogil:
    """What extends a pattern, or begins one (NOWHERE), by the arc into a word on path[depth]."""
    cdef const Index *index = walk.finding.index
    cdef int32_t longer[MAX_DEPTH]
    cdef uint32_t hung = <uint32_t>depth << FEATURE_BITS, mask
    cdef int32_t i, child, table
    cdef const Cell *cells
    cdef Arc arc
    marked = marked or walk.reach.marked[word]
    if not marked and not reaches(&walk.reach, path, depth, word, order + 1):
        return
    get_arc(walk.lists, walk.tree.first_arc + walk.tree.members[word - 1], &arc)
    lengthen(longer, path, depth, word)
    depth, order = depth + 1, order + 1
    if position == NOWHERE:
        for i in range(arc.n):
            if arc.ids[i] >= index.n_firsts:
                return
            child = index.firsts[arc.ids[i]]
            if child != NOWHERE:
                take(walk, longer, depth, child, order, marked)
        return
    table = index.tables[position]
    if table == NOWHERE:
        for child in range(index.starts[position], index.starts[position + 1]):
            # (For a step of another depth the difference is no feature's number.)
            if has_feature(&arc, <int32_t>(index.steps[child] - hung)):
                take(walk, longer, depth, child, order, marked)
        return
    cells, mask = index.cells + index.first_cells[table], table_mask(index, table)
    for i in range(arc.n):
        tk_prefetch(&cells[cell_of(hung + <uint32_t>arc.ids[i], mask)])
    for i in range(arc.n):
        child = find_step(cells, mask, hung + <uint32_t>arc.ids[i])
        if child:
            take(walk, longer, depth, child, order, marked)


cdef inline void take(
    TreeWalk *walk, const int32_t *path, int depth, int32_t position, int order, bint marked
) noexcept nogil:
    """A pattern that ends in path[depth], and what extends it."""
    if marked:
        walk.finding.found(walk.finding.context, position)
    match_tree(walk, path, depth, position, order, marked)


cdef void look_down(
    const Lists *lists, Py_ssize_t at, const Tree *tree, int32_t *numbers, Reach *reach
) noexcept nogil:
    """For a walk over the occurrences that not all trees of a list have.

    numbers: room for 2 * (n + 1).
    """
    cdef const uint8_t *marked = lists.marked + lists.first_mark[at]
    spread_marks(tree, marked, numbers + tree.n + 1, numbers, reach.max_order)
    reach.marked, reach.below = marked, numbers


cdef int visit_units(
    const Lists *lists, Py_ssize_t at, bint trees, const Finding *finding
) noexcept nogil:
    if trees:
        return visit_nodes(lists, at, finding)
    visit_arcs(lists, at, finding)
    return 0


cdef void visit_arcs(const Lists *lists, Py_ssize_t at, const Finding *finding) noexcept nogil:
    """The distinct arcs of a list; nothing is found in one that all its trees have."""
    cdef int64_t i, first = lists.first_arc[at]
    cdef Arc arc
    for i in range(n_units(lists, at, False)):
        if lists.arc_differs[first + i]:
            get_arc(lists, first + i, &arc)
            match_arc(&arc, finding)
        finding.end(finding.context, i)


cdef int visit_nodes(const Lists *lists, Py_ssize_t at, const Finding *finding) noexcept nogil:
    """Each node of the list's forest once; returns 1 where there is no memory."""
    cdef int64_t top, first = lists.first_top[at]
    cdef int32_t row, last = -1
    cdef TreeWalk walk
    cdef int32_t *numbers = <int32_t *>malloc(2 * (lists.n[at] + 1) * sizeof(int32_t))
    if numbers == NULL:
        return 1
    walk.lists, walk.finding, walk.reach.max_order = lists, finding, finding.index.highest
    for top in range(n_units(lists, at, True)):
        row = lists.top_rows[first + top]
        if row != last:
            get_tree(lists, at, row, &walk.tree)
            look_down(lists, at, &walk.tree, numbers, &walk.reach)
            last = row
        match_below(&walk, lists.top_words[first + top])
        finding.end(finding.context, top)
    free(numbers)
    return 0


cdef void sum_units(
    const Lists *lists, Py_ssize_t at, bint trees, const double *values, double *out
) noexcept nogil:
    cdef const int32_t *units
    cdef int32_t row, i, n
    for row in range(lists.k[at]):
        units = units_of(lists, at, row, trees, &n)
        out[row] = 0.0
        for i in range(n):
            if units[i] >= 0:
                out[row] += values[units[i]]
