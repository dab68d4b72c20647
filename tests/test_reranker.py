"""The trained model: the same choices wherever it has been stored."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from test_learning import ALL, random_lists

from tk_spacy.errors import ModelError
from tk_spacy.features.schema import Schema
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import train_reranker
from tk_spacy.utils.serialization import META


@pytest.fixture(scope="module", params=["both", "kernel", "manual", "paper"])
def trained(request):
    options = {
        "both": {"kernel_parts": ALL},
        "kernel": {"manual_parts": ()},
        "manual": {"kernel_parts": ()},
        "paper": {"list_features": ()},
    }[request.param]
    golds, lists = random_lists(8, sentences=30, n=6)
    settings = Settings(bits=14, iterations=3, **options)
    schema = Schema.fit(golds)
    reranker, _ = train_reranker(golds, lists, settings, schema=schema, n_threads=1)
    return reranker, list(zip(golds, lists, strict=True))


def test_reranker_is_the_same_after_disk_bytes_and_pickle(trained, tmp_path):
    reranker, pairs = trained
    reranker.to_disk(tmp_path / "model")
    copies = [
        Reranker.from_disk(tmp_path / "model"),
        Reranker.from_bytes(reranker.to_bytes()),
        pickle.loads(pickle.dumps(reranker)),
    ]
    expected = [reranker.final_scores(*pair, n_threads=1) for pair in pairs]
    assert any(np.ptp(scores) > 0 for scores in expected)
    for copy in copies:
        for pair, scores in zip(pairs, expected, strict=True):
            assert copy.final_scores(*pair, n_threads=1).tolist() == scores.tolist()
        assert copy.to_bytes() == reranker.to_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]


def rows_of(choices) -> list[int]:
    return [row for *_, row in choices]


def test_reranker_batches_and_threads_do_not_matter(trained):
    reranker, pairs = trained
    single = [reranker.decide(*pair, n_threads=1).row for pair in pairs]
    assert single == rows_of(reranker.choices(pairs, n_threads=2, batch_size=7))
    assert single == rows_of(reranker.choices(iter(pairs), n_threads=1, batch_size=1000))


def test_reranker_choices_come_with_their_sentences(trained):
    reranker, pairs = trained
    for n_threads in (1, 2):
        chosen = list(reranker.choices(iter(pairs), n_threads=n_threads, batch_size=4))
        assert [(sentence, trees) for sentence, trees, _ in chosen] == pairs
        assert [row for *_, row in chosen] == [reranker.decide(*pair).row for pair in pairs]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_reranker_raises_errors_of_reading_behind_the_batches_before(trained, n_threads):
    reranker, pairs = trained

    def failing():
        yield from pairs[:10]
        raise OSError("the disk is gone")

    choices = reranker.choices(failing(), n_threads=n_threads, batch_size=4)
    assert [next(choices)[2] for _ in range(8)] == [
        reranker.decide(*pair).row for pair in pairs[:8]
    ]
    with pytest.raises(OSError, match="the disk is gone"):
        next(choices)
    assert "ahead" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_reranker_may_be_left_early(trained, n_threads):
    reranker, pairs = trained
    read = []
    choices = reranker.choices(
        (read.append(pair) or pair for pair in pairs), n_threads=n_threads, batch_size=2
    )
    next(choices)
    choices.close()
    assert len(read) <= 6
    assert "ahead" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_reranker_in_a_forked_child_neither_hangs_nor_starts_a_thread(trained):
    reranker, pairs = trained
    expected = rows_of(reranker.choices(pairs, n_threads=2, batch_size=7))
    pid = os.fork()
    if not pid:
        signal.alarm(60)  # ends it where it hangs
        same = False
        try:
            choices = reranker.choices(pairs, n_threads=2, batch_size=7)
            same = next(choices)[2] == expected[0] and threading.active_count() == 1
            same = same and rows_of(choices) == expected[1:]
        finally:
            os._exit(0 if same else 1)
    _, status = os.waitpid(pid, 0)
    assert status == 0


def test_reranker_overwrites_an_older_model(trained, tmp_path):
    reranker, _ = trained
    reranker.to_disk(tmp_path / "model")
    (tmp_path / "model" / "old").write_text("x")
    reranker.to_disk(tmp_path / "model")
    assert not (tmp_path / "model" / "old").exists()


@pytest.mark.parametrize("damage", ["empty", "cut", "missing", "version", "other"])
def test_reranker_damaged_models_are_named(trained, tmp_path, damage):
    reranker, _ = trained
    place = tmp_path / "model"
    reranker.to_disk(place)
    meta = json.loads((place / META).read_text())
    if damage == "empty":
        (place / "schema.msgpack").write_bytes(b"")
    elif damage == "cut":
        data = (place / "support.npz").read_bytes()
        (place / "support.npz").write_bytes(data[: len(data) // 2])
    elif damage == "missing":
        (place / META).unlink()
    elif damage == "version":
        (place / META).write_text(json.dumps(meta | {"format_version": 99}))
    else:
        (place / META).write_text(json.dumps({"format": "something else"}))
    with pytest.raises(ModelError, match=r"model: "):
        Reranker.from_disk(place)


def test_reranker_reads_models_made_before_the_features_of_the_list(tmp_path):
    golds, lists = random_lists(8, sentences=30, n=6)
    settings = Settings(bits=14, iterations=3, list_features=(), combiner=False)
    reranker, _ = train_reranker(golds, lists, settings, schema=Schema.fit(golds), n_threads=1)
    place = tmp_path / "model"
    reranker.to_disk(place)
    meta = json.loads((place / META).read_text())
    del meta["list_features"], meta["settings"]["list_features"], meta["settings"]["list_scale"]
    del meta["combiner"], meta["settings"]["combiner"]
    (place / META).write_text(json.dumps(meta | {"format_version": 1}))
    old = Reranker.from_disk(place)
    assert old.settings == settings
    for pair in zip(golds, lists, strict=True):
        assert (
            old.final_scores(*pair, n_threads=1).tolist()
            == reranker.final_scores(*pair, n_threads=1).tolist()
        )
