"""The rule for numbers of threads: its arguments, its limits, and the fork that must not hang."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tk_spacy.parallel import threads

# Child processes get -P: what they import is what is installed, not the folder they stand in.
needs_openmp = pytest.mark.skipif(not threads.openmp_enabled(), reason="a serial build")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.fixture
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may use four CPUs, without any other limit."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(threads, "cgroup_quota", lambda: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize("n_threads", [0, -1, np.int64(-7)])
def test_threads_not_positive_is_refused(n_threads: int) -> None:
    with pytest.raises(ValueError, match=f"n_threads is {n_threads}; expected at least 1"):
        threads.effective_n_threads(n_threads)


@pytest.mark.parametrize("n_threads", [True, 2.0, "2", [2]])
def test_threads_not_int_is_refused(n_threads: object) -> None:
    with pytest.raises(TypeError, match="expected a positive int, or None"):
        threads.effective_n_threads(n_threads)  # type: ignore[arg-type]


@needs_openmp
@pytest.mark.parametrize("n_threads", [1, 2, 3, np.int32(5), 1000])
def test_threads_explicit_number_is_kept(four_cpus: None, n_threads: int) -> None:
    result = threads.effective_n_threads(n_threads)
    assert (result, type(result)) == (min(n_threads, threads.MAX_THREADS), int)


@needs_openmp
@pytest.mark.parametrize(
    ("value", "expected"),
    [("", 4), ("3", 3), (" 2 ", 2), ("2,4", 2), ("16", 4), ("0", 4), ("-1", 4), ("many", 4)],
)
def test_threads_none_honours_omp_num_threads(
    four_cpus: None, monkeypatch: pytest.MonkeyPatch, value: str, expected: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert threads.effective_n_threads(None) == expected


@pytest.mark.parametrize(("quota", "expected"), [(None, 4), (0.2, 1), (1.5, 2), (9.0, 4)])
def test_threads_available_honours_quota(
    four_cpus: None, monkeypatch: pytest.MonkeyPatch, quota: float | None, expected: int
) -> None:
    monkeypatch.setattr(threads, "cgroup_quota", lambda: quota)
    assert threads.available_threads() == expected


def test_threads_without_affinity_counts_cpus(
    four_cpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert threads.available_threads() == 3


Tree = Callable[[str, dict[str, str]], float | None]


@pytest.fixture
def quota_of(tmp_path: Path) -> Tree:
    """Writes a made-up /proc/self/cgroup and /sys/fs/cgroup, then reads the quota from them."""

    def read(membership: str, files: dict[str, str]) -> float | None:
        (tmp_path / "membership").write_text(membership, encoding="utf-8")
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return threads.cgroup_quota(tmp_path / "membership", tmp_path / "cgroup")

    return read


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"a/cpu.max": "50000 100000\n", "a/b/cpu.max": "max 100000\n"}, 0.5),
        ("0::/only/the/host/sees\n", {"cpu.max": "200000 100000\n"}, 2.0),
        ("0::/\n", {"cpu.max": "garbage\n"}, None),
        ("0::/\n", {"cpu.max": "100000 0\n"}, None),
        (
            "4:memory:/x\n3:cpu,cpuacct:/g\n",
            {
                "cpu,cpuacct/g/cpu.cfs_quota_us": "300000\n",
                "cpu,cpuacct/g/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            "1:cpu:/\n0::/\n",
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
            None,
        ),
        ("", {}, None),
    ],
)
def test_threads_cgroup_quota(
    quota_of: Tree, membership: str, files: dict[str, str], expected: float | None
) -> None:
    assert quota_of(membership, files) == expected


def test_threads_no_cgroup_means_no_quota(tmp_path: Path) -> None:
    assert threads.cgroup_quota(tmp_path / "missing", tmp_path) is None


@needs_openmp
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_region_uses_as_many_as_asked(n_threads: int) -> None:
    # In a process of its own: this one keeps no OpenMP threads because of the test.
    code = f"from tk_spacy.parallel.threads import count_threads; print(count_threads({n_threads}))"
    environment = {**os.environ, "OMP_DYNAMIC": "false"}
    environment.pop("OMP_THREAD_LIMIT", None)
    run = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert int(run.stdout) == n_threads


def test_threads_serial_build_uses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "openmp_enabled", lambda: False)
    assert threads.effective_n_threads(None) == 1
    assert threads.effective_n_threads(8) == 1
    with pytest.raises(ValueError, match="n_threads is 0"):
        threads.effective_n_threads(0)


@pytest.mark.parametrize("n_threads", [0, -2])
def test_threads_region_of_none_is_refused(n_threads: int) -> None:
    with pytest.raises(ValueError, match=f"n_threads is {n_threads}"):
        threads.count_threads(n_threads)


# Without the guard the child waits in its region for ever (seen with GNU's runtime); the alarm
# ends it.
FORK = """
import os, signal
from tk_spacy.parallel.threads import count_threads, effective_n_threads
count_threads(effective_n_threads(2))
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    child = count_threads(effective_n_threads(2)), count_threads(effective_n_threads(None))
    os._exit(0 if child == (1, 1) else 1)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status), effective_n_threads(2))
"""


@needs_fork
def test_threads_forked_child_runs_its_region() -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", FORK],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.split() == ["0", "2" if threads.openmp_enabled() else "1"], run.stderr


def region_size(n_threads: int) -> int:
    return threads.count_threads(threads.effective_n_threads(n_threads))


@needs_openmp
def test_threads_spawned_child_is_not_restricted() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map_async(region_size, [2]).get(timeout=120) == [2]
