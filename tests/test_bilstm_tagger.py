"""The neural tagger: what it reads and decides, what it learns, and how it is kept."""

from __future__ import annotations

import functools
import pickle
import random
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from threadpoolctl import threadpool_limits

from tk_spacy.errors import ModelError, UserError
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.chance import chance_kept, seeded
from tk_spacy.parsers.biaffine.embedding import tables_of
from tk_spacy.parsers.biaffine.vocabulary import NONE, ROOT
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.tagging.base import Tags
from tk_spacy.tagging.bilstm import labels as labels_module
from tk_spacy.tagging.bilstm import tagger as tagger_module
from tk_spacy.tagging.bilstm.labels import UNKNOWN, Labels, Tag
from tk_spacy.tagging.bilstm.lemmas import (
    AS_IS,
    WHOLE,
    EditRule,
    SeenLemmas,
    find_rule,
    frequent_rules,
)
from tk_spacy.tagging.bilstm.model import model_of
from tk_spacy.tagging.bilstm.settings import BilstmSettings
from tk_spacy.tagging.bilstm.tagger import LABELS, BilstmTagger
from tk_spacy.tagging.bilstm.training import find_slopes, train_bilstm_tagger
from tk_spacy.tagging.bilstm.vocabulary import FormVocabulary, form_keys, part_keys
from tk_spacy.tagging.kinds import get_kind, make_tagger
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.workflows.model import open_tagger

# A language: nouns end in -a (plural -ar), verbs in -is (past -it); "de" makes what follows a noun,
# "ne" a verb, and "lum" is either, so that only its neighbour tells.


def word(form: str, lemma: str, upos: str, feats: str = "_") -> tuple[str, ...]:
    return form, lemma, upos, upos[0].lower(), feats


DE, NE = word("de", "de", "DET"), word("ne", "ne", "PART")


def noun(stem: str, *, plural: bool) -> tuple[str, ...]:
    form, number = (f"{stem}ar", "Plur") if plural else (f"{stem}a", "Sing")
    return word(form, f"{stem}a", "NOUN", f"Case=Nom|Number={number}")


def verb(stem: str, *, past: bool) -> tuple[str, ...]:
    form, tense = (f"{stem}it", "Past") if past else (f"{stem}is", "Pres")
    return word(form, f"{stem}is", "VERB", f"Tense={tense}")


LUM_NOUN = word("lum", "luma", "NOUN", "Case=Nom|Number=Sing")
LUM_VERB = word("lum", "lumis", "VERB", "Tense=Pres")


def sentence(*words: tuple[str, ...]) -> Sentence:
    forms, lemmas, upos, xpos, feats = zip(*words, strict=True)
    return Sentence.from_columns(
        forms=forms, lemmas=lemmas, upos=upos, xpos=xpos, feats=feats,
        heads=list(range(len(words))), deprels=["root", *["dep"] * (len(words) - 1)],
    )  # fmt: skip


def words_of(s: Sentence) -> tuple[tuple[str, ...], ...]:
    return s.forms, s.lemmas, s.upos, s.xpos, s.feats


@functools.cache
def language(n: int = 120, seed: int = 1) -> list[Sentence]:
    rng = random.Random(seed)

    def stem() -> str:
        return "".join(rng.choice("bdfgkmnprtv") + rng.choice("eou") for _ in range(2))

    found = []
    for _ in range(n):
        subject = LUM_NOUN if rng.random() < 0.2 else noun(stem(), plural=rng.random() < 0.5)
        action = LUM_VERB if rng.random() < 0.2 else verb(stem(), past=rng.random() < 0.5)
        halves = [[DE, subject], [NE, action]]
        rng.shuffle(halves)
        found.append(sentence(*halves[0], *halves[1]))
    return found


SMALL = BilstmSettings(
    epochs=1, steps=120, batch=60, rate=0.01, form_width=8, affix_width=24, width=16
)


@functools.cache
def trained() -> BilstmTagger:
    return train_bilstm_tagger(language(), settings=SMALL)


def tags_of(tagger: Any, sentences: list[Sentence]) -> list[Tags]:
    return list(tagger.tag(sentences))


# Lemmas


