"""XPOS that no parser should learn from: gold syntax stands in it, or train alone has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from spacy.util import load_config_from_str

from tk_spacy.errors import UserError
from tk_spacy.features.schema import distrusts_xpos
from tk_spacy.parsers.biaffine.settings import BiaffineSettings
from tk_spacy.parsers.biaffine.spec import BiaffineSpec
from tk_spacy.parsers.biaffine.training import train_biaffine_parser
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.parsers.spacy_transition.spec import SpacySpec
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.utils.progress import Progress, Stages
from tk_spacy.utils.timing import Meter
from tk_spacy.workflows.train.inputs import XPOS_NOTE, make_plan
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.tagging import tag_parts

SENTENCES = list(generate(30, seed=3))
SMALL = {
    "epochs": 1,
    "steps": 0,
    "width": 8,
    "word_width": 8,
    "tag_width": 8,
    "arc_width": 8,
    "label_width": 8,
}


def tagged(sentences: list[Sentence], tag: str | None = None) -> list[Sentence]:
    """Sentences whose XPOS tells the gold relation, or is the same everywhere."""
    return [replace(s, xpos=s.deprels if tag is None else (tag,) * len(s)) for s in sentences]


TELLING, EMPTY = tagged(SENTENCES), tagged(SENTENCES, "_")


@pytest.mark.parametrize(
    ("train", "dev", "distrusted"),
    [
        (TELLING, TELLING, False),
        (TELLING, [], False),
        (TELLING, EMPTY, True),
        (TELLING + EMPTY, [], True),
        (EMPTY, TELLING, False),  # nothing that could be learnt
        (EMPTY, [], False),
    ],
)
def test_xpos_is_distrusted(train: list[Sentence], dev: list[Sentence], distrusted: bool) -> None:
    assert distrusts_xpos(train, dev) is distrusted


def test_xpos_with_a_thousand_values_is_distrusted() -> None:
    many = [
        replace(s, xpos=[f"{i}|{m}" for m in range(len(s))]) for i, s in enumerate(SENTENCES * 9)
    ]
    assert distrusts_xpos(many)


def test_vocabulary_without_xpos_never_looks_at_it() -> None:
    blind, seeing = Vocabulary.fit(TELLING, xpos=False), Vocabulary.fit(TELLING)
    assert (blind.reads_xpos, seeing.reads_xpos) == (False, True)
    assert not any(key.startswith("xpos") for key in blind.tags)
    assert "XPOS" not in blind.columns
    differ = 0
    for a, b in zip(TELLING, EMPTY, strict=True):
        for rows, others in zip(blind.encode(a), blind.encode(b), strict=True):
            np.testing.assert_array_equal(rows, others)
        differ += not np.array_equal(seeing.encode(a)[1], seeing.encode(b)[1])
    assert differ == len(TELLING)
    again = Vocabulary.from_dict(blind.to_dict())
    np.testing.assert_array_equal(again.encode(TELLING[0])[1], blind.encode(EMPTY[0])[1])


def test_biaffine_parser_learns_no_xpos_that_train_itself_shows_to_be_odd() -> None:
    mixed = TELLING[:15] + EMPTY[15:]
    assert not train_biaffine_parser(
        mixed, settings=BiaffineSettings(**SMALL)
    ).vocabulary.reads_xpos
    told = BiaffineSettings(**SMALL, xpos=False)
    assert not train_biaffine_parser(TELLING, settings=told).vocabulary.reads_xpos
    assert BiaffineSettings.from_dict(told.to_dict()) == told
    assert "xpos" not in BiaffineSettings().to_dict()  # parsers of before keep their fingerprint
    with pytest.raises(UserError, match="xpos is 1; it must be true or false"):
        BiaffineSettings(xpos=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("distrusted", [True, False])
def test_parsers_learn_no_distrusted_xpos(tmp_path: Path, distrusted: bool) -> None:
    write_conllu(tmp_path / "train.conllu", TELLING)
    write_conllu(tmp_path / "dev.conllu", (EMPTY if distrusted else TELLING)[:10])
    plan = make_plan(
        TrainOptions(
            train=tmp_path / "train.conllu", dev=tmp_path / "dev.conllu", output=tmp_path / "m",
            parsers=("biaffine", "spacy"), folds=2,
        )
    )  # fmt: skip
    biaffine, spacy = plan.parsers
    assert isinstance(biaffine, BiaffineSpec)
    assert isinstance(spacy, SpacySpec)
    assert biaffine.settings.xpos is not distrusted
    model = load_config_from_str(spacy.config, interpolate=False)["components"]["parser"]["model"]
    embed = model["tok2vec"]["embed"]
    assert ("TAG" in embed["attrs"]) is not distrusted
    assert len(embed["attrs"]) == len(embed["rows"])
    assert (XPOS_NOTE in plan.notes) is distrusted


@pytest.mark.parametrize("distrusted", [True, False])
def test_taggers_predict_no_distrusted_xpos(tmp_path: Path, distrusted: bool) -> None:
    write_conllu(tmp_path / "train.conllu", TELLING)
    write_conllu(tmp_path / "dev.conllu", (EMPTY if distrusted else TELLING)[:10])
    options = TrainOptions(
        train=tmp_path / "train.conllu", dev=tmp_path / "dev.conllu", output=tmp_path / "m",
        parsers=("transition",), folds=2, tags="own", tokenizer="none",
        tagger="udpipe:iterations=2",
    )  # fmt: skip
    plan, tagging = tag_parts(Stages(Progress(), Meter()), make_plan(options))
    for name, part in plan.parts.items():
        assert {tag == "_" for s in part.sentences for tag in s.xpos} == {distrusted}
        assert tagging.scores[name].upos > 50
