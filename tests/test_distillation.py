"""Shares of arcs, lessons made of them, and parsers that learn from these."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tk_spacy.ensemble.distillation.lesson import Lesson, list_shares
from tk_spacy.ensemble.distillation.student import Student, check_student
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parallel.executor import LocalExecutor
from tk_spacy.parsers.arc_shares import ArcShares
from tk_spacy.parsers.biaffine.spec import BiaffineSpec
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.parsers.transition.spec import TransitionSpec
from tk_spacy.treebank.conllu import Sentence, check_tree


def sentence(forms: str, heads: list[int], deprels: str) -> Sentence:
    return Sentence.from_columns(forms=forms.split(), heads=heads, deprels=deprels.split())


def arcs_of(shares: ArcShares) -> dict[tuple[int, int, str], float]:
    arcs = zip(shares.words.tolist(), shares.heads.tolist(), shares.relations, strict=True)
    return dict(zip(arcs, shares.shares.tolist(), strict=True))


def two_trees() -> CandidateList:
    """Word 2 hangs on word 1 as obj, or on the root while word 1 hangs on it as nsubj."""
    inventory = LabelInventory(["nsubj", "obj", "root"])
    return CandidateList.from_arrays(
        np.array([[0, 1], [2, 0]], dtype=np.int32),
        np.array([[2, 1], [0, 2]], dtype=np.int32),
        np.zeros((2, 1)),
        inventory=inventory,
        sources=("some",),
    )


def test_list_shares_are_the_softmax_of_the_final_scores() -> None:
    shares = list_shares(two_trees(), np.array([np.log(3.0), 0.0]), 1.0)
    found = arcs_of(shares)
    assert found == pytest.approx(
        {(0, 0, "root"): 0.75, (0, 2, "nsubj"): 0.25, (1, 0, "root"): 0.25, (1, 1, "obj"): 0.75}
    )
    cold = arcs_of(list_shares(two_trees(), np.array([np.log(3.0), 0.0]), 0.1))
    assert cold == {(0, 0, "root"): 1.0, (1, 1, "obj"): 1.0}  # 3^-10 is left out


def test_mixed_shares_are_weighed_and_sum_to_one() -> None:
    gold = sentence("a b", [0, 1], "root nsubj")
    lesson = Lesson.of_trees([gold]).mixed(
        [list_shares(two_trees(), np.array([np.log(3.0), 0.0]), 1.0)], 0.4
    )
    (shares,) = lesson.shares
    assert arcs_of(shares) == pytest.approx(
        {
            (0, 0, "root"): 0.6 + 0.4 * 0.75,
            (0, 2, "nsubj"): 0.4 * 0.25,
            (1, 0, "root"): 0.4 * 0.25,
            (1, 1, "nsubj"): 0.6,
            (1, 1, "obj"): 0.4 * 0.75,
        }
    )
    shares.check(gold)


def test_a_sentence_of_which_nothing_is_said_keeps_its_tree() -> None:
    gold = sentence("a b", [0, 1], "root nsubj")
    (shares,) = Lesson.of_trees([gold]).mixed([None], 0.9).shares
    assert arcs_of(shares) == {(0, 0, "root"): 1.0, (1, 1, "nsubj"): 1.0}


def test_bad_shares_are_refused() -> None:
    gold = sentence("a b", [0, 1], "root nsubj")
    good = ArcShares.of_tree(gold)
    with pytest.raises(ValueError, match=r"sum to 0\.5"):
        ArcShares(good.words, good.heads, good.relations, good.shares * 0.5).check(gold)
    with pytest.raises(ValueError, match="heads up to 7, expected 0 to 2"):
        ArcShares(good.words, good.heads + 6, good.relations, good.shares).check(gold)
    with pytest.raises(ValueError, match="expected 1 words"):
        good.check(sentence("a", [0], "root"))


def test_only_parsers_that_are_trained_here_are_students() -> None:
    check_student(BiaffineSpec.from_settings({}))
    check_student(TransitionSpec.from_settings({}))
    (spacys,) = make_parsers(("spacy",), seed=0, xpos=False, settings={})
    with pytest.raises(UserError, match="spacy parser cannot be distilled"):
        check_student(spacys)


@pytest.mark.parametrize("seed", range(20))
def test_likeliest_tree_has_the_most_words_right(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    trees = [
        heads for heads in itertools.product(range(n + 1), repeat=n)
        if heads.count(0) == 1 and check_tree(np.array(heads, dtype=np.int32)) is None
    ]  # fmt: skip
    own = trees[rng.integers(len(trees))]
    labels = ["root" if head == 0 else "x" for head in own]
    gold = sentence(" ".join("abcd"[:n]), list(own), " ".join(labels))
    arcs = [
        (word, head, relation)
        for word in range(n) for head in range(n + 1) for relation in ("x", "y")
        if head != word + 1 and rng.random() < 0.5
    ]  # fmt: skip
    arcs += [(word, own[word], "z") for word in range(n)]
    raw = rng.random(len(arcs))
    words = np.array([word for word, _, _ in arcs], dtype=np.int32)
    shares = ArcShares(
        words,
        np.array([head for _, head, _ in arcs], dtype=np.int32),
        tuple(relation for _, _, relation in arcs),
        raw / np.bincount(words, raw)[words],
    )
    shares.check(gold)

    def expected(heads: Sequence[int], relations: Sequence[str]) -> float:
        wanted = set(zip(range(n), heads, relations, strict=True))
        return sum(s for arc, s in zip(arcs, shares.shares.tolist(), strict=True) if arc in wanted)

    best = max(
        expected(heads, relations)
        for heads in trees for relations in itertools.product("xyz", repeat=n)
    )  # fmt: skip
    found = shares.likeliest_tree(gold)
    assert expected(found.heads.tolist(), found.deprels) == pytest.approx(best)
    assert found.forms == gold.forms


def test_a_parser_that_learns_from_trees_gets_the_likeliest_ones(tmp_path: Path) -> None:
    student = Student(TransitionSpec.from_settings({}), lesson_against_the_trees(), "transition")
    job = student.job(tmp_path)
    list(LocalExecutor().run([job.task]))
    ((heads, labels),) = job.open().parse([sentence("a b b", [0, 1, 1], "root dep dep")])
    assert heads.tolist() == [3, 3, 0]
    assert labels == ("dep", "dep", "root")


SMALL = {
    "epochs": 30, "steps": 60, "word_width": 8, "tag_width": 8, "width": 8, "layers": 1,
    "arc_width": 8, "label_width": 8, "dropout": 0.0, "column_dropout": 0.0, "rate": 0.02,
}  # fmt: skip


def lesson_against_the_trees() -> Lesson:
    """Trees that say one thing (the first word is the root), and shares that say another."""
    forms = ["a b", "b a", "a a b", "b b a"] * 3
    trees = [
        sentence(text, [0] + [1] * (len(text.split()) - 1), "root" + " dep" * text.count(" "))
        for text in forms
    ]
    shares = []
    for tree in trees:
        n = len(tree)
        last = tree.with_tree(np.array([n] * (n - 1) + [0]), ["dep"] * (n - 1) + ["root"])
        shares.append(ArcShares.of_tree(last))
    return Lesson(trees, shares)


def test_a_student_learns_what_the_shares_say_and_is_taken_over(tmp_path: Path) -> None:
    student = Student(BiaffineSpec.from_settings(SMALL), lesson_against_the_trees(), "biaffine")
    job = student.job(tmp_path)
    assert not job.is_kept
    list(LocalExecutor().run([job.task]))
    assert job.is_kept
    parser = job.open()
    ((heads, labels),) = parser.parse([sentence("a b b", [0, 1, 1], "root dep dep")])
    assert heads.tolist() == [3, 3, 0]
    assert labels == ("dep", "dep", "root")
    again = Student(BiaffineSpec.from_settings(SMALL), lesson_against_the_trees(), "biaffine")
    assert again.job(tmp_path).is_kept
    trees = Lesson.of_trees(student.lesson.sentences)
    other = Student(BiaffineSpec.from_settings(SMALL), trees, "biaffine")
    assert not other.job(tmp_path).is_kept
