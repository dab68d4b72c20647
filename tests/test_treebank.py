"""Reading and writing CoNLL-U: lossless, strict, streaming."""

import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from samples import NO_TREE, ODD, PLAIN

from tk_spacy.errors import UserError
from tk_spacy.treebank.conllu import (
    Sentence,
    TreebankError,
    check_tree,
    load_treebank,
    parse_feats,
    read_conllu,
    write_conllu,
)

BROKEN = Path(__file__).parent / "broken"
EXPECTED = [line.split("\t") for line in (BROKEN / "expected.tsv").read_text().splitlines()[1:]]

Write = Callable[[str | bytes], Path]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(text: str | bytes) -> Path:
        path = tmp_path / "in.conllu"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def rewritten(path: Path, **options: object) -> bytes:
    out = path.with_name("out.conllu")
    write_conllu(out, read_conllu(path, **options))  # type: ignore[arg-type]
    return out.read_bytes()


# --- what is read


def test_treebank_columns_and_heads(file: Write) -> None:
    first, second = load_treebank(file(ODD + PLAIN))
    assert len(first) == 6
    assert first.sent_id == "odd-1"
    assert first.forms == ("Vamos", "a", "el", "mar\u2028", "10 000", "veces")
    assert first.heads.tolist() == [0, 4, 4, 1, 6, 1]
    assert first.heads.dtype == np.int32
    assert not first.heads.flags.writeable
    assert first.comments[3] == "#no equals sign"
    assert second.lemmas == ("owl", "sleep", ".")
    assert second.upos == ("NOUN", "VERB", "PUNCT")
    assert second.xpos == ("NNS", "VBP", ".")
    assert second.feats == ("Number=Plur", "_", "_")
    assert second.deprels == ("nsubj", "root", "punct")
    assert second.misc == ("_", "SpaceAfter=No", "_")
    assert second.has_tree
    assert (first.line, second.line) == (1, 16)
    assert second.path.endswith("in.conllu")


@pytest.mark.parametrize(
    "text",
    [
        ODD + PLAIN,
        (ODD + PLAIN).replace("\n", "\r\n"),
        PLAIN + PLAIN.replace("\n", "\r\n") + PLAIN,
        PLAIN.replace("\n", "\r\n", 2),
        PLAIN[:-1],
        PLAIN[:-2],
        (PLAIN + PLAIN)[:-1].replace("\n", "\r\n"),
        PLAIN[:-2].replace("\n", "\r\n"),
        "\n\n" + PLAIN + "\n \n\r\n" + ODD + "\n\n\n",
        "\ufeff" + PLAIN,
        "\ufeff\n" + PLAIN + ODD,
        "1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_",
        "1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\r\n",
    ],
)
def test_treebank_rewrites_every_byte(file: Write, text: str) -> None:
    path = file(text)
    assert rewritten(path) == text.encode()
    assert "".join(s.to_conllu() for s in read_conllu(path)) == text


def test_treebank_files_put_together_stay_apart(tmp_path: Path, file: Write) -> None:
    cut = load_treebank(file("\ufeff" + PLAIN[:-2]))[0]
    windows = load_treebank(file(PLAIN[:-1].replace("\n", "\r\n")))[0]
    out = tmp_path / "out.conllu"
    assert write_conllu(out, [cut, cut, windows, cut]) == 4
    crlf = PLAIN.replace("\n", "\r\n")
    assert out.read_bytes().decode() == "\ufeff" + PLAIN + PLAIN + crlf + PLAIN[:-2]
    assert len(load_treebank(out)) == 4


def test_treebank_accepts_without_trees_only_if_asked(file: Write) -> None:
    path = file(NO_TREE)
    (sentence,) = load_treebank(path, trees="optional")
    assert sentence.heads.tolist() == [-1, -1, -1]
    assert not sentence.has_tree
    assert rewritten(path, trees="optional") == NO_TREE.encode()
    with pytest.raises(TreebankError, match=r"in.conllu:2: word 1 \(Owls\) has no HEAD"):
        load_treebank(path)


