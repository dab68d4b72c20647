"""The targets of `fuzz.py`, on the inputs that fuzzing begins with and those that were findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fuzz_targets
import pytest
from fuzz_targets import Choices, Finding, changed

from tk_spacy.errors import UserError
from tk_spacy.utils.serialization import from_npz, to_npz

PLAIN = [name for name in fuzz_targets.TARGETS if name != "models"]


def inputs() -> Iterator[object]:
    for name in PLAIN:
        for path in fuzz_targets.seeds(name):
            yield pytest.param(name, path, id=f"{name}-{path.name}")


@pytest.mark.parametrize(("name", "path"), list(inputs()))
def test_inputs(name: str, path: Path) -> None:
    fuzz_targets.target(name)(path.read_bytes())


@pytest.mark.slow
def test_models(tmp_path: Path) -> None:
    fuzz_targets.make_models(tmp_path)
    target = fuzz_targets.target("models", tmp_path)
    for path in fuzz_targets.seeds("models"):
        target(path.read_bytes())


def test_a_finding_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: object, **_: object) -> list[object]:
        raise UserError("")

    monkeypatch.setattr(fuzz_targets, "read_conllu", broken)
    with pytest.raises(Finding, match="a refusal of 0 lines"):
        fuzz_targets.conllu(b"x")
    monkeypatch.setattr(fuzz_targets, "read_conllu", lambda path, **_: {}["x"])
    with pytest.raises(KeyError):
        fuzz_targets.conllu(b"x")
    monkeypatch.setattr(fuzz_targets, "run", lambda args: (3, "said"))
    with pytest.raises(Finding, match="ends with 3"):
        fuzz_targets.options(b"")
    monkeypatch.setattr(fuzz_targets, "run", lambda args: (1, ""))
    with pytest.raises(Finding, match="says nothing"):
        fuzz_targets.options(b"")


def test_changes_of_files() -> None:
    assert changed(b"abcdef", "x", Choices(bytes([0]) + b"new")) == b"new"
    # Byte 2, of which 3 are cut away.
    assert changed(b"abcdef", "x", Choices(bytes([1, 0, 2, 3]) + b"new")) == b"abnewf"
    import numpy as np

    content = to_npz({"a": np.arange(3, dtype=np.uint8)})
    values = changed(content, "a.npz", Choices(bytes([2, 0, 0, 0, 1, 9])))
    assert from_npz(values)["a"].tolist() == [0, 9, 2]
    part = changed(content, "a.npz", Choices(bytes([2, 0, 3, 0, 2])))
    assert from_npz(part)["a"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="too much for 3 bytes"):
        from_npz(changed(content, "a.npz", Choices(bytes([2, 0, 2, 1, 0, 4]))))
    as_json = changed(b'{"a": [1, 2]}', "a.json", Choices(bytes([2, 1, 0, 0, 1, 0, 1, 0, 0, 7])))
    assert as_json == b'{"a": [1, 7]}'
