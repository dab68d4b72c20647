"""`tk-spacy projectivize`: files with projective trees, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples import ODD, PLAIN
from test_cli import invoke
from test_cli_streams import piped

from tk_spacy.errors import UserError
from tk_spacy.trees.pseudo_projective import SCHEMES
from tk_spacy.workflows.projectivize import projectivize_files

# Word 7 hangs on word 2, over the root, with a multiword token, an empty node and DEPS.
HEARING = """\
# sent_id = hearing
# text = A hearing is scheduled on the issue today
1\tA\ta\tDET\t_\t_\t2\tdet\t2:det\t_
2\thearing\thearing\tNOUN\t_\t_\t4\tnsubj:pass\t4:nsubj:pass\t_
3\tis\tbe\tAUX\t_\t_\t4\taux:pass\t4:aux:pass\t_
4\tscheduled\tschedule\tVERB\t_\t_\t0\troot\t0:root\tSpaceAfter=No
4.1\tit\tit\tPRON\t_\t_\t_\t_\t4:obj\t_
5-6\tonthe\t_\t_\t_\t_\t_\t_\t_\t_
5\ton\ton\tADP\t_\t_\t7\tcase\t7:case\t_
6\tthe\tthe\tDET\t_\t_\t7\tdet\t7:det\t_
7\tissue\tissue\tNOUN\t_\t_\t2\tnmod\t2:nmod:on\t_
8\ttoday\ttoday\tNOUN\t_\t_\t4\tobl:tmod\t4:obl:tmod\t_