def test_treebank_optional_trees_are_still_checked(file: Write) -> None:
    path = file(NO_TREE.replace("VBP\t_\t_", "VBP\t_\t9"))
    with pytest.raises(TreebankError, match=r"in.conllu:3: HEAD of word 2 is 9"):
        load_treebank(path, trees="optional")
    path = file(PLAIN.replace("\t2\tpunct", "\t3\tpunct"))
    with pytest.raises(TreebankError, match=r"in.conllu:4: word 3 is its own HEAD"):
        load_treebank(path, trees="optional")


def test_treebank_several_roots_only_if_asked(file: Write) -> None:
    path = file(PLAIN.replace("\t2\tpunct", "\t0\troot"))
    (sentence,) = load_treebank(path, single_root=False)
    assert sentence.heads.tolist() == [2, 0, 0]
    with pytest.raises(TreebankError, match=r"in.conllu:4: words 2 and 3 have HEAD 0"):
        load_treebank(path)


def test_treebank_accepts_other_root_labels(file: Write) -> None:
    (sentence,) = load_treebank(file(PLAIN.replace("root", "ROOT")))
    assert sentence.deprels[1] == "ROOT"


@pytest.mark.parametrize(("name", "line", "reason"), EXPECTED, ids=[row[0] for row in EXPECTED])
def test_treebank_broken_file(name: str, line: str, reason: str) -> None:
    with pytest.raises(TreebankError) as caught:
        load_treebank(BROKEN / name)
    error = caught.value
    assert (error.line, error.reason) == (int(line), reason)
    place = f"{BROKEN / name}:{line}" if line != "0" else f"{BROKEN / name}"
    assert str(error) == f"{place}: {reason}"
    assert isinstance(error, UserError)


def test_treebank_every_broken_file_is_expected() -> None:
    assert sorted(path.name for path in BROKEN.glob("*.conllu")) == [row[0] for row in EXPECTED]


def test_treebank_yields_what_stands_before_the_fault() -> None:
    sentences = read_conllu(BROKEN / "cycle.conllu")
    assert next(sentences).sent_id == "first"
    with pytest.raises(TreebankError):
        next(sentences)


def test_treebank_absurd_numbers(file: Write) -> None:
    for old in ("\t0\troot", "2\tsleep"):
        path = file(PLAIN.replace(old, old.replace(old.strip()[0], "1" * 5000, 1)))
        with pytest.raises(TreebankError, match=r"in.conllu:3: (HEAD|ID)"):
            load_treebank(path)


def test_treebank_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match=r"none.conllu: cannot read it: No such file") as caught:
        load_treebank(tmp_path / "none.conllu")
    assert caught.value.line == 0
    with pytest.raises(TreebankError, match="cannot read it: Is a directory"):
        list(read_conllu(tmp_path))


def test_treebank_unknown_option_is_the_programs_fault(file: Write) -> None:
    with pytest.raises(ValueError, match="'required', 'optional' or 'any', got 'maybe'"):
        read_conllu(file(PLAIN), trees="maybe")  # type: ignore[arg-type]


# --- what is written


def test_treebank_write_replaces_head_and_deprel_only(tmp_path: Path, file: Write) -> None:
    first, second = load_treebank(file(ODD + PLAIN))
    changed = first.with_tree([4, 4, 4, 0, 6, 4], ["advcl", "case", "det", "root", "x", "y:z"])
    out = tmp_path / "out.conllu"
    write_conllu(out, [changed, second.with_tree(second.heads, second.deprels)])
    before = (ODD + PLAIN).split("\n")
    after = out.read_bytes().decode().split("\n")
    differing = []
    for old, new in zip(before, after, strict=True):
        if old != new:
            o, n = old.split("\t"), new.split("\t")
            assert o[:6] + o[8:] == n[:6] + n[8:]
            differing.append(n[0])
    assert differing == ["1", "4", "5", "6"]
    assert load_treebank(out)[0].heads.tolist() == [4, 4, 4, 0, 6, 4]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "mixed"])
