# Signals and requests to stop, heard amid compiled loops (see stopping.pyx).

cdef extern from "stopping.h" nogil:
    int load "tk_load"(int *flag)
    void store "tk_store"(int *flag, int value)
    int subtract_one "tk_subtract_one"(int *count)
    void pause "tk_pause"()
    double seconds "tk_seconds"()
    bint is_due "tk_is_due"()


cdef struct Flag:
    int raised
    Flag *outer             # whose being raised counts as well, or NULL


cdef struct Watch:
    # Of one call of compiled code; the threads that work for it share it.
    int stopped
    int left                # tasks of a parallel loop that are not done
    Flag *flag              # that another thread may raise, or NULL
    unsigned long hearer    # the thread that Python's signals reach, 0 where it does not wait here
    double heard            # when it last listened
    void *owner             # the Listener


cdef class Stop:
    cdef Flag flag
    cdef Stop outer


cdef class Listener:
    cdef Watch watch
    cdef Stop stop
    cdef object error
    cdef int listen(self) except -1
    cdef int check(self) except -1


cdef bint look(Watch *watch) noexcept nogil
cdef void await_others(Watch *watch) noexcept nogil


cdef inline bint is_stopped(Watch *watch) noexcept nogil:
    """Whether a loop is to end at once.  Cheap enough for every microsecond of work."""
    if watch == NULL:
        return False
    if load(&watch.stopped):
        return True
    return is_due() and look(watch)


cdef inline void task_done(Watch *watch) noexcept nogil:
    """Call at the end of each task of a parallel loop."""
    subtract_one(&watch.left)
