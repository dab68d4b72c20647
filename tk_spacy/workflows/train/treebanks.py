"""Treebanks as they come: which files a folder of a Universal Dependencies release stands for.

A release has a folder for each treebank with LANGUAGE_NAME-ud-train.conllu, -ud-dev and -ud-test in
it; many have no dev, or a test file alone.  Some repositories keep train in pieces
(-ud-train-a.conllu, -ud-train-b.conllu).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.workflows.train.options import TrainOptions

PARTS = ("train", "dev", "test")
SHOWN = 3
"""Names that a title or a note spells out."""

_PART = re.compile(
    r"(?:(?P<stem>.+)-ud-)?(?P<part>train|dev|test)(?P<piece>(?<=-ud-train)[-_\d].*)?"
)
_HEADING = re.compile(r"^#+[ \t]*(UD_\w[\w-]*)", re.MULTILINE)
_NAME = re.compile(r"\bUD[_ ]([A-Z]\w*(?: [A-Z]\w*)?-[A-Z]\w*)")
_CALLED = "train.conllu, dev.conllu or test.conllu, or so after NAME-ud-"


@dataclass(frozen=True, slots=True)
class Treebank:
    """A treebank that the user named, as a folder or as a file to learn from.

    name: for tables.  folder: where its licence stands.  files: of the parts that it has, by their
    names.
    """

    path: Path
    name: str
    folder: Path
    files: Mapping[str, tuple[Path, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """The treebanks of one training and the files of its parts, joined.

    files: of train, and of dev and test where there are any.
    cross_validation: whether it is scored so.  notes: what was made of the folders, a line each.
    """

    treebanks: tuple[Treebank, ...]
    files: Mapping[str, tuple[Path, ...]]
    cross_validation: bool
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """The names of the treebanks that are learnt from."""
        learnt = [treebank for treebank in self.treebanks if "train" in treebank.files]
        names = list(dict.fromkeys(treebank.name for treebank in learnt or self.treebanks))
        if len(names) > SHOWN:
            return f"{names[0]} + {len(names) - 1} more"
        return " + ".join(names)

    def decided(self, options: TrainOptions) -> TrainOptions:
        """The options with what is known of cross-validation, where that can be a choice at all."""
        chosen = None if {"dev", "test"} & self.files.keys() else options.cross_validation
        return replace(options, cross_validation=self.cross_validation or chosen)

    @property
    def splits_train(self) -> bool:
        """Whether a part of train takes the place of dev."""
        return "dev" not in self.files and not self.cross_validation


def find_treebank(path: Path) -> Treebank:
    """The treebank in a folder, or of a file, which is train whatever it is called.

    Raises UserError where a folder holds none, or several, or cannot be read.
    """
    if not path.is_dir():
        return Treebank(path, _name_of_file(path), path.resolve().parent, {"train": (path,)})
    files = _parts_of_folder(path)
    folder = path.resolve()
    first = next(file for part in PARTS for file in files.get(part, ()))
    stem = _PART.fullmatch(first.stem)["stem"]  # type: ignore[index]  # it was found by this
    named = folder.name if folder.name.startswith("UD_") else _named_in_readme(folder)
    return Treebank(path, named or stem or folder.name, folder, files)


def find_training_set(options: TrainOptions) -> TrainingSet:
    """The files of a training.  Raises UserError where they make none."""
    treebanks = [find_treebank(path) for path in options.train_paths]
    _check_once([treebank.path for treebank in treebanks])
    files = {
        part: tuple(file for treebank in treebanks for file in treebank.files.get(part, ()))
        for part in PARTS
    }
    given = {"dev": options.dev, "test": options.test}
    files |= {part: (path,) for part, path in given.items() if path is not None}
    notes = list(_notes(treebanks, given))
    if not files["train"]:
        where = options.train_paths[0]
        if files["dev"] or options.test is not None:
            found = " and ".join(part for part in ("dev", "test") if treebanks[0].files.get(part))
            raise UserError(
                f"{where}: has no train file, only {found}; name the file to learn from itself"
            )
        # A treebank too small to be divided: all of it is what there is to learn from.
        files["train"], files["test"] = files["test"], ()
        notes.append(
            f"{_shown(files['train'])}: is learnt from, as there is no train file; the model's "
            "scores on it mean nothing afterwards"
        )
        alone = True
    else:
        alone = not files["dev"] and not files["test"] and "folds" in options.asked
        if len(treebanks) > 1:
            notes += _joined_notes(treebanks, files)
    scored = [part for part in ("dev", "test") if files[part]]
    crossed = alone if options.cross_validation is None else options.cross_validation
    if crossed and scored:
        crossed = False
        reason = (
            f"would have no effect: there is a {scored[0]} part ({files[scored[0]][0]}); leave it "
            "out, or name the file to learn from alone"
        )
        # A config may be of a model that was trained without such a part.
        if (place := options.places.get("training.cross_validation")) is None:
            raise UserError(f"cross_validation {reason}")
        reason = reason.rpartition("; ")[0]
        notes.append(f"Not used: {place}: training.cross_validation {reason}")
    if not files["dev"] and not crossed:
        notes += _unused_dev(treebanks)
    return TrainingSet(
        treebanks=tuple(treebanks),
        files={part: found for part, found in files.items() if found},
        cross_validation=crossed,
        notes=tuple(notes),
    )


def _parts_of_folder(folder: Path) -> dict[str, tuple[Path, ...]]:
    """The files of a folder by part, pieces of train in the order of their names."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UserError(f"{folder}: cannot read it: {error.strerror}") from error
    found = [(path, _PART.fullmatch(path.stem)) for path in entries if _is_conllu(path)]
    named = [(path, match) for path, match in found if match]
    if not named:
        raise UserError(f"{folder}: holds no treebank: {_what_else(folder, entries)}")
    stems = {match["stem"]: path for path, match in named}
    if len(stems) > 1:
        one, other = list(stems.values())[:2]
        raise UserError(
            f"{folder}: holds several treebanks ({one.name}, {other.name}); name the files that "
            "are meant"
        )
    files: dict[str, tuple[Path, ...]] = {}
    for part in PARTS:
        here = [(path, match["piece"]) for path, match in named if match["part"] == part]
        if len({piece is None for _, piece in here}) > 1:
            whole = next(path for path, piece in here if piece is None)
            piece = next(path for path, piece in here if piece is not None)
            raise UserError(
                f"{folder}: holds both {whole.name} and a piece of it, {piece.name}; name the "
                "files that are meant"
            )
        if here:
            files[part] = tuple(path for path, _ in here)
    return files