@pytest.mark.parametrize(
    ("form", "lemma", "rule"),
    [
        ("books", "book", ("lower", 0, "", 1, "")),
        ("Books", "book", ("lower", 0, "", 1, "")),
        ("gegangen", "gehen", ("lower", 5, "geh", 0, "")),
        ("Berlins", "Berlin", ("title", 0, "", 1, "")),
        ("NATO", "NATO", ("upper", 0, "", 0, "")),
        ("iPhones", "iPhone", (AS_IS, 0, "", 1, "")),
        ("went", "go", (WHOLE, 0, "go", 0, "")),
        ("_", "_", ("lower", 0, "", 0, "")),
    ],
)
def test_lemma_rules_keep_the_longest_shared_piece(
    form: str, lemma: str, rule: tuple[Any, ...]
) -> None:
    if form == "gegangen":  # "ge" is shared at both ends and stands first in both
        rule = ("lower", 0, "", 6, "hen")
    assert find_rule(form, lemma) == rule
    assert find_rule(form, lemma).apply(form) == lemma


def test_lemma_rules_always_come_back() -> None:
    rng = random.Random(4)
    letters = "abAB_İıßΣςǅé\u0307"
    for _ in range(3000):
        form, lemma = ("".join(rng.choices(letters, k=rng.randint(1, 5))) for _ in range(2))
        assert find_rule(form, lemma).apply(form) == lemma, (form, lemma)


def test_a_lemma_rule_leaves_some_of_the_form() -> None:
    rule = EditRule("title", 1, "x", 2, "y")
    assert [rule.apply(form) for form in ("abcd", "ABCDE", "abc", "a")] == [
        "Xby",
        "Xbcy",
        None,
        None,
    ]


def test_rare_lemma_rules_are_left_out() -> None:
    words = [word("as", "a", "X")] * 3 + [word("but", "bat", "X")]
    words += (
        [word("went", "go", "X")] * 10 + [word("was", "be", "X")] * 9 + [word("z", "_", "X")] * 9
    )
    kept = frequent_rules([sentence(*words)])
    assert kept == ((WHOLE, 0, "go", 0, ""), ("lower", 0, "", 1, ""))


def test_seen_lemmas_by_tags_then_upos_then_small_letters() -> None:
    words = [word("Saw", "saw", "NOUN"), word("saw", "see", "VERB", "Tense=Past")]
    words += [word("saw", "sew", "VERB", "Tense=Pres")] * 2 + [word("x", "_", "X")]
    seen = SeenLemmas.fit([sentence(*words)])
    assert seen.find("saw", "VERB", "Tense=Past") == "see"
    assert seen.find("saw", "VERB", "_") == "sew"
    assert seen.find("SAW", "VERB", "Tense=Past") == "sew"
    assert seen.find("saw", "NOUN", "Number=Sing") == "saw"
    assert seen.find("saw", "ADJ", "_") is None
    assert seen.find("x", "X", "_") is None


# What it reads


def test_words_become_rows_of_what_is_known() -> None:
    vocabulary = FormVocabulary.fit([sentence(*[word(f, f, "X") for f in ("abc", "abc", "Abd")])])
    forms, parts = vocabulary.encode_all([sentence(word("abc", "_", "X"), word("xyz", "_", "X"))])
    assert (forms.dtype, forms.shape) == (np.int32, (3, 2))
    assert forms[0].tolist() == [ROOT, NONE]
    assert forms[1].tolist() == [vocabulary.forms["form\tabc"], vocabulary.forms["lower\tabc"]]
    assert forms[2].tolist() == [vocabulary.forms["form\t"], vocabulary.forms["lower\t"]]
    assert {vocabulary.parts["part\tab"], vocabulary.parts["suffix 1\tc"]} <= set(parts[1])
    # Rare: the form that is there once, and its own parts; sequences have no row for unknown ones.
    assert "form\tAbd" not in vocabulary.forms
    assert "suffix 1\td" not in vocabulary.parts
    assert not any(key.startswith("part\t") and len(key) == 5 for key in vocabulary.parts)
    assert (forms.max() < vocabulary.rows[0], parts.max() < vocabulary.rows[1]) == (True, True)
    again = FormVocabulary.from_dict(vocabulary.to_dict())
    assert (again.forms, again.parts) == (vocabulary.forms, vocabulary.parts)


