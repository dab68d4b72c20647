"""Further properties of words: their values, the kernel with them, storage and mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scoring_problems import Problem
from test_kernel import KERNEL_TYPES, choices_of, encoded_parts, enumerated, random_tree

from tk_spacy.errors import UserError
from tk_spacy.features.part_types import part_type
from tk_spacy.features.schema import FIRST_ID, FIRST_MORPH, MISSING, Schema
from tk_spacy.features.word_properties import (
    Extra,
    check_extras,
    check_names,
    read_table,
    read_tables,
)
from tk_spacy.kernels.template_kernel import kernel_matrix
from tk_spacy.reranker.settings import Settings
from tk_spacy.treebank.conllu import Sentence

NAMES = (
    "lower", "shape", "prefix1", "prefix3", "suffix1", "suffix2", "misc:Gloss", "misc:Typo",
    "table:clusters.tsv:2", "table:clusters.tsv",
)  # fmt: skip
CLUSTERS = {"ab": "0101", "Bab": "0110", "b": "1", "aab": "01"}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A made-up table of word clusters in the current directory."""
    path = tmp_path / "clusters.tsv"
    path.write_text("".join(f"{form}\t{value}\n" for form, value in CLUSTERS.items()))
    monkeypatch.chdir(tmp_path)
    return path


def of(name, sentence, tables=None):
    return Extra.parse(name).values(sentence, tables or {})


def random_sentence(rng, n=6):
    """Of words so alike that their properties collide all the time."""
    forms = ["ab", "AB", "Bab", "aab", "b", "a1", "a22", "B-b", "_"]
    miscs = ["_", "Gloss=x", "Gloss=y|SpaceAfter=No", "Typo=Yes|Gloss=x", "SpaceAfter=No"]
    return Sentence.from_columns(
        forms=[str(v) for v in rng.choice(forms, size=n)],
        lemmas=[str(v) for v in rng.choice(["a", "b"], size=n)],
        upos=[str(v) for v in rng.choice(["NOUN", "VERB"], size=n)],
        misc=[str(v) for v in rng.choice(miscs, size=n)],
        heads=random_tree(rng, n),
        deprels=[str(v) for v in rng.choice(["x", "y"], size=n)],
    )


# Values


def test_extras_values_of_words():
    words = Sentence.from_columns(
        forms=["Λόγος", "an", "U2-3xyz", "_"], lemmas=["λόγος", "_", "u", "w"]
    )
    assert of("lemma", words) == ["λόγος", None, "u", "w"]
    assert of("lower", words) == ["λόγος", "an", "u2-3xyz", None]
    assert of("shape", words) == ["Xxx", "xx", "Xd-dxx", None]
    assert of("prefix1", words) == ["λ", "a", "u", None]
    assert of("prefix5", words) == ["λόγος", "an", "u2-3x", None]
    assert of("suffix1", words) == ["ς", "n", "z", None]
    assert of("suffix3", words) == ["γος", "an", "xyz", None]


def test_extras_values_of_misc_attributes():
    words = Sentence.from_columns(
        forms="abcdef",
        misc=["_", "Gloss=x", "Gloss=y=z|SpaceAfter=No", "NoGloss=q", "Gloss", "Gloss=_"],
    )
    assert of("misc:Gloss", words) == [None, "x", "y=z", None, "", None]
    assert of("misc:SpaceAfter", words) == [None, None, "No", None, None, None]


def test_extras_values_of_a_table_by_form_then_in_lower_case(table):
    words = Sentence.from_columns(forms=["ab", "AB", "bab", "Bab", "x"])
    tables = read_tables([Extra.parse("table:clusters.tsv")])
    assert tables == {"clusters.tsv": CLUSTERS}
    assert of("table:clusters.tsv", words, tables) == ["0101", "0101", None, "0110", None]
    assert of("table:clusters.tsv:3", words, tables) == ["010", "010", None, "011", None]
    assert of("table:clusters.tsv:9", words, tables) == ["0101", "0101", None, "0110", None]


# Properties and the kernel


