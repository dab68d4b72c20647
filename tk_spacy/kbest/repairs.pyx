"""Repairs of candidates that break constraints: see `well_formed`, which says what they are."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

from tk_spacy.trees.violations cimport Rules, Tables, find_in_tree
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_table


cdef struct Arc:
    int32_t head
    int32_t label
    double share             # candidates that have it, or what one counts that none has


cdef struct Change:
    # What is better comes first: fewer violations, a larger share, an earlier word, a smaller head,
    # an earlier name.
    int64_t left
    double share
    Py_ssize_t word
    int32_t head
    int32_t rank
    int32_t label


cdef struct Problem:
    const int32_t *heads     # [k, n], the candidates
    const int32_t *labels
    Py_ssize_t k
    int n
    const uint8_t *relations
    const uint64_t *misfits
    const uint8_t *flags
    const Tables *rules
    uint64_t kinds           # of violations that count
    # The tree, from word 1 on, and room for its violations:
    int32_t *head            # [n + 1]
    int32_t *relation
    int32_t *subjects
    int32_t *objects
    uint64_t *children
    uint64_t *at             # [n]
    uint64_t *blamed         # [n]
    uint8_t *suspects        # [n], the words blamed before the change
    uint8_t *below           # [n + 1], the words below one, and itself
    Arc *arcs                # [k + 3n]


cdef int64_t count_violations(Problem *x) noexcept nogil:
    """How many violations of the kinds that count the tree has."""
    cdef int m
    cdef int64_t found = 0
    cdef uint64_t bits
    for m in range(x.n):
        x.at[m] = x.blamed[m] = 0
    find_in_tree(
        x.head, x.relation, x.subjects, x.objects, x.children, x.n, x.misfits, x.flags, x.rules,
        x.at, x.blamed,
    )
    for m in range(x.n):
        bits = x.at[m] & x.kinds
        while bits:
            bits &= bits - 1
            found += 1
    return found


cdef void take_tree(Problem *x, const int32_t *heads, const int32_t *labels) noexcept nogil:
    cdef int m
    for m in range(x.n):
        x.head[m + 1] = heads[m]
        x.relation[m + 1] = x.relations[labels[m]]


cdef Py_ssize_t add_arc(
    Arc *arcs, Py_ssize_t n, int32_t head, int32_t label, double share, bint is_more
) noexcept nogil:
    """An arc, or more of one that is there; returns how many there are."""
    cdef Py_ssize_t i
    for i in range(n):
        if arcs[i].head == head and arcs[i].label == label:
            if is_more:
                arcs[i].share += share
            return n
    arcs[n].head, arcs[n].label, arcs[n].share = head, label, share
    return n + 1


cdef Py_ssize_t other_arcs(
    Problem *x, const int32_t *heads, const int32_t *labels, Py_ssize_t word, double unseen
) noexcept nogil:
    """Arcs that the word might have: the candidates', and its label with other heads.

    The latter are its neighbours, and the words above its head and above these.
    """
    cdef Py_ssize_t j, n_arcs = 0
    cdef int start, at, _, way
    for j in range(x.k):
        n_arcs = add_arc(x.arcs, n_arcs, x.heads[j * x.n + word], x.labels[j * x.n + word], 1, True)
    for way in range(3):
        start = heads[word] if way == 0 else <int>word if way == 1 else <int>word + 2
        at = start if start <= x.n else 0
        for _ in range(x.n):
            if at <= 0:
                break
            n_arcs = add_arc(x.arcs, n_arcs, at, labels[word], unseen, False)
            at = heads[at - 1]
    return n_arcs


cdef void find_below(Problem *x, const int32_t *heads, Py_ssize_t word) noexcept nogil:
    cdef int m, at, _
    for m in range(x.n + 1):
        at = m
        for _ in range(x.n):
            if at <= 0 or at == word + 1:
                break
            at = heads[at - 1]
        x.below[m] = at == word + 1


cdef bint is_better(const Change *one, const Change *other) noexcept nogil:
    if one.left != other.left:
        return one.left < other.left
    if one.share != other.share:
        return one.share > other.share
    if one.word != other.word:
        return one.word < other.word
    if one.head != other.head:
        return one.head < other.head
    return one.rank < other.rank


cdef bint best_change(
    Problem *x, const int32_t *heads, const int32_t *labels, const int32_t *ranks, double unseen,
    Change *best,
) noexcept nogil:
    """The best change of one word's arc; False where there is none.  The tree is as it was then."""
    cdef Py_ssize_t word, i, n_arcs
    cdef bint found = False
    cdef Change change
    cdef const Arc *arc
    for word in range(x.n):
        x.suspects[word] = x.blamed[word] != 0 and heads[word] > 0
    for word in range(x.n):
        if not x.suspects[word]:
            continue
        n_arcs = other_arcs(x, heads, labels, word, unseen)
        find_below(x, heads, word)
        for i in range(n_arcs):
            arc = &x.arcs[i]
            if (
                arc.head == 0 or x.below[arc.head]
                or (arc.head == heads[word] and arc.label == labels[word])
            ):
                continue
            x.head[word + 1], x.relation[word + 1] = arc.head, x.relations[arc.label]
            change.left, change.share, change.word = count_violations(x), arc.share, word
            change.head, change.rank, change.label = arc.head, ranks[arc.label], arc.label
            if not found or is_better(&change, best):
                best[0], found = change, True
        x.head[word + 1], x.relation[word + 1] = heads[word], x.relations[labels[word]]
    return found


