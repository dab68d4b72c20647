"""A tiny upstream parser for tests, trained in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tk_spacy.treebank import Sentence
from tk_spacy.upstream.train_parser import load_upstream_config

# The tests are about what is done with a parser, not about how good it is.
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
    config = load_upstream_config(None)
    for key, value in {**TINY, **{k.replace("__", "."): v for k, v in changes.items()}}.items():
        *sections, name = key.split(".")
        place: dict[str, Any] = config
        for section in sections:
            place = place[section]
        place[name] = value
    config.to_disk(path, interpolate=False)
    return path


def nonprojective_tree(sent_id: str | None = None) -> Sentence:
    """The arc from word 1 to word 5 crosses that from word 2 to the root."""
    return Sentence.from_columns(
        forms="hearing scheduled is on issue today".split(),
        upos="NOUN VERB AUX ADP NOUN ADV".split(),
        heads=[2, 0, 2, 5, 1, 2],
        deprels="nsubj root aux case nmod advmod".split(),
        sent_id=sent_id,
    )
