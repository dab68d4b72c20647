"""Manual features: hashed templates over first- to fourth-order parts.

Source: the templates follow Lei et al. (ACL 2014), which the paper uses for Phi_g, and through them
McDonald et al. (2005), Carreras (2007), Koo and Collins (2010) and Martins et al. (2013).  Ours
differs in that every template exists with and without DEPREL and that the vector is hashed: a
feature is a 64-bit mix of its template's number and values, cut to `bits` bits.

A template is a line in `arc_features`, `triple_features`, `quad_features` or another function
below.  Scores are sums of looked-up weights, so a part is extracted and scored in one pass, and
nothing is stored.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.features.columns cimport (
    CPOS, FIRST_MORPH, FORM, G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, LEMMA, M, POS, S, T,
    WIDTH,
)
from tk_spacy.features.hashing cimport mix
from tk_spacy.utils.index_checks cimport check_power, check_values
from tk_spacy.utils.prefetch cimport tk_prefetch
from tk_spacy.features.part_types import GRAND_TRI_SIBLING as OF_FOURTH_ORDER
from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parallel.threads import effective_n_threads

cdef enum:
    BLOCK = 32           # parts that one thread scores at a time

PARTS_AT_A_TIME = 1 << 16
"""Parts that are scored between two looks for signals, a small part of a second."""

FRAME = "frame"
"""A head and all its modifiers: no part type of slots, but features have it (parts.extract_frames).

