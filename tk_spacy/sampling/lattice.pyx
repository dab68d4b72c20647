"""The arcs a sentence may have, and the scores of the parts that they form.

A first-order pruner keeps few heads for each word; each kept head and one of its likely labels are
an *arc* of the lattice.  Arc scores are known from the start.  Scores of larger parts are looked up
in tables that are filled when a part is met for the first time, so a climbing step costs look-ups
and no part is scored that the search never meets.

Source: the pruning is Martins et al. (ACL 2013)'s, the parts are Zhang et al. (EMNLP 2014)'s.
Ours differs in that a label is part of the arc, so larger parts know their labels in the search.
"""

from libc.math cimport INFINITY, NAN, rint
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from tk_spacy.features cimport (
    FIRST_MORPH,
    Sink,
    Words,
    mix,
    most_features,
    part_features,
)
from tk_spacy.parts cimport G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, M, S, T, WIDTH
from tk_spacy.sampling.templates cimport (
    MOST_EXTRA,
    arc_templates,
    crossing_templates,
    pruner_templates,
)

cdef enum:
    BOUNDARY_LABEL = 1
    FIRST_SLOTS = 4096


cdef void *ensure(Buffer *buffer, size_t size) noexcept nogil:
    """The buffer's memory, at least `size` bytes, its content kept; NULL where there is none."""
    cdef void *data
    if buffer.size < size:
        data = realloc(buffer.data, size + size // 2)
        if data == NULL:
            return NULL
        buffer.data = data
        buffer.size = size + size // 2
    return buffer.data


cdef void release(Lattice *g) noexcept nogil:
    """Give all memory back."""
    free(g.arc_memory.data)
    free(g.pair_memory.data)
    free(g.key_memory.data)
    free(g.value_memory.data)
    free(g.id_memory.data)
    free(g.cell_memory.data)
    free(g.matrix_memory.data)
    free(g.kept_memory.data)
    free(g.count_memory.data)
    memset(g, 0, sizeof(Lattice))


cdef int begin(Lattice *g, const Words *x, const Model *model) noexcept nogil:
    """Take up a sentence.  Returns -1 without memory."""
    cdef int n = x.n
    g.words = x[0]
    g.n = n
    g.failed = False
    g.ids = <uint32_t *>ensure(
        &g.id_memory,
        (most_features(model.morph_end - FIRST_MORPH) + MOST_EXTRA) * sizeof(uint32_t),
    )
    g.cells = <float *>ensure(&g.cell_memory, model.n_cells * sizeof(float))
    g.first_order = <double *>ensure(&g.matrix_memory, (n + 1) * (n + 1) * sizeof(double))
    g.kept = <int32_t *>ensure(
        &g.kept_memory, ((n + 2) + n * (model.max_heads + 2)) * sizeof(int32_t)
    )
    if g.ids == NULL or g.cells == NULL or g.first_order == NULL or g.kept == NULL:
        return -1
    g.kept_first = g.kept
    g.kept = g.kept + n + 2
    return 0


# Pruning


cdef int score_heads(Lattice *g, const Model *model) noexcept nogil:
    """The pruner's score of every arc h -> m into first_order[h * (n + 1) + m]."""
    cdef int h, m, i, n = g.n
    cdef double total
    cdef Sink sink
    memset(&sink, 0, sizeof(Sink))
    sink.ids = g.ids
    sink.mask = model.pruner_mask
    for m in range(1, n + 1):
        g.first_order[m] = 0.0
        for h in range(n + 1):
            if h == m:
                g.first_order[h * (n + 1) + m] = -INFINITY
                continue
            sink.count = 0
            pruner_templates(&sink, &g.words, h, m)
            total = 0.0
            for i in range(sink.count):
                total += model.pruner[g.ids[i]]
            g.first_order[h * (n + 1) + m] = total
    for h in range(n + 1):
        g.first_order[h * (n + 1)] = -INFINITY
    return 0


cdef int keep_heads(Lattice *g, const Model *model, const int32_t *tree) noexcept nogil:
    """The best heads of each word by first_order, and those of a tree, so that one can be found.

    tree: int32[n + 1], the head of each word, or NULL.
    """
    cdef int h, m, i, j, count, at = 0, n = g.n
    cdef double value, best
    cdef int32_t *kept
    for m in range(1, n + 1):
        g.kept_first[m] = at
        kept = g.kept + at
        count = 0
        best = -INFINITY
        for h in range(n + 1):
            if h != m and g.first_order[h * (n + 1) + m] > best:
                best = g.first_order[h * (n + 1) + m]
        for h in range(n + 1):
            value = g.first_order[h * (n + 1) + m]
            if h == m or not value >= best - model.prune_margin:
                continue
            # Insertion into the best max_heads; earlier heads win among equals.
            i = count if count < model.max_heads else model.max_heads - 1
            if count == model.max_heads and not (
                value > g.first_order[kept[i] * (n + 1) + m]
            ):
                continue
            while i > 0 and value > g.first_order[kept[i - 1] * (n + 1) + m]:
                kept[i] = kept[i - 1]
                i -= 1
            kept[i] = h
            if count < model.max_heads:
                count += 1
        if tree != NULL:
            for j in range(count):
                if kept[j] == tree[m]:
                    break
            else:
                kept[count] = tree[m]
                count += 1
        at += count
    g.kept_first[n + 1] = at
    return 0


# Arcs


cdef int build(
    Lattice *g, const Model *model, const int32_t *gold_heads, const int32_t *gold_labels,
    double head_cost, double label_cost, double arc_margin,
) noexcept nogil:
    """Arcs from the heads kept, and empty tables.  Returns -1 without memory.

    arc_margin: arcs that score less than a word's best one by more are left out.
    gold_heads, gold_labels: int32[n + 1] or NULL.  The gold arcs are added, every other arc gains
    the loss of choosing it.
    """
    cdef int n = g.n, m, h, i, j, c, a, count, n_heads, n_most
    cdef int n_cells = model.n_cells
    cdef bint gold_seen
    cdef int32_t *memory
    cdef int32_t chosen[16]
    cdef int most = model.max_labels + 1
    n_most = (g.kept_first[n + 1] + n) * most + 1
    memory = <int32_t *>ensure(
        &g.arc_memory,
        n_most * (sizeof(double) + sizeof(int64_t) + 6 * sizeof(int32_t))
        + (n + 4) * sizeof(int32_t),
    )
    if memory == NULL:
        return -1
    g.score = <double *>memory
    g.pair_at = <int64_t *>(g.score + n_most)
    g.head = <int32_t *>(g.pair_at + n_most)
    g.mod = g.head + n_most
    g.label = g.mod + n_most
    g.rank = g.label + n_most
    g.nearer = g.rank + n_most
    g.crossing = g.nearer + n_most
    g.first = g.crossing + n_most
    a = 0
    g.first[0] = 0
    for m in range(1, n + 1):
        g.first[m] = a
        n_heads = g.kept_first[m + 1] - g.kept_first[m]
        gold_seen = gold_heads == NULL
        for i in range(n_heads + 1):
            if i < n_heads:
                h = g.kept[g.kept_first[m] + i]
            elif gold_seen:
                break
            else:
                h = gold_heads[m]
            score_labels(g, model, h, m)
            if gold_heads != NULL:
                if h == gold_heads[m]:
                    gold_seen = True
                    for c in range(1, n_cells):
                        if c != gold_labels[m]:
                            g.cells[c] += <float>label_cost
                else:
                    for c in range(1, n_cells):
                        g.cells[c] += <float>head_cost
            count = best_labels(g, model, h, chosen)
            if gold_heads != NULL and h == gold_heads[m]:
                for j in range(count):
                    if chosen[j] == gold_labels[m]:
                        break
                else:
                    chosen[count] = gold_labels[m]
                    count += 1
            for j in range(count):
                g.head[a] = h
                g.mod[a] = m
                g.label[a] = chosen[j]
                g.score[a] = <double>g.cells[0] + <double>g.cells[chosen[j]]
                a += 1
        a = keep_arcs(g, m, a, arc_margin, gold_heads, gold_labels)
    for m in range(a):
        g.crossing[m] = crossing_score(
            model, &g.words, g.head[m], g.mod[m], g.label[m], g.ids
        )
    g.first[n + 1] = a
    g.n_arcs = a
    return arrange(g, model)


cdef int keep_arcs(
    Lattice *g, int m, int end, double margin, const int32_t *gold_heads,
    const int32_t *gold_labels,
) noexcept nogil:
    """Drop the arcs into m that score too little, the last ones so far; the new end of them."""
    cdef int a, kept = g.first[m]
    cdef double best = -INFINITY
    for a in range(g.first[m], end):
        best = max(best, g.score[a])
    for a in range(g.first[m], end):
        if g.score[a] < best - margin and not (
            gold_heads != NULL and g.head[a] == gold_heads[m] and g.label[a] == gold_labels[m]
        ):
            continue
        g.head[kept] = g.head[a]
        g.mod[kept] = m
        g.label[kept] = g.label[a]
        g.score[kept] = g.score[a]
        kept += 1
    return kept


cdef void score_labels(Lattice *g, const Model *model, int h, int m) noexcept nogil:
    """The arc's score without a label into cells[0], what each label adds into cells[label]."""
    cdef int i, c, n_cells = model.n_cells
    cdef Sink sink
    cdef const float *row
    cdef float *cells = g.cells
    memset(&sink, 0, sizeof(Sink))
    sink.ids = g.ids
    sink.mask = model.mask
    sink.rows = True
    arc_templates(&sink, &g.words, h, m)
    for c in range(n_cells):
        cells[c] = 0.0
    for i in range(sink.count):
        row = model.weights + g.ids[i]
        for c in range(n_cells):
            cells[c] += row[c]


cdef int best_labels(Lattice *g, const Model *model, int h, int32_t *chosen) noexcept nogil:
    """The labels to keep for an arc from h, best first; their number, at least 1."""
    cdef int c, i, count = 0
    cdef int place = UNDER_ROOT if h == 0 else ELSEWHERE
    cdef float value
    for c in range(1, model.n_cells):
        if not model.places[c] & place:
            continue
        value = g.cells[c]
        i = count if count < model.max_labels else model.max_labels - 1
        if count == model.max_labels and not value > g.cells[chosen[i]]:
            continue
        while i > 0 and value > g.cells[chosen[i - 1]]:
            chosen[i] = chosen[i - 1]
            i -= 1
        chosen[i] = c
        if count < model.max_labels:
            count += 1
    for i in range(1, count):
        if g.cells[chosen[i]] < g.cells[chosen[0]] - model.label_margin:
            return i
    return count


cdef int arrange(Lattice *g, const Model *model) noexcept nogil:
    """Ranks of the arcs on their head's sides, and the tables."""
    cdef int n = g.n, a, m, h
    cdef int64_t at = 0, i
    cdef int32_t *count = <int32_t *>ensure(&g.count_memory, 3 * (n + 2) * sizeof(int32_t))
    cdef int32_t *last
    cdef int32_t *same
    if count == NULL:
        return -1
    last = count + n + 2
    same = last + n + 2
    for h in range(n + 2):
        count[h] = 0
        last[h] = -1
    for m in range(1, n + 1):
        for a in range(g.first[m], g.first[m + 1]):
            h = g.head[a]
            if h < m:
                rank_arc(g, a, h, m, count, last, same)
    for h in range(n + 2):
        count[h] = 0
        last[h] = -1
    for m in range(n, 0, -1):
        for a in range(g.first[m], g.first[m + 1]):
            h = g.head[a]
            if h > m:
                rank_arc(g, a, h, m, count, last, same)
    if model.order < 2:
        return 0
    for a in range(g.n_arcs):
        g.pair_at[a] = at
        h = g.head[a]
        at += g.nearer[a] + 1
        if h > 0:
            at += g.first[h + 1] - g.first[h]
    g.pairs = <float *>ensure(&g.pair_memory, at * sizeof(float))
    if g.pairs == NULL:
        return -1
    for i in range(at):
        g.pairs[i] = NAN
    if model.order < 3:
        return 0
    if g.n_slots == 0:
        g.n_slots = FIRST_SLOTS
    g.keys = <uint64_t *>ensure(&g.key_memory, g.n_slots * sizeof(uint64_t))
    g.values = <float *>ensure(&g.value_memory, g.n_slots * sizeof(float))
    if g.keys == NULL or g.values == NULL:
        return -1
    memset(g.keys, 0, g.n_slots * sizeof(uint64_t))
    g.n_keys = 0
    return 0


cdef inline void rank_arc(
    Lattice *g, int a, int h, int m, int32_t *count, int32_t *last, int32_t *same
) noexcept nogil:
    if last[h] != m:
        last[h] = m
        same[h] = count[h]
    g.rank[a] = count[h]
    g.nearer[a] = same[h]
    count[h] += 1


# Larger parts


cdef int32_t crossing_score(
    const Model *model, const Words *x, int h, int m, int label, uint32_t *ids
) noexcept nogil:
    """What an arc scores for each arc that it crosses, in units."""
    cdef int i
    cdef double total = 0.0
    cdef Sink sink
    if model.order < 2:
        return 0
    memset(&sink, 0, sizeof(Sink))
    sink.ids = ids
    sink.mask = model.mask
    crossing_templates(&sink, x, h, m, label)
    for i in range(sink.count):
        total += model.weights[ids[i]]
    return <int32_t>rint(max(-1000.0, min(1000.0, total)) * CROSSING_UNIT)


cdef float hashed_score(
    Lattice *g, const Model *model, int kind, const int32_t *part
) noexcept nogil:
    cdef int i
    cdef double total = 0.0
    cdef Sink sink
    memset(&sink, 0, sizeof(Sink))
    sink.ids = g.ids
    sink.mask = model.mask
    part_features(&sink, &g.words, kind, part)
    for i in range(sink.count):
        total += model.weights[g.ids[i]]
    return <float>total


cdef float pair_score(
    Lattice *g, const Model *model, int kind, int outer, int arc
) noexcept nogil:
    """Score of a sibling (kind 1) or grandparent part (kind 2)."""
    cdef int32_t part[WIDTH]
    part[G] = part[T] = part[S] = -1
    part[LABEL_H] = part[LABEL_T] = part[LABEL_S] = 0
    part[H] = g.head[arc]
    part[M] = g.mod[arc]
    part[LABEL_M] = g.label[arc]
    if kind == 2:
        part[G] = g.head[outer]
        part[LABEL_H] = g.label[outer]
    else:
        part[S] = g.mod[outer] if outer >= 0 else g.n + 1
        part[LABEL_S] = g.label[outer] if outer >= 0 else BOUNDARY_LABEL
    return hashed_score(g, model, kind, part)


cdef float triple_score(
    Lattice *g, const Model *model, int kind, int a, int s, int m
) noexcept nogil:
    """Score of a grand-sibling (kind 3, a the arc into the head) or tri-sibling (kind 4)."""
    cdef uint64_t width = g.n_arcs + 1
    cdef uint64_t key = ((<uint64_t>(a + 1) * width + <uint64_t>(s + 1)) * width + m) * 2 + kind - 2
    cdef uint64_t slot = mix(key, 0) & (g.n_slots - 1)
    cdef int32_t part[WIDTH]
    cdef float value
    while g.keys[slot] != 0:
        if g.keys[slot] == key:
            return g.values[slot]
        slot = (slot + 1) & (g.n_slots - 1)
    part[G] = part[T] = -1
    part[LABEL_H] = part[LABEL_T] = 0
    part[H] = g.head[m]
    part[M] = g.mod[m]
    part[LABEL_M] = g.label[m]
    part[S] = g.mod[s] if s >= 0 else g.n + 1
    part[LABEL_S] = g.label[s] if s >= 0 else BOUNDARY_LABEL
    if kind == 3:
        part[G] = g.head[a]
        part[LABEL_H] = g.label[a]
    else:
        part[T] = g.mod[a] if a >= 0 else g.n + 1
        part[LABEL_T] = g.label[a] if a >= 0 else BOUNDARY_LABEL
    value = hashed_score(g, model, kind, part)
    if 2 * (g.n_keys + 1) > g.n_slots and not more_slots(g):
        g.failed = True  # the value is right, only not kept
        return value
    slot = mix(key, 0) & (g.n_slots - 1)
    while g.keys[slot] != 0:
        slot = (slot + 1) & (g.n_slots - 1)
    g.keys[slot] = key
    g.values[slot] = value
    g.n_keys += 1
    return value


cdef bint more_slots(Lattice *g) noexcept nogil:
    """Twice the slots; False, and all as before, without memory."""
    cdef uint64_t n_slots = 2 * g.n_slots, i, slot
    cdef uint64_t *keys = <uint64_t *>malloc(n_slots * sizeof(uint64_t))
    cdef float *values = <float *>malloc(n_slots * sizeof(float))
    if keys == NULL or values == NULL:
        free(keys)
        free(values)
        return False
    memset(keys, 0, n_slots * sizeof(uint64_t))
    for i in range(g.n_slots):
        if g.keys[i] == 0:
            continue
        slot = mix(g.keys[i], 0) & (n_slots - 1)
        while keys[slot] != 0:
            slot = (slot + 1) & (n_slots - 1)
        keys[slot] = g.keys[i]
        values[slot] = g.values[i]
    free(g.keys)
    free(g.values)
    g.keys = keys
    g.values = values
    g.key_memory.data = keys
    g.key_memory.size = n_slots * sizeof(uint64_t)
    g.value_memory.data = values
    g.value_memory.size = n_slots * sizeof(float)
    g.n_slots = n_slots
    return True
