"""`tk-spacy benchmark`: speed of kernel scoring beside straightforward loops."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import EXIT_ERROR, Json, Quiet, Shell, split
from tk_spacy.errors import OptionError
from tk_spacy.kbest.candidates import MAX_K
from tk_spacy.parallel.threads import MAX_THREADS, available_threads
from tk_spacy.utils.plotting import check_plot
from tk_spacy.workflows.benchmark.report import benchmark_tables, write_plot
from tk_spacy.workflows.benchmark.run import SIZES, benchmark

MAX_SIZE = 10_000_000
SIZES_TEXT = ",".join(map(str, SIZES))


def _numbers(text: str, option: str, most: int) -> tuple[int, ...]:
    """Positive numbers of a comma-separated option."""
    items = split(text)
    # int refuses thousands of digits.
    if not items or not all(i.isascii() and i.isdigit() and len(i) < 20 for i in items):
        raise OptionError(f"{option} is {text[:80]!r}, expected numbers like 1000,10000")
    numbers = tuple(dict.fromkeys(int(item) for item in items))
    if not all(1 <= number <= most for number in numbers):
        raise OptionError(f"{option} is {text!r}, expected numbers from 1 to {most:,}")
    return numbers


def benchmark_cli(
    treebank: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TREEBANK]",
            help="CoNLL-U file whose trees make the support, and the lists to score unless --text "
            "or --candidates do.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model whose support is used as it is.")
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="CoNLL-U file, with trees, of which lists are made.")
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="k-best file with the lists to score.")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(help="Numbers of support parts.", metavar="N,...", show_default=SIZES_TEXT),
    ] = None,
    threads: Annotated[str, typer.Option(help="Numbers of threads.", metavar="N,...")] = "1,2",
    repeat: Annotated[int, typer.Option(min=1, help="Timings of each thing.")] = 5,
    k: Annotated[int, typer.Option("--k", min=2, max=MAX_K, help="Trees a sentence.")] = 25,
    words: Annotated[int, typer.Option(min=1, help="Words of text to score.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is made up.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot of tokens/s over sizes, .png or .svg."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Time the kernel's compiled form, and straightforward loops on the same arcs.

    The loops compare each arc with each support part, property by property, in C, with SIMD and
    threads, and leave out what the paper's tricks leave out. All must give the same scores, else
    the exit code is 1.

        tk-spacy benchmark train.conllu --plot speed.svg

        tk-spacy benchmark --model model --candidates dev.kbest.conllu --threads 1
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard():
        if model and sizes:
            raise OptionError("--sizes has no effect with --model, whose support is used as it is")
        if text and candidates:
            raise OptionError("--text and --candidates both say what is scored; give one of them")
        numbers = _numbers(sizes or SIZES_TEXT, "--sizes", MAX_SIZE)
        of_threads = _numbers(threads, "--threads", MAX_THREADS)
        if max(of_threads) > available_threads():
            shell.warn(
                f"--threads {threads}: {available_threads()} can run at a time here, more tell "
                "nothing"
            )
        if plot:
            check_plot(plot)
        with progress_of(shell) as progress:
            result = benchmark(
                treebank,
                model=model,
                text=text,
                candidates=candidates,
                sizes=numbers,
                threads=of_threads,
                repeat=repeat,
                k=k,
                words=words,
                seed=seed,
                progress=progress,
            )
        shell.result(benchmark_tables(result), result.to_dict())
        if plot:
            write_plot(plot, result)
        wrong = [row for row in result.rows if not row.agrees]
        for row in wrong:
            shell.error(
                f"with {row.size:,} support parts and {row.threads} threads loop and compiled form "
                f"differ by {row.largest_error:.3g} times what is tolerated; this is a fault of "
                "tk-spacy: please report it"
            )
    if wrong:
        raise typer.Exit(EXIT_ERROR)
