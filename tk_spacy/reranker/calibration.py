"""How sure the final choice is: probabilities that a tree, its heads and its labels are right.

A reranker's scores choose well but are no probabilities: they were learnt with a margin, and the
right tree need not be in the list at all.  So what speaks for the chosen tree is looked at in
several ways, each of which weighs the candidates: the final scores and the arc combiner's, as a
softmax at several temperatures, the parsers' own scores, and how many parsers have the tree as
their own.  The share of the candidates that agree with the chosen one in a word's head (or label,
or in all) is one estimate for each; a logistic model of the log-odds of these shares gives the
probability.  It is learnt from lists that the reranker did not learn from.

These are lists of training sentences by parsers that learnt from a part of the treebank alone.  The
parsers of the model are better, and its probabilities would be too low: where there are lists by
them (of dev), those of the chosen tree, its heads and its labels are adjusted to what is right
there, by scale and bias of their log-odds.

Sources: Platt 1999 (a logistic model over scores); Mejer and Crammer 2012, "Are You Sure?
Confidence in Prediction of Dependency Tree Edges" (agreement of weighted k-best trees).  Ours
differs: several weightings in one model, and the tree's model sees the words' probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.arcs import TEMPERATURES, candidate_weights
from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.scores import filled, mean_deviation
from tk_spacy.parallel.blas import one_thread
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64

Bools = NDArray[np.bool_]

FINAL = "final"
PARSERS, VOTES = "parsers", "votes"
MOST_OF_CONFIDENCE = 1e13
"""Of a stored weight: what `Logistic.fit` may give a feature that is nearly always the same."""
KINDS = ("head", "label", "tree")
"""Of probabilities."""
OF_MODEL = "model"
"""The one feature that a probability is adjusted by: the log-odds of what the model said."""
LEAST_ADJUSTED = 20
"""Right ones, and wrong ones, among those that a kind of probability is adjusted to."""
HEADS, LABELS = "heads", "labels"
"""What the tree's model sees beside the shares: the products of its words' probabilities."""
LEAST_SCALE = 1e-100
"""Of a stored one: what is divided by it stays a number."""
FLOOR = 0.001
"""Added to a share and to what is missing to 1, so that log-odds are finite."""
PENALTY = 1.0
"""Inverse strength of the logistic models' L2 penalty, as scikit-learn counts it."""
OTHER_TEMPERATURES = tuple(np.round(np.logspace(-1.5, 1.5, 31), 4).tolist())
MISSING = (
    "confidence is not calibrated: that needs scikit-learn; install it with "
    "`pip install 'tk-spacy[confidence]'`"
)


def can_fit() -> bool:
    """Whether scikit-learn is there, with which calibrations are fitted; using one needs none."""
    return find_spec("sklearn") is not None


class HeldOut(NamedTuple):
    """A list that the scoring reranker did not learn from.

    gold: with the right tree.  candidates: completed.  final: float64[k], the final scores.
    """

    gold: Sentence
    candidates: CandidateList
    final: Float64


