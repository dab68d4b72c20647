"""The parser's own layer: scores of all arcs and of their labels, and their gradients.

Source: Dozat and Manning, "Deep biaffine attention for neural dependency parsing" (ICLR 2017).
Ours differs where little data and a CPU ask for it: one product makes what a word is as head and as
modifier, and arc scores see the signed distance, too.  All gradients are written out; tests compare
them with finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from thinc.api import Model, Ops, get_array_module
from thinc.types import Ragged

from tk_spacy.parsers.biaffine.batches import Layout
from tk_spacy.parsers.biaffine.chance import generator, sentence_mask

Array = NDArray[np.floating[Any]]
Int = NDArray[np.integer[Any]]

FAR = (1, 2, 3, 4, 5, 7, 10, 15, 25)
"""Distances from which on a new bucket begins, in either direction."""
N_BUCKETS = 2 * len(FAR) + 1
MODIFIERS = 128
"""Modifiers whose distances are worked on at a time, since there are many to each."""
LEAK = 0.1
"""Slope of the rectifier below 0."""
FORBIDDEN = -1e9

WEIGHTS = ("mlp", "mlp_bias", "arc", "arc_head", "arc_distance", "label")


def make_scorer(
    arc_width: int, label_width: int, *, dropout: float = 0.0, n_labels: int | None = None
) -> Model[Ragged, Any]:
    """A layer from rows of sentences, the root's first, to scores of arcs and labels.

    arc_width, label_width: of what a word is as head or modifier of an arc, and of a label.
    dropout: of the rows, and of what is made of them.
    n_labels: number of labels, where it is known.
    """
    return Model(
        "tk_biaffine_scorer",
        forward,
        init=init,
        params=dict.fromkeys(WEIGHTS),
        dims={"nI": None, "nO": n_labels, "arc": arc_width, "label": label_width},
        attrs={"dropout_rate": dropout},
    )


def weight_shapes(model: Model[Ragged, Any]) -> dict[str, tuple[int, ...]]:
    """The shape of each of its weights; all dimensions must be known."""
    n_in, arc, label = (model.get_dim(name) for name in ("nI", "arc", "label"))
    n_out, size = 2 * (arc + label), label + 1
    return {
        "mlp": (n_in, n_out),
        "mlp_bias": (n_out,),
        "arc": (arc, arc),
        "arc_head": (arc,),
        "arc_distance": (arc + 1, N_BUCKETS),
        "label": (size, model.get_dim("nO") * size),
    }


def init(model: Model[Ragged, Any], X: Ragged | None = None, Y: Any = None) -> None:
    """Weights to start from."""
    if X is not None:
        model.set_dim("nI", X.data.shape[1])
    rng = generator()
    scales = {
        "mlp": np.sqrt(2 / model.get_dim("nI")),
        "arc": 0.3 / model.get_dim("arc") ** 0.5,
        "label": 0.3 / (model.get_dim("label") + 1) ** 0.5,
    }
    for name, shape in weight_shapes(model).items():
        value: Any = np.zeros(shape, dtype=np.float32)
        if name in scales:
            value = (rng.standard_normal(shape) * scales[name]).astype(np.float32)
        model.set_param(name, model.ops.asarray_f(value))


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """The gradient of a loss with respect to the scores of some arcs and labels.

    rows: int[n], the batch's rows of modifiers; arcs: [n, steps], of all their heads.
    modifiers, heads: int[m], arcs by the rows of their words; labels: [m, labels].
    """

    rows: Int
    arcs: Array
    modifiers: Int
    heads: Int
    labels: Array


class LabelScores:
    """The scores of labels, which are made for the arcs that are asked for.

    weight: of labels.  dep, head: [rows, label_width + 1], what each row is in either place.
    """

    def __init__(self, weight: Array, dep: Array, head: Array, ops: Ops) -> None:
        self.ops, self.label_dep, self.label_head = ops, dep, head
        self._label = weight

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self._label.shape[1] // self.label_dep.shape[1]

    def of_rows(self, rows: slice) -> LabelScores:
        """Those of some rows, as plain data, by numbers that begin with 0."""
        return LabelScores(self._label, self.label_dep[rows], self.label_head[rows], self.ops)

    def label_scores(self, modifiers: Int, heads: Int) -> Array:
        """Scores [arcs, labels] of arcs, given by rows."""
        return (self._bend(modifiers) @ self.label_head[heads][:, :, None])[:, :, 0]

    def all_label_scores(self, modifier: int, modifiers: int, head: int, heads: int) -> Array:
        """Scores [modifier, label, head] of all arcs between two runs of rows.

        modifier, head: the first row of each; modifiers, heads: how many follow.
        """
        size = self.label_dep.shape[1]
        bent = self.label_dep[modifier : modifier + modifiers] @ self._label
        found = bent.reshape(-1, size) @ self.label_head[head : head + heads].T
        return found.reshape(modifiers, self.n_labels, heads)

    def _bend(self, modifiers: Int) -> Array:
        size = self.label_dep.shape[1]
        return (self.label_dep[modifiers] @ self._label).reshape(
            len(modifiers), self.n_labels, size
        )


class Scores(LabelScores):
    """The scores of a batch.

    layout: where rows stand.  arcs: [sentence, modifier, head] by places in the sentence, FORBIDDEN
    where there can be no arc.  learns: whether gradients will be asked for.
    """

    def __init__(
        self,
        weights: Mapping[str, Array],
        out: Array,
        layout: Layout,
        ops: Ops,
        *,
        learns: bool = False,
    ) -> None:
        xp = get_array_module(out)
        self.layout, self._weights = layout, weights
        a = len(weights["arc"])
        b = (out.shape[1] - 2 * a) // 2
        super().__init__(
            weights["label"],
            _with_one(out[:, 2 * a : 2 * a + b]),
            _with_one(out[:, 2 * a + b :]),
            ops,
        )
        self.dep, self.head = self._pad(out[:, :a]), self._pad(out[:, a : 2 * a])
        _, steps, width = self.dep.shape
        self.turned = (self.dep.reshape(-1, width) @ weights["arc"]).reshape(self.dep.shape)
        self.turned += weights["arc_head"]
        scores = self.turned @ self.head.transpose(0, 2, 1)
        self.bucket = xp.asarray(buckets(steps))
        far = self.dep @ weights["arc_distance"][:-1] + weights["arc_distance"][-1]
        scores += xp.take_along_axis(far, self.bucket[None], axis=2)
        place = xp.arange(steps)
        scores[:, place, place] = FORBIDDEN
        beyond = place[None, :] >= xp.asarray(layout.lengths)[:, None]
        scores += xp.where(beyond, FORBIDDEN, 0.0).astype(out.dtype)[:, None, :]
        self.arcs = scores
        self._learns = learns
        self._bent: tuple[Any, Any] = (None, None)

    def _pad(self, x: Array) -> Array:
        layout = self.layout
        out = get_array_module(x).zeros((layout.sentences, layout.steps, x.shape[1]), dtype=x.dtype)
        out[layout.owner, layout.time] = x
        return out

    def _bend(self, modifiers: Int) -> Array:
        if self._bent[0] is not modifiers:
            bent = super()._bend(modifiers)
            if not self._learns:
                return bent
            self._bent = modifiers, bent  # the gradient asks for them again
        return self._bent[1]

    # Gradients of the weights by name, and of the rows

    def labels_back(self, slopes: Slopes, d_out: Array, gradient: dict[str, Array]) -> None:
        """From the slopes of label scores to those of both words, [rows, 2 * label_width]."""
        xp = get_array_module(d_out)
        width = d_out.shape[1] // 2
        d_heads = (slopes.labels[:, None, :] @ self._bend(slopes.modifiers))[:, 0, :width]
        d_bent = slopes.labels[:, :, None] * self.label_head[slopes.heads][:, None, :]
        d_bent = d_bent.reshape(len(slopes.heads), self._weights["label"].shape[1])
        gradient["label"] = self.label_dep[slopes.modifiers].T @ d_bent
        d_modifiers = (d_bent @ self._weights["label"].T)[:, :width]
        for place, rows, slope in (
            (slice(0, width), slopes.modifiers, d_modifiers),
            (slice(width, None), slopes.heads, d_heads),
        ):
            # A word may be in several arcs, as head and, by shares, as modifier.
            summed = xp.zeros((len(d_out), width), dtype=d_out.dtype)
            rows = xp.ascontiguousarray(rows.astype(np.int32))
            self.ops.scatter_add(summed, rows, xp.ascontiguousarray(slope))
            d_out[:, place] = summed

    def arcs_back(self, slopes: Slopes, d_out: Array, gradient: dict[str, Array]) -> None:
        """From the slopes of arc scores to those of both words, [rows, 2 * arc_width]."""
        xp = get_array_module(d_out)
        w, layout = self._weights, self.layout
        n_sentences, steps, width = self.dep.shape
        d_scores = xp.zeros((n_sentences, steps, steps), dtype=d_out.dtype)
        d_scores[layout.owner[slopes.rows], layout.time[slopes.rows]] = slopes.arcs
        d_head = d_scores.transpose(0, 2, 1) @ self.turned
        by_bucket = xp.empty((n_sentences, steps, N_BUCKETS), dtype=d_out.dtype)
        for first in range(0, steps, MODIFIERS):
            some = slice(first, first + MODIFIERS)
            hot = xp.eye(N_BUCKETS, dtype=d_out.dtype)[self.bucket[some]]
            by_bucket[:, some] = (d_scores[:, some].transpose(1, 0, 2) @ hot).transpose(1, 0, 2)
        d_far = by_bucket.reshape(-1, N_BUCKETS)
        dep = self.dep.reshape(-1, width)
        d_turned = (d_scores @ self.head).reshape(-1, width)
        gradient["arc"] = dep.T @ d_turned
        gradient["arc_head"] = d_turned.sum(axis=0)
        gradient["arc_distance"] = xp.concatenate([dep.T @ d_far, d_far.sum(axis=0)[None]])
        d_dep = d_turned @ w["arc"].T + d_far @ w["arc_distance"][:-1].T
        d_out[:, :width] = d_dep.reshape(self.dep.shape)[layout.owner, layout.time]
        d_out[:, width:] = d_head[layout.owner, layout.time]


def forward(
    model: Model[Ragged, Any], X: Ragged, is_train: bool
) -> tuple[Scores, Callable[[Slopes], Ragged]]:
    """The scores of a batch; back from the slopes of a loss to those of the rows."""
    ops = model.ops
    xp = ops.xp
    layout = Layout.of(ops.to_numpy(X.lengths), ops)
    w: dict[str, Any] = {name: model.get_param(name) for name in WEIGHTS}
    rate = model.attrs["dropout_rate"] if is_train else 0.0
    rows: Any = X.dataXd
    masks: list[Any] = []
    if rate:
        masks = [
            sentence_mask(ops, layout, width, rate) for width in (rows.shape[1], w["mlp"].shape[1])
        ]
        rows = rows * masks[0]
    hidden = rows @ w["mlp"] + w["mlp_bias"]
    out = xp.maximum(hidden, LEAK * hidden)
    scores = Scores(w, out * masks[1] if masks else out, layout, ops, learns=is_train)

    def backprop(slopes: Slopes) -> Ragged:
        gradient: dict[str, Any] = {}
        d_out = xp.zeros(hidden.shape, dtype=hidden.dtype)
        split = 2 * model.get_dim("arc")
        scores.labels_back(slopes, d_out[:, split:], gradient)
        scores.arcs_back(slopes, d_out[:, :split], gradient)
        if masks:
            d_out *= masks[1]
        d_hidden = xp.where(hidden > 0, d_out, LEAK * d_out)
        gradient["mlp"] = rows.T @ d_hidden
        gradient["mlp_bias"] = d_hidden.sum(axis=0)
        for name, value in gradient.items():
            model.inc_grad(name, value)
        d = d_hidden @ w["mlp"].T
        return Ragged(d * masks[0] if masks else d, X.lengths)

    return scores, backprop


def buckets(n: int) -> Int:
    """The bucket of each arc's signed distance: int[modifier, head], n rows; 0 from the root."""
    place = np.arange(n)
    distance = place[None, :] - place[:, None]
    near = np.searchsorted(FAR, np.abs(distance), side="right")
    found = np.where(distance > 0, near, near + len(FAR))
    found[:, 0] = 0
    np.fill_diagonal(found, 0)
    return found


def _with_one(x: Array) -> Array:
    xp = get_array_module(x)
    return xp.concatenate([x, xp.ones((len(x), 1), dtype=x.dtype)], axis=1)
