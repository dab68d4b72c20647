"""Qian and Liu's Table 2 and Table 3 on UD treebanks: rerankers of one set of candidate lists.

    python tests/benchmark_selection.py rows MODEL TREEBANK LISTS OUT [--rows base,quadratic,...]
    python tests/benchmark_selection.py table OUT ...
    python tests/benchmark_selection.py compare OUT kernel:tree tree

MODEL is a model that `tk-spacy train` made from TREEBANK (a folder of a UD release), test and all;
LISTS is its work directory, with train.kbest.conllu, dev.kbest.conllu and
test.kbest.conllu.  Each row runs in a process of its own, whose memory is told, and becomes a
line of JSON in OUT (replaced where it is there), with what is right in each sentence, by which
`compare` tells whether two rows differ (paired bootstrap over sentences).  Weights of the parsers'
scores are tuned on dev, as in the paper; test is scored once.  Options are those of the spaces;
kernel perceptrons read `add_gold` alone, and base, oracle and model none.

Rows: base, the parser's first tree; oracle, the best of each list; model, the model's reranker;
kernel:2, kernel:whole (of degree 2, over whole trees' vectors), kernel:4, kernel:8 and kernel:tree,
kernel perceptrons that learn from ten parts of the lists and vote; and the spaces of `tk-spacy
select`, each with ":l1" for the L1-regularised model that selected the features.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tk_spacy.evaluation.attachment import Scores, count_sentences, scores_from_counts
from tk_spacy.evaluation.bootstrap import bootstrap_counts
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.matching import matched_pairs
from tk_spacy.kbest.scores import filled
from tk_spacy.reranker.explicit_training import (
    GIB,
    SelectionSettings,
    train_explicit,
)
from tk_spacy.reranker.interpolation import TuningList, tune
from tk_spacy.reranker.model import Pair, Reranker
from tk_spacy.reranker.training import combine_lists, with_gold
from tk_spacy.selection.basic import BasicFeatures
from tk_spacy.selection.perceptron import Committee, PolynomialModel, TreeModel
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.timing import own_peak
from tk_spacy.workflows.model import main_source, open_model
from tk_spacy.workflows.train.treebanks import find_treebank

ROWS = (
    "base", "oracle", "model", "kernel:2", "kernel:whole", "kernel:4", "kernel:8", "kernel:tree",
    "templates",
    "quadratic", "biquadratic", "eighth", "tree", "slots", "kernel",
    "quadratic:l1", "biquadratic:l1", "tree:l1", "slots:l1", "kernel:l1",
)  # fmt: skip
NAMES = {
    "base": "the parser's own tree", "oracle": "best tree of each list, by heads",
    "model": "template kernel and manual features (`train`)",
    "kernel:2": "quadratic kernel, ten voting parts",
    "kernel:whole": "quadratic kernel of whole trees, ten voting parts",
    "kernel:4": "biquadratic kernel, ten voting parts",
    "kernel:8": "kernel of degree 8, ten voting parts",
    "kernel:tree": "dependency tree kernel, ten voting parts",
    "templates": "manual features, perceptron", "quadratic": "features of the quadratic kernel",
    "biquadratic": "features of the biquadratic kernel",
    "eighth": "features of the kernel of degree 8", "tree": "features of the tree kernel",
    "slots": "slot combinations, mined",
    "kernel": "slot combinations of the trained kernel, relearnt",
}  # fmt: skip
PARTS = ("dev", "test")
COMMITTEE = 10
"""Parts of the training lists that kernel perceptrons learn from apart."""

app = typer.Typer(add_completion=False)


class Data:
    """Right trees and lists of each part, completed as the model completes them."""

    def __init__(self, model: Path, treebank: Path, lists: Path) -> None:
        self.model = open_model(model).reranker
        inventory = LabelInventory()
        self.gold: dict[str, list[Sentence]] = {}
        self.pairs: dict[str, list[Pair]] = {}
        files = find_treebank(treebank).files
        for part in ("train", *PARTS):
            gold = self.gold[part] = load_treebank(files[part][0])
            file = lists / f"{part}.kbest.conllu"
            self.pairs[part] = list(
                matched_pairs(
                    file, gold, inventory=inventory, source=main_source(self.model), k=1000
                )
            )
        train = self.pairs["train"]
        if self.model.combiner is not None:
            learnt = [
                s.with_tree(g.heads, g.deprels)
                for g, (s, _) in zip(self.gold["train"], train, strict=True)
            ]
            _, more = combine_lists(learnt, [trees for _, trees in train], self.model.settings)
            self.pairs["train"] = [(s, trees) for (s, _), trees in zip(train, more, strict=True)]
        for part in PARTS:
            self.pairs[part] = [(s, self.model.completed(s, t)) for s, t in self.pairs[part]]

    def tuned(self, own: dict[str, list[Float64]]) -> dict[str, list[Float64]]:
        """The final scores of each part from a reranker's own, tuned on dev."""
        lists = self.pairs["dev"]
        combination = tune(
            [
                TuningList.make(gold, trees, scores)
                for gold, (_, trees), scores in zip(
                    self.gold["dev"], lists, own["dev"], strict=True
                )
            ],
            sources=lists[0][1].sources,
        )
        return {
            part: [
                combination.final(trees, scores)
                for (_, trees), scores in zip(self.pairs[part], own[part], strict=True)
            ]
            for part in PARTS
        }

    def scored(self, final: dict[str, list[Float64]]) -> dict[str, Any]:
        """UAS and LAS of the best candidates, all words and without punctuation."""
        found = {}
        for part in PARTS:
            chosen = [
                gold.with_tree(trees.heads[row], trees.deprels(row))
                for gold, (_, trees), row in zip(
                    self.gold[part],
                    self.pairs[part],
                    (int(scores.argmax()) for scores in final[part]),
                    strict=True,
                )
            ]
            counts = count_sentences(self.gold[part], chosen)
            scores: Scores = scores_from_counts(counts)
            found[part] = {
                name: getattr(scores, name) for name in ("uas", "las", "uas_nopunct", "las_nopunct")
            }
            found[part]["counts"] = counts.tolist()
        return found