def test_parts_of_a_word() -> None:
    keys = part_keys("Ab")
    assert keys[:4] == ["prefix 1\ta", "prefix 2\tab", "prefix 3\tab", "prefix 4\tab"]
    assert keys[4:7] == ["suffix 1\tb", "suffix 2\tab", "suffix 3\t^ab"]
    assert [key[5:] for key in keys if key.startswith("part\t")] == [
        "<a",
        "ab",
        "b>",
        "<ab",
        "ab>",
        "<ab>",
    ]
    assert len(part_keys("a" * 10_000)) == len(part_keys("a" * 40))
    assert form_keys("Ab") == ["form\tAb", "lower\tab"]


# What it decides


def small_labels() -> Labels:
    tags = [Tag("NOUN", "n1", "Case=Nom"), Tag("NOUN", "n2", "Case=Nom"), Tag("VERB", "v", "_"),
            Tag("NOUN", "n1", "Case=Acc|Number=Sing"), Tag("VERB", "v", "Number=Sing")]  # fmt: skip
    return Labels(tags, [EditRule("lower", 0, "", 1, ""), EditRule("lower", 0, "", 0, "")])


def plain_best(labels: Labels, scores: Any) -> list[Tag]:
    """The best tags by adding up each one's parts: UPOS, Case, Number, the pair, XPOS."""
    found = []
    for row in scores.astype(float):
        # The values of each task in the order in which `tags`, sorted by UPOS and FEATS, has them.
        values: list[list[Any]] = [
            ["NOUN", "VERB"],
            [("NOUN", "Case=Acc|Number=Sing"), ("NOUN", "Case=Nom"), ("VERB", "Number=Sing"),
             ("VERB", "_")],
            ["Acc", "Nom", ""],
            ["Sing", ""],
            ["n1", "n2", "v"],
        ]  # fmt: skip
        start, logs = 0, []
        for task in values:
            part = row[start : start + len(task)]
            logs.append(dict(zip(task, part - np.log(np.exp(part).sum()), strict=True)))
            start += len(task)
        totals = []
        for upos, xpos, feats in labels.tags:
            own = dict(item.split("=") for item in feats.split("|") if item != "_")
            parts = [upos, (upos, feats), own.get("Case", ""), own.get("Number", ""), xpos]
            totals.append(sum(log[part] for log, part in zip(logs, parts, strict=True)))
        found.append(labels.tags[int(np.argmax(totals))])
    return found


def test_the_best_tags_are_those_whose_parts_add_up_to_most() -> None:
    labels = small_labels()
    assert labels.sizes == (2, 4, 3, 2, 3, 2)
    scores = np.random.default_rng(0).normal(0, 2, (200, 16)).astype(np.float32)
    found = labels.best_tags(scores)
    assert found == plain_best(labels, scores)
    assert set(found) == set(labels.tags)


def test_targets_of_words_with_and_without_tags() -> None:
    labels = small_labels()
    words = [("Books", "book", "NOUN", "n2", "Case=Nom"), ("a", "_", "VERB", "?", "Number=Sing"),
             ("cats", "cat", "_", "_", "_"), ("x", "xx", "NOUN", "n1", "Case=Dat")]  # fmt: skip
    assert labels.targets(sentence(*words)).tolist() == [
        [0, 1, 1, 1, 1, 0],
        [1, 2, 2, 0, UNKNOWN, UNKNOWN],
        [UNKNOWN] * 5 + [0],
        [0, UNKNOWN, UNKNOWN, 1, 0, UNKNOWN],
    ]


def test_lemmas_by_the_best_rule_that_fits() -> None:
    labels = small_labels()
    scores = np.zeros((3, 16), dtype=np.float32)
    scores[:, -2:] = [[2, 1], [1, 2], [2, 1]]
    # The last form is too short to lose a letter.
    assert labels.rules_of(["Cats", "Cats", "S"], scores) == ["cat", "cats", "s"]
    assert Labels(labels.tags, ()).rules_of(["a"], scores[:1]) == [None]
    short = Labels(labels.tags, labels.rules[:1])
    assert short.rules_of(["S"], scores[:1]) == [None]


