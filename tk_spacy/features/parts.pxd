# The search for parts, frames and spans in the trees over one sentence, for loops over sentences.

from libc.stdint cimport int32_t


cdef struct Found:
    # The distinct parts and which trees have them: see extract_parts.
    int32_t *rows            # [n_rows, 9], NULL where memory was short
    int32_t *starts          # [k + 1]
    int32_t *members         # [n_members]
    int32_t *table           # numbers of rows by their hashes, while they are sought
    int n_rows
    int n_members


cdef void find_parts(
    const int32_t *all_heads, const int32_t *all_labels, int k, int n, const int32_t *wanted,
    Found *found,
) noexcept nogil
cdef void find_frames(
    const int32_t *fields, Py_ssize_t n_fields, const int32_t *all_heads,
    const int32_t *all_labels, int k, int n, Found *found,
) noexcept nogil
cdef void find_spans(
    const int32_t *all_heads, const int32_t *all_labels, int k, int n, Found *found,
) noexcept nogil
cdef void keep_contested(Found *found, int k, int32_t *room) noexcept nogil
cdef void forget(Found *found) noexcept nogil
