"""The column DEPS beside new trees."""

import json
from pathlib import Path

import pytest
from samples import ODD, PLAIN
from test_cli import invoke
from trainings import list_files, lists_training, parser_training

from tk_spacy.cli.file_commands import deps_notes
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.treebank.conllu import Sentence, load_treebank, read_conllu
from tk_spacy.treebank.enhanced import (
    DepsColumn,
    DepsCount,
    count_contradicting,
    without_empty_nodes,
)
from tk_spacy.workflows.files.batch import parse_files

GAPPING = """\
# sent_id = gap
# text = Sue likes tea and Bob milk
1\tSue\tSue\tPROPN\tX\t_\t2\tnsubj\t2:nsubj\t_
2\tlikes\tlike\tVERB\tX\t_\t0\troot\t0:root\t_
3\ttea\ttea\tNOUN\tX\t_\t2\tobj\t2:obj\t_
4\tand\tand\tCCONJ\tX\t_\t5\tcc\t5.1:cc\t_
5\tBob\tBob\tPROPN\tX\t_\t2\tconj\t5.1:nsubj\t_
5.1\tlikes\tlike\tVERB\tX\t_\t_\t_\t2:conj\tCopyOf=2
6\tmilk\tmilk\tNOUN\tX\t_\t5\torphan\t5.1:obj\t_

"""
"""An empty node takes the place of the verb that is left out."""


def read(tmp_path: Path, text: str) -> Sentence:
    path = tmp_path / "in.conllu"
    path.write_bytes(text.encode())
    (sentence,) = read_conllu(path)
    return sentence


def column(text: str, number: int) -> list[str]:
    rows = [line.split("\t") for line in text.splitlines() if "\t" in line]
    return [row[number] for row in rows]


def test_deps_blank_leaves_a_file_that_is_right(tmp_path: Path) -> None:
    deps = DepsColumn("blank")
    text = deps(read(tmp_path, GAPPING)).to_conllu()
    lines = GAPPING.splitlines(keepends=True)
    expected = [line for line in lines if not line.startswith("5.1")]
    expected = [
        "\t".join((*(row := line.split("\t"))[:8], "_", row[9])) if "\t" in line else line
        for line in expected
    ]
    assert text == "".join(expected)
    assert (deps.count.replaced, deps.count.empty_nodes, deps.count.contradicting) == (6, 1, 0)


def test_deps_copy_are_the_new_arcs(tmp_path: Path) -> None:
    sentence = read(tmp_path, GAPPING).with_tree(
        [2, 0, 2, 6, 6, 2], ["nsubj", "root", "obj", "cc", "nmod", "conj"]
    )
    text = DepsColumn("copy")(sentence).to_conllu()
    assert column(text, 8) == ["2:nsubj", "0:root", "2:obj", "6:cc", "6:nmod", "2:conj"]
    assert "5.1" not in column(text, 0)


def test_deps_keep_changes_nothing(tmp_path: Path) -> None:
    for text in (GAPPING, ODD, PLAIN, ODD.replace("\n", "\r\n")):
        assert DepsColumn("keep")(read(tmp_path, text)).to_conllu() == text


def test_deps_mixed_line_ends_stay_with_their_lines(tmp_path: Path) -> None:
    lines = ODD.splitlines(keepends=True) if "\u2028" not in ODD else ODD.split("\n")[:-1]
    for crlf in range(len(lines) - 1):
        ends = ["\r\n" if i == crlf else "\n" for i in range(len(lines))]
        text = "".join(line + end for line, end in zip(lines, ends, strict=True))
        kept = "".join(
            line + end
            for line, end in zip(lines, ends, strict=True)
            if not line.startswith(("4.1", "4.2"))
        )
        assert without_empty_nodes(read(tmp_path, text)).to_conllu() == kept
    # The last line is an empty node, and one with the file's last bytes at that.
    cut = GAPPING.split("6\t", maxsplit=1)[0]
    for text in (cut, cut[:-1], cut[:-1].replace("\n", "\r\n", 3)):
        found = without_empty_nodes(read(tmp_path, text)).to_conllu()
        assert found.rstrip("\r\n") == text[: text.index("5.1\t")].rstrip("\r\n")


