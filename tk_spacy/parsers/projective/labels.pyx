"""Labels of the arcs of trees whose heads are known: a linear classifier, arc by arc.

Features are the sampling parser's of the arc, and ours of what stands around it in the tree: the
head's head, siblings and modifiers, and the labels that were given before, those of the head and of
the nearer sibling.  So words are labelled from the root down, and from the head outwards.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

from tk_spacy.features.columns cimport CPOS, FIRST_MORPH, LEMMA, POS
from tk_spacy.features.hashing cimport mix
from tk_spacy.features.templates cimport (
    Sink, Words, id_sink, key3, key4, most_features, put, value_at, words_of,
)
from tk_spacy.parallel.stopping cimport Listener, await_others, look, task_done
from tk_spacy.parsers.projective.arcs cimport nearer_siblings
from tk_spacy.parsers.sampling.search.lattice cimport ensure
from tk_spacy.parsers.sampling.search.templates cimport MOST_EXTRA, arc_templates

from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.parsers.projective.checks import check_owned_trees
from tk_spacy.parsers.sampling.search.checks import check_corpus, check_morph_end
from tk_spacy.utils.array_checks import checked, checked_range

cdef enum:
    TAG = 0                  # column beyond the FEATS attributes, see sampling.search.words.EXTRA


cdef class Labeller:
    """Weights by which arcs are labelled.

    weights: float32[2 ** bits + n_labels], for each feature a row of all labels, rows overlapping.
    places: uint8[n_labels], whether each label may stand under the root (1), elsewhere (2), or both
        (3); any may in trees that are given.
    morph_end: columns of the field arrays up to the last FEATS attribute.
    Raises TypeError or ValueError for other arrays.
    """

    cdef Labels model
    cdef object _arrays

    def __init__(self, weights, places, *, int morph_end):
        at = checked("places", places, np.uint8, None)
        of_labels = checked("weights", weights, np.float32, None)
        size = len(of_labels) - len(at)
        if size < 2 or size & (size - 1):
            raise ValueError(f"weights of labels hash to {size}, expected a power of two")
        for bit, name in ((1, "under the root"), (2, "elsewhere")):
            if not (at & bit).any():
                raise ValueError(f"places allow no label {name}")
        check_morph_end(morph_end)
        cdef const float[::1] w = of_labels
        cdef const uint8_t[::1] p = at
        self._arrays = (of_labels, at)
        self.model.weights, self.model.places = &w[0], &p[0]
        self.model.mask, self.model.n_labels = size - 1, <int>len(at)
        self.model.morph_end = morph_end


cdef int look_around(Surroundings *at, int n, const int32_t *heads) noexcept nogil:
    """What stands around each word of a tree: heads int32[n + 1].

    Returns -1 without memory, NO_TREE where some words are not below the root.
    """
    cdef int32_t *cells = <int32_t *>ensure(&at.memory, 8 * <size_t>(n + 2) * sizeof(int32_t))
    cdef int m, h, i, side, done = 0, count = 0, row = n + 2
    cdef int32_t *last
    if cells == NULL:
        return -1
    at.heads = heads
    at.nearer, at.farther = cells, cells + row
    at.first_child, at.last_child = cells + 2 * row, cells + 3 * row
    at.n_left, at.n_right = cells + 4 * row, cells + 5 * row
    at.order, last = cells + 6 * row, cells + 7 * row
    nearer_siblings(n, heads, last, at.nearer)
    for m in range(n + 1):
        at.farther[m] = at.first_child[m] = at.last_child[m] = n + 1
        at.n_left[m] = at.n_right[m] = 0
    for m in range(1, n + 1):
        h = heads[m]
        if at.nearer[m] <= n:
            at.farther[at.nearer[m]] = m
        if m < h:
            at.n_left[h] += 1
        else:
            at.n_right[h] += 1
        if at.first_child[h] > n:
            at.first_child[h] = m
        at.last_child[h] = m
        if h == 0:
            at.order[count] = m
            count += 1
    # Level by level: the modifiers of each word on the left and on the right, nearest first.
    while done < count:
        h = at.order[done]
        done += 1
        for side in range(2):
            i = nearest(at, n, h, side)
            while i <= n:
                at.order[count] = i
                count += 1
                i = at.farther[i]
    return 0 if count == n else NO_TREE


cdef int nearest(const Surroundings *at, int n, int h, int side) noexcept nogil:
    """The nearest modifier of a word on a side, n + 1 for none."""
    cdef int m
    if side == 0:
        m = at.first_child[h] if at.n_left[h] else n + 1
    else:
        m = at.last_child[h] if at.n_right[h] else n + 1
    while m <= n and at.nearer[m] <= n:
        m = at.nearer[m]
    return m


cdef inline uint64_t fewer(int count) noexcept nogil:
    return count if count < 3 else 3


cdef int label_ids(
    const Words *x, const Labels *model, const Surroundings *at, const int32_t *labels, int m,
    uint32_t *ids
) noexcept nogil:
    """The features of the arc into a word; their number.

    labels: int32[n + 1], of the words before it in `order`.
    """
    cdef int h = at.heads[m], none = x.n + 1, i
    cdef int g = at.heads[h] if h else none
    cdef int s = at.nearer[m], t = at.farther[m], a = at.first_child[m], z = at.last_child[m]
    cdef uint64_t dir = m > h, hp = value_at(x, h, POS), mp = value_at(x, m, POS)
    cdef uint64_t hl = value_at(x, h, LEMMA), ml = value_at(x, m, LEMMA)
    cdef uint64_t mt = value_at(x, m, x.morph_end + TAG), gp = value_at(x, g, POS)
    cdef uint64_t hc = value_at(x, h, CPOS), mc = value_at(x, m, CPOS)
    cdef uint64_t sp = value_at(x, s, POS), ap = value_at(x, a, POS), zp = value_at(x, z, POS)
    cdef uint64_t of_head = labels[h] + 1 if h else 0
    cdef uint64_t of_sibling = labels[s] + 1 if s <= x.n else 0
    cdef uint64_t number = 4 * fewer(at.n_left[m]) + fewer(at.n_right[m])
    cdef Sink sink = id_sink(ids, model.mask)
    sink.rows = True
    arc_templates(&sink, x, h, m)
    # The labels given before.
    put(&sink, key4(400, of_head, hp, mp, dir))
    put(&sink, key3(401, of_head, mt, dir))
    put(&sink, key3(402, of_head, ml, dir))
    put(&sink, key4(403, of_sibling, hp, mp, dir))
    put(&sink, key3(404, of_sibling, mt, dir))
    put(&sink, key3(405, of_sibling, hl, dir))
    put(&sink, mix(key4(406, of_sibling, sp, hp, mp), dir))
    put(&sink, mix(key4(407, of_sibling, of_head, hc, mc), dir))
    # Siblings and the head's head.
    put(&sink, mix(key4(410, sp, hp, mp, value_at(x, t, POS)), dir))
    put(&sink, mix(key4(411, value_at(x, s, LEMMA), hc, mc, 0), dir))
    put(&sink, key4(412, value_at(x, t, POS), hp, mp, dir))
    put(&sink, key4(413, gp, hp, mp, 2 * (h > g) + dir))
    put(&sink, mix(key4(414, value_at(x, g, LEMMA), hc, mc, 0), dir))
    put(&sink, key4(415, hp, mp, 4 * fewer(at.n_left[h]) + fewer(at.n_right[h]), dir))
    # Modifiers of the word: case marks, determiners, conjunctions.
    put(&sink, key4(420, ap, zp, mp, hp))
    put(&sink, key3(421, value_at(x, a, LEMMA), mp, hp))
    put(&sink, key3(422, value_at(x, z, LEMMA), mp, hp))
    put(&sink, key4(423, value_at(x, a, LEMMA), mt, hc, dir))
    put(&sink, key4(424, value_at(x, a, LEMMA), mc, hl, dir))
    put(&sink, key4(425, value_at(x, z, LEMMA), mc, hl, dir))
    put(&sink, key4(426, number, mp, hp, dir))
    put(&sink, key3(427, number, mt, dir))
    put(&sink, key3(428, number, ml, dir))
    put(&sink, key4(429, ap, mt, hp, dir))
    put(&sink, key4(430, zp, mt, hp, dir))
    # The word's FEATS attributes beside its head's.
    for i in range(FIRST_MORPH, min(x.morph_end, FIRST_MORPH + 16)):
        if value_at(x, m, i):
            put(&sink, mix(key4(440, i, value_at(x, m, i), hl, mc), dir))
            put(&sink, mix(key4(441, i, value_at(x, m, i), value_at(x, a, LEMMA), mc), dir))
    return sink.count


cdef void score_labels(
    const Labels *model, const uint32_t *ids, int count, float *cells
) noexcept nogil:
    """The score of each label into cells [n_labels]."""
    cdef int i, c
    cdef const float *row
    for c in range(model.n_labels):
        cells[c] = 0.0
    for i in range(count):
        row = model.weights + ids[i]
        for c in range(model.n_labels):
            cells[c] += row[c]


cdef int best_label(const Labels *model, const float *cells, int head) noexcept nogil:
    """The best label that may stand there; the first one of equals."""
    cdef int c, best = -1, place = ELSEWHERE if head else UNDER_ROOT
    for c in range(model.n_labels):
        if model.places[c] & place and (best < 0 or cells[c] > cells[best]):
            best = c
    return best


# Batches


cdef struct Workspace:
    Surroundings around
    int32_t *labels          # [n + 1]
    uint32_t *ids
    float *cells
    Buffer label_memory, id_memory, cell_memory


def label_trees(
    Labeller labeller not None, fields, starts, lengths, owners, trees, given=None, *,
    n_threads=None,
):
    """The labels of trees, or scores of labels that are given.

    fields, starts, lengths, owners, trees: as in `decoder.score_trees`; each must be a tree.
    given: int32[cells], label ids, -1 where unknown.
    Returns (labels, scores): int32[cells], -1 beside the words; float64[trees], by how much the
    given labels, word by word, score less than the best ones that may stand there: 0 where none
    are given, NaN where one is unknown.
    """
    fields, starts, lengths = check_corpus(fields, starts, lengths, labeller.model.morph_end)
    owners, trees, first_cells = check_owned_trees(lengths, owners, trees)
    cdef bint has_given = given is not None
    known = np.zeros(1, dtype=np.int32)
    if has_given:
        known = checked("given", given, np.int32, int(first_cells.max()))
        checked_range("given", known, -1, labeller.model.n_labels - 1)
        known = np.append(known, 0).astype(np.int32)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    cdef const int32_t[::1] own = owners
    cdef const int64_t[::1] at = first_cells
    cdef const int32_t[::1] heads = trees
    cdef const int32_t[::1] of_trees = known
    labels_array = np.full(len(trees) + 1, -1, dtype=np.int32)
    scores_array = np.zeros(int(owners[len(starts)]) + 1)
    status_array = np.zeros(len(starts), dtype=np.int32)
    cdef int32_t[::1] labels = labels_array
    cdef double[::1] scores = scores_array
    cdef int32_t[::1] status = status_array
    cdef int threads = effective_n_threads(n_threads), i, n = <int>first.shape[0]
    cdef Workspace *spaces = <Workspace *>calloc(threads, sizeof(Workspace))
    if spaces == NULL:
        raise MemoryError("no memory for labels")
    cdef Listener listener = Listener(n)
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        if not look(&listener.watch):
            status[i] = label_at(
                &spaces[threadid()], &labeller.model, words_of(
                    &words[first[i], 0], words.shape[1], rows[i], labeller.model.morph_end
                ), &heads[0] + at[i], &of_trees[0] + at[i] if has_given else NULL,
                own[i + 1] - own[i], &labels[0] + at[i], &scores[own[i]],
            )
        task_done(&listener.watch)
    for i in range(threads):
        release(&spaces[i])
    free(spaces)
    listener.check()
    _check_status(status_array)
    return labels_array[: first_cells.max()], scores_array[: owners[len(starts)]]


def _check_status(status):
    if (status == NO_TREE).any():
        raise ValueError("heads are no trees: they lead some words in a circle")
    if status.any():
        raise MemoryError("no memory for labels")


cdef void release(Workspace *space) noexcept nogil:
    free(space.around.memory.data)
    free(space.label_memory.data)
    free(space.id_memory.data)
    free(space.cell_memory.data)


cdef int label_at(
    Workspace *space, const Labels *model, Words x, const int32_t *heads, const int32_t *given,
    int count, int32_t *labels, double *scores,
) noexcept nogil:
    cdef int i, state, row = x.n + 1
    space.ids = <uint32_t *>ensure(
        &space.id_memory, (
            most_features(model.morph_end - FIRST_MORPH) + MOST_EXTRA + MOST_CONTEXT
        ) * sizeof(uint32_t)
    )
    space.cells = <float *>ensure(&space.cell_memory, model.n_labels * sizeof(float))
    if space.ids == NULL or space.cells == NULL:
        return -1
    for i in range(count):
        state = look_around(&space.around, x.n, heads + i * row)
        if state < 0:
            return state
        label_tree(
            space, model, &x, given + i * row if given != NULL else NULL, labels + i * row,
            &scores[i],
        )
    return 0


cdef void label_tree(
    Workspace *space, const Labels *model, const Words *x, const int32_t *given, int32_t *labels,
    double *score,
) noexcept nogil:
    cdef const Surroundings *at = &space.around
    cdef int i, m, count, best
    cdef double less = 0.0
    for i in range(x.n):
        m = at.order[i]
        count = label_ids(x, model, at, given if given != NULL else labels, m, space.ids)
        score_labels(model, space.ids, count, space.cells)
        best = best_label(model, space.cells, at.heads[m])
        labels[m] = best
        if given != NULL:
            if given[m] < 0:
                less = NAN
            else:
                # One that may not stand there can score more than the best that may.
                less += min(<double>space.cells[given[m]] - space.cells[best], 0.0)
    score[0] = less
