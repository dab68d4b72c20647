"""Running UDPipe's trainer, of tokenizers, taggers and parsers, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parsers.udpipe import process
from tk_spacy.utils.leftovers import temporary_directory

Columns = list[list[Any]]
"""A sentence: FORM, LEMMA, UPOS, XPOS, FEATS (empty for "_"), HEAD and DEPREL, each of n words."""

_ITERATION = re.compile(r"(?:Iteration|Epoch) (\d+)[:,] (.*)")


def run_trainer(
    train: Sequence[Columns | str],
    dev: Sequence[Columns | str],
    *,
    tokenizer: str = "none",
    tagger: str = "none",
    parser: str = "none",
    what: str,
    on_iteration: Callable[[int, str], None],
) -> bytes:
    """What UDPipe learns from the sentences, as its own bytes.

    train: sentences as columns, or as CoNLL-U, which tells how their text is written.
    dev: may be empty.  tokenizer, tagger, parser: UDPipe's options, "none" for none of it.
    what: is trained, for messages.
    on_iteration: called after each pass with its number, from 1, and what UDPipe says of it.

    Raises UserError where UDPipe cannot train on this, RuntimeError where its process was killed.
    """
    methods = {"tokenizer": tokenizer, "tagger": tagger, "parser": parser}
    task = {**methods, "train": train, "dev": dev}
    with temporary_directory("udpipe") as folder:
        data, model = folder / "task.json", folder / "model.udpipe"
        data.write_text(json.dumps(task), encoding="utf-8")
        _run(data, model, what, on_iteration)
        return model.read_bytes()


def _run(data: Path, model: Path, what: str, on_iteration: Callable[[int, str], None]) -> None:
    # As a script, so that it does not load this package, but with the modules that this one finds.
    command = [sys.executable, process.__file__, str(data), str(model), str(os.getpid())]
    paths = os.pathsep.join(path for path in sys.path if path)
    last = ""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
    )
    try:
        assert child.stderr is not None
        for line in child.stderr:
            last = line.strip() or last
            if (match := _ITERATION.match(line)) is not None:
                on_iteration(int(match[1]), match[2])
        code = child.wait()
    finally:
        child.kill()
        child.wait()
        if child.stderr is not None:
            child.stderr.close()
    if code < 0:
        raise RuntimeError(
            f"the process that trained {what} was killed by signal {-code} (most often: out of "
            "memory)"
        )
    if code or not model.is_file():
        raise UserError(f"{what} cannot be trained: {last or 'no reason given'}")
