"""How trained models are kept: named files, written and read the same way by every kind of model.

meta.json says what it is; arrays are .npz without pickle, hashed weights only where they are not 0;
vocabularies are msgpack.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from numpy.typing import NDArray

from tk_spacy.errors import UserError

META = "meta.json"
RERANKER_FORMAT, PARSER_FORMAT = "tk-spacy reranker", "tk-spacy sampling parser"


class ModelError(UserError):
    """A model that cannot be read."""


def damaged(where: str, error: Exception) -> ModelError:
    """What to say of files that cannot be understood."""
    return ModelError(
        f"{where}: damaged or incomplete ({type(error).__name__}: {error}); train it again"
    )


def check_meta(
    content: bytes, kind: str, version: int, *, where: str, oldest: int | None = None
) -> dict[str, Any]:
    """The values of meta.json.  Raises ModelError where they are of something else.

    version: of the format, as it is written now.  oldest: that can be read, None for `version`.
    """
    meta: dict[str, Any] = json.loads(content)
    if meta.get("format") != kind:
        raise ModelError(f"{where}: {META} is not that of a {kind}")
    oldest = version if oldest is None else oldest
    if meta["format_version"] not in range(oldest, version + 1):
        readable = f"{version}" if oldest == version else f"{oldest} to {version}"
        raise ModelError(
            f"{where}: format version {meta['format_version']}, this tk-spacy reads {readable}; "
            f"train the model again or install the version that wrote it "
            f"({meta.get('library_version')})"
        )
    return meta


def meta_bytes(meta: Mapping[str, Any]) -> bytes:
    """The content of meta.json."""
    return (json.dumps(meta, indent=2, ensure_ascii=False) + "\n").encode()


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write named files into a directory."""
    for name, content in files.items():
        (directory / name).write_bytes(content)


def read_files(path: Path, names: Sequence[str], *, what: str) -> dict[str, bytes]:
    """The files of a model directory that are there.  Raises ModelError where meta.json is not."""
    if not (path / META).is_file():
        raise ModelError(
            f"{path}: no {what} here ({META} is missing); train it again, or give its directory"
        )
    try:
        return {n: (path / n).read_bytes() for n in names if (path / n).is_file()}
    except OSError as error:
        raise ModelError(f"{error.filename}: cannot read it: {error.strerror}") from error


def unpack(data: bytes, *, what: str) -> dict[str, bytes]:
    """The files that were packed as one byte string.  Raises ModelError."""
    try:
        files: dict[str, bytes] = srsly.msgpack_loads(data)
    except Exception as error:
        raise ModelError(f"these bytes are no {what}: {error}") from error
    return files


def to_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays as one compressed .npz."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def from_npz(data: bytes) -> dict[str, NDArray[Any]]:
    """The inverse of `to_npz`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)


def sparse(name: str, weights: NDArray[np.floating]) -> dict[str, NDArray[Any]]:
    """Weights that are not 0, as float32, and where they stand.

    name: of the arrays' names, empty for none.
    """
    ids = np.flatnonzero(weights)
    names = _sparse_names(name)
    return dict(zip(names, (ids.astype(np.uint32), weights[ids].astype(np.float32)), strict=True))


def dense(arrays: Mapping[str, NDArray[Any]], name: str, size: int) -> NDArray[np.float32]:
    """The inverse of `sparse`: float32[size].  Raises ValueError."""
    ids, values = (arrays[n] for n in _sparse_names(name))
    name = name or "weights"
    if ids.dtype != np.uint32 or values.dtype != np.float32 or ids.ndim != 1:
        raise ValueError(f"{name} are {ids.dtype} and {values.dtype}, not uint32 and float32")
    if ids.shape != values.shape or not np.isfinite(values).all():
        raise ValueError(f"{name} are not one finite number for each id")
    if len(ids) and int(ids.max()) >= size:
        raise ValueError(f"an id of {name} is {ids.max()}, expected less than {size}")
    if (ids[1:] <= ids[:-1]).any():
        raise ValueError(f"ids of {name} are not in order, or repeated")
    weights = np.zeros(size, dtype=np.float32)
    weights[ids] = values
    return weights


def _sparse_names(name: str) -> tuple[str, str]:
    return (f"{name}_ids", f"{name}_values") if name else ("ids", "values")
