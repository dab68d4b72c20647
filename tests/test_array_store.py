"""Arrays of many records, of which a file holds all but the last."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tk_spacy.utils import array_store
from tk_spacy.utils.array_store import ArrayStore, arrays_stored_beside

KINDS = (("int32", 2), ("float64", 1), ("uint8", 1), ("float32", 3))


def record(rng: np.random.Generator, most: int = 5) -> tuple[NDArray[Any], ...]:
    """Arrays of any lengths, 0 among them."""
    shapes = [rng.integers(0, most + 1, ndim) for _, ndim in KINDS]
    return tuple(
        rng.integers(0, 200, shape).astype(dtype)
        for (dtype, _), shape in zip(KINDS, shapes, strict=True)
    )


def same(found: tuple[NDArray[Any], ...], given: tuple[NDArray[Any], ...]) -> bool:
    return len(found) == len(given) and all(
        a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
        for a, b in zip(found, given, strict=True)
    )


@given(
    seed=st.integers(0, 1000), count=st.integers(0, 40), segment=st.sampled_from([1, 150, 1 << 20])
)
def test_records_come_back_as_they_were(seed: int, count: int, segment: int) -> None:
    rng = np.random.default_rng(seed)
    records = [record(rng) for _ in range(count)]
    store = ArrayStore(segment=segment)
    for number, arrays in enumerate(records):
        store.append(arrays)
        assert len(store) == number + 1
        assert same(store[number], arrays)
    for number in rng.permutation(count):
        assert same(store[int(number)], records[number])
    for place in (-1, count):
        with pytest.raises(IndexError, match=f"^record {place} of {count}$"):
            store[place]


def test_memory_holds_a_segment_and_the_file_the_rest() -> None:
    store = ArrayStore(segment=1000)
    for number in range(9):
        store.append([np.full(50, number, dtype=np.int64)])  # 400 bytes
        assert (store.in_file > 0) == (number >= 2)
    # Three segments of three records of 400 bytes and their shape, each a whole number of pages.
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 65536
    assert store.in_file % page == 0
    assert store.in_file >= 3 * 3 * 408
    assert [int(store[i][0].sum()) for i in range(9)] == [50 * i for i in range(9)]


def test_arrays_that_are_parts_of_others_are_stored_alone() -> None:
    whole = np.arange(24).reshape(4, 6)
    store = ArrayStore(segment=1)
    for part in (whole[:, ::2], whole.T, whole[1:1], whole[2:, 3:]):
        store.append([part])
        assert np.array_equal(store[len(store) - 1][0], part)


def test_other_arrays_than_the_first_are_refused() -> None:
    store = ArrayStore()
    store.append([np.zeros(2)])
    for other in ([np.zeros(2, np.int32)], [np.zeros((2, 2))], [], [np.zeros(2)] * 2):
        with pytest.raises(TypeError, match=r"expected .*float64.* as in the first record"):
            store.append(other)
    assert len(store) == 1


def test_pages_are_given_back_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_store, "LENT", 10_000)
    store = ArrayStore(segment=4096)
    for number in range(100):
        store.append([np.full(1000, number)])
    held = [store[i] for i in range(100)]  # given back some eighty times meanwhile
    assert [int(arrays[0].min()) for arrays in held] == list(range(100))
    assert [int(arrays[0].max()) for arrays in held] == list(range(100))


def test_arrays_outlive_their_store() -> None:
    store = ArrayStore(segment=1)
    store.append([np.arange(1000)])
    (array,) = store[0]
    del store
    gc.collect()
    assert int(array.sum()) == 499500


def test_the_file_is_where_it_is_asked_for_and_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []
    make = tempfile.TemporaryFile

    def watched(*arguments: Any, **options: Any) -> Any:
        places.append(options.get("dir"))
        return make(*arguments, **options)

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    with arrays_stored_beside(tmp_path / "not" / "yet" / "model"):
        beside = ArrayStore(segment=1)
    beside.append([np.arange(10)])
    alone = ArrayStore(segment=1)
    alone.append([np.arange(10)])
    assert places == [tmp_path, None]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_disk_is_told_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **options: Any) -> Any:
        return Path("/dev/full").open("r+b", buffering=0)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with arrays_stored_beside(tmp_path / "model"):
        store = ArrayStore(segment=1)
    with pytest.raises(OSError, match="No space left") as caught:
        store.append([np.arange(10)])
    assert caught.value.filename == str(tmp_path)


def test_where_the_folder_takes_no_files_the_system_s_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tempfile.TemporaryFile

    def read_only(*arguments: Any, **options: Any) -> Any:
        if options.get("dir") is not None:
            raise OSError(errno.EROFS, "Read-only file system")
        return make(*arguments, **options)

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    with arrays_stored_beside(tmp_path / "model"):
        store = ArrayStore(segment=1)
    store.append([np.arange(10)])
    assert same(store[0], (np.arange(10),))


def test_no_file_is_left_open() -> None:
    store = ArrayStore(segment=1)
    store.append([np.arange(10)])
    (array,) = store[0]
    file = store._file
    assert file is not None
    del store
    gc.collect()
    assert file.closed
    assert array.tolist() == list(range(10))


@pytest.mark.skipif(sys.platform != "linux", reason="limits of files are Linux's")
def test_a_full_disk_is_an_error_of_the_system() -> None:
    code = """
import errno, resource, signal, tempfile
import numpy as np
from tk_spacy.utils.array_store import ArrayStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
store = ArrayStore(segment=1 << 18)
try:
    for number in range(100):
        store.append([np.full(1 << 13, number)])
except OSError as error:
    assert error.errno == errno.EFBIG, error
    assert error.filename == tempfile.gettempdir(), error
    assert all((store[i][0] == i).all() for i in range(8))
    print("told")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "told\n", done.stderr
