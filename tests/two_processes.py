"""A pipeline that works in two processes after OpenMP has worked, as against in one alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from spacy.language import Language

from tk_spacy.treebank.conllu import Sentence, write_conllu

# The parent runs OpenMP regions of two threads before it forks: a child that then asked for two
# would wait for ever.
MAIN = """
import multiprocessing, sys, spacy
from tk_spacy.parallel.threads import count_threads

def main(pipeline, name, treebank):
    nlp = spacy.load(pipeline)
    nlp.get_pipe(name).n_threads = 2
    corpus = spacy.registry.readers.get("tk_spacy.ConlluCorpus.v1")(treebank)
    docs = lambda: (example.predicted for example in corpus(nlp))
    records = lambda doc: doc._.tk_reranker if doc.has_extension("tk_reranker") else None
    show = lambda doc: [[[t.head.i, t.dep_] for t in doc], records(doc)]
    alone = [show(nlp(doc)) for doc in docs()]
    count_threads(2)
    both = [show(doc) for doc in nlp.pipe(docs(), n_process=2, batch_size=3)]
    assert alone == both, "other predictions"
    changed = sum(record["changed"] for _, records in both for record in records or ())
    print(len(both), changed)

if __name__ == "__main__":
    *arguments, method = sys.argv[1:]
    multiprocessing.set_start_method(method)
    main(*arguments)
"""


def run_in_two(
    nlp: Language, name: str, sentences: Sequence[Sentence], folder: Path, *, method: str
) -> tuple[int, int]:
    """Documents that came out, alike in both ways, and trees that a reranker changed in them.

    name: of the component that is given two threads.  method: by which processes start.
    """
    nlp.to_disk(folder / "pipeline")
    write_conllu(folder / "some.conllu", sentences)
    main = folder / "main.py"
    main.write_text(MAIN, encoding="utf-8")
    arguments = [main, folder / "pipeline", name, folder / "some.conllu", method]
    # In a session of its own, so that hanging children end with it.
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            output, errors = run.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    assert run.returncode == 0, errors
    documents, changed = map(int, output.split())
    return documents, changed
