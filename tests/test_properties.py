"""Which properties a word has, and their ids."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from test_kernel import choices_of, random_sentence

from tk_spacy.features import schema as schema_module
from tk_spacy.features.part_types import part_type
from tk_spacy.features.parts import BOUNDARY_LABEL, extract_parts, slot_rows
from tk_spacy.features.schema import (
    BOUNDARY,
    FIRST_ID,
    FIRST_MORPH,
    MAX_MORPH,
    MISSING,
    ROOT,
    Schema,
    choose_pos_column,
    morph_note,
)
from tk_spacy.treebank.conllu import Sentence


def tagged(xpos, upos=None):
    upos = upos or ["NOUN"] * len(xpos)
    return Sentence.from_columns(forms=["a"] * len(xpos), upos=upos, xpos=xpos)


@pytest.mark.parametrize(
    ("train", "dev", "column"),
    [
        ([["N"] * 100], [["N"]], "XPOS"),
        ([["N"] * 99 + ["_"]], [], "XPOS"),
        ([["N"] * 98 + ["_"] * 2], [], "UPOS"),
        ([["N"] * 100], [["_"] * 3], "UPOS"),
        ([[f"X{i}" for i in range(1000)]], [], "XPOS"),
        ([[f"X{i}" for i in range(1001)]], [], "UPOS"),
        ([["_"] * 5], [], "UPOS"),
    ],
)
def test_properties_pos_is_xpos_where_that_is_a_filled_tagset(train, dev, column):
    assert choose_pos_column([tagged(t) for t in train], [tagged(d) for d in dev]) == column


def test_properties_cpos_is_left_out_where_it_equals_pos():
    same = Schema.fit([tagged(["NOUN", "VERB"], ["NOUN", "VERB"])])
    other = Schema.fit([tagged(["N", "V"], ["NOUN", "VERB"])])
    names = [[p.name for p in schema.properties] for schema in (same, other)]
    assert "cpos" not in names[0]
    assert {"cpos", "cpos-1", "cpos+1"} <= set(names[1])


def test_properties_are_table_1():
    sentence = Sentence.from_columns(
        forms=["x"], upos=["NOUN"], xpos=["N"], feats=["Case=Nom|Number[psor]=Plur"]
    )
    assert [p.name for p in Schema.fit([sentence], use_lemma=True).properties] == [
        "form", "form-1", "form+1", "pos", "pos-1", "pos+1", "cpos", "cpos-1", "cpos+1", "lemma",
        "Case", "Number[psor]", "pos-1|pos", "pos|pos+1", "pos|form", "pos|Case",
        "pos|Number[psor]",
    ]  # fmt: skip


def test_properties_equal_ids_mean_equal_strings():
    rng = np.random.default_rng(4)
    sentences = [random_sentence(rng, n=6) for _ in range(8)]
    schema = Schema.fit(sentences, use_lemma=True)
    names = [p.name for p in schema.properties]
    by_id, by_text = {}, {}
    for sentence in sentences:
        nodes = schema.encode(sentence).nodes
        for word in range(len(sentence) + 2):
            given = dict(
                s.split("=", 1)
                for s in reference.node_strings(sentence, word, **choices_of(schema))
            )
            for name, value in zip(names, nodes[word].tolist(), strict=True):
                assert (value == MISSING) == (name not in given)
                if value:
                    assert by_id.setdefault((name, value), given[name]) == given[name]
                    assert by_text.setdefault((name, given[name]), value) == value


def test_properties_root_and_boundary_have_values_of_their_own():
    sentence = Sentence.from_columns(forms=["<root>", "<boundary>"], upos=["NOUN", "NOUN"])
    fields = Schema.fit([sentence]).encode(sentence).fields
    assert fields[0, 0] == ROOT
    assert fields[3, 0] == BOUNDARY
    assert not set(fields[1:3, 0].tolist()) & {ROOT, BOUNDARY, MISSING}


def test_properties_beside_and_beyond_the_words():
    """The root has no neighbours; the words at either end have the boundary; it has none."""
    sentence = Sentence.from_columns(
        forms=["a", "b", "c"], lemmas=["a", "b", "c"], upos=["NOUN", "VERB", "NOUN"],
        xpos=["N", "V", "N"], feats=["Case=Nom", "_", "Case=Acc"],
    )  # fmt: skip
    schema = Schema.fit([sentence], use_lemma=True)
    names = [p.name for p in schema.properties]
    rows = [dict(zip(names, row, strict=True)) for row in schema.encode(sentence).nodes.tolist()]
    root, first, second, last, boundary = rows
    for alone, value in ((root, ROOT), (boundary, BOUNDARY)):
        assert {name for name, found in alone.items() if found} == {
            "form",
            "pos",
            "cpos",
            "pos|form",
        }
        assert [alone[name] for name in ("form", "pos", "cpos")] == [value] * 3
    for name in ("form", "pos", "cpos"):
        assert (first[f"{name}-1"], last[f"{name}+1"]) == (BOUNDARY, BOUNDARY)
        assert (first[f"{name}+1"], last[f"{name}-1"]) == (second[name], second[name])
    assert all(row["pos-1|pos"] and row["pos|pos+1"] for row in (first, second, last))
    # Two words at an edge share that, and the root's pair with its neighbour shares nothing.
    assert first["pos-1|pos"] != last["pos-1|pos"]
    assert ROOT not in (first["pos-1"], first["form-1"])


def test_properties_what_first_modifiers_share_of_the_sibling_they_lack():
    """Form, pos, cpos and pos|form, and of the arc its label alone; nothing with any word."""
    sentence = Sentence.from_columns(
        forms=["a", "b", "c", "d"], upos=["X"] * 4, xpos=["x", "y", "z", "w"],
        heads=[0, 1, 2, 3], deprels=["root", "o", "p", "q"],
    )  # fmt: skip
    schema = Schema.fit([sentence])
    kind = part_type("sibling")
    encoded = schema.encode(sentence)
    labels = np.array([[schema.label_id(d) for d in sentence.deprels]], dtype=np.int32)
    slots = slot_rows(extract_parts(sentence.heads[None], labels, kind)[0], kind)
    absent = len(sentence) + 1
    column = 3  # slots are h e1 s e2 m, and an edge takes two columns
    assert slots[:, column].tolist() == [absent] * 4
    assert slots[:, column - 2 : column].tolist() == [[BOUNDARY_LABEL, 0]] * 4
    assert np.count_nonzero(encoded.nodes[absent]) == 4  # form, pos, cpos, pos|form
    equal = [
        int(((encoded.nodes[absent] == row) & (row != 0)).sum()) for row in encoded.nodes[:absent]
    ]
    assert equal == [0] * 5


def test_properties_schema_survives_storage():
    rng = np.random.default_rng(4)
    sentences = [random_sentence(rng, n=5) for _ in range(5)]
    schema = Schema.fit(sentences, labels=["zz"])
    again = Schema.from_dict(schema.to_dict())
    for sentence in sentences:
        assert (again.encode(sentence).nodes == schema.encode(sentence).nodes).all()
    assert again.label_id("zz") == schema.label_id("zz") > 0
    assert again.label_id("never seen") == MISSING


def featured(*feats):
    return Sentence.from_columns(forms=["a"] * len(feats), feats=feats)


def test_properties_of_very_many_attributes_are_the_most_frequent_ones():
    names = [f"A{i:05}" for i in range(20_000)]
    rare = featured(*("|".join(f"{name}=1" for name in names[i::5]) for i in range(5)))
    frequent = [featured("Case=Nom|Zed=Yes", "Case=Acc"), featured("Zed=No", "_")]
    schema = Schema.fit([rare, *frequent])
    assert schema.morph == (*names[: MAX_MORPH - 2], "Case", "Zed")
    encoded = schema.encode(frequent[0])
    assert encoded.fields.shape == (4, FIRST_MORPH + MAX_MORPH)
    assert (encoded.fields[1:3, -2:] > 0).tolist() == [[True, True], [True, False]]
    assert morph_note([rare, *frequent]) == (
        "FEATS have 20002 different attributes ('A00198', ...): the 200 most frequent ones are "
        "used, the others are not"
    )


def test_properties_remember_a_bounded_number_of_feats(monkeypatch):
    monkeypatch.setattr(schema_module, "MAX_FEATS", 3)
    sentence = Sentence.from_columns(forms="abcdefg", feats=[f"A={i % 5}" for i in range(7)])
    schema = Schema.fit([sentence])
    expected = [FIRST_ID + i % 5 for i in range(7)]
    for _ in range(2):
        assert schema.encode(sentence).fields[1:-1, FIRST_MORPH].tolist() == expected
        assert len(schema._feats_rows) <= 3


def test_properties_keep_all_attributes_up_to_the_limit():
    sentence = featured("|".join(f"A{i:03}=1" for i in range(MAX_MORPH)))
    assert len(Schema.fit([sentence]).morph) == MAX_MORPH
    assert morph_note([sentence]) is None
