"""Pruning: a model of single arcs, over projective trees, keeps a few heads for each word.

Sources: Koo and Collins (ACL 2010, section 6.2): arcs are kept by their marginals, relative to the
word's best one's; Eisner (COLING 1996) for the spans, Paskin (2001) for inside and outside.  The
outside pass is ours: shares of all trees are handed down from each span to what it is built of.
The best tree's arcs are always kept, so that there is one.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from tk_spacy.features.templates cimport Sink, id_sink, listed_score
from tk_spacy.parsers.projective.arcs cimport arrange, n_chains, n_triples
from tk_spacy.parsers.sampling.search.lattice cimport ensure
from tk_spacy.parsers.sampling.search.templates cimport MOST_PRUNER, pruner_templates

cdef enum:
    MOST_CELLS = 1 << 22     # of chains and triples; some 50 MB


cdef int prune(
    Pruning *p, Arcs *g, const Words *x, const Model *model, const int32_t *gold
) noexcept nogil:
    """Keep heads, and arrange their arcs.

    gold: int32[n + 1], heads that are kept as well, or NULL.
    Where a long sentence has more parts than MOST_CELLS, its words keep fewer heads.
    Returns -1 without memory.
    """
    cdef int limit = model.max_heads
    if room_for_pruning(p, x.n, min(limit, x.n)) < 0:
        return -1
    score_arcs(p, x, model)
    best_tree(p, x.n)
    marginals_of(p, x.n)
    while True:
        keep(p, x.n, limit, model.least, gold)
        if arrange(g, x.n, p.first, p.kept) < 0:
            return -1
        if limit == 1 or n_chains(g) + n_triples(g) <= MOST_CELLS:
            return 0
        limit = <int>(3 * <int64_t>limit // 4)


cdef int room_for_pruning(Pruning *p, int n, int max_heads) noexcept nogil:
    """Returns -1 without memory."""
    cdef size_t size = (n + 1) * <size_t>(n + 1)
    cdef int32_t *words = <int32_t *>ensure(
        &p.word_memory, (2 * n + 4 + n * <size_t>(max_heads + 2)) * sizeof(int32_t)
    )
    p.scores = <double *>ensure(&p.table_memory, 10 * size * sizeof(double))
    if p.scores == NULL or words == NULL:
        return -1
    p.right = p.scores + size
    p.left = p.right + size
    p.to_right = p.left + size
    p.to_left = p.to_right + size
    p.shares = p.to_left + size
    p.marginals = p.shares + 4 * size
    p.tree = words
    p.first = p.tree + n + 1
    p.kept = p.first + n + 2
    return 0


cdef void score_arcs(Pruning *p, const Words *x, const Model *model) noexcept nogil:
    cdef uint32_t ids[MOST_PRUNER]
    cdef Sink sink = id_sink(ids, model.pruner_mask)
    cdef int h, m, n = x.n
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h == m:
                continue
            sink.count = 0
            pruner_templates(&sink, x, h, m)
            p.scores[h * (n + 1) + m] = listed_score(&sink, model.pruner)


# Inside and outside


cdef inline double combine(
    const double *a, int step_a, const double *b, int step_b, int count, bint summed
) noexcept nogil:
    """The best of a[r * step_a] + b[r * step_b], or the log of the sum of their exponentials."""
    cdef double best = -INFINITY, value, whole = 0.0
    cdef int r
    for r in range(count):
        value = a[r * step_a] + b[r * step_b]
        if value > best:
            best = value
    if not summed:
        return best
    for r in range(count):
        whole += exp(a[r * step_a] + b[r * step_b] - best)
    return best + log(whole)


cdef void inside(Pruning *p, int n, bint summed) noexcept nogil:
    """All spans: right[i, j] is i with right modifiers up to j, left[i, j] is j's down to i."""
    cdef int row = n + 1, width, i, j
    cdef double both
    for i in range(1, n + 1):
        p.right[i * row + i] = p.left[i * row + i] = 0.0
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            both = combine(
                &p.right[i * row + i], 1, &p.left[(i + 1) * row + j], row, width, summed
            )
            p.to_right[i * row + j] = both + p.scores[i * row + j]
            p.to_left[i * row + j] = both + p.scores[j * row + i]
            p.right[i * row + j] = combine(
                &p.to_right[i * row + i + 1], 1, &p.right[(i + 1) * row + j], row, width, summed
            )
            p.left[i * row + j] = combine(
                &p.left[i * row + i], 1, &p.to_left[i * row + j], row, width, summed
            )


cdef inline void hand_down(
    const double *a, double *share_a, int step_a, const double *b, double *share_b, int step_b,
    int count, double whole, double share,
) noexcept nogil:
    """Split a span's share among the pairs of spans that it is built of, by their weight."""
    cdef int r
    cdef double part
    for r in range(count):
        part = share * exp(a[r * step_a] + b[r * step_b] - whole)
        share_a[r * step_a] += part
        share_b[r * step_b] += part


