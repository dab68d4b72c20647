"""Connecting to a cluster by what the user calls it: tcp://HOST:PORT, tls://..., or local:N."""

from __future__ import annotations

import logging
import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from tk_spacy.cluster.executor import TRIES, DaskExecutor
from tk_spacy.errors import OptionError, UserError
from tk_spacy.parallel.executor import THREAD_VARIABLES, threads_of_children
from tk_spacy.parallel.processes import spawning

SECONDS_TO_CONNECT = 15
FORMS = "tcp://HOST:PORT, tls://HOST:PORT or local:N"


@contextmanager
def connected(
    address: str | None, *, shared_files: bool = True, note: Callable[[str], None] = lambda _: None
) -> Iterator[DaskExecutor | None]:
    """The executor of a cluster; None for no address.  A local one is stopped at the end.

    Raises OptionError for what is no address, UserError where the package distributed is missing,
    nobody answers, or a worker has another version of the package.
    """
    if address is None:
        if not shared_files:
            raise OptionError("--no-shared-files is of a cluster; give --cluster, or leave it out")
        yield None
        return
    local = re.fullmatch(r"local:([1-9]\d*)", address)
    if local is None and not re.fullmatch(r"(tcp|tls)://[^/\s]+:\d+", address):
        raise OptionError(f"--cluster {address}: no address of a cluster; write {FORMS}")
    try:
        import dask  # noqa: PLC0415  (an extra)
        import distributed  # noqa: PLC0415
    except ImportError as error:
        raise UserError(
            f"--cluster {address} needs Dask; install it: pip install 'tk-spacy[cluster]'"
        ) from error
    with ExitStack() as stack:
        stack.callback(_end_idle_threads)
        stack.enter_context(
            dask.config.set(
                {
                    # A task is lost with its third worker, and none waits at a busy one.
                    "distributed.scheduler.allowed-failures": TRIES - 1,
                    "distributed.scheduler.worker-saturation": 1.0,
                    "distributed.comm.timeouts.connect": f"{SECONDS_TO_CONNECT}s",
                    # A machine with too much to do answers late, which is no reason to give up.
                    "distributed.comm.timeouts.tcp": "300s",
                    # Nor is silence: a training in C may hold Python's lock from begin to end.
                    "distributed.scheduler.worker-ttl": None,
                    "distributed.admin.large-graph-warning-threshold": "10GB",
                }
            )
        )
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        if local is not None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tk-spacy-cluster-"))
            address_of: Any = stack.enter_context(_local(distributed, int(local[1]), folder))
        else:
            address_of = address
        try:
            if local is None:  # a client that finds nobody leaves threads of its own behind
                _knock(address)
            client = distributed.Client(
                address_of, timeout=SECONDS_TO_CONNECT, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            raise UserError(
                f"--cluster {address}: nobody answers within {SECONDS_TO_CONNECT} seconds; is a "
                "scheduler running there (`dask scheduler`)?"
            ) from error
        stack.callback(_closed, client)
        executor = DaskExecutor(client, address, shared_files=shared_files, note=note)
        executor.check_versions()
        note(f"cluster {address}: {executor.workers} workers")
        if not executor.workers:
            note("no worker is there yet; start some (`dask worker`), the work waits for them")
        yield executor


def _closed(client: Any) -> None:
    with suppress(OSError, TimeoutError):
        client.close()


def _end_idle_threads() -> None:
    """End the threads that distributed keeps for the next client: no process is forked beside any.

    It has no public way for that; where it keeps none under these names, nothing is done.
    """
    from distributed import Client, Future, utils  # noqa: PLC0415  (an extra)

    if any(client.status != "closed" for client in getattr(Client, "_instances", ())):
        return  # of somebody else, who may be about to use them
    for place, name, new in (
        (Future, "_cb_executor", None),
        (utils, "_offload_executor", ThreadPoolExecutor(1, thread_name_prefix="Dask-Offload")),
    ):
        pool = getattr(place, name, None)
        if isinstance(pool, ThreadPoolExecutor):
            setattr(place, name, new)
            pool.shutdown()


def _knock(address: str) -> None:
    """Raises OSError, of which TimeoutError is one, where nobody listens at an address."""
    place = urlsplit(address)
    socket.create_connection((place.hostname, place.port), timeout=SECONDS_TO_CONNECT).close()


@contextmanager
def _local(distributed: Any, workers: int, folder: str) -> Iterator[Any]:
    # Children inherit that Ctrl-C is blocked: it is this process that stops them.
    # Any free port for the scheduler's pages: two commands may run at a time.
    with threads_of_children(1), spawning():
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True,
            dashboard_address="127.0.0.1:0", host="127.0.0.1", memory_limit=0,
            local_directory=folder, silence_logs=logging.CRITICAL,
            env=dict.fromkeys(THREAD_VARIABLES, "1"),
        )  # fmt: skip
    try:
        yield cluster
    finally:
        with suppress(TimeoutError):  # its processes end with this one
            cluster.close(timeout=20)