"""
# Words 4 and 5 leave 2 and 1, which scheme path cannot tell apart.
TWO_PATHS = "".join(
    f"{word}\tw\t_\t_\t_\t_\t{head}\t{label}\t_\t_\n"
    for word, head, label in
    [(1, 3, "nsubj"), (2, 3, "obj"), (3, 0, "root"), (4, 2, "nmod"), (5, 1, "acl")]
) + "\n"  # fmt: skip


def lifted(scheme: str, deps: str = "keep") -> str:
    """HEARING with its projective tree."""
    label = "nmod↑" if scheme == "path" else "nmod↑nsubj:pass"
    text = HEARING.replace("\t2\tnmod\t", f"\t4\t{label}\t")
    if scheme != "head":
        text = text.replace("\t4\tnsubj:pass\t", "\t4\tnsubj:pass↓\t")
    if deps == "blank":
        lines = [line.split("\t") for line in text.splitlines() if not line.startswith("4.1")]
        rows = [[*row[:8], "_", *row[9:]] if len(row) > 1 else row for row in lines]
        text = "".join("\t".join(row) + "\n" for row in rows)
    return text


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "in.conllu"
    file.write_bytes((ODD + HEARING + TWO_PATHS + PLAIN).encode())
    return file


@pytest.mark.parametrize("scheme", SCHEMES)
def test_cli_projectivize_there_and_back(source: Path, tmp_path: Path, scheme: str) -> None:
    source.write_bytes((ODD + HEARING + PLAIN.replace("\n", "\r\n")).encode())
    out, back = tmp_path / "out.conllu", tmp_path / "back.conllu"
    keep = ("--scheme", scheme, "--deps", "keep")
    assert invoke("projectivize", source, "-o", out, *keep).exit_code == 0
    wanted = ODD + lifted(scheme) + PLAIN.replace("\n", "\r\n")
    assert out.read_bytes().decode() == wanted
    assert invoke("projectivize", out, "-o", back, "--undo", *keep).exit_code == 0
    assert back.read_bytes() == source.read_bytes()


def test_cli_projectivize_blanks_deps_of_changed_sentences_alone(
    source: Path, tmp_path: Path
) -> None:
    source.write_bytes((ODD + HEARING).encode())
    out = tmp_path / "out.conllu"
    result = invoke("projectivize", source, "-o", out)
    assert out.read_bytes().decode() == ODD + lifted("path", "blank")
    assert "DEPS of 8 words are blank now, and 1 empty node left out" in result.stderr
    result = invoke("projectivize", source, "-o", out, "--overwrite", "--deps", "keep")
    assert "Warning: DEPS of 2 words do not hold their new arcs" in result.stderr
    invoke("projectivize", source, "-o", out, "--overwrite", "--deps", "copy", "--scheme", "head")
    assert "\t4\tnmod↑nsubj:pass\t4:nmod↑nsubj:pass\t" in out.read_text("utf-8")


@pytest.mark.parametrize(("scheme", "lost"), [("path", 1), ("head", 0), ("head+path", 0)])
def test_cli_projectivize_counts(source: Path, tmp_path: Path, scheme: str, lost: int) -> None:
    out = tmp_path / "out.conllu"
    result = invoke("projectivize", source, "-o", out, "--scheme", scheme, "--json", "-q")
    document = json.loads(result.stdout)
    assert document["scheme"] == scheme
    assert document["undo"] is False
    (file,) = document["files"]
    assert (file["input"], file["output"]) == (str(source), str(out))
    counts = {"sentences": 4, "changed": 2, "words": 22, "lifted": 3, "lost": lost}
    assert {name: file[name] for name in counts} == counts
    assert {name: document["total"][name] for name in counts} == counts
    undone = invoke(
        "projectivize", out, "-o", "-", "--undo", "--scheme", scheme, "--deps", "keep", "-q"
    )
    assert ("\t1\tnmod\t" in undone.stdout) == bool(lost)


@pytest.mark.parametrize(
    ("marked", "scheme", "other"),
    [
        ("nmod↑obl", "path", "head"),
        ("nmod↑obl↓", "path", "head+path"),
        ("nmod↑obl↓", "head", "head+path"),
        ("nmod↑", "head", "path"),
        ("nmod↓", "head", "head+path"),
        ("nmod↑", "head+path", "path"),
        ("nmod↑↓", "head+path", "path"),
    ],
)
def test_cli_projectivize_undo_refuses_marks_of_another_scheme(
    marked: str, scheme: str, other: str, tmp_path: Path
) -> None:
    (tmp_path / "in.conllu").write_text(HEARING.replace("\tnmod\t", f"\t{marked}\t"), "utf-8")
    result = invoke(
        "projectivize", tmp_path / "in.conllu", "-o", tmp_path / "out", "--undo", "--scheme", scheme
    )
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == (
        f"Error: {tmp_path / 'in.conllu'}:1: DEPREL of word 7 is {marked!r}, as the scheme {other} "
        f"marks arcs and {scheme} does not; undo it with that scheme (--scheme)"
    )
    assert not (tmp_path / "out").exists()
    # What no scheme writes is a parser's matter: its marks are cut.
    (tmp_path / "in.conllu").write_text(HEARING.replace("\tnmod\t", "\t↓nmod↑↑\t"), "utf-8")
    cut = invoke("projectivize", tmp_path / "in.conllu", "-o", "-", "--undo", "--scheme", scheme)
    assert cut.exit_code == 0, cut.output
    assert "\tnmod\t" in cut.stdout


def test_cli_projectivize_undo_counts_what_it_does_not_find(tmp_path: Path) -> None:
    text = PLAIN.replace("\tnsubj\t", "\tnsubj↑\t")
    result = piped(text.encode(), "projectivize", "-", "-o", tmp_path / "out", "--undo", "--json")
    document = json.loads(result.stdout)
    assert document["files"][0]["input"] == "standard input"
    assert [document["total"][name] for name in ("changed", "lifted", "lost")] == [1, 1, 1]
    assert (tmp_path / "out").read_text() == PLAIN


def test_cli_projectivize_undo_takes_trees_with_several_roots(tmp_path: Path) -> None:
    text = PLAIN.replace("\t2\tpunct\t", "\t0\tpunct↓\t")
    result = piped(text.encode(), "projectivize", "-", "-o", "-", "--undo", "-q")
    assert result.stdout == text.replace("↓", "")


def test_cli_projectivize_of_streams(source: Path) -> None:
    result = piped(source.read_bytes(), "projectivize", "-", "-o", "-", "--deps", "keep")
    assert lifted("path") in result.stdout
    assert "Lifted arcs, scheme path" in result.stderr
    assert "standard input" in result.stderr


def test_cli_projectivize_of_several_files_writes_all_or_none(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.conllu").write_bytes(source.read_bytes())
    (folder / "deep" / "b.conllu").write_text(PLAIN)
    out = tmp_path / "out"
    result = invoke("projectivize", folder, "-o", out)
    assert result.exit_code == 0, result.output
    assert "total" in result.stdout
    assert (out / "deep" / "b.conllu").read_text() == PLAIN
    (folder / "deep" / "b.conllu").write_text(PLAIN.replace("\t2\tpunct", "\t3\tpunct"))
    result = invoke("projectivize", folder, "-o", tmp_path / "none")
    assert result.exit_code == 1
    assert "b.conllu:4: word 3 is its own HEAD" in result.stderr
    assert not (tmp_path / "none").exists()


def test_cli_projectivize_refuses(source: Path, tmp_path: Path) -> None:
    out, twice = tmp_path / "out.conllu", tmp_path / "twice.conllu"
    assert invoke("projectivize", source, "-o", out).exit_code == 0
    before = out.read_bytes()
    result = invoke("projectivize", source, "-o", out)
    assert result.exit_code == 1
    assert "out.conllu: is there already; replaced only on demand (--overwrite)" in result.stderr
    result = invoke("projectivize", out, "-o", twice, "-q")
    assert result.exit_code == 1
    place = f"{out}:{len(ODD.encode().splitlines()) + 1}"
    reason = "DEPREL of word 2 is 'nsubj:pass↓', but ↑ and ↓ mark lifted arcs"
    assert result.stderr.startswith(f"Error: {place}: {reason}")
    assert result.stderr.count("\n") == 1
    assert not twice.exists()
    assert out.read_bytes() == before
    result = invoke("projectivize", source, "-o", twice, "--scheme", "paths")
    assert (result.exit_code, twice.exists()) == (2, False)
    assert "--scheme paths: choose from head, head+path, path" in result.stderr
    source.write_text("\n")
    assert "the file holds no sentence" in invoke("projectivize", source, "-o", twice).stderr


def test_projectivize_files_checks_its_arguments(source: Path, tmp_path: Path) -> None:
    for wrong, text in [
        ({"scheme": "x"}, "scheme is 'x'; choose from head, head\\+path, path"),
        ({"deps": "x"}, "deps is 'x'; choose from blank, keep, copy"),
    ]:
        with pytest.raises(UserError, match=text):
            projectivize_files([source], tmp_path / "out", **wrong)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no input is given"):
        projectivize_files([], tmp_path / "out")
    with pytest.raises(UserError, match="output would replace an input"):
        projectivize_files([source], source, overwrite=True)
