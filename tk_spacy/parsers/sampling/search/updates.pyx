"""Passive-aggressive updates of hashed weights, by the features in which two trees differ.

Source: Crammer et al. (JMLR 2006) for the step, McDonald, Crammer and Pereira (ACL 2005) for its
use in parsing; the weights are averaged over all steps, kept as a sum beside them.
"""

from libc.math cimport INFINITY, exp, fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t

import numpy as np

from tk_spacy.features.columns cimport (
    FIRST_MORPH, G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, M, S, T, WIDTH,
)
from tk_spacy.features.templates cimport (
    Sink, Words, id_sink, most_features, part_features, words_of,
)
from tk_spacy.parallel.stopping cimport Listener, is_stopped
from tk_spacy.parsers.sampling.search.crossing cimport crosses
from tk_spacy.parsers.sampling.search.templates cimport (
    MOST_EXTRA, MOST_PRUNER, arc_templates, crossing_templates, pruner_templates,
)
from tk_spacy.utils.index_checks cimport check_values

from tk_spacy.parsers.sampling.search.checks import check_columns, check_morph_end

cdef enum:
    BOUNDARY_LABEL = 1
    N_KINDS = 5

cdef double LEAST_SLOPE = 1e-3   # smaller steps are not worth their time


cdef class Learner:
    """Hashed weights that learn.

    size: cells of hashed features, a power of two.  n_cells: of the row of an arc feature; 1 for
    the pruner, whose arcs have no labels.  order: of the largest parts.  C: bound of a step.
    morph_end: columns of the field arrays up to the last FEATS attribute.  crossing: whether
    crossing arcs have features, where order is more than 1.
    """

    cdef readonly object weights
    cdef readonly int64_t steps
    cdef readonly int64_t updates
    cdef object sum_array, delta_array, touched_array, square_array
    cdef float[::1] w, delta, squares
    cdef double[::1] sums
    cdef uint32_t[::1] touched
    cdef Py_ssize_t n_touched
    cdef int n_cells, order, morph_end
    cdef bint crossing
    cdef size_t mask
    cdef double C

    def __init__(
        self, *, size, int n_cells, int order, double C, int morph_end, bint crossing=True
    ):
        if size < 2 or size & (size - 1):
            raise ValueError(f"size is {size}, expected a power of two")
        check_morph_end(morph_end)
        self.weights = np.zeros(size + n_cells, dtype=np.float32)
        self.sum_array = np.zeros(size + n_cells)
        self.delta_array = np.zeros(size + n_cells, dtype=np.float32)
        self.touched_array = np.empty(1 << 14, dtype=np.uint32)
        self.w = self.weights
        self.sums = self.sum_array
        self.delta = self.delta_array
        self.touched = self.touched_array
        self.n_cells = n_cells
        self.order = order
        self.crossing = crossing and order > 1
        self.morph_end = morph_end
        self.mask = size - 1
        self.C = C

    def averaged(self):
        """The mean of the weights as they stood after each step: float32[size + n_cells]."""
        if self.steps == 0:
            return self.weights.copy()
        return (self.weights - self.sum_array / self.steps).astype(np.float32)

    def update(
        self, const int32_t[:, ::1] fields not None, const int32_t[::1] gold_heads not None,
        const int32_t[::1] gold_labels not None, const int32_t[::1] heads not None,
        const int32_t[::1] labels not None, double loss, double kernel_margin=0.0,
        double kernel_norm=0.0,
    ):
        """One step for one sentence: the gold tree must outscore another by its loss.

        fields: int32[n + 2, F].  The trees: int32[n + 2] each, words from 1 on.
        kernel_margin: by how much the gold tree outscores the other in the kernel, which takes the
        same step; kernel_norm: squared norm of their difference there.
        Returns the step's size, 0 where nothing changed.  Raises ValueError for arrays that do not
        fit each other.
        """
        self.check_fields(fields)
        self.check_tree(fields.shape[0], gold_heads, gold_labels)
        self.check_tree(fields.shape[0], heads, labels)
        cdef Words x = words_of(
            &fields[0, 0], fields.shape[1], <int>fields.shape[0], self.morph_end
        )
        cdef int n = x.n
        self.steps += 1
        cdef int32_t[:, ::1] of_gold = np.empty((n + 2, WIDTH), dtype=np.int32)
        cdef int32_t[:, ::1] of_other = np.empty((n + 2, WIDTH), dtype=np.int32)
        roles(n, &gold_heads[0], &gold_labels[0], of_gold)
        roles(n, &heads[0], &labels[0], of_other)
        self.n_touched = 0
        cdef int m
        for m in range(1, n + 1):
            self.reserve()
            self.differ(&x, &of_gold[m, 0], &of_other[m, 0])
        if self.crossing:
            self.crossings(&x, &gold_heads[0], &gold_labels[0], 1.0)
            self.crossings(&x, &heads[0], &labels[0], -1.0)
        return self.apply(loss, kernel_margin, kernel_norm)

    cdef int check_fields(self, const int32_t[:, ::1] fields) except -1:
        """Raises ValueError for fields that are no sentence's."""
        if fields.shape[0] < 3:
            raise ValueError(f"fields have {fields.shape[0]} rows, expected 3 at least")
        check_columns(fields.shape[1], self.morph_end)
        return 0

    cdef int check_tree(
        self, Py_ssize_t n_rows, const int32_t[::1] heads, const int32_t[::1] labels
    ) except -1:
        """Raises ValueError unless heads lie in 0..n and labels, if any, in 0..n_cells - 1."""
        cdef Py_ssize_t n = n_rows - 2
        if heads.shape[0] < n + 1 or (labels is not None and labels.shape[0] < n + 1):
            raise ValueError(f"a tree has {heads.shape[0]} rows, expected {n_rows}")
        check_values(heads[1 : n + 1], 0, <int32_t>n, "heads")
        if labels is not None:
            check_values(labels[1 : n + 1], 0, self.n_cells - 1, "labels")
        return 0

    def select_heads(
        self, const int32_t[:, ::1] fields not None, const int32_t[::1] gold_heads not None,
        double rate,
    ):
        """One step of the pruner for each word of a sentence: the gold head among all words.

        The chance of a head is its share of the exponentials of all heads' scores, and the step is
        AdaGrad's (Duchi, Hazan and Singer, JMLR 2011) along the gradient of the gold head's log
        chance.  So the scores of all heads mean something, not only the best one's.
        """
        self.check_fields(fields)
        self.check_tree(fields.shape[0], gold_heads, None)
        cdef Words x = words_of(
            &fields[0, 0], fields.shape[1], <int>fields.shape[0], self.morph_end
        )
        cdef Sink sink = id_sink(NULL, self.mask)
        cdef int n = x.n, h, m, i
        cdef uint32_t *ids
        cdef double highest, total, slope, change
        if self.square_array is None:
            self.square_array = np.zeros(len(self.weights), dtype=np.float32)
            self.squares = self.square_array
        self.steps += 1
        cdef uint32_t[:, ::1] features = np.empty((n + 1, MOST_PRUNER), dtype=np.uint32)
        cdef int32_t[::1] counts = np.zeros(n + 1, dtype=np.int32)
        cdef double[::1] scores = np.zeros(n + 1)
        cdef Listener listener = Listener()
        with nogil:
            for m in range(1, n + 1):
                if is_stopped(&listener.watch):
                    break
                highest = -INFINITY
                for h in range(n + 1):
                    if h == m:
                        continue
                    sink.ids = &features[h, 0]
                    sink.count = 0
                    pruner_templates(&sink, &x, h, m)
                    counts[h] = sink.count
                    scores[h] = 0.0
                    for i in range(sink.count):
                        scores[h] += self.w[features[h, i]]
                    highest = max(highest, scores[h])
                total = 0.0
                for h in range(n + 1):
                    if h != m:
                        scores[h] = exp(scores[h] - highest)
                        total += scores[h]
                for h in range(n + 1):
                    if h == m:
                        continue
                    slope = (h == gold_heads[m]) - scores[h] / total
                    if fabs(slope) < LEAST_SLOPE:
                        continue
                    ids = &features[h, 0]
                    for i in range(counts[h]):
                        self.squares[ids[i]] += <float>(slope * slope)
                        change = rate * slope / sqrt(self.squares[ids[i]])
                        self.w[ids[i]] += <float>change
                        self.sums[ids[i]] += (self.steps - 1) * change
        listener.check()

    cdef int reserve(self) except -1:
        """Room for the features of one word in two trees."""
        cdef Py_ssize_t need = self.n_touched + 4 * N_KINDS * (
            most_features(self.morph_end - FIRST_MORPH) + MOST_EXTRA
        )
        if need > self.touched.shape[0]:
            larger = np.empty(2 * need, dtype=np.uint32)
            larger[: self.n_touched] = self.touched_array[: self.n_touched]
            self.touched_array = larger
            self.touched = larger
        return 0

    cdef void differ(self, const Words *x, const int32_t *gold, const int32_t *other) noexcept:
        cdef int32_t part[WIDTH]
        cdef int32_t rival[WIDTH]
        cdef int kind
        cdef bint here, there
        if gold[H] != other[H] or gold[LABEL_M] != other[LABEL_M]:
            self.arc(x, gold, 1.0)
            self.arc(x, other, -1.0)
        if self.order < 2:
            return
        for kind in range(1, 5 if self.order > 2 else 3):
            here = part_of(gold, kind, x.n, part)
            there = part_of(other, kind, x.n, rival)
            if here and there and same(part, rival):
                continue
            if here:
                self.count(x, kind, part, 1.0)
            if there:
                self.count(x, kind, rival, -1.0)

    cdef void arc(self, const Words *x, const int32_t *row, float sign) noexcept:
        cdef int i, label = row[LABEL_M]
        cdef uint32_t *ids = &self.touched[self.n_touched]
        cdef Sink sink = id_sink(ids, self.mask)
        if self.n_cells == 1:
            pruner_templates(&sink, x, row[H], row[M])
        else:
            sink.rows = True
            arc_templates(&sink, x, row[H], row[M])
        for i in range(sink.count):
            self.delta[ids[i]] += sign
            if self.n_cells > 1:
                ids[sink.count + i] = ids[i] + label
                self.delta[ids[i] + label] += sign
        self.n_touched += sink.count * (2 if self.n_cells > 1 else 1)

    cdef void count(self, const Words *x, int kind, const int32_t *part, float sign) noexcept:
        cdef int i
        cdef uint32_t *ids = &self.touched[self.n_touched]
        cdef Sink sink = id_sink(ids, self.mask)
        part_features(&sink, x, kind, part)
        for i in range(sink.count):
            self.delta[ids[i]] += sign
        self.n_touched += sink.count

    cdef int crossings(
        self, const Words *x, const int32_t *heads, const int32_t *labels, float sign
    ) except -1:
        """The features of crossing arcs, as often as each crosses another."""
        cdef Sink sink
        cdef uint32_t *ids
        cdef int m, other, number, i
        for m in range(1, x.n + 1):
            number = 0
            for other in range(1, x.n + 1):
                number += crosses(
                    min(heads[other], other), max(heads[other], other),
                    min(heads[m], m), max(heads[m], m),
                )
            if number == 0:
                continue
            self.reserve()
            ids = &self.touched[self.n_touched]
            sink = id_sink(ids, self.mask)
            crossing_templates(&sink, x, heads[m], m, labels[m])
            for i in range(sink.count):
                self.delta[ids[i]] += sign * number
            self.n_touched += sink.count
        return 0

    cdef double apply(self, double loss, double margin, double norm):
        """The step along what was counted, which is set back to 0."""
        cdef Py_ssize_t i, kept = 0
        cdef uint32_t index
        cdef double value, change, tau
        values_array = np.empty(self.n_touched, dtype=np.float32)
        cdef float[::1] values = values_array
        for i in range(self.n_touched):
            index = self.touched[i]
            value = self.delta[index]
            if value == 0.0:  # counted already, or both trees have it
                continue
            self.delta[index] = 0.0
            norm += value * value
            margin += value * self.w[index]
            self.touched[kept] = index
            values[kept] = <float>value
            kept += 1
        if norm == 0.0 or margin >= loss:
            return 0.0
        tau = min(self.C, (loss - margin) / norm)
        for i in range(kept):
            index = self.touched[i]
            change = tau * values[i]
            self.w[index] += <float>change
            self.sums[index] += (self.steps - 1) * change
        self.updates += 1
        return tau


