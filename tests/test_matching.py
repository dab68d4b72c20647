"""Lists of files matched to sentences: whatever the two have in common, and what they have not."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest
from named_pipes import pipe
from tree_file_trainings import some

from tk_spacy.errors import CandidateError, TreebankError, UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.matching import Index, Matcher, matched, matched_lists, plain_words
from tk_spacy.kbest.reader import TreesFile, read_kbest
from tk_spacy.kbest.tree_files import TreeFile
from tk_spacy.kbest.writer import Form, Pair, write_kbest
from tk_spacy.treebank.conllu import Sentence, read_conllu, write_conllu

WORDS = {"a": "the cat sleeps", "b": "a dog barks", "c": "birds sing"}


def sentence(name: str, *, words: str | None = None, sent_id: str | None = "") -> Sentence:
    text = WORDS[name] if words is None else words
    return some(
        *text.split("_") if "_" in text else text.split(),
        sent_id=name if sent_id == "" else sent_id,
    )


def scored(own: Sentence, score: float) -> Pair:
    """A sentence with a list of one tree, a chain, that its score tells from others."""
    tree = (list(range(len(own))), ["root"] * len(own), score)
    return own, CandidateList.build([tree], inventory=LabelInventory(), sources=("s",))


def file_of(path: Path, *sentences: Sentence, form: Form = "compact") -> Path:
    """A k-best file whose lists have the scores 0, 1, 2, ..."""
    write_kbest(path, (scored(own, float(n)) for n, own in enumerate(sentences)), form=form)
    return path


def scores(path: Path, data: Sequence[Sentence]) -> list[float]:
    lists = matched_lists(path, data, inventory=LabelInventory())
    return [float(trees.scores[0, 0]) for trees in lists]


def by_words(pairs: Sequence[Pair], data: Sequence[Sentence]) -> list[float]:
    matcher = Matcher(pairs, where="lists", what="candidates", by="words")
    return [float(trees.scores[0, 0]) for _, trees in matched(matcher, data)]


@pytest.mark.parametrize(
    ("order", "asked", "found"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("cab", "abc", [1, 2, 0]),  # reordered
        ("abc", "cb", [2, 1]),  # a file of more sentences than the data has
        ("abab", "abab", [0, 1, 2, 3]),  # a treebank of two parts whose names are the same
        ("cba", "", []),
    ],
)
def test_sentences_are_matched_by_their_names(
    tmp_path: Path, order: str, asked: str, found: list[int]
) -> None:
    path = file_of(tmp_path / "lists", *map(sentence, order))
    assert scores(path, [sentence(name) for name in asked]) == found


def test_a_name_of_several_sentences_is_told_apart_by_words(tmp_path: Path) -> None:
    first, second = sentence("a"), sentence("b", sent_id="a")
    path = file_of(tmp_path / "lists", first, second, sentence("c"))
    assert scores(path, [sentence("c"), second, first]) == [2, 1, 0]
    other = sentence("a", words="some other words")
    with pytest.raises(CandidateError) as caught:
        scores(path, [sentence("c"), other])
    assert str(caught.value) == (
        f"{path}:7: sent_id a stands for two sentences (the other: line 1); give each its own"
    )
    path = file_of(tmp_path / "twice", first, first, sentence("c"))
    with pytest.raises(CandidateError, match=r"twice:7: sent_id a stands for two .*line 1\)"):
        scores(path, [sentence("c")])


def test_names_count_more_than_words(tmp_path: Path) -> None:
    """Equal words under two names have their own lists each, in any order."""
    words = WORDS["a"]
    one, two = (some(*words.split(), sent_id=name) for name in ("one", "two"))
    path = file_of(tmp_path / "lists", one, two)
    assert scores(path, [two, one]) == [1, 0]


@pytest.mark.parametrize(("ours", "theirs"), [(None, ""), ("", None), (None, None)])
def test_without_names_the_order_and_the_words_must_be_the_same(
    tmp_path: Path, ours: str | None, theirs: str | None
) -> None:
    data = [sentence(name, sent_id=ours) for name in "abc"]
    found = [sentence(name, sent_id=theirs) for name in "abc"]
    assert scores(file_of(tmp_path / "same", *found), data) == [0, 1, 2]
    with pytest.raises(CandidateError, match=r"shorter: no candidates for sentence (c|3); give a"):
        scores(file_of(tmp_path / "shorter", *found[:2]), data)
    with pytest.raises(
        CandidateError,
        match=rf"longer:{13 if theirs == '' else 11}: more sentences than the data's 2, and",
    ):
        scores(file_of(tmp_path / "longer", *found), data[:2])
    with pytest.raises(CandidateError) as caught:
        scores(file_of(tmp_path / "turned", found[1], found[0], found[2]), data)
    place = f"{tmp_path / 'turned'}:1: sentence {'1' if ours is None else 'a'}"
    assert str(caught.value) == (
        f"{place} begins with 'a' here, but with 'the' "
        "in the data, and shares no word: the file has other sentences, or another order; give "
        "candidates of the same sentences"
    )


@pytest.mark.parametrize("missing", ["file", "data"])
def test_a_name_that_is_missing_on_the_way_is_an_error(tmp_path: Path, missing: str) -> None:
    bare = [sentence("a"), sentence("b", sent_id=None), sentence("c")]
    full = [sentence(name) for name in "abc"]
    path = file_of(tmp_path / "lists", *(bare if missing == "file" else full))
    says = "missing here, but b in" if missing == "file" else "b here, but missing in"
    with pytest.raises(
        CandidateError, match=rf"lists:7: sentence 2: its sent_id is {says} the dat"
    ):
        scores(path, full if missing == "file" else bare)


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        ("the cat sleep s", "has 4 words here, but 3 in the data; give candidates of the same"),
        ("the dog barks", "has 'dog' as word 2 here, but 'cat' in the data, and shares only 1 of"),
        (
            "der Kater schläft",
            "begins with 'der' here, but with 'the' in the data, and shares no w",
        ),
    ],
)
def test_other_words_under_the_same_name_are_refused(
    tmp_path: Path, theirs: str, message: str
) -> None:
    path = file_of(tmp_path / "lists", some(*theirs.split(), sent_id="a"))
    with pytest.raises(CandidateError, match=rf"lists:1: sentence a {message}"):
        scores(path, [sentence("a")])


@pytest.mark.parametrize("theirs", ["THE CAT SLEEPS", "the cat -LRB-", "the_cat_sleeps\u00a0"])
def test_words_that_parsers_change_are_the_same(tmp_path: Path, theirs: str) -> None:
    path = file_of(tmp_path / "lists", sentence("a", words=theirs))
    assert scores(path, [sentence("a")]) == [0]


def test_errors_name_the_place_in_the_data(tmp_path: Path) -> None:
    write_conllu(tmp_path / "data", [sentence("a"), sentence("c")])
    path = file_of(tmp_path / "lists", sentence("a"), sentence("b", sent_id="c"))
    with pytest.raises(CandidateError, match=r"lists:7: sentence c has 3 .* 2 in .*data:6; give"):
        list(matched_lists(path, read_conllu(tmp_path / "data"), inventory=LabelInventory()))
    path = file_of(tmp_path / "short", sentence("a"))
    with pytest.raises(CandidateError, match=r"short: no candidates for sentence c \(.*data:6\); "):
        list(matched_lists(path, read_conllu(tmp_path / "data"), inventory=LabelInventory()))


# By words, for data without names in any order


def test_words_match_in_any_order_and_equal_sentences_in_turn() -> None:
    pairs = [scored(sentence(name, sent_id=str(n)), float(n)) for n, name in enumerate("abacb")]
    data = [sentence(name, sent_id=None) for name in "caabb"]
    assert by_words(pairs, data) == [3, 0, 2, 1, 4]
    # More in the file than in the data does not matter; the other way round it does.
    assert by_words(pairs, data[:2]) == [3, 0]
    with pytest.raises(CandidateError) as caught:
        by_words(pairs, [*data, data[0]])
    assert str(caught.value) == (
        "lists: no candidates for training sentence 6: birds sing; give a file with the candidates "
        "of every sentence"
    )


def test_words_match_whatever_their_white_space() -> None:
    pairs = [scored(some("10\u00a0000", "cats", "in  one"), 0.0)]
    assert by_words(pairs, [some("10 000", "cats", "in one")]) == [0]
    blank = [scored(sentence("a"), 0.0), scored(some("birds", "\u3000", "sing"), 1.0)]
    with pytest.raises(
        CandidateError, match=r"sentence 1: birds sing; line 0 has its words and ot"
    ):
        by_words(blank, [sentence("c")])


# Any sentence, any number of times


def test_an_index_finds_sentences_again_and_reads_no_file_too_early() -> None:
    read = []

    def part(name: str, *pairs: Pair):
        read.append(name)
        yield from pairs

    train = part("train", *(scored(sentence(name), float(n)) for n, name in enumerate("ab")))
    dev = part("dev", scored(sentence("c", sent_id=None), 7.0), scored(sentence("a"), 8.0))
    index = Index([train, dev], where="t, d", what="trees of file:x")
    found = [index.find(sentence(name)).scores[0, 0] for name in "baa"]
    assert (found, read) == ([1, 0, 0], ["train"])
    assert index.find(sentence("c", sent_id=None)).scores[0, 0] == 7.0
    assert index.find(sentence("a")).scores[0, 0] == 0.0  # the first one's
    # The name and the words count.
    for other in (sentence("c"), sentence("a", words="the cat sleep")):
        with pytest.raises(
            CandidateError, match=r"no trees of file:x for this sentence \(.* in t, d"
        ):
            index.find(other)


# Files of every kind


def opened_once(path: Path, form: Form) -> list[float]:
    name = "s" if form == "compact" else "kbest"
    lists = [trees for _, trees in read_kbest(path, inventory=LabelInventory())]
    assert {trees.sources for trees in lists} == {(name,)}
    return [float(trees.scores[0, 0]) for trees in lists]


@pytest.mark.parametrize("form", ["compact", "expanded"])
def test_kbest_files_may_be_pipes(tmp_path: Path, form: Form) -> None:
    data = [sentence(name) for name in "abc"]
    text = file_of(tmp_path / "lists", *data, form=form).read_bytes()
    with pipe(tmp_path / "pipe", text) as path:
        assert opened_once(path, form) == [0, 1, 2]
    with pipe(tmp_path / "pipe", text) as path:
        assert scores(path, data[::-1]) == [2, 1, 0]
    with pipe(tmp_path / "pipe", text) as path:
        file = TreeFile(path, inventory=LabelInventory(), source="x")
        assert file.scored
        assert [t.scores[0, 0] for _, t in matched(file, data)] == [0, 1, 2]


def test_files_of_single_trees_may_be_pipes(tmp_path: Path) -> None:
    data = [sentence(name) for name in "abc"]
    write_conllu(tmp_path / "trees", data)
    with pipe(tmp_path / "pipe", (tmp_path / "trees").read_bytes()) as path:
        file = TreeFile(path, inventory=LabelInventory(), source="x")
        assert not file.scored
        assert [len(trees) for _, trees in matched(file, data)] == [1, 1, 1]


def test_standard_input_is_read_by_its_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [sentence(name) for name in "abc"]
    path = file_of(tmp_path / "lists", *data)
    for given, found in ((data, [0, 1, 2]), ([sentence("c"), some("x", sent_id="z")], None)):
        with path.open(encoding="utf-8") as file:
            monkeypatch.setattr("sys.stdin", file)
            if found is not None:
                assert scores(Path("-"), given) == found
                continue
            with pytest.raises(
                CandidateError, match=r"^standard input: no candidates for sentence z"
            ):
                scores(Path("-"), given)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(TreebankError, match=r"^standard input: it is closed; give a file"):
        scores(Path("-"), data)


@pytest.mark.parametrize("form", ["compact", "expanded"])
@pytest.mark.parametrize("kind", ["crlf", "bom", "blank lines", "no end"])
def test_kbest_files_from_other_systems_are_read_alike(
    tmp_path: Path, form: Form, kind: str
) -> None:
    data = [sentence(name) for name in "abc"]
    text = file_of(tmp_path / "lists", *data, form=form).read_bytes()
    path = tmp_path / "other"
    path.write_bytes(
        {
            "crlf": text.replace(b"\n", b"\r\n"),
            "bom": b"\xef\xbb\xbf" + text,
            "blank lines": b"\xef\xbb\xbf\n  \n\n" + text.replace(b"\n\n", b"\n\n \n\n"),
            "no end": text.rstrip(b"\n"),
        }[kind]
    )
    assert TreesFile(path).form == form
    assert opened_once(path, form) == [0, 1, 2]
    assert scores(path, data[::-1]) == [2, 1, 0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "^{}: the file holds no sentence; give"),
        (b"\xef\xbb\xbf\n \r\n", "^{}: the file holds no sentence; give"),
        (gzip.compress(b"# rank = 1\n", mtime=0), r"^{}: compressed \(gzip\); decompress it first"),
        (b"# rank = 1\n\n", "^{}:1: comments without a sentence"),
        (b"# rank = 1\n1\tx\n", "^{}:2: 2 columns instead of 10"),
        (b"# tk_candidate_1 = \xff\n1\tx\n", "^{}:1: not UTF-8"),
    ],
)
def test_files_that_hold_no_lists_are_refused_by_name(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "lists"
    path.write_bytes(data)
    for read in (
        lambda: scores(path, [sentence("a")]),
        lambda: TreeFile(path, inventory=LabelInventory(), source="x").take(sentence("a")),
    ):
        with pytest.raises(UserError, match=message.format(path)):
            read()
    with pytest.raises(TreebankError, match=r"^/nowhere: cannot read it: No such file"):
        TreesFile("/nowhere")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_is_closed_when_it_is_let_go(tmp_path: Path) -> None:
    path = file_of(tmp_path / "lists", *map(sentence, "abc"))
    before = open_files()
    file = TreesFile(path)  # looked at only
    lists = read_kbest(path, inventory=LabelInventory())
    next(lists)
    assert open_files() == before + 2
    del file, lists
    assert open_files() == before


def test_a_file_is_read_once(tmp_path: Path) -> None:
    file = TreesFile(file_of(tmp_path / "lists", sentence("a")))
    assert len(list(file.sentences())) == 1
    with pytest.raises(ValueError, match="were read before"):
        file.sentences()


@pytest.mark.parametrize("space", [" ", "\t", "\u00a0", "\u2028", "\u3000", "\x1f"])
def test_matching_plain_words_have_single_spaces(space: str) -> None:
    assert plain_words(("a", "b")) == ("a", "b")
    assert plain_words((f"a{space}{space}b", "c")) == ("a b", "c")
    assert plain_words((f"{space}a", "c")) == plain_words(("a", f"c{space}")) == ("a", "c")
    assert plain_words(("a", f"{space}c")) == plain_words((f"a{space}", "c")) == ("a", "c")
    assert plain_words(("a", space, "c")) == plain_words(("a", "", "c")) == ("a", "_", "c")
    assert plain_words((space,)) == plain_words(("",)) == ("_",)
