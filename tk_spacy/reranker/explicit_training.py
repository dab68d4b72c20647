"""Training a reranker of features selected in kernel space, in the place of kernel and templates.

Source: Qian and Liu 2015: features are mined (section 3), an averaged perceptron learns their
weights anew (section 6.1.1), and the score is added to that of the base parser.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from tk_spacy.errors import SettingError, UserError
from tk_spacy.features.encoder import EncodedList
from tk_spacy.features.templates import FEATURE_TYPES
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kernels.hashed_kernel import without_parts
from tk_spacy.reranker.interpolation import TuningList, TuningMetric, tune
from tk_spacy.reranker.model import Pair, Reranker
from tk_spacy.reranker.training import dev_penalties, learn, prepare_lists, with_gold
from tk_spacy.selection.basic import BasicFeatures
from tk_spacy.selection.combinations.expanding import expand
from tk_spacy.selection.combinations.learning import mine_combinations, relearned
from tk_spacy.selection.combinations.model import CombinationModel
from tk_spacy.selection.combinations.slot_features import SlotFeatures, encode_lists
from tk_spacy.selection.combinations.slot_space import SlotSpace
from tk_spacy.selection.corpus import MAX_FEATURES, Corpus
from tk_spacy.selection.explicit import ExplicitModel
from tk_spacy.selection.linear import BYTES_OF_AN_OCCURRENCE, MOST_OCCURRENCES, train_linear
from tk_spacy.selection.model import SelectedFeatures
from tk_spacy.selection.selecting import Iteration, MiningSettings, select_features
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.timing import own_peak

Learner = Literal["perceptron", "l1"]
LEARNERS: tuple[Learner, ...] = get_args(Learner)
GIB = 1 << 30
BYTES_OF_A_PATTERN = 256
"""What mining takes for one at most, with its counts, its tables' spare room and the copy that is
handed on."""


_UNREAD: Mapping[str, tuple[str, ...]] = {
    "arcs": ("most",),
    "trees": ("most",),
    "slots": ("most", "max_order", "labelled"),
    "support": (
        "threshold", "iterations", "step", "pretraining", "max_order", "min_count", "labelled",
        "memory",
    ),
    "templates": (
        "threshold", "iterations", "step", "pretraining", "max_order", "min_count", "labelled",
        "memory", "most", "learner",
    ),
}  # fmt: skip
"""Settings that nothing reads, by the kind of space."""


@dataclass(frozen=True, slots=True)
class Space:
    """A space of features.

    kind: "arcs" for sets of features of one arc, "trees" for sub feature trees, "slots" for slot
    combinations of the template kernel's parts, "support" for those that a trained kernel gives the
    most weight to, "templates" for features that people thought of.
    degree: features of a pattern, at most, where one may choose.  usual: the same where the user
    does not choose; 0 for the degree.
    """

    name: str
    kind: Literal["arcs", "trees", "slots", "support", "templates"]
    help: str
    degree: int = 1
    usual: int = 0

    @property
    def unread(self) -> tuple[str, ...]:
        """Fields of SelectionSettings that have no effect in it."""
        return _UNREAD[self.kind]


SPACES: Mapping[str, Space] = {
    space.name: space
    for space in (
        Space("quadratic", "arcs", "of a polynomial kernel of degree 2", 2),
        Space("biquadratic", "arcs", "of degree 4", 4),
        Space("eighth", "arcs", "of degree 8", 8),
        Space("tree", "trees", "of the dependency tree kernel", 255, usual=3),
        Space("slots", "slots", "of the template kernel, mined"),
        Space("kernel", "support", "of the model's own kernel, the strongest"),
        Space("templates", "templates", "no kernel's: all manual features, for comparison"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionSettings:
    """How features are selected.

    space: of SPACES.  threshold: C.  iterations: M.  step, pretraining: see MiningSettings.
    max_order: features of a pattern, at most; None for what is usual in the space.
    most: combinations of a kernel's support, at most.
    add_gold: adds the gold tree to training lists that lack it.
    min_count: basic features of fewer arcs are left out.  labelled: whether the first templates
    stand with DEPREL too.
    learner: "perceptron" learns the selected features' weights anew, "l1" keeps those of the
    L1-regularised model that selected them.  passes: of the perceptron.
    memory: bytes that the process may take, None for no limit.
    """

    space: str = "quadratic"
    threshold: float = 3.0
    iterations: int = 10
    step: float = 0.001
    pretraining: int = 5
    max_order: int | None = None
    most: int = 1_000_000
    add_gold: bool = False
    min_count: int = 2
    labelled: bool = False
    learner: Learner = "perceptron"
    passes: int = 10
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.space not in SPACES:
            known = ", ".join(SPACES)
            raise SettingError("space", f"is {self.space!r}, which is unknown; choose from {known}")
        if self.learner not in LEARNERS:
            known = ", ".join(LEARNERS)
            raise SettingError(
                "learner", f"is {self.learner!r}, which is unknown; choose from {known}"
            )
        degree = SPACES[self.space].degree
        usual = {item.name: item.default for item in fields(self)}
        for name in SPACES[self.space].unread:
            if getattr(self, name) != usual[name]:
                raise SettingError(name, f"has no effect in the space {self.space}; leave it out")
        for name, value, least, most in (
            ("threshold", self.threshold, 0.0, 1e9),
            ("step", self.step, 1e-9, 1e9),
            ("iterations", self.iterations, 0, 10**6),
            ("pretraining", self.pretraining, 0, 10**6),
            ("max_order", self.order, 1, degree),
            ("most", self.most, 1, 10**9),
            ("min_count", self.min_count, 1, 10**9),
            ("passes", self.passes, 1, 10**6),
        ):
            if not least <= value <= most:
                raise SettingError(name, f"is {value:g}; it must be from {least:g} to {most:g}")

    @property
    def order(self) -> int:
        """Features of a pattern, at most."""
        space = SPACES[self.space]
        return (space.usual or space.degree) if self.max_order is None else self.max_order

    def mining(self, max_patterns: int) -> MiningSettings:
        """What mining is told."""
        space = SPACES[self.space]
        return MiningSettings(
            trees=space.kind == "trees",
            max_order=self.order,
            threshold=self.threshold,
            step=self.step,
            iterations=self.iterations,
            pretraining=self.pretraining,
            max_patterns=max_patterns,
        )


@dataclass(frozen=True, slots=True)
class Selected:
    """What a selection gave and took.

    reranker: with a combination.  parsers: the same with the parsers' scores alone, whose weights
    are tuned on the same lists: what the features add to.
    features, templates: that were selected, before the perceptron; 0 where none were.  weighted:
    those that have a weight after it.  basic_features: that they consist of.  history: of mining.
    stopped: why it ended before its time.  seconds: wall time of each step by its name.
    peak: memory, in bytes.
    """

    reranker: Reranker
    parsers: Reranker
    features: int
    weighted: int
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
            "weighted": self.weighted,
            "templates": self.templates,
            "basic_features": self.basic_features,
            "iterations": [asdict(item) for item in self.history],
            "stopped": self.stopped,
            "seconds": dict(self.seconds),
            "peak_bytes": self.peak,
        }


@dataclass(frozen=True, slots=True)
class Lists:
    """What is learnt from: sentences with right trees, their lists, and each list's oracle."""

    sentences: Sequence[Sentence]
    lists: Sequence[CandidateList]
    oracles: Sequence[int]


