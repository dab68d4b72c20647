"""How trained models are kept: named files, written and read the same way by every kind of model.

meta.json says what it is; arrays are .npz without pickle, hashed weights only where they are not 0;
vocabularies are msgpack.  A model may come from anybody: what a file claims to hold is held against
its bytes before memory is taken (see `claimed_sizes`).
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import srsly
from numpy.typing import NDArray

from tk_spacy.about import __version__
from tk_spacy.errors import ModelError, UserError
from tk_spacy.utils.atomic_files import replace_directory
from tk_spacy.utils.claimed_sizes import ClaimError, check_msgpack, check_npz, check_table
from tk_spacy.utils.model_bounds import check_inside_model
from tk_spacy.utils.stored_values import MOST, shown, stored_entry

META = "meta.json"
RERANKER_FORMAT, PARSER_FORMAT = "tk-spacy reranker", "tk-spacy sampling parser"


Real = TypeVar("Real", np.float32, np.float64)

MOST_WEIGHT = MOST
"""Weights of a model are smaller: sums and products of such ones stay finite numbers."""

MOST_SHOWN = 300
"""Characters of what is wrong with a file, at most."""


class DamagedFileError(ValueError):
    """What a file of a model holds is damaged: its name and a line about it."""

    def __init__(self, file: str, reason: str) -> None:
        self.file, self.reason = file, reason
        super().__init__(file, reason)

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Whatever goes wrong within is the fault of this file of a model: a DamagedFileError.

    An inner one tells of its own file.
    """
    try:
        yield
    except (DamagedFileError, ModelError):
        raise
    except Exception as error:
        raise DamagedFileError(file, reason_of(error)) from error


def reason_of(error: Exception) -> str:
    """What is wrong, in a line."""
    if isinstance(error, KeyError) and error.args:
        text = f"{error.args[0]!r} is missing"
    elif isinstance(error, ValueError):  # our own, and those of the readers of JSON and msgpack
        text = str(error)
    elif isinstance(error, RecursionError):
        text = "values within values, beyond all bounds"
    elif isinstance(error, MemoryError):
        text = "more memory is needed than there is"
    elif isinstance(error, ImportError):  # a model of another library's layers, which is missing
        text = str(error)
    else:
        text = "a value is of another kind than tk-spacy writes"
    return _one_line(text)


