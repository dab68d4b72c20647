"""The biaffine parser's layers: gradients, layout of batches, and scores by plain loops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc
from thinc.api import Adam, Model, NumpyOps
from thinc.types import Ragged
from threadpoolctl import threadpool_info

from tk_spacy.errors import UserError
from tk_spacy.parallel.threads import openmp_enabled
from tk_spacy.parsers.arc_shares import ArcShares
from tk_spacy.parsers.biaffine import recurrent
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.batches import Layout, make_batches
from tk_spacy.parsers.biaffine.embedding import build_treebank_embed, set_vocabulary
from tk_spacy.parsers.biaffine.encoder import build_bilstm
from tk_spacy.parsers.biaffine.loss import find_loss, log_softmax
from tk_spacy.parsers.biaffine.model import build_biaffine_parser
from tk_spacy.parsers.biaffine.recurrent import (
    BLOCK,
    PARTS,
    directions_apart,
    lstm,
    lstm_states,
    make_lstm,
)
from tk_spacy.parsers.biaffine.scorer import (
    FAR,
    N_BUCKETS,
    buckets,
    make_scorer,
    weight_shapes,
)
from tk_spacy.parsers.biaffine.tables import Tables
from tk_spacy.parsers.biaffine.targets import Targets
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.treebank.conllu import Sentence

LENGTHS = [4, 6, 2]
HEADS = [2, 0, 2, 3, 3, 0, 5, 3, 0]
N_LABELS = 4
N_IN = 9


def sentences() -> list[Sentence]:
    """Three sentences whose words share forms and features."""
    forms = iter("ab ac b ab ab ca ab c b".split())
    feats = iter("A=B A=C|D=E _ A=B A=B _ D=E D=E A=C".split())
    return [
        Sentence.from_columns(
            forms=[next(forms) for _ in range(length - 1)],
            upos=["NOUN"] * (length - 1),
            feats=[next(feats) for _ in range(length - 1)],
        )
        for length in LENGTHS
    ]


def batch() -> Batch:
    labels = np.random.default_rng(5).integers(0, N_LABELS, len(HEADS))
    return Batch(sentences(), heads=np.array(HEADS), labels=labels)


def lookup() -> Model[list[Doc], list[Any]]:
    """A tok2vec of width 3: one row of a table for each first letter."""

    def rows(doc: Doc) -> np.ndarray:
        return np.array(["abc".index(token.text[0]) for token in doc])

    def forward(model: Model[Any, Any], docs: list[Doc], is_train: bool) -> tuple[Any, Any]:
        def backprop(d: list[Any]) -> list[Doc]:
            gradient = np.zeros((3, 3))
            for doc, own in zip(docs, d, strict=True):
                np.add.at(gradient, rows(doc), own)
            model.inc_grad("table", gradient)
            return docs

        return [model.get_param("table")[rows(doc)] for doc in docs], backprop

    return Model("lookup", forward, params={"table": np.eye(3)}, dims={"nO": 3})


def parser(kind: str = "treebank", dropout: float = 0.4) -> Model[Batch, Any]:
    """A tiny parser none of whose weights is near 0, in float64.

    kind: "treebank" embeds its words, "docs" has an LSTM over a tok2vec, "plain" a tok2vec alone.
    """
    np.random.seed(1)  # noqa: NPY002  (of the first weights)
    embed = build_treebank_embed(5, 4, dropout, 0.2)
    set_vocabulary(embed, Vocabulary.fit(sentences() * 3))
    encoder = (
        lookup()
        if kind == "plain"
        else build_bilstm(embed if kind == "treebank" else lookup(), 3, 2, dropout)
    )
    model = build_biaffine_parser(encoder, 4, 3, dropout, N_LABELS)
    model.initialize(X=batch())
    rng = np.random.default_rng(3)
    for node, name in parameters(model):
        array = node.get_param(name).astype(np.float64)
        node.set_param(name, array + 0.3 * rng.standard_normal(array.shape))
    for tables in tables_in(model):
        for name, table in tables.arrays.items():
            tables.arrays[name] = table + 0.3 * rng.standard_normal(table.shape)
            tables.arrays[name][0] = 0
    return model


def parameters(model: Model[Any, Any]) -> list[tuple[Model[Any, Any], str]]:
    return [(n, name) for n in model.walk() for name in n.param_names if n.has_param(name)]


def tables_in(model: Model[Any, Any]) -> list[Tables]:
    return [shim for node in model.walk() for shim in node.shims if isinstance(shim, Tables)]


def soft_batch() -> Batch:
    """The same with two heads of some words, two labels of one of them, the second head again."""
    arcs = [
        ArcShares(
            words=np.array([0, 0, 1, 2], dtype=np.int32),
            heads=np.array([2, 3, 0, 2], dtype=np.int32),
            relations=("a", "b", "c", "d"),
            shares=np.array([0.7, 0.3, 1.0, 1.0]),
        ),
        ArcShares(
            words=np.array([0, 0, 0, 1, 2, 3, 4], dtype=np.int32),
            heads=np.array([3, 3, 2, 3, 0, 5, 3], dtype=np.int32),
            relations=("a", "d", "a", "b", "c", "a", "a"),
            shares=np.array([0.5, 0.2, 0.3, 1.0, 1.0, 1.0, 1.0]),
        ),
        ArcShares.of_tree(
            Sentence.from_columns(forms=["b"], heads=[0], deprels=["c"]),
        ),
    ]
    ids = {name: i for i, name in enumerate("abcd")}
    parts = [Targets.of(own, length - 1, ids) for own, length in zip(arcs, LENGTHS, strict=True)]
    return replace(batch(), targets=Targets.joined(parts))


def test_shares_of_one_tree_teach_what_the_tree_does() -> None:
    model, sample = parser(dropout=0.0), batch()
    assert sample.heads is not None
    assert sample.labels is not None
    ids = {name: i for i, name in enumerate("abcd")}
    names, ends = "abcd", np.cumsum([0, *(length - 1 for length in LENGTHS)])
    parts = []
    for sentence, start, end in zip(sentences(), ends, ends[1:], strict=False):
        deprels = [names[i] for i in sample.labels[start:end]]
        tree = sentence.with_tree(sample.heads[start:end], deprels, single_root=False)
        parts.append(Targets.of(ArcShares.of_tree(tree), len(sentence), ids))
    scores = model.predict(sample)
    by_tree = find_loss(scores, sample)
    by_shares = find_loss(scores, replace(sample, targets=Targets.joined(parts)))
    assert by_shares[:2] == pytest.approx(by_tree[:2], rel=1e-6)
    for name in ("rows", "arcs", "modifiers", "heads", "labels"):
        found, expected = getattr(by_shares[2], name), getattr(by_tree[2], name)
        np.testing.assert_allclose(found, expected, atol=1e-7, err_msg=name)


def test_loss_by_shares_is_the_cross_entropy_of_arcs() -> None:
    sample = soft_batch()
    scores = parser(dropout=0.0).predict(sample)

    def logarithm(start: int, i: int, word: int, head: int, label: int) -> float:
        arcs = np.delete(scores.arcs[i, word, : LENGTHS[i]], word)
        (labels,) = scores.label_scores(np.array([start + word]), np.array([start + head]))
        of_head = scores.arcs[i, word, head] - np.log(np.exp(arcs).sum())
        return of_head + labels[label] - np.log(np.exp(labels).sum())

    of_second = [
        0.5 * logarithm(4, 1, 1, 3, 0) + 0.2 * logarithm(4, 1, 1, 3, 3)
        + 0.3 * logarithm(4, 1, 1, 2, 0),
        logarithm(4, 1, 2, 3, 1), logarithm(4, 1, 3, 0, 2), logarithm(4, 1, 4, 5, 0),
        logarithm(4, 1, 5, 3, 0),
    ]  # fmt: skip
    of_first = [
        0.7 * logarithm(0, 0, 1, 2, 0) + 0.3 * logarithm(0, 0, 1, 3, 1),
        logarithm(0, 0, 2, 0, 2), logarithm(0, 0, 3, 2, 3),
    ]  # fmt: skip
    expected = -(sum(of_first) + sum(of_second) + logarithm(10, 2, 1, 0, 2)) / 9
    assert sum(find_loss(scores, sample)[:2]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("sample", [batch(), soft_batch()], ids=["tree", "shares"])
@pytest.mark.parametrize(
    ("kind", "is_train", "count"),
    [
        ("treebank", True, 2 + 2 * 3 + 6),
        ("treebank", False, 2 + 2 * 3 + 6),
        ("docs", True, 1 + 1 + 2 * 3 + 6),
        ("plain", True, 1 + 1 + 6),
    ],
)
def test_model_gradient_equals_finite_differences(
    kind: str, is_train: bool, count: int, sample: Batch
) -> None:
    model = parser(kind)

    def run() -> tuple[Any, Any]:
        np.random.seed(7)  # noqa: NPY002  (of the dropout)
        return model(sample, is_train)

    def loss() -> float:
        return sum(find_loss(run()[0], sample)[:2])

    scores, backprop = run()
    backprop(find_loss(scores, sample)[2])
    found = {}
    for node, name in parameters(model):
        found[f"{node.name} {node.id} {name}"] = (node.get_param(name), node.get_grad(name))
    for tables in tables_in(model):
        for name, table in tables.arrays.items():
            rows, slopes = tables.gradient(name)
            whole = np.zeros_like(table)
            whole[rows] = slopes
            found[name] = (table, whole)
    assert len(found) == count
    for name, (array, gradient) in found.items():
        expected = np.zeros_like(array)
        for place in np.ndindex(*array.shape):
            if name in ("words", "tags") and place[0] == 0:
                continue  # no value: not learnt
            value, step = array[place], 1e-5
            array[place] = value + step
            above = loss()
            array[place] = value - step
            expected[place] = (above - loss()) / (2 * step)
            array[place] = value
        assert np.abs(expected).max() > 1e-4, name
        np.testing.assert_allclose(gradient, expected, atol=1e-8, err_msg=name)


def test_unknown_heads_and_labels_teach_nothing() -> None:
    model, sample = parser(dropout=0.0), batch()
    assert sample.heads is not None
    assert sample.labels is not None
    heads, labels = sample.heads.copy(), sample.labels.copy()
    heads[4], labels[6] = -1, -1
    scores = model.predict(sample)
    head_loss, label_loss, slopes = find_loss(
        scores, Batch(sentences(), heads=heads, labels=labels)
    )
    every = [find_loss(scores, Batch(sentences(), heads=only(heads, i), labels=only(labels, i)))
             for i in range(len(HEADS))]  # fmt: skip
    known = [i for i in range(len(HEADS)) if i != 4]
    assert head_loss == pytest.approx(np.mean([every[i][0] for i in known]))
    assert label_loss == pytest.approx(np.mean([every[i][1] for i in known if i != 6]))
    rows = scores.layout.words
    assert slopes.rows.tolist() == np.delete(rows, 4).tolist()
    assert slopes.modifiers.tolist() == np.delete(rows, [4, 6]).tolist()
    nothing = np.full(len(HEADS), -1)
    scores, backprop = model.begin_update(sample)
    none = find_loss(scores, Batch(sentences(), heads=nothing, labels=nothing))
    assert none[:2] == (0, 0)
    backprop(none[2])
    for node, name in parameters(model):
        assert (node.get_grad(name) == 0).all()


def test_losses_are_those_of_the_gold_heads_and_of_their_labels() -> None:
    sample = batch()
    assert sample.heads is not None
    assert sample.labels is not None
    scores = parser(dropout=0.0).predict(sample)
    gold = iter(zip(sample.heads.tolist(), sample.labels.tolist(), strict=True))
    of_heads, of_labels, start = [], [], 0
    for i, length in enumerate(LENGTHS):
        for word in range(1, length):
            head, label = next(gold)
            arcs = np.delete(scores.arcs[i, word, :length], word)  # no word is its own head
            of_heads.append(np.log(np.exp(arcs).sum()) - scores.arcs[i, word, head])
            arc = np.array([start + word]), np.array([start + head])
            (labels,) = scores.label_scores(*arc)
            of_labels.append(np.log(np.exp(labels).sum()) - labels[label])
        start += length
    found = find_loss(scores, sample)
    assert found[:2] == pytest.approx((np.mean(of_heads), np.mean(of_labels)))
    # The parser itself finds other heads for some words.
    assert max(of_heads) > np.log(2)


def only(ids: np.ndarray, i: int) -> np.ndarray:
    return np.where(np.arange(len(ids)) == i, ids, -1)


def plain_lstm(x: np.ndarray, inputs: np.ndarray, inner: np.ndarray, bias: np.ndarray):
    """One direction over one sentence, word by word."""
    width = len(inner)
    state, cell, states = np.zeros(width), np.zeros(width), []
    for row in x:
        i, f, o, g = np.split(row @ inputs + state @ inner + bias, 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        cell = f * cell + i * np.tanh(g)
        state = o * np.tanh(cell)
        states.append(state)
    return np.array(states)


@pytest.mark.parametrize("learns", [False, True])
def test_lstm_equals_a_plain_loop_in_both_directions(learns: bool) -> None:
    rng, layout = np.random.default_rng(1), Layout.of(LENGTHS)
    inputs, inner, bias = (rng.standard_normal(s) for s in ((N_IN, 24), (2, 3, 12), (24,)))
    x = rng.standard_normal((sum(LENGTHS), N_IN))
    arguments = (inputs, inner, bias, x, layout)
    found = lstm(*arguments)[0] if learns else lstm_states(*arguments)
    start = 0
    for length in LENGTHS:
        own = slice(start, start + length)
        right = plain_lstm(x[own], inputs[:, :12], inner[0], bias[:12])
        left = plain_lstm(x[own][::-1], inputs[:, 12:], inner[1], bias[12:])[::-1]
        np.testing.assert_allclose(found[own], np.concatenate([right, left], axis=1), atol=1e-12)
        start += length


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("n", [1, 2, BLOCK, BLOCK + 1, 3 * BLOCK + 1, 150])
def test_states_without_padding_are_those_with_it(n: int, ordered: bool) -> None:
    rng = np.random.default_rng(n)
    lengths = rng.integers(2, 30, size=n)
    layout = Layout.of(np.sort(lengths) if ordered else lengths)
    width, rows = 16, int(lengths.sum())
    shapes = ((N_IN, 8 * width), (2, width, 4 * width), (8 * width,), (rows, N_IN))
    arguments = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    padded, _ = lstm(*arguments, layout)
    found = lstm_states(*arguments, layout)
    np.testing.assert_allclose(found, padded, atol=2e-6)
    (library, *_) = threadpool_info()
    if library.get("architecture") in ("Haswell", "Zen"):  # whose blocks are known
        np.testing.assert_array_equal(found, padded)


def test_directions_side_by_side_learn_the_same_to_the_last_bit() -> None:
    rng = np.random.default_rng(4)
    layer = make_lstm(6, dropout=0.3)
    x = rng.standard_normal((sum(LENGTHS), N_IN)).astype(np.float32)
    d = rng.standard_normal((sum(LENGTHS), 12)).astype(np.float32)
    lengths = np.array(LENGTHS, dtype=np.int32)
    layer.initialize(X=Ragged(x, lengths))
    found, threads = [], []

    def noting(run: Callable[[slice], None]) -> None:
        in_directions(lambda some: (threads.append((threading.get_ident(), some)), run(some))[1])

    in_directions = recurrent._in_directions
    for n_threads in (1, 2):
        np.random.seed(0)  # noqa: NPY002  (whence thinc takes its masks)
        with pytest.MonkeyPatch.context() as patch, directions_apart(n_threads):
            patch.setattr(recurrent, "_in_directions", noting)
            states, back = layer(Ragged(x, lengths), is_train=True)
            read = back(Ragged(d, lengths))
        arrays = [states.dataXd, read.dataXd, *(layer.get_grad(name) for name in PARTS)]
        found.append([array.copy() for array in arrays])
        for name in PARTS:
            layer.set_grad(name, np.zeros_like(layer.get_grad(name)))
    for own, other in zip(*found, strict=True):
        np.testing.assert_array_equal(own, other)
    assert [some for _, some in threads[:2]] == [slice(0, 2)] * 2
    if openmp_enabled():
        assert len({thread for thread, _ in threads[2:]}) == 2


def test_what_goes_wrong_in_the_second_direction_is_raised() -> None:
    def run(some: slice) -> None:
        if some.start == 1:
            raise ArithmeticError("here")

    with directions_apart(2):
        if openmp_enabled():
            with pytest.raises(ArithmeticError, match="here"):
                recurrent._in_directions(run)


def test_lstm_layer_starts_with_open_forget_gates() -> None:
    layer = make_lstm(3)
    x = np.random.default_rng(1).standard_normal((sum(LENGTHS), N_IN)).astype(np.float32)
    layer.initialize(X=Ragged(x, np.array(LENGTHS, dtype=np.int32)))
    bias = layer.get_param("bias").reshape(2, 4, 3)
    assert (bias[:, 1] == 1).all()
    assert (np.delete(bias, 1, axis=1) == 0).all()
    for state in layer.get_param("state"):
        for gate in np.split(state, 4, axis=1):
            np.testing.assert_allclose(gate @ gate.T, np.eye(3), atol=1e-6)
    assert (layer.get_dim("nI"), layer.get_dim("nO")) == (N_IN, 6)


def test_arc_and_label_scores_equal_a_plain_loop() -> None:
    scorer = make_scorer(4, 3, n_labels=N_LABELS)
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((sum(LENGTHS), N_IN))
    x = Ragged(rows, np.array(LENGTHS, dtype=np.int32))
    scorer.initialize(X=x)
    weights = {n: rng.standard_normal(shape) for n, shape in weight_shapes(scorer).items()}
    for name, value in weights.items():
        scorer.set_param(name, value)
    found = scorer.predict(x)
    scores = found.arcs
    hidden = rows @ weights["mlp"] + weights["mlp_bias"]
    out = np.where(hidden > 0, hidden, 0.1 * hidden)
    labels = weights["label"].reshape(4, N_LABELS, 4)
    start = 0
    for sentence, length in enumerate(LENGTHS):
        for m in range(1, length):
            for h in range(length):
                if h == m:
                    continue
                dep, head = out[start + m, :4], out[start + h, 4:8]
                far = sum(abs(h - m) >= least for least in FAR)
                bucket = 0 if h == 0 else far if h > m else far + len(FAR)
                expected = dep @ weights["arc"] @ head + weights["arc_head"] @ head
                expected += np.append(dep, 1) @ weights["arc_distance"][:, bucket]
                assert scores[sentence, m, h] == pytest.approx(expected)
                left = np.append(out[start + m, 8:11], 1)
                right = np.append(out[start + h, 11:14], 1)
                own = found.label_scores(np.array([start + m]), np.array([start + h]))[0]
                for label in range(N_LABELS):
                    assert own[label] == pytest.approx(left @ labels[:, label] @ right)
                every = found.all_label_scores(start + m, 1, start, length)
                np.testing.assert_allclose(every[0, :, h], own)
            assert np.exp(log_softmax(scores[sentence, m]))[length:].sum() == 0  # no padding
        start += length


def test_buckets_tell_sides_and_distances() -> None:
    found = buckets(40)
    assert found.shape == (40, 40)
    assert (found[:, 0] == 0).all()
    assert found[3, 4] == 1
    assert found[3, 2] == 1 + len(FAR)
    assert found[1, 39] == len(FAR)
    assert found[39, 1] == N_BUCKETS - 1
    assert [int(found[1, 1 + d]) for d in (1, 4, 5, 6, 7)] == [1, 4, 5, 5, 6]


def test_a_sentence_s_scores_do_not_depend_on_its_batch() -> None:
    model = parser()
    scores = model.predict(batch()).arcs
    for i, (sentence, length) in enumerate(zip(sentences(), LENGTHS, strict=True)):
        expected = model.predict(Batch([sentence])).arcs[0]
        np.testing.assert_allclose(scores[i, :length, :length], expected, atol=1e-12)


def test_batches_hold_every_sentence_once_within_the_size() -> None:
    lengths = np.random.default_rng(2).integers(2, 60, 200).tolist()
    for rng in (None, np.random.default_rng(1)):
        batches = make_batches(lengths, 300, rng=rng)
        assert sorted(i for batch in batches for i in batch) == list(range(200))
        assert all(len(b) * max(lengths[i] for i in b) <= 300 for b in batches)
    assert make_batches([500, 3], 300) == [[1], [0]]


def adam(**more: Any) -> Adam:
    return Adam(0.01, beta1=0.9, beta2=0.95, grad_clip=0.0, L2=0.0, **more)


def test_tables_learn_the_rows_that_were_read_as_parameters_do() -> None:
    rng = np.random.default_rng(4)
    tables = Tables()
    tables.arrays["a"] = rng.standard_normal((6, 2)).astype(np.float32)
    tables.arrays["a"][0] = 0
    plain = [row.copy() for row in tables.arrays["a"]]
    optimizer, expected = adam(use_averages=False), adam(use_averages=False)
    for ids in ([[1, 3], [3, 0]], [[3, 3], [5, 1]], [[1, 0], [0, 0]]):
        d = rng.standard_normal((2, 2)).astype(np.float32)
        read = tables.read("a", np.array(ids, dtype=np.int32))
        for row, own in zip(read, ids, strict=True):
            np.testing.assert_allclose(row, sum(tables.arrays["a"][i] for i in own), rtol=1e-6)
        tables.add_slopes("a", np.array(ids, dtype=np.int32), d)
        gradient = np.zeros((6, 2), dtype=np.float32)
        for own, slope in zip(ids, d, strict=True):
            for i in own:
                gradient[i] += slope
        for i in {i for own in ids for i in own} - {0}:
            # Each row by itself; the steps are counted for the whole table.
            expected.nr_update[i, "a"] = optimizer.nr_update[tables.id, "a"]
            plain[i], _ = expected((i, "a"), plain[i], gradient[i])
        tables.finish_update(optimizer)
        np.testing.assert_allclose(tables.arrays["a"], plain, rtol=1e-5)
    assert len(tables.gradient("a")[0]) == 0


def test_tables_add_up_the_gradients_of_several_batches() -> None:
    tables = Tables()
    tables.arrays["a"] = np.zeros((4, 1), dtype=np.float32)
    for ids, slope in (([[1, 2]], 1.0), ([[2, 0]], 2.0), ([[3, 3]], 4.0)):
        tables.add_slopes("a", np.array(ids, np.int32), np.full((1, 1), slope, np.float32))
    rows, slopes = tables.gradient("a")
    assert rows.tolist() == [1, 2, 3]
    assert slopes[:, 0].tolist() == [1, 3, 8]


def test_tables_with_averages_are_ordinary_parameters() -> None:
    tables, optimizer, expected = Tables(), adam(use_averages=True), adam(use_averages=True)
    tables.arrays["a"] = np.ones((3, 1), dtype=np.float32)
    plain = tables.arrays["a"].copy()
    for row in (1, 2, 1):
        tables.add_slopes("a", np.array([[row]], np.int32), np.full((1, 1), 2.0, np.float32))
        gradient = np.zeros((3, 1), dtype=np.float32)
        gradient[row] = 2
        plain, _ = expected((0, "a"), plain, gradient)
        tables.finish_update(optimizer)
    np.testing.assert_array_equal(tables.arrays["a"], plain)
    assert optimizer.averages is not None
    assert expected.averages is not None
    with tables.use_params(optimizer.averages):
        np.testing.assert_array_equal(tables.arrays["a"], expected.averages[0, "a"])
    np.testing.assert_array_equal(tables.arrays["a"], plain)


def test_tables_are_copied_and_stored() -> None:
    tables = Tables()
    tables.arrays["a"] = np.arange(6, dtype=np.float32).reshape(3, 2)
    copied = tables.copy()
    again = Tables().from_bytes(tables.to_bytes())
    moved = tables.copy()
    moved.to_device("cpu", -1)
    tables.arrays["a"] += 1
    assert copied.id != tables.id
    for other in (copied, again, moved):
        assert other.arrays["a"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert isinstance(again.ops, NumpyOps)


def test_treebank_embedding_without_a_vocabulary_says_where_it_belongs() -> None:
    with pytest.raises(UserError, match=r"only tk_biaffine gives it: .*spacy.MultiHashEmbed.v2"):
        build_treebank_embed().initialize()