@dataclass(frozen=True, slots=True, eq=False)
class Confidence:
    """Probabilities of one choice.

    tree: that all heads and labels are right.  heads, labels: float64[n], that a word's head, and
    its label, is right.  trees: float64[k], of each candidate, the chosen one's being `tree`; the
    rest to 1 is the probability that no candidate is right.
    """

    tree: float
    heads: Float64
    labels: Float64
    trees: Float64

    @classmethod
    def joined(cls, pieces: Sequence[Confidence]) -> Confidence:
        """Of a sentence whose pieces were chosen apart (see `kbest.long_sentences`).

        The pieces are independent of each other, and only the joined tree is a candidate.  A word
        by which a piece hangs on the first one is as sure as that it is the piece's root.
        """
        if len(pieces) == 1:
            return pieces[0]
        tree = float(np.prod([piece.tree for piece in pieces]))
        return cls(
            tree,
            np.concatenate([piece.heads for piece in pieces]),
            np.concatenate([piece.labels for piece in pieces]),
            np.array([tree]),
        )


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic model: a weight for each named feature, and a bias."""

    weights: Mapping[str, float]
    bias: float

    def probabilities(self, features: Float64) -> Float64:
        """float64[...] of features float64[..., d], in the order of the weights."""
        # Not by BLAS, whose sums depend on the number of threads.
        values = (features * np.array(list(self.weights.values()))).sum(axis=-1) + self.bias
        return 1.0 / (1.0 + np.exp(-values))

    @classmethod
    def fit(cls, names: Sequence[str], features: Float64, right: Bools) -> Logistic:
        """Learn from features float64[m, d] and what was right, bool[m]."""
        count, total = int(right.sum()), len(right)
        if not 0 < count < total:  # nothing to tell apart
            bias = float(np.log((count + 1) / (total - count + 1)))
            return cls(dict.fromkeys(names, 0.0), round(bias, 6))
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  (optional)

        means, deviations = features.mean(axis=0), features.std(axis=0)
        factors = np.divide(1.0, deviations, out=np.zeros_like(means), where=deviations > 1e-9)
        with one_thread():
            model = LogisticRegression(C=PENALTY, max_iter=1000)
            model.fit((features - means) * factors, right)
        weights = model.coef_[0] * factors
        bias = float(model.intercept_[0]) - float((weights * means).sum())
        return cls(
            {name: round(float(w), 6) for name, w in zip(names, weights, strict=True)},
            round(bias, 6),
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"bias": self.bias, "weights": dict(self.weights)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], names: Sequence[str]) -> Logistic:
        """The inverse of `to_dict`.  Raises ValueError for other features, or no numbers."""
        weights = {str(name): float(value) for name, value in dict(data["weights"]).items()}
        bias = float(data["bias"])
        if list(weights) != list(names):
            raise ValueError(f"features of confidence are {list(weights)}, expected {list(names)}")
        if not (np.abs([*weights.values(), bias]) < MOST_OF_CONFIDENCE).all():
            raise ValueError("a weight of the confidence is no number, or beyond all bounds")
        return cls(weights, bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What makes probabilities of final scores.

    scales: of each source, the mean standard deviation of its scores within a list, positive.
    final_scale: the same of the final scores.  head, label, tree: the models.
    others_temperature: of the softmax that divides, among the other candidates, what the chosen one
    leaves, in units of final_scale.  others_share: how often, where the chosen tree is wrong, the
    right one is another candidate.
    adjusted: by kinds, what makes better probabilities of those of the models; see `adjusted_to`.
    """

    scales: Mapping[str, float]
    final_scale: float
    head: Logistic
    label: Logistic
    tree: Logistic
    others_temperature: float
    others_share: float
    adjusted: Mapping[str, Logistic] = field(default_factory=dict)

    # Use

    def confidence(
        self, candidates: CandidateList, final: Float64, row: int | None = None
    ) -> Confidence:
        """Probabilities of one candidate of a completed list, by default the best.

        final: float64[k], the final scores.  row: of the candidate.
        """
        row = int(final.argmax()) if row is None else row
        of_models = self._of_models(candidates, final, row)
        found = {
            kind: given
            if kind not in self.adjusted
            else self.adjusted[kind].probabilities(log_odds(given)[..., None])
            for kind, given in of_models.items()
        }
        tree = float(found["tree"])
        # A tree that is right has all heads and labels right, so that they are at least as sure.
        heads, labels = (np.maximum(found[kind], tree) for kind in ("head", "label"))
        trees = _others(final, row, self.final_scale * self.others_temperature)
        trees *= (1.0 - tree) * self.others_share
        trees[row] = tree
        return Confidence(tree, heads, labels, trees)

    def _of_models(self, candidates: CandidateList, final: Float64, row: int) -> dict[str, Float64]:
        """What the models say of heads and labels, float64[n], and of the tree, float64[]."""
        weights = _weightings(candidates, final, self.scales, self.final_scale)
        head, label = _word_features(candidates, weights, row)
        heads, labels = self.head.probabilities(head), self.label.probabilities(label)
        tree = self.tree.probabilities(_tree_features(candidates, weights, row, heads, labels))
        return {"head": heads, "label": labels, "tree": tree}

    # Training

    def adjusted_to(self, lists: Sequence[HeldOut]) -> Calibration:
        """A calibration whose probabilities are true of lists as the model will meet them.

        lists: of sentences whose trees neither reranker nor parsers learnt from (best epochs and
            penalties may have been chosen by them), by the parsers of the model itself, with the
            repaired trees that join them.  A kind of which too few are right, or wrong, or where
            the surer ones are not right more often, stays as it is; so does how the other
            candidates share what the chosen tree leaves.
        """
        said: dict[str, list[Float64]] = {kind: [] for kind in KINDS}
        right: dict[str, list[Bools]] = {kind: [] for kind in KINDS}
        for item in lists:
            row = int(item.final.argmax())
            heads, labels = (hits[row] for hits in _right(item))
            hits = heads, labels, (heads & labels).all()
            found = self._of_models(item.candidates, item.final, row)
            for kind, of_kind in zip(KINDS, hits, strict=True):
                said[kind].append(np.atleast_1d(found[kind]))
                right[kind].append(np.atleast_1d(of_kind))
        adjusted = {}
        for kind in KINDS if lists else ():
            true = np.concatenate(right[kind])
            if LEAST_ADJUSTED <= true.sum() <= len(true) - LEAST_ADJUSTED:
                given = log_odds(np.concatenate(said[kind]))
                model = Logistic.fit([OF_MODEL], given[:, None], true)
                # What would turn sure ones into unsure ones was learnt from noise.
                if model.weights[OF_MODEL] > 0:
                    adjusted[kind] = model
        return replace(self, adjusted=adjusted)

    @classmethod
    def fit(cls, lists: Sequence[HeldOut]) -> Calibration:
        """Learn from lists that the scoring reranker did not learn from, with like sources.

        Raises UserError where there is none, or no scikit-learn.
        """
        if not lists:
            raise UserError("confidence needs held-out lists to be fitted on, got none")
        if not can_fit():
            raise UserError(MISSING)
        sources = lists[0].candidates.sources
        scales = {
            source: mean_deviation([filled(item.candidates.scores[:, j]) for item in lists])
            for j, source in enumerate(sources)
        }
        final_scale = mean_deviation([item.final for item in lists])
        names = _names(sources)
        rows = [int(item.final.argmax()) for item in lists]
        weights = [_weightings(i.candidates, i.final, scales, final_scale) for i in lists]
        words = [
            _word_features(item.candidates, own, row)
            for item, own, row in zip(lists, weights, rows, strict=True)
        ]
        right = [_right(item) for item in lists]
        chosen = [(h[row], w[row]) for (h, w), row in zip(right, rows, strict=True)]
        head = Logistic.fit(
            names,
            np.concatenate([features for features, _ in words]),
            np.concatenate([heads for heads, _ in chosen]),
        )
        label = Logistic.fit(
            names,
            np.concatenate([features for _, features in words]),
            np.concatenate([labels for _, labels in chosen]),
        )
        features = [
            _tree_features(item.candidates, own, row, head.probabilities(h), label.probabilities(w))
            for item, own, row, (h, w) in zip(lists, weights, rows, words, strict=True)
        ]
        whole = np.array([bool(heads.all() and labels.all()) for heads, labels in chosen])
        temperature, share = _fit_others(lists, rows, right, final_scale)
        return cls(
            scales=scales,
            final_scale=final_scale,
            head=head,
            label=label,
            tree=Logistic.fit([*names, HEADS, LABELS], np.stack(features), whole),
            others_temperature=temperature,
            others_share=share,
        )

    # Storage

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "scales": dict(self.scales),
            "final_scale": self.final_scale,
            "head": self.head.to_dict(),
            "label": self.label.to_dict(),
            "tree": self.tree.to_dict(),
            "others_temperature": self.others_temperature,
            "others_share": self.others_share,
            "adjusted": {kind: model.to_dict() for kind, model in self.adjusted.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """The inverse of `to_dict`.  Raises ValueError or LookupError for what is no such thing."""
        scales = {str(name): float(value) for name, value in dict(data["scales"]).items()}
        final_scale = float(data["final_scale"])
        temperature, share = float(data["others_temperature"]), float(data["others_share"])
        for value in (*scales.values(), final_scale, temperature):
            if not LEAST_SCALE < value < 1 / LEAST_SCALE:
                raise ValueError(f"a scale of confidence is {value}, expected a positive number")
        if not 0 <= share <= 1:
            raise ValueError(f"others_share is {share}, expected 0 to 1")
        names = _names(list(scales))
        adjusted = {  # which earlier versions did not do
            kind: Logistic.from_dict(model, [OF_MODEL])
            for kind, model in dict(data.get("adjusted", {})).items()
        }
        if not adjusted.keys() <= set(KINDS):
            raise ValueError(f"confidence is adjusted of {list(adjusted)}, expected {KINDS}")
        if any(model.weights[OF_MODEL] < 0 for model in adjusted.values()):
            raise ValueError("confidence is adjusted by a negative factor, expected none")
        return cls(
            scales=scales,
            final_scale=final_scale,
            head=Logistic.from_dict(data["head"], names),
            label=Logistic.from_dict(data["label"], names),
            tree=Logistic.from_dict(data["tree"], [*names, HEADS, LABELS]),
            others_temperature=temperature,
            others_share=share,
            adjusted=adjusted,
        )


def log_odds(shares: Float64) -> Float64:
    """log(p / (1 - p)) of each share, both sums raised by FLOOR."""
    return np.log((shares + FLOOR) / (1.0 - shares + FLOOR))


def _names(sources: Sequence[str]) -> list[str]:
    """Of the weightings, in the order of `_weightings`."""
    of_trees = [FINAL, *([COMBINER] if COMBINER in sources else [])]
    return [*(f"{name} {t:g}" for name in of_trees for t in TEMPERATURES), PARSERS, VOTES]


def _weightings(
    candidates: CandidateList, final: Float64, scales: Mapping[str, float], final_scale: float
) -> Float64:
    """What weighs the candidates: float64[q, k], each row sums to 1.

    The final scores' softmax at every temperature, in units of their spread; the same of the
    combiner's, where there is one; the mean of the parsers' own; the share of parsers whose own
    tree a candidate is.
    """
    rows = [_softmax(final, final_scale * t) for t in TEMPERATURES]
    parsers = {name: scale for name, scale in scales.items() if name != COMBINER}
    if COMBINER in scales:
        rows += list(candidate_weights(candidates, {COMBINER: scales[COMBINER]})[:-1])
    each = len(TEMPERATURES) + 1
    own = candidate_weights(candidates, parsers).reshape(len(parsers), each, len(candidates))
    return np.stack([*rows, own[:, -2].mean(axis=0), own[:, -1].mean(axis=0)])


def _softmax(scores: Float64, temperature: float) -> Float64:
    powers = np.exp((scores - scores.max()) / temperature)
    return powers / powers.sum()


def _shares(weights: Float64, same: NDArray[np.bool_]) -> Float64:
    """The weight of the candidates that are the same, float64[q, ...] of bool[k, ...]."""
    # Not by BLAS, whose sums depend on the number of threads.
    shares = np.einsum("qk,k...->q...", weights, same.astype(np.float64), optimize=False)
    return np.clip(shares, 0.0, 1.0)


def _word_features(
    candidates: CandidateList, weights: Float64, row: int
) -> tuple[Float64, Float64]:
    """Of each word of a candidate, for its head and its label: two of float64[n, q]."""
    heads = _shares(weights, candidates.heads == candidates.heads[row])
    labels = _shares(weights, candidates.labels == candidates.labels[row])
    return log_odds(heads).T, log_odds(labels).T


def _tree_features(
    candidates: CandidateList, weights: Float64, row: int, heads: Float64, labels: Float64
) -> Float64:
    """Of a candidate with these probabilities of its words, float64[n]: float64[q + 2]."""
    same = np.arange(len(candidates)) == row  # candidates are distinct trees
    products = np.exp([np.log(heads).sum(), np.log(labels).sum()])
    return log_odds(np.concatenate([_shares(weights, same), products]))


def _right(item: HeldOut) -> tuple[Bools, Bools]:
    """Which heads and which labels of the candidates are right: two of bool[k, n]."""
    trees = item.candidates
    labels = trees.inventory.encode(item.gold.deprels, add=False)
    return trees.heads == item.gold.heads, trees.labels == labels


def _others(final: Float64, row: int, temperature: float) -> Float64:
    """The softmax among all candidates but one, which has 0: float64[k]."""
    out = np.zeros(len(final))
    others = np.arange(len(final)) != row
    if others.any():
        out[others] = _softmax(final[others], temperature)
    return out


def _fit_others(
    lists: Sequence[HeldOut],
    rows: Sequence[int],
    right: Sequence[tuple[Bools, Bools]],
    final_scale: float,
) -> tuple[float, float]:
    """Temperature and share of the other candidates, from lists whose chosen tree is wrong."""
    wrong = 0
    found = []
    for item, row, (heads, labels) in zip(lists, rows, right, strict=True):
        whole = np.all(heads & labels, axis=1)
        if not whole[row]:
            wrong += 1
            if whole.any():
                found.append((item.final, row, int(whole.argmax())))
    likelihoods = [
        sum(
            float(np.log(_others(final, row, t * final_scale)[gold] + 1e-12))
            for final, row, gold in found
        )
        for t in OTHER_TEMPERATURES
    ]
    best = OTHER_TEMPERATURES[int(np.argmax(likelihoods))] if found else 1.0
    return best, round((len(found) + 1) / (wrong + 2), 6)
