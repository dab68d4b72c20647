"""Features of further properties of words in the sampling parser."""

from __future__ import annotations

import dataclasses
import json
from itertools import product

import numpy as np
import pytest
from reference_sampling import tree_scores
from sampling_parsers import QUICK, own_scores, random_parser, random_tree, trained, treebank

from tk_spacy.errors import UserError
from tk_spacy.features.schema import CPOS, LEMMA, POS, Schema
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.parsers.sampling.search.words import N_EXTRA, encode
from tk_spacy.parsers.sampling.settings import MOST_NAMES, SamplingSettings
from tk_spacy.parsers.sampling.spec import SamplingSpec
from tk_spacy.parsers.sampling.training import train_sampling_parser
from tk_spacy.treebank.conllu import Sentence

EXTRA = ("suffix1", "misc:Gloss", "lower")
WORD = 2**64 - 1


# A twin of named_templates and of the hash that is behind it (features.pxd), in plain Python.


def mix(value, more):
    value = (value ^ more) * 0x9E3779B97F4A7C15 & WORD
    return value ^ value >> 32


def hashed(template, *values):
    result = mix(template + 1, 0xA24BAED4963EE407)
    for value in values:
        result = mix(result, value)
    return result


def binned(distance):
    length = abs(distance)
    length = 7 if length > 10 else 6 if length > 5 else length
    return 2 * length + (distance > 0)


def named_features(fields, first, h, m):
    """The features of an arc as 64-bit numbers; first: the column of the first extra."""
    direction, where = int(m > h), binned(m - h)
    found = []
    for j in range(fields.shape[1] - first):
        (hp, hc, hl, a), (mp, mc, _, b) = (
            [int(fields[word, column]) for column in (POS, CPOS, LEMMA, first + j)]
            for word in (h, m)
        )
        if b:
            found.append(hashed(240, j, b, hp, mp, direction))
            found.append(hashed(241, j, b, mp, where))
            found.append(hashed(242, j, b, hl, direction))
        if a:
            found.append(hashed(243, j, a, hp, mp, direction))
            found.append(hashed(244, j, a, hp, where))
        if a and b:
            found.append(hashed(245, j, a, b, direction))
            found.append(hashed(246, j, a, b, hc, mc, direction))
    return found


def index(feature, bits):
    """Where a feature's weights begin."""
    return mix(feature, 0xD6E8FEB86659FD93) >> 7 & (1 << bits) - 1


def glossed_sentence(rng, n):
    heads = random_tree(rng, n)
    return Sentence.from_columns(
        forms=[str(v) for v in rng.choice(["ab", "Ab", "b", "c", "_"], size=n)],
        lemmas=[str(v) for v in rng.choice(list("ab"), size=n)],
        upos=[str(v) for v in rng.choice(["NOUN", "VERB"], size=n)],
        misc=[str(v) for v in rng.choice(["_", "Gloss=p", "Gloss=q", "SpaceAfter=No"], size=n)],
        heads=heads,
        deprels=["root" if head == 0 else "x" for head in heads],
    )


def extra_parser(rng, sentences, extra=EXTRA, **settings):
    """A parser with random weights and extras; its schema has seen the sentences."""
    parser = random_parser(rng, sentences, extra=extra, **settings)
    schema = Schema.fit(sentences, labels=parser.labels, extras=extra)
    return dataclasses.replace(parser, schema=schema)


def test_sampling_extras_give_arcs_the_features_of_their_templates():
    rng = np.random.default_rng(3)
    sentences = [glossed_sentence(rng, n) for n in (1, 16, 5)]
    parser = extra_parser(rng, sentences, order=1)
    without = dataclasses.replace(
        parser,
        schema=Schema.fit(sentences, labels=parser.labels),
        settings=dataclasses.replace(parser.settings, extra=()),
    )
    first = parser.schema.n_columns + N_EXTRA
    counted = 0
    for sentence in sentences:
        n = len(sentence)
        fields = encode(parser.schema, [sentence]).fields
        labels = tuple(3 if head == 0 else 4 for head in sentence.heads)
        tree = [(sentence.heads, labels)]
        expected = 0.0
        for m, (h, label) in enumerate(zip(sentence.heads.tolist(), labels, strict=True), start=1):
            for feature in named_features(fields, first, h, m):
                at = index(feature, parser.settings.bits)
                expected += float(parser.weights[at]) + float(parser.weights[at + label])
                counted += 1
        found = own_scores(parser, sentence, tree) - own_scores(without, sentence, tree)
        assert found[0] == pytest.approx(expected, abs=1e-4 * n)
    assert expected != 0.0
    assert counted > 100


