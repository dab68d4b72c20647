"""The encoders of sentences: our LSTM as a tok2vec of spaCy's, and any tok2vec with a root."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model, chain
from thinc.types import Floats2d, Ragged

from tk_spacy.parsers.biaffine.batch import Batch, batch_of_docs
from tk_spacy.parsers.biaffine.batches import Layout
from tk_spacy.parsers.biaffine.chance import generator
from tk_spacy.parsers.biaffine.embedding import NAME as TREEBANK_EMBED
from tk_spacy.parsers.biaffine.recurrent import make_lstm

BILSTM, ROOTED = "tk_bilstm", "tk_rooted"


@registry.architectures("tk_spacy.BiLSTM.v1")
def build_bilstm(
    embed: Model, width: int = 128, depth: int = 2, dropout: float = 0.2
) -> Model[list[Doc], list[Floats2d]]:
    """A bidirectional LSTM over the sentences of Docs: a tok2vec of width 2 * width.

    A Doc without sentence starts is one sentence.  White space gets vectors of 0.
    embed: `tk_spacy.TreebankEmbed.v1`, or any layer from Docs to vectors of their tokens, such as
        `spacy.MultiHashEmbed.v2`.
    width, depth: of the state in each direction, and number of layers.
    dropout: of each layer's input and state.
    """
    layers = [make_lstm(width, dropout=dropout) for _ in range(depth)]
    return Model(
        BILSTM,
        _forward_docs,
        init=_init_docs,
        layers=[chain(rooted(embed), *layers)],
        dims={"nO": 2 * width},
    )


def rooted(layer: Any) -> Model[Batch, Ragged]:
    """A layer from sentences to their rows, the root's before the words', out of a tok2vec.

    Where the tok2vec is one of ours, which have rows of roots themselves, it gives those, otherwise
    a row that is learnt.  Which of both is told by whether the weight of that row is there, so that
    a listener may be replaced by what it listens to, be it one of ours.
    """
    return Model(
        ROOTED,
        _forward_rooted,
        init=_init_rooted,
        layers=[layer],
        params={"root": None},
        dims={"nO": None},
    )


def rooted_of(model: Model[Any, Any]) -> Model[Batch, Ragged] | None:
    """The layer in a model that reads Docs by a tok2vec; None where sentences are all it reads."""
    return next((node for node in model.walk() if node.name == ROOTED and _learns(node)), None)


def _learns(model: Model[Batch, Ragged]) -> bool:
    return model.has_param("root") is True


def _with_roots(layer: Any) -> Model[Batch, Ragged] | None:
    """The layer of a tok2vec of ours that gives rows of roots, None in others."""
    if layer.name == TREEBANK_EMBED:
        return layer
    return layer.layers[0] if layer.name == BILSTM else None


# A tok2vec's vectors with a learnt one for the root


def _forward_rooted(
    model: Model[Batch, Ragged], X: Batch, is_train: bool
) -> tuple[Ragged, Callable[[Ragged], Any]]:
    if not _learns(model):
        own = _with_roots(model.layers[0])
        assert own is not None
        return own(X, is_train)
    ops: Any = model.ops
    if X.vectors is not None and not is_train:
        vectors = ops.xp.concatenate(X.vectors)
        source = np.arange(len(vectors))
        back: Any = None
    else:
        docs, places = X.located()
        found, back = model.layers[0](docs, is_train)
        starts = np.cumsum([0, *map(len, docs)])
        source = np.concatenate([starts[i] + words for i, words in places])
        vectors = ops.xp.concatenate(found)
    layout = Layout.of(X.lengths, ops)
    source = ops.asarray(source)
    data = ops.xp.empty((len(layout.owner), vectors.shape[1]), dtype=vectors.dtype)
    data[layout.time == 0] = model.get_param("root")
    data[layout.words] = vectors[source]

    def backprop(d: Ragged) -> Any:
        slopes: Any = d.dataXd
        model.inc_grad("root", slopes[layout.time == 0].sum(axis=0))
        whole = ops.xp.zeros_like(vectors)
        whole[source] = slopes[layout.words]
        return back([whole[a:b] for a, b in pairwise(starts)])

    return Ragged(data, ops.asarray1i(X.lengths)), backprop


def _init_rooted(model: Model[Batch, Ragged], X: Batch | None = None, Y: Any = None) -> None:
    (layer,) = model.layers
    own = _with_roots(layer)
    if own is not None:
        own.initialize(X=X)
        model.set_dim("nO", layer.get_dim("nO"))
        return
    docs = X.located()[0] if X is not None else None
    layer.initialize(X=docs)
    width = layer.maybe_get_dim("nO")
    if width is None:
        width = layer.predict(docs)[0].shape[1]
    model.set_dim("nO", width)
    root: Any = (generator().standard_normal(width) * 0.3).astype(np.float32)
    model.set_param("root", model.ops.asarray_f(root))


# Our LSTM as a tok2vec


def _forward_docs(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    ops: Any = model.ops
    width = model.get_dim("nO")
    batch = batch_of_docs(docs)
    vectors: list[Any] = [ops.alloc2f(len(doc), width) for doc in docs]
    if not batch.sentences:
        return vectors, lambda _: docs
    rows, back = model.layers[0](batch, is_train)
    ends = np.cumsum(batch.lengths)
    assert batch.places is not None
    spans = [
        (doc, ops.asarray(words), end - len(words), end)
        for (doc, words), end in zip(batch.places, ends.tolist(), strict=True)
    ]
    for doc, words, start, end in spans:
        vectors[doc][words] = rows.dataXd[start:end]

    def backprop(d_vectors: list[Floats2d]) -> list[Doc]:
        d = ops.alloc2f(int(ends[-1]), width)
        slopes: list[Any] = list(d_vectors)
        for doc, words, start, end in spans:
            d[start:end] = slopes[doc][words]
        back(Ragged(d, rows.lengths))
        return docs

    return vectors, backprop


def _init_docs(
    model: Model[list[Doc], list[Floats2d]], X: list[Doc] | None = None, Y: Any = None
) -> None:
    model.layers[0].initialize(X=None if X is None else batch_of_docs(X))
