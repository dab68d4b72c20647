"""Templates that only the sampling parser has: of the pruner, and over further values of words.

A whole tag is UPOS, XPOS and all FEATS as one value: the treebank's finest class of a word.
"""

from libc.stdint cimport int32_t, uint64_t

from tk_spacy.features.columns cimport (
    CPOS, FORM, G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, LEMMA, M, POS, S, T, WIDTH,
)
from tk_spacy.features.hashing cimport mix
from tk_spacy.features.templates cimport (
    MAX_BETWEEN, Sink, Words, binned, emit, is_new, key2, key3, key4, part_features, put,
    value_at,
)

cdef enum:
    ARC = 0              # part type
    # Columns beyond the FEATS attributes, see words.EXTRA.
    TAG = 0
    PREFIX = 1
    SUFFIX2 = 2
    SUFFIX3 = 3
    SHAPE = 4
    CLASS = 5
    N_EXTRA = 6          # and behind those, what a user names


cdef void arc_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil:
    """All features of an arc, whatever its label."""
    cdef int32_t part[WIDTH]
    cdef uint64_t where = binned(m - h), dir = m > h
    cdef uint64_t ht = value_at(x, h, x.morph_end + TAG), mt = value_at(x, m, x.morph_end + TAG)
    cdef uint64_t hp = value_at(x, h, POS), mp = value_at(x, m, POS)
    cdef uint64_t hl = value_at(x, h, LEMMA), ml = value_at(x, m, LEMMA)
    cdef uint64_t hc = value_at(x, h, CPOS), mc = value_at(x, m, CPOS)
    cdef uint64_t between, edges, trail
    cdef int counts[5]
    cdef int b, first, last, kind
    counts[0] = counts[1] = counts[2] = counts[3] = counts[4] = 0
    part[G] = part[T] = part[S] = -1
    part[LABEL_H] = part[LABEL_T] = part[LABEL_S] = part[LABEL_M] = 0
    part[H] = h
    part[M] = m
    part_features(sink, x, ARC, part)
    emit(sink, key3(200, ht, mt, where))
    emit(sink, key3(201, ht, mt, dir))
    emit(sink, key3(202, ht, mp, where))
    emit(sink, key3(203, hp, mt, where))
    emit(sink, key3(204, ht, ml, dir))
    emit(sink, key3(205, hl, mt, dir))
    emit(sink, key3(206, hl, mp, where))
    emit(sink, key3(207, hp, ml, where))
    emit(sink, key4(208, ht, mt, value_at(x, m - 1, POS), where))
    emit(sink, key4(209, ht, mt, value_at(x, m + 1, POS), where))
    emit(sink, key4(210, ht, mt, value_at(x, h + 1, POS), dir))
    emit(sink, key4(211, ht, mt, value_at(x, h - 1, POS), dir))
    emit(sink, key4(212, hp, mt, value_at(x, m - 1, x.morph_end + TAG), dir))
    emit(sink, key4(213, hp, mt, value_at(x, m + 1, x.morph_end + TAG), dir))
    emit(sink, key4(214, hc, mc, value_at(x, m - 1, LEMMA), dir))
    emit(sink, key4(215, hc, mc, value_at(x, m + 1, LEMMA), dir))
    emit(sink, key4(216, hc, mc, value_at(x, h - 1, LEMMA), dir))
    emit(sink, key4(217, hc, mc, value_at(x, h + 1, LEMMA), dir))
    # Affixes and shapes, for words that training hardly knows.
    emit(sink, key4(220, hp, value_at(x, m, x.morph_end + SUFFIX3), mp, dir))
    emit(sink, key4(221, hp, value_at(x, h, x.morph_end + SUFFIX3), mp, dir))
    emit(sink, key4(222, hp, value_at(x, m, x.morph_end + SUFFIX2), mp, where))
    emit(sink, key4(223, hp, value_at(x, h, x.morph_end + SUFFIX2), mp, where))
    emit(sink, key4(224, hp, value_at(x, m, x.morph_end + PREFIX), mp, dir))
    emit(sink, key4(225, hp, value_at(x, h, x.morph_end + PREFIX), mp, dir))
    emit(sink, key4(226, hp, value_at(x, m, x.morph_end + SHAPE), mp, where))
    emit(
        sink,
        mix(
            key4(
                227, value_at(x, h, x.morph_end + SUFFIX3), hc,
                value_at(x, m, x.morph_end + SUFFIX3), mc,
            ),
            dir,
        ),
    )
    # How many words that part a sentence stand between, and where in the sentence the arc is.
    first, last = (h, m) if h < m else (m, h)
    for b in range(first + 1, last):
        kind = x.fields[b * x.n_fields + x.morph_end + CLASS]
        if counts[kind] < 3:
            counts[kind] += 1
    between = (counts[1] * 4 + counts[2]) * 4 + counts[3] + counts[4]
    emit(sink, key4(230, hc, mc, 1000 + counts[1], where))
    emit(sink, key4(231, hc, mc, 2000 + counts[2], where))
    emit(sink, key4(232, hc, mc, 3000 + counts[3] + counts[4], where))
    emit(sink, key4(233, hp, mp, between, dir))
    edges = 8 * (m == 1) + 4 * (m == x.n) + 2 * (h == 1) + (h == x.n)
    emit(sink, key4(234, hc, mc, edges, dir))
    emit(sink, key4(235, mp, value_at(x, x.n, FORM), edges, where if h else 0))
    # Every tag between neighbours that are near.
    if last - first <= 4:
        trail = 0
        for b in range(first + 1, last):
            trail = mix(trail, value_at(x, b, POS))
        emit(sink, key4(236, hp, mp, trail, dir))
    named_templates(sink, x, h, m)


