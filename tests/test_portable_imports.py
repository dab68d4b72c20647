"""Every module can be imported where what only some systems have is missing, and soon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tk_spacy

PACKAGE = Path(tk_spacy.__file__).parent
SOURCES = Path(__file__).parents[1] / "tk_spacy"
"""Of the checkout: an installed package has no sources of its compiled modules."""
COMPILED = sorted(
    ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
    for path in SOURCES.rglob("*.pyx")
)

# What Windows has not; Python's own modules, and those that tk-spacy needs, import first.
HIDDEN = """\
import asyncio, importlib, multiprocessing.shared_memory, multiprocessing.util, os, signal, sys
import conllu, matplotlib.pyplot, psutil, rich.live, spacy, spacy.cli, tempfile, thinc.api, typer
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None  # an import of it fails
for name in (
    "fork", "forkpty", "getpgrp", "getpgid", "getppgid", "getuid", "geteuid", "killpg", "mkfifo",
    "nice", "openpty", "register_at_fork", "sched_getaffinity", "setpgid", "setsid", "sysconf",
    "tcgetpgrp", "tcsetpgrp", "uname", "wait4",
):
    vars(os).pop(name, None)
for name in (
    "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP",
    "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIG_BLOCK", "SIG_SETMASK",
    "SIG_UNBLOCK", "alarm", "pthread_sigmask", "setitimer", "sigpending", "sigwait",
):
    vars(signal).pop(name, None)
failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
import json
print(json.dumps(failed))
"""

# CPU time: what else the machine does must not fail the test.
TIMED = """\
import importlib, sys, time
import jinja2, numpy, psutil, rich.console, srsly, threadpoolctl
before = time.process_time()
for name in sys.argv[1:]:
    importlib.import_module(name)
print(time.process_time() - before)
"""


def all_modules() -> list[str]:
    """Of the package, compiled ones included."""
    names = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
    }
    plain = {name.removesuffix(".__init__") for name in names}
    return sorted({*plain, *COMPILED} - {"tk_spacy.__main__"})


def run(program: str, names: list[str]) -> str:
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(PACKAGE.parent)}
    result = subprocess.run(
        [sys.executable, "-c", program, *names],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


def test_imports_need_nothing_that_windows_has_not() -> None:
    assert len(COMPILED) > 80
    assert json.loads(run(HIDDEN, all_modules())) == {}


def test_imports_that_need_it_are_noticed() -> None:
    """The test above can fail."""
    program = HIDDEN.replace("failed = {}", "failed = {}\nimport resource")
    with pytest.raises(AssertionError, match="resource"):
        run(program, ["tk_spacy"])


def test_imports_of_compiled_modules_are_quick() -> None:
    """Half a second beside numpy's; measured: 0.12 s of 86 modules."""
    assert min(float(run(TIMED, COMPILED)) for _ in range(3)) < 0.5
