"""What is fuzzed: each target takes any bytes, and raises where the program does what it must not.

A file, model or option of a stranger either works or is refused by a UserError of one line.  Used
by `fuzz.py`, which looks for bytes that are new by the code that they run, and by `test_fuzz.py`.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import resource
import shutil
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import TreesFile, read_kbest
from tk_spacy.kbest.tree_files import TreeFile
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.treebank.conllu import read_conllu, write_conllu
from tk_spacy.utils.serialization import META, StoredModel, from_npz

MOST_TAKEN = 512 << 20
"""Bytes of memory that one input may take: far more than any of these needs."""

STRANGE = (
    None, True, -1, 0, 28, 30, 2**31, 2**40, 10**400, math.nan, 1e300, "", "x\ny", "../../x",
    "/etc/passwd", [], {}, [[1], [1, 2]], {"a": None},
)  # fmt: skip
KINDS = (
    "float32", "float64", "int32", "int64", "uint8", "uint32", "bool", "complex64", "object", "U4",
    "float16", ">f4",
)  # fmt: skip


class Finding(AssertionError):
    """What a target must not do."""


class Choices:
    """Decisions that are read from bytes, front to back; 0 where there are no more."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        """The next byte."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def number(self) -> int:
        """A whole number, mostly small, sometimes of 64 bits."""
        size = (1, 1, 2, 4, 8)[self.byte() % 5]
        return int.from_bytes(bytes(self.byte() for _ in range(size)), "little")

    def of(self, items: Sequence[Any]) -> Any:
        """One of the items."""
        return items[self.byte() % len(items)]

    def rest(self) -> bytes:
        """All that is left."""
        self._at, start = len(self._data), self._at
        return self._data[start:]


