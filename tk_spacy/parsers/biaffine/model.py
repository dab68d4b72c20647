"""The parser as a thinc model: any encoder of spaCy's, and the scorer on top of it; or several."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from tk_spacy.parsers.biaffine.batch import Batch, Input, batch_of_docs
from tk_spacy.parsers.biaffine.committee import make_committee
from tk_spacy.parsers.biaffine.embedding import build_treebank_embed
from tk_spacy.parsers.biaffine.encoder import build_bilstm, rooted
from tk_spacy.parsers.biaffine.scorer import Scores, Slopes, make_scorer
from tk_spacy.parsers.biaffine.settings import BiaffineSettings


@registry.architectures("tk_spacy.BiaffineParser.v1")
def build_biaffine_parser(
    tok2vec: Model[list[Doc], list[Floats2d]],
    arc_width: int = 128,
    label_width: int = 48,
    dropout: float = 0.2,
    nO: int | None = None,
) -> Model[Input, Any]:
    """A biaffine parser over an encoder.

    tok2vec: any layer from Docs to vectors of their tokens: `tk_spacy.BiLSTM.v1`,
        `spacy.HashEmbedCNN.v2`, a listener to a tok2vec or transformer before it in the pipeline.
    arc_width, label_width: of what a word is as head or modifier of an arc, and of a label.
    dropout: of the encoder's vectors, and of what is made of them; `spacy train` puts its own
        in the place of all rates of dropout.
    nO: number of labels; None to find it in the data.

    It reads sentences of one's choice, as the component does, or those of Docs, as spaCy's own
    models do.
    """
    scorer = make_scorer(arc_width, label_width, dropout=dropout, n_labels=nO)
    return Model("tk_biaffine_parser", forward, init=init, layers=[rooted(tok2vec), scorer])


def model_of(settings: BiaffineSettings) -> Model[Input, Any]:
    """The model that `tk-spacy` trains by settings, before it is initialized."""
    if settings.networks > 1:
        alone = replace(settings, networks=1)
        return make_committee([model_of(alone) for _ in range(settings.networks)])
    s = settings
    embed = build_treebank_embed(s.word_width, s.tag_width, s.dropout, s.column_dropout)
    encoder = build_bilstm(embed, s.width, s.layers, s.dropout)
    return build_biaffine_parser(encoder, s.arc_width, s.label_width, s.dropout)


def scorer_of(model: Model[Input, Any]) -> Model[Any, Scores]:
    """The layer on top of the encoder."""
    return model.layers[1]


def forward(
    model: Model[Input, Any], X: Input, is_train: bool
) -> tuple[Scores, Callable[[Slopes], Any]]:
    """The scores of a batch."""
    rows, encoder_back = model.layers[0](_batch(X), is_train)
    scores, scorer_back = model.layers[1](rows, is_train)
    return scores, lambda slopes: encoder_back(scorer_back(slopes))


def init(model: Model[Input, Any], X: Input | None = None, Y: Any = None) -> None:
    """Initialize the encoder, then the scorer by what it gives."""
    encoder, scorer = model.layers
    batch = None if X is None else _batch(X)
    encoder.initialize(X=batch)
    scorer.initialize(X=None if batch is None else encoder.predict(batch))


def _batch(X: Input) -> Batch:
    return X if isinstance(X, Batch) else batch_of_docs(X)
