"""What is read for parsing, whatever its trees; and files that are no plain text."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import PLAIN
from test_treebank import BROKEN, EXPECTED

from tk_spacy.treebank.conllu import TreebankError, load_treebank


@pytest.mark.parametrize(
    "name", sorted(name for name, _, reason in EXPECTED if "HEAD" in reason.partition(";")[0])
)
def test_treebank_takes_any_heads_if_asked(name: str) -> None:
    broken = load_treebank(BROKEN / name, trees="any")
    assert len(broken) > 1
    (bad,) = [sentence for sentence in broken if not sentence.has_tree]
    assert set(bad.heads.tolist()) == {-1}
    # All but HEAD and DEPREL is there, and is written back.
    mended = [s.with_tree([0] + [1] * (len(s) - 1), s.deprels).to_conllu() for s in broken]
    lines = [line.split("\t") for line in "".join(mended).splitlines()]
    before = [line.split("\t") for line in (BROKEN / name).read_text().splitlines()]
    assert [row[:6] + row[7:] for row in lines] == [row[:6] + row[7:] for row in before]


def test_treebank_takes_empty_heads_and_labels_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "in.conllu"
    path.write_text(PLAIN.replace("\t2\tnsubj", "\t\t").replace("punct\t_", "\t_"))
    (sentence,) = load_treebank(path, trees="any")
    assert sentence.heads.tolist() == [-1, -1, -1]
    assert sentence.deprels == ("_", "root", "_")
    with pytest.raises(TreebankError, match=r"in.conllu:2: HEAD is empty"):
        load_treebank(path, trees="optional")
    path.write_text(PLAIN.replace("Owls\towl", "Owls\t"))
    with pytest.raises(TreebankError, match=r"in.conllu:2: LEMMA is empty"):
        load_treebank(path, trees="any")


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("gzip", gzip.compress),
        ("bzip2", bz2.compress),
        ("xz", lzma.compress),
        ("zip", lambda content: b"PK\x03\x04" + content),
        ("zstd", lambda content: b"\x28\xb5\x2f\xfd" + content),
    ],
)
def test_treebank_compressed_files_are_named(
    tmp_path: Path, name: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "in.conllu.z"
    path.write_bytes(compress(PLAIN.encode()))
    with pytest.raises(TreebankError, match=rf"in.conllu.z: compressed \({name}\); decompress it"):
        load_treebank(path)