@pytest.mark.parametrize("order", [1, 3])
def test_sampling_extras_scores_of_lists_are_those_of_their_trees(order):
    rng = np.random.default_rng(order)
    sentences = [glossed_sentence(rng, n) for n in (3, 12, 25)]
    # As many as there may be: no buffer must be too short for their features.
    names = [f"{side}{n}" for side, n in product(("prefix", "suffix"), range(1, 6))]
    names += ["lemma", "lower", "shape", "misc:Gloss", "misc:SpaceAfter", "misc:None"]
    assert len(names) == MOST_NAMES
    parser = extra_parser(rng, sentences, extra=names, order=order)
    lists = list(parser.kbest(sentences, k=10, inventory=LabelInventory(), n_threads=1))
    for trees, own in zip(lists, parser.score(sentences, lists, n_threads=2), strict=True):
        np.testing.assert_array_equal(trees.scores[:, 0], own)
    for sentence in sentences:
        tree = (tuple(sentence.heads.tolist()), tuple(3 if h == 0 else 4 for h in sentence.heads))
        np.testing.assert_allclose(
            own_scores(parser, sentence, [tree]),
            tree_scores(parser, sentence, [tree]),
            rtol=1e-5,
        )


def told_by_misc(n, *, tell=True):
    """Sentences of three equal words: the root is the one whose MISC says so."""
    found = []
    for i in range(n):
        root = i * 7 % 3
        heads = [0 if j == root else root + 1 for j in range(3)]
        found.append(
            Sentence.from_columns(
                forms=["w"] * 3,
                upos=["NOUN"] * 3,
                misc=["Top=Yes" if tell and j == root else "_" for j in range(3)],
                heads=heads,
                deprels=["root" if head == 0 else "dep" for head in heads],
            )
        )
    return found


def right(parser, sentences):
    parses = parser.parse(sentences, n_threads=1)
    return sum(
        int((heads == s.heads).all()) for s, (heads, _) in zip(sentences, parses, strict=True)
    )


def test_sampling_extras_learn_what_only_misc_tells():
    train, test = told_by_misc(30), told_by_misc(12)
    blind, told = (
        train_sampling_parser(train, settings=SamplingSettings(**QUICK, extra=extra), n_threads=1)
        for extra in ((), ("misc:Top",))
    )
    assert right(told, test) == 12
    assert right(blind, test) <= 5
    assert right(told, told_by_misc(12, tell=False)) <= 5


def test_sampling_extras_survive_storage(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("w\t01\n")
    train = told_by_misc(30)
    extra = ("misc:Top", f"table:{path}:1")
    parser = train_sampling_parser(train, settings=SamplingSettings(**QUICK, extra=extra))
    path.unlink()
    again = SamplingParser.from_bytes(parser.to_bytes())
    assert again.settings.extra == extra
    assert [e.name for e in again.schema.extras] == ["misc:Top", "table:t.tsv:1"]
    assert again.to_files() == parser.to_files()
    assert right(again, train) == 30
    assert SamplingSettings.from_dict(again.settings.to_dict()) == again.settings


def test_sampling_extras_are_not_stored_where_there_are_none():
    parser = trained()
    settings = json.loads(parser.to_files()["meta.json"])["settings"]
    assert "extra" not in settings
    assert "extra" not in SamplingSpec(settings=SamplingSettings()).training_key()[1]
    corpus = encode(parser.schema, treebank()[1])
    assert corpus.fields.shape[1] == parser.schema.n_columns + N_EXTRA


def test_sampling_extras_threads_give_equal_bits():
    settings = SamplingSettings(**QUICK, extra=("suffix2", "shape"))
    train = treebank()[0][:40]
    one, two = (train_sampling_parser(train, settings=settings, n_threads=n) for n in (1, 2))
    assert one.to_files() == two.to_files()


def test_sampling_extras_parser_knows_when_a_table_changed(tmp_path):
    path = tmp_path / "t.tsv"
    keys = []
    for text in ("w\t0\n", "w\t1\n"):
        path.write_text(text)
        keys.append(SamplingSpec.from_settings({"extra": [f"table:{path}"]}).training_key())
    assert keys[0] != keys[1]
    assert keys[0][:2] == keys[1][:2]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("shape", "extra is 'shape'; give a list of names"),
        (["shapes"], "unknown property 'shapes'"),
        ([f"misc:A{i}" for i in range(MOST_NAMES + 1)], "extra has 17 names; give at most 16"),
    ],
)
def test_sampling_extras_that_cannot_be(extra, message):
    with pytest.raises(UserError, match=message):
        SamplingSettings(extra=extra)
