"""Templates that only the sampling parser has: of the pruner, and over whole tags.

A whole tag is UPOS, XPOS and all FEATS as one value: the treebank's finest class of a word.
"""

from libc.stdint cimport int32_t, uint64_t

from tk_spacy.features cimport (
    CPOS,
    FIRST_MORPH,
    FORM,
    LEMMA,
    POS,
    Sink,
    Words,
    binned,
    emit,
    key2,
    key3,
    key4,
    mix,
    part_features,
    put,
    value_at,
)
from tk_spacy.parts cimport G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, M, S, T, WIDTH

cdef enum:
    ARC = 0              # part type
    MAX_BETWEEN = 24     # distinct tags between head and modifier that are looked at


cdef void arc_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil:
    """All features of an arc, whatever its label."""
    cdef int32_t part[WIDTH]
    cdef uint64_t where = binned(m - h), dir = m > h
    cdef uint64_t ht = value_at(x, h, x.morph_end), mt = value_at(x, m, x.morph_end)
    cdef uint64_t hp = value_at(x, h, POS), mp = value_at(x, m, POS)
    cdef uint64_t hl = value_at(x, h, LEMMA), ml = value_at(x, m, LEMMA)
    cdef uint64_t hc = value_at(x, h, CPOS), mc = value_at(x, m, CPOS)
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
    emit(sink, key4(212, hp, mt, value_at(x, m - 1, x.morph_end), dir))
    emit(sink, key4(213, hp, mt, value_at(x, m + 1, x.morph_end), dir))
    emit(sink, key4(214, hc, mc, value_at(x, m - 1, LEMMA), dir))
    emit(sink, key4(215, hc, mc, value_at(x, m + 1, LEMMA), dir))
    emit(sink, key4(216, hc, mc, value_at(x, h - 1, LEMMA), dir))
    emit(sink, key4(217, hc, mc, value_at(x, h + 1, LEMMA), dir))


cdef void pruner_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil:
    """Few features of an arc: the pruner looks at every pair of words."""
    cdef int b, j, first, last, tag, n_seen = 0
    cdef uint64_t where = binned(m - h), dir = m > h, near = 0
    cdef uint64_t ht = value_at(x, h, x.morph_end), mt = value_at(x, m, x.morph_end)
    cdef uint64_t hp = value_at(x, h, POS), mp = value_at(x, m, POS)
    cdef uint64_t hl = value_at(x, h, LEMMA), ml = value_at(x, m, LEMMA)
    cdef uint64_t hpl = value_at(x, h - 1, POS), hpr = value_at(x, h + 1, POS)
    cdef uint64_t mpl = value_at(x, m - 1, POS), mpr = value_at(x, m + 1, POS)
    cdef int32_t seen[MAX_BETWEEN]
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
        for j in range(n_seen):
            if seen[j] == tag:
                break
        else:
            if n_seen < MAX_BETWEEN:
                seen[n_seen] = tag
                n_seen += 1
                put(sink, key4(320, hp, tag, mp, dir))
