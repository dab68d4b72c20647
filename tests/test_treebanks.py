"""Folders and files as treebanks: which files they stand for, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memorising_parser import gold_sentences
from treebank_folders import write_folder

from tk_spacy.errors import UserError
from tk_spacy.treebank.conllu import write_conllu
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.treebanks import find_training_set, find_treebank


def options(*train: Path, **changes: Any) -> TrainOptions:
    given = {"output": train[0].parent / "model", "parsers": ("sampling",), "tags": "gold"}
    return TrainOptions(train=train, **{**given, **changes})


def names(files: dict[str, tuple[Path, ...]]) -> dict[str, list[str]]:
    return {part: [path.name for path in found] for part, found in files.items()}


def test_treebanks_folder_stands_for_its_files_by_their_names(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_Greek-GDT", start=0, stem="el_gdt", train=4, dev=2, test=2)
    for other in ("README.md", "LICENSE.txt", "stats.xml", "el_gdt-ud-train.txt", "notes.conllu"):
        (folder / other).write_text("not a part", encoding="utf-8")
    (folder / "old-ud-train.conllu").mkdir()  # no file, whatever its name
    found = find_training_set(options(folder))
    assert found.files == {
        part: (folder / f"el_gdt-ud-{part}.conllu",) for part in ("train", "dev", "test")
    }
    assert found.title == "UD_Greek-GDT"
    assert not found.cross_validation
    assert not found.splits_train
    assert found.notes == (
        f"{folder}: train el_gdt-ud-train.conllu, dev el_gdt-ud-dev.conllu, test "
        "el_gdt-ud-test.conllu",
    )


def test_treebanks_plain_names_and_pieces(tmp_path: Path) -> None:
    plain = write_folder(tmp_path / "plain", start=0, stem=None, train=4, dev=2)
    assert names(dict(find_treebank(plain).files)) == {
        "train": ["train.conllu"], "dev": ["dev.conllu"],
    }  # fmt: skip
    assert find_treebank(plain).name == "plain"
    pieces = write_folder(tmp_path / "UD_P", start=20, stem="cs_pdt", dev=2)
    for piece in ("m", "c", "l"):
        (pieces / f"cs_pdt-ud-train-{piece}.conllu").touch()
    assert names(dict(find_treebank(pieces).files))["train"] == [
        "cs_pdt-ud-train-c.conllu", "cs_pdt-ud-train-l.conllu", "cs_pdt-ud-train-m.conllu",
    ]  # fmt: skip


@pytest.mark.parametrize("names_of_pieces", [("1", "2"), ("_a", "_b"), ("-part1", "-part2")])
def test_treebanks_pieces_however_they_are_numbered(
    tmp_path: Path, names_of_pieces: tuple[str, str]
) -> None:
    folder = write_folder(tmp_path / "UD_P", start=20, stem="x_p", dev=2)
    pieces = [f"x_p-ud-train{piece}.conllu" for piece in names_of_pieces]
    for piece in pieces:
        (folder / piece).touch()
    (folder / "._x_p-ud-train3.conllu").touch()  # of macOS, about another file
    assert names(dict(find_treebank(folder).files))["train"] == pieces


def test_treebanks_packed_files(tmp_path: Path) -> None:
    folder = tmp_path / "UD_P"
    folder.mkdir()
    (folder / "x_p-ud-train.conllu.gz").touch()
    with pytest.raises(
        UserError, match=r"holds no treebank: .* as x_p-ud-train\.conllu\.gz is; unp"
    ):
        find_treebank(folder)


@pytest.mark.parametrize(
    ("folder", "readme", "name"),
    [
        ("UD_A-B", "# UD_C-D\n", "UD_A-B"),
        ("checkout", "# UD_C-D\n\nlike UD_E-F\n", "UD_C-D"),
        ("checkout", "# Summary\n\nThe UD French-FTB is, like UD_E-F, free.\n", "UD_French-FTB"),
        ("checkout", "# Summary\n\nUD_Old_French-X1 and UD French-FTB\n", "UD_Old_French-X1"),
        ("checkout", "# Summary\n\nA treebank of UD 2.5\n", "x_syn"),
        ("checkout", None, "x_syn"),
    ],
)
def test_treebanks_name_is_the_folder_s_or_the_readme_s(
    tmp_path: Path, folder: str, readme: str | None, name: str
) -> None:
    made = write_folder(tmp_path / folder, start=0, train=4)
    if readme is not None:
        (made / "README.md").write_text(readme, encoding="utf-8")
    assert find_treebank(made).name == name


def test_treebanks_given_parts_go_before_the_folder_s(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=4, dev=2, test=2)
    dev = tmp_path / "mine.conllu"
    write_conllu(dev, gold_sentences(2, start=50))
    found = find_training_set(options(folder, dev=dev))
    assert found.files["dev"] == (dev,)
    assert names(dict(found.files))["test"] == ["x_syn-ud-test.conllu"]
    assert f"dev {dev} in place of its own" in found.notes[0]


def test_treebanks_file_is_train_alone(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=4, dev=2)
    found = find_training_set(options(folder / "x_syn-ud-train.conllu"))
    assert list(found.files) == ["train"]
    assert found.splits_train
    assert found.title == "UD_A"
    # Whoever names it alone may not know that a dev file lies beside it.
    assert [note.split(":")[0] for note in found.notes] == [str(folder / "x_syn-ud-dev.conllu")]


def test_treebanks_several_are_one_training_set(tmp_path: Path) -> None:
    a = write_folder(tmp_path / "UD_A", start=0, train=4, dev=2, test=2)
    b = write_folder(tmp_path / "UD_B", start=20, train=4, test=3)
    c = write_folder(tmp_path / "UD_C", start=40, test=3)
    found = find_training_set(options(a, b, c))
    assert {part: len(files) for part, files in found.files.items()} == {
        "train": 2, "dev": 1, "test": 3,
    }  # fmt: skip
    assert found.title == "UD_A + UD_B"  # those that are learnt from
    assert found.notes[3:] == (
        "one training set of 3 treebanks: train of 2, dev of 1, test of 3 files",
        "nothing is learnt from UD_C: no train file",
        "nothing of UD_B, UD_C is in dev: no dev file",
    )


@pytest.mark.parametrize(
    ("parts", "changes", "crossed"),
    [
        ({"test": 5}, {}, True),
        ({"test": 5}, {"cross_validation": False}, False),
        ({"train": 5}, {}, False),
        ({"train": 5}, {"cross_validation": True}, True),
        ({"train": 5}, {"folds": 3, "asked": frozenset({"folds"})}, True),
        ({"train": 5}, {"folds": 3}, False),
        ({"train": 5, "test": 2}, {"folds": 3, "asked": frozenset({"folds"})}, False),
        ({"train": 5, "dev": 2}, {"folds": 3, "asked": frozenset({"folds"})}, False),
    ],
)
def test_treebanks_that_are_cross_validated(
    tmp_path: Path, parts: dict[str, int], changes: dict[str, Any], crossed: bool
) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, **parts)
    found = find_training_set(options(folder, **changes))
    assert found.cross_validation is crossed
    if parts.keys() == {"test"}:
        assert names(dict(found.files)) == {"train": ["x_syn-ud-test.conllu"]}
        assert any("is learnt from, as there is no train file" in note for note in found.notes)


# What is refused


def _two_files(folder: Path) -> None:
    write_folder(folder, start=0, train=4)
    write_conllu(folder / "y_syn-ud-train.conllu", gold_sentences(4, start=9))


def _plain_beside(folder: Path) -> None:
    write_folder(folder, start=0, train=4)
    write_conllu(folder / "train.conllu", gold_sentences(4, start=9))


def _piece_beside(folder: Path) -> None:
    write_folder(folder, start=0, train=4)
    write_conllu(folder / "x_syn-ud-train-a.conllu", gold_sentences(4, start=9))


def _other_dev(folder: Path) -> None:
    write_folder(folder, start=0, train=4)
    write_conllu(folder / "y_syn-ud-dev.conllu", gold_sentences(4, start=9))


def _other_name(folder: Path) -> None:
    folder.mkdir()
    write_conllu(folder / "all.conllu", gold_sentences(4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.mkdir, "holds no treebank: no file in it is called train.conllu"),
        (_two_files, "holds several treebanks (x_syn-ud-train.conllu, y_syn-ud-train.conllu)"),
        (_plain_beside, "holds several treebanks (train.conllu, x_syn-ud-train.conllu)"),
        (_other_dev, "holds several treebanks (x_syn-ud-train.conllu, y_syn-ud-dev.conllu)"),
        (_piece_beside, "both x_syn-ud-train.conllu and a piece of it, x_syn-ud-train-a.conllu"),
        (_other_name, "(but all.conllu); name the file itself"),
        (lambda folder: write_folder(folder / "UD_A", start=0, train=4), "such as UD_A; name"),
        (lambda folder: write_folder(folder, start=0, dev=4), "has no train file, only dev;"),
        (
            lambda folder: write_folder(folder, start=0, dev=4, test=4),
            "has no train file, only dev and test; name the file to learn from itself",
        ),
    ],
)
def test_treebanks_folders_that_are_none(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    folder = tmp_path / "folder"
    make(folder)
    with pytest.raises(UserError) as error:
        find_training_set(options(folder))
    assert str(error.value).startswith(str(folder))
    assert message in str(error.value)


def test_treebanks_named_twice(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=4, dev=2)
    again = tmp_path / "elsewhere" / ".." / "UD_A"
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(UserError, match="named twice; leave one out"):
        find_training_set(options(folder, again))
    copy = tmp_path / "copy.conllu"
    copy.write_bytes((folder / "x_syn-ud-train.conllu").read_bytes())
    with pytest.raises(UserError, match=r"^.*copy.conllu: is the same as .*, and both are train"):
        make_plan(options(folder, copy))
    copy.write_bytes((folder / "x_syn-ud-dev.conllu").read_bytes())
    with pytest.raises(UserError, match="dev is the same as train; scores on it would mean"):
        make_plan(options(folder, copy))


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links")
def test_treebanks_link_that_leads_nowhere(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=4, test=2)
    (folder / "x_syn-ud-dev.conllu").symlink_to("gone.conllu")
    with pytest.raises(UserError, match=r"x_syn-ud-dev\.conllu: cannot read it"):
        make_plan(options(folder))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_treebanks_folder_that_cannot_be_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=4)
    folder.chmod(0)
    try:
        with pytest.raises(UserError, match="UD_A: cannot read it: Permission denied"):
            find_training_set(options(folder))
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cross_validation": True}, "cross_validation would have no effect: there is a dev part"),
        ({"parser_files": {"t": {"train": Path("t")}}, "parsers": ("sampling", "file:t")},
         "needs its trees of dev"),
        ({"test_candidates": Path("t")}, "candidates for test are given, but no test treebank"),
    ],
)  # fmt: skip
def test_treebanks_options_that_do_not_fit_a_folder(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=20, dev=2)
    with pytest.raises(UserError, match=message):
        make_plan(options(folder, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"candidates": Path("lists")},
        {"parser_files": {"t": {"train": Path("t")}}, "parsers": ("sampling", "file:t")},
    ],
)
def test_treebanks_lists_need_a_dev_file(changes: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="no dev is given, and a tenth of train cannot take"):
        TrainOptions(train=Path("t"), output=Path("m"), **{"parsers": ("sampling",), **changes})


def test_treebanks_of_none() -> None:
    with pytest.raises(UserError, match="train is empty; name at least one file"):
        TrainOptions(train=(), output=Path("m"))


def test_treebanks_output_that_holds_the_treebank(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model" / "UD_A", start=0, train=20, dev=2)
    (tmp_path / "model" / "meta.json").write_text('{"format_version": 1}', encoding="utf-8")
    with pytest.raises(UserError, match="lies in the output"):
        make_plan(options(folder, output=tmp_path / "model", overwrite=True))
    # A model below the treebank's folder harms nothing.
    plan = make_plan(options(folder, output=folder / "model", folds=2))
    assert plan.parts.keys() == {"train", "dev"}


def test_treebanks_models_in_their_folder_are_no_part_of_them(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "UD_A", start=0, train=20, dev=2)
    before = find_training_set(options(folder))
    # A model and its work, and one that is called as a part would be.
    for name in ("model", "model.work/folds", "x_syn-ud-test.conllu"):
        write_folder(folder / name, start=50, train=3, test=3)
        write_folder(folder / name / "tk_biaffine", start=60, stem=None, train=3, dev=3, test=3)
    (folder / "model" / "README.md").write_text("# UD_Other-X\n", encoding="utf-8")
    again = find_training_set(options(folder, output=folder / "model-2"))
    assert again == before
    assert make_plan(options(folder, output=folder / "model-2", folds=2)).title == "UD_A"
