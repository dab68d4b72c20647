"""`tk-spacy compress`: a smaller or faster form of a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.about import __version__
from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads, split
from tk_spacy.errors import OptionError
from tk_spacy.utils.plotting import check_plot
from tk_spacy.utils.tables import MEBIBYTE, Column, Table
from tk_spacy.workflows.compress import compress, curve
from tk_spacy.workflows.compression_curve import curve_table, write_plot

MAX_PARTS = 10**9


def _numbers(text: str | None, option: str) -> list[int] | None:
    """Positive numbers of a comma-separated option."""
    if text is None:
        return None
    items = split(text)
    if not items or not all(i.isascii() and i.isdigit() and len(i) < 10 for i in items):
        raise OptionError(f"{option} is {text[:80]!r}, expected numbers like 1000,10000")
    numbers = list(dict.fromkeys(int(item) for item in items))
    if not all(1 <= number <= MAX_PARTS for number in numbers):
        raise OptionError(f"{option} is {text!r}, expected numbers from 1 to {MAX_PARTS:,}")
    return numbers


def _single(numbers: list[int] | None, option: str) -> int | None:
    if numbers is not None and len(numbers) > 1:
        raise OptionError(f"{option} has several numbers, which only --curve takes")
    return None if numbers is None else numbers[0]


def compress_cli(
    model: Annotated[Path, typer.Argument(help="Directory that `tk-spacy train` made.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Directory of the model to write."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="N", help="Keep so many support parts, those of the most influence."),
    ] = None,
    hash_bits: Annotated[
        str | None,
        typer.Option(
            metavar="B",
            help="Replace the support parts by a table of 2^B weights of hashed combinations of "
            "properties, whose speed does not depend on their number; for the kernel of arcs.",
        ),
    ] = None,
    influence: Annotated[
        Path | None,
        typer.Option(
            metavar="LISTS",
            help="For --keep: measure a part's influence by its contributions to the trees of this "
            "k-best file, and fit the scale of the scores (no gold trees are needed).",
            show_default="by |weight| * sqrt(k(part, part))",
        ),
    ] = None,
    curve_lists: Annotated[
        Path | None,
        typer.Option(
            "--curve",
            metavar="LISTS",
            help="Write no model: measure forms of several sizes (--keep and --hash-bits take "
            "lists of numbers) on the trees of this k-best file.",
        ),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(metavar="DEV.conllu", help="The right trees of the sentences of --curve."),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="MODEL", help="With --curve: measure this model too; may be given repeatedly."
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Timings of each form.")] = 5,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot of the curve, .png or .svg."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is there already.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a model smaller or faster, by fewer support parts or by a hashed map.

    Either way the model goes on as any other, a pipeline with all its components; only its
    reranker's kernel is changed:

        tk-spacy compress model -o small --keep 5000

        tk-spacy compress model -o fast --hash-bits 18

    What it costs, on sentences with known trees and candidate lists (see `tk-spacy kbest`):

        tk-spacy compress model --curve dev.kbest.conllu --dev dev.conllu --plot curve.svg
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard():
        keeps, bits = _numbers(keep, "--keep"), _numbers(hash_bits, "--hash-bits")
        if influence and bits and not keeps:
            raise OptionError("--influence chooses what --keep keeps; it has no effect here")
        if curve_lists is None:
            if dev or plot or beside:
                raise OptionError("--dev, --beside and --plot belong to --curve; give its lists")
            if output is None:
                raise OptionError("no --output for the compressed model (or --curve)")
            if (keeps is None) == (bits is None):
                raise OptionError("give either --keep or --hash-bits")
            facts = compress(
                model,
                output,
                keep=_single(keeps, "--keep"),
                hash_bits=_single(bits, "--hash-bits"),
                influence_lists=influence,
                overwrite=overwrite,
            )
            shell.result([_compressed_table(facts)], facts)
            return
        if output is not None:
            raise OptionError("--curve writes no model; leave --output out")
        if dev is None:
            raise OptionError("--curve needs --dev, the right trees")
        if plot:
            check_plot(plot)
        if keeps is not None or bits is not None:
            # What is not asked for is left out.
            keeps, bits = keeps or [], bits or []
        with progress_of(shell) as progress:
            points = curve(
                model,
                curve_lists,
                dev,
                keeps=keeps,
                bits=bits,
                beside=beside or [],
                influence_lists=influence,
                repeat=repeat,
                threads=threads,
                progress=progress,
            )
        table = curve_table(
            points,
            title=f"Forms of {model} on {dev.name}",
            notes=(
                "UAS and LAS of all words, by the reranker alone and with the parser's score "
                f"(final); tokens/s: medians of {repeat}, from lists that are read, nothing kept.",
            ),
        )
        document = {
            "model": str(model),
            "curve": str(curve_lists),
            "dev": str(dev),
            "repeat": repeat,
            "points": [point.to_dict() for point in points],
            "tk_spacy": __version__,
        }
        shell.result([table], document)
        if plot:
            write_plot(plot, points)


def _compressed_table(facts: dict[str, Any]) -> Table:
    rows = []
    for name in ("before", "after"):
        of = facts[name]
        rows.append((name, of["support_parts"], of["hash_bits"], of["bytes"] / MEBIBYTE))
    return Table(
        title=f"Model {facts['output']}",
        columns=(
            Column("", "form", align="left"),
            Column("support parts", "support_parts"),
            Column("hash bits", "hash_bits"),
            Column("reranker's files, MiB", "mebibytes"),
        ),
        rows=tuple(rows),
    )