def test_deps_contradict_where_the_new_arc_is_not_among_them(tmp_path: Path) -> None:
    before = read(tmp_path, GAPPING.replace("2:obj", "1:dep|2:obj:in"))
    # The gold tree's own DEPS leave arcs out; they are no contradiction as long as the tree stays.
    assert count_contradicting(before, before) == 0
    assert count_contradicting(before) == 3  # 4, 5 and 6 hang on the empty node
    moved = before.with_tree([2, 0, 1, 5, 2, 5], ["nsubj", "root", "dep", "cc", "conj", "orphan"])
    assert count_contradicting(moved, before) == 0  # 1:dep is among them
    relabelled = before.with_tree(
        [2, 0, 2, 5, 2, 5], ["obj", "root", "obj", "cc", "conj", "orphan"]
    )
    assert count_contradicting(relabelled, before) == 1  # 2:nsubj is not 2:obj
    swapped = before.with_tree([2, 0, 2, 5, 2, 3], ["nsubj", "root", "obj", "cc", "conj", "nmod"])
    assert count_contradicting(swapped, before) == 1
    blank = DepsColumn("blank")(before)
    assert count_contradicting(blank.with_tree(swapped.heads, swapped.deprels), blank) == 0


def test_deps_validator_agrees(tmp_path: Path) -> None:
    """UD's own validator takes what blank writes, and refuses an empty node that hangs nowhere."""
    validator = pytest.importorskip("udtools.validator", reason="udtools is not installed")
    sentence = read(tmp_path, GAPPING)
    written = {
        "blank": DepsColumn("blank")(sentence).to_conllu(),
        "node kept": GAPPING.replace("2:conj", "_"),
    }
    rows = [line.split("\t") for line in written["node kept"].splitlines(keepends=True)]
    for row in rows:
        if len(row) == 10:
            row[8] = "_"
    written["node kept"] = "".join("\t".join(row) for row in rows)
    found = {}
    for name, text in written.items():
        path = tmp_path / f"{name}.conllu"
        path.write_text(text, encoding="utf-8")
        state = validator.Validator(lang="en", level=2).validate_files([str(path)])
        found[name] = any(item.testid == "unconnected-egraph" for item in state.error_tracker)
    assert found == {"blank": False, "node kept": True}


def test_deps_mode_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="deps must be one of blank, keep, copy, got 'drop'"):
        DepsColumn("drop")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="deps is 'drop'; choose from blank, keep, copy"):
        parse_files(tmp_path, [tmp_path], tmp_path / "out", deps="drop")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["compact", "expanded"])
def test_deps_of_lists(tmp_path: Path, form: str) -> None:
    sentence = read(tmp_path, GAPPING)
    inventory = LabelInventory()
    trees = [
        (heads, ("dep",) * heads.index(0) + ("root",) + ("dep",) * (5 - heads.index(0)), score)
        for heads, score in (([2, 0, 2, 2, 2, 2], 2.0), ([0, 1, 1, 1, 1, 1], 1.0))
    ]
    lists = CandidateList.build(trees, inventory=inventory, sources=("a",))
    file = tmp_path / "out.conllu"
    write_kbest(file, [(sentence, lists)], form=form)  # type: ignore[arg-type]
    assert "5.1\tlikes" in file.read_text(encoding="utf-8")  # the library keeps them
    deps = DepsColumn("copy")
    write_kbest(file, [(sentence, lists)], form=form, deps=deps)  # type: ignore[arg-type]
    text = file.read_text(encoding="utf-8")
    found = column(text, 8)
    assert found[:6] == ["2:dep", "0:root", "2:dep", "2:dep", "2:dep", "2:dep"]
    assert found[6:] == ([] if form == "compact" else ["0:root"] + ["1:dep"] * 5)
    assert deps.count.empty_nodes == 1  # once, however many trees
    ((again, read_back),) = read_kbest(file, inventory=inventory)
    assert read_back.heads.tolist() == lists.heads.tolist()
    assert len(again) == 6


