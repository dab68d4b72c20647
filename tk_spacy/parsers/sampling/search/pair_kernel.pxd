# What a kernel adds to the pairs of a lattice (see pair_kernel.pyx).

from libc.stdint cimport int64_t

from tk_spacy.parsers.sampling.search.structs cimport Lattice

cdef enum PairClass:
    # The two of a kind differ in the lowest bit.
    FIRST_MODIFIER       # a sibling part whose sibling is the boundary
    LATER_MODIFIER
    UNDER_ROOT_WORD      # a grandparent part whose grandparent is the root
    DEEPER
    N_CLASSES


cdef int begin_kernel(Lattice *g) noexcept nogil
cdef void revise(Lattice *g) noexcept nogil


cdef inline int class_of(Lattice *g, int kind, int outer) noexcept nogil:
    if kind == 1:
        return LATER_MODIFIER if outer >= 0 else FIRST_MODIFIER
    return DEEPER if g.head[outer] > 0 else UNDER_ROOT_WORD


cdef inline float with_kernel(
    Lattice *g, int kind, int outer, int64_t at, float value
) noexcept nogil:
    """A pair's score with the kernel's share or what stands for it; its own is kept."""
    cdef float share = g.kernel_pairs[at]
    g.own_pairs[at] = value
    return value + (g.unscored[class_of(g, kind, outer)] if share != share else share)