def test_labels_of_a_treebank() -> None:
    labels = Labels.fit(language())
    assert {tag.upos for tag in labels.tags} == {"NOUN", "VERB", "DET", "PART"}
    assert len(labels.tags) == 6
    # UPOS, pairs, Case, Number, Tense, XPOS, rules
    assert labels.sizes == (4, 6, 2, 3, 3, 4, 5)
    same = [replace(s, xpos=s.upos) for s in language()]
    assert len(Labels.fit(same).sizes) == 6  # XPOS says nothing more


def test_rare_xpos_values_are_left_out_where_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels_module, "MOST_XPOS", 2)
    words = [("a", "a", "NOUN", "n1", "_")] * 3 + [("a", "a", "NOUN", "n2", "_")] * 2
    words += [("a", "a", "NOUN", "n3", "_"), ("b", "b", "INTJ", "i1", "_")]
    labels = Labels.fit([sentence(*words, ("b", "b", "INTJ", "i2", "_"))])
    assert labels.tags == (("INTJ", "i1", "_"), ("NOUN", "n1", "_"), ("NOUN", "n2", "_"))


def test_slopes_are_those_of_the_loss() -> None:
    labels = small_labels()
    rng = np.random.default_rng(2)
    scores: Any = rng.normal(size=(5, 16))
    targets = np.array([[rng.integers(-1, size) for size in labels.sizes] for _ in range(5)])
    assert (targets < 0).any()
    _, slopes = find_slopes(labels, scores, targets)
    for place in np.ndindex(*scores.shape):
        step = np.zeros_like(scores)
        step[place] = 1e-5
        up, down = (find_slopes(labels, scores + sign * step, targets)[0] for sign in (1, -1))
        assert slopes[place] == pytest.approx((up - down) / 2e-5, abs=1e-7)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_gradient_reaches_the_embedding_by_both_ways(layers: int) -> None:
    settings = replace(
        SMALL, layers=layers, dropout=0.0, group_dropout=0.0, column_dropout=0.0, width=6
    )
    some = language()[:4]
    labels = Labels.fit(some)
    targets = np.concatenate([labels.targets(s) for s in some])
    with seeded(3):
        model = model_of(settings, FormVocabulary.fit(some), sum(labels.sizes))
        model.initialize(X=Batch(some))
    tables = tables_of(model.layers[0])
    scores, backprop = model.begin_update(Batch(some))
    backprop(find_slopes(labels, scores, targets)[1])
    rng = np.random.default_rng(1)
    for name, table in tables.arrays.items():
        rows, slopes = tables.gradient(name)
        direction = np.zeros_like(table)
        direction[rows] = rng.normal(size=slopes.shape)
        losses = []
        before = table.copy()
        for sign in (1, -1):
            table[:] = before + sign * 2e-3 * direction
            losses.append(find_slopes(labels, model.predict(Batch(some)), targets)[0])
        table[:] = before
        expected = (losses[0] - losses[1]) / 4e-3
        assert float((slopes * direction[rows]).sum()) == pytest.approx(
            expected, rel=0.02, abs=2e-3
        )


# What it learns


def test_it_tags_words_that_it_never_saw() -> None:
    new = [noun("zelo", plural=True), verb("zelo", past=True), noun("huzo", plural=False)]
    known = {w for s in language() for w in s.forms}
    assert not {form for form, *_ in new} & known
    asked = [sentence(DE, new[0], NE, new[1]), sentence(DE, new[2], NE, LUM_VERB)]
    asked.append(sentence(NE, LUM_VERB, DE, LUM_NOUN))
    found = tags_of(trained(), [Sentence.from_columns(forms=s.forms) for s in asked])
    assert found == [Tags.of(s) for s in asked]
    assert trained().columns == ("LEMMA", "UPOS", "XPOS", "FEATS")


def test_it_does_not_look_at_dev(tmp_path: Path) -> None:
    spec = make_tagger("bilstm:epochs=1:steps=1:width=8")
    made = []
    for name, dev in (("with", language(5, 9)), ("without", [])):
        (tmp_path / name).mkdir()
        spec.train(language()[:10], dev, tmp_path / name, n_threads=1, report=lambda done, of: None)
        made.append(BilstmTagger.from_disk(tmp_path / name).to_bytes())
    assert made[0] == made[1]