Source: the rules and heads of Charniak and Johnson (ACL 2005), for dependencies.
"""

SPAN = "span"
"""A word with all that is below it (parts.extract_spans): the edges of what a parse groups."""

USUAL_FEATURE_TYPES = (*PART_TYPES, FRAME, SPAN)
"""Part types whose templates are used where nothing else is said."""

FEATURE_TYPES = (*USUAL_FEATURE_TYPES, OF_FOURTH_ORDER.name)
"""Part types that have templates."""


cdef void arc_features(Sink *sink, const Words *x, const int32_t *part) noexcept nogil:
    cdef int h = part[H], m = part[M], i, j, b, first, last, n_seen = 0
    cdef uint64_t where = binned(m - h), morph_h, morph_m
    cdef uint64_t hf = value_at(x, h, FORM), mf = value_at(x, m, FORM)
    cdef uint64_t hl = value_at(x, h, LEMMA), ml = value_at(x, m, LEMMA)
    cdef uint64_t hp = value_at(x, h, POS), mp = value_at(x, m, POS)
    cdef uint64_t hc = value_at(x, h, CPOS), mc = value_at(x, m, CPOS)
    cdef uint64_t hpl = value_at(x, h - 1, POS), hpr = value_at(x, h + 1, POS)
    cdef uint64_t mpl = value_at(x, m - 1, POS), mpr = value_at(x, m + 1, POS)
    cdef uint64_t dir = m > h, spot
    cdef int32_t seen[MAX_BETWEEN]
    cdef int32_t tag
    sink.label = mix(<uint64_t>part[LABEL_M] + 77, 0)
    labelled(sink, key2(0, where, 0))
    for i in range(2):
        # Every template with direction and distance, then with direction alone.
        spot = where if i == 0 else 100 + dir
        emit(sink, key3(1, hf, hp, spot))
        emit(sink, key3(2, hl, hc, spot))
        emit(sink, key2(3, hp, spot))
        emit(sink, key3(4, mf, mp, spot))
        emit(sink, key3(5, ml, mc, spot))
        emit(sink, key2(6, mp, spot))
        emit(sink, key3(7, hp, mp, spot))
        emit(sink, key3(8, hc, mc, spot))
        emit(sink, key3(9, hl, ml, spot))
        emit(sink, key4(10, hf, mf, mp, spot))
        emit(sink, key4(11, hl, hp, mp, spot))
        emit(sink, key4(12, hp, ml, mp, spot))
        emit(sink, key4(13, hl, hc, mc, spot))
        emit(sink, key4(14, hc, ml, mc, spot))
        emit(sink, key4(15, hf, hp, mp, spot))
        emit(sink, key4(16, hp, mf, mp, spot))
        emit(sink, mix(key4(17, hp, hpr, mp, mpl), spot))
        emit(sink, mix(key4(18, hp, hpl, mp, mpl), spot))
        emit(sink, mix(key4(19, hp, hpr, mp, mpr), spot))
        emit(sink, mix(key4(20, hp, hpl, mp, mpr), spot))
        emit(sink, key4(21, hp, hpl, mp, spot))
        emit(sink, key4(22, hp, hpr, mp, spot))
        emit(sink, key4(23, hp, mp, mpl, spot))
        emit(sink, key4(24, hp, mp, mpr, spot))
        emit(sink, mix(key4(25, hpl, hp, hpr, mp), spot))
        emit(sink, mix(key4(26, hp, mpl, mp, mpr), spot))
    # Distinct coarse tags between head and modifier.
    first, last = (h, m) if h < m else (m, h)
    for b in range(first + 1, last):
        tag = value_at(x, b, CPOS)
        if is_new(seen, &n_seen, tag):
            emit(sink, key4(30, hp, tag, mp, dir))
            emit(sink, key4(31, hc, tag, mc, dir))
    # Morphology: single values, and every pair of one value of the head and one of the modifier.
    for j in range(FIRST_MORPH, x.morph_end):
        morph_m = value_at(x, m, j)
        if morph_m:
            emit(sink, mix(key4(32, j, morph_m, hp, mp), dir))
            emit(sink, mix(key4(33, j, morph_m, hc, mc), where))
    for i in range(FIRST_MORPH, x.morph_end):
        morph_h = value_at(x, h, i)
        if not morph_h:
            continue
        emit(sink, mix(key4(34, i, morph_h, hp, mp), dir))
        for j in range(FIRST_MORPH, x.morph_end):
            morph_m = value_at(x, m, j)
            if morph_m:
                emit(sink, mix(key4(35, i, morph_h, j, morph_m), dir))
                emit(sink, mix(mix(key4(36, i, morph_h, j, morph_m), hc), mc))


cdef void triple_features(
    Sink *sink, const Words *x, int template, int a, int b, int c, uint64_t more
) noexcept nogil:
    """Templates over three words: siblings (h, s, m) or a chain (g, h, m)."""
    cdef uint64_t ap = value_at(x, a, POS), bp = value_at(x, b, POS), cp = value_at(x, c, POS)
    cdef uint64_t ac = value_at(x, a, CPOS), bc = value_at(x, b, CPOS), cc = value_at(x, c, CPOS)
    cdef uint64_t al = value_at(x, a, LEMMA), bl = value_at(x, b, LEMMA), cl = value_at(x, c, LEMMA)
    cdef uint64_t bm, cm
    cdef int i
    emit(sink, key4(template, ap, bp, cp, more))
    emit(sink, key4(template + 1, ac, bc, cc, more))
    emit(sink, key3(template + 2, ap, cp, more))
    emit(sink, key3(template + 3, bp, cp, more))
    emit(sink, mix(key4(template + 4, al, bp, cp, more), 1))
    emit(sink, mix(key4(template + 5, ap, bl, cp, more), 1))
    emit(sink, mix(key4(template + 6, ap, bp, cl, more), 1))
    emit(sink, mix(key4(template + 7, al, bc, cc, more), 2))
    emit(sink, mix(key4(template + 8, ac, bl, cc, more), 2))
    emit(sink, mix(key4(template + 9, ac, bc, cl, more), 2))
    emit(sink, key3(template + 10, al, cl, more))
    emit(sink, key3(template + 11, bl, cl, more))
    emit(sink, key3(template + 12, bl, cc, more))
    emit(sink, key3(template + 13, bc, cl, more))
    emit(sink, mix(key4(template + 14, ap, bp, cp, value_at(x, c - 1, POS)), more))
    emit(sink, mix(key4(template + 15, ap, bp, cp, value_at(x, c + 1, POS)), more))
    emit(sink, mix(key4(template + 16, ap, bp, cp, value_at(x, b + 1, POS)), more))
    for i in range(FIRST_MORPH, x.morph_end):
        bm = value_at(x, b, i)
        cm = value_at(x, c, i)
        if bm and cm:
            emit(sink, mix(key4(template + 17, i, bm, cm, ac), more))
            emit(sink, mix(mix(key4(template + 18, i, bm == cm, ac, bc), cc), more))


cdef void quad_features(
    Sink *sink, const Words *x, int template, int a, int b, int c, int d, uint64_t more
) noexcept nogil:
    """Templates over four words: grand-siblings (g, h, s, m) or three siblings (h, t, s, m)."""
    cdef uint64_t ap = value_at(x, a, POS), bp = value_at(x, b, POS)
    cdef uint64_t cp = value_at(x, c, POS), dp = value_at(x, d, POS)
    cdef uint64_t ac = value_at(x, a, CPOS), bc = value_at(x, b, CPOS)
    cdef uint64_t cc = value_at(x, c, CPOS), dc = value_at(x, d, CPOS)
    emit(sink, mix(key4(template, ap, bp, cp, dp), more))
    emit(sink, mix(key4(template + 1, ac, bc, cc, dc), more))
    emit(sink, mix(key4(template + 2, value_at(x, a, LEMMA), bc, cc, dc), more))
    emit(sink, mix(key4(template + 3, ac, value_at(x, b, LEMMA), cc, dc), more))
    emit(sink, mix(key4(template + 4, ac, bc, value_at(x, c, LEMMA), dc), more))
    emit(sink, mix(key4(template + 5, ac, bc, cc, value_at(x, d, LEMMA)), more))
    emit(sink, key4(template + 6, bc, cc, dc, more))
    emit(sink, key4(template + 7, ac, bc, dc, more))


cdef void quint_features(
    Sink *sink, const Words *x, int template, const int32_t *part, uint64_t more
) noexcept nogil:
    """Templates over all five words of a part: grand-tri-siblings (g, h, t, s, m)."""
    cdef uint64_t tags[5]
    cdef uint64_t coarse[5]
    cdef uint64_t value
    cdef int i, j
    for i in range(5):
        tags[i] = value_at(x, part[i], POS)
        coarse[i] = value_at(x, part[i], CPOS)
    emit(sink, mix(mix(key4(template, tags[0], tags[1], tags[2], tags[3]), tags[4]), more))
    value = key4(template + 1, coarse[0], coarse[1], coarse[2], coarse[3])
    emit(sink, mix(mix(value, coarse[4]), more))
    for i in range(5):
        # One word's lemma among the tags of the others.
        value = key2(template + 2, i, value_at(x, part[i], LEMMA))
        for j in range(5):
            if j != i:
                value = mix(value, coarse[j])
        emit(sink, mix(value, more))
    emit(sink, mix(key4(template + 3, coarse[0], coarse[2], coarse[3], coarse[4]), more))
    emit(sink, mix(key4(template + 4, coarse[0], coarse[1], coarse[2], coarse[4]), more))


cdef void frame_features(Sink *sink, const Words *x, const int32_t *frame) noexcept nogil:
    """Templates over a head and all its modifiers; for the columns see parts.extract_frames."""
    cdef uint64_t hp = value_at(x, frame[H], POS), hc = value_at(x, frame[H], CPOS)
    cdef uint64_t hl = value_at(x, frame[H], LEMMA)
    cdef uint64_t left = frame[G], right = frame[T], tags = frame[S], bag = frame[M]
    cdef uint64_t twice = frame[LABEL_S], numbers = frame[LABEL_T], both = frame[LABEL_M]
    sink.label = mix(<uint64_t>frame[LABEL_H] + 77, 5)
    emit(sink, key3(190, hp, both, 0))
    emit(sink, key3(191, hl, both, 0))
    emit(sink, key3(192, hp, left, 1))
    emit(sink, key3(192, hp, right, 2))
    emit(sink, key3(193, hl, left, 1))
    emit(sink, key3(193, hl, right, 2))
    emit(sink, key3(194, hc, bag, 0))
    emit(sink, key3(195, hl, bag, 0))
    emit(sink, key3(196, hp, tags, 0))
    emit(sink, key3(197, hp, numbers, 0))
    if twice:
        emit(sink, key3(198, hc, twice, 0))
        emit(sink, key2(199, twice, 0))


cdef void span_features(Sink *sink, const Words *x, const int32_t *span) noexcept nogil:
    """Templates over a word with all that is below it; for the columns see parts.extract_spans."""
    cdef int first = span[G], last = span[M]
    cdef uint64_t hp = value_at(x, span[H], POS), hc = value_at(x, span[H], CPOS)
    cdef uint64_t fp = value_at(x, first, POS), lp = value_at(x, last, POS)
    cdef uint64_t before = value_at(x, first - 1, POS), after = value_at(x, last + 1, POS)
    cdef uint64_t length = binned(last - first + 1), gap = span[LABEL_H] < last - first + 1
    sink.label = mix(<uint64_t>span[LABEL_M] + 77, 6)
    emit(sink, key3(210, hp, length, 0))
    emit(sink, key3(211, hp, fp, lp))
    emit(sink, key3(212, hp, before, fp))
    emit(sink, key3(213, hp, lp, after))
    emit(sink, key3(214, hp, before, after))
    emit(sink, key4(215, hc, before, fp, 2 * (first == 1) + (last == x.n)))
    emit(sink, key3(216, hp, value_at(x, first, LEMMA), 0))
    emit(sink, key3(217, hp, value_at(x, last, LEMMA), 0))
    emit(sink, key3(218, hp, value_at(x, first - 1, LEMMA), 0))
    emit(sink, key3(219, hp, value_at(x, last + 1, LEMMA), 0))
    emit(sink, key3(220, value_at(x, span[H], LEMMA), fp, lp))
    emit(sink, key3(221, hp, gap, 0))
    emit(sink, mix(key4(222, hc, before, fp, lp), after))


cdef void part_features(Sink *sink, const Words *x, int kind, const int32_t *part) noexcept nogil:
    """All features of one part into the sink."""
    cdef int g = part[G], h = part[H], t = part[T], s = part[S], m = part[M]
    cdef uint64_t lm = <uint64_t>part[LABEL_M] + 1
    if kind == ARC:
        arc_features(sink, x, part)
    elif kind == SIBLING:
        # The label here is the pair of labels; one more pass has the modifier's alone.
        sink.label = key2(101, lm, <uint64_t>part[LABEL_S])
        triple_features(sink, x, 110, h, s, m, m > h)
        put(sink, mix(key3(102, value_at(x, h, POS), lm, <uint64_t>part[LABEL_S]), m > h))
        put(sink, mix(key3(103, value_at(x, h, LEMMA), lm, <uint64_t>part[LABEL_S]), m > h))
    elif kind == GRANDPARENT:
        sink.label = key2(104, lm, <uint64_t>part[LABEL_H])
        triple_features(sink, x, 140, g, h, m, 2 * (h > g) + (m > h))
        put(sink, mix(key3(105, value_at(x, h, POS), lm, <uint64_t>part[LABEL_H]), m > h))
        put(sink, mix(key3(106, value_at(x, h, LEMMA), lm, <uint64_t>part[LABEL_H]), m > h))
    elif kind == GRAND_SIBLING:
        sink.label = key3(107, lm, <uint64_t>part[LABEL_S], <uint64_t>part[LABEL_H])
        quad_features(sink, x, 170, g, h, s, m, 2 * (h > g) + (m > h))
    elif kind == FRAMES:
        frame_features(sink, x, part)
    elif kind == SPANS:
        span_features(sink, x, part)
    elif kind == GRAND_TRI_SIBLING:
        sink.label = key4(
            109, lm, <uint64_t>part[LABEL_S], <uint64_t>part[LABEL_T], <uint64_t>part[LABEL_H]
        )
        quint_features(sink, x, 230, part, 2 * (h > g) + (m > h))
    else:
        sink.label = key3(108, lm, <uint64_t>part[LABEL_S], <uint64_t>part[LABEL_T])
        quad_features(sink, x, 180, h, t, s, m, m > h)


cdef int most_features(Py_ssize_t n_morph) noexcept nogil:
    """An upper bound on the features of one part, by the number of FEATS attributes."""
    return 2 * (60 + 2 * MAX_BETWEEN + 3 * n_morph + 2 * n_morph * n_morph)


def add_scores(fields, rows, type_name, weights, out, *, n_threads=None):
    """Adds to each out[i][j] the sum of the weights of the features of part j of sentence i.

    fields: for each sentence int32[n + 2, F].  rows: for each sentence int32[p, 9], parts of the
    type named.  weights: float64[2 ** bits].  out: for each sentence float64[p].
    """
    kind = type_code(type_name)
    if not len(fields) == len(rows) == len(out):
        raise ValueError(
            f"{len(fields)} field arrays, {len(rows)} of rows and {len(out)} of scores, expected "
            "as many"
        )
    if not len(fields):
        return
    for own, item in zip(rows, out):
        if item.shape != (len(own),):
            raise ValueError(f"out must be float64[{len(own)}], got shape {item.shape}")
    words = checked("fields", np.concatenate(fields), np.int32, None, None)
    together = checked("rows", np.concatenate(rows), np.int32, None, WIDTH)
    weights = checked("weights", weights, np.float64, None)
    if not len(together):
        return
    check_power(len(weights), "weights")
    scores = np.zeros(len(together))
    lengths = np.array([len(item) for item in fields], dtype=np.int32)
    owners = np.repeat(np.arange(len(rows), dtype=np.int32), [len(item) for item in rows])
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    _check_rows(words.shape[1], lengths, together, owners, kind)
    for first in range(0, len(together), PARTS_AT_A_TIME):
        raise_if_stopped()
        some = slice(first, first + PARTS_AT_A_TIME)
        _add_scores(
            words, starts, lengths, together[some], owners[some], kind, weights, scores[some],
            effective_n_threads(n_threads),
        )
    done = 0
    for item in out:
        item += scores[done : done + len(item)]
        done += len(item)


cdef int _check_rows(
    Py_ssize_t n_fields, const int32_t[::1] lengths, const int32_t[:, ::1] rows,
    const int32_t[::1] owners, int kind,
) except -1:
    """Raises ValueError for parts that the templates of a kind cannot read.

    lengths: rows of each sentence's fields.  owners: the sentence of each part, ascending.
    """
    cdef Py_ssize_t i
    # A frame's other columns are hashes.
    cdef int c, first = H if kind == FRAMES else 0, stop = H + 1 if kind == FRAMES else M + 1
    cdef int32_t last
    cdef uint32_t outside
    if not 0 <= kind <= GRAND_TRI_SIBLING:
        raise ValueError(f"kind is {kind}, expected 0 to {GRAND_TRI_SIBLING}")
    if n_fields <= CPOS:
        raise ValueError(f"fields have {n_fields} columns, expected {FIRST_MORPH} at least")
    for i in range(lengths.shape[0]):
        if lengths[i] < 2:
            raise ValueError(f"fields have {lengths[i]} rows, expected 2 more than there are words")
    if rows.shape[1] != WIDTH:
        raise ValueError(f"rows have {rows.shape[1]} columns, expected {WIDTH}")
    for i in range(rows.shape[0]):
        # Without a branch for each column: whether a word, counted from -1, is none of them.
        last = lengths[owners[i]] - 1
        outside = 0
        for c in range(first, stop):
            outside |= <uint32_t>rows[i, c] + 1 > <uint32_t>last + 1
        if not outside:
            continue
        for c in range(first, stop):
            if rows[i, c] < -1 or rows[i, c] > last:
                raise ValueError(f"rows[{i}, {c}] names word {rows[i, c]}, expected -1 to {last}")
    return 0


def add_sentence_scores(
    const int32_t[:, ::1] fields not None, const int32_t[:, ::1] rows not None, int kind,
    const double[::1] weights not None, double[::1] out not None,
):
    """As add_scores, for one sentence on one thread, without the overhead of many.

    kind: the type_code of the parts.
    """
    cdef int32_t start = 0, length = <int32_t>fields.shape[0]
    cdef const int32_t[::1] starts = <const int32_t[:1]>&start
    cdef const int32_t[::1] lengths = <const int32_t[:1]>&length
    cdef const int32_t[::1] owners = np.zeros(rows.shape[0], dtype=np.int32)
    check_power(weights.shape[0], "weights")
    _check_rows(fields.shape[1], lengths, rows, owners, kind)
    if out.shape[0] != rows.shape[0]:
        raise ValueError(f"out has {out.shape[0]} scores, expected {rows.shape[0]}")
    with nogil:
        _score_block(
            fields, starts, lengths, rows, owners, kind, weights, 0, rows.shape[0], out
        )


cdef int _check_sentence(
    const int32_t[:, ::1] fields, const int32_t[:, ::1] rows, int kind
) except -1:
    """_check_rows for the parts of one sentence."""
    cdef int32_t length = <int32_t>fields.shape[0]
    cdef const int32_t[::1] lengths = <const int32_t[:1]>&length
    owners = np.zeros(rows.shape[0], dtype=np.int32)
    return _check_rows(fields.shape[1], lengths, rows, owners, kind)


cdef void _add_scores(
    const int32_t[:, ::1] fields,    # IN, of all sentences
    const int32_t[::1] starts,       # IN, first row of each sentence
    const int32_t[::1] lengths,      # IN, rows of each sentence
    const int32_t[:, ::1] rows,      # IN
    const int32_t[::1] owners,       # IN, sentence of each part
    int kind,
    const double[::1] weights,       # IN
    double[::1] out,                 # IN, OUT
    int n_threads,
) noexcept:
    cdef Py_ssize_t n_rows = rows.shape[0], block
    for block in prange(
        (n_rows + BLOCK - 1) // BLOCK, nogil=True, schedule="dynamic", num_threads=n_threads
    ):
        _score_block(
            fields, starts, lengths, rows, owners, kind, weights, block * BLOCK,
            min(block * BLOCK + BLOCK, n_rows), out,
        )


cdef void _score_block(
    const int32_t[:, ::1] fields, const int32_t[::1] starts, const int32_t[::1] lengths,
    const int32_t[:, ::1] rows, const int32_t[::1] owners, int kind, const double[::1] weights,
    Py_ssize_t first, Py_ssize_t stop, double[::1] out,
) noexcept nogil:
    """The scores of some parts: while the features of one are found, memory fetches the weights of
    the one before."""
    cdef Py_ssize_t i, most = most_features(fields.shape[1] - FIRST_MORPH)
    cdef int j, count = 0
    cdef uint64_t mask = weights.shape[0] - 1
    cdef const int32_t *own
    cdef Words x
    cdef Sink sink
    cdef uint32_t *ids = <uint32_t *>malloc(2 * most * sizeof(uint32_t))
    cdef uint32_t *before = NULL
    cdef uint32_t *now
    if ids == NULL:  # slower, without room
        for i in range(first, stop):
            out[i] += _score(
                &fields[starts[owners[i]], 0], lengths[owners[i]], fields.shape[1], &rows[i, 0],
                kind, &weights[0], mask,
            )
        return
    for i in range(first, stop):
        own = &fields[starts[owners[i]], 0]
        x = words_of(own, fields.shape[1], lengths[owners[i]], <int>fields.shape[1])
        now = ids + most if before == ids else ids
        sink = id_sink(now, mask)
        part_features(&sink, &x, kind, &rows[i, 0])
        for j in range(sink.count):
            tk_prefetch(&weights[now[j]])
        if before != NULL:
            out[i - 1] += sum_of(before, count, &weights[0])
        before, count = now, sink.count
    if before != NULL:
        out[stop - 1] += sum_of(before, count, &weights[0])
    free(ids)


cdef inline double sum_of(const uint32_t *ids, int count, const double *weights) noexcept nogil:
    """The sum of the weights of the features listed."""
    cdef int i
    cdef double total = 0.0
    for i in range(count):
        total += weights[ids[i]]
    return total


cdef double _score(
    const int32_t *fields, int32_t n_rows, Py_ssize_t n_fields, const int32_t *part, int kind,
    const double *weights, uint64_t mask,
) noexcept nogil:
    cdef Words x = words_of(fields, n_fields, n_rows, <int>n_fields)
    cdef Sink sink = id_sink(NULL, mask)
    sink.weights = weights
    part_features(&sink, &x, kind, part)
    return sink.score


def add_feature_counts(
    const int32_t[:, ::1] fields not None, const int32_t[:, ::1] rows not None,
    const int32_t[::1] parts not None, const int32_t[::1] signs not None, int kind,
    double[::1] counts not None,
):
    """Adds the sign of each part named to the counts of its features.

    fields: int32[n + 2, F].  rows: int32[p, 9].  parts, signs: int32[e], rows and +1 or -1.
    kind: the type_code of the parts.  counts: float64[2 ** bits].
    Returns uint32[_], the features touched, which may repeat.
    """
    cdef Py_ssize_t i
    cdef int j, start
    check_power(counts.shape[0], "counts")
    _check_sentence(fields, rows, kind)
    check_values(parts, 0, <int32_t>rows.shape[0] - 1, "parts")
    if signs.shape[0] != parts.shape[0]:
        raise ValueError(f"{signs.shape[0]} signs, expected {parts.shape[0]}")
    most = most_features(fields.shape[1] - FIRST_MORPH)
    touched = np.empty(parts.shape[0] * most + 1, dtype=np.uint32)
    cdef uint32_t[::1] buffer = touched
    cdef Words x = words_of(
        &fields[0, 0], fields.shape[1], <int>fields.shape[0], <int>fields.shape[1]
    )
    cdef Sink sink = id_sink(&buffer[0], counts.shape[0] - 1)
    for i in range(parts.shape[0]):
        start = sink.count
        part_features(&sink, &x, kind, &rows[parts[i], 0])
        for j in range(start, sink.count):
            counts[buffer[j]] += signs[i]
    return touched[: sink.count]


def type_code(type_name):
    """Index of a part type among FEATURE_TYPES, or ValueError."""
    try:
        return FEATURE_TYPES.index(type_name)
    except ValueError:
        raise ValueError(
            f"no templates for part type {type_name!r}, expected one of {list(FEATURE_TYPES)}"
        ) from None
