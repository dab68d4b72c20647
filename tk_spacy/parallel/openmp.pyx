"""What this build knows of OpenMP; the rules for numbers of threads are in ``threads.py``."""

from array import array

from cython.parallel cimport prange, threadid

cdef extern from *:
    """
    #ifdef _OPENMP
    #define TK_SPACY_OPENMP 1
    #else
    #define TK_SPACY_OPENMP 0
    #endif
    """
    const bint TK_SPACY_OPENMP


def openmp_enabled():
    """Whether the extension modules were compiled with OpenMP."""
    return TK_SPACY_OPENMP


def count_threads(int n_threads):
    """Run a parallel region asked to use ``n_threads`` threads; return how many took part.

    Raises ValueError if ``n_threads`` is not positive.
    """
    if n_threads < 1:
        raise ValueError(f"n_threads is {n_threads}; expected a positive integer")
    cdef int[::1] ran = array("i", [0] * n_threads)
    cdef int i
    for i in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static", chunksize=1):
        ran[i] = threadid()
    return len(set(ran))
