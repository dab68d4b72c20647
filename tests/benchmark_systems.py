"""Ours beside others trained on the same treebank: gold words and sentences, all else predicted.

    python tests/benchmark_systems.py udpipe TREEBANK OUT         UDPipe 1 with its defaults
    python tests/benchmark_systems.py spacy TREEBANK OUT          spaCy's own (--minutes at most)
    python tests/benchmark_systems.py count TREEBANK NAME FILE    counts of a system's parses
    python tests/benchmark_systems.py table [--against udpipe1,spacy] [--metric las]

TREEBANK is a folder of a UD release.  OUT is where models and parses (OUT.dev.conllu,
OUT.test.conllu) go.  `count` keeps in docs/counts/TREEBANK.tsv how many heads and labelled arcs of
each sentence are right, so that systems that were trained on different days can be compared with
a paired bootstrap; no text is kept.  `table` prints the table of docs/results.md.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from numpy.typing import NDArray
from spacy.tokens import Doc
from ufal import udpipe

from tk_spacy.evaluation.attachment import SentenceCounts, aligned, count_pairs
from tk_spacy.evaluation.bootstrap import bootstrap_counts
from tk_spacy.evaluation.tags import score_tags
from tk_spacy.features.schema import distrusts_xpos
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.treebank.data_notes import FilledColumns
from tk_spacy.workflows.train.treebanks import find_treebank

COUNTS = Path(__file__).parents[1] / "docs" / "counts"
CONFIG = Path(__file__).with_name("spacys_own.cfg")
PARTS = ("dev", "test")
TAGS = ("upos", "ufeats", "lemmas")
XPOS = re.compile(r"^((?:[^\t\n]*\t){4})[^\t\n]*", re.M)
"""The fifth column of a line, and in a group what is before it."""

app = typer.Typer(add_completion=False)


def files_of(treebank: Path) -> dict[str, Path]:
    """Its train, dev and test file."""
    parts = find_treebank(treebank).files
    return {name: files[0] for name, files in parts.items()}


def xpos_is_useless(files: Mapping[str, Path]) -> bool:
    """Whether XPOS is empty, or stands in train alone or has thousands of values, as in Bosque.

    UDPipe's tagger would not come to an end on these.
    """
    train, dev = load_treebank(files["train"]), load_treebank(files["dev"])
    return "XPOS" not in FilledColumns(train) or distrusts_xpos(train, dev)


def tell_costs(start: float) -> None:
    """Wall time, and the peak memory of this process and its children."""
    peak = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    typer.echo(f"trained in {time.perf_counter() - start:.0f} s, at most {peak / 1024:.0f} MiB")


@app.command("udpipe")
def train_udpipe(treebank: Path, out: Path) -> None:
    """Train UDPipe 1 with its default options, dev held out, and parse dev and test.

    Without XPOS where it is of no use, as ours.
    """
    files, error, start = files_of(treebank), udpipe.ProcessingError(), time.perf_counter()
    blank = xpos_is_useless(files)

    def read(name: str) -> udpipe.Sentences:
        reader, found = udpipe.InputFormat.newConlluInputFormat(), udpipe.Sentences()
        text = files[name].read_text(encoding="utf-8")
        reader.setText(XPOS.sub(r"\1_", text) if blank else text)
        while True:
            sentence = udpipe.Sentence()
            if not reader.nextSentence(sentence, error):
                return found
            found.push_back(sentence)

    default = udpipe.Trainer.DEFAULT
    content = udpipe.Trainer.train(
        "morphodita_parsito", read("train"), read("dev"), "none", default, default, error
    )
    if error.occurred():
        sys.exit(error.message)
    stored = Path(f"{out}.udpipe")
    stored.write_bytes(bytes(content))
    tell_costs(start)
    model, writer = udpipe.Model.load(str(stored)), udpipe.OutputFormat.newConlluOutputFormat()
    for part in PARTS:
        written = []
        for sentence in read(part):
            if not model.tag(sentence, udpipe.Model.DEFAULT, error):
                sys.exit(error.message)
            if not model.parse(sentence, udpipe.Model.DEFAULT, error):
                sys.exit(error.message)
            written.append(writer.writeSentence(sentence))
        Path(f"{out}.{part}.conllu").write_text("".join(written), encoding="utf-8")


@app.command("spacy")
def train_spacy(
    treebank: Path,
    out: Path,
    minutes: Annotated[float | None, typer.Option(help="stop then, with the best so far")] = None,
) -> None:
    """Train spaCy's own pipeline by `spacy train`, and parse dev and test."""
    files, start = files_of(treebank), time.perf_counter()
    more = []
    if xpos_is_useless(files):
        parts = ("tok2vec", "morphologizer", "trainable_lemmatizer", "parser")
        more = ["--nlp.pipeline", json.dumps(parts)]  # its tagger has nothing to learn
    command = [
        sys.executable, "-m", "spacy", "train", str(CONFIG), "--output", f"{out}.spacy",
        "--paths.train", str(files["train"]), "--paths.dev", str(files["dev"]), *more,
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, timeout=None if minutes is None else 60 * minutes)
    except subprocess.TimeoutExpired:
        typer.echo(f"stopped after {minutes:g} minutes")
    tell_costs(start)
    nlp = spacy.load(Path(f"{out}.spacy", "model-best"))
    for part in PARTS:
        sentences = load_treebank(files[part])
        docs = [
            Doc(nlp.vocab, words=list(s.forms), sent_starts=[i == 0 for i in range(len(s))])
            for s in sentences
        ]
        parsed = [with_doc(s, doc) for s, doc in zip(sentences, nlp.pipe(docs), strict=True)]
        write_conllu(f"{out}.{part}.conllu", parsed)


