cdef extern from "softmax.h":
    float tk_row_max(const float *x, Py_ssize_t n) noexcept nogil
    float tk_row_sum(const float *x, Py_ssize_t n) noexcept nogil
