"""The k best trees of a chart, found lazily: only spans of trees in the list are looked at again.

Source: Huang and Chiang (IWPT 2005), "Better k-best parsing", algorithm 3.  A way of building a
span is a choice (of a modifier, a sibling, a split) and the ranks of the two spans below.  From the
ranks (r, s) follow (r + 1, s) and, where r is 0, (0, s + 1), so that each way is met once.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from tk_spacy.features.hashing cimport mix
from tk_spacy.parsers.projective.arcs cimport RIGHT, chain_cell, pair_cell, triple_cell

cdef enum:
    # Kinds of items: the whole, C, E, I, S; and a word alone, which has one way and no node.
    WHOLE = 1
    SPAN = 2
    END = 3
    CHAIN = 4
    GAP = 5
    NOTHING = 6
    FIRST_SLOTS = 1 << 10


cdef struct Below:
    # The two spans below a choice, and what the choice itself scores.
    Item left
    Item right
    double score


cdef inline Item item_of(int kind, int x, int i, int j) noexcept nogil:
    cdef Item item
    item.kind, item.x, item.i, item.j = kind, x, i, j
    return item


cdef inline Item span_of(const Arcs *g, int arc, int end) noexcept nogil:
    return item_of(NOTHING if g.mod[arc] == end else SPAN, arc, end, 0)


cdef double best_of(const Lists *x, const Item *item) noexcept nogil:
    """The best score of an item, from the chart."""
    if item.kind == NOTHING:
        return 0.0
    if item.kind == SPAN:
        return x.chart.spans[item.x * <int64_t>(x.g.n + 1) + item.i]
    if item.kind == END:
        return x.chart.ends[x.g.end[item.x] + item.i]
    if item.kind == CHAIN:
        return x.chart.chains[x.g.chain[item.x] + chain_cell(item.i, item.j)]
    return x.chart.gaps[x.g.pair[item.x] + pair_cell(item.i, item.j)]


cdef void choices_of(const Lists *x, const Item *item, int *first, int *stop) noexcept nogil:
    """The choices of an item are first .. stop - 1; some may have no tree."""
    cdef const Arcs *g = x.g
    cdef int d, b, c
    first[0], stop[0] = 0, 0
    if item.kind == WHOLE:
        stop[0] = g.n_arcs
    elif item.kind == SPAN:
        d = RIGHT if item.i > g.mod[item.x] else 0
        stop[0] = g.many[2 * item.x + d]
    elif item.kind == END:
        first[0], stop[0] = -1, item.i
    elif item.kind == CHAIN:
        first[0], stop[0] = -1, item.j
        if item.j < 0:
            stop[0] = 0
    else:
        b, c = g.out[g.side[item.x] + item.i], g.out[g.side[item.x] + item.j]
        first[0] = min(g.mod[b], g.mod[c])
        stop[0] = max(g.mod[b], g.mod[c])


cdef bint below(const Lists *x, const Item *item, int choice, Below *out) noexcept nogil:
    """What a choice builds an item of; False where it is none."""
    cdef const Arcs *g = x.g
    cdef int h, d, b, c
    out.right = item_of(NOTHING, 0, 0, 0)
    out.score = 0.0
    if item.kind == WHOLE:
        if g.head[choice] != 0:
            return False
        out.left = span_of(g, choice, 1)
        out.right = span_of(g, choice, g.n)
        out.score = x.parts.root[choice]
    elif item.kind == SPAN:
        h = g.mod[item.x]
        d = RIGHT if item.i > h else 0
        b = g.out[g.side[2 * h + d] + choice]
        if (g.mod[b] > item.i) if d == RIGHT else (g.mod[b] < item.i):
            return False
        out.left = item_of(END, 2 * item.x + d, choice, 0)
        out.right = span_of(g, b, item.i)
    elif item.kind == END:
        out.left = item_of(CHAIN, item.x, item.i, choice)
    elif item.kind == CHAIN:
        h, d = g.mod[item.x // 2], item.x % 2
        out.score = x.parts.chains[g.chain[item.x] + chain_cell(item.i, item.j)]
        if item.j < 0:
            out.left = span_of(
                g, g.out[g.side[2 * h + d] + item.i], h + 1 if d == RIGHT else h - 1
            )
        else:
            out.left = item_of(CHAIN, item.x, item.j, choice)
            out.right = item_of(GAP, 2 * h + d, item.i, item.j)
            out.score += x.parts.triples[
                g.triple[2 * h + d] + triple_cell(item.i, item.j, choice)
            ]
    else:
        b, c = g.out[g.side[item.x] + item.i], g.out[g.side[item.x] + item.j]
        if g.mod[b] > g.mod[c]:
            b, c = c, b
        out.left = span_of(g, b, choice)
        out.right = span_of(g, c, choice + 1)
    return True


# Ways in order


cdef bint reserve(Ways *ways) noexcept nogil:
    cdef void *memory
    if ways.size == ways.room:
        memory = realloc(ways.cells, <size_t>(2 * ways.room + 4) * sizeof(Way))
        if memory == NULL:
            return False
        ways.cells, ways.room = <Way *>memory, 2 * ways.room + 4
    return True


cdef inline bint is_before(const Way *a, const Way *b) noexcept nogil:
    """By score; among equals the order of choices and ranks."""
    if a.score != b.score:
        return a.score > b.score
    if a.choice != b.choice:
        return a.choice < b.choice
    return a.left < b.left if a.left != b.left else a.right < b.right


cdef bint push(Ways *heap, Way way) noexcept nogil:
    """Into a heap whose first cell is the best.  Returns False without memory."""
    cdef int i, parent
    if not reserve(heap):
        return False
    i = heap.size
    heap.size += 1
    while i > 0:
        parent = (i - 1) // 2
        if not is_before(&way, &heap.cells[parent]):
            break
        heap.cells[i] = heap.cells[parent]
        i = parent
    heap.cells[i] = way
    return True


cdef Way pop(Ways *heap) noexcept nogil:
    cdef Way best = heap.cells[0]
    cdef Way last
    cdef int i = 0, child
    heap.size -= 1
    last = heap.cells[heap.size]
    while 2 * i + 1 < heap.size:
        child = 2 * i + 1
        if child + 1 < heap.size and is_before(&heap.cells[child + 1], &heap.cells[child]):
            child += 1
        if not is_before(&heap.cells[child], &last):
            break
        heap.cells[i] = heap.cells[child]
        i = child
    heap.cells[i] = last
    return best


# Nodes


cdef int begin_lists(
    Lists *x, const Arcs *g, const Chart *chart, const Parts *parts
) noexcept nogil:
    """Forget all, for a new chart.  Returns -1 without memory."""
    cdef int i
    for i in range(x.n_nodes):
        free(x.nodes[i].found.cells)
        free(x.nodes[i].open.cells)
    x.n_nodes = 0
    x.g, x.chart, x.parts, x.failed = g, chart, parts, False
    if x.keys == NULL and not more_slots(x, FIRST_SLOTS):
        return -1
    memset(x.keys, 0, x.n_slots * sizeof(uint64_t))
    return 0


cdef bint more_slots(Lists *x, uint64_t size) noexcept nogil:
    cdef uint64_t *keys = <uint64_t *>calloc(size, sizeof(uint64_t))
    cdef int32_t *places = <int32_t *>calloc(size, sizeof(int32_t))
    cdef uint64_t i, slot
    if keys == NULL or places == NULL:
        free(keys)
        free(places)
        return False
    for i in range(x.n_slots):
        if x.keys[i]:
            slot = mix(x.keys[i], 0) & (size - 1)
            while keys[slot]:
                slot = (slot + 1) & (size - 1)
            keys[slot], places[slot] = x.keys[i], x.places[i]
    free(x.keys)
    free(x.places)
    x.keys, x.places, x.n_slots = keys, places, size
    return True


cdef int node_of(Lists *x, const Item *item) noexcept nogil:
    """The node of an item, its best way found; -1 without memory."""
    cdef uint64_t key = (
        (<uint64_t>item.kind << 60) | (<uint64_t>item.x << 32) | (<uint64_t>(item.i + 1) << 16)
        | <uint64_t>(item.j + 1)
    )
    cdef uint64_t slot
    cdef void *memory
    if 2 * <uint64_t>(x.n_nodes + 1) > x.n_slots and not more_slots(x, 2 * x.n_slots):
        return -1
    slot = mix(key, 0) & (x.n_slots - 1)
    while x.keys[slot]:
        if x.keys[slot] == key:
            return x.places[slot]
        slot = (slot + 1) & (x.n_slots - 1)
    if x.n_nodes == x.room:
        memory = realloc(x.nodes, <size_t>(2 * x.room + 64) * sizeof(Node))
        if memory == NULL:
            return -1
        x.nodes, x.room = <Node *>memory, 2 * x.room + 64
    x.keys[slot], x.places[slot] = key, x.n_nodes
    memset(&x.nodes[x.n_nodes], 0, sizeof(Node))
    x.nodes[x.n_nodes].item = item[0]
    x.n_nodes += 1
    if not open_node(x, &x.nodes[x.n_nodes - 1]):
        return -1
    return x.n_nodes - 1


cdef bint open_node(Lists *x, Node *node) noexcept nogil:
    """All choices with the best spans below, into the heap; the best one is found.

    Returns False without memory.
    """
    cdef int choice, first, stop
    cdef Below parts
    cdef Way way
    way.left = way.right = 0
    node.pushed = True  # until one is found there is none that others follow from
    choices_of(x, &node.item, &first, &stop)
    for choice in range(first, stop):
        if not below(x, &node.item, choice, &parts):
            continue
        way.score = best_of(x, &parts.left) + best_of(x, &parts.right) + parts.score
        way.choice = choice
        if way.score > -INFINITY and not push(&node.open, way):
            return False
    if node.open.size:
        if not reserve(&node.found):
            return False
        node.found.cells[0] = pop(&node.open)
        node.found.size = 1
        node.pushed = False
    return True


cdef double score_at(Lists *x, const Item *item, int rank) noexcept nogil:
    """The score of an item's tree of a rank, -inf where it has no so many."""
    cdef int node
    if item.kind == NOTHING:
        return 0.0 if rank == 0 else -INFINITY
    node = node_of(x, item)
    if node < 0:
        x.failed = True
        return -INFINITY
    if not find(x, node, rank):
        return -INFINITY
    return x.nodes[node].found.cells[rank].score


