"""k-best files: both forms, round trips, what is kept, and errors with path and line."""

import numpy as np
import pytest

from tk_spacy.errors import CandidateError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.matching import matched_lists
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.treebank.conllu import Sentence, TreebankError, load_treebank

TREEBANK = """\
# newdoc id = d1
# sent_id = s1
# text = Sie kam im Mai
1\tSie\tsie\tPRON\tPPER\tCase=Nom\t2\tnsubj\t_\tNote=kept
2\tkam\tkommen\tVERB\tVVFIN\t_\t0\troot\t_\t_
3-4\tim\t_\t_\t_\t_\t_\t_\t_\t_
3\tin\tin\tADP\tAPPR\t_\t5\tcase\t_\t_
4\tdem\tder\tDET\tART\t_\t5\tdet\t_\t_
5\tMai\tMai\tNOUN\tNN\t_\t2\tobl:tmod\t_\tSpaceAfter=No
5.1\tundso\t_\t_\t_\t_\t_\t_\t_\t_

# sent_id = s2
1\tHalt\thalten\tVERB\tVVIMP\t_\t0\troot\t_\t_

"""
COMPACT = """\
# sent_id = s1
# tk_candidate_1 = a:-0.5,b:nan 2:nsubj 0:root
# tk_candidate_2 = a:-1.25,b:3.0 0:root 1:obl:tmod
# tk_base = 2
1\tx\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\ty\t_\t_\t_\t_\t0\troot\t_\t_

"""
EXPANDED = """\
# sent_id = s1
# rank = 1
# score = -0.5
1\tx\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\ty\t_\t_\t_\t_\t0\troot\t_\t_

# sent_id = s1
# rank = 2
# score = -1.25
1\tx\t_\t_\t_\t_\t0\troot\t_\t_
2\ty\t_\t_\t_\t_\t1\tobl:tmod\t_\t_

# sent_id = s2
# rank = 1
# score = 1e-3
1\tz\t_\t_\t_\t_\t0\troot\t_\t_

"""


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="lists.conllu"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def some_lists(sentences, inventory) -> list[CandidateList]:
    first = CandidateList.build(
        [
            ([2, 0, 5, 5, 2], ["nsubj", "root", "case", "det", "obl:tmod"], (-0.1, 7.0)),
            ([2, 0, 2, 5, 2], ["nsubj", "root", "obl", "det", "obj"], (-1 / 3, float("nan"))),
            ([0, 1, 2, 3, 4], ["root", "x", "x", "x", "x"], (1e-300, -2e300)),
        ],
        inventory=inventory,
        sources=("spacy", "other"),
    )
    second = CandidateList.build(
        [([0], ["root"], (0.0, 0.0))], inventory=inventory, sources=("spacy", "other")
    )
    assert first.base == 1  # not the row of the best score
    assert len(sentences) == 2
    return [first, second]


def assert_same(a: CandidateList, b: CandidateList) -> None:
    np.testing.assert_array_equal(a.heads, b.heads)
    np.testing.assert_array_equal(a.scores, b.scores)
    assert [a.deprels(j) for j in range(len(a))] == [b.deprels(j) for j in range(len(b))]
    assert (a.sources, a.base) == (b.sources, b.base)


def test_kbest_compact_form_round_trips_exactly(tmp_path, write):
    sentences = load_treebank(write(TREEBANK, "treebank.conllu"))
    lists = some_lists(sentences, LabelInventory())
    path = tmp_path / "out.conllu"
    assert write_kbest(path, zip(sentences, lists, strict=True)) == 2
    read = list(read_kbest(path, inventory=LabelInventory()))
    for expected, (_, found) in zip(lists, read, strict=True):
        assert_same(expected, found)
    # All that is not the tree is as it was in the treebank.
    for sentence, trees, (found, _) in zip(sentences, lists, read, strict=True):
        assert found.to_conllu() == sentence.with_tree(trees.heads[0], trees.deprels(0)).to_conllu()