cdef void named_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil:
    """Features of an arc for each property of words that a user names, where the words have it."""
    cdef int first = x.morph_end + N_EXTRA, j
    cdef uint64_t where = binned(m - h), dir = m > h, a, b
    cdef uint64_t hp = value_at(x, h, POS), mp = value_at(x, m, POS)
    cdef uint64_t hc = value_at(x, h, CPOS), mc = value_at(x, m, CPOS)
    for j in range(min(<int>x.n_fields - first, MOST_NAMED)):
        a, b = value_at(x, h, first + j), value_at(x, m, first + j)
        if b:
            emit(sink, mix(key4(240, j, b, hp, mp), dir))
            emit(sink, key4(241, j, b, mp, where))
            emit(sink, key4(242, j, b, value_at(x, h, LEMMA), dir))
        if a:
            emit(sink, mix(key4(243, j, a, hp, mp), dir))
            emit(sink, key4(244, j, a, hp, where))
        if a and b:
            emit(sink, key4(245, j, a, b, dir))
            emit(sink, mix(mix(key4(246, j, a, b, hc), mc), dir))


cdef void crossing_templates(Sink *sink, const Words *x, int h, int m, int label) noexcept nogil:
    """What an arc that crosses another one contributes, once for each that it crosses."""
    cdef uint64_t hp = value_at(x, h, POS), mp = value_at(x, m, POS), name = label
    put(sink, key2(250, 0, 0))
    put(sink, key2(251, name, 0))
    put(sink, key2(252, hp, mp))
    put(sink, key3(253, name, hp, mp))
    put(sink, key2(254, value_at(x, m, LEMMA), 0))
    put(sink, key2(255, value_at(x, h, LEMMA), 0))
    put(sink, key2(256, binned(m - h), 0))
    put(sink, key2(257, h == 0, 0))


cdef void pruner_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil:
    """Few features of an arc: the pruner looks at every pair of words."""
    cdef int b, first, last, tag, kind, n_seen = 0
    cdef int counts[5]
    cdef uint64_t where = binned(m - h), dir = m > h, near
    cdef uint64_t ht = value_at(x, h, x.morph_end + TAG), mt = value_at(x, m, x.morph_end + TAG)
    cdef uint64_t hp = value_at(x, h, POS), mp = value_at(x, m, POS)
    cdef uint64_t hl = value_at(x, h, LEMMA), ml = value_at(x, m, LEMMA)
    cdef uint64_t hpl = value_at(x, h - 1, POS), hpr = value_at(x, h + 1, POS)
    cdef uint64_t mpl = value_at(x, m - 1, POS), mpr = value_at(x, m + 1, POS)
    cdef int32_t seen[MAX_BETWEEN]
    counts[0] = counts[1] = counts[2] = counts[3] = counts[4] = 0
    put(sink, key3(300, hp, mp, where))
    put(sink, key3(301, hp, mp, dir))
    put(sink, key2(302, hp, where))
    put(sink, key2(303, mp, where))
    put(sink, key2(304, hl, dir))
    put(sink, key2(305, ml, where))
    put(sink, key3(306, ht, mp, where))
    put(sink, key3(307, hp, mt, where))
    put(sink, key3(308, ht, mt, dir))
    put(sink, key3(309, hl, mp, dir))
    put(sink, key3(310, hp, ml, dir))
    put(sink, key3(311, hl, ml, dir))
    put(sink, mix(key4(312, hp, hpr, mp, mpl), where))
    put(sink, mix(key4(313, hp, hpl, mp, mpl), where))
    put(sink, mix(key4(314, hp, hpr, mp, mpr), where))
    put(sink, mix(key4(315, hp, hpl, mp, mpr), where))
    put(sink, key4(316, hp, mp, mpl, where))
    put(sink, key4(317, hp, mp, mpr, where))
    put(sink, key4(318, hp, hpl, mp, where))
    put(sink, key4(319, hp, hpr, mp, where))
    # Distinct coarse tags between head and modifier.
    first, last = (h, m) if h < m else (m, h)
    for b in range(first + 1, last):
        tag = value_at(x, b, CPOS)
        if is_new(seen, &n_seen, tag):
            put(sink, key4(320, hp, tag, mp, dir))
        kind = x.fields[b * x.n_fields + x.morph_end + CLASS]
        if counts[kind] < 3:
            counts[kind] += 1
    # What parts a sentence between them, and where in the sentence the arc is.
    near = (counts[1] * 4 + counts[2]) * 8 + counts[3] + counts[4]
    put(sink, key4(321, hp, mp, near, dir))
    put(sink, key3(322, mp, near, dir))
    put(sink, key3(323, hp, near, dir))
    near = 8 * (m == 1) + 4 * (m == x.n) + 2 * (h == 1) + (h == x.n)
    put(sink, key4(324, hp, mp, near, dir))
    put(sink, key3(325, hl, mp, where))
    put(sink, key3(326, hp, ml, where))
    put(sink, key3(327, ht, mt, where))