def test_extras_properties_equal_ids_mean_equal_strings(table):
    rng = np.random.default_rng(3)
    sentences = [random_sentence(rng) for _ in range(8)]
    schema = Schema.fit(sentences, extras=NAMES)
    names = [p.name for p in schema.properties]
    assert names[-len(NAMES) :] == list(NAMES)
    by_id, by_text = {}, {}
    for sentence in sentences:
        nodes = schema.encode(sentence).nodes
        for word in range(len(sentence) + 2):
            strings = reference.node_strings(sentence, word, **choices_of(schema))
            given = dict(s.split("=", 1) for s in strings)
            for name, value in zip(names, nodes[word].tolist(), strict=True):
                assert (value == MISSING) == (name not in given)
                if value:
                    assert by_id.setdefault((name, value), given[name]) == given[name]
                    assert by_text.setdefault((name, given[name]), value) == value
    assert len({name for name, _ in by_id} & set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("type_name", KERNEL_TYPES)
def test_extras_kernel_counts_shared_combinations(type_name, table):
    rng = np.random.default_rng(8)
    kind = part_type(type_name)
    more = 0
    for names in (("suffix2",), ("shape", "misc:Gloss", "table:clusters.tsv:2"), NAMES):
        pair = [random_sentence(rng, 5), random_sentence(rng, 6)]
        schema = Schema.fit(pair, extras=names)
        a, b = (encoded_parts(schema, s, kind) for s in pair)
        found = kernel_matrix(kind, *a, *b, n_threads=1)
        assert found.tolist() == enumerated(*pair, type_name, (), choices_of(schema)).tolist()
        without = enumerated(*pair, type_name, (), choices_of(Schema.fit(pair)))
        assert (found >= without).all()
        more += int((found > without).sum())
    assert more > 10


def test_extras_compiled_scores_are_those_of_the_kernel(table):
    rng = np.random.default_rng(5)
    pair = [random_sentence(rng, 40), random_sentence(rng, 30)]
    schema = Schema.fit(pair, extras=NAMES)
    own = [i for i, p in enumerate(schema.properties) if p.name in NAMES]
    assert not set(own) & {i for group in schema.property_groups() for i in group}
    (nodes, rows), (query, parts) = (encoded_parts(schema, s, part_type("arc")) for s in pair)
    problem = Problem(
        name="arc",
        skip=(),
        nodes=query,
        support_nodes=nodes,
        parts=parts,
        support_parts=rows,
        weights=rng.normal(size=len(rows)),
        groups=schema.property_groups(),
    )
    assert problem.expected()[1].max() > 100
    problem.check()


def test_extras_are_no_manual_features():
    rng = np.random.default_rng(2)
    sentence = random_sentence(rng)
    fields = Schema.fit([sentence]).encode(sentence).fields
    with_extras = Schema.fit([sentence], extras=["suffix1", "shape"]).encode(sentence).fields
    assert with_extras.flags.c_contiguous
    assert with_extras.tolist() == fields.tolist()


def test_extras_never_seen_in_training_equal_nothing():
    schema = Schema.fit([Sentence.from_columns(forms=["ab"])], extras=["suffix1", "suffix2"])
    fields = schema.encode_fields(Sentence.from_columns(forms=["xb", "ab", "_"]))
    assert fields[:, FIRST_MORPH:].tolist() == [
        [MISSING, MISSING], [FIRST_ID, MISSING], [FIRST_ID, FIRST_ID], [MISSING, MISSING],
        [MISSING, MISSING],
    ]  # fmt: skip


# Storage


def test_extras_survive_storage_without_their_table(table):
    rng = np.random.default_rng(1)
    sentences = [random_sentence(rng) for _ in range(4)]
    schema = Schema.fit(sentences, extras=NAMES)
    table.unlink()
    again = Schema.from_dict(schema.to_dict())
    for sentence in [*sentences, random_sentence(rng)]:
        assert again.encode(sentence).nodes.tolist() == schema.encode(sentence).nodes.tolist()
    assert again.to_dict() == schema.to_dict()


def test_extras_of_a_table_elsewhere_do_not_tell_where(table, monkeypatch):
    monkeypatch.chdir("/")
    schema = Schema.fit([Sentence.from_columns(forms=["ab"])], extras=[f"table:{table}:2"])
    assert schema.to_dict()["extras"] == ["table:clusters.tsv:2"]
    assert str(table.parent) not in str(schema.to_dict())


def test_extras_without_any_nothing_is_stored():
    schema = Schema.fit([Sentence.from_columns(forms=["ab"])])
    assert list(schema.to_dict()) == [
        "pos_column", "use_cpos", "use_lemma", "morph", "values", "labels",
    ]  # fmt: skip
    assert Schema.from_dict(schema.to_dict()).extras == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extras": ["suffix9"]}, "unknown property 'suffix9'"),
        ({"extras": ["suffix1", "shape"]}, "5 tables of values, expected 6"),
        ({"extras": ["table:t.tsv"]}, "the tables are .*, not those of the extras"),
        ({"tables": {"t.tsv": [["a"], ["0"]]}}, "the tables are .*, not those of the extras"),
        ({"extras": ["table:t.tsv"], "tables": {"t.tsv": [["a"], [0]]}}, "else than strings"),
    ],
)
def test_extras_that_do_not_hold_together_are_refused(change, message):
    data = Schema.fit([Sentence.from_columns(forms=["ab"])], extras=["suffix1"]).to_dict()
    with pytest.raises((ValueError, UserError), match=message):
        Schema.from_dict(data | change)


