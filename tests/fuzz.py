"""Coverage-guided fuzzing of all that reads what strangers wrote: see `fuzz_targets`.

    python tests/fuzz.py [--seconds 60] [--seed 1] [--corpus FOLDER] [--findings FOLDER] [TARGET]

Each target runs for so many seconds, in a process of its own, under atheris, which
keeps the inputs that reach code no other has reached: `pip install atheris`.  Memory, the time of
one input and the inputs' length are bounded.  It ends with 1 where there was a finding, whose input
it keeps in the folder of findings; `python tests/fuzz.py TARGET --input FILE` runs one again.
With --corpus what is found new is kept, and the next run begins with it.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

INPUT_SECONDS = 60
"""Of one input, at most; also where other processes have all cores."""
MEMORY_MB = 4096
"""Of a target's process: address space beyond what it has when it begins."""
LONGEST = {"conllu": 4096, "kbest": 4096, "models": 8192, "config": 2048, "options": 64}


def run_target(arguments: argparse.Namespace) -> None:
    """Fuzz one target in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["tk_spacy"]):
        import fuzz_targets

        name = arguments.targets[0]
        one = fuzz_targets.target(name, arguments.models)
        one(b"")  # what is imported late is instrumented too
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = size + (MEMORY_MB << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    corpus = [str(arguments.corpus / name)] if arguments.corpus else []
    for place in corpus:
        Path(place).mkdir(parents=True, exist_ok=True)
    begun = arguments.models / "seeds" / name
    begun.mkdir(parents=True)
    for i, path in enumerate(fuzz_targets.seeds(name)):
        (begun / f"{i:03}").write_bytes(path.read_bytes())
    options = {
        "seed": arguments.seed,
        "timeout": INPUT_SECONDS,
        "max_total_time": int(arguments.seconds),
        "max_len": LONGEST[name],
        "artifact_prefix": f"{arguments.findings}/{name}-",
        "rss_limit_mb": 0,
        "print_final_stats": 1,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, *corpus, str(begun)], one)
    atheris.Fuzz()


def run_input(arguments: argparse.Namespace) -> int:
    """Run one input again."""
    import fuzz_targets

    data = arguments.input.read_bytes()
    fuzz_targets.target(arguments.targets[0], arguments.models)(data)
    return 0


def main() -> int:
    """Run the targets one after the other; 1 where there was a finding."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", default=[])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--input", type=Path)
    parser.add_argument("--models", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        run_target(arguments)
        return 0
    import fuzz_targets  # not before: in the target's process it is to be instrumented

    targets = arguments.targets or list(fuzz_targets.TARGETS)
    if unknown := set(targets) - set(fuzz_targets.TARGETS):
        parser.error(f"no targets: {', '.join(sorted(unknown))}; there are {fuzz_targets.TARGETS}")
    failed = []
    with tempfile.TemporaryDirectory(prefix="tk_fuzz_models_") as folder:
        models = Path(folder)
        if "models" in targets:
            fuzz_targets.make_models(models)
        if arguments.input:
            arguments.models = models
            return run_input(arguments)
        arguments.findings.mkdir(parents=True, exist_ok=True)
        for name in targets:
            command = [
                sys.executable, __file__, name, "--here", "--models", folder,
                "--seconds", str(arguments.seconds), "--seed", str(arguments.seed),
                "--findings", str(arguments.findings.resolve()),
                *(["--corpus", str(arguments.corpus.resolve())] if arguments.corpus else []),
            ]  # fmt: skip
            began = time.monotonic()
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False
            )
            told = done.stderr + done.stdout
            runs = re.findall(r"number_of_executed_units: (\d+)", told)
            features = re.findall(r"cov: (\d+)", told)
            took = time.monotonic() - began
            print(
                f"{name}: {runs[-1] if runs else 0} inputs, {features[-1] if features else 0} "
                f"places of code, {took:.0f} s: {'a finding' if done.returncode else 'no finding'}",
                flush=True,
            )
            if done.returncode:
                failed.append(name)
                print(told[-6000:], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