def _is_conllu(path: Path) -> bool:
    """Whether a file is called so; a link that leads nowhere is, and fails when it is read.

    Hidden files are other programs' own, such as macOS's ._NAME.
    """
    return path.suffix == ".conllu" and not path.name.startswith(".") and not path.is_dir()


def _what_else(folder: Path, entries: Sequence[Path]) -> str:
    """Why a folder holds no treebank, and the cure."""
    others = [path.name for path in entries if _is_conllu(path)]
    if others:
        return f"no file in it is called {_CALLED} (but {others[0]}); name the file itself"
    packed = [path.name for path in entries if path.name.endswith((".conllu.gz", ".conllu.xz"))]
    if packed:
        return f"its files are packed, as {packed[0]} is; unpack them first"
    below = [path for path in entries if path.is_dir() and any(map(_is_conllu, path.glob("*")))]
    if below:
        return f"treebanks lie in folders of it, such as {below[0].name}; name these"
    return f"no file in it is called {_CALLED}; name a folder that has them"


def _check_once(paths: Sequence[Path]) -> None:
    seen: dict[Path, Path] = {}
    for path in paths:
        known = seen.setdefault(path.resolve(), path)
        if known is not path:
            raise UserError(f"{path}: is the same as {known}, named twice; leave one out")


def _notes(treebanks: Sequence[Treebank], given: Mapping[str, Path | None]) -> list[str]:
    """Which files each folder stands for."""
    notes = []
    for treebank in treebanks:
        if treebank.path.is_dir():
            shown = []
            for part in PARTS:
                files = treebank.files.get(part)
                if part in given and given[part] is not None and files:
                    shown.append(f"{part} {given[part]} in place of its own")
                else:
                    shown.append(f"{part} {_shown(files)}" if files else f"no {part}")
            notes.append(f"{treebank.path}: {', '.join(shown)}")
    return notes


def _joined_notes(
    treebanks: Sequence[Treebank], files: Mapping[str, tuple[Path, ...]]
) -> list[str]:
    """That several treebanks are one, and what each has no part in."""
    sizes = [f"{part} of {len(files[part])}" for part in PARTS if files[part]]
    notes = [f"one training set of {len(treebanks)} treebanks: {', '.join(sizes)} files"]
    unlearnt = [treebank.name for treebank in treebanks if "train" not in treebank.files]
    if unlearnt:
        notes.append(f"nothing is learnt from {', '.join(unlearnt)}: no train file")
    if files["dev"] and any("dev" in treebank.files for treebank in treebanks):
        without = [treebank.name for treebank in treebanks if "dev" not in treebank.files]
        if without:
            notes.append(f"nothing of {', '.join(without)} is in dev: no dev file")
    return notes


def _unused_dev(treebanks: Sequence[Treebank]) -> list[str]:
    """That a dev file lies beside a train file which was named alone."""
    notes = []
    for treebank in treebanks:
        beside = treebank.path.with_name(treebank.path.name.replace("train", "dev"))
        if not treebank.path.is_dir() and beside != treebank.path and beside.is_file():
            notes.append(f"{beside}: is not read; give it as dev, or its folder in place of train")
    return notes


def _shown(files: Sequence[Path] | None) -> str:
    names = [file.name for file in files or ()]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return " + ".join(names[:SHOWN]) + more


def _name_of_file(train: Path) -> str:
    """The treebank's name: its directory's where that is UD's or the file is train.conllu."""
    parent = train.resolve().parent.name
    if parent.startswith("UD_"):
        return parent
    return train.name.removesuffix(".conllu").removesuffix("train").rstrip("-_.") or parent


def _named_in_readme(folder: Path) -> str:
    """The treebank that a README is headed with, or names first; empty where there is none."""
    for path in sorted(folder.glob("README*")):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if found := _HEADING.search(text):
            return found[1]
        if found := _NAME.search(text):
            return f"UD_{found[1].replace(' ', '_')}"
    return ""
