"""Freed memory is kept for the next arrays: measured by the pages that a process is given."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
from tk_spacy.parallel.memory import keep_freed_memory

kept = sys.argv[1] == "keep" and keep_freed_memory()

def once():
    # More than glibc holds back by itself, which adapts to what was freed last.
    arrays = [np.ones(1 << 18) for _ in range(20)]

for _ in range(3):
    once()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    once()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True
    )
    kept, number = done.stdout.split()
    return kept, int(number)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="not glibc")
def test_kept_memory_is_not_taken_anew() -> None:
    kept, few = faults("keep")
    assert kept == "True"
    assert few < 100
    assert faults("as it is")[1] > 10 * 20 * 400  # each array of 2 MiB is 512 pages


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    from tk_spacy.parallel.memory import keep_freed_memory

    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False
