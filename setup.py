"""Build of the Cython modules; every other setting of the package stands in pyproject.toml.

The modules are found, not listed: each ``.pyx`` under ``tk_spacy`` is one extension.  OpenMP is
found by compiling, linking and running a small program; where that fails the build is serial and
says so (``pip install -v`` shows it, ``openmp_enabled()`` of ``tk_spacy.parallel.threads`` later).
``TK_SPACY_NO_OPENMP=1`` in the environment forces a serial build.  An optimisation level in
``CFLAGS`` replaces ours: ``CFLAGS=-O1`` compiles in half the time what then runs more slowly.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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
    "autotestdict": False,  # no __test__ in the modules: the tests live in tests/
}

# It needs the header, the runtime library, and a region that really counts its iterations, so it
# fails (at compile, link or run time) wherever OpenMP would fail our modules.
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
    printf("openmp %d %d\\n", n, omp_get_max_threads() > 0);
    return n == 1000 ? 0 : 1;
}
"""
OPENMP_OUTPUT = "openmp 1000 1"

SERIAL_WARNING = """
******************************************************************************
WARNING: tk-spacy is built WITHOUT OpenMP: all works, but on one thread only.
Reason: {reason}
Cure: {cure}
******************************************************************************
"""
FORCED = (
    "TK_SPACY_NO_OPENMP is set.",
    "unset it, then install tk-spacy from source again.",
)
NOT_FOUND = (
    "no small OpenMP program could be compiled, linked and run.",
    "install a compiler with OpenMP (Debian: gcc; macOS: libomp, with CFLAGS\n"
    "and LDFLAGS pointing at it), then install tk-spacy from source again.",
)


def openmp_candidates(compiler: Any) -> list[tuple[list[str], list[str]]]:
    """The (compile, link) flags worth trying with this compiler, likeliest first."""
    if compiler.compiler_type == "msvc":
        return [(["/openmp"], [])]
    candidates = [(["-fopenmp"], ["-fopenmp"])]
    if sys.platform == "darwin":  # Apple's clang takes the flag only behind its preprocessor
        candidates.insert(0, (["-Xpreprocessor", "-fopenmp"], ["-lomp"]))
    return candidates


def openmp_works(compiler: Any, compile_flags: list[str], link_flags: list[str]) -> bool:
    """Whether ``OPENMP_PROGRAM`` compiles, links, runs and counts right with these flags."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(OPENMP_PROGRAM, encoding="utf-8")
        program = Path(folder, compiler.executable_filename("probe"))
        try:
            objects = compiler.compile(
                [str(source)], output_dir=folder, extra_postargs=compile_flags
            )
            compiler.link_executable(objects, "probe", folder, extra_postargs=link_flags)
            run = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True)
        except Exception as error:  # each compiler class has its own errors; all mean "no"
            print(f"OpenMP does not work with {compile_flags}: {error}", file=sys.stderr)
            return False
    return run.stdout.strip() == OPENMP_OUTPUT


def find_openmp(compiler: Any) -> tuple[list[str], list[str]]:
    """The (compile, link) flags of OpenMP; empty, after a warning, for a serial build."""
    if os.environ.get("TK_SPACY_NO_OPENMP", "0") not in ("", "0"):
        reason, cure = FORCED
    else:
        reason, cure = NOT_FOUND
        for compile_flags, link_flags in openmp_candidates(compiler):
            if openmp_works(compiler, compile_flags, link_flags):
                return compile_flags, link_flags
    print(SERIAL_WARNING.format(reason=reason, cure=cure), file=sys.stderr, flush=True)
    return [], []


class BuildExt(build_ext):
    """Runs Cython and adds the flags, both only when something is really compiled."""

    def build_extensions(self) -> None:
        """Called by setuptools once the compiler is known."""
        from Cython.Build import cythonize  # noqa: PLC0415  (an sdist needs no Cython)

        compile_flags, link_flags = find_openmp(self.compiler)
        cflags = os.environ.get("CFLAGS", "")
        # -g0: Python's own flags ask for debugging symbols, four fifths of the modules' size.
        # -ffp-contract=off: the same sums to the last bit on every machine, with or without fused
        # multiply-add; so does MSVC's /fp:precise.  -fno-trapping-math: nobody asks for exceptions
        # of floating-point numbers, and without them gcc makes SIMD of loops that compare; no
        # result depends on it.
        msvc = self.compiler.compiler_type == "msvc"
        compile_flags += (
            ["/O2", "/fp:precise"] if msvc else ["-g0", "-ffp-contract=off", "-fno-trapping-math"]
        )
        if not msvc and not re.search(r"(^|\s)-O", cflags):
            compile_flags += ["-O3"]  # ours come last: the level that CFLAGS may name must win
        self.rebuild_if_changed(repr((compile_flags, cflags, link_flags, DIRECTIVES)))
        # The C files go where the object files go: the source tree stays clean.
        translated = cythonize(
            self.extensions,
            compiler_directives=DIRECTIVES,
            build_dir=self.build_temp,
            force=self.force,
            cache="CYTHON_CACHE_DIR" in os.environ,  # where Cython keeps what it has translated
            # In processes where these are cheap and safe here: a spawned one would run this file.
            nthreads=(os.cpu_count() or 1) if multiprocessing.get_start_method() == "fork" else 0,
        )
        sources = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
            extension.extra_compile_args = compile_flags
            extension.extra_link_args = link_flags
        self.parallel = self.parallel or True  # as many C compilers as there are CPUs
        super().build_extensions()

    def rebuild_if_changed(self, settings: str) -> None:
        """Compare with the last build's settings: file times alone would miss a change of flags."""
        record = Path(self.build_temp, "build-settings.txt")
        if not record.exists() or record.read_text(encoding="utf-8") != settings:
            self.force = True
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(settings, encoding="utf-8")


def find_extensions() -> list[Extension]:
    """One extension for each ``.pyx`` of the package."""
    headers = [path.as_posix() for path in sorted(Path(PACKAGE).rglob("*.h"))]
    return [
        Extension(
            ".".join(path.with_suffix("").parts),
            [path.as_posix()],
            include_dirs=sorted({path.rpartition("/")[0] for path in headers}),
            depends=headers,
        )
        for path in sorted(Path(PACKAGE).rglob("*.pyx"))
    ]


if __name__ == "__main__":
    setup(ext_modules=find_extensions(), cmdclass={"build_ext": BuildExt})
