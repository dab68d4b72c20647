"""Making an iterator's items in a thread while the ones before them are worked on."""

from __future__ import annotations

from collections.abc import Generator
from contextvars import copy_context
from queue import SimpleQueue
from threading import Semaphore, Thread, current_thread
from typing import TypeVar

from tk_spacy.parallel.stopping import Stop

T = TypeVar("T")


class _End:
    """Comes after the last item; `error` is what ended the items before their time."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def made_ahead(items: Generator[T, None, None], *, limit: int = 1) -> Generator[T, None, None]:
    """The items in their order, of which at most `limit` are made before they are asked for.

    `items` runs in a thread of its own from the first item to its end, and nowhere else.  What it
    raises is raised here, after the items that came before.  Who closes this generator, or leaves
    it to the garbage collector, asks the item that is being made to stop (see `stopping`) and waits
    for its end; then `items` is closed.
    """
    room, stopped = Semaphore(limit), Stop()
    ready: SimpleQueue[T | _End] = SimpleQueue()
    arguments = (items, room, stopped, ready)
    # A context of its own: thinc keeps there which numpy or cupy it computes with.
    work = (stopped.run, _make, *arguments)
    thread = Thread(target=copy_context().run, args=work, name="ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := ready.get(), _End):
            room.release()
            yield item
            del item  # not kept while waiting for the next
        if item.error is not None:
            raise item.error
    finally:
        stopped.request()
        room.release()
        if thread is not current_thread():  # which may be the one to collect the garbage
            thread.join()


def _make(
    items: Generator[T, None, None],
    room: Semaphore,
    stopped: Stop,
    ready: SimpleQueue[T | _End],
) -> None:
    try:
        while room.acquire() and not stopped.requested:
            ready.put(next(items))
        items.close()
    except StopIteration:
        ready.put(_End())
    except BaseException as error:
        ready.put(_End(error))
