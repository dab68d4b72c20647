"""Trees of other parsers in files: matched to sentences, scored, and merged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from trainings import (
    list_files,
    treebank,
)
from tree_file_trainings import single, some

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.errors import CandidateError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.matching import matched
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.tree_files import TreeFile, TreeFileSource
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu


def taken(path: Path, data: Sequence[Sentence], inventory: LabelInventory | None = None) -> list:
    file = TreeFile(path, inventory=inventory or LabelInventory(), source="x")
    return [trees for _, trees in matched(file, data)]


def written(path: Path, *sentences: Sentence) -> Path:
    write_conllu(path, sentences)
    return path


def test_trees_are_matched_by_sent_id(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t", *(some("w", n, heads=[0, 1], sent_id=n) for n in "cab"),
    )  # fmt: skip
    lists = taken(path, [some("w", n, sent_id=n) for n in "abc"])
    assert [trees.heads.tolist() for trees in lists] == [[[0, 1]]] * 3
    assert [trees.sources for trees in lists] == [("x",)] * 3
    with pytest.raises(CandidateError, match="no trees for sentence z"):
        taken(path, [some("w", sent_id="z")])
    with pytest.raises(CandidateError, match="sentence a has 2 words here, but 1 in the data"):
        taken(path, [some("w", sent_id="a")])
    with pytest.raises(CandidateError, match="begins with 'w' here, but with 'x' in the data"):
        taken(path, [some("x", "y", sent_id="a")])


@pytest.mark.parametrize(("file_ids", "data_ids"), [("", "abc"), ("abc", ""), ("", "")])
def test_trees_are_matched_by_order_without_sent_ids(
    tmp_path: Path, file_ids: str, data_ids: str
) -> None:
    heads = [[0, 1], [2, 0], [0, 1]]
    ids = [list(given) or [None] * 3 for given in (file_ids, data_ids)]
    trees = [some("w", "v", heads=h, sent_id=i) for h, i in zip(heads, ids[0], strict=True)]
    path = written(tmp_path / "t", *trees)
    data = [some("w", "v", sent_id=i) for i in ids[1]]
    assert [t.heads[0].tolist() for t in taken(path, data)] == heads
    with pytest.raises(CandidateError, match="no trees for sentence"):
        taken(path, [*data, data[0]])
    with pytest.raises(CandidateError, match="more sentences than the data's 2"):
        taken(path, data[:2])


def test_trees_with_several_roots_are_repaired(tmp_path: Path) -> None:
    path = written(tmp_path / "t", some("a", "b", "c", heads=[0, 0, 2]))
    (trees,) = taken(path, [some("a", "b", "c")])
    assert trees.heads.tolist() == [[0, 1, 2]]
    assert trees.deprels(0) == ("root", "parataxis", "root")


# Scores


def test_single_trees_score_by_agreement(tmp_path: Path) -> None:
    inventory = LabelInventory()
    path = written(tmp_path / "t", some("a", "b", "c", heads=[0, 1, 1]))
    data = [some("a", "b", "c")]
    file = TreeFile(path, inventory=inventory, source="x")
    source = TreeFileSource("x", file.take, scored=file.scored)
    assert not file.scored
    assert [t.scores.tolist() for t in source.candidates(data, k=3)] == [[[0.0]]]
    other = CandidateList.build(
        [([0, 1, 2], ["root"] * 3, 1.0), ([0, 1, 1], ["root", "root", "obj"], 0.0),
         ([0, 1, 1], ["root"] * 3, -1.0)],
        inventory=inventory, sources=("y",),
    )  # fmt: skip
    assert source.score(data, [other])[0].tolist() == [[-1.0], [-1.0], [0.0]]


def test_lists_keep_their_scores_and_score_no_other_tree(tmp_path: Path) -> None:
    inventory = LabelInventory()
    data = [some("a", "b", "c", sent_id="1")]
    trees = [([0, 1, 2], -2.0), ([0, 1, 1], -3.5), ([2, 0, 2], -7.0)]
    own = CandidateList.build(
        [(heads, ["root"] * 3, (score, 9.0)) for heads, score in trees],
        inventory=inventory, sources=("some", "more"), base=1,
    )  # fmt: skip
    write_kbest(tmp_path / "t", [(data[0], own)])
    file = TreeFile(tmp_path / "t", inventory=inventory, source="x")
    source = TreeFileSource("x", file.take, scored=file.scored)
    (cut,) = source.candidates(data, k=2)
    assert cut.scores.tolist() == [[-2.0], [-3.5]]
    assert cut.base == 1
    assert cut.sources == ("x",)
    other = CandidateList.build(
        [([2, 0, 2], ["root"] * 3, 1.0), ([2, 0, 1], ["root"] * 3, 0.0)],
        inventory=inventory, sources=("y",),
    )  # fmt: skip
    # The third one, too, which did not fit into the list.
    np.testing.assert_array_equal(source.score(data, [other])[0], [[-7.0], [np.nan]])


def test_lists_of_files_merge_like_those_of_parsers() -> None:
    inventory = LabelInventory()
    sentences = load_treebank(treebank()["dev"])
    sources = []
    for name, files in (("lists", list_files()), ("single", single())):
        file = TreeFile(files["dev"], inventory=inventory, source=name)
        sources.append(TreeFileSource(name, file.take, scored=file.scored))
    single_trees = load_treebank(single()["dev"])
    lists = list(MergedSource(sources).candidates(sentences, k=10))
    plain = read_kbest(list_files()["dev"], inventory=inventory)
    for trees, sentence, (_, own) in zip(lists, single_trees, plain, strict=True):
        assert trees.sources == ("lists", "single")
        row = trees.bases["single"]
        assert trees.heads[row].tolist() == sentence.heads.tolist()
        assert trees.scores[row, 1] == 0.0
        assert not np.isnan(trees.scores[:, 1]).any()
        assert set(own.scores[:, 0]) == {s for s in trees.scores[:, 0] if not np.isnan(s)}