def test_kbest_compact_form_is_a_treebank_of_first_candidates(tmp_path, write):
    sentences = load_treebank(write(TREEBANK, "treebank.conllu"))
    lists = some_lists(sentences, LabelInventory())
    path = tmp_path / "out.conllu"
    write_kbest(path, zip(sentences, lists, strict=True))
    plain = load_treebank(path)
    assert [s.heads.tolist() for s in plain] == [t.heads[0].tolist() for t in lists]
    # The text of the format, to the letter.
    assert "# tk_candidate_2 = spacy:-0.1,other:7.0 2:nsubj 0:root 5:case" in path.read_text()
    assert "# tk_base = 2\n" in path.read_text()


def test_kbest_written_twice_replaces_the_old_candidates(tmp_path, write):
    sentences = load_treebank(write(TREEBANK, "treebank.conllu"))
    lists = some_lists(sentences, LabelInventory())
    once, twice = tmp_path / "once.conllu", tmp_path / "twice.conllu"
    write_kbest(once, zip(sentences, lists, strict=True))
    write_kbest(twice, zip(load_treebank(once), lists, strict=True))
    assert once.read_bytes() == twice.read_bytes()


def test_kbest_expanded_form_round_trips_the_main_source(tmp_path, write):
    sentences = load_treebank(write(TREEBANK, "treebank.conllu"))
    lists = some_lists(sentences, LabelInventory())
    path = tmp_path / "out.conllu"
    assert write_kbest(path, zip(sentences, lists, strict=True), form="expanded") == 2
    assert [s.sent_id for s in load_treebank(path)] == ["s1", "s1", "s1", "s2"]
    for expected, (_, found) in zip(
        lists, read_kbest(path, inventory=LabelInventory(), source="spacy"), strict=True
    ):
        np.testing.assert_array_equal(found.heads, expected.heads)
        np.testing.assert_array_equal(found.scores[:, 0], expected.scores[:, 0])
        assert found.sources == ("spacy",)
        assert found.base == 0


def test_kbest_reads_both_forms_alike(write):
    (compact,) = [trees for _, trees in read_kbest(write(COMPACT), inventory=LabelInventory())]
    expanded, _ = [trees for _, trees in read_kbest(write(EXPANDED), inventory=LabelInventory())]
    np.testing.assert_array_equal(compact.heads, expanded.heads)
    np.testing.assert_array_equal(compact.scores[:, :1], expanded.scores)
    assert compact.sources == ("a", "b")
    assert (compact.base, expanded.base) == (1, 0)


def test_kbest_trees_of_compact_files_are_their_candidates(write):
    for heads in ("2 1", "0 0", "_ _", "9 x"):
        first, second = heads.split()
        rows = [line.split("\t") for line in COMPACT.splitlines()]
        words = [row for row in rows if len(row) == 10]
        words[0][6:8], words[1][6:8] = [first, "odd"], [second, "odd"]
        path = write("\n".join("\t".join(row) for row in rows) + "\n")
        ((sentence, trees),) = read_kbest(path, inventory=LabelInventory())
        ((expected, good),) = read_kbest(write(COMPACT), inventory=LabelInventory())
        np.testing.assert_array_equal(trees.heads, good.heads)
        assert sentence.to_conllu() == expected.to_conllu()
        assert sentence.heads.tolist() == trees.heads[0].tolist()


def test_kbest_trees_of_expanded_files_must_be_trees(write):
    path = write(EXPANDED.replace("2\ty\t_\t_\t_\t_\t1", "2\ty\t_\t_\t_\t_\t2"))
    with pytest.raises(TreebankError, match="word 2 is its own HEAD"):
        list(read_kbest(path, inventory=LabelInventory()))


