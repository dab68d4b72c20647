"""The fast reading of candidate lines: what it reads, the plain reading reads alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tk_spacy.errors import CandidateError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.compact_lines import read_lines
from tk_spacy.kbest.reader import _CANDIDATE, _read_lines_plainly, read_kbest
from tk_spacy.treebank.conllu import Sentence

LINES = (
    "# sent_id = s",
    "# tk_candidate_1 = a:-0.5,b:nan 2:nsubj 0:root",
    "# tk_candidate_2 = a:-1.25e3,b:3.0 0:root 1:obl:tmod",
    "# tk_candidate_3 = a:-7,b:1 0:root 1:obl",
    "# tk_base = 2",
)


def both(comments: list[str], n: int = 2):
    """What the fast and the plain reading make of comments; None where they refuse."""
    fast, plain = LabelInventory(), LabelInventory()
    found = read_lines(tuple(comments), n, fast.add)
    sentence = Sentence.from_columns(forms=["x"] * n).with_comments(comments)
    try:
        expected = _read_lines_plainly(sentence, plain, {})
    except CandidateError:
        expected = None
    if found is not None:
        stop = found[0] + len(found[1])
        if any(_CANDIDATE.match(line) for line in comments[: found[0]] + comments[stop:]):
            found = None  # as in kbest.reader
        else:
            assert fast.names == plain.names
    return found, expected


def assert_alike(found, expected) -> None:
    assert expected is not None, "only the fast reading accepts it"
    first, heads, labels, scores, sources = found
    assert expected[0] == list(range(first, first + len(heads)))
    for mine, other in zip((heads, labels, scores), expected[1:4], strict=True):
        np.testing.assert_array_equal(mine, other)
    assert (heads.dtype, labels.dtype, scores.dtype) == (np.int32, np.int32, np.float64)
    assert sources == expected[4]


def test_kbest_lines_reads_lists_as_they_are_written():
    found, expected = both(list(LINES))
    assert_alike(found, expected)
    assert found[1].tolist() == [[2, 0], [0, 1], [0, 1]]
    assert found[3][1:].tolist() == [[-1250.0, 3.0], [-7.0, 1.0]]
    assert found[4] == ["a", "b"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1:obl:tmod", "1:obl tmod"),  # a space in a label
        ("1:obl:tmod", "1:öbl"),
        ("a:-1.25e3,b:3.0", "b:3.0,a:-1.25e3"),  # another order
        ("a:-1.25e3,b:3.0", "a:-1_2,b:3.0"),  # a number for Python alone
        ("a:-1.25e3,b:3.0", "b:3.0"),
        ("# tk_candidate_2 =", "#tk_candidate_2  ="),
    ],
)
def test_kbest_lines_leaves_the_unusual_to_the_plain_reading(old, new):
    found, expected = both([line.replace(old, new) for line in LINES])
    assert (found is None, expected is None) == (True, False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a:-7", "a:inf"),
        ("a:-7", "a:1e999"),
        ("a:-7", "a:"),
        ("a:-7", ":-7"),
        ("a:-7,b:1 ", "a:-7,b:1,a:2 "),
        ("b:", "a:"),  # twice the same source
        ("2:nsubj 0:root", "2:nsubj"),
        ("2:nsubj", "2:"),
        ("2:nsubj", ":nsubj"),
        ("2:nsubj", "-2:nsubj"),
        ("2:nsubj", "1234567890:nsubj"),
        ("2:nsubj", "2:ns\tubj"),
        ("candidate_3", "candidate_4"),
        ("candidate_3", "candidate_03"),
    ],
)
def test_kbest_lines_leaves_errors_to_the_plain_reading(old, new):
    assert both([line.replace(old, new) for line in LINES]) == (None, None)


def test_kbest_lines_of_a_sentence_without_candidates():
    assert both(["# sent_id = s"]) == (None, None)
    assert read_lines((), 1, LabelInventory().add) is None


CHANGES = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.integers(0, 60),
        st.integers(0, 2),
        st.text(" :,=#0129-+.einfa_tk\t\x1f\x00é\u2028\u0661", max_size=3),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=500)
@given(CHANGES)
def test_kbest_lines_read_what_they_read_as_the_plain_reading_does(changes):
    lines = list(LINES)
    for number, place, length, text in changes:
        line = lines[number]
        lines[number] = line[:place] + text + line[place + length :]
        if not lines[number].startswith("#"):
            lines[number] = "#" + lines[number]
    found, expected = both(lines)
    if found is not None:
        assert_alike(found, expected)


def test_kbest_lines_odd_line_beside_fast_ones_is_read_too(tmp_path):
    def read(lines):
        words = "1\tx\t_\t_\t_\t_\t2\tx\t_\t_\n2\ty\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
        (tmp_path / "in").write_text("\n".join(lines) + "\n" + words, encoding="utf-8")
        ((sentence, trees),) = read_kbest(tmp_path / "in", inventory=LabelInventory())
        return sentence.comments, trees.heads.tolist(), trees.scores.tolist()[1:], trees.base

    odd = [line.replace("# tk_candidate_3", "#tk_candidate_3") for line in LINES]
    assert read(odd) == read(LINES)
