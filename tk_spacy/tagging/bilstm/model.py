"""The neural tagger as a thinc model: the biaffine parser's embedding and LSTM, and one layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thinc.api import Dropout, Linear, Model, chain, noop, use_ops
from thinc.types import Floats2d, Ragged

from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.batches import Layout
from tk_spacy.parsers.biaffine.embedding import make_embedding
from tk_spacy.parsers.biaffine.recurrent import make_lstm
from tk_spacy.parsers.biaffine.weights import check_shapes, encoder_weights
from tk_spacy.tagging.bilstm.settings import BilstmSettings
from tk_spacy.tagging.bilstm.vocabulary import FormVocabulary

SPREAD = 0.1
"""Of the first embeddings: a word sums some thirty of them."""


def model_of(
    settings: BilstmSettings, vocabulary: FormVocabulary, n_values: int
) -> Model[Batch, Any]:
    """The tagger's model, on the CPU, before it is initialized: from sentences to words' scores.

    Above the LSTM a word is its state and its own embedding side by side: most of what tags and
    lemmas depend on is in the word itself.
    vocabulary: what it reads.  n_values: of all tasks together.
    """
    s = settings
    # numpy's matrix products are up to 3 times as fast as thinc's.
    with use_ops("numpy", use_blis=False):
        embed = make_embedding(
            (s.form_width, s.affix_width), s.group_dropout, s.column_dropout,
            vocabulary=vocabulary, spread=SPREAD,
        )  # fmt: skip
        lstms = [make_lstm(s.width, dropout=s.dropout) for _ in range(s.layers)]
        model: Model[Batch, Any] = chain(
            embed, _words_beside(chain(noop(), *lstms)), Dropout(s.dropout), Linear(n_values)
        )
    return model


def check_weights(model: Model[Batch, Any], n_values: int) -> None:
    """Raises ValueError for weights that are not numbers as they must be, or of another shape.

    n_values: of all tasks together, as `model_of` had it.
    """
    output = model.layers[-1]
    n_in = output.get_dim("nI")
    check_shapes(
        [
            *encoder_weights(model),
            ("output", output.get_param("W"), (n_values, n_in)),
            ("output bias", output.get_param("b"), (n_values,)),
        ]
    )


def _words_beside(layer: Model[Ragged, Ragged]) -> Model[Ragged, Floats2d]:
    """What a layer makes of words and what it reads of them side by side, without the roots' rows.

    (thinc's `concatenate` has no gradient for a Ragged that several layers read.)
    """
    return Model("tk_words_beside", _forward_words, init=_init_words, layers=[layer])


def _forward_words(
    model: Model[Ragged, Floats2d], X: Ragged, is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], Ragged]]:
    found, back = model.layers[0](X, is_train)
    xp = model.ops.xp
    rows: Any = xp.concatenate([found.dataXd, X.dataXd], axis=1)
    width = found.dataXd.shape[1]
    words = Layout.of(model.ops.to_numpy(X.lengths)).words

    def backprop(d: Floats2d) -> Ragged:
        slopes = xp.zeros_like(rows)
        slopes[words] = d
        own: Any = back(Ragged(slopes[:, :width], X.lengths)).dataXd
        return Ragged(own + slopes[:, width:], X.lengths)

    return rows[words], backprop


def _init_words(model: Model[Ragged, Floats2d], X: Ragged | None = None, Y: Any = None) -> None:
    model.layers[0].initialize(X=X)
