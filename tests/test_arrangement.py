"""What is held out where there is no dev, and how treebanks are joined."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from memorising_parser import gold_sentences
from treebank_folders import write_folder

from tk_spacy.ensemble.jackknife import fold_of_sentences
from tk_spacy.errors import UserError
from tk_spacy.treebank.conllu import write_conllu
from tk_spacy.workflows.train.arrangement import dealt, folds_for, held_out_blocks, split
from tk_spacy.workflows.train.inputs import Plan, make_plan
from tk_spacy.workflows.train.options import TrainOptions


@pytest.mark.parametrize(
    ("n", "blocks", "size"),
    [(2, 1, 1), (9, 1, 1), (30, 1, 3), (199, 2, 20), (400, 4, 40), (1000, 10, 100), (999, 10, 100)]
)  # fmt: skip
def test_arrangement_holds_out_a_tenth_in_blocks_all_over(n: int, blocks: int, size: int) -> None:
    for seed in range(20):
        found = held_out_blocks(n, seed=seed)
        assert len(found) == blocks
        assert sum(map(len, found)) == size
        for number, block in enumerate(found):  # one in each stretch of the treebank
            assert n * number // blocks <= block.start
            assert block.stop <= n * (number + 1) // blocks
    assert len({tuple(held_out_blocks(1000, seed=seed)) for seed in range(20)}) == 20
    with pytest.raises(ValueError, match="n is 1, expected at least 2"):
        held_out_blocks(1, seed=0)


def test_arrangement_reaches_every_sentence() -> None:
    # No place that no seed holds out, such as the last sentence.
    reached = {i for seed in range(300) for block in held_out_blocks(40, seed=seed) for i in block}
    assert reached == set(range(40))


def test_arrangement_splits_without_loss() -> None:
    rest, out = split(list(range(123)), seed=5)
    assert sorted(rest + out) == list(range(123))
    assert (rest, out) == (sorted(rest), sorted(out))
    assert split(list(range(123)), seed=5) == (rest, out)
    assert split(list(range(123)), seed=6) != (rest, out)


@pytest.mark.parametrize("folds", [2, 3, 5, 10])
@pytest.mark.parametrize("sizes", [(40, 60), (7, 100, 33), (50,), (1, 50)])
def test_arrangement_deals_each_treebank_to_all_folds(folds: int, sizes: tuple[int, ...]) -> None:
    parts = [[(bank, i) for i in range(size)] for bank, size in enumerate(sizes)]
    joined = dealt(parts, folds=folds)
    assert sorted(joined) == sorted(chain(*parts))
    numbers = fold_of_sentences(len(joined), folds=folds)
    for bank, size in enumerate(sizes):
        mine = [item for item in joined if item[0] == bank]
        assert mine == sorted(mine)  # neighbours stay neighbours
        for fold in range(folds):
            share = sum(
                item[0] == bank and number == fold
                for item, number in zip(joined, numbers, strict=True)
            )
            assert abs(share - size / folds) <= len(sizes)


# In a training


def plan(*train: Path, **changes: Any) -> Plan:
    given = {"output": train[0].parent / "model", "parsers": ("sampling",), "tags": "gold"}
    return make_plan(TrainOptions(train=train, **{**given, "folds": 2, **changes}))


def ids(found: Plan, part: str) -> list[str | None]:
    return [sentence.sent_id for sentence in found.parts[part].sentences]


def test_arrangement_dev_is_not_learnt_from(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=30, test=4)
    found = plan(folder)
    assert len(ids(found, "dev")) == 3
    assert sorted(ids(found, "train") + ids(found, "dev")) == sorted(f"s{i}" for i in range(30))
    assert ids(found, "test") == [f"s{i}" for i in range(30, 34)]
    assert found.told[1].startswith("no dev file: 3 of 30 sentences of train, in blocks by the")
    (warning,) = [note for note in found.notes if "has only" in note]
    assert warning.startswith("dev, a tenth of train, has only 18 words: scores on it are rough")
    assert ids(plan(folder, seed=1), "dev") != ids(found, "dev")
    facts = {name: part.facts() for name, part in found.parts.items()}
    assert facts["train"].file == "x_syn-ud-train.conllu (nine tenths)"
    assert facts["dev"].file == "x_syn-ud-train.conllu (a tenth)"
    assert (facts["train"].words, facts["dev"].words) == (27 * 6, 3 * 6)
    assert facts["test"].file == "x_syn-ud-test.conllu"


def test_arrangement_of_a_folder_without_dev_is_that_of_its_file(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=30)
    of_folder, of_file = plan(folder), plan(folder / "x_syn-ud-train.conllu")
    for part in ("train", "dev"):
        assert ids(of_folder, part) == ids(of_file, part)
    line = (
        "no dev file: 3 of 30 sentences of train, in blocks by the seed, are dev and not learnt "
        "from"
    )
    assert [text for text in of_file.told if "dev" in text] == [line]
    # The folder's first line says which files it stands for.
    assert [text for text in of_folder.told if "dev" in text] == [
        f"{folder}: train x_syn-ud-train.conllu, no dev, no test",
        line,
    ]
    assert of_folder.notes == of_file.notes


def test_arrangement_with_a_dev_nothing_is_held_out(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=30, dev=4)
    found = plan(folder)
    assert ids(found, "train") == [f"s{i}" for i in range(30)]
    assert ids(found, "dev") == [f"s{i}" for i in range(30, 34)]
    assert found.options.cross_validation is None


def test_arrangement_of_joined_treebanks(tmp_path: Path) -> None:
    a = write_folder(tmp_path / "UD_A", start=0, train=20)
    b = write_folder(tmp_path / "UD_B", start=100, train=40)
    found = plan(a, b)
    dev = [int(str(name)[1:]) for name in ids(found, "dev")]
    assert (sum(i < 100 for i in dev), sum(i >= 100 for i in dev)) == (2, 4)
    train = [int(str(name)[1:]) for name in ids(found, "train")]
    # Half of each treebank in each of the two folds.
    assert [i < 100 for i in train] == [True] * 9 + [False] * 18 + [True] * 9 + [False] * 18
    assert found.title == "UD_A + UD_B"
    facts = found.parts["train"].facts()
    assert facts.file == "x_syn-ud-train.conllu + x_syn-ud-train.conllu (nine tenths)"
    assert facts.sha256 != plan(b, a).parts["train"].facts().sha256


def test_arrangement_too_small(tmp_path: Path) -> None:
    one = tmp_path / "one.conllu"
    write_conllu(one, gold_sentences(1))
    with pytest.raises(UserError, match=r"one\.conllu: a single sentence, of which none can be"):
        plan(one)
    few = tmp_path / "few.conllu"
    write_conllu(few, gold_sentences(4, start=3))
    with pytest.raises(UserError, match=r"\(nine tenths\): 3 sentences are too few for 2 folds"):
        plan(few)


def test_small_treebanks_have_more_folds() -> None:
    sizes = {0: 5, 9_999: 5, 10_000: 3, 29_999: 3, 30_000: 2, 10**7: 2}
    assert {words: folds_for(words) for words in sizes} == sizes