def with_doc(sentence: Sentence, doc: Doc) -> Sentence:
    """The words of a sentence with what a pipeline says of them."""
    heads = [0 if token.head is token or token.head.i == token.i else token.head.i + 1
             for token in doc]  # fmt: skip
    blank = Sentence.from_columns(
        forms=sentence.forms,
        lemmas=[token.lemma_ or "_" for token in doc],
        upos=[token.pos_ or "_" for token in doc],
        xpos=[token.tag_ or "_" for token in doc],
        feats=[str(token.morph) or "_" for token in doc],
    )
    labels = [
        "root" if head == 0 else token.dep_ or "_" for token, head in zip(doc, heads, strict=True)
    ]
    return blank.with_tree(heads, labels, single_root=False)


@app.command()
def count(
    treebank: Path, name: str, file: Path, part: Annotated[str, typer.Option()] = "test"
) -> None:
    """Keep the counts of a system's parses of a part; another file of that name is replaced."""
    gold, parsed = load_treebank(files_of(treebank)[part]), load_treebank(file)
    table = count_pairs(aligned(gold, parsed))
    tags = score_tags(gold, parsed)
    fields = SentenceCounts._fields
    words, heads, labelled = (
        table[:, fields.index(column)] for column in ("words", "heads", "labelled")
    )
    target = COUNTS / f"{treebank.name}.{part}.tsv"
    lines = target.read_text(encoding="utf-8").splitlines() if target.exists() else []
    rows = dict(line.split("\t", 1) for line in lines)
    rows["words"] = "\t\t\t" + " ".join(map(str, words))
    rows[name] = "\t".join(
        [
            *(f"{getattr(tags, tag):.2f}" for tag in TAGS),
            " ".join(f"{h}:{label}" for h, label in zip(heads, labelled, strict=True)),
        ]
    )
    target.parent.mkdir(exist_ok=True)
    target.write_text("".join(f"{key}\t{row}\n" for key, row in rows.items()), encoding="utf-8")
    typer.echo(
        f"{name}: UAS {100 * heads.sum() / words.sum():.2f}, "
        f"LAS {100 * labelled.sum() / words.sum():.2f}, "
        + ", ".join(f"{tag} {getattr(tags, tag):.2f}" for tag in TAGS)
    )


def read_counts(file: Path) -> dict[str, tuple[list[str], NDArray[np.int64]]]:
    """The tags' scores and the table of `SentenceCounts` of each system in a file."""
    rows = dict(line.split("\t", 1) for line in file.read_text(encoding="utf-8").splitlines())
    fields = SentenceCounts._fields
    words = np.array(rows.pop("words").split(), dtype=np.int64)
    found = {}
    for name, row in rows.items():
        *tags, cells = row.split("\t")
        table = np.zeros((len(words), len(fields)), dtype=np.int64)
        pairs = np.array([cell.split(":") for cell in cells.split()], dtype=np.int64)
        table[:, fields.index("sentences")] = 1
        table[:, fields.index("words")] = words
        table[:, [fields.index("heads"), fields.index("labelled")]] = pairs
        found[name] = tags, table
    return found


@app.command()
def table(
    against: Annotated[str, typer.Option(help="systems to compare with")] = "udpipe1,spacy",
    part: Annotated[str, typer.Option()] = "test",
) -> None:
    """Print all systems by treebank, and the differences of LAS over all treebanks pooled."""
    known = {
        path.name.split(".")[0]: read_counts(path) for path in sorted(COUNTS.glob(f"*.{part}.tsv"))
    }
    names = list(dict.fromkeys(name for systems in known.values() for name in systems))
    others = [name for name in against.split(",") if name in names]
    typer.echo("| treebank | " + " | ".join(names) + " |")
    typer.echo("|---|" + "---:|" * len(names))
    for treebank, systems in known.items():
        cells = [scores(systems[name][1]) if name in systems else "-" for name in names]
        typer.echo(f"| {treebank.removeprefix('UD_')} | " + " | ".join(cells) + " |")
    for name in names:
        for other in others:
            both = [s for s in known.values() if name in s and other in s]
            if name in others or not both:
                continue
            means = [scores_of(s[name][1])[1] - scores_of(s[other][1])[1] for s in both]
            worst = max(
                bootstrap_counts([(s[other][1], s[name][1])], metric="las").p_one_sided
                for s in both
            )
            pooled = bootstrap_counts([(s[other][1], s[name][1]) for s in both], metric="las")
            typer.echo(
                f"{name} - {other}: {np.mean(means):+.2f} LAS in the mean of {len(both)} "
                f"treebanks, p = {pooled.p_one_sided:.4f} pooled, at most {worst:.4f} on one"
            )


def scores_of(counts: NDArray[np.int64]) -> tuple[float, float]:
    """UAS and LAS."""
    sums = SentenceCounts(*counts.sum(axis=0).tolist())
    return 100 * sums.heads / sums.words, 100 * sums.labelled / sums.words


def scores(counts: NDArray[np.int64]) -> str:
    """Both, as the table has them."""
    return "{:.2f} / {:.2f}".format(*scores_of(counts))


if __name__ == "__main__":
    app()