def test_kbest_reads_a_sentence_at_a_time(write):
    # The broken second sentence is only reached when asked for.
    path = write(COMPACT + COMPACT.replace("0:root 1", "0:root"))
    pairs = read_kbest(path, inventory=LabelInventory())
    next(pairs)
    with pytest.raises(CandidateError, match="1 HEAD:DEPREL pairs for 2 words"):
        next(pairs)


def test_kbest_k_cuts_lists(write):
    ((_, trees),) = read_kbest(write(COMPACT), inventory=LabelInventory(), k=1)
    assert len(trees) == 1
    assert trees.heads[0].tolist() == [0, 1]  # the base, which is never cut


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("1:obl:tmod", "1:obl:tmod 2:x", 3, "3 HEAD:DEPREL pairs for 2 words"),
        ("1:obl:tmod", "2:obl:tmod", 3, "own HEAD"),
        ("1:obl:tmod", "0:obl:tmod", 3, "root"),
        ("1:obl:tmod", "7:obl:tmod", 3, "7"),
        ("1:obl:tmod", "1", 3, "'1' is not HEAD:DEPREL"),
        ("1:obl:tmod", "1:", 3, "'1:' is not HEAD:DEPREL"),
        ("1:obl:tmod", "1:obl\ttmod", 3, r"'1:obl\\ttmod' is not HEAD:DEPREL"),
        ("1:obl:tmod", "-1:x", 3, "'-1:x' is not HEAD:DEPREL"),
        ("a:-1.25", "a:high", 3, "score 'high' is no number"),
        ("a:-1.25", "-1.25", 3, "'-1.25' is not SOURCE:SCORE"),
        ("a:-1.25,b", "a:-1.25,a", 3, "source 'a' is given twice"),
        ("a:-1.25,b", "a:-1.25,c", 3, "are not those of candidate 1"),
        ("candidate_2", "candidate_3", 3, "tk_candidate_2 expected, got 3"),
        ("tk_base = 2", "tk_base = 3", 1, "tk_base is 3, but there are 2 candidates"),
        ("tk_base = 2", "tk_base = x", 4, "tk_base 'x' is no number"),
        ("tk_base = 2", "tk_base = " + "9" * 5000, 4, "tk_base '9{40}' is no number"),
        ("candidate_2", "candidate_" + "9" * 5000, 3, "tk_candidate_2 expected, got 9{20}$"),
        ("1:obl:tmod", "99999999999:obl", 3, "a HEAD of 11 digits lies outside"),
        ("1:obl:tmod", "9" * 5000 + ":obl", 3, "a HEAD of 5000 digits lies outside"),
        ("a:-1.25", "a:-inf", 3, "score '-inf' is infinite"),
        ("a:-1.25", "a:1e999", 3, "score '1e999' is infinite"),
    ],
)
def test_kbest_compact_errors_name_path_line_and_reason(write, old, new, line, reason):
    path = write(COMPACT.replace(old, new))
    with pytest.raises(CandidateError, match=reason) as caught:
        list(read_kbest(path, inventory=LabelInventory()))
    assert str(caught.value).startswith(f"{path}:{line}: sentence s1: ")


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("rank = 2", "rank = 3", 8, "rank 2 expected, got 3"),
        ("rank = 2", "rank = two", 8, "rank 'two' is no number"),
        ("score = -1.25", "score = much", 9, "score 'much' is no number"),
        ("score = -1.25", "score = inf", 9, "score 'inf' is infinite"),
        ("rank = 2", "rank = " + "9" * 5000, 8, "rank '9{40}' is no number"),
        ("# score = -1.25\n", "", 7, "no '# score = ...'"),
        ("2\ty\t_\t_\t_\t_\t1", "2\tw\t_\t_\t_\t_\t1", 7, "other words"),
    ],
)
def test_kbest_expanded_errors_name_path_line_and_reason(write, old, new, line, reason):
    path = write(EXPANDED.replace(old, new))
    with pytest.raises(CandidateError, match=reason) as caught:
        list(read_kbest(path, inventory=LabelInventory()))
    assert str(caught.value).startswith(f"{path}:{line}: sentence s1: ")


