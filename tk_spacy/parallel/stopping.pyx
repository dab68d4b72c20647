"""Signals and requests to stop, heard amid compiled loops that hold no interpreter lock.

Python runs the handlers of signals (Ctrl-C, SIGTERM) in its main thread, between two steps of the
interpreter, hence never while compiled code runs.  So a compiled function that may take long makes
a `Listener`, its loops ask `is_stopped` now and then, and every PERIOD seconds the main thread
takes the interpreter's lock and lets pending handlers run.  What a handler raises ends the loops of
all threads, and `Listener.check` raises it again.

In a parallel loop the main thread may run out of tasks long before the others; in the loop's own
barrier it would be deaf.  So a loop over n tasks has one turn more for each thread, in which it
waits for the others and listens (`await_others`):

    cdef Listener listener = Listener(n)
    for i in prange(n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
        if i < n:
            ...                                  # asks is_stopped(&listener.watch)
            task_done(&listener.watch)
        else:
            await_others(&listener.watch)
    listener.check()

Other threads hear no signals.  Whoever waits for one asks it to end by a `Stop`: what runs under it
raises `Stopped` at its next look.
"""

from cpython.exc cimport PyErr_CheckSignals

import threading

cdef extern from "Python.h" nogil:
    unsigned long PyThread_get_thread_ident()

cdef double PERIOD = 0.1    # seconds between two looks for signals


class Stopped(BaseException):
    """Raised in a thread that was asked to stop, through everything that handles errors."""


class _Current(threading.local):
    stop = None


_current = _Current()


cdef class Stop:
    """A request to the threads that run under it to end; it also ends with the one around it."""

    def __cinit__(self):
        self.outer = _current.stop
        self.flag.raised = 0
        self.flag.outer = &self.outer.flag if self.outer is not None else NULL

    def request(self):
        """Ask all that runs under this to end.  May be called from any thread."""
        store(&self.flag.raised, 1)

    @property
    def requested(self):
        """Whether it was asked for, here or by one around this."""
        return is_raised(&self.flag)

    def run(self, work, *args):
        """What work(*args) returns; it runs under this, in the thread at hand."""
        before = _current.stop
        _current.stop = self
        try:
            return work(*args)
        finally:
            _current.stop = before


def raise_if_stopped():
    """Raise Stopped where the thread at hand was asked to end; in the main thread hear signals."""
    cdef Stop stop = _current.stop
    if stop is not None and is_raised(&stop.flag):
        raise Stopped
    PyErr_CheckSignals()


cdef class Listener:
    """Listens for one call of compiled code, which the thread that makes it waits for.

    tasks: of its parallel loop, if it has one.
    """

    def __cinit__(self, int tasks=0):
        self.stop = _current.stop
        self.error = None
        self.watch.stopped = 0
        self.watch.left = tasks
        self.watch.flag = &self.stop.flag if self.stop is not None else NULL
        own = PyThread_get_thread_ident()
        self.watch.hearer = own if own == threading.main_thread().ident else 0
        self.watch.heard = seconds()
        self.watch.owner = <void *>self

    cdef int listen(self) except -1:
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            self.error = error
            store(&self.watch.stopped, 1)
        return 0

    cdef int check(self) except -1:
        """Raise what stopped the loops; to be called after them, once all memory is given back."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if self.watch.flag != NULL and is_raised(self.watch.flag):
            raise Stopped
        return 0


cdef bint is_raised(Flag *flag) noexcept nogil:
    while flag != NULL:
        if load(&flag.raised):
            return True
        flag = flag.outer
    return False


cdef bint look(Watch *watch) noexcept nogil:
    """Look for signals where that is this thread's matter and due; whether to stop."""
    cdef double now
    if is_raised(watch.flag):
        store(&watch.stopped, 1)
        return True
    if watch.hearer and watch.hearer == PyThread_get_thread_ident():
        now = seconds()
        if not 0.0 <= now - watch.heard < PERIOD:
            watch.heard = now
            hear(watch.owner)
    return load(&watch.stopped)


cdef void hear(void *owner) noexcept nogil:
    with gil:
        (<Listener>owner).listen()


cdef void await_others(Watch *watch) noexcept nogil:
    """Until all tasks of a parallel loop are done; the main thread hears signals meanwhile."""
    while load(&watch.left) > 0:
        look(watch)
        pause()