cdef bint find(Lists *x, int node, int rank) noexcept nogil:
    """Go on until a node's way of a rank is found; False where it has no so many."""
    cdef Way last
    while x.nodes[node].found.size <= rank:
        if not x.nodes[node].pushed:
            x.nodes[node].pushed = True
            last = x.nodes[node].found.cells[x.nodes[node].found.size - 1]
            follow(x, node, last, last.left + 1, last.right)
            if last.left == 0:
                follow(x, node, last, 0, last.right + 1)
        if x.failed or x.nodes[node].open.size == 0:
            return False
        if not reserve(&x.nodes[node].found):
            x.failed = True
            return False
        x.nodes[node].found.cells[x.nodes[node].found.size] = pop(&x.nodes[node].open)
        x.nodes[node].found.size += 1
        x.nodes[node].pushed = False
    return True


cdef void follow(Lists *x, int node, Way way, int left, int right) noexcept nogil:
    """Put the same choice with other trees below into the heap, if there are such."""
    cdef Item item = x.nodes[node].item
    cdef Below parts
    below(x, &item, way.choice, &parts)
    way.left, way.right = left, right
    way.score = score_at(x, &parts.left, left)
    if way.score == -INFINITY:
        return
    way.score += score_at(x, &parts.right, right) + parts.score
    if way.score > -INFINITY and not push(&x.nodes[node].open, way):
        x.failed = True


