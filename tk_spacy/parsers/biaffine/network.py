"""The biaffine parser's network: scores of all arcs and of their labels, and their gradients.

Source: Dozat and Manning, "Deep biaffine attention for neural dependency parsing" (ICLR 2017).
Ours differs where little data and a CPU ask for it: each word is the sum of many small embeddings
(affixes, each FEATS attribute) in two groups, the LSTM is narrow, and arc scores see the signed
distance, too.  All gradients are written out; tests compare them with finite differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.biaffine.batches import Layout
from tk_spacy.parsers.biaffine.recurrent import Arrays, Trace, init_lstm, lstm, lstm_gradient
from tk_spacy.parsers.biaffine.settings import BiaffineSettings

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


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Encoded sentences.

    words, tags: int[rows, columns], rows of the embedding tables.  layout: where rows stand.
    heads, labels: int[words], gold trees (heads as places in the sentence), or None.
    """

    words: Int
    tags: Int
    layout: Layout
    heads: Int | None = None
    labels: Int | None = None


def init_weights(settings: BiaffineSettings, n_words: int, n_tags: int, n_labels: int) -> Arrays:
    """Weights to start from: float32, by the settings' seed.

    n_words, n_tags: rows of the tables, the row of no value included.
    """
    s = settings
    rng = np.random.default_rng([s.seed, 1])

    def normal(*shape: int, scale: float) -> Array:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    weights: Arrays = {
        "words": normal(n_words, s.word_width, scale=0.3),
        "tags": normal(n_tags, s.tag_width, scale=0.3),
    }
    weights["words"][0] = weights["tags"][0] = 0
    n_in = s.word_width + s.tag_width
    for layer in range(s.layers):
        weights |= init_lstm(rng, f"lstm {layer}", n_in, s.width)
        n_in = 2 * s.width
    n_out = 2 * (s.arc_width + s.label_width)
    weights["mlp"] = normal(n_in, n_out, scale=np.sqrt(2 / n_in))
    weights["mlp.bias"] = np.zeros(n_out, dtype=np.float32)
    weights["arc"] = normal(s.arc_width, s.arc_width, scale=0.3 / s.arc_width**0.5)
    weights["arc.head"] = np.zeros(s.arc_width, dtype=np.float32)
    weights["arc.distance"] = np.zeros((s.arc_width + 1, N_BUCKETS), dtype=np.float32)
    size = s.label_width + 1
    weights["label"] = normal(size, n_labels * size, scale=0.3 / size**0.5)
    return weights


def buckets(n: int) -> Int:
    """The bucket of each arc's signed distance: int[modifier, head], n rows; 0 from the root."""
    place = np.arange(n)
    distance = place[None, :] - place[:, None]
    near = np.searchsorted(FAR, np.abs(distance), side="right")
    found = np.where(distance > 0, near, near + len(FAR))
    found[:, 0] = 0
    np.fill_diagonal(found, 0)
    return found


def weight_shapes(
    settings: BiaffineSettings, n_words: int, n_tags: int, n_labels: int
) -> dict[str, tuple[int, ...]]:
    """The shape of every array of `init_weights`, which takes the same arguments."""
    s = settings
    n_out, size = 2 * (s.arc_width + s.label_width), s.label_width + 1
    shapes: dict[str, tuple[int, ...]] = {
        "words": (n_words, s.word_width),
        "tags": (n_tags, s.tag_width),
        "mlp": (2 * s.width, n_out),
        "mlp.bias": (n_out,),
        "arc": (s.arc_width, s.arc_width),
        "arc.head": (s.arc_width,),
        "arc.distance": (s.arc_width + 1, N_BUCKETS),
        "label": (size, n_labels * size),
    }
    for layer in range(s.layers):
        n_in = 2 * s.width if layer else s.word_width + s.tag_width
        shapes[f"lstm {layer}.input"] = (n_in, 8 * s.width)
        shapes[f"lstm {layer}.state"] = (2, s.width, 4 * s.width)
        shapes[f"lstm {layer}.bias"] = (8 * s.width,)
    return shapes