cdef void roles(
    int n, const int32_t *heads, const int32_t *labels, int32_t[:, ::1] out
) noexcept nogil:
    """The words around each word of a tree and their labels: a part row that has every role."""
    cdef int i, m, h, s, t, side
    # Column T serves as the nearest modifier met so far, on the side that is scanned.
    for side in range(2):
        for m in range(n + 1):
            out[m, T] = n + 1
        for i in range(1, n + 1):
            m = i if side == 0 else n + 1 - i
            h = heads[m]
            if (h < m) == (side == 0):
                out[m, S] = out[h, T]
                out[h, T] = m
    for m in range(1, n + 1):
        h = heads[m]
        s = out[m, S]
        t = out[s, S] if s <= n else n + 1
        out[m, M] = m
        out[m, H] = h
        out[m, G] = heads[h] if h > 0 else -1
        out[m, T] = t
        out[m, LABEL_M] = labels[m]
        out[m, LABEL_H] = labels[h] if h > 0 else 0
        out[m, LABEL_S] = labels[s] if s <= n else BOUNDARY_LABEL
        out[m, LABEL_T] = labels[t] if t <= n else BOUNDARY_LABEL


cdef bint part_of(const int32_t *row, int kind, int n, int32_t *part) noexcept nogil:
    """The part of a kind (an index into PART_TYPES, 1 to 4) of which a word is the modifier.

    False where it has none.  As parts.extract_parts finds them.
    """
    cdef bint has_g = kind == 2 or kind == 3, has_s = kind != 2, has_t = kind == 4
    if has_g and row[G] < 0 or has_t and row[S] > n:
        return False
    part[H] = row[H]
    part[M] = row[M]
    part[LABEL_M] = row[LABEL_M]
    part[G] = row[G] if has_g else -1
    part[LABEL_H] = row[LABEL_H] if has_g else 0
    part[S] = row[S] if has_s else -1
    part[LABEL_S] = row[LABEL_S] if has_s else 0
    part[T] = row[T] if has_t else -1
    part[LABEL_T] = row[LABEL_T] if has_t else 0
    return True


cdef bint same(const int32_t *a, const int32_t *b) noexcept nogil:
    cdef int i
    for i in range(WIDTH):
        if a[i] != b[i]:
            return False
    return True