def test_it_tags_by_words_alone() -> None:
    asked = language(20, 7)
    others = [
        replace(s, upos=("ADP",) * 4, xpos=("a",) * 4, feats=("Case=Dat",) * 4, lemmas=("x",) * 4)
        for s in asked
    ]
    assert tags_of(trained(), others) == [Tags.of(s) for s in asked]


def test_columns_that_a_treebank_lacks_stay_empty() -> None:
    blank = [
        replace(s, lemmas=("_",) * 4, xpos=("_",) * 4, feats=("_",) * 4) for s in language()[:30]
    ]
    tagger = train_bilstm_tagger(blank, settings=SMALL)
    assert tagger.columns == ("UPOS",)
    assert tags_of(tagger, blank) == [Tags.of(s) for s in blank]


def test_it_learns_from_those_words_that_have_tags() -> None:
    """Without UPOS nothing but the lemma is known of a word: it is not taken for a tag "_"."""
    holes = []
    for number, s in enumerate(language()):
        upos = list(s.upos)
        upos[number % 4] = "_"
        holes.append(replace(s, upos=tuple(upos)))
    tagger = train_bilstm_tagger(holes, settings=SMALL)
    asked = language(20, 7)
    assert [t.upos for t in tags_of(tagger, asked)] == [s.upos for s in asked]


def test_a_treebank_without_upos_is_refused() -> None:
    blank = [replace(s, upos=("_",) * 4) for s in language()[:5]]
    with pytest.raises(UserError, match="no word has UPOS"):
        train_bilstm_tagger(blank, settings=SMALL)
    with pytest.raises(UserError, match="use gold tags"):
        make_tagger("bilstm").check(blank)


def test_a_training_keeps_the_loss_of_each_epoch() -> None:
    curve = trained().about["curve"]
    assert curve["of"] == "loss a word, all columns together"
    # Sentences of 5 rows, 12 of them a batch: 120 updates are 12 epochs.
    assert len(curve["values"]) == 12
    assert curve["values"][0] > 2 * curve["values"][-1] > 0
    # A tagger that learns next to nothing stays at the loss of one that guesses.
    idle = train_bilstm_tagger(language(), settings=replace(SMALL, rate=1e-6, steps=30))
    guessing = sum(np.log(size) for size in idle.labels.sizes)
    assert len(idle.about["curve"]["values"]) == 3
    assert idle.about["curve"]["values"] == pytest.approx([guessing] * 3, rel=0.1)


def test_small_treebanks_are_read_more_often() -> None:
    reported: list[tuple[int, int]] = []
    settings = replace(SMALL, steps=25, batch=30)

    def of(sentences: int) -> int:
        reported.clear()
        tagger = train_bilstm_tagger(
            language()[:sentences], settings=settings, report=lambda *done: reported.append(done)
        )
        assert reported == [(i, reported[-1][1]) for i in range(1, reported[-1][1] + 1)]
        assert tagger.about["updates"] == len(reported)
        return len(reported)

    # Sentences of 5 rows, 6 of them a batch: 2 batches of 12 sentences, 20 of all 120.
    assert of(12) == 26
    assert of(120) == 40


def test_a_training_is_the_same_on_any_number_of_threads() -> None:
    made = []
    for threads, seed in ((1, 0), (2, 0), (2, 1)):
        with threadpool_limits(threads):
            settings = replace(SMALL, steps=5, batch=200, seed=seed)
            made.append(train_bilstm_tagger(language()[:40], settings=settings).to_bytes())
    assert made[0] == made[1]
    assert made[0] != made[2]


# How it is used and kept


def test_order_of_sentences_is_kept_and_long_ones_come_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = language(30, 5)
    columns = [sum(column, ()) for column in zip(*map(words_of, some), strict=True)]
    long = sentence(*zip(*columns, strict=True))
    for rows, most, sentences in ((1000, 1000, 1000), (20, 8, 7)):
        monkeypatch.setattr(tagger_module, "TAGGED_ROWS", rows)
        monkeypatch.setattr(tagger_module, "MOST_WORDS", most)
        monkeypatch.setattr(tagger_module, "SENTENCES", sentences)
        asked = [long, *some, long, some[0]]
        assert tags_of(trained(), asked) == [Tags.of(s) for s in asked]
    assert tags_of(trained(), []) == []


