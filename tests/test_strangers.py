"""Models of strangers: what they claim is held against their bytes; nothing leads out of them."""

from __future__ import annotations

import ast
import io
import json
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import biaffine_parsers
import numpy as np
import pipelines
import pytest
import srsly
import test_transition
import udpipe_parsers
from damages import Files, packed
from test_damaged_models import stored

from tk_spacy.errors import ModelError, UserError
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.spacy_transition.loading import load_pipeline
from tk_spacy.parsers.udpipe.stored import check_packed_parts
from tk_spacy.reranker.model import Reranker
from tk_spacy.utils.claimed_sizes import (
    CELLS_EACH,
    MOST_CELLS,
    ClaimError,
    check_msgpack,
    check_npy,
    check_npz,
    check_table,
    shown_bytes,
)
from tk_spacy.utils.model_bounds import check_stored_config, leads_out
from tk_spacy.utils.model_dirs import SCHEMA, SUPPORT, WEIGHTS
from tk_spacy.utils.serialization import META, dense, from_msgpack, from_npz, sparse, to_npz
from tk_spacy.workflows.train.config import train_options

ROOT = Path(__file__).parents[1]


def npz(
    *arrays: tuple[str, str, tuple[int, ...], bytes], method: int = zipfile.ZIP_STORED
) -> bytes:
    """An .npz file of arrays with headers of one's choice: name, kind, shape, values."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, kind, shape, values in arrays:
            with archive.open(f"{name}.npy", "w") as file:
                header = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                file.write(values)
    return out.getvalue()


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((3 << 30,), "a claims 12.9 GB, too much for 8 bytes"),
        ((2**40, 2**40), "TB, too much for 8 bytes"),
        ((3,), "a claims 12 bytes, too much for 8 bytes"),
        ((-1,), "a claims -4 bytes"),
        ((0, 2**40), "a has an axis of 1,099,511,627,776, but no such values"),
    ],
)
def test_arrays_claim_what_is_there(shape: tuple[int, ...], says: str) -> None:
    content = npz(("a", "<f4", shape, bytes(8)))
    with pytest.raises(ClaimError, match=says):
        check_npz(content)
    with pytest.raises(ValueError, match=says):
        from_npz(content)
    check_npz(npz(("a", "<f4", (2,), bytes(8)), ("b", "<f4", (0, 7), b"")))


def test_what_is_deflated_is_bounded() -> None:
    # All that deflate can do, and a header that claims more than it can.
    zeros = npz(("a", "|u1", (1 << 20,), bytes(1 << 20)), method=zipfile.ZIP_DEFLATED)
    assert len(zeros) < 2000
    assert from_npz(zeros)["a"].shape == (1 << 20,)
    short = npz(("a", "|u1", (50,), bytes(50)), method=zipfile.ZIP_DEFLATED)
    place = short.index(b"PK\x01\x02")
    claims = short[: place + 24] + struct.pack("<I", 3_000_000_000) + short[place + 28 :]
    with pytest.raises(ClaimError, match="it claims 3 GB, too much for"):
        check_npz(claims)
    claims = short[: place + 24] + struct.pack("<I", 900_000_000) + short[place + 28 :]
    with pytest.raises(ClaimError, match="a claims 900 MB, too much for"):
        check_npz(claims)
    with pytest.raises(ClaimError, match="compressed in a way"):
        check_npz(npz(("a", "|u1", (9,), bytes(9)), method=zipfile.ZIP_LZMA))


def test_members_do_not_share_their_bytes() -> None:
    # Each name stands for the same bytes: with many names a small file would hold terabytes.
    content = npz(("a", "|u1", (5000,), bytes(5000)))
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry = content[start:end]
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 9, 9, 9 * len(entry), start, 0)
    with pytest.raises(ValueError, match="overlap"):
        check_npz(content[:start] + 9 * entry + tail)


def test_no_pickle_is_read() -> None:
    out = io.BytesIO()
    np.savez(out, a=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ClaimError, match="a is no array of numbers"):
        from_npz(out.getvalue())
    single = io.BytesIO()
    np.save(single, np.array([None], dtype=object))
    with pytest.raises(ClaimError, match="no array of numbers"):
        check_npy(single.getvalue())
    # Nor can a later change read one unnoticed: only own processes exchange pickles, and those of
    # a cluster, which are no files.
    talks = {ROOT / "tk_spacy/parallel/plain_data.py", *(ROOT / "tk_spacy/cluster").glob("*.py")}
    for path in sorted({*(ROOT / "tk_spacy").rglob("*.py")} - talks):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
                found = {name.split(".")[0] for name in names}
                assert not found & {"pickle", "dill", "joblib", "shelve", "marshal"}, path
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.load":
                given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                assert given.get("allow_pickle") == "False", path


@pytest.mark.parametrize(
    "content",
    [
        b"\xdd\x7f\xff\xff\xff\x01",
        b"\xdf\x7f\xff\xff\xff\x01\x01",
        b"\xc6\x7f\xff\xff\xffab",
        b"\xdb\x7f\xff\xff\xffab",
        b"\xc9\x7f\xff\xff\xff\x01ab",
        # Each list is as long as the file, in one another: 500 times 8 bytes for each byte.
        500 * b"\xdd\x00\x04\x00\x00" + bytes(1 << 18),
        b"",
    ],
)
def test_msgpack_claims_what_is_there(content: bytes) -> None:
    with pytest.raises(ValueError, match="no whole msgpack file"):
        check_msgpack(content)
    with pytest.raises(ValueError, match="no whole msgpack file"):
        from_msgpack(content)
    assert from_msgpack(srsly.msgpack_dumps({"a": [1, "b"]})) == {"a": [1, "b"]}


def test_tables_are_not_far_larger_than_what_is_stored() -> None:
    check_table("weights", MOST_CELLS, 0)
    check_table("weights", CELLS_EACH << 15, 1 << 15)
    with pytest.raises(ClaimError, match="weights are said to be 134,217,728, of which 3"):
        check_table("weights", 1 << 27, 3)
    arrays = {"ids": np.array([2], dtype=np.uint32), "values": np.array([0.1], dtype=np.float32)}
    with pytest.raises(ClaimError, match="1,073,741,824, of which 1 are stored"):
        dense(arrays, "", 1 << 30)
    found = dense(arrays, "", 4, kind=np.float64)
    assert found.dtype == np.float64
    assert found.tolist() == [0, 0, float(np.float32(0.1)), 0]
    with pytest.raises(UserError, match="cannot be stored: weights are said to be 134,217,728"):
        sparse("", np.zeros(1 << 27, dtype=np.float32))


BELOW_12_GB = """
import resource, sys
from pathlib import Path
from tk_spacy.errors import UserError
from tk_spacy.reranker.model import Reranker
Reranker.from_disk(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[2:]:
    try:
        Reranker.from_disk(path)
    except UserError as error:
        print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is told in its units")
def test_a_model_of_10_kb_that_claims_12_gb_is_refused(tmp_path: Path) -> None:
    files = stored("kernel")
    meta = json.loads(files[META])
    meta["settings"]["bits"] = 30
    few = to_npz(sparse("", np.eye(1, 100, dtype=np.float32)[0]))
    huge: dict[str, Files] = {
        "table": {META: json.dumps(meta).encode(), WEIGHTS: few},
        "array": {SUPPORT: npz(("nodes", "<f4", (3 << 30,), bytes(100)))},
        "list": {SCHEMA: 500 * b"\xdd\x00\x80\x00\x00" + b"\x01"},
    }
    for name, changes in {"whole": {}, **huge}.items():
        (tmp_path / name).mkdir()
        for file, content in {**files, **changes}.items():
            (tmp_path / name / file).write_bytes(content)
    command = [sys.executable, "-c", BELOW_12_GB, tmp_path / "whole", *(tmp_path / n for n in huge)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *refusals, taken = done.stdout.splitlines()
    assert "weights are said to be 1,073,741,824, of which 1 are stored" in refusals[0]
    assert "support.npz is damaged or incomplete (nodes claims 12.9 GB" in refusals[1]
    assert "schema.msgpack is damaged or incomplete (no whole msgpack file)" in refusals[2]
    assert int(taken) < 100, "MB of memory for what is refused"


def test_values_within_a_network_claim_what_is_there() -> None:
    files = biaffine_parsers.trained().to_files()
    model = srsly.msgpack_loads(files["model"])
    nodes = [node for node in model["shims"] if node]
    nodes[0][0] = b"\xdd\x7f\xff\xff\xff"
    changed = {**files, "model": srsly.msgpack_dumps(model)}
    with pytest.raises(ModelError, match=r"model is damaged or incomplete .no whole msgpack file"):
        BiaffineParser.from_files(changed)


def test_stored_layers_are_checked() -> None:
    files = biaffine_parsers.trained().to_files()
    meta = json.loads(files[META])
    encoder: dict[str, Any] = {"@architectures": "tk_spacy.BiLSTM.v1", "layers": 10**6}
    for value, says in (
        (encoder, "expected at most 64"),
        ({"@readers": "srsly.read_json.v1", "path": "x"}, "which reads files"),
        ({"name": "../../x"}, "a path that leads out of the model"),
        ({"name": "/etc/passwd"}, "a path that leads out of the model"),
    ):
        meta["architecture"] = {"@architectures": "tk_spacy.BiaffineParser.v1", "tok2vec": value}
        with pytest.raises(ModelError, match=says):
            BiaffineParser.from_files({**files, META: json.dumps(meta).encode()})
    check_stored_config({"layers": 2, "name": "bert/base", "depth": 4, "rate": 0.5}, "config")


@pytest.mark.parametrize(
    "text", ["../x", "a/../../b", "/etc/passwd", "~/x", "C:\\x", "..", "a\\..\\b"]
)
def test_paths_that_lead_out(text: str) -> None:
    assert leads_out(text)


@pytest.mark.parametrize("text", ["a/b", "x", "", "...", "a..b", "~", "bert-base/uncased", "a: b"])
def test_names_that_do_not(text: str) -> None:
    assert not leads_out(text)


def test_symbolic_links_stay_within_a_model(tmp_path: Path) -> None:
    parser = test_transition.trained()
    parser.to_disk(tmp_path / "model")
    (tmp_path / "elsewhere").write_bytes((tmp_path / "model" / META).read_bytes())
    (tmp_path / "link").symlink_to("model")
    assert type(parser).from_disk(tmp_path / "link").labels == parser.labels
    (tmp_path / "model" / META).rename(tmp_path / "model" / "inside.json")
    (tmp_path / "model" / META).symlink_to("inside.json")
    assert type(parser).from_disk(tmp_path / "model").labels == parser.labels
    (tmp_path / "model" / META).unlink()
    (tmp_path / "model" / META).symlink_to("../elsewhere")
    with pytest.raises(ModelError, match="a symbolic link that leads out of the model"):
        type(parser).from_disk(tmp_path / "model")


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    pipelines.trained_pipeline().to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def test_a_component_that_is_elsewhere(pipeline: Path, tmp_path: Path) -> None:
    assert load_pipeline(pipeline).pipe_names == ["parser", "tk_reranker"]
    shutil.move(pipeline / "tk_reranker", tmp_path / "moved")
    (pipeline / "tk_reranker").symlink_to("../moved")
    for opened in (load_pipeline, lambda path: Reranker.from_disk(path / "tk_reranker")):
        with pytest.raises(ModelError, match="a symbolic link that leads out of the model"):
            opened(pipeline)


def test_what_the_config_of_a_pipeline_may_not(pipeline: Path) -> None:
    config = (pipeline / "config.cfg").read_text(encoding="utf-8")
    for old, new, says in (
        ('factory = "parser"', 'source = "/elsewhere"', "takes the component 'parser' from"),
        ("[components.parser]", '[components./etc]\nfactory = "x"\n\n[components.parser]',
         "which is no name of a folder"),
        ("depth = 1", "depth = 1000000", "expected at most 64"),
        ("before_creation = null", 'before_creation = {"@readers": "srsly.read_json.v1"}',
         "reads files"),
    ):  # fmt: skip
        assert old in config
        (pipeline / "config.cfg").write_text(config.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(UserError, match=says) as raised:
            load_pipeline(pipeline)
        assert len(str(raised.value).splitlines()) == 1


def test_what_spacy_reads_claims_what_is_there(pipeline: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**7, 300)}
    )
    for name, content, says in (
        ("vocab/vectors", header.getvalue() + bytes(99), "vectors: the array claims 12 GB"),
        ("vocab/key2row", b"\xdf\x7f\xff\xff\xff", "key2row is damaged"),
        ("parser/model", b"\xdd\x7f\xff\xff\xff", "model is damaged"),
    ):
        before = (pipeline / name).read_bytes()
        (pipeline / name).write_bytes(content)
        with pytest.raises(UserError, match=says):
            load_pipeline(pipeline)
        (pipeline / name).write_bytes(before)
    load_pipeline(pipeline)


@udpipe_parsers.needs_udpipe
def test_parts_of_udpipes_models() -> None:
    model = udpipe_parsers.parser().model
    check_packed_parts(model)

    def with_part(before: int, after: int) -> bytes:
        check = (before * 19991 + after * 199999991 + 1234567890) % 2**32
        return model + struct.pack("<3I", before, after, check) + bytes(after)

    # As of a tagger that has seen a few sentences.
    check_packed_parts(with_part(18_300_000, 54_300))
    with pytest.raises(ClaimError, match="a part claims 4 GB, too much for 1 KB"):
        check_packed_parts(with_part(4_000_000_000, 1000))


def test_a_refusal_is_one_line_whatever_it_quotes() -> None:
    text = str(UserError("a\nb\x1b[31m\v\u2028é"))
    assert text == "a\\nb\\x1b[31m\\x0b\\u2028é"


@pytest.mark.parametrize("character", ["\f", "\v", "\x1c", "\x85", "\u2028", "\u2029", "\0"])
def test_a_config_has_lines_that_all_agree_on(character: str, tmp_path: Path) -> None:
    path = tmp_path / "training.cfg"
    path.write_text(f"[paths]\ntrain = {character}x\n", encoding="utf-8")
    with pytest.raises(UserError, match=rf"cfg:2: holds the character U\+{ord(character):04X}, "):
        train_options(path)


def test_a_number_beyond_all_bounds() -> None:
    with pytest.raises(UserError, match=r"parsers.sampling.C is 10{59}\.\.\.; expected a number"):
        train_options(None, {"parsers.sampling.C": 10**400})


def test_sizes_for_people() -> None:
    assert [shown_bytes(n) for n in (8, 10_240, 12_000_000_000)] == ["8 bytes", "10.2 KB", "12 GB"]


def test_packed_as_before() -> None:
    arrays = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.zeros((0, 4)),
        "c": np.ones(()),
    }
    for content in (to_npz(arrays), packed(arrays)):
        found = from_npz(content)
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
