"""The arcs that a sentence may have.

A head that the pruner keeps for a word and one of the likely labels are an *arc* of the lattice.
Its score is known from the start; those of larger parts wait until they are asked for
(larger_parts.pyx).  A label is part of the arc, so larger parts know their labels in the search.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from tk_spacy.features.columns cimport FIRST_MORPH
from tk_spacy.features.templates cimport Sink, Words, id_sink, most_features
from tk_spacy.parallel.stopping cimport is_stopped
from tk_spacy.parsers.sampling.search.crossing cimport crossing_score
from tk_spacy.parsers.sampling.search.structs cimport (
    ELSEWHERE, STOPPED, UNDER_ROOT, Buffer, Lattice, Model,
)
from tk_spacy.parsers.sampling.search.templates cimport MOST_EXTRA, arc_templates

cdef enum:
    FIRST_SLOTS = 4096


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


# Arcs


cdef int build(
    Lattice *g, const Model *model, const int32_t *gold_heads, const int32_t *gold_labels,
    double head_cost, double label_cost, double arc_margin,
) noexcept nogil:
    """Arcs from the heads kept; their tables are `arrange`d apart.

    arc_margin: arcs that score less than a word's best one by more are left out.
    gold_heads, gold_labels: int32[n + 1] or NULL.  The gold arcs are added, every other arc gains
    the loss of choosing it.
    Returns -1 without memory, STOPPED where it was asked to end.
    """
    cdef int n = g.n, m, h, i, j, c, a, count, n_heads, n_most
    cdef int n_cells = model.n_cells
    cdef bint gold_seen
    cdef int32_t chosen[16]
    cdef int most = model.max_labels + 1
    n_most = (g.kept_first[n + 1] + n) * most + 1
    if reserve_arcs(g, n_most) < 0:
        return -1
    a = 0
    g.first[0] = 0
    for m in range(1, n + 1):
        if is_stopped(g.watch):
            return STOPPED
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
    g.first[n + 1] = a
    g.n_arcs = a
    return 0


cdef int take(
    Lattice *g, const int64_t *first, const int32_t *head, const int32_t *label,
    const double *score,
) noexcept nogil:
    """Arcs that were built before, with new scores.  Returns -1 without memory.

    Those into word m are first[m] .. first[m + 1] - 1 of the arrays (search_space.lattice_arcs).
    """
    cdef int n = g.n, m, a = 0
    cdef int64_t i
    if reserve_arcs(g, <int>(first[n + 1] - first[1]) + 1) < 0:
        return -1
    g.first[0] = 0
    for m in range(1, n + 1):
        g.first[m] = a
        for i in range(first[m], first[m + 1]):
            g.head[a] = head[i]
            g.mod[a] = m
            g.label[a] = label[i]
            g.score[a] = score[i]
            a += 1
    g.first[n + 1] = a
    g.n_arcs = a
    return 0


cdef int reserve_arcs(Lattice *g, int most) noexcept nogil:
    cdef int32_t *memory = <int32_t *>ensure(
        &g.arc_memory,
        most * (sizeof(double) + sizeof(int64_t) + 6 * sizeof(int32_t))
        + (g.n + 4) * sizeof(int32_t),
    )
    if memory == NULL:
        return -1
    g.score = <double *>memory
    g.pair_at = <int64_t *>(g.score + most)
    g.head = <int32_t *>(g.pair_at + most)
    g.mod = g.head + most
    g.label = g.mod + most
    g.rank = g.label + most
    g.nearer = g.rank + most
    g.crossing = g.nearer + most
    g.first = g.crossing + most
    return 0


cdef void score_labels(Lattice *g, const Model *model, int h, int m) noexcept nogil:
    """The arc's score without a label into cells[0], what each label adds into cells[label]."""
    cdef int i, c, n_cells = model.n_cells
    cdef Sink sink = id_sink(g.ids, model.mask)
    cdef const float *row
    cdef float *cells = g.cells
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


# Tables


cdef int arrange(Lattice *g, const Model *model) noexcept nogil:
    """Ranks of the arcs on their head's sides, and empty tables.  Returns -1 without memory."""
    cdef int n = g.n, a, m, h
    cdef int64_t at = 0, i
    cdef int32_t *count = <int32_t *>ensure(&g.count_memory, 3 * (n + 2) * sizeof(int32_t))
    cdef int32_t *last
    cdef int32_t *same
    if count == NULL:
        return -1
    for a in range(g.n_arcs):
        g.crossing[a] = crossing_score(model, &g.words, g.head[a], g.mod[a], g.label[a], g.ids)
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
    g.n_pairs = at
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


# Memory


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
    free(g.own_memory.data)
    free(g.kernel_memory.data)
    memset(g, 0, sizeof(Lattice))
