"""Directories are replaced as a whole, and never those that hold something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tk_spacy.errors import UserError
from tk_spacy.utils import atomic_files
from tk_spacy.utils.atomic_files import exchange, replace_directory

OURS = '{"format_version": 1}'


def write(path: Path) -> None:
    with replace_directory(path) as directory:
        (directory / "new").write_text("new")


def names(path: Path) -> list[str]:
    return sorted(child.name for child in path.iterdir())


def make(path: Path, **files: str) -> Path:
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)
    return path


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"meta__json": OURS, "weights__npz": ""},
        {"meta__json": '{"spacy_version": ">=3.8"}', "tokenizer": ""},
        {"meta__json": '{"format_ver'},  # cut short: a damaged model may be written anew
        {"training__json": "{}", "weights__npz": ""},  # a training that is kept
    ],
)
def test_files_replace_what_is_ours(tmp_path: Path, files: dict[str, str]) -> None:
    write(make(tmp_path / "model", **files))
    assert names(tmp_path) == ["model"]
    assert names(tmp_path / "model") == ["new"]


def test_files_replace_a_component_of_a_pipeline(tmp_path: Path) -> None:
    make(tmp_path / "pipeline", meta__json='{"spacy_version": ">=3.8"}')
    write(make(tmp_path / "pipeline" / "parser", moves="", cfg=""))
    assert names(tmp_path / "pipeline" / "parser") == ["new"]


@pytest.mark.parametrize(
    "files",
    [
        {"thesis__tex": ""},
        {"meta__json": "{}", "precious": ""},
        {"meta__json": '["format_version"]'},
    ],
)
def test_files_never_replace_what_is_not(tmp_path: Path, files: dict[str, str]) -> None:
    home = make(tmp_path / "home", **files)
    before = names(home)
    with pytest.raises(UserError, match="home: holds something other than a model"):
        write(home)
    assert names(tmp_path) == ["home"]
    assert names(home) == before


@pytest.mark.parametrize("place", [".", "", "..", "../../model"])
def test_files_never_replace_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    inside = make(make(tmp_path / "model", meta__json=OURS) / "inside", meta__json=OURS)
    monkeypatch.chdir(inside)
    with pytest.raises(UserError, match="is, or holds, the current directory"):
        write(Path(place))
    assert names(inside) == ["meta.json"]


def test_files_of_two_writers_the_first_stays(tmp_path: Path) -> None:
    model = make(tmp_path / "model", meta__json=OURS)
    rename = Path.replace

    def hurry(self: Path, target: Path) -> Path:
        moved = rename(self, target)
        if self == model:
            make(model, other=OURS)
        return moved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atomic_files, "exchange", lambda *_: False)
        patch.setattr(Path, "replace", hurry)
        with pytest.raises(UserError, match="model: cannot be written: Directory not empty"):
            write(model)
    assert names(tmp_path) == ["model"]
    assert names(model) == ["other"]


def test_files_come_back_where_the_new_ones_cannot_take_their_place(tmp_path: Path) -> None:
    model = make(tmp_path / "model", meta__json=OURS)
    rename = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if target == model and self.suffix != ".old":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atomic_files, "exchange", lambda *_: False)
        patch.setattr(Path, "replace", fail)
        with pytest.raises(UserError, match="model: cannot be written: Input/output error"):
            write(model)
    assert names(tmp_path) == ["model"]
    assert names(model) == ["meta.json"]


def test_files_change_places_in_one_step(tmp_path: Path) -> None:
    old, new = make(tmp_path / "old", a="old"), make(tmp_path / "new", b="new")
    if not exchange(new, old):
        pytest.skip("this file system cannot")
    assert (names(old), names(new)) == (["b"], ["a"])
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "nowhere", old)


@pytest.mark.parametrize("in_one_step", [True, False])
def test_files_old_ones_make_room(
    tmp_path: Path, in_one_step: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(tmp_path / "model", meta__json=OURS)
    if not in_one_step:
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    write(model)
    assert names(tmp_path) == ["model"]
    assert names(model) == ["new"]