def first_trees(trees: CandidateList) -> Float64:
    """Scores by which the base parser's tree is the best."""
    return (
        np.arange(len(trees)) == trees.base
        if trees.base is not None
        else filled(trees.scores[:, 0])
    )


def of_kernel(
    data: Data, kernel: str, options: dict[str, Any], threads: int | None
) -> dict[str, Any]:
    """A committee of kernel perceptrons; a candidate's own score is the number of its votes.

    options: `add_gold` alone is read.
    """
    pairs = data.pairs["train"]
    if options.get("add_gold"):
        pairs = [
            (s, with_gold(gold, trees))
            for gold, (s, trees) in zip(data.gold["train"], pairs, strict=True)
        ]
    basic = BasicFeatures.fit(data.model.schema, [s for s, _ in pairs], [t for _, t in pairs])
    arcs = {
        part: basic.encode_all([s for s, _ in of_part], [t for _, t in of_part])
        for part, of_part in {**data.pairs, "train": pairs}.items()
    }
    oracles = [
        trees.oracle(gold) for gold, (_, trees) in zip(data.gold["train"], pairs, strict=True)
    ]
    makes: dict[str, Callable[[], Any]] = {
        "tree": TreeModel,
        "whole": lambda: PolynomialModel(len(basic), 2, whole_trees=True),
        **{str(d): lambda d=d: PolynomialModel(len(basic), d) for d in (2, 4, 8)},
    }
    started = time.perf_counter()
    committee = Committee.train(
        makes[kernel], arcs["train"], oracles, parts=COMMITTEE, n_threads=threads
    )
    seconds = time.perf_counter() - started
    own: dict[str, list[Float64]] = {}
    speed = 0.0
    for part in PARTS:
        started = time.perf_counter()
        scores = committee.scores(arcs[part], n_threads=threads)
        speed = len(scores) / (time.perf_counter() - started)
        own[part] = [
            np.bincount(of_list.argmax(axis=1), minlength=of_list.shape[1]).astype(np.float64)
            for of_list in scores
        ]
    return {
        "seconds": seconds,
        "sentences_per_second": speed,
        "basic_features": len(basic),
        **data.scored(data.tuned(own)),
    }