cdef int marginals_of(Pruning *p, int n) noexcept nogil:
    """How likely each arc is, among all projective trees with one root, by exp(score)."""
    cdef int row = n + 1, width, i, j, m
    cdef size_t size = row * <size_t>row
    cdef double *right = p.shares
    cdef double *left = right + size
    cdef double *to_right = left + size
    cdef double *to_left = to_right + size
    cdef double best = -INFINITY, whole = 0.0, share
    inside(p, n, True)
    memset(p.shares, 0, 5 * size * sizeof(double))
    for m in range(1, n + 1):
        best = max(best, p.scores[m] + p.left[row + m] + p.right[m * row + n])
    for m in range(1, n + 1):
        whole += exp(p.scores[m] + p.left[row + m] + p.right[m * row + n] - best)
    for m in range(1, n + 1):
        share = exp(p.scores[m] + p.left[row + m] + p.right[m * row + n] - best) / whole
        p.marginals[m] = share
        left[row + m] += share
        right[m * row + n] += share
    for width in range(n - 1, 0, -1):
        for i in range(1, n - width + 1):
            j = i + width
            hand_down(
                &p.left[i * row + i], &left[i * row + i], 1,
                &p.to_left[i * row + j], &to_left[i * row + j], row,
                width, p.left[i * row + j], left[i * row + j],
            )
            hand_down(
                &p.to_right[i * row + i + 1], &to_right[i * row + i + 1], 1,
                &p.right[(i + 1) * row + j], &right[(i + 1) * row + j], row,
                width, p.right[i * row + j], right[i * row + j],
            )
            p.marginals[i * row + j] = to_right[i * row + j]
            p.marginals[j * row + i] = to_left[i * row + j]
            hand_down(
                &p.right[i * row + i], &right[i * row + i], 1,
                &p.left[(i + 1) * row + j], &left[(i + 1) * row + j], row,
                width, p.to_right[i * row + j] - p.scores[i * row + j],
                to_right[i * row + j] + to_left[i * row + j],
            )
    return 0


# The best tree


cdef void best_tree(Pruning *p, int n) noexcept nogil:
    """The best projective tree with one root into `tree`."""
    cdef int row = n + 1, m, root = 1
    cdef double best = -INFINITY, value
    inside(p, n, False)
    for m in range(1, n + 1):
        value = p.scores[m] + p.left[row + m] + p.right[m * row + n]
        if value > best:
            best, root = value, m
    p.tree[root] = 0
    trace_left(p, n, 1, root)
    trace_right(p, n, root, n)


cdef int choice(
    const double *a, int step_a, const double *b, int step_b, int count
) noexcept nogil:
    cdef double best = -INFINITY
    cdef int r, found = 0
    for r in range(count):
        if a[r * step_a] + b[r * step_b] > best:
            best, found = a[r * step_a] + b[r * step_b], r
    return found


cdef void trace_right(Pruning *p, int n, int i, int j) noexcept nogil:
    cdef int row = n + 1, m
    if i == j:
        return
    m = i + 1 + choice(
        &p.to_right[i * row + i + 1], 1, &p.right[(i + 1) * row + j], row, j - i
    )
    p.tree[m] = i
    trace_between(p, n, i, m)
    trace_right(p, n, m, j)


cdef void trace_left(Pruning *p, int n, int i, int j) noexcept nogil:
    cdef int row = n + 1, m
    if i == j:
        return
    m = i + choice(&p.left[i * row + i], 1, &p.to_left[i * row + j], row, j - i)
    p.tree[m] = j
    trace_between(p, n, m, j)
    trace_left(p, n, i, m)


cdef void trace_between(Pruning *p, int n, int i, int j) noexcept nogil:
    cdef int row = n + 1
    cdef int r = i + choice(
        &p.right[i * row + i], 1, &p.left[(i + 1) * row + j], row, j - i
    )
    trace_right(p, n, i, r)
    trace_left(p, n, r + 1, j)


cdef void keep(
    Pruning *p, int n, int limit, double least, const int32_t *gold
) noexcept nogil:
    """The likeliest heads of each word, those of the best tree and gold ones, in their order."""
    cdef int h, m, i, j, count, at = 0, row = n + 1
    cdef double value, best
    cdef int32_t *kept
    for m in range(1, n + 1):
        p.first[m] = at
        kept = p.kept + at
        count = 0
        best = 0.0
        for h in range(n + 1):
            if h != m:
                best = max(best, p.marginals[h * row + m])
        for h in range(n + 1):
            value = p.marginals[h * row + m]
            if h == m or value < least * best:
                continue
            i = count if count < limit else limit - 1
            if count == limit and not value > p.marginals[kept[i] * row + m]:
                continue
            while i > 0 and value > p.marginals[kept[i - 1] * row + m]:
                kept[i] = kept[i - 1]
                i -= 1
            kept[i] = h
            if count < limit:
                count += 1
        for j in range(2):
            if j == 1 and gold == NULL:
                continue
            h = gold[m] if j else p.tree[m]
            for i in range(count):
                if kept[i] == h:
                    break
            else:
                kept[count] = h
                count += 1
        for i in range(1, count):  # in ascending order
            h = kept[i]
            j = i
            while j > 0 and kept[j - 1] > h:
                kept[j] = kept[j - 1]
                j -= 1
            kept[j] = h
        at += count
    p.first[n + 1] = at


cdef void release_pruning(Pruning *p) noexcept nogil:
    free(p.table_memory.data)
    free(p.word_memory.data)
    memset(p, 0, sizeof(Pruning))
