# Maximum spanning trees for nogil code that cimports them (methods: see the .pyx files).
#
# scores: [(n+1) * (n+1)], scores[h * (n+1) + m] is the score of the arc h -> m between the nodes
# 0 (the root) to n.  A missing arc has -INFINITY; all others lie within +-1e300, none is NaN.
# Column 0 and the diagonal are never looked at, and scores are never written to.
#
# Each thread has a SpanningScratch of its own: init_spanning before its first use, free_spanning
# after its last.  It grows when a call needs more than any before it, else nothing is allocated.

from libc.stdint cimport int32_t

# All three can be cimported from here.
from tk_spacy.trees.contraction cimport SpanningScratch, free_spanning, init_spanning

# The best tree.  heads: int32[n+1] out; heads[0] is -1.  single_root: with one child of the root.
# Returns 0, 1 where there is no such tree, -1 where there is no memory (heads are undefined then).
# Stopped by the scratch's watch, it seems to find no tree; whoever set the watch knows better.
cdef int max_tree(
    const double *scores, int n, bint single_root, int32_t *heads, SpanningScratch *scratch,
) noexcept nogil

# The k best trees, all different, best first.  heads: int32[k, n+1], totals: float64[k], both out;
# a total is the sum of a tree's scores in the order of the words.
# Returns how many there are, up to k; -1 where there is no memory (the rest is undefined then).
cdef int k_best_trees(
    const double *scores, int n, bint single_root, int k, int32_t *heads, double *totals,
    SpanningScratch *scratch,
) noexcept nogil