def test_notes_of_deps_count_only_what_there_was() -> None:
    rest = ", as they belong to other trees (--deps keep keeps them)"
    for count, deps, says in [
        (DepsCount(2, 1), "blank", "DEPS of 2 words are blank now, and 1 empty node left out"),
        (DepsCount(1), "copy", "DEPS of 1 word are copies of their new arcs now"),
        (DepsCount(0, 60), "blank", "60 empty nodes left out"),
    ]:  # fmt: skip
        assert deps_notes(count, deps) == [says + rest]
    assert deps_notes(DepsCount(), "blank") == []


# Commands


COMMANDS = ("parse", "rerank", "kbest")


@pytest.mark.parametrize("command", COMMANDS)
def test_cli_deps(tmp_path: Path, command: str) -> None:
    model = parser_training()[0]
    source = tmp_path / "in.conllu"
    source.write_text(GAPPING, encoding="utf-8")
    out = tmp_path / "out.conllu"
    result = invoke(command, model, source, "-o", out)
    assert result.exit_code == 0, result.output
    text = out.read_text(encoding="utf-8")
    assert column(text, 8) == ["_"] * 6
    note = " ".join(result.stderr.split())
    assert "DEPS of 6 words are blank now, and 1 empty node left out" in note
    # All but the columns HEAD, DEPREL and DEPS is as it was.
    given = [row for row in GAPPING.splitlines() if "\t" in row and not row.startswith("5.1")]
    for number in (0, 1, 2, 3, 4, 5, 9):
        assert column(text, number) == [row.split("\t")[number] for row in given]
    result = invoke(command, model, source, "-o", out, "--deps", "copy")
    text = out.read_text(encoding="utf-8")
    arcs = zip(column(text, 6), column(text, 7), strict=True)
    assert column(text, 8) == [f"{head}:{deprel}" for head, deprel in arcs]
    result = invoke(command, model, source, "-o", out, "--deps", "keep", "--quiet")
    text = out.read_text(encoding="utf-8")
    assert column(text, 8) == column(GAPPING, 8)
    assert "DEPS" not in result.stderr
    result = invoke(command, model, source, "-o", out, "--deps", "drop")
    assert result.exit_code == 2
    assert "--deps drop: choose from blank, keep, copy" in result.stderr
    source.write_text(PLAIN, encoding="utf-8")
    result = invoke(command, model, source, "-o", out)
    assert "DEPS" not in result.stderr  # there were none


def test_cli_deps_kept_that_contradict_are_told_once(tmp_path: Path) -> None:
    model = parser_training()[0]
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        text = GAPPING.replace("2:nsubj", "6:x").replace("\t2\tnsubj", "\t6\tx")
        (tmp_path / "in" / f"{name}.conllu").write_text(text, encoding="utf-8")
    result = invoke("parse", model, tmp_path / "in", "-o", tmp_path / "out", "--deps", "keep")
    note = " ".join(result.stderr.split())
    assert note.count("do not hold their new arc") == 1
    shown = invoke(
        "parse", model, tmp_path / "in", "-o", tmp_path / "out", "--deps", "keep", "--overwrite",
        "--json",
    )  # fmt: skip
    document = json.loads(shown.stdout)
    (note,) = [note for note in document["notes"] if "DEPS" in note]
    counted = [row["deps"]["contradicting"] for row in document["files"]]
    assert sum(counted) == document["total"]["deps"]["contradicting"] > 0
    assert note.startswith(f"DEPS of {sum(counted)} words")


def test_cli_deps_of_ready_lists(tmp_path: Path) -> None:
    """`rerank` of a k-best file whose DEPS were kept."""
    source = tmp_path / "in.conllu"
    sentences = load_treebank(list_files()["test"], trees="any")
    text = list_files()["test"].read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    for row in rows:
        if len(row) == 10:
            row[8] = "0:wrong"
    source.write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")
    words = sum(map(len, sentences))
    out = tmp_path / "out.conllu"
    result = invoke("rerank", lists_training()[0], source, "-o", out)
    assert set(column(out.read_text(encoding="utf-8"), 8)) == {"_"}
    assert f"DEPS of {words} words are blank now" in result.stderr
    result = invoke("rerank", lists_training()[0], source, "-o", out, "--deps", "keep")
    assert f"DEPS of {words} words do not hold their new arcs" in result.stderr