def test_treebank_with_comments(file: Write, ends: str) -> None:
    text = PLAIN.replace("\n", "\r\n", 2) if ends == "mixed" else PLAIN.replace("\n", ends)
    (sentence,) = load_treebank(file(text))
    first, rest = text.split("\n", 1)
    eol = "\r\n" if first.endswith("\r") else "\n"
    new = sentence.with_comments(["# sent_id = new", "# more"])
    assert new.sent_id == "new"
    assert new.to_conllu() == f"# sent_id = new{eol}# more{eol}{rest}"
    assert new.with_comments([]).to_conllu() == rest
    assert new.with_comments([]).sent_id is None
    with pytest.raises(ValueError, match="a comment is one line"):
        sentence.with_comments(["no hash"])


def test_treebank_with_tree_refuses_what_is_no_tree(file: Write) -> None:
    (sentence,) = load_treebank(file(PLAIN))
    with pytest.raises(ValueError, match="cycle: HEADs lead 1 -> 3 -> 1"):
        sentence.with_tree([3, 0, 1], ["a", "b", "c"])
    with pytest.raises(ValueError, match="deprels has 2 values for 3 words"):
        sentence.with_tree([2, 0, 2], ["a", "b"])
    with pytest.raises(ValueError, match="deprels holds ''"):
        sentence.with_tree([2, 0, 2], ["a", "", "c"])
    with pytest.raises(ValueError, match="heads must be 3 integers, got float64"):
        sentence.with_tree([2.0, 0.0, 2.0], ["a", "b", "c"])
    assert sentence.with_tree([0, 0, 2], "abc", single_root=False).heads.tolist() == [0, 0, 2]


def test_treebank_writing_is_atomic(tmp_path: Path, file: Write) -> None:
    (sentence,) = load_treebank(file(PLAIN))
    out = tmp_path / "out.conllu"
    out.write_text("old")

    def crash() -> Iterator[Sentence]:
        yield sentence
        assert out.read_text() == "old"
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_conllu(out, crash())
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.conllu", "out.conllu"]
    assert write_conllu(out, []) == 0
    assert out.read_text() == ""


def test_treebank_can_write_over_its_input(file: Write) -> None:
    path = file(ODD + PLAIN)
    assert write_conllu(path, read_conllu(path)) == 2
    assert path.read_bytes() == (ODD + PLAIN).encode()


def test_treebank_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match="cannot write it: No such file or directory; give"):
        write_conllu(tmp_path / "none" / "out.conllu", [])
    with pytest.raises(TreebankError, match="cannot write it: Is a directory"):
        write_conllu(tmp_path, [])
    device = Path("/dev/null")
    if device.exists():
        write_conllu(device, [Sentence.from_columns(forms=["a"])])
        assert not device.is_file()


# --- sentences


def test_treebank_from_columns() -> None:
    sentence = Sentence.from_columns(
        forms=["Owls", "sleep"], upos=["NOUN", "VERB"], heads=[2, 0], deprels=["nsubj", "root"],
        sent_id="made-1",
    )  # fmt: skip
    assert sentence.sent_id == "made-1"
    assert sentence.to_conllu() == (
        "# sent_id = made-1\n1\tOwls\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n"
        "2\tsleep\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    )
    bare = Sentence.from_columns(forms=["a"])
    assert bare.heads.tolist() == [-1]
    assert bare.to_conllu() == "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    for columns, message in (
        ({"forms": []}, "at least one word"),
        ({"forms": ["a"], "upos": ["X", "Y"]}, "upos has 2 values for 1 words"),
        ({"forms": ["a\tb"]}, "forms holds"),
        ({"forms": ["a", "b"], "heads": [0, 2]}, "word 2 is its own HEAD"),
        ({"forms": ["a"], "heads": [[0]]}, r"heads must be 1 integers, got int64 of shape \(1, 1"),
        ({"forms": ["a", "b"], "heads": [-1, 3]}, r"heads must lie in -1..2, got \[-1, 3\]"),
        ({"forms": ["a"], "sent_id": "x\ny"}, "a comment is one line"),
    ):
        with pytest.raises(ValueError, match=message):
            Sentence.from_columns(**columns)  # type: ignore[arg-type]