def of_space(
    data: Data, space: str, learner: str, options: dict[str, Any], threads: int | None
) -> dict[str, Any]:
    """A reranker as `tk-spacy select` makes it."""
    started = time.perf_counter()
    found = train_explicit(
        data.model, data.gold["train"], data.pairs["train"], data.gold["dev"], data.pairs["dev"],
        SelectionSettings(space=space, learner=learner, **options),  # type: ignore[arg-type]
        n_threads=threads,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    own, speed = own_scores(data, found.reranker, threads)
    final = {
        part: [
            found.reranker.penalized(*pair, found.reranker.combined(pair[1], scores))
            for pair, scores in zip(data.pairs[part], own[part], strict=True)
        ]
        for part in PARTS
    }
    told = found.to_dict()
    steps = told.pop("seconds")
    told["iterations"] = len(told["iterations"])
    return {
        "seconds": seconds, "steps": steps, "sentences_per_second": speed, **told,
        **data.scored(final),
    }  # fmt: skip


def own_scores(
    data: Data, reranker: Reranker, threads: int | None
) -> tuple[dict[str, list[Float64]], float]:
    """A reranker's scores of each part, and sentences a second on test, encoding included."""
    own, speed = {}, 0.0
    for part in PARTS:
        started = time.perf_counter()
        own[part] = reranker.batch_scores(data.pairs[part], n_threads=threads)
        speed = len(own[part]) / (time.perf_counter() - started)
    return own, speed


@app.command()
def row(
    model: Path,
    treebank: Path,
    lists: Path,
    name: str,
    out: Path,
    options: Annotated[str, typer.Option(help="settings of SelectionSettings, JSON")] = "{}",
    threads: int | None = None,
) -> None:
    """One row; see above."""
    data = Data(model, treebank, lists)
    kind, _, more = name.partition(":")
    if kind == "base":
        found = data.scored({part: [first_trees(t) for _, t in data.pairs[part]] for part in PARTS})
    elif kind == "oracle":
        found = data.scored(
            {
                part: [
                    np.arange(len(trees)) == trees.oracle(gold)
                    for gold, (_, trees) in zip(data.gold[part], data.pairs[part], strict=True)
                ]
                for part in PARTS
            }
        )
    elif kind == "model":
        own, speed = own_scores(data, data.model, threads)
        found = {"sentences_per_second": speed, **data.scored(data.tuned(own))}
    elif kind == "kernel" and more not in ("", "l1"):
        found = of_kernel(data, more, json.loads(options), threads)
    else:
        found = of_space(data, kind, more or "perceptron", json.loads(options), threads)
    line = {"row": name, "treebank": treebank.name, "peak_bytes": own_peak(), **found}
    known = [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []
    known = [item for item in known if item["row"] != name]
    out.write_text("".join(json.dumps(item) + "\n" for item in [*known, line]), encoding="utf-8")
    for part in PARTS:  # what is right in each sentence stays in the file
        line[part] = {key: value for key, value in line[part].items() if key != "counts"}
    typer.echo(json.dumps(line))


@app.command()
def rows(
    model: Path,
    treebank: Path,
    lists: Path,
    out: Path,
    names: Annotated[str, typer.Option("--rows")] = ",".join(ROWS),
    options: str = "{}",
    threads: int | None = None,
) -> None:
    """Several rows, a process each."""
    for name in names.split(","):
        command = [sys.executable, __file__, "row", str(model), str(treebank), str(lists), name,
                   str(out), "--options", options]  # fmt: skip
        if threads is not None:
            command += ["--threads", str(threads)]
        subprocess.run(command, check=False)


@app.command()
def table(files: list[Path]) -> None:
    """Print the rows of one or several treebanks: UAS / LAS."""
    for file in files:
        lines = [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]
        typer.echo(f"\n{lines[0]['treebank']}\n")
        typer.echo(
            "| reranker | dev | test | test, no punctuation | training, s | features | templates "
            "| peak, GiB | sentences/s |"
        )
        typer.echo("|---|" + "---:|" * 8)
        for line in sorted(lines, key=lambda item: [*ROWS, item["row"]].index(item["row"])):
            dev, test = line["dev"], line["test"]
            cells = [
                _name(line["row"]), _attachment(dev["uas"], dev["las"]),
                _attachment(test["uas"], test["las"]),
                _attachment(test["uas_nopunct"], test["las_nopunct"]),
                _shown(line.get("seconds"), ",.0f"), _shown(line.get("features") or None, ","),
                _shown(line.get("templates") or None, ","), f"{line['peak_bytes'] / GIB:.2f}",
                _shown(line.get("sentences_per_second"), ",.0f"),
            ]  # fmt: skip
            typer.echo("| " + " | ".join(cells) + " |")


@app.command()
def compare(file: Path, first: str, second: str, part: str = "test") -> None:
    """Print what the second of two rows has more than the first one, UAS and LAS of all words."""
    lines = [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]
    counts = {line["row"]: np.array(line[part]["counts"], dtype=np.int64) for line in lines}
    for name in (first, second):
        if name not in counts:
            raise typer.BadParameter(f"{file} has no row {name}; it has {', '.join(counts)}")
    for metric in ("uas", "las"):
        found = bootstrap_counts([(counts[first], counts[second])], metric=metric)
        typer.echo(
            f"{metric.upper()} {found.difference:+.2f} ({found.low:+.2f} to {found.high:+.2f}), "
            f"p = {found.p_two_sided:.4f}"
        )


def _name(row: str) -> str:
    """A row in words."""
    space, _, learner = row.partition(":")
    if row in NAMES or learner != "l1":
        return NAMES[row]
    return f"{NAMES[space]}, weights of the L1 model"


def _attachment(uas: float, las: float) -> str:
    return f"{uas:.2f} / {las:.2f}"


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


if __name__ == "__main__":
    app()
