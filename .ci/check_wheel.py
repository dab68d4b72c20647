"""A core of the tests against an installed wheel: `python check_wheel.py CHECKOUT`.

Fails where the package is the checkout's own, or was built without OpenMP.  The tests are copied,
so that the checkout's tk_spacy is not on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = (
    "packaging",
    "portable_imports",
    "threads",
    "kernel",
    "spanning",
    "softmax",
    "component_storage",
)


def main(checkout: Path) -> int:
    """The exit code of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("tests", "configs"):
            shutil.copytree(checkout / name, copy / name)
        # What the tests compare with what is installed; without __init__, so never imported.
        shutil.copytree(
            checkout / "tk_spacy",
            copy / "tk_spacy",
            ignore=shutil.ignore_patterns("*.py", "*.so", "*.pyd", "__pycache__"),
        )
        shutil.copy(checkout / "pyproject.toml", copy)
        built = (
            "from tk_spacy.parallel.threads import openmp_enabled as on; assert on(), 'no OpenMP'"
        )
        subprocess.run([sys.executable, "-P", "-c", built], check=True, cwd=copy)
        tests = [str(copy / "tests" / f"test_{name}.py") for name in TESTS]
        command = [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-m",
            "not slow and not shared",
            *tests,
        ]
        environment = {**os.environ, "TK_SPACY_TEST_INSTALLED": "1"}
        return subprocess.run(command, cwd=copy, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
