"""Learning of heads and labels: margin-infused relaxed updates (MIRA) of hashed weights.

Sources: McDonald, Crammer and Pereira (ACL 2005), "Online large-margin training of dependency
parsers": the gold tree must outscore each of the k best trees by the number of its wrong heads, by
the smallest change of the weights, which Hildreth's method finds.  Crammer et al. (JMLR 2006) for
the step of a single constraint, which labels take.  Weights are averaged over all steps, kept as a
sum beside them.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

import numpy as np

from tk_spacy.features.columns cimport FIRST_MORPH
from tk_spacy.features.templates cimport (
    GRAND_SIBLING, GRANDPARENT, SIBLING, TRI_SIBLING, Words, most_features, words_of,
)
from tk_spacy.parsers.projective.arcs cimport nearer_siblings
from tk_spacy.parsers.projective.labels cimport (
    MOST_CONTEXT, NO_TREE, Labels, Surroundings, best_label, label_ids, look_around, score_labels,
)
from tk_spacy.parsers.projective.scores cimport arc_ids, part_ids
from tk_spacy.parsers.sampling.search.templates cimport MOST_EXTRA
from tk_spacy.utils.index_checks cimport check_power, check_values

from tk_spacy.parsers.sampling.search.checks import check_columns, check_morph_end

cdef enum:
    N_PARTS = 5
    MOST_ROUNDS = 200

cdef double LEAST_CHANGE = 1e-4


cdef class Learner:
    """Hashed weights of parts that learn.

    size: of the weights, a power of two.  C: bound of a step for each tree, perhaps infinite.
    morph_end: columns of the field arrays up to the last FEATS attribute.
    """

    cdef readonly object weights
    cdef readonly int64_t steps
    cdef readonly int64_t updates
    cdef object sum_array, delta_array, touched_array, value_array
    cdef float[::1] w, delta, values
    cdef double[::1] sums
    cdef uint32_t[::1] touched
    cdef Py_ssize_t n_touched
    cdef uint64_t mask
    cdef int morph_end
    cdef double C

    def __init__(self, *, size, double C, int morph_end):
        check_power(size, "weights")
        check_morph_end(morph_end)
        self.weights = np.zeros(size, dtype=np.float32)
        self.sum_array = np.zeros(size)
        self.delta_array = np.zeros(size, dtype=np.float32)
        self.w, self.sums, self.delta = self.weights, self.sum_array, self.delta_array
        self.mask, self.C, self.morph_end = size - 1, C, morph_end
        self.make_room(1 << 14)

    def averaged(self):
        """The mean of the weights as they stood after each step: float32[size]."""
        if self.steps == 0:
            return self.weights.copy()
        return (self.weights - self.sum_array / self.steps).astype(np.float32)

    def learn(
        self, const int32_t[:, ::1] fields not None, const int32_t[::1] gold not None,
        const int32_t[:, ::1] trees not None,
    ):
        """One step for one sentence: the gold tree must outscore others by their wrong heads.

        fields: int32[n + 2, F].  gold: int32[n + 2], heads, from row 1 on.  trees: int32[n + 2, k].
        Returns whether anything changed.  Raises ValueError for arrays that do not fit each other.
        """
        cdef int n = <int>fields.shape[0] - 2, k = <int>trees.shape[1], j, m
        if n < 1 or gold.shape[0] != n + 2 or trees.shape[0] != n + 2:
            raise ValueError(
                f"{fields.shape[0]} rows of fields, {gold.shape[0]} of the gold tree and "
                f"{trees.shape[0]} of others, expected as many, and 3 at least"
            )
        check_columns(fields.shape[1], self.morph_end)
        check_values(gold[1 : n + 1], 0, n, "heads")
        cdef Words x = words_of(&fields[0, 0], fields.shape[1], n + 2, self.morph_end)
        cdef int32_t[::1] tree = np.zeros(n + 1, dtype=np.int32)
        cdef int32_t[::1] scratch = np.zeros(n + 2, dtype=np.int32)
        cdef int32_t[::1] near_gold = np.zeros(n + 2, dtype=np.int32)
        cdef int32_t[::1] near = np.zeros(n + 2, dtype=np.int32)
        starts_array = np.zeros(k + 1, dtype=np.int64)
        missing_array = np.zeros(k)
        cdef int64_t[::1] starts = starts_array
        cdef double[::1] missing = missing_array
        cdef int wrong, count = 0
        cdef double margin
        self.steps += 1
        self.n_touched = 0
        nearer_siblings(n, &gold[0], &scratch[0], &near_gold[0])
        for j in range(k):
            wrong = 0
            for m in range(1, n + 1):
                tree[m] = trees[m, j]
                wrong += tree[m] != gold[m]
            if wrong == 0:
                continue
            check_values(tree[1:], 0, n, "heads")
            nearer_siblings(n, &tree[0], &scratch[0], &near[0])
            for m in range(1, n + 1):
                self.reserve()
                self.differ(&x, m, &gold[0], &near_gold[0], &tree[0], &near[0])
            margin = self.settle(starts[count])
            if self.n_touched == starts[count]:
                continue
            missing[count] = wrong - margin
            count += 1
            starts[count] = self.n_touched
        return count > 0 and self.step(count, starts_array, missing_array)

    cdef int make_room(self, Py_ssize_t size) except -1:
        touched, values = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.float32)
        if self.n_touched:
            touched[: self.n_touched] = self.touched_array[: self.n_touched]
            values[: self.n_touched] = self.value_array[: self.n_touched]
        self.touched_array, self.value_array = touched, values
        self.touched, self.values = touched, values
        return 0

    cdef int reserve(self) except -1:
        """Room for the features of one word in two trees."""
        cdef Py_ssize_t need = self.n_touched + 2 * N_PARTS * (
            most_features(self.morph_end - FIRST_MORPH) + MOST_EXTRA
        )
        if need > self.touched.shape[0]:
            self.make_room(2 * need)
        return 0

    cdef void differ(
        self, const Words *x, int m, const int32_t *gold, const int32_t *near_gold,
        const int32_t *tree, const int32_t *near,
    ) noexcept nogil:
        """Count the parts of a word that are in one of two trees alone."""
        cdef int32_t a[N_PARTS]
        cdef int32_t b[N_PARTS]
        cdef int kind
        roles(x.n, m, gold, near_gold, a)
        roles(x.n, m, tree, near, b)
        for kind in range(N_PARTS):
            if same(kind, x.n, a, b):
                continue
            self.count(x, kind, m, a, 1.0)
            self.count(x, kind, m, b, -1.0)

    cdef void count(
        self, const Words *x, int kind, int m, const int32_t *role, float sign
    ) noexcept nogil:
        cdef uint32_t *ids = &self.touched[self.n_touched]
        cdef int i, count
        if not has_part(kind, x.n, role):
            return
        if kind == 0:
            count = arc_ids(x, self.mask, ids, role[1], m)
        else:
            count = part_ids(x, self.mask, ids, kind, role[0], role[1], role[2], role[3], m)
        for i in range(count):
            self.delta[ids[i]] += sign
        self.n_touched += count

    cdef double settle(self, Py_ssize_t start) noexcept nogil:
        """Keep what was counted from `start` on, each feature once; how it scores."""
        cdef Py_ssize_t i, kept = start
        cdef uint32_t index
        cdef double margin = 0.0
        for i in range(start, self.n_touched):
            index = self.touched[i]
            if self.delta[index] == 0.0:
                continue
            margin += <double>self.delta[index] * self.w[index]
            self.touched[kept] = index
            self.values[kept] = self.delta[index]
            self.delta[index] = 0.0
            kept += 1
        self.n_touched = kept
        return margin

    cdef bint step(self, int count, starts_array, missing_array) except -1:
        """The smallest change by which all margins are right.

        starts: where the features of each tree begin.  missing: what each margin lacks.
        """
        cdef const int64_t[::1] starts = starts_array
        cdef const double[::1] missing = missing_array
        products_array = np.zeros((count, count))
        shares_array = np.zeros(count)
        cdef double[:, ::1] products = products_array
        cdef double[::1] shares = shares_array
        cdef int a, b
        cdef Py_ssize_t i
        cdef double total
        cdef float change
        for a in range(count):
            for i in range(starts[a], starts[a + 1]):
                self.delta[self.touched[i]] = self.values[i]
            for b in range(a, count):
                total = 0.0
                for i in range(starts[b], starts[b + 1]):
                    total += <double>self.delta[self.touched[i]] * self.values[i]
                products[a, b] = products[b, a] = total
            for i in range(starts[a], starts[a + 1]):
                self.delta[self.touched[i]] = 0.0
        if not hildreth(count, &products[0, 0], &missing[0], self.C, &shares[0]):
            return False
        for a in range(count):
            if shares[a] == 0.0:
                continue
            for i in range(starts[a], starts[a + 1]):
                change = <float>(shares[a] * self.values[i])
                self.w[self.touched[i]] += change
                self.sums[self.touched[i]] += (self.steps - 1) * <double>change
        self.updates += 1
        return True


cdef bint hildreth(
    int count, const double *products, const double *missing, double C, double *shares
) noexcept nogil:
    """The share of each difference in the smallest step, [count]; False where it is none.

    products: [count, count], of the differences.  missing: [count], what their margins lack.
    """
    cdef int _turn, a, b
    cdef double lack, share, largest
    cdef bint any_step = False
    for _turn in range(MOST_ROUNDS):
        largest = 0.0
        for a in range(count):
            lack = missing[a]
            for b in range(count):
                lack -= products[a * count + b] * shares[b]
            share = min(max(shares[a] + lack / products[a * count + a], 0.0), C)
            largest = max(largest, fabs(share - shares[a]) * products[a * count + a])
            shares[a] = share
            any_step = any_step or share > 0
        if largest < LEAST_CHANGE:
            break
    return any_step


cdef void roles(
    int n, int m, const int32_t *heads, const int32_t *near, int32_t *role
) noexcept nogil:
    """The words g, h, t and s around a word: -1 and n + 1 where there are none."""
    role[1] = heads[m]
    role[0] = heads[role[1]] if role[1] else -1
    role[3] = near[m]
    role[2] = near[role[3]] if role[3] <= n else n + 1


cdef inline bint has_part(int kind, int n, const int32_t *role) noexcept nogil:
    if kind == GRANDPARENT or kind == GRAND_SIBLING:
        return role[0] >= 0
    return kind != TRI_SIBLING or role[3] <= n


cdef inline bint same(int kind, int n, const int32_t *a, const int32_t *b) noexcept nogil:
    """Whether a word has the same part of a kind in two trees, or none in both."""
    if a[1] != b[1]:
        return False
    if kind == SIBLING:
        return a[3] == b[3]
    if kind == GRANDPARENT:
        return a[0] == b[0]
    if kind == GRAND_SIBLING:
        return a[0] == b[0] and a[3] == b[3]
    return kind != TRI_SIBLING or a[3] == b[3] and a[2] == b[2]


cdef class LabelLearner:
    """Hashed weights of labels that learn.

    size: a power of two.  places: uint8[n_labels], see `labels.Labeller`.
    C: bound of a step.  morph_end: columns of the field arrays up to the last FEATS attribute.
    """

    cdef readonly object weights
    cdef readonly int64_t steps
    cdef readonly int64_t updates
    cdef object sum_array, _places
    cdef float[::1] w
    cdef double[::1] sums
    cdef uint32_t[::1] ids
    cdef float[::1] cells
    cdef Labels model
    cdef Surroundings around
    cdef double C

    def __init__(self, *, size, places, double C, int morph_end):
        check_power(size, "weights")
        check_morph_end(morph_end)
        n_labels = len(places)
        self.weights = np.zeros(size + n_labels, dtype=np.float32)
        self.sum_array = np.zeros(size + n_labels)
        self._places = np.ascontiguousarray(places, dtype=np.uint8)
        self.w, self.sums = self.weights, self.sum_array
        self.ids = np.empty(
            most_features(morph_end - FIRST_MORPH) + MOST_EXTRA + MOST_CONTEXT, dtype=np.uint32
        )
        self.cells = np.empty(n_labels, dtype=np.float32)
        cdef const uint8_t[::1] at = self._places
        self.model.weights, self.model.places = &self.w[0], &at[0]
        self.model.mask, self.model.n_labels = size - 1, <int>n_labels
        self.model.morph_end, self.C = morph_end, C

    def __dealloc__(self):
        free(self.around.memory.data)

    def averaged(self):
        """The mean of the weights as they stood after each step: float32[size + n_labels]."""
        if self.steps == 0:
            return self.weights.copy()
        return (self.weights - self.sum_array / self.steps).astype(np.float32)

    def learn(
        self, const int32_t[:, ::1] fields not None, const int32_t[::1] heads not None,
        const int32_t[::1] labels not None,
    ):
        """One step for each word of a sentence: its label must outscore all others by 1.

        fields: int32[n + 2, F].  heads, labels: int32[n + 2], the gold tree, from row 1 on.
        Raises ValueError for arrays that do not fit each other.
        """
        cdef int n = <int>fields.shape[0] - 2, i
        if n < 1 or heads.shape[0] != n + 2 or labels.shape[0] != n + 2:
            raise ValueError(
                f"{n + 2} rows of fields, {heads.shape[0]} of heads and {labels.shape[0]} of "
                "labels, expected as many, and 3 at least"
            )
        check_columns(fields.shape[1], self.model.morph_end)
        check_values(heads[1 : n + 1], 0, n, "heads")
        check_values(labels[1 : n + 1], 0, self.model.n_labels - 1, "labels")
        cdef Words x = words_of(&fields[0, 0], fields.shape[1], n + 2, self.model.morph_end)
        cdef int state = look_around(&self.around, n, &heads[0])
        if state == NO_TREE:
            raise ValueError(f"heads are {np.asarray(heads).tolist()}, expected a tree")
        if state < 0:
            raise MemoryError("no memory for labels")
        with nogil:
            for i in range(n):
                self.learn_word(&x, self.around.order[i], &labels[0])

    cdef void learn_word(self, const Words *x, int m, const int32_t *labels) noexcept nogil:
        cdef int count = label_ids(x, &self.model, &self.around, labels, m, &self.ids[0])
        cdef int gold = labels[m], rival, i
        cdef float *cells = &self.cells[0]
        cdef double lack, share
        self.steps += 1
        score_labels(&self.model, &self.ids[0], count, cells)
        lack = 1.0 - <double>cells[gold]
        cells[gold] = -INFINITY
        rival = best_label(&self.model, cells, self.around.heads[m])
        if rival < 0 or rival == gold:
            return
        lack += cells[rival]
        if lack <= 0:
            return
        share = min(self.C, lack / (2.0 * count))
        self.updates += 1
        for i in range(count):
            self.change(self.ids[i] + gold, share)
            self.change(self.ids[i] + rival, -share)

    cdef inline void change(self, uint32_t at, double step) noexcept nogil:
        self.w[at] += <float>step
        self.sums[at] += (self.steps - 1) * step
