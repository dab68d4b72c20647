"""Plain text and words one a line as files, and what a file is taken for."""

from __future__ import annotations

import codecs
import threading
from itertools import islice
from pathlib import Path

import pytest

from tk_spacy.errors import TreebankError, UserError
from tk_spacy.treebank import text_files
from tk_spacy.treebank.text_files import looks_like_conllu, read_lines, read_text, read_vertical
from tk_spacy.utils.validation import check_choice
from tk_spacy.workflows.files.inputs import INPUT_FORMS, InputReader, form_of


def file(tmp_path: Path, content: bytes, name: str = "in.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 16])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (b"a\nb", "a\nb"),
        ("\ufeffça\r\nva\r\rbien\n".encode(), "ça\nva\n\nbien\n"),
        ("a\u2028b 😀\0 שלום\r".encode(), "a\u2028b 😀\0 שלום\n"),
        ("a\ufeffb".encode(), "a\ufeffb"),
    ],
)
def test_text_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, text: str, block: int
) -> None:
    monkeypatch.setattr(text_files, "BLOCK", block)
    path = file(tmp_path, content)
    assert "".join(read_text(path)) == text
    assert all(read_text(path))
    lines = text.split("\n")
    assert list(read_lines(path)) == (lines if lines[-1] else lines[:-1])


@pytest.mark.parametrize("block", [1, 4, 1 << 16])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"good\nca\xe7a va\n", ":2: not UTF-8 text (byte 0xE7: invalid continuation byte)"),
        (b"\n\n\ngood\n\xff", ":5: not UTF-8 text (byte 0xFF: invalid start byte)"),
        ("good\nça"[:-1].encode() + b"\xc3", ":2: not UTF-8 text (byte 0xC3: unexpected end"),
        ("ça va".encode("utf-16"), ":1: not UTF-8 text (byte 0xFF"),
    ],
)
def test_text_that_is_not_utf8_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, says: str, block: int
) -> None:
    monkeypatch.setattr(text_files, "BLOCK", block)
    path = file(tmp_path, content)
    with pytest.raises(TreebankError) as error:
        list(read_text(path))
    assert f"{path}{says}" in str(error.value)


def test_text_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match=r"none\.txt: cannot read it: No such file"):
        list(read_text(tmp_path / "none.txt"))
    with pytest.raises(TreebankError, match="cannot read it: Is a directory"):
        list(read_text(tmp_path))
    with pytest.raises(TreebankError, match="compressed \\(gzip\\)"):
        list(read_text(file(tmp_path, b"\x1f\x8b\x08")))


def test_text_of_a_pipe_is_read_once(tmp_path: Path) -> None:
    import os

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("Ça va.\n\nBien."))
    writer.start()
    assert "".join(read_text(pipe)) == "Ça va.\n\nBien."
    writer.join()


@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n"])
def test_vertical_words_and_blank_lines(tmp_path: Path, end: str) -> None:
    text = f"\n\nNew York\r\n #is \n\n\n\u200b\nbig{end}"
    sentences = list(read_vertical(file(tmp_path, text.encode())))
    assert [s.forms for s in sentences] == [("New York", "#is"), ("\u200b", "big")]
    assert [s.sent_id for s in sentences] == ["1", "2"]
    assert sentences[0].comments == ("# sent_id = 1", "# text = New York #is")
    assert not sentences[0].has_tree


def test_vertical_refuses_columns(tmp_path: Path) -> None:
    path = file(tmp_path, b"one\n\ntwo\tNOUN\n")
    with pytest.raises(TreebankError, match=r"in\.txt:3: a tab in a file with one word a line"):
        list(read_vertical(path))


def test_vertical_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("a\nb\n\n" * 50_000, encoding="utf-8")
    sentences = read_vertical(path)
    assert len(list(islice(sentences, 3))) == 3
    path.unlink()  # open still: no more than it has read is needed
    assert sum(1 for _ in sentences) == 49_997


# What a file is

WORD = "1\tOwls\towl\tNOUN\t_\t_\t2\tnsubj\t_\t_\n"


@pytest.mark.parametrize(
    ("start", "found"),
    [
        (WORD, True),
        ("# sent_id = 1\n", True),
        ("#newdoc id = x\n" + WORD, True),
        ("\ufeff\n" + WORD, True),
        ("1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n", True),
        (WORD.replace("\t", " "), True),
        ("1\ttwo columns\n", True),
        ("# my notes\nOwls sleep.\n", False),
        ("Owls sleep.\n", False),
        ("1 owl sleeps.\n", False),
        ("1\n2\n3\n", False),
        ("12.5 degrees and more are too many, as it seems\n", False),
        ("1 of the things that are 2 be done today\n", True),
        ("1 of the things that are to be done today\n", False),
        ("\n \n", None),
        ("", None),
        ("# only\n# notes\n", None),
    ],
)
def test_form_of_a_file_is_told_by_its_start(start: str, found: bool | None) -> None:
    assert looks_like_conllu(start.encode()) is found


def test_form_of_a_file_by_name_and_start(tmp_path: Path) -> None:
    text, words = b"Owls sleep.\n", WORD.encode()
    for name, content, form in (
        ("a.txt", text, "text"), ("a.txt", words, "conllu"), ("a.txt", b"", "text"),
        ("a.TXT", codecs.BOM_UTF8 + text, "text"), ("a.conllu", text, "conllu"),
        ("a.conll", b"", "conllu"), ("a", text, "text"), ("a", b"", "conllu"),
        ("a", words, "conllu"), ("a.md", b"\xff\xfe", "text"),
    ):  # fmt: skip
        path = file(tmp_path, content, name)
        assert form_of(path, "auto") == form, (name, content)
        assert form_of(path, "vertical") == "vertical"
        path.unlink()
    assert form_of(tmp_path / "none", "auto") == "conllu"
    with pytest.raises(UserError, match="input form is 'xml'; choose from auto, text, vertical"):
        check_choice("input form", "xml", INPUT_FORMS)


def test_form_text_without_a_tokenizer_names_the_cure(tmp_path: Path) -> None:
    path = file(tmp_path, b"Owls sleep.\n")
    for form, what in (("auto", "no CoNLL-U, so taken for text"), ("text", "text")):
        with pytest.raises(UserError) as error:
            InputReader(form, Path("my-model"), lambda: None).sentences(path)
        assert str(error.value) == (
            f"{path}: {what}, but the model my-model has no tokenizer; train one that has (with "
            "own tags, from a treebank with SpaceAfter=No), give the words one a line (input form "
            "vertical), or CoNLL-U (conllu)"
        )
    vertical = InputReader("vertical", Path("my-model"), lambda: None)
    assert next(vertical.sentences(path)).forms == ("Owls sleep.",)
    for content in (b"", b" \n\r\n\t"):
        with pytest.raises(TreebankError, match=r"in\.txt: the file holds no word; give"):
            list(vertical.sentences(file(tmp_path, content)))
