"""Files of stored models with one thing wrong in each, and what every model must make of them."""

from __future__ import annotations

import copy
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import srsly

from tk_spacy.errors import UserError
from tk_spacy.utils.serialization import META, from_npz

Files = dict[str, bytes]

STRANGE = (None, True, -1, 10**400, float("nan"), 1e300, "x\ny", [], {}, [[1], [1, 2]], {"a": None})
"""What a value may be instead."""
FEW = 24
"""Of a table or list with more values, the first and the last are damaged."""
FOREIGN = re.compile(
    r"numpy|pickle|zip file is|\bobject\b|NoneType|Error\b|inhomogeneous|subscript|attribute\b|"
    r"unpack|\bdtype|argument"
)
"""What only programmers understand."""


def places(value: Any, few: int, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to values within values, the outermost first."""
    if path:
        yield path
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    if len(path) > 0 and len(keys) > few:
        keys = [keys[0], keys[-1]]
    for key in keys:
        yield from places(value[key], few, (*path, key))


def damaged_values(
    stored: Any, within: Callable[[tuple[Any, ...]], bool], few: int = FEW
) -> Iterator[Any]:
    """Copies of JSON values with one value strange, missing, or in another order each."""
    for path in places(stored, few):
        if not within(path):
            continue
        for strange in (*STRANGE, ...):
            made = copy.deepcopy(stored)
            above = made
            for key in path[:-1]:
                above = above[key]
            if strange is ...:
                del above[path[-1]]
            else:
                above[path[-1]] = copy.deepcopy(strange)
            yield made
        made = copy.deepcopy(stored)
        found = made
        for key in path[:-1]:
            found = found[key]
        here = found[path[-1]]
        if isinstance(here, dict) and len(here) > 1:
            found[path[-1]] = dict(reversed(here.items()))
            yield made
        elif isinstance(here, list) and len(here) > 1:
            found[path[-1]] = here[::-1]
            yield made


def as_json(values: Any) -> bytes:
    return json.dumps(values).encode()


def damaged_meta(files: Files, *names: str, without: tuple[str, ...] = ()) -> Iterator[Files]:
    """Damage to the values of meta.json of these names; of all but some where none is named."""
    stored = json.loads(files[META])

    def within(path: tuple[Any, ...]) -> bool:
        return path[0] in names if names else path[0] not in without

    for values in damaged_values(stored, within):
        yield {**files, META: as_json(values)}


def damaged_msgpack(files: Files, name: str) -> Iterator[Files]:
    """Damage to the values of a msgpack file."""
    for values in damaged_values(srsly.msgpack_loads(files[name]), lambda path: True, few=2):
        try:
            content = srsly.msgpack_dumps(values)
        except OverflowError:  # no msgpack has such a number
            continue
        yield {**files, name: content}


def damaged_contents(content: bytes) -> Iterator[bytes]:
    """What may become of any file."""
    yield from (
        b"",
        b"\x00",
        b"x",
        b"[]",
        b"{}",
        b"PK\x03\x04 no more",
        content[: len(content) // 2],
    )
    yield b"[" * 100_000
    array = io.BytesIO()
    np.save(array, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    yield array.getvalue()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ids", "no array")
    yield packed.getvalue()


def packed(arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def damaged_arrays(files: Files, name: str) -> Iterator[Files]:
    """Damage to each array of an .npz file."""
    arrays = from_npz(files[name])
    for key, array in arrays.items():
        others = {other: given for other, given in arrays.items() if other != key}
        yield {**files, name: packed(others)}
        with np.errstate(all="ignore"):
            of_types = [
                array.astype(kind)
                for kind in (str, np.float16, np.int64, np.complex128, array.dtype.newbyteorder())
            ]
        strange = [
            np.array([{"a": 1}, None], dtype=object),
            *of_types,
            array[:-1],
            array[:0],
            array[None],
            np.concatenate([array, array]),
            np.zeros((), dtype=array.dtype),
            array[..., ::-1],
        ]
        if array.size:
            flat = array.ravel()
            for value in (np.nan, np.inf, -1, 2**31 - 1, -(2**31), 1e38):
                with np.errstate(all="ignore"):
                    made = flat.copy()
                    made[-1] = np.array(value).astype(array.dtype)
                strange.append(made.reshape(array.shape))
        for made in strange:
            yield {**files, name: packed({**others, key: made})}


def check_refusal(error: UserError, *, name: str | None, names: tuple[str, ...]) -> None:
    """One line that names the file, in words for people.

    name: of the file that is damaged; None where it may be any of `names`, which do not fit.
    """
    text = str(error)
    assert text.startswith("here: "), text
    assert len(text.splitlines()) == 1, text
    assert len(text) < 1000, text
    found = [own for own in names if own in text]
    assert found, text
    assert name is None or name in found, (name, text)
    assert not FOREIGN.search(text), text