class Work:
    """The steps of a selection: their progress and time, and what they are to know.

    n_threads: None for all cores.
    """

    def __init__(
        self, settings: SelectionSettings, progress: Progress | None, n_threads: int | None
    ) -> None:
        self.settings, self.n_threads = settings, n_threads
        self.progress = progress or Progress()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """A step of the work; what it gives takes the number of parts done, and of all."""
        started = time.perf_counter()
        self.progress.begin(name)
        yield lambda done, total: self.progress.update(name, done, total)
        self.seconds[name] = time.perf_counter() - started
        self.progress.end(name)


@dataclass(frozen=True, slots=True)
class Learnt:
    """A model of selected features, how many they are, and how they were mined."""

    model: ExplicitModel
    features: int
    templates: int
    basic_features: int
    history: tuple[Iteration, ...] = ()
    stopped: str | None = None


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

    before: gives schema and combiner, and for the space "kernel" the support.  gold, pairs: right
    trees and lists of training sentences, aligned, the lists from parsers that did not see them and
    completed as `before` completes lists.  dev_gold, dev_pairs: the same, to tune the weights of
    the parsers' scores by `metric`, and penalties where `before` has some.
    Raises UserError where no list has more than one tree, or the model has no kernel.
    """
    work = Work(settings, progress, n_threads)
    if all(len(trees) < 2 for _, trees in pairs):
        raise UserError(
            "no candidate list has more than one tree: there is nothing to choose from; give "
            "longer lists"
        )
    sentences = [s.with_tree(g.heads, g.deprels) for g, (s, _) in zip(gold, pairs, strict=True)]
    lists = [trees for _, trees in pairs]
    if settings.add_gold:
        lists = [with_gold(s, trees) for s, trees in zip(sentences, lists, strict=True)]
    oracles = [trees.oracle(s) for s, trees in zip(sentences, lists, strict=True)]
    learnt = Lists(sentences, lists, oracles)
    kind = SPACES[settings.space].kind
    found: Learnt | None = None
    if kind == "templates":
        made = _of_templates(before, learnt, work)
    else:
        ways = {"slots": _of_slots, "support": _of_support}
        found = ways.get(kind, _of_arcs)(before, learnt, work)
        made = replace(without_scores(before), explicit=found.model)
    with work.step("tuning"):
        made, parsers = (
            _tuned(one, dev_gold, dev_pairs, metric=metric, n_threads=n_threads)
            for one in (made, without_scores(before))
        )
    return Selected(
        reranker=made,
        parsers=parsers,
        features=found.features if found else 0,
        weighted=_weighted(made),
        templates=found.templates if found else 0,
        basic_features=found.basic_features if found else 0,
        history=found.history if found else (),
        stopped=found.stopped if found else None,
        seconds=work.seconds,
        peak=own_peak(),
    )


def without_scores(model: Reranker) -> Reranker:
    """A reranker without anything that scores trees but the parsers and the combiner."""
    return replace(
        model,
        support=without_parts(model.support),
        examples=None,
        weights=None,
        list_features=None,
        list_weights=None,
        kernel_map=None,
        explicit=None,
    )


def _tuned(
    made: Reranker,
    gold: Sequence[Sentence],
    pairs: Sequence[Pair],
    *,
    metric: TuningMetric,
    n_threads: int | None,
) -> Reranker:
    """The reranker with weights of the parsers' scores, and penalties where it has some."""
    own = made.batch_scores(pairs, n_threads=n_threads)
    combination = tune(
        [
            TuningList.make(right, trees, scores)
            for right, (_, trees), scores in zip(gold, pairs, own, strict=True)
        ],
        sources=pairs[0][1].sources,
        metric=metric,
    )
    # What was calibrated, and penalised, were other scores.
    made = replace(made, combination=combination, calibration=None, cascade=None)
    if not made.penalties.weights:
        return made
    right = [s.with_tree(g.heads, g.deprels) for g, (s, _) in zip(gold, pairs, strict=True)]
    lists = [trees for _, trees in pairs]
    return replace(made, penalties=dev_penalties(made, right, lists, n_threads=n_threads))


