"""What a kernel adds to the pairs (siblings, grandparents) of a sentence's lattice.

There are too many pairs to score all of them by the kernel before the search, and most are never
part of a good tree.  So the table of pairs starts without the kernel, the pairs of the best trees
are scored between two searches (rounds.pyx), and `revise` brings the table up to date: the
search itself looks up one sum, with a kernel or without.
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t

from tk_spacy.parsers.sampling.search.lattice cimport ensure
from tk_spacy.parsers.sampling.search.structs cimport Lattice


cdef int begin_kernel(Lattice *g) noexcept nogil:
    """Empty tables of a kernel's shares for arcs that are arranged.  Returns -1 without memory."""
    cdef int64_t i
    cdef int c
    g.own_pairs = <float *>ensure(&g.own_memory, g.n_pairs * sizeof(float) + 1)
    g.kernel_pairs = <float *>ensure(&g.kernel_memory, g.n_pairs * sizeof(float) + 1)
    if g.own_pairs == NULL or g.kernel_pairs == NULL:
        return -1
    for i in range(g.n_pairs):
        g.own_pairs[i] = NAN
        g.kernel_pairs[i] = NAN
    for c in range(N_CLASSES):
        g.unscored[c] = 0.0
    return 0


cdef void revise(Lattice *g) noexcept nogil:
    """Bring the table of pairs up to the shares that are known now.

    A pair that was not scored counts as the mean of those that were, of its class in the sentence.
    With 0 it would attract the search where the kernel's scores are mostly negative, and repel it
    where they are positive.  The classes differ in how many properties their slots can have (root
    and boundary have few), hence in the size of the scores, and trees differ in how many parts of
    each class they have.  A class of which none was scored takes the mean of the other class of its
    kind.  Means of the trees found, which are good ones, are on the high side: a
    tree with new parts is rather looked at than passed over, and its true score decides.
    """
    cdef double total[N_CLASSES]
    cdef int64_t count[N_CLASSES]
    cdef int64_t at
    cdef int a, c, h, i, n_above
    cdef float share
    cdef int turn
    for c in range(N_CLASSES):
        total[c] = 0.0
        count[c] = 0
    for turn in range(2):
        # First the means, then the table; an arc's grandparents stand before its siblings.
        at = 0
        for a in range(g.n_arcs):
            h = g.head[a]
            n_above = g.first[h + 1] - g.first[h] if h > 0 else 0
            for i in range(n_above + 1 + g.nearer[a]):
                if i < n_above:
                    c = DEEPER if g.head[g.first[h] + i] > 0 else UNDER_ROOT_WORD
                else:
                    c = FIRST_MODIFIER if i == n_above else LATER_MODIFIER
                share = g.kernel_pairs[at]
                if turn == 0:
                    if share == share:
                        total[c] += share
                        count[c] += 1
                else:
                    # Of a pair that is not known yet the sum stays NaN.
                    g.pairs[at] = g.own_pairs[at] + (g.unscored[c] if share != share else share)
                at += 1
        if turn == 0:
            for c in range(N_CLASSES):
                i = c if count[c] else c ^ 1
                g.unscored[c] = <float>(total[i] / count[i]) if count[i] else 0.0
