# Asks for the memory at an address ahead, where the compiler can say that.

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define tk_prefetch(address) __builtin_prefetch(address)
    #else
    #define tk_prefetch(address) ((void)(address))
    #endif
    """
    void tk_prefetch(const void *address) noexcept nogil