class Pass:
    """One run of the network over a batch, forward and perhaps back.

    weights: as `init_weights` gives them, of any float type.
    rng: of the dropout; None for none.
    """

    def __init__(
        self,
        weights: Mapping[str, Array],
        settings: BiaffineSettings,
        batch: Batch,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.weights, self.settings, self.batch, self.rng = weights, settings, batch, rng
        self.type = weights["arc"].dtype
        self._masks: dict[str, Array] = {}
        self._traces: list[Trace] = []
        s = settings
        self.encoded = self._drop("encoded", self._encode(self._embed()))
        self.hidden = self.encoded @ weights["mlp"] + weights["mlp.bias"]
        out = self._drop("mlp", np.maximum(self.hidden, LEAK * self.hidden))
        a, b = s.arc_width, s.label_width
        self.dep, self.head = self._pad(out[:, :a]), self._pad(out[:, a : 2 * a])
        self.label_dep = _with_one(out[:, 2 * a : 2 * a + b])
        self.label_head = _with_one(out[:, 2 * a + b :])

    def _embed(self) -> Array:
        """The embedded rows; in training some columns are left out, or one of the groups."""
        s, w, batch, rng = self.settings, self.weights, self.batch, self.rng
        self.words, self.tags = batch.words, batch.tags
        if rng is not None and s.column_dropout:
            self.words = np.where(rng.random(batch.words.shape) < s.column_dropout, 0, batch.words)
            self.tags = np.where(rng.random(batch.tags.shape) < s.column_dropout, 0, batch.tags)
        word = w["words"][self.words].sum(axis=1)
        tag = w["tags"][self.tags].sum(axis=1)
        if rng is not None and s.dropout:
            # Where one of the two groups is left out, the other one counts double.
            keep = rng.random((2, len(word))) >= s.dropout
            scale = 2.0 / np.maximum(keep.sum(axis=0), 1)
            self._masks["words"] = (keep[0] * scale)[:, None].astype(self.type)
            self._masks["tags"] = (keep[1] * scale)[:, None].astype(self.type)
            word *= self._masks["words"]
            tag *= self._masks["tags"]
        return np.concatenate([word, tag], axis=1)

    def _encode(self, x: Array) -> Array:
        """The LSTM's layers."""
        s, layout = self.settings, self.batch.layout
        for layer in range(s.layers):
            name = f"lstm {layer}"
            x = self._drop(f"{name} in", x)
            mask = self._mask((2, layout.sentences, s.width))
            x, trace = lstm(self.weights, name, x, layout, mask)
            self._traces.append(trace)
        return x

    def _mask(self, shape: tuple[int, ...]) -> Array | None:
        rate = self.settings.dropout
        if self.rng is None or not rate:
            return None
        keep = self.rng.random(shape, dtype=np.float32) >= rate
        return keep.astype(self.type) / self.type.type(1 - rate)

    def _drop(self, name: str, x: Array) -> Array:
        """Leave out some columns of x, the same in all rows of a sentence."""
        layout = self.batch.layout
        mask = self._mask((layout.sentences, x.shape[1]))
        if mask is None:
            return x
        self._masks[name] = mask[layout.owner]
        return x * self._masks[name]

    def _undrop(self, name: str, d: Array) -> Array:
        mask = self._masks.get(name)
        return d if mask is None else d * mask

    def _pad(self, x: Array) -> Array:
        layout = self.batch.layout
        out = np.zeros((layout.sentences, layout.steps, x.shape[1]), dtype=x.dtype)
        out[layout.owner, layout.time] = x
        return out

    # Scores

    def arc_scores(self) -> Array:
        """Scores [sentence, modifier, head], FORBIDDEN where there can be no arc."""
        w, layout = self.weights, self.batch.layout
        _, steps, width = self.dep.shape
        self.turned = (self.dep.reshape(-1, width) @ w["arc"]).reshape(self.dep.shape)
        self.turned += w["arc.head"]
        scores = self.turned @ self.head.transpose(0, 2, 1)
        self.bucket = buckets(steps)
        far = self.dep @ w["arc.distance"][:-1] + w["arc.distance"][-1]
        scores += np.take_along_axis(far, self.bucket[None], axis=2)
        place = np.arange(steps)
        scores[:, place, place] = FORBIDDEN
        beyond = place[None, :] >= layout.lengths[:, None]
        scores += np.where(beyond, FORBIDDEN, 0.0).astype(self.type)[:, None, :]
        return scores

    def label_scores(self, modifiers: Int, heads: Int) -> Array:
        """Scores [arcs, labels] of arcs, given as rows of the batch."""
        size = self.label_dep.shape[1]
        self.bent = (self.label_dep[modifiers] @ self.weights["label"]).reshape(
            len(modifiers), -1, size
        )
        return (self.bent @ self.label_head[heads][:, :, None])[:, :, 0]

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.weights["label"].shape[1] // self.label_dep.shape[1]

    def all_label_scores(self, modifier: int, modifiers: int, head: int, heads: int) -> Array:
        """Scores [modifier, head, label] of all arcs between two runs of rows.

        modifier, head: the first row of each; modifiers, heads: how many follow.
        """
        size = self.label_dep.shape[1]
        bent = self.label_dep[modifier : modifier + modifiers] @ self.weights["label"]
        found = bent.reshape(-1, size) @ self.label_head[head : head + heads].T
        return np.ascontiguousarray(
            found.reshape(modifiers, self.n_labels, heads).transpose(0, 2, 1)
        )

    # Loss and gradient

    def loss(self, gradient: Arrays | None = None) -> tuple[float, float]:
        """The mean loss a word, of heads and of labels; their sum's gradient into `gradient`."""
        batch, layout = self.batch, self.batch.layout
        assert batch.heads is not None
        assert batch.labels is not None
        rows = layout.words
        n = len(rows)
        owner, place = layout.owner[rows], layout.time[rows]
        arcs = log_softmax(self.arc_scores()[owner, place])
        head_loss = -float(arcs[np.arange(n), batch.heads].mean())
        head_rows = rows - place + batch.heads
        labels = log_softmax(self.label_scores(rows, head_rows))
        label_loss = -float(labels[np.arange(n), batch.labels].mean())
        if gradient is not None:
            self._backward(arcs, labels, rows, head_rows, gradient)
        return head_loss, label_loss

    def _backward(
        self, arcs: Array, labels: Array, rows: Int, head_rows: Int, gradient: Arrays
    ) -> None:
        """Back from the log-probabilities of arcs and labels, which become their slopes."""
        w, s = self.weights, self.settings
        words = np.arange(len(rows))
        for scores, gold in ((arcs, self.batch.heads), (labels, self.batch.labels)):
            np.exp(scores, out=scores)
            scores[words, gold] -= 1
            scores /= len(rows)
        width = 2 * (s.arc_width + s.label_width)
        d_out = np.zeros((len(self.hidden), width), dtype=self.type)
        self._labels_back(labels, rows, head_rows, d_out[:, 2 * s.arc_width :], gradient)
        self._arcs_back(arcs, rows, d_out[:, : 2 * s.arc_width], gradient)
        d_out = self._undrop("mlp", d_out)
        d_hidden = np.where(self.hidden > 0, d_out, LEAK * d_out)
        gradient["mlp"] = self.encoded.T @ d_hidden
        gradient["mlp.bias"] = d_hidden.sum(axis=0)
        d = self._undrop("encoded", d_hidden @ w["mlp"].T)
        for layer in range(s.layers - 1, -1, -1):
            d = lstm_gradient(w, f"lstm {layer}", self._traces[layer], d, gradient)
            d = self._undrop(f"lstm {layer} in", d)
        self.d_words = self._undrop("words", d[:, : s.word_width])
        self.d_tags = self._undrop("tags", d[:, s.word_width :])

    def _labels_back(
        self, d_labels: Array, rows: Int, head_rows: Int, d_out: Array, gradient: Arrays
    ) -> None:
        """From the slopes of the gold arcs' label scores to those of both their words."""
        width = self.settings.label_width
        d_heads = (d_labels[:, None, :] @ self.bent)[:, 0, :width]
        d_bent = d_labels[:, :, None] * self.label_head[head_rows][:, None, :]
        d_bent = d_bent.reshape(len(rows), -1)
        gradient["label"] = self.label_dep[rows].T @ d_bent
        d_out[rows, :width] = (d_bent @ self.weights["label"].T)[:, :width]
        _add_rows(d_out[:, width:], head_rows, d_heads)

    def _arcs_back(self, d_arcs: Array, rows: Int, d_out: Array, gradient: Arrays) -> None:
        """From the slopes of the arc scores to those of modifiers and heads."""
        w, layout = self.weights, self.batch.layout
        n_sentences, steps, width = self.dep.shape
        d_scores = np.zeros((n_sentences, steps, steps), dtype=self.type)
        d_scores[layout.owner[rows], layout.time[rows]] = d_arcs
        d_head = d_scores.transpose(0, 2, 1) @ self.turned
        by_bucket = np.empty((n_sentences, steps, N_BUCKETS), dtype=self.type)
        for first in range(0, steps, MODIFIERS):
            some = slice(first, first + MODIFIERS)
            hot = np.eye(N_BUCKETS, dtype=self.type)[self.bucket[some]]
            by_bucket[:, some] = (d_scores[:, some].transpose(1, 0, 2) @ hot).transpose(1, 0, 2)
        d_far = by_bucket.reshape(-1, N_BUCKETS)
        dep = self.dep.reshape(-1, width)
        d_turned = (d_scores @ self.head).reshape(-1, width)
        gradient["arc"] = dep.T @ d_turned
        gradient["arc.head"] = d_turned.sum(axis=0)
        gradient["arc.distance"] = np.concatenate([dep.T @ d_far, d_far.sum(axis=0)[None]])
        d_dep = d_turned @ w["arc"].T + d_far @ w["arc.distance"][:-1].T
        d_out[:, :width] = d_dep.reshape(self.dep.shape)[layout.owner, layout.time]
        d_out[:, width:] = d_head[layout.owner, layout.time]

    def table_gradients(self) -> dict[str, tuple[Int, Array]]:
        """After `loss` with a gradient: of both tables, the rows that were read, and theirs."""
        return {
            "words": _sum_by_row(self.words, self.d_words),
            "tags": _sum_by_row(self.tags, self.d_tags),
        }


def log_softmax(scores: Array) -> Array:
    """Logarithms of the softmax along the last axis."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


def _with_one(x: Array) -> Array:
    return np.concatenate([x, np.ones((len(x), 1), dtype=x.dtype)], axis=1)


def _add_rows(out: Array, rows: Int, values: Array) -> None:
    """Add values to rows of `out`, which may be named repeatedly; always in the same order."""
    order = np.argsort(rows, kind="stable")
    found, starts = np.unique(rows[order], return_index=True)
    out[found] += np.add.reduceat(values[order], starts, axis=0)


def _sum_by_row(ids: Int, d: Array) -> tuple[Int, Array]:
    flat = ids.ravel()
    owner = np.repeat(np.arange(len(ids)), ids.shape[1])
    used = np.flatnonzero(flat)
    order = used[np.argsort(flat[used], kind="stable")]
    found, starts = np.unique(flat[order], return_index=True)
    return found, np.add.reduceat(d[owner[order]], starts, axis=0)