def refused(error: Exception) -> None:
    """Raises Finding unless an error is a refusal of one line."""
    text = str(error)
    if not text or len(text.splitlines()) != 1:
        raise Finding(f"a refusal of {len(text.splitlines())} lines: {text!r}") from error


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """Raises Finding where more memory is taken than any input may."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if taken > MOST_TAKEN:
        raise Finding(f"{taken >> 20} MB of memory for one input")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder, in memory where that is possible."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tk_fuzz_", dir=place) as name:
        yield Path(name)


def conllu(data: bytes) -> None:
    """The CoNLL-U reader: what it reads is written again byte for byte."""
    with folder() as place, bounded_memory():
        path = place / "a.conllu"
        path.write_bytes(data)
        for trees, single_root in (("required", True), ("optional", False), ("any", True)):
            try:
                sentences = list(read_conllu(path, trees=trees, single_root=single_root))
            except UserError as error:
                refused(error)
                continue
            if sentences and trees != "any":
                write_conllu(place / "b.conllu", sentences)
                if (place / "b.conllu").read_bytes() != data:
                    raise Finding("it is not written as it was read")
            for sentence in sentences:
                if trees == "required" and not (sentence.heads >= 0).all():
                    raise Finding("a sentence without a tree")


def kbest(data: bytes) -> None:
    """The k-best readers: lists are trees of their sentences, and are written and read again."""
    with folder() as place, bounded_memory():
        path = place / "a.conllu"
        path.write_bytes(data)
        try:
            inventory = LabelInventory()
            pairs = list(read_kbest(path, inventory=inventory, k=20))
        except UserError as error:
            refused(error)
        else:
            for sentence, trees in pairs:
                if trees.heads.shape != (len(trees), len(sentence)) or not len(trees):
                    raise Finding("a list that does not fit its sentence")
            if pairs:
                write_kbest(place / "b.conllu", pairs)
                again = list(read_kbest(place / "b.conllu", inventory=inventory))
                for (_, one), (_, other) in zip(pairs, again, strict=True):
                    np.testing.assert_array_equal(one.heads, other.heads)
                    np.testing.assert_array_equal(one.labels, other.labels)
                    np.testing.assert_array_equal(one.scores, other.scores)
        try:
            file = TreesFile(path)
            list(file.sentences(trees="any"))
            found = TreeFile(path, inventory=LabelInventory(), source="file")
            for sentence in read_conllu(path, trees="any"):
                found.take(sentence)
        except UserError as error:
            refused(error)


Reading = tuple[type[StoredModel], Callable[[Any], object]]


def _sentences() -> list[Any]:
    from tk_spacy.treebank.synthetic import generate

    return list(generate(2, seed=32))


def _parse(model: Any) -> None:
    (sentence, _) = _sentences()
    ((heads, labels),) = model.parse([sentence], n_threads=1)
    if not len(heads) == len(labels) == len(sentence):
        raise Finding("a tree of another length than its sentence")


def _tag(model: Any) -> None:
    list(model.tag(_sentences()))


def _rerank(model: Any) -> None:
    from test_combiner import three_parsers

    golds, lists = three_parsers(n=2)
    trees = model.completed(golds[0], lists[0])
    if not np.isfinite(model.decide(golds[0], trees, n_threads=1).final).all():
        raise Finding("a score that is no number")


def model_kinds() -> dict[str, Reading]:
    """How each kind of model is opened, and used when it opens."""
    from tk_spacy.parsers.biaffine.parser import BiaffineParser
    from tk_spacy.parsers.projective.parser import ProjectiveParser
    from tk_spacy.parsers.sampling.parser import SamplingParser
    from tk_spacy.parsers.transition.parser import TransitionParser
    from tk_spacy.parsers.udpipe.parser import UdpipeParser
    from tk_spacy.reranker.model import Reranker
    from tk_spacy.tagging.bilstm.tagger import BilstmTagger

    return {
        "transition": (TransitionParser, _parse),
        "projective": (ProjectiveParser, _parse),
        "sampling": (SamplingParser, _parse),
        "biaffine": (BiaffineParser, _parse),
        "bilstm": (BilstmTagger, _tag),
        "reranker": (Reranker, _rerank),
        "hashed": (Reranker, _rerank),
        "sets": (Reranker, _rerank),
        # UDPipe's own bytes are read by its library when they are first used.
        "udpipe": (UdpipeParser, repr),
    }


def make_models(place: Path) -> None:
    """A small model of each kind, and a pipeline, in folders by their names."""
    import biaffine_parsers
    import pipelines
    import test_bilstm_tagger
    import test_damaged_models
    import test_projective
    import test_transition
    from search_kernels import EVERY, with_kernel

    made: dict[str, Any] = {
        "transition": test_transition.trained(),
        "projective": test_projective.trained(),
        "sampling": with_kernel(EVERY),
        "biaffine": biaffine_parsers.trained(),
        "bilstm": test_bilstm_tagger.trained(),
    }
    files = {name: model.to_files() for name, model in made.items()}
    files |= {
        name: test_damaged_models.stored(kind)
        for name, kind in (("reranker", "kernel"), ("hashed", "hashed"), ("sets", "sets"))
    }
    with contextlib.suppress(ImportError, UserError):  # UDPipe is not there for all Pythons
        import udpipe_parsers

        files["udpipe"] = udpipe_parsers.parser().to_files()
    for name, contents in files.items():
        (place / name).mkdir()
        for file, content in contents.items():
            (place / name / file).write_bytes(content)
    pipelines.trained_pipeline().to_disk(place / "pipeline")


class Models:
    """The target of stored models: one file, one value or one array of them is another."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.kinds = {name: kind for name, kind in model_kinds().items() if (place / name).is_dir()}
        self.files = {
            name: {path.name: path.read_bytes() for path in sorted((place / name).iterdir())}
            for name in self.kinds
        }
        pipeline = place / "pipeline"
        self.of_pipeline = sorted(
            path.relative_to(pipeline)
            for path in pipeline.rglob("*")
            if path.is_file() and (path.parent.name == "vocab" or path.parent == pipeline)
        )

    def __call__(self, data: bytes) -> None:
        """Open a model with a change, and use it if it opens."""
        choices = Choices(data)
        names = [*self.kinds, "pipeline"]
        name = choices.of(names)
        if name == "pipeline":
            self._load(choices)
            return
        files = dict(self.files[name])
        file = choices.of(sorted(files))
        if name == "udpipe":
            file = META
        files[file] = changed(files[file], file, choices)
        model_class, use = self.kinds[name]
        with bounded_memory():
            try:
                use(model_class.from_files(files, where="here"))
            except UserError as error:
                refused(error)

    def _load(self, choices: Choices) -> None:
        from tk_spacy.parsers.spacy_transition.loading import load_pipeline

        with folder() as place, bounded_memory():
            shutil.copytree(self.place / "pipeline", place / "pipeline")
            path = place / "pipeline" / choices.of(self.of_pipeline)
            path.write_bytes(changed(path.read_bytes(), path.name, choices))
            try:
                load_pipeline(place / "pipeline")
            except UserError as error:
                refused(error)