# Trees


cdef int next_tree(Lists *x, int rank, int32_t *heads) noexcept nogil:
    """The tree of a rank, after all those before it: its heads, int32[n + 1], from word 1 on.

    Returns 1, 0 where there are no so many trees, and -1 without memory.
    """
    cdef Item whole = item_of(WHOLE, 0, 0, 0)
    if score_at(x, &whole, rank) == -INFINITY:
        return -1 if x.failed else 0
    write(x, &whole, rank, heads)
    return -1 if x.failed else 1


cdef void write(Lists *x, const Item *item, int rank, int32_t *heads) noexcept nogil:
    cdef Below parts
    cdef Way way
    cdef int node, h, d
    if item.kind == NOTHING:
        return
    node = node_of(x, item)
    if node < 0:
        x.failed = True
        return
    way = x.nodes[node].found.cells[rank]
    below(x, item, way.choice, &parts)
    if item.kind == WHOLE:
        heads[x.g.mod[way.choice]] = 0
    elif item.kind == CHAIN:
        h, d = x.g.mod[item.x // 2], item.x % 2
        heads[x.g.mod[x.g.out[x.g.side[2 * h + d] + item.i]]] = h
    write(x, &parts.left, way.left, heads)
    write(x, &parts.right, way.right, heads)


cdef void release_lists(Lists *x) noexcept nogil:
    cdef int i
    for i in range(x.n_nodes):
        free(x.nodes[i].found.cells)
        free(x.nodes[i].open.cells)
    free(x.nodes)
    free(x.keys)
    free(x.places)
    memset(x, 0, sizeof(Lists))
