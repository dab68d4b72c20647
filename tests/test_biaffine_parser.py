"""The biaffine parser: learning, lists, scores of any tree, storage, mistakes."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from biaffine_parsers import NEW, QUICK, SENTENCES, trained
from thinc.api import Model
from threadpoolctl import ThreadpoolController

from tk_spacy.errors import ModelError, UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.long_sentences import WHOLE_WORDS
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.decoding import best_tree, k_best
from tk_spacy.parsers.biaffine.embedding import embedding_of, tables_of
from tk_spacy.parsers.biaffine.loss import log_softmax
from tk_spacy.parsers.biaffine.model import scorer_of
from tk_spacy.parsers.biaffine.parser import BiaffineParser, RecentScores, SentenceScores
from tk_spacy.parsers.biaffine.settings import BiaffineSettings
from tk_spacy.parsers.biaffine.source import BiaffineSource
from tk_spacy.parsers.biaffine.training import train_biaffine_parser
from tk_spacy.parsers.biaffine.vocabulary import FIRST, Vocabulary
from tk_spacy.treebank.conllu import Sentence, check_tree


def lists(k: int, sentences: list[Sentence] = NEW) -> list[CandidateList]:
    source = BiaffineSource(trained())
    return list(source.candidates(sentences, k=k))


def test_biaffine_parser_learns_a_small_language() -> None:
    right = total = base = 0
    for sentence, (heads, deprels) in zip(NEW, trained().parse(NEW), strict=True):
        assert check_tree(heads) is None
        pairs = zip(heads.tolist(), deprels, sentence.heads.tolist(), sentence.deprels, strict=True)
        right += sum((h, d) == (h2, d2) for h, d, h2, d2 in pairs)
        base += int((sentence.heads == np.arange(len(sentence))).sum())  # a chain
        total += len(sentence)
    assert right / total > 0.7 > 1.5 * base / total


def test_biaffine_training_is_the_same_twice_and_differs_by_seed() -> None:
    settings = replace(QUICK, epochs=1)
    parsers = [
        train_biaffine_parser(
            SENTENCES[:30], settings=replace(settings, seed=seed), n_threads=n_threads
        )
        for seed, n_threads in ((0, 1), (0, 2), (1, 1))
    ]
    first, again, other = (parser.to_files()["model"] for parser in parsers)
    assert first == again
    assert first != other
    embedding = embedding_of(parsers[0].model)
    assert embedding is not None
    for table in tables_of(embedding).arrays.values():
        np.testing.assert_array_equal(table[0], 0)  # no value stays 0


def test_biaffine_training_leaves_the_global_generators_alone() -> None:
    states = []
    for _ in range(2):
        np.random.seed(9)  # noqa: NPY002
        random.seed(9)
        if states:
            train_biaffine_parser(SENTENCES[:10], settings=replace(QUICK, epochs=1))
        states.append((np.random.random(), random.random()))  # noqa: NPY002
    assert states[0] == states[1]


def test_biaffine_training_reports_its_progress() -> None:
    seen: list[tuple[int, int]] = []
    train_biaffine_parser(
        SENTENCES[:20], settings=replace(QUICK, epochs=2), report=lambda *step: seen.append(step)
    )
    assert seen[-1] == (40, 40)
    assert seen == sorted(seen)


def test_biaffine_lists_are_trees_with_the_parser_s_own_scores() -> None:
    found = lists(12)
    scores = trained().score(NEW, found)
    best = trained().parse(NEW)
    for sentence, trees, own, (heads, deprels) in zip(NEW, found, scores, best, strict=True):
        assert trees.sources == ("biaffine",)
        assert trees.base == 0
        assert len(trees) == 12 or len(sentence) < 4
        np.testing.assert_allclose(trees.scores[:, 0], own, atol=1e-4)
        assert (np.diff(trees.scores[:, 0]) <= 0).all()
        assert trees.heads[0].tolist() == heads.tolist()
        assert trees.deprels(0) == deprels


def test_biaffine_score_equals_a_plain_loop() -> None:
    parser = trained()
    for sentence in NEW[:5]:
        (trees,) = lists(6, [sentence])
        (found,) = parser.score([sentence], [trees])
        network = parser.model.predict(Batch([sentence]))
        arcs = log_softmax(network.arcs)[0]
        for row in range(len(trees)):
            total = 0.0
            heads = trees.heads[row].tolist()
            for word, (head, label) in enumerate(zip(heads, trees.deprels(row), strict=True), 1):
                ids = np.array([word]), np.array([head])
                of_labels = network.label_scores(*ids)
                is_root = np.array(parser.labels) == "root"
                of_labels[:, is_root == (head > 0)] = -np.inf
                labels = log_softmax(of_labels)[0]
                total += float(arcs[word, head]) + float(labels[parser.labels.index(label)])
            assert found[row] == pytest.approx(total, abs=1e-4)


def test_biaffine_score_is_nan_for_unknown_labels() -> None:
    sentence = next(s for s in NEW if len(s) > 3)
    heads = sentence.heads.tolist()
    strange = ["strange", *sentence.deprels[1:]]
    trees = CandidateList.build(
        [(heads, sentence.deprels, 1.0), (heads, strange, 0.0)],
        inventory=LabelInventory(),
        sources=("x",),
    )
    (found,) = trained().score([sentence], [trees])
    assert np.isfinite(found[0])
    assert np.isnan(found[1])


def test_biaffine_arc_scores_are_those_of_the_own_tree_one_by_one() -> None:
    parser = trained()
    trees = [
        CandidateList.build([(s.heads, s.deprels, 0.0)], inventory=LabelInventory(), sources=("x",))
        for s in NEW
    ]
    arcs = BiaffineSource(parser).arc_scores(NEW)
    for sentence, found, (total,) in zip(NEW, arcs, parser.score(NEW, trees), strict=True):
        assert found.shape == (len(sentence), 2)
        assert (found <= 0).all()  # a sure one may be 0 to single precision
        assert found.sum() == pytest.approx(total, abs=1e-4)


def test_biaffine_network_reads_no_sentence_again_for_the_arcs_of_a_listed_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parser, read = trained(), []
    predict = Model.predict

    def counted(model: Any, batch: Batch) -> Any:
        read.extend(sentence.forms for sentence in batch.sentences)
        return predict(model, batch)

    monkeypatch.setattr(Model, "predict", counted)
    source = BiaffineSource(parser)
    lists = list(source.candidates(NEW, k=2))
    assert len(read) == len(NEW)
    chosen = [
        sentence.with_tree(trees.heads[-1], trees.deprels(-1))
        for sentence, trees in zip(NEW, lists, strict=True)
    ]
    arcs = source.arc_scores(chosen)
    assert len(read) == len(NEW)
    for found, expected in zip(arcs, parser.arc_scores(chosen), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert len(read) == 2 * len(NEW)


def test_biaffine_arc_scores_of_what_it_does_not_know() -> None:
    sentence = next(s for s in NEW if len(s) > 3)
    strange = sentence.with_tree(sentence.heads, ["strange", *sentence.deprels[1:]])
    n = WHOLE_WORDS + 1
    long = sentence.from_columns(
        forms=["a"] * n, upos=["X"] * n, heads=range(n), deprels=["root", *["dep"] * (n - 1)]
    )
    odd, plain, unread = trained().arc_scores([strange, sentence, long])
    assert np.isnan(odd).sum() == np.isnan(odd[0, 1]) == 1
    np.testing.assert_allclose(odd[1:], plain[1:], rtol=1e-5)
    assert unread.shape == (n, 2)
    assert np.isnan(unread).all()


def trees_over(n: int) -> list[list[int]]:
    heads = itertools.product(range(n + 1), repeat=n)
    return [list(tree) for tree in heads if check_tree(tree) is None]


@pytest.mark.parametrize(("k", "share"), [(1, 0.1), (7, 0.0), (7, 0.4), (40, 0.3)])
def test_k_best_equals_enumeration(k: int, share: float) -> None:
    rng = np.random.default_rng(k)
    arcs = rng.standard_normal((4, 5))
    arcs[np.arange(4), np.arange(1, 5)] = -np.inf
    labels = np.stack([np.full((4, 5), 3), np.full((4, 5), 1)], axis=2).astype(np.int32)
    margins = rng.random((4, 5))
    ranked = sorted(trees_over(4), key=lambda tree: -sum(arcs[np.arange(4), tree]))
    totals = {tuple(tree): float(sum(arcs[np.arange(4), tree])) for tree in ranked}
    assert best_tree(arcs).tolist() == ranked[0]
    heads, ids, scores = k_best(arcs, labels, margins, k, label_share=share)
    assert len(scores) == k
    assert (np.diff(scores) <= 0).all()
    pairs = zip(heads.tolist(), ids.tolist(), strict=True)
    assert len({(tuple(h), tuple(i)) for h, i in pairs}) == k
    changed = 0
    for tree, own, score in zip(heads.tolist(), ids.tolist(), scores.tolist(), strict=True):
        words = [m for m in range(4) if own[m] == 1]
        assert len(words) <= 1
        changed += len(words)
        expected = totals[tuple(tree)] - sum(margins[m, tree[m]] for m in words)
        assert score == pytest.approx(expected)
    assert changed <= round(share * k)
    kept = [tree for tree, own in zip(heads.tolist(), ids.tolist(), strict=True) if 1 not in own]
    assert kept == ranked[: len(kept)]


def test_lists_of_one_word_are_label_alternatives() -> None:
    sentence = Sentence.from_columns(forms=["a"], upos=["NOUN"])
    parser = replace(trained(), root_labels=())  # else there is none to that of roots
    (trees,) = BiaffineSource(parser).candidates([sentence], k=5)
    assert trees.heads.tolist() == [[0], [0]]
    assert len(set(trees.labels[:, 0].tolist())) == 2


def test_biaffine_parser_takes_words_that_it_never_saw() -> None:
    strange = Sentence.from_columns(
        forms=["ⵣ", "ⵣⵣ", "!"], upos=["X", "_", "Y"], feats=["A=B|C=D", "_", "strange"]
    )
    ((heads, deprels),) = trained().parse([strange])
    assert check_tree(heads) is None
    assert set(deprels) <= set(trained().labels)


def test_vocabulary_keeps_each_feature_apart() -> None:
    vocabulary = Vocabulary.fit(SENTENCES)
    sentence = next(s for s in SENTENCES if any("|" in feats for feats in s.feats))
    words, tags = vocabulary.encode(sentence)
    names = [None] * FIRST + list(vocabulary.tags)
    for row, feats in zip(tags[1:].tolist(), sentence.feats, strict=True):
        items = sorted(names[i].replace("\t", "=") for i in row if names[i])
        expected = [] if feats == "_" else [f"feats {item}" for item in feats.split("|")]
        assert [item for item in items if item.startswith("feats")] == sorted(expected)
    assert words.min() >= 0
    assert words.max() < len(vocabulary.words) + FIRST
    again = Vocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict())))
    np.testing.assert_array_equal(again.encode(sentence)[0], words)


def test_biaffine_parser_comes_back_from_disk_and_bytes(tmp_path: Path) -> None:
    parser = trained()
    parser.to_disk(tmp_path / "p")
    for again in (BiaffineParser.from_disk(tmp_path / "p"), BiaffineParser.from_bytes(
        parser.to_bytes())):  # fmt: skip
        assert again.settings == QUICK
        assert again.to_files() == parser.to_files()
        for (heads, deprels), (expected, names) in zip(
            again.parse(NEW), parser.parse(NEW), strict=True
        ):
            np.testing.assert_array_equal(heads, expected)
            assert deprels == names


def test_damaged_biaffine_files_are_refused(tmp_path: Path) -> None:
    parser = trained()
    parser.to_disk(tmp_path / "p")
    meta = tmp_path / "p" / "meta.json"
    text = meta.read_text()
    meta.write_text(text.replace('"width": 16', '"width": 17'))
    with pytest.raises(
        ModelError, match=r"damaged or incomplete .*change dimension 'nO'.* 34 to 32"
    ):
        BiaffineParser.from_disk(tmp_path / "p")
    model = parser.model.copy()
    scorer_of(model).get_param("arc")[2, 1] = np.nan
    with pytest.raises(ModelError, match="arc beyond 1000, whose products may be infinite"):
        BiaffineParser.from_bytes(replace(parser, model=model).to_bytes())
    model = parser.model.copy()
    scorer_of(model).set_param("arc", scorer_of(model).get_param("arc")[1:])
    with pytest.raises(ModelError, match=r"arc is float32\(15, 16\), not float32\(16, 16\)"):
        BiaffineParser.from_bytes(replace(parser, model=model).to_bytes())
    with pytest.raises(ModelError, match=r"scores of \d+ labels, expected 1"):
        BiaffineParser.from_bytes(replace(parser, labels=("root",)).to_bytes())
    meta.write_text(text.replace("biaffine parser", "sampling parser"))
    with pytest.raises(ModelError, match="not that of a tk-spacy biaffine parser"):
        BiaffineParser.from_disk(tmp_path / "p")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"epochs": 0}, "epochs is 0; it must be from 1 to 1000"),
        ({"epochs": 2.5}, "epochs is 2.5; it must be a whole number"),
        ({"dropout": float("nan")}, "dropout is nan; it must be a number"),
        ({"layers": True}, "layers is True; it must be a whole number"),
        ({"depth": 3}, "unknown settings: depth"),
    ],
)
def test_bad_biaffine_settings_are_refused(setting: dict, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        BiaffineSettings.from_dict(setting)


def test_biaffine_mistakes_have_names() -> None:
    with pytest.raises(UserError, match="no sentence to train"):
        train_biaffine_parser([])
    bare = Sentence.from_columns(forms=["a"])
    with pytest.raises(UserError, match="no tree to train a parser on: HEAD is '_'"):
        train_biaffine_parser([bare])
    with pytest.raises(UserError, match=r"^no tree to"):
        train_biaffine_parser([bare])
    with pytest.raises(UserError, match=r"^my\.conllu:7: no tree to"):
        train_biaffine_parser([NEW[0], replace(bare, path="my.conllu", line=7)])
    parser = trained()
    assert parser.vocabulary.reads_xpos
    curve = parser.about["curve"]
    assert parser.about == {
        "sentences": 300, "words": sum(len(s) for s in SENTENCES), "curve": curve,
    }  # fmt: skip
    assert curve["of"] == "loss a word"
    assert len(curve["values"]) >= QUICK.epochs
    assert curve["values"][0] > 2 * curve["values"][-1] > 0
    with pytest.raises(ValueError, match="k is 0"):
        parser.kbest(NEW, k=0, inventory=LabelInventory())
    with pytest.raises(TypeError, match=r"k is 2\.0"):
        parser.kbest(NEW, k=2.0, inventory=LabelInventory())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0 lists for 1 sentences"):
        parser.score([bare], [])
    (trees,) = lists(2, [NEW[0]])
    with pytest.raises(ValueError, match="words for a sentence of 1"):
        parser.score([bare], [trees])


def test_products_of_known_scores_use_one_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    parser, recent = trained(), RecentScores()
    during: list[int] = []
    of_trees = SentenceScores.of_trees

    def noting(self: SentenceScores, heads: np.ndarray, labels: np.ndarray) -> np.ndarray:
        libraries = ThreadpoolController().select(user_api="blas").info()
        during.extend(library["num_threads"] for library in libraries)
        return of_trees(self, heads, labels)

    monkeypatch.setattr(SentenceScores, "of_trees", noting)
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        lists = list(parser.kbest(NEW, k=4, inventory=LabelInventory(), recent=recent))
        parser.score(NEW, lists, recent=recent)
    assert set(during) == {1}
