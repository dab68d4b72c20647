"""Tiny spaCy parsers for tests, each trained once, in seconds, and what to expect of lists.

The tests are about what is done with a parser, not about how good it is.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from thinc.api import Config

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.parsers.spacy_transition.training import load_spacy_config, train_spacy_parser
from tk_spacy.spacy_io.conversion import doc_from_sentence, to_ud_label
from tk_spacy.treebank.conllu import Sentence, check_tree
from tk_spacy.treebank.synthetic import generate

TINY: dict[str, Any] = {
    "components.parser.model.hidden_width": 24,
    "components.parser.model.tok2vec.encode.width": 24,
    "components.parser.model.tok2vec.encode.depth": 1,
    "components.parser.model.tok2vec.embed.rows": [500, 100, 100, 50, 50, 50, 300, 500],
    "training.eval_frequency": 10,
    "training.max_steps": 40,
    "training.batcher.size": 300,
    "training.optimizer.learn_rate.warmup_steps": 5,
    "training.optimizer.learn_rate.initial_rate": 0.02,
}


def tiny_config(path: Path, **changes: Any) -> Path:
    """Write the package's own config with small sizes; changes with __ for the dots of a key."""
    config = load_spacy_config(None)
    for key, value in {**TINY, **{k.replace("__", "."): v for k, v in changes.items()}}.items():
        *sections, name = key.split(".")
        place: dict[str, Any] = config
        for section in sections:
            place = place[section]
        place[name] = value
    config.to_disk(path, interpolate=False)
    return path


def listening_config(path: Path, *, max_steps: int) -> Config:
    """A config of a parser that listens to a tok2vec component before it."""
    config = load_spacy_config(tiny_config(path, training__max_steps=max_steps))
    tok2vec = config["components"]["parser"]["model"]["tok2vec"]
    tok2vec["embed"]["width"] = 24
    config["components"]["tok2vec"] = {"factory": "tok2vec", "model": tok2vec}
    config["components"]["parser"]["model"]["tok2vec"] = {
        "@architectures": "spacy.Tok2VecListener.v1",
        "width": 24,
        "upstream": "*",
    }
    config["nlp"]["pipeline"] = ["tok2vec", "parser"]
    return config


@cache
def tiny_nlp(*, backward: bool = False) -> Language:
    """A parser, on its own or with its right-to-left twin; not to be changed."""
    with tempfile.TemporaryDirectory() as folder:
        config = tiny_config(Path(folder, "tiny.cfg"))
        return train_spacy_parser(list(generate(120, seed=3)), config=config, backward=backward)


def nonprojective_tree(sent_id: str | None = None) -> Sentence:
    """The arc from word 1 to word 5 crosses that from word 2 to the root."""
    return Sentence.from_columns(
        forms="hearing scheduled is on issue today".split(),
        upos="NOUN VERB AUX ADP NOUN ADV".split(),
        heads=[2, 0, 2, 5, 1, 2],
        deprels="nsubj root aux case nmod advmod".split(),
        sent_id=sent_id,
    )


def own_trees(nlp, sentences, component="parser") -> list[tuple[list[int], list[str]]]:
    """What the pipeline itself predicts."""
    trees = []
    for sentence in sentences:
        doc = doc_from_sentence(nlp.vocab, sentence)
        for name, pipe in nlp.pipeline:
            doc = pipe(doc)
            if name == component:
                break
        heads = [0 if token.head.i == token.i else token.head.i + 1 for token in doc]
        trees.append((heads, [to_ud_label(token.dep_) for token in doc]))
    return trees


def base_trees(lists: list[CandidateList]) -> list[tuple[list[int], list[str]]]:
    return [(trees.heads[trees.base].tolist(), list(trees.deprels(trees.base))) for trees in lists]


def assert_usable(lists: list[CandidateList], k: int) -> None:
    for trees in lists:
        assert 1 <= len(trees) <= k
        assert all(check_tree(heads) is None for heads in trees.heads)
        distinct = {
            (h.tobytes(), r.tobytes()) for h, r in zip(trees.heads, trees.labels, strict=True)
        }
        assert len(distinct) == len(trees)
        assert np.all(np.isfinite(trees.scores))
        assert np.all(np.diff(trees.scores[:, 0]) <= 0)
        assert np.all(trees.scores <= 1e-6)
    labels = {name for trees in lists for name in trees.inventory.names}
    assert not any("||" in name for name in labels)
    assert "ROOT" not in labels
