"""Build of the Cython modules; every other setting of the package stands in pyproject.toml.

Two environment variables steer it:

* ``TK_SPACY_NO_OPENMP=1`` forces a serial build.
* ``CC``, ``CFLAGS`` and ``LDFLAGS`` are honoured as in every setuptools build.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PACKAGE = "tk_spacy"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
}

# A program that fails, at compile, link or run time, wherever OpenMP would fail us: it needs the
# header, the runtime library, and a region that really counts its iterations.
OPENMP_PROGRAM = """\
#include <omp.h>
#include <stdio.h>
#ifndef _OPENMP
#error "the compiler ignored the OpenMP flag"
#endif
int main(void) {
    int i, n = 0;
    #pragma omp parallel for reduction(+:n)
    for (i = 0; i < 1000; i++) n += 1;
    printf("tk-spacy openmp %d %d\\n", n, omp_get_max_threads() > 0);
    return n == 1000 ? 0 : 1;
}
"""

SERIAL_WARNING = """
*******************************************************************************
WARNING: tk-spacy is built WITHOUT OpenMP: everything works, on one thread only.
Reason: {reason}
Cure: install a compiler with OpenMP (Debian: gcc and libgomp1; macOS: the
libomp package, with CFLAGS and LDFLAGS pointing at it), then install tk-spacy
again with `pip install --no-binary tk-spacy --force-reinstall`.
*******************************************************************************
"""


def openmp_flags(compiler) -> list[tuple[list[str], list[str]]]:
    """The (compile, link) flags to try for this compiler, likeliest first."""
    if compiler.compiler_type == "msvc":
        return [(["/openmp"], [])]
    candidates = [(["-fopenmp"], ["-fopenmp"])]
    if sys.platform == "darwin":  # Apple's clang knows OpenMP only behind the preprocessor
        candidates.insert(0, (["-Xpreprocessor", "-fopenmp"], ["-lomp"]))
    return candidates


def openmp_works(compiler, compile_flags: list[str], link_flags: list[str]) -> bool:
    """Compile, link and run ``OPENMP_PROGRAM`` with these flags."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "openmp_probe.c")
        source.write_text(OPENMP_PROGRAM, encoding="utf-8")
        try:
            objects = compiler.compile(
                [str(source)], output_dir=folder, extra_postargs=compile_flags
            )
            compiler.link_executable(
                objects, "openmp_probe", output_dir=folder, extra_postargs=link_flags
            )
            program = next(Path(folder).glob("openmp_probe*.exe"), Path(folder, "openmp_probe"))
            run = subprocess.run(
                [str(program)], capture_output=True, text=True, timeout=60, check=True
            )
        except Exception:  # whatever the compiler classes raise: no OpenMP with these flags
            return False
    return run.stdout.strip() == "tk-spacy openmp 1000 1"


class BuildExt(build_ext):
    """Adds the flags that depend on the compiler, which is known only when the build starts."""

    def build_extensions(self) -> None:
        compile_flags = ["/O2"] if self.compiler.compiler_type == "msvc" else ["-O3"]
        link_flags: list[str] = []
        if os.environ.get("TK_SPACY_NO_OPENMP", "0") not in ("", "0"):
            reason = "TK_SPACY_NO_OPENMP is set."
        else:
            reason = "no compile, link and run of a small OpenMP program succeeded."
            for compile_openmp, link_openmp in openmp_flags(self.compiler):
                if openmp_works(self.compiler, compile_openmp, link_openmp):
                    compile_flags += compile_openmp
                    link_flags += link_openmp
                    reason = ""
                    break
        if reason:
            print(SERIAL_WARNING.format(reason=reason), file=sys.stderr, flush=True)
        for extension in self.extensions:
            extension.extra_compile_args = [*extension.extra_compile_args, *compile_flags]
            extension.extra_link_args = [*extension.extra_link_args, *link_flags]
        super().build_extensions()


def extensions() -> list[Extension]:
    """One extension for each .pyx of the package: the folder is the list."""
    return [
        Extension(".".join(path.with_suffix("").parts), [path.as_posix()])
        for path in sorted(Path(PACKAGE).rglob("*.pyx"))
    ]


setup(
    ext_modules=cythonize(extensions(), compiler_directives=DIRECTIVES),
    cmdclass={"build_ext": BuildExt},
)