def _weighted(made: Reranker) -> int:
    """The features that have a weight."""
    if made.explicit is not None:
        return len(made.explicit)
    return 0 if made.weights is None else int(np.count_nonzero(made.weights))


def _of_arcs(before: Reranker, learnt: Lists, work: Work) -> Learnt:
    """Patterns of Qian and Liu's basic features, of single arcs or of trees."""
    settings = work.settings
    with work.step("basic features"):
        basic = BasicFeatures.fit(
            before.schema, learnt.sentences, learnt.lists,
            labelled=settings.labelled, min_count=settings.min_count,
        )  # fmt: skip
        _check_size(len(basic))
        corpus = Corpus(
            basic.encode_all(learnt.sentences, learnt.lists),
            len(basic),
            trees=SPACES[settings.space].kind == "trees",
        )
    with work.step("mining") as report:
        found = select_features(
            corpus, learnt.oracles, settings.mining(_most_patterns(settings.memory)),
            n_threads=work.n_threads, progress=lambda at, _: report(at, settings.iterations),
        )  # fmt: skip
        model = selected = SelectedFeatures.make(basic, found.table, found.weights)
    if settings.learner == "perceptron":
        with work.step("perceptron") as report:
            # Of all in the table: what the selected patterns grew from is a feature too.
            weights = train_linear(
                found.table, corpus, learnt.oracles, iterations=settings.passes,
                most=_most_occurrences(settings.memory), n_threads=work.n_threads, progress=report,
            )  # fmt: skip
            model = SelectedFeatures.make(basic, found.table, weights)
    return Learnt(
        model, len(selected), selected.n_templates(), len(basic), tuple(found.history),
        found.stopped,
    )  # fmt: skip