def _one_line(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


ReadModels = dict[tuple[type, Path], Any]
"""Models by their class and directory."""
_READ: ContextVar[ReadModels | None] = ContextVar("models that were read", default=None)


@contextmanager
def each_read_once(known: ReadModels) -> Iterator[None]:
    """In such a block a directory's model is read once, and kept in `known` for the next time.

    For what is opened together and then only used: whoever reads it gets the same object.
    """
    before = _READ.set(known)
    try:
        yield
    finally:
        _READ.reset(before)


class StoredModel(ABC):
    """A model that goes as named files to disk, to bytes and into pickles.

    FORMAT: what meta.json calls it.  VERSION: of the format, as it is written now.  OLDEST: that
    can be read.  FILES: names of its files.
    """

    __slots__ = ()
    FORMAT: ClassVar[str]
    VERSION: ClassVar[int]
    OLDEST: ClassVar[int]
    FILES: ClassVar[tuple[str, ...]]

    @abstractmethod
    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""

    @classmethod
    @abstractmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`.  May raise anything where the files are damaged.

        What is read of other files than meta.json is read within `reading`.
        meta: the values of meta.json, whose format and version are right.
        """

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], *, where: str = "model") -> Self:
        """The inverse of `to_files`.  Raises ModelError where the files are no such model."""
        try:
            with reading(META):
                return cls._read_files(files, cls._check_meta(files[META], where))
        except DamagedFileError as error:
            raise ModelError(
                f"{where}: {error.file} is damaged or incomplete ({error.reason}); train it again"
            ) from error

    def to_disk(self, path: str | Path) -> None:
        """Write the model as a directory; an older one there is replaced in one step."""
        with replace_directory(Path(path)) as directory:
            self.write_files(directory)

    def write_files(self, directory: Path) -> None:
        """Write the files into a directory that is there."""
        for name, content in self.to_files().items():
            (directory / name).write_bytes(content)

    @classmethod
    def from_disk(cls, path: str | Path) -> Self:
        """Read a model directory.  Raises ModelError where it is none."""
        path = Path(path)
        known, key = _READ.get(), (cls, path.absolute())
        if known is not None and isinstance(model := known.get(key), cls):
            return model
        if not (path / META).is_file():
            raise ModelError(
                f"{path}: no {cls.FORMAT} here ({META} is missing); train it again, or give its "
                "directory"
            )
        check_inside_model(path, cls.FILES)
        try:
            files = {n: (path / n).read_bytes() for n in cls.FILES if (path / n).is_file()}
        except OSError as error:
            raise ModelError(f"{error.filename}: cannot read it: {error.strerror}") from error
        model = cls.from_files(files, where=str(path))
        if known is not None:
            known[key] = model
        return model

    def to_bytes(self) -> bytes:
        """The model as one byte string."""
        packed: bytes = srsly.msgpack_dumps(self.to_files())
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The inverse of `to_bytes`.  Raises ModelError where it is none."""
        try:
            check_msgpack(data)
            files: Any = srsly.msgpack_loads(data)
        except Exception as error:
            raise ModelError(f"these bytes are no {cls.FORMAT}: {reason_of(error)}") from error
        if not isinstance(files, dict) or not all(isinstance(f, bytes) for f in files.values()):
            raise ModelError(f"these bytes are no {cls.FORMAT}: they hold no named files")
        return cls.from_files(files)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    @classmethod
    def _meta(
        cls, settings: Mapping[str, Any], more: Mapping[str, Any], *, version: int | None = None
    ) -> bytes:
        """The content of meta.json.

        version: of the format, where an earlier one than VERSION holds all that the model has.
        """
        meta = {
            "format": cls.FORMAT,
            "format_version": cls.VERSION if version is None else version,
            "library_version": __version__,
            "settings": settings,
            **more,
        }
        return (json.dumps(meta, indent=2, ensure_ascii=False) + "\n").encode()

    @staticmethod
    def _about(meta: Mapping[str, Any], *more: str) -> dict[str, Any]:
        """The facts in meta.json beside those that `_meta` names and `more`."""
        known = {"format", "format_version", "library_version", "settings", *more}
        return {name: value for name, value in meta.items() if name not in known}

    @classmethod
    def _check_meta(cls, content: bytes, where: str) -> dict[str, Any]:
        """The values of meta.json.  Raises ModelError where they are of something else."""
        meta: dict[str, Any] = json.loads(content)
        if not isinstance(meta, dict):
            raise ValueError("it holds no names with values")
        if meta.get("format") != cls.FORMAT:
            other = meta.get("format")
            raise ModelError(
                f"{where}: {META} is "
                + (f"that of a {_one_line(other)}, " if isinstance(other, str) and other else "")
                + f"not that of a {cls.FORMAT}; give the directory of one, or of the pipeline"
            )
        version = stored_entry(meta, "format_version", META)
        if type(version) is not int or not cls.OLDEST <= version <= cls.VERSION:
            readable = (
                f"{cls.VERSION}" if cls.OLDEST == cls.VERSION else f"{cls.OLDEST} to {cls.VERSION}"
            )
            raise ModelError(
                f"{where}: {META} has format version {shown(version)}, this tk-spacy reads "
                f"{readable}; train the model again or install the version that wrote it "
                f"({_one_line(str(meta.get('library_version')))})"
            )
        return meta


def to_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays as one compressed .npz."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def from_npz(data: bytes) -> dict[str, NDArray[Any]]:
    """The inverse of `to_npz`.  Raises ValueError where it is none, or holds Python's objects."""
    try:
        check_npz(data)
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = dict(stored)
    except ClaimError:
        raise
    except Exception as error:
        # Whatever damage does to the readers of zip files and arrays, whose words help nobody.
        raise ValueError("no whole .npz file of plain arrays") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name} is no array")
    return arrays


def read_npz(files: Mapping[str, bytes], file: str) -> dict[str, NDArray[Any]]:
    """The arrays of a model's file.  Raises DamagedFileError."""
    with reading(file):
        return from_npz(stored_file(files, file))


def read_msgpack(files: Mapping[str, bytes], file: str) -> Any:
    """The values of a model's file.  Raises DamagedFileError."""
    with reading(file):
        return from_msgpack(stored_file(files, file))


def from_msgpack(content: bytes) -> Any:
    """The values of a msgpack file.  Raises ValueError where it is none."""
    check_msgpack(content)
    try:
        return srsly.msgpack_loads(content)
    except Exception as error:
        raise ValueError("no whole msgpack file") from error


def stored_file(files: Mapping[str, bytes], file: str) -> bytes:
    """The content of a model's file.  Raises DamagedFileError where it is missing."""
    if file not in files:
        raise DamagedFileError(file, "there is no such file")
    return files[file]


def sparse(name: str, weights: NDArray[np.floating]) -> dict[str, NDArray[Any]]:
    """Weights that are not 0, as float32, and where they stand.

    name: of the arrays' names, empty for none.
    Raises UserError where they are so few for their table that it would not be read again.
    """
    ids = np.flatnonzero(weights)
    try:
        check_table(name or "weights", len(weights), len(ids))
    except ValueError as error:
        raise UserError(f"the model cannot be stored: {error}") from error
    names = _sparse_names(name)
    return dict(zip(names, (ids.astype(np.uint32), weights[ids].astype(np.float32)), strict=True))


def dense(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    size: int,
    *,
    most: float = np.inf,
    kind: type[Real] = np.float32,  # type: ignore[assignment]
) -> NDArray[Real]:
    """The inverse of `sparse`: kind[size].

    most: what all values are below, so that their sums are finite.
    Raises ValueError, before the table is made; of one mostly of zeros, only the pages of memory
    are taken that hold another value.
    """
    ids, values = (arrays[n] for n in _sparse_names(name))
    name = name or "weights"
    if ids.dtype != np.uint32 or values.dtype != np.float32 or ids.ndim != 1:
        raise ValueError(f"{name} are {ids.dtype} and {values.dtype}, not uint32 and float32")
    if ids.shape != values.shape or not np.isfinite(values).all():
        raise ValueError(f"{name} are not one finite number for each id")
    if not (np.abs(values) < most).all():
        raise ValueError(f"{name} beyond {most:g}, whose sums may be infinite")
    if len(ids) and int(ids.max()) >= size:
        raise ValueError(f"an id of {name} is {ids.max()}, expected less than {size}")
    if (ids[1:] <= ids[:-1]).any():
        raise ValueError(f"ids of {name} are not in order, or repeated")
    check_table(name, size, len(ids))
    weights: NDArray[Real] = np.zeros(size, dtype=kind)
    weights[ids] = values
    return weights


def read_places(arrays: Mapping[str, NDArray[Any]], size: int) -> NDArray[np.uint8]:
    """Where a parser saw each label, uint8[size]: 1 under the root, 2 elsewhere, 3 both.

    Raises ValueError.
    """
    places = arrays["places"]
    if places.dtype != np.uint8 or places.shape != (size,) or places.max() > 3:
        raise ValueError(f"places are not uint8[{size}] from 0 to 3")
    return places


def _sparse_names(name: str) -> tuple[str, str]:
    return (f"{name}_ids", f"{name}_values") if name else ("ids", "values")