def test_treebank_sentence_survives_pickle(file: Write) -> None:
    for sentence in load_treebank(file(ODD + PLAIN)):
        copy = pickle.loads(pickle.dumps(sentence))
        assert copy.to_conllu() == sentence.to_conllu()
        assert copy.sent_id == sentence.sent_id
        assert not copy.heads.flags.writeable
        assert copy != sentence  # equality is identity


def test_treebank_errors_survive_pickle() -> None:
    error = pickle.loads(pickle.dumps(TreebankError("a.conllu", 3, "why; cure")))
    assert (error.path, error.line, error.reason) == ("a.conllu", 3, "why; cure")


def test_treebank_equal_strings_are_kept_once(file: Write) -> None:
    first, second = load_treebank(file(PLAIN + PLAIN))
    assert first.feats[0] is second.feats[0]
    assert first.forms[0] is second.forms[0]
    assert first.layout is second.layout


def test_treebank_reading_and_writing_stream(tmp_path: Path) -> None:
    def peak(copies: int) -> int:
        path = tmp_path / f"{copies}.conllu"
        path.write_text("".join(PLAIN.replace("Owls", f"Owl{i}") for i in range(copies)))
        tracemalloc.start()
        assert write_conllu(tmp_path / "out.conllu", read_conllu(path)) == copies
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(10)
    assert peak(4000) < peak(400) + 4000 * 250  # shared forms only; whole sentences take more


def test_parse_feats() -> None:
    assert parse_feats("_") == {}
    assert parse_feats("Case=Nom|Number[psor]=Sing") == {"Case": "Nom", "Number[psor]": "Sing"}
    assert parse_feats("Case=Acc,Dat") == {"Case": "Acc,Dat"}
    assert parse_feats("Case=Nom|Case=Acc|Odd|X=a=b|Y=_") == {
        "Case": "Nom,Acc", "Odd": "", "X": "a=b", "Y": "_",
    }  # fmt: skip


# --- trees


def reference_is_tree(heads: tuple[int, ...]) -> bool:
    """Every word reaches 0 within n steps, and one word has HEAD 0."""
    for word in range(1, len(heads) + 1):
        at = word
        for _ in heads:
            at = heads[at - 1] if at else 0
        if at:
            return False
    return heads.count(0) == 1


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_check_tree_equals_enumeration(n: int) -> None:
    for heads in product(range(n + 1), repeat=n):
        assert (check_tree(heads) is None) == reference_is_tree(heads), heads
        assert (check_tree(np.array(heads), single_root=False) is None) == reference_is_tree(
            tuple(heads) if heads.count(0) == 1 else _joined(heads)
        ), heads


def _joined(heads: tuple[int, ...]) -> tuple[int, ...]:
    """Attach all roots but the first to it."""
    first = heads.index(0) + 1 if 0 in heads else 0
    return tuple(first if h == 0 and i != first else h for i, h in enumerate(heads, 1))


def test_check_tree_reasons() -> None:
    assert check_tree([2, 0, 2]) is None
    assert check_tree([]) == "there is no word; a tree needs at least one"
    assert check_tree([0, 7]) == (
        "HEAD of word 2 is 7, but must be 0 (the root) or a word from 1 to 2"
    )
    assert "words 1, 2, 3, 4, 5 and 2 more have HEAD 0" in str(check_tree([0] * 7))
    assert "HEADs lead 2 -> 4 -> 3 -> 2" in str(check_tree([0, 4, 2, 3]))
    assert "no word has HEAD 0" in str(check_tree([2, 1]))