# Settings and mistakes


def test_extras_lemma_is_another_name_of_an_older_setting():
    by_name, by_flag = Settings(properties=["lemma", "shape"]), Settings(use_lemma=True)
    assert by_name.use_lemma
    assert by_name.properties == ("shape",)
    assert Settings(properties=["lemma"]).to_dict() == by_flag.to_dict()
    assert "properties" not in by_flag.to_dict()
    assert Settings.from_dict(by_name.to_dict()) == by_name


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["suffix0"], "unknown property 'suffix0'; choose from lemma, lower, shape, prefix1 to"),
        (["suffix6"], "unknown property"),
        (["misc:"], "unknown property"),
        (["misc:A=b"], "unknown property"),
        (["table:"], "unknown property"),
        (["Lemma"], "unknown property"),
        (["shape", "shape"], "properties names shape twice"),
        (["table:a/t.tsv", "table:b/t.tsv"], "properties names table:t.tsv twice"),
        ("shape", "properties is 'shape'; give a list of names"),
        ([3], "give a list of names"),
    ],
)
def test_extras_names_that_cannot_be(names, message):
    with pytest.raises(UserError, match=message):
        check_names("properties", names)
    with pytest.raises(UserError, match=message):
        Settings(properties=names)


def test_extras_two_tables_of_one_name_cannot_be_told_apart(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.tsv").write_text("x\t1\n")
    names = [f"table:{tmp_path}/a/t.tsv:1", f"table:{tmp_path}/b/t.tsv:2"]
    with pytest.raises(UserError, match="tables of the same name; rename one"):
        Schema.fit([Sentence.from_columns(forms=["x"])], extras=names)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\t1\nb 2\n", ":2: 'b 2' is not a form, a tab and its value"),
        (b"a\t1\t7\n", ":1: .* is not a form, a tab and its value"),
        (b"a\t1\n\n\t2\n", ":3: .* is not a form"),
        (b"a\t1\nb\t\n", ":2: .* is not a form"),
        (b"a\t1\nb\t2\na\t3\n", ":3: 'a' has the value '3' here and '1' before"),
        (b"a\t1\n\xff\t2\n", ":2: not UTF-8"),
        (b"\n \n", "the table is empty"),
    ],
)
def test_extras_bad_tables_are_named_with_their_line(content, message, tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}:")


def test_extras_tables_may_come_from_anywhere(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes("\ufeffd'où\t01\r\n\r\nNew York\t0 1\r\nd'où\t01".encode())
    assert read_table(path) == {"d'où": "01", "New York": "0 1"}
    with pytest.raises(UserError, match=r"none\.tsv: cannot read the table: No such file"):
        read_table(tmp_path / "none.tsv")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("misc:Head", r"no word has Head in MISC \(there are: Gloss, SpaceAfter\)"),
        ("table:clusters.tsv", "clusters.tsv has none of its words"),
        ("lemma", "no word has it"),
    ],
)
def test_extras_that_no_word_of_train_has_are_refused(name, reason, table):
    train = [Sentence.from_columns(forms="xy", misc=["Gloss=a", "SpaceAfter=No"])]
    with pytest.raises(
        UserError, match=f"train.conllu: property {name} is asked for, but {reason}; leave it out"
    ):
        check_extras(["shape", name], train, where="train.conllu")
    check_extras(["shape", "misc:Gloss", "prefix5"], train, where="train.conllu")
