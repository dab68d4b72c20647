"""How sure the final choice is: probabilities that a tree, its heads and its labels are right.

A reranker's scores choose well but are no probabilities: they were learnt with a margin, and the
right tree need not be in the list at all.  So a logistic model of what speaks for the chosen tree
(`evidence`) gives the probability.  It is learnt from lists that the reranker did not learn from.

These are lists of training sentences by parsers that learnt from a part of the treebank alone.  The
parsers of the model are better, and its probabilities would be too low: where there are lists by
them (of dev), those of the chosen tree, its heads and its labels are adjusted to what is right
there, by scale and bias of their log-odds.  Where parsers also say how likely they find the chosen
arcs themselves, a second such adjustment weighs that, too.

Sources: Platt 1999 (a logistic model over scores); Mejer and Crammer 2012, "Are You Sure?
Confidence in Prediction of Dependency Tree Edges" (agreement of weighted k-best trees).  Ours
differs: several weightings in one model, and the tree's model sees the words' probabilities.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.arcs import softmax
from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.scores import filled, mean_deviation
from tk_spacy.parallel.blas import one_thread
from tk_spacy.reranker.evidence import (
    WordFeatures,
    log_odds,
    tree_feature_names,
    tree_features,
    weightings,
)
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.stored_values import (
    stored_entry,
    stored_number,
    stored_numbers,
    stored_table,
    stored_texts,
)

Bools = NDArray[np.bool_]
Choice = tuple[CandidateList, Float64, int]
"""A completed list, its final scores float64[k], and the row of a candidate."""

OURS = "calibration"
"""What meta.json calls it."""
MOST_OF_CONFIDENCE = 1e13
"""Of a stored weight: what `Logistic.fit` may give a feature that is nearly always the same."""
KINDS = ("head", "label", "tree")
"""Of probabilities."""
OF_MODEL, OF_PARSERS = "model", "parsers"
"""What a probability is adjusted by: the log-odds of what the model said, and of what the parsers
say."""
LEAST_ODDS = 1e-5
"""Added to a parser's probability and to what is missing to 1: parsers are sure, and differ in how
sure."""
LEAST_ADJUSTED = 20
"""Right ones, and wrong ones, among those that a kind of probability is adjusted to."""
LEAST_WORDS = 5
"""With a relation among those that the models learn from, so that its arcs are told apart."""
MOST_WORDS = 100_000
"""That the models learn from: some eighty weights need no more, and the memory is bounded."""
PENALTY = 1.0
"""Inverse strength of the logistic models' L2 penalty, as scikit-learn counts it: of a feature in
units of its spread; of a kind of arcs, 0 or 1, as it is, so that rare ones weigh little."""
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

    @property
    def chosen(self) -> Sentence:
        """The sentence with the best tree."""
        row = int(self.final.argmax())
        return self.gold.with_tree(self.candidates.heads[row], self.candidates.deprels(row))


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
        with np.errstate(over="ignore"):  # of what is as good as 0
            return 1.0 / (1.0 + np.exp(-values))

    @classmethod
    def fit(
        cls, names: Sequence[str], features: Float64, right: Bools, *, n_kinds: int = 0
    ) -> Logistic:
        """Learn from features float64[m, d] and what was right, bool[m].

        n_kinds: so many features, the last ones, are 0 or 1; see PENALTY.
        """
        count, total = int(right.sum()), len(right)
        if not 0 < count < total:  # nothing to tell apart
            bias = float(np.log((count + 1) / (total - count + 1)))
            return cls(dict.fromkeys(names, 0.0), round(bias, 6))
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  (optional)

        means, deviations = features.mean(axis=0), features.std(axis=0)
        factors = np.divide(1.0, deviations, out=np.zeros_like(means), where=deviations > 1e-9)
        if n_kinds:
            means[-n_kinds:], factors[-n_kinds:] = 0.0, 1.0
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
    def from_dict(cls, data: Mapping[str, Any], names: Sequence[str], what: str) -> Logistic:
        """The inverse of `to_dict`.  Raises ValueError for other features, or no numbers.

        what: it is, for the message.
        """
        weights, bias = (stored_entry(data, name, what) for name in ("weights", "bias"))
        if (there := list(stored_table(weights, f"{what}.weights"))) != list(names):
            raise ValueError(f"features of {what} are {there}, expected {list(names)}")
        weights = stored_numbers(weights, f"{what}.weights", below=MOST_OF_CONFIDENCE)
        return cls(weights, stored_number(bias, f"{what}.bias", below=MOST_OF_CONFIDENCE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What makes probabilities of final scores.

    scales: of each source, the mean standard deviation of its scores within a list, positive.
    final_scale: the same of the final scores.  head, label, tree: the models.
    others_temperature: of the softmax that divides, among the other candidates, what the chosen one
    leaves, in units of final_scale.  others_share: how often, where the chosen tree is wrong, the
    right one is another candidate.
    relations: whose arcs the models of heads and labels tell apart; None for models of earlier
    versions, which look at shares alone.
    adjusted: by kinds, what makes better probabilities of those of the models; see `adjusted_to`.
    informed: the same where the parsers' own probabilities are known.
    """

    scales: Mapping[str, float]
    final_scale: float
    head: Logistic
    label: Logistic
    tree: Logistic
    others_temperature: float
    others_share: float
    relations: tuple[str, ...] | None
    adjusted: Mapping[str, Logistic] = field(default_factory=dict)
    informed: Mapping[str, Logistic] = field(default_factory=dict)

    # Use

    def confidence(
        self,
        candidates: CandidateList,
        final: Float64,
        row: int | None = None,
        *,
        arcs: Float64 | None = None,
    ) -> Confidence:
        """Probabilities of one candidate of a completed list, by default the best.

        final: float64[k], the final scores.  row: of the candidate.
        arcs: float64[n, 2], how likely the candidate's arcs are to the parsers (see
            `kbest.arc_probabilities`), where that is known.
        """
        row = int(final.argmax()) if row is None else row
        return self.confidences([(candidates, final, row)], [arcs])[0]

    def confidences(
        self, choices: Sequence[Choice], arcs: Sequence[Float64 | None]
    ) -> list[Confidence]:
        """As `confidence`, for several lists in one go: the chosen row of each.

        arcs: of each, None where it is not known.
        """
        found: list[Confidence | None] = [None] * len(choices)
        asked = []
        for i, (candidates, _, _) in enumerate(choices):
            if candidates.heads.size == 1:  # one tree of one word, which no choice was made about
                found[i] = Confidence(1.0, np.ones(1), np.ones(1), np.ones(1))
            else:
                asked.append(i)
        said = self._of_models([choices[i] for i in asked])
        told = self._adjusted(said, [arcs[i] for i in asked])
        for i, heads, labels, of_tree in zip(asked, *(told[kind] for kind in KINDS), strict=True):
            _, final, row = choices[i]
            tree = float(of_tree)
            trees = _others(final, row, self.final_scale * self.others_temperature)
            trees *= (1.0 - tree) * self.others_share
            trees[row] = tree
            # A tree that is right has all heads and labels right, so that they are at least as
            # sure.
            found[i] = Confidence(tree, np.maximum(heads, tree), np.maximum(labels, tree), trees)
        return [item for item in found if item is not None]

    def _adjusted(
        self, said: Mapping[str, Sequence[Float64]], arcs: Sequence[Float64 | None]
    ) -> dict[str, Sequence[Float64]]:
        """By kinds what the models say of lists, adjusted.

        arcs: of each list, as those of `confidences`.
        """
        found: dict[str, Sequence[Float64]] = {}
        of_parsers: list[dict[str, Float64]] = []
        if self.informed and any(own is not None for own in arcs):
            unknown = [np.full((len(heads), 2), np.nan) for heads in said["head"]]
            of_parsers = [
                _odds_of_parsers(there if own is None else own)
                for own, there in zip(arcs, unknown, strict=True)
            ]
        for kind, of_kind in said.items():
            whole = better = _flat(of_kind)
            if kind in self.adjusted:
                better = self.adjusted[kind].probabilities(log_odds(whole)[..., None])
            if of_parsers and kind in self.informed:
                odds = [log_odds(whole), _flat([own[kind] for own in of_parsers])]
                informed = self.informed[kind].probabilities(np.stack(odds, axis=-1))
                better = np.where(np.isnan(informed), better, informed)
            found[kind] = _like(better, of_kind)
        return found

    def _of_models(self, choices: Sequence[Choice]) -> dict[str, Sequence[Float64]]:
        """By kinds what the models say, of each list: of heads and labels float64[n], of the tree
        float64[].
        """
        if not choices:
            return {kind: [] for kind in KINDS}
        lists, finals, rows = zip(*choices, strict=True)
        weights = weightings(lists, finals, self.scales, self.final_scale)
        words = WordFeatures(list(self.scales), self.relations)
        seen = [
            words.of(candidates, own, row)
            for candidates, own, row in zip(lists, weights, rows, strict=True)
        ]
        heads, labels = (
            _like(
                model.probabilities(np.concatenate([own[i] for own in seen])),
                [own[i] for own in seen],
            )
            for i, model in enumerate((self.head, self.label))
        )
        features = [
            tree_features(*item) for item in zip(lists, weights, rows, heads, labels, strict=True)
        ]
        trees = self.tree.probabilities(np.stack(features))
        return {"head": heads, "label": labels, "tree": list(trees)}

    # Training

    def adjusted_to(
        self, lists: Sequence[HeldOut], arcs: Sequence[Float64] | None = None
    ) -> Calibration:
        """A calibration whose probabilities are true of lists as the model will meet them.

        lists: of sentences whose trees neither reranker nor parsers learnt from (best epochs and
            penalties may have been chosen by them), by the parsers of the model itself, with the
            repaired trees that join them.  A kind of which too few are right, or wrong, or where
            the surer ones are not right more often, stays as it is; so does how the other
            candidates share what the chosen tree leaves.
        arcs: of each list's best tree, how likely its arcs are to the parsers (see `confidence`).
        """
        said: dict[str, list[Float64]] = {kind: [] for kind in KINDS}
        right: dict[str, list[Bools]] = {kind: [] for kind in KINDS}
        for item in lists:
            row = int(item.final.argmax())
            heads, labels = (hits[row] for hits in _right(item))
            hits = heads, labels, (heads & labels).all()
            found = self._of_models([(item.candidates, item.final, row)])
            for kind, of_kind in zip(KINDS, hits, strict=True):
                said[kind].append(np.atleast_1d(found[kind][0]))
                right[kind].append(np.atleast_1d(of_kind))
        adjusted, informed = {}, {}
        of_parsers = [_odds_of_parsers(own) for own in arcs or ()]
        for kind in KINDS if lists else ():
            true = np.concatenate(right[kind])
            given = log_odds(np.concatenate(said[kind]))[:, None]
            if model := _adjustment([OF_MODEL], given, true):
                adjusted[kind] = model
            if of_parsers:
                told = np.concatenate([np.atleast_1d(own[kind]) for own in of_parsers])[:, None]
                known = ~np.isnan(told[:, 0])
                both = np.concatenate([given, told], axis=1)[known]
                if model := _adjustment([OF_MODEL, OF_PARSERS], both, true[known]):
                    informed[kind] = model
        return replace(self, adjusted=adjusted, informed=informed)

    @classmethod
    def fit(cls, lists: Sequence[HeldOut]) -> Calibration:
        """Learn from lists that the scoring reranker did not learn from, with like sources.

        Raises UserError where there is none, or no scikit-learn.
        """
        if not lists:
            raise UserError("confidence needs held-out lists to be fitted on, got none")
        if not can_fit():
            raise UserError(MISSING)
        lists = lists[:: math.ceil(sum(len(item.gold) for item in lists) / MOST_WORDS)]
        sources = lists[0].candidates.sources
        scales = {
            source: mean_deviation([filled(item.candidates.scores[:, j]) for item in lists])
            for j, source in enumerate(sources)
        }
        final_scale = mean_deviation([item.final for item in lists])
        rows = [int(item.final.argmax()) for item in lists]
        weights = weightings(
            [item.candidates for item in lists], [item.final for item in lists], scales, final_scale
        )
        relations = _frequent_relations(lists, rows)
        words = WordFeatures(sources, relations)
        seen = [
            words.of(item.candidates, own, row)
            for item, own, row in zip(lists, weights, rows, strict=True)
        ]
        right = [_right(item) for item in lists]
        chosen = [(h[row], w[row]) for (h, w), row in zip(right, rows, strict=True)]
        head, label = (
            Logistic.fit(
                words.names,
                np.concatenate([features[kind] for features in seen]),
                np.concatenate([hits[kind] for hits in chosen]),
                n_kinds=words.n_kinds,
            )
            for kind in (0, 1)
        )
        features = [
            tree_features(item.candidates, own, row, head.probabilities(h), label.probabilities(w))
            for item, own, row, (h, w) in zip(lists, weights, rows, seen, strict=True)
        ]
        whole = np.array([bool(heads.all() and labels.all()) for heads, labels in chosen])
        temperature, share = _fit_others(lists, rows, right, final_scale)
        return cls(
            scales=scales,
            final_scale=final_scale,
            head=head,
            label=label,
            tree=Logistic.fit(tree_feature_names(sources), np.stack(features), whole),
            others_temperature=temperature,
            others_share=share,
            relations=relations,
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
            "relations": None if self.relations is None else list(self.relations),
            "adjusted": {kind: model.to_dict() for kind, model in self.adjusted.items()},
            "informed": {kind: model.to_dict() for kind, model in self.informed.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """The inverse of `to_dict`.  Raises ValueError for what is no such thing."""
        scales = stored_numbers(stored_entry(data, "scales", OURS), f"{OURS}.scales", positive=True)
        final_scale, temperature = (
            stored_number(stored_entry(data, name, OURS), f"{OURS}.{name}", positive=True)
            for name in ("final_scale", "others_temperature")
        )
        share = stored_number(stored_entry(data, "others_share", OURS), f"{OURS}.others_share")
        if not 0 <= share <= 1:
            raise ValueError(f"{OURS}.others_share is {share}, expected 0 to 1")
        if not scales.keys() - {COMBINER}:
            raise ValueError(f"{OURS}.scales are of {list(scales)}, expected one of each parser")
        relations = data.get("relations")  # which earlier versions did not look at
        if relations is not None:
            relations = tuple(stored_texts(relations, f"{OURS}.relations"))
        names = {"tree": tree_feature_names(list(scales))}
        names["head"] = names["label"] = WordFeatures(list(scales), relations).names
        return cls(
            scales=scales,
            final_scale=final_scale,
            **{
                kind: Logistic.from_dict(
                    stored_entry(data, kind, OURS), names[kind], f"{OURS}.{kind}"
                )
                for kind in KINDS
            },
            others_temperature=temperature,
            others_share=share,
            relations=relations,
            adjusted=_adjustments(data, "adjusted", [OF_MODEL]),
            informed=_adjustments(data, "informed", [OF_MODEL, OF_PARSERS]),
        )


def _adjustment(names: Sequence[str], features: Float64, right: Bools) -> Logistic | None:
    """Of float64[m, d] and bool[m]; None where too little can be learnt from."""
    if not LEAST_ADJUSTED <= right.sum() <= len(right) - LEAST_ADJUSTED:
        return None
    model = Logistic.fit(names, features, right)
    # What would turn sure ones into unsure ones was learnt from noise.
    return model if all(weight > 0 for weight in model.weights.values()) else None


def _adjustments(data: Mapping[str, Any], key: str, names: Sequence[str]) -> dict[str, Logistic]:
    """Stored ones, which earlier versions have none of.  Raises ValueError for strange ones."""
    what = f"{OURS}.{key}"
    found = {
        kind: Logistic.from_dict(model, names, f"{what}.{kind}")
        for kind, model in stored_table(data.get(key, {}), what).items()
    }
    if not found.keys() <= set(KINDS):
        raise ValueError(f"{what} is of {list(found)}, expected {KINDS}")
    if any(weight < 0 for model in found.values() for weight in model.weights.values()):
        raise ValueError(f"{what} has a negative factor, expected none")
    return found


def _flat(values: Sequence[Float64]) -> Float64:
    """float64[all words of all lists], or [lists] of trees."""
    return np.concatenate([np.atleast_1d(own) for own in values]) if len(values) else np.empty(0)


def _like(flat: Float64, values: Sequence[Float64]) -> list[Float64]:
    """What belongs to each of some arrays, which are as long, or single values."""
    ends = np.cumsum([1 if np.ndim(own) == 0 else len(own) for own in values]).tolist()
    return [
        flat[end - 1] if np.ndim(own) == 0 else flat[end - len(own) : end]
        for own, end in zip(values, ends, strict=True)
    ]


def _odds_of_parsers(arcs: Float64) -> dict[str, Float64]:
    """By kinds, the log-odds of what parsers say of arcs, float64[n, 2]; NaN where it is not known.

    Of the whole tree that all arcs are right, words being independent.
    """

    heads, labels = arcs.T
    told = {"head": heads, "label": labels, "tree": np.asarray(np.prod(arcs))}
    return {kind: log_odds(p, LEAST_ODDS) for kind, p in told.items()}


def _frequent_relations(lists: Sequence[HeldOut], rows: Sequence[int]) -> tuple[str, ...]:
    """Those of LEAST_WORDS words of the chosen trees, sorted."""
    counts = Counter(
        label
        for item, row in zip(lists, rows, strict=True)
        for label in item.candidates.deprels(row)
    )
    return tuple(sorted(name for name, count in counts.items() if count >= LEAST_WORDS))


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
        out[others] = softmax(final[others], temperature)
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