def changed(content: bytes, name: str, choices: Choices) -> bytes:
    """The content of a file, in which choices change something."""
    way = choices.byte() % 4
    if way == 0:
        return choices.rest()
    if way == 1 or name.endswith((".cfg", "vectors", "model")):
        start = choices.number() % (len(content) + 1)
        cut = choices.byte()
        new = choices.rest()
        return content[:start] + new + content[start + (cut if way == 1 else len(new)) :]
    if name.endswith(".npz"):
        return _changed_arrays(content, choices)
    if name.endswith(".json"):
        return _changed_json(content, choices)
    return _changed_msgpack(content, choices)


def _changed_values(values: Any, choices: Choices) -> Any:
    """JSON values of which one is another, down a path that choices take."""
    if isinstance(values, dict) and values and choices.byte() % 8:
        key = sorted(values)[choices.byte() % len(values)]
        if choices.byte() % 16 == 15:
            return {name: value for name, value in values.items() if name != key}
        return {**values, key: _changed_values(values[key], choices)}
    if isinstance(values, list) and values and choices.byte() % 8:
        place = choices.number() % len(values)
        return [*values[:place], _changed_values(values[place], choices), *values[place + 1 :]]
    how = choices.byte() % 4
    if how == 0:
        return choices.number()
    if how == 1:
        return struct.unpack("<d", bytes(choices.byte() for _ in range(8)))[0]
    if how == 2:
        return choices.rest().decode(errors="replace")
    return choices.of(STRANGE)


def _changed_json(content: bytes, choices: Choices) -> bytes:
    return json.dumps(_changed_values(json.loads(content), choices)).encode()


def _changed_msgpack(content: bytes, choices: Choices) -> bytes:
    import srsly

    with contextlib.suppress(OverflowError, UnicodeEncodeError):
        packed: bytes = srsly.msgpack_dumps(_changed_values(srsly.msgpack_loads(content), choices))
        return packed
    return b""


def _changed_arrays(content: bytes, choices: Choices) -> bytes:
    """An .npz file of which one array has another header, or other values."""
    arrays = from_npz(content)
    name = choices.of(sorted(arrays))
    array = arrays[name]
    way = choices.byte() % 4
    body = bytearray(np.ascontiguousarray(array).tobytes())
    kind, shape = array.dtype.str, array.shape
    if way == 0:  # other values
        place, new = choices.number() % (len(body) + 1), choices.rest()
        body[place : place + len(new)] = new
    elif way == 1:  # another kind
        kind = np.dtype(choices.of(KINDS)).str
    elif way == 2:  # another shape
        shape = tuple(choices.number() for _ in range(choices.byte() % 4))
    else:  # a part
        size = math.prod(shape[1:]) * array.dtype.itemsize
        n = choices.number() % (len(array) + 1) if array.ndim else 0
        shape, body = (n, *shape[1:]), body[: n * size]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for other, kept in arrays.items():
            with archive.open(f"{other}.npy", "w") as file:
                if other != name:
                    np.lib.format.write_array(file, kept)
                    continue
                header = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                file.write(body)
    return out.getvalue()


