"""The options of commands whose tasks a cluster can do, and what they do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from tk_spacy.cluster.connection import connected
from tk_spacy.parallel.executor import executing
from tk_spacy.utils.progress import Progress

CLUSTER_PANEL = "On a cluster"

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Do the work on a Dask cluster: tcp://HOST:PORT of its scheduler, or local:N for N "
        "worker processes of this machine. The results are the same. Needs tk-spacy[cluster].",
        show_default="processes of this machine",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
SharedFiles = Annotated[
    bool,
    typer.Option(
        "--shared-files/--no-shared-files",
        help="Whether the cluster's workers see the files of this machine under the same names; if "
        "not, files travel through the scheduler.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]


@contextmanager
def on_cluster(
    address: str | None, *, shared_files: bool = True, progress: Progress
) -> Iterator[None]:
    """Have tasks within done on a cluster, where there is an address."""
    with (
        connected(address, shared_files=shared_files, note=progress.note) as executor,
        executing(executor),
    ):
        yield