def test_a_tagger_is_the_same_from_disk_bytes_and_pickle(tmp_path: Path) -> None:
    tagger = trained()
    tagger.to_disk(tmp_path / "tagger")
    asked = language(20, 9)
    expected = tags_of(tagger, asked)
    for copy in (
        BilstmTagger.from_disk(tmp_path / "tagger"),
        BilstmTagger.from_bytes(tagger.to_bytes()),
        pickle.loads(pickle.dumps(tagger)),
    ):
        assert tags_of(copy, asked) == expected
        assert copy.to_bytes() == tagger.to_bytes()
        assert (copy.settings, copy.about["words"]) == (SMALL, 480)


def test_damaged_files_are_refused() -> None:
    files = trained().to_files()
    for name in files:
        with pytest.raises(ModelError):
            BilstmTagger.from_files({**files, name: files[name][:-20]})
    other = train_bilstm_tagger(language()[:3], settings=replace(SMALL, steps=1)).to_files()
    with pytest.raises(ModelError, match="damaged"):
        BilstmTagger.from_files({**files, LABELS: other[LABELS]})


def test_a_spec_says_its_settings() -> None:
    spec = make_tagger("bilstm:epochs=3:width=32", seed=4)
    assert (spec.kind, spec.name) == ("bilstm", "bilstm-epochs3-width32")
    about = spec.about()
    assert (about["epochs"], about["width"], about["seed"]) == (3, 32, 4)
    assert make_tagger("bilstm:seed=5", seed=4).about()["seed"] == 5
    assert spec.training_key() != make_tagger("bilstm:epochs=3:width=33", seed=4).training_key()
    line = get_kind("bilstm").line(about)
    assert line == "a BiLSTM, 1 layer of width 32, 3 epochs or 1500 steps"
    for text, says in (
        ("bilstm:width=0", "width is 0"),
        ("bilstm:size=1", "unknown settings: size"),
    ):
        with pytest.raises(UserError, match=says):
            make_tagger(text)


def test_the_component_tags_docs_as_the_tagger_does(tmp_path: Path) -> None:
    nlp = spacy.blank("xx")
    changes = {"steps": 120, "epochs": 1, "batch": 60, "rate": 0.01, "width": 16}
    pipe: Any = nlp.add_pipe("tk_bilstm_tagger", config={"settings": changes})
    nlp.initialize(lambda: read_examples(language(), nlp, gold_tags=True))
    asked = language(20, 3)
    scores = nlp.evaluate(list(read_examples(asked, nlp, gold_tags=False)))
    assert [scores[name] for name in ("tag_acc", "pos_acc", "morph_acc", "lemma_acc")] == [1.0] * 4
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    doc = again(Doc(again.vocab, words=["ne", " ", "zelit", "de", "lum"]))
    assert [t.lemma_ for t in doc] == ["ne", "", "zelis", "de", "luma"]
    assert [t.pos_ for t in doc] == ["PART", "", "VERB", "DET", "NOUN"]
    assert [t.tag_ for t in doc] == ["p", "", "v", "d", "n"]
    assert [str(t.morph) for t in doc][2:] == ["Tense=Past", "", "Case=Nom|Number=Sing"]
    opened = open_tagger(tmp_path / "pipeline")
    assert isinstance(opened, BilstmTagger)
    assert opened.to_bytes() == pipe.tagger.to_bytes()
    other = spacy.blank("xx")
    taken: Any = other.add_pipe("tk_bilstm_tagger")
    taken.initialize(list, model=tmp_path / "pipeline")
    assert taken.tagger.to_bytes() == pipe.tagger.to_bytes()
    with pytest.raises(UserError, match="could not be run"):
        spacy.blank("xx").add_pipe("tk_bilstm_tagger")(doc)


def test_chance_of_torch_is_as_before_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in: what a training does to the generator of torch, which need not be here."""
    state = {"rng": "before"}
    torch = SimpleNamespace(
        get_rng_state=lambda: state["rng"],
        set_rng_state=lambda value: state.update(rng=value),
        cuda=SimpleNamespace(is_initialized=lambda: False),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    with chance_kept():
        torch.set_rng_state("seeded")
    assert state["rng"] == "before"