def test_kbest_a_plain_treebank_is_refused(write):
    with pytest.raises(CandidateError, match="no k-best file"):
        list(read_kbest(write(TREEBANK), inventory=LabelInventory()))


def test_kbest_a_failed_write_leaves_nothing(tmp_path, write):
    sentences = load_treebank(write(TREEBANK, "treebank.conllu"))
    lists = some_lists(sentences, LabelInventory())
    path = tmp_path / "out.conllu"
    with pytest.raises(ValueError, match="1 words, its candidates 5"):
        write_kbest(path, [(sentences[0], lists[0]), (sentences[1], lists[0])])
    assert not path.exists()


def words(*sent_ids: str | None) -> list[Sentence]:
    return [Sentence.from_columns(forms=["x", "y"], sent_id=sent_id) for sent_id in sent_ids]


def three_lists(path, *sent_ids: str | None):
    scores = iter(range(10))
    blocks = [
        (sentence, [([2, 0], ["a", "root"], float(next(scores)))]) for sentence in words(*sent_ids)
    ]
    inventory = LabelInventory()
    write_kbest(
        path,
        (
            (sentence, CandidateList.build(trees, inventory=inventory, sources=("s",)))
            for sentence, trees in blocks
        ),
    )


def test_matched_lists_are_matched_by_sent_id_in_any_order(tmp_path):
    path = tmp_path / "lists.conllu"
    three_lists(path, "a", "b", "c")
    lists = matched_lists(path, words("c", "a"), inventory=LabelInventory(), k=5)
    assert [trees.scores[0, 0] for trees in lists] == [2.0, 0.0]


def test_matched_lists_fall_back_to_the_order(tmp_path):
    path = tmp_path / "lists.conllu"
    three_lists(path, None, None)
    lists = matched_lists(path, words(None, None), inventory=LabelInventory(), k=5)
    assert [trees.scores[0, 0] for trees in lists] == [0.0, 1.0]


def test_matched_lists_name_a_missing_sentence(tmp_path):
    path = tmp_path / "lists.conllu"
    three_lists(path, "a", "b")
    with pytest.raises(CandidateError, match=r"lists.conllu: no candidates for sentence z"):
        list(matched_lists(path, words("a", "z"), inventory=LabelInventory(), k=5))


def test_matched_lists_name_a_sentence_of_another_length(tmp_path):
    path = tmp_path / "lists.conllu"
    three_lists(path, "a")
    other = Sentence.from_columns(forms=["x"], sent_id="a")
    with pytest.raises(CandidateError, match="sentence a has 2 words here, but 1"):
        list(matched_lists(path, [other], inventory=LabelInventory(), k=5))


def test_matched_lists_name_a_sent_id_that_stands_twice(tmp_path):
    path = tmp_path / "lists.conllu"
    three_lists(path, "a", "a", "b")
    with pytest.raises(CandidateError, match="sent_id a stands for two sentences"):
        list(matched_lists(path, words("b"), inventory=LabelInventory(), k=5))


def test_kbest_labels_may_hold_spaces(tmp_path):
    inventory = LabelInventory()
    words = Sentence.from_columns(forms=["a", "b"], heads=[0, 1], deprels=["ro ot", "x 3"])
    trees = CandidateList.build(
        [([0, 1], ["ro ot", "x 3"], 1.0)], inventory=inventory, sources=("a",)
    )
    write_kbest(tmp_path / "lists", [(words, trees)])
    ((_, read),) = read_kbest(tmp_path / "lists", inventory=inventory)
    assert read.deprels(0) == ("ro ot", "x 3")
    bad = CandidateList.build([([0, 1], ["x 3:y", "z"], 1.0)], inventory=inventory, sources=("a",))
    with pytest.raises(CandidateError, match="label 'x 3:y'"):
        write_kbest(tmp_path / "bad", [(words, bad)])
    assert not (tmp_path / "bad").exists()