cdef class Repairing:
    """The candidates of a sentence, of which some may be repaired.

    heads, labels: int32[k, n], trees.  relations: uint8[l] of each label, see `find_violations`.
    misfits: uint64[n].  flags: uint8[n].  kinds: bits of the kinds of violations that count.
    Raises TypeError or ValueError for arrays of other kinds and shapes.
    """

    cdef Problem problem
    cdef object _arrays
    cdef void *_block
    cdef const int32_t[:, ::1] _heads
    cdef const int32_t[:, ::1] _labels

    def __cinit__(
        self, heads, labels, relations, misfits, flags, Rules rules not None, uint64_t kinds
    ):
        heads = checked("heads", heads, np.int32, None, None)
        labels = checked("labels", labels, np.int32, *heads.shape)
        relations = checked("relations", relations, np.uint8, None)
        misfits = checked("misfits", misfits, np.uint64, heads.shape[1])
        flags = checked("flags", flags, np.uint8, heads.shape[1])
        check_table(heads, 0, <int32_t>heads.shape[1], "heads")
        check_table(labels, 0, <int32_t>len(relations) - 1, "labels")
        if not heads.size:
            raise ValueError(f"there are no candidates in heads of shape {heads.shape}")
        cdef Problem *x = &self.problem
        cdef const uint8_t[::1] numbers = relations
        cdef const uint64_t[::1] of_tags = misfits
        cdef const uint8_t[::1] own_flags = flags
        self._heads, self._labels = heads, labels
        self._arrays = (relations, misfits, flags, rules)
        x.heads, x.labels = &self._heads[0, 0], &self._labels[0, 0]
        x.k, x.n = heads.shape[0], heads.shape[1]
        x.relations, x.misfits, x.flags = &numbers[0], &of_tags[0], &own_flags[0]
        x.rules, x.kinds = &rules.tables, kinds
        cdef Py_ssize_t n = x.n
        self._block = calloc(
            1, (x.k + 3 * n) * sizeof(Arc) + (3 * n + 1) * sizeof(uint64_t)
            + 4 * (n + 1) * sizeof(int32_t) + 2 * n + 1
        )
        if self._block == NULL:
            raise MemoryError(f"no memory to repair trees over {n} words")
        x.arcs = <Arc *>self._block
        x.children = <uint64_t *>(x.arcs + x.k + 3 * n)
        x.at = x.children + n + 1
        x.blamed = x.at + n
        x.head = <int32_t *>(x.blamed + n)
        x.relation = x.head + n + 1
        x.subjects = x.relation + n + 1
        x.objects = x.subjects + n + 1
        x.suspects = <uint8_t *>(x.objects + n + 1)
        x.below = x.suspects + n

    def __dealloc__(self):
        free(self._block)

    cdef int check_row(self, Py_ssize_t row) except -1:
        if not 0 <= row < self.problem.k:
            raise IndexError(f"there is no candidate {row} of {self.problem.k}")
        return 0

    def is_broken(self, Py_ssize_t row):
        """Whether a candidate has violations of these kinds.  Raises IndexError for no row."""
        self.check_row(row)
        take_tree(&self.problem, &self._heads[row, 0], &self._labels[row, 0])
        return count_violations(&self.problem) > 0

    def repaired(self, Py_ssize_t row, ranks, double unseen, int most):
        """A candidate with fewer violations, as it was where no change of one word helps.

        ranks: int32[l], the place of each label by its name.  unseen: what an arc counts that no
        candidate has.  most: changes, at most.
        Returns heads and labels int32[n], and of each change its word, what its new arc counts, and
        how many candidates have its old one.  Raises IndexError for no row.
        """
        cdef Problem *x = &self.problem
        cdef const int32_t[::1] places = checked("ranks", ranks, np.int32, len(self._arrays[0]))
        self.check_row(row)
        heads_array = np.array(self._heads[row])
        labels_array = np.array(self._labels[row])
        cdef int32_t[::1] heads = heads_array
        cdef int32_t[::1] labels = labels_array
        cdef Change best
        cdef int64_t total
        cdef Py_ssize_t j, same
        cdef bint found
        changes = []
        best.left = best.word = best.head = best.label = best.rank = 0
        take_tree(x, &heads[0], &labels[0])
        for _ in range(most):
            with nogil:
                total = count_violations(x)
                found = total > 0 and best_change(
                    x, &heads[0], &labels[0], &places[0], unseen, &best
                )
            if not found or best.left >= total:
                break
            same = 0
            for j in range(x.k):
                same += (
                    x.heads[j * x.n + best.word] == heads[best.word]
                    and x.labels[j * x.n + best.word] == labels[best.word]
                )
            changes.append((best.word, best.share, same))
            heads[best.word], labels[best.word] = best.head, best.label
            take_tree(x, &heads[0], &labels[0])
        return heads_array, labels_array, changes
