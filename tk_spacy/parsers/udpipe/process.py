"""The process in which UDPipe trains: run as a script, it imports nothing of this package.

UDPipe holds the interpreter for the whole training and writes its progress to the process's
standard error; in a process of its own it stops no other thread, writes nothing on the user's
screen, and can be ended at any time.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

# <sys/personality.h>: what personality() is now; ADDR_NO_RANDOMIZE.
_ASK, _NOT_RANDOM = 0xFFFFFFFF, 0x0040000


def main(data: Path, model: Path, parent: int) -> None:
    """Train on what `trainer.run_trainer` wrote to `data`, and write the model's bytes.

    parent: process id without which this process is to end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's matter
    _end_with(parent)
    from ufal import udpipe  # noqa: PLC0415

    task = json.loads(data.read_text(encoding="utf-8"))
    error = udpipe.ProcessingError()
    made = udpipe.Trainer.train(
        "morphodita_parsito",
        _sentences(udpipe, task["train"]),
        _sentences(udpipe, task["dev"]),
        "none",
        task["tagger"],
        task["parser"],
        error,
    )
    if error.occurred() or not made:
        sys.exit(f"UDPipe: {error.message or 'no model'}")
    model.write_bytes(bytes(made))


def fix_addresses() -> None:
    """Run this script anew at addresses that are the same in every run, where Linux allows it.

    What UDPipe learns depends on where its memory lies: of 100 trainings on the same sentences some
    six ended in another model.  Where the system refuses (some containers), it stays so.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.personality.argtypes = [ctypes.c_ulong]
    now = libc.personality(_ASK)
    if now == -1 or now & _NOT_RANDOM or libc.personality(now | _NOT_RANDOM) == -1:
        return
    os.execv(sys.executable, [sys.executable, *sys.argv])


def _end_with(parent: int) -> None:
    """End when the parent does, whatever ends it: UDPipe lets no Python thread look after it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        sys.exit("the parent process is gone")


def _sentences(udpipe: Any, columns: list[list[list[Any]]]) -> Any:
    result = udpipe.Sentences()
    for *words, heads, deprels in columns:
        sentence = udpipe.Sentence()
        for form, lemma, upos, xpos, feats in zip(*words, strict=True):
            word = sentence.addWord(form)
            word.lemma, word.upostag, word.xpostag, word.feats = lemma, upos, xpos, feats
        for number, (head, deprel) in enumerate(zip(heads, deprels, strict=True), start=1):
            sentence.setHead(number, head, deprel)
        result.push_back(sentence)
    return result


if __name__ == "__main__":
    fix_addresses()
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
