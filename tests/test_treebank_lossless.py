"""Round trips byte for byte: random text, random damage, the real treebanks."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import ODD, PLAIN

from tk_spacy.treebank import reader as reader_module
from tk_spacy.treebank.conllu import TreebankError, load_treebank, read_conllu, write_conllu

# --- losslessness, at random

CELL = st.text(st.characters(exclude_characters="\t\n\r", codec="utf-8"), min_size=1, max_size=5)
NAME = st.text(st.characters(exclude_characters="\t\n\r|=", codec="utf-8"), min_size=1, max_size=3)
FEATS = st.lists(st.tuples(NAME, NAME).map("=".join), max_size=3).map(
    lambda items: "|".join(items) or "_"
)
EOL = st.sampled_from(["\n", "\r\n"])


@st.composite
def conllu_text(draw: st.DrawFn) -> str:
    """Valid CoNLL-U of one to three sentences with every oddity that is accepted."""
    text = draw(st.sampled_from(["", "\ufeff", "\n", "\ufeff\r\n"]))
    for _ in range(draw(st.integers(1, 3))):
        lines = ["#" + draw(CELL) for _ in range(draw(st.integers(0, 2)))]
        n = draw(st.integers(1, 4))
        covered = 0
        for word in range(1, n + 1):
            last = draw(st.integers(word, n))
            if word > covered and draw(st.booleans()):
                lines.append("\t".join([f"{word}-{last}", *(draw(CELL) for _ in range(9))]))
                covered = last
            head = draw(st.integers(0, word - 1)) if word > 1 else 0
            head = head or int(word > 1)
            cells = [*(draw(CELL) for _ in range(4)), draw(FEATS), *(draw(CELL) for _ in range(3))]
            lines.append("\t".join([str(word), *cells[:5], str(head), *cells[5:]]))
            for empty in range(draw(st.integers(0, 2))):
                cells = [draw(CELL) for _ in range(9)]
                lines.append("\t".join([f"{word}.{empty + 1}", *cells]))
        text += "".join(line + draw(EOL) for line in lines) + draw(EOL)
        text += draw(st.sampled_from(["", "", "\n", " \n", "\r\n"]))
    return text[: -draw(st.integers(0, 1)) or None]


@settings(max_examples=150, deadline=None)
@given(text=conllu_text())
def test_treebank_round_trip_of_random_text(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.conllu"
    path.write_bytes(text.encode())
    try:
        sentences = load_treebank(path)
    except TreebankError:
        if text.endswith("\r"):  # cutting the last byte left a lone CR, which is refused
            return
        raise
    assert "".join(s.to_conllu() for s in sentences) == text
    again = [s.with_tree(s.heads, s.deprels).with_comments(s.comments) for s in sentences]
    assert "".join(s.to_conllu() for s in again) == text
    out = path.with_name("out.conllu")
    write_conllu(out, read_conllu(path))
    assert out.read_bytes() == text.encode()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_treebank_random_damage_is_refused_or_kept(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """One byte changed, put in or taken out: a TreebankError, or the same bytes back."""
    good = (ODD + PLAIN).encode()
    at = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.sampled_from([b"\t", b"\n", b"\r", b"#", b"0", b"9", b"-", b".", b"\xff"]))
    keep = data.draw(st.integers(0, 1))
    bad = good[:at] + data.draw(st.sampled_from([byte, b""])) + good[at + keep :]
    path = tmp_path_factory.getbasetemp() / "damaged.conllu"
    path.write_bytes(bad)
    try:
        sentences = load_treebank(path)
    except TreebankError as error:
        sentences = None
        line = error.line
    if sentences is None:
        assert 0 < line <= bad.count(b"\n") + 1
    else:
        assert "".join(s.to_conllu() for s in sentences).encode() == bad


# --- real treebanks


@pytest.mark.shared
def test_treebank_real_files_round_trip(shared_dir: Path, tmp_path: Path) -> None:
    files = sorted(shared_dir.glob("treebanks/*/*.conllu"))
    assert len({path.parent for path in files}) >= 6
    for path in files:
        out = tmp_path / "out.conllu"
        assert write_conllu(out, read_conllu(path)) > 0
        assert out.read_bytes() == path.read_bytes(), path
        for sentence in read_conllu(path):
            assert sentence.has_tree
            assert sentence.sent_id


def test_treebank_reader_shares_a_bounded_number_of_strings_and_layouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "_POOL_SIZE", 20)
    monkeypatch.setattr(reader_module, "_LAYOUTS", 3)
    path = tmp_path / "in.conllu"
    rows = [f"1-2\tab{i}" + "\t_" * 8 for i in range(30)]
    words = [f"{j}\tw{{i}}{j}\t_\t_\t_\t_\t{j - 1}\tx\t_\t_" for j in (1, 2)]
    text = "".join("\n".join([row, *words, "", ""]).format(i=i) for i, row in enumerate(rows))
    path.write_text(text, encoding="utf-8")
    reader = reader_module.Reader(str(path), True, True)
    found = ""
    for sentence in reader.sentences():
        found += sentence.to_conllu()
        assert len(reader.pool) <= 20 + 20
        assert len(reader.layouts) <= 4
    assert found == text