def config(data: bytes) -> None:
    """The configuration of a training, and changes of it."""
    from tk_spacy.workflows.train.config import train_options

    choices = Choices(data)
    changes: dict[str, Any] = {}
    names = config_names()
    for _ in range(choices.byte() % 3):
        changes[choices.of(names)] = choices.of(STRANGE)
    with folder() as place, bounded_memory():
        path = place / "training.cfg"
        path.write_bytes(choices.rest())
        try:
            train_options(path, changes)
        except UserError as error:
            refused(error)


def config_names() -> list[str]:
    """The names of all settings, and some that are none."""
    from tk_spacy.workflows.train.config_schema import SETTINGS

    return [*sorted(SETTINGS), "parsers.files.mine", "paths", "", "x.y"]


SMALL = """\
# sent_id = 1
1\tA\ta\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tbarks\tbark\tVERB\t_\t_\t0\troot\t_\t_

"""
VALUES = (
    "small.conllu", "none.conllu", "broken.conllu", "out.conllu", "folder", "model", "-", "none",
    "all", "", "0", "1", "-1", "2", "1e400", "nan", "99999999999999999999", "x", "a,b", "biaffine",
    "biaffine:seed=1", "spacy,sampling", "biaffine:networks=2", "a=b", "\u00e9\u200b", "x\ny",
    "text", "conllu", "vertical", "quick", "paper", "UPOS", "json", "../x",
)  # fmt: skip
RUN = {"train", "train-parser", "demo", "benchmark"}
"""Commands that may train for minutes where all is right: they are given no file that is."""


def option_names(command: str) -> list[str]:
    """The options of a command."""
    import typer

    from tk_spacy.cli.app import app

    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    return sorted(
        name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)
    )


def options(data: bytes) -> None:
    """The command line: it ends with 0, 1 or 2, and where it fails, it says why."""
    from tk_spacy.cli.app import COMMANDS

    choices = Choices(data)
    command = choices.of(sorted(COMMANDS))
    names = option_names(command)
    values = VALUES if command not in RUN else [v for v in VALUES if v != "small.conllu"]
    args = [command]
    for _ in range(choices.byte() % 8):
        args.append(choices.of(names) if choices.byte() % 2 else choices.of(values))
    if command in RUN:
        # What would be trained on is not there, whatever else is said.
        args.append("--no-such-option" if command in ("demo", "benchmark") else "none.conllu")
    code, text = run(args)
    if code not in (0, 1, 2):
        raise Finding(f"{args} ends with {code}")
    if code and not text.strip():
        raise Finding(f"{args} fails and says nothing")
    if "Traceback" in text:
        raise Finding(f"{args} shows a traceback: {text}")


def run(args: Sequence[str]) -> tuple[object, str]:
    """The exit code of a command line, and what it wrote to stderr."""
    from tk_spacy.cli.app import main

    before = Path.cwd()
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with folder() as place, bounded_memory():
        (place / "small.conllu").write_text(SMALL, encoding="utf-8")
        (place / "broken.conllu").write_text("1\tA\n", encoding="utf-8")
        (place / "folder").mkdir()
        stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b"1\tA\n"))
        os.chdir(place)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main(list(args))
        except SystemExit as end:
            code: object = end.code or 0
        else:
            code = "no exit"
        finally:
            os.chdir(before)
            sys.stdin = stdin
    err.flush()
    said: bytes = err.buffer.getvalue()  # type: ignore[attr-defined]
    return code, said.decode(errors="replace")


SEEDS = Path(__file__).parent / "fuzz_seeds"
"""Inputs to begin with, and those that were findings: a folder a target."""
TARGETS = ("conllu", "kbest", "models", "config", "options")


def target(name: str, models: Path | None = None) -> Callable[[bytes], None]:
    """A target by its name.  models: where `make_models` has made them, for "models" alone."""
    if name == "models":
        assert models is not None
        return Models(models)
    found: Callable[[bytes], None] = {
        "conllu": conllu, "kbest": kbest, "config": config, "options": options,
    }[name]  # fmt: skip
    return found


def seeds(name: str) -> list[Path]:
    """The inputs to begin with."""
    return sorted((SEEDS / name).glob("*")) + (
        sorted((Path(__file__).parent / "broken").glob("*.conllu")) if name == "conllu" else []
    )