def _of_slots(before: Reranker, learnt: Lists, work: Work) -> Learnt:
    """Slot combinations of the parts that the model's kernel compares."""
    settings = work.settings
    space = SlotSpace.default(before.settings.kernel_parts, before.settings.skip)
    if not space.names:
        raise UserError("the model's kernel compares no parts; train one with kernel_parts")
    with work.step("basic features"):
        encoded = encode_lists(before.schema, space, learnt.sentences, learnt.lists)
        features = SlotFeatures.fit(before.schema, space, encoded, min_count=settings.min_count)
        _check_size(len(features))
    with work.step("mining") as report:
        model, found = mine_combinations(
            features, encoded, learnt.oracles, settings.mining(_most_patterns(settings.memory)),
            n_threads=work.n_threads, progress=lambda at, _: report(at, settings.iterations),
        )  # fmt: skip
        size, templates = len(model), model.n_templates()
    return Learnt(
        _relearned(model, encoded, learnt, work), size, templates, len(features),
        tuple(found.history), found.stopped,
    )  # fmt: skip


def _of_support(before: Reranker, learnt: Lists, work: Work) -> Learnt:
    """The combinations that the model's kernel gives the most weight to."""
    if not len(before.support):
        raise UserError(
            "the model has no support parts, whose combinations could be listed; give one with a "
            "kernel that is neither compressed to a hashed map nor replaced by selected features"
        )
    with work.step("mining"):
        model = expand(
            before.support, before.schema, most=work.settings.most, n_threads=work.n_threads
        )
    encoded = []
    if work.settings.learner == "perceptron":
        encoded = encode_lists(before.schema, model.space, learnt.sentences, learnt.lists)
    return Learnt(
        _relearned(model, encoded, learnt, work), len(model), model.n_templates(), len(model.keys)
    )


def _relearned(
    model: CombinationModel, encoded: Sequence[EncodedList], learnt: Lists, work: Work
) -> CombinationModel:
    if work.settings.learner != "perceptron":
        return model
    with work.step("perceptron") as report:
        new = relearned(
            model, encoded, learnt.oracles, iterations=work.settings.passes, progress=report
        )
        # Those that the perceptron never moved are left out.
        return new.strongest(max(1, sum(int(np.count_nonzero(t.weights)) for t in new.types)))


def _of_templates(before: Reranker, learnt: Lists, work: Work) -> Reranker:
    """All manual features, learnt by the same perceptron."""
    settings = replace(
        before.settings, kernel_parts=(), manual_parts=FEATURE_TYPES, list_features=(),
        competitor="best", iterations=work.settings.passes, budget=None, count_single=False,
        add_gold=False, shuffle_seed=None,
    )  # fmt: skip
    with work.step("perceptron") as report:
        items = prepare_lists(before.schema, learnt.sentences, learnt.lists, settings)
        made, _ = learn(
            before.schema, items, settings, perceptron=True, n_threads=work.n_threads,
            progress=report,
        )  # fmt: skip
    return replace(made, combiner=before.combiner, about=before.about)


def _check_size(n_features: int) -> None:
    """Raises UserError for more basic features than can be numbered."""
    if n_features > MAX_FEATURES:
        raise UserError(
            f"there are {n_features:,} basic features, and {MAX_FEATURES:,} can be numbered; raise "
            "the least count (min_count)"
        )


def _most_occurrences(memory: int | None) -> int:
    """What a perceptron may write down in half of what is left, so that weights have room too."""
    if memory is None:
        return MOST_OCCURRENCES
    return min(MOST_OCCURRENCES, max(0, memory - own_peak()) // (2 * BYTES_OF_AN_OCCURRENCE))


def _most_patterns(memory: int | None) -> int:
    """What there is room for beside what is taken already."""
    if memory is None:
        return int(np.iinfo(np.int32).max)
    left = memory - own_peak()
    if left < 1 << 20:
        raise UserError(
            f"the lists and their features take {own_peak() / GIB:.2f} GiB already, of "
            f"{memory / GIB:.3g} GiB of memory; allow more memory (memory), "
            "or raise the least count (min_count)"
        )
    return left // BYTES_OF_A_PATTERN
