"""The one rule for how many threads a parallel region uses.

Every public function that starts a parallel region takes ``n_threads`` and passes it through
``effective_n_threads`` just before the region: never keep the result for later, since a fork in
between changes the answer.

GNU's OpenMP runtime keeps its threads between regions, and a fork copies only the forking thread:
a child whose parent has run a region waits for ever in its first region of two threads or more.
So a forked child always runs on one thread, whatever was asked for.  Processes started by spawn or
forkserver are not concerned.  (scikit-learn's ``_openmp_helpers.pyx`` is the model of the rule; it
leaves the fork to its callers.)
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tk_spacy.parallel.openmp import count_threads, openmp_enabled

__all__ = ["available_threads", "count_threads", "effective_n_threads", "openmp_enabled"]


MAX_THREADS = 256


class _ForkState:
    """Whether this process is a forked child; the operating system's state, hence not passed."""

    forked = False

    @classmethod
    def in_child(cls) -> None:
        cls.forked = True


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_ForkState.in_child)


def effective_n_threads(n_threads: int | None) -> int:
    """The number of threads a parallel region may really use, at least 1.

    ``None`` asks for all that are available (``available_threads``); a positive number is allowed
    as asked, even above what is available, up to ``MAX_THREADS``: OpenMP ends the process where it
    cannot start a thread.  A serial build and a forked child always use 1.

    Raises TypeError if ``n_threads`` is neither None nor an int, ValueError if it is 0 or less.
    """
    if n_threads is not None:
        if isinstance(n_threads, bool) or not hasattr(n_threads, "__index__"):
            raise TypeError(f"n_threads is {n_threads!r}; expected a positive int, or None for all")
        n_threads = int(n_threads)
        if n_threads < 1:
            raise ValueError(f"n_threads is {n_threads}; expected at least 1, or None for all")
    if _ForkState.forked or not openmp_enabled():
        return 1
    return min(MAX_THREADS, available_threads() if n_threads is None else n_threads)


def available_threads() -> int:
    """The least of the CPUs of this process, its cgroup's CPU quota and OMP_NUM_THREADS."""
    if hasattr(os, "sched_getaffinity"):
        limits = [len(os.sched_getaffinity(0))]
    else:
        limits = [os.cpu_count() or 1]
    quota = cgroup_quota()
    if quota is not None:
        limits.append(max(1, math.ceil(quota)))
    # "4,2" gives a number for each level of nesting; what OpenMP itself ignores, we ignore.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdecimal() and int(first) > 0:
        limits.append(int(first))
    return min(limits)


def cgroup_quota(
    membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> float | None:
    """CPUs' worth of time this process may use by its cgroup (v1 or v2); None without a limit.

    A limit of any ancestor counts.  In a container the membership may name a folder that only the
    host sees; the mount's top folder then is the container's own.
    """
    quotas: list[float] = []
    for top, group in _cpu_groups(membership, mount):
        for name in (group, *group.parents):
            quota = _read_quota(top / name.relative_to("/"))
            if quota is not None:
                quotas.append(quota)
    return min(quotas, default=None)


def _cpu_groups(membership: Path, mount: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    """(Folder of the hierarchy, this process's group in it) wherever CPU time is limited."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux, or no /proc
        return
    for line in lines:  # "HIERARCHY:CONTROLLERS:GROUP"; v2 has no controllers
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        path = PurePosixPath("/", group)
        if not controllers:
            yield mount, path
        elif "cpu" in controllers.split(","):
            yield mount / "cpu", path
            yield mount / controllers, path


def _read_quota(folder: Path) -> float | None:
    """Quota over period of one cgroup folder; None if it sets none or cannot be read."""
    try:
        if (folder / "cpu.max").exists():  # v2: "max 100000" or "150000 100000"
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        cpus = int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # "max" is no int
        return None
    return cpus if cpus > 0 else None  # v1 writes -1 for no limit
