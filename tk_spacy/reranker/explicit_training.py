"""Training a reranker of features selected in kernel space, in the place of kernel and templates.

Source: Qian and Liu 2015: features are mined (section 3), an averaged perceptron learns their
weights anew (section 6.1.1), and the score is added to that of the base parser.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from tk_spacy.errors import UserError
from tk_spacy.kernels.hashed_kernel import without_parts
from tk_spacy.reranker.interpolation import TuningList, TuningMetric, tune
from tk_spacy.reranker.model import Pair, Reranker
from tk_spacy.selection.basic import BasicFeatures
from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.linear import train_linear
from tk_spacy.selection.model import SelectedFeatures
from tk_spacy.selection.selecting import Iteration, MiningSettings, select_features
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.progress import Progress

Learner = Literal["perceptron", "l1"]
LEARNERS: tuple[Learner, ...] = get_args(Learner)
GIB = 1 << 30
BYTES_OF_A_PATTERN = 256
"""What mining takes for one at most, with its counts, its tables' spare room and the copy that is
handed on."""


@dataclass(frozen=True, slots=True)
class Space:
    """A kernel's space of features.

    trees: of sub feature trees, else of sets of features of one arc.  degree: features of a
    pattern, at most.  step: the usual one of mining there.
    """

    name: str
    trees: bool
    degree: int


SPACES: Mapping[str, Space] = {
    space.name: space
    for space in (
        Space("quadratic", trees=False, degree=2),
        Space("biquadratic", trees=False, degree=4),
        Space("eighth", trees=False, degree=8),
        Space("tree", trees=True, degree=255),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionSettings:
    """How features are selected.

    space: of SPACES.  threshold: C.  iterations: M.  step, pretraining: see MiningSettings.
    max_order: features of a pattern, at most; None for the space's degree.
    min_count: basic features of fewer arcs are left out.  labelled: whether the first templates
    stand with DEPREL too.
    learner: "perceptron" learns the selected features' weights anew, "l1" keeps those of the
    L1-regularised model that selected them.  passes: of the perceptron.
    memory: bytes that the process may take, None for no limit.
    """

    space: str = "quadratic"
    threshold: float = 3.0
    iterations: int = 30
    step: float = 0.02
    pretraining: int = 5
    max_order: int | None = None
    min_count: int = 2
    labelled: bool = False
    learner: Learner = "perceptron"
    passes: int = 10
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.space not in SPACES:
            raise UserError(f"unknown space {self.space!r}; choose from {', '.join(SPACES)}")
        if self.learner not in LEARNERS:
            raise UserError(f"unknown learner {self.learner!r}; choose from {', '.join(LEARNERS)}")
        degree = SPACES[self.space].degree
        for name, value, least, most in (
            ("threshold", self.threshold, 0.0, 1e9),
            ("step", self.step, 1e-9, 1e9),
            ("iterations", self.iterations, 0, 10**6),
            ("pretraining", self.pretraining, 0, 10**6),
            ("max_order", degree if self.max_order is None else self.max_order, 1, degree),
            ("min_count", self.min_count, 1, 10**9),
            ("passes", self.passes, 1, 10**6),
        ):
            if not least <= value <= most:
                words = name.replace("_", " ")
                raise UserError(f"{words} is {value:g}; it must be from {least:g} to {most:g}")

    def mining(self, max_patterns: int) -> MiningSettings:
        """What mining is told."""
        space = SPACES[self.space]
        return MiningSettings(
            trees=space.trees,
            max_order=space.degree if self.max_order is None else self.max_order,
            threshold=self.threshold,
            step=self.step,
            iterations=self.iterations,
            pretraining=self.pretraining,
            max_patterns=max_patterns,
        )


@dataclass(frozen=True, slots=True)
class Selected:
    """What a selection gave and took.

    reranker: with explicit features and a combination.  features: selected, those of the model
    before the perceptron.  history: of mining.  stopped: why it ended before its time.
    seconds: wall time of each step by its name.  peak: of memory, in bytes.
    """

    reranker: Reranker
    features: int
    templates: int
    basic_features: int
    history: tuple[Iteration, ...]
    stopped: str | None
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "features": self.features,
            "templates": self.templates,
            "basic_features": self.basic_features,
            "iterations": [
                {"wrong": i.wrong, "survivors": i.survivors, "selected": i.selected,
                 "seconds": i.seconds}
                for i in self.history
            ],
            "stopped": self.stopped,
            "seconds": dict(self.seconds),
            "peak_bytes": self.peak,
        }  # fmt: skip


def train_explicit(
    before: Reranker,
    gold: Sequence[Sentence],
    pairs: Sequence[Pair],
    dev_gold: Sequence[Sentence],
    dev_pairs: Sequence[Pair],
    settings: SelectionSettings,
    *,
    metric: TuningMetric = "las",
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Selected:
    """A reranker as another one, with features selected from training lists in its kernel's place.

    before: gives schema and combiner.  gold, pairs: right trees and lists of training sentences,
    aligned, the lists from parsers that did not see them and completed as `before` completes lists.
    dev_gold, dev_pairs: the same, to tune the weights of the parsers' scores by `metric`.
    Raises UserError where no list has more than one tree.
    """
    progress = progress or Progress()
    seconds: dict[str, float] = {}
    started = time.perf_counter()

    def done(step: str) -> None:
        nonlocal started
        seconds[step] = time.perf_counter() - started
        started = time.perf_counter()
        progress.end(step)

    if all(len(trees) < 2 for _, trees in pairs):
        raise UserError(
            "no candidate list has more than one tree: there is nothing to choose from; give "
            "longer lists"
        )
    progress.begin("basic features")
    sentences, lists = [s for s, _ in pairs], [trees for _, trees in pairs]
    basic = BasicFeatures.fit(
        before.schema, sentences, lists, labelled=settings.labelled, min_count=settings.min_count
    )
    corpus = Corpus(basic.encode_all(sentences, lists), len(basic))
    oracles = [trees.oracle(right) for right, trees in zip(gold, lists, strict=True)]
    done("basic features")
    progress.begin("mining")
    found = select_features(
        corpus, oracles, settings.mining(_most_patterns(settings.memory)), n_threads=n_threads,
        progress=lambda number, _: progress.update("mining", number, settings.iterations),
    )  # fmt: skip
    selected = SelectedFeatures.make(basic, found.table, found.weights)
    done("mining")
    if settings.learner == "perceptron":
        progress.begin("perceptron")
        # Of all in the table: what the selected patterns grew from is a feature too.
        weights = train_linear(
            found.table, corpus, oracles, iterations=settings.passes,
            progress=lambda step, total: progress.update("perceptron", step, total),
        )  # fmt: skip
        learnt = SelectedFeatures.make(basic, found.table, weights)
        done("perceptron")
    else:
        learnt = selected
    made = replace(
        before,
        support=without_parts(before.support),
        weights=None,
        list_features=None,
        list_weights=None,
        kernel_map=None,
        explicit=learnt,
        combination=None,
    )
    progress.begin("tuning")
    own = made.batch_scores(dev_pairs, n_threads=n_threads)
    combination = tune(
        [
            TuningList.make(right, trees, scores)
            for right, (_, trees), scores in zip(dev_gold, dev_pairs, own, strict=True)
        ],
        sources=dev_pairs[0][1].sources,
        metric=metric,
    )
    done("tuning")
    return Selected(
        reranker=replace(made, combination=combination),
        features=len(selected),
        templates=selected.n_templates(),
        basic_features=len(basic),
        history=tuple(found.history),
        stopped=found.stopped,
        seconds=seconds,
        peak=peak_memory(),
    )


def peak_memory() -> int:
    """The most memory that this process has taken, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _most_patterns(memory: int | None) -> int:
    """What there is room for beside what is taken already."""
    if memory is None:
        return int(np.iinfo(np.int32).max)
    left = memory - peak_memory()
    if left < 1 << 20:
        raise UserError(
            f"the lists and their features take {peak_memory() / GIB:.2f} GiB already, of "
            f"{memory / GIB:g} GiB of memory; allow more, or raise min count"
        )
    return left // BYTES_OF_A_PATTERN
