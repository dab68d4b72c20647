"""Notes on data that would be lost without a word, from every command that reads files."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from samples import PLAIN
from test_cli import invoke
from trainings import (
    list_files,
    lists_training,
    parser_training,
    sampling_training,
    treebank,
)

from tk_spacy.features.schema import Schema
from tk_spacy.treebank.conllu import Sentence, load_treebank, read_conllu
from tk_spacy.treebank.data_notes import (
    FilledColumns,
    no_label_note,
    part_notes,
    scored_notes,
    show_label,
    word_line,
)

Rows = Callable[[list[str]], None]


def changed(source: Path, target: Path, change: Rows) -> Path:
    """A copy of a file with each word's columns changed."""
    lines = [line.split("\t") for line in source.read_text(encoding="utf-8").splitlines()]
    for row in lines:
        if len(row) == 10:
            change(row)
    target.write_text("\n".join("\t".join(row) for row in lines) + "\n\n", encoding="utf-8")
    return target


def without(*columns: int) -> Rows:
    def blank(row: list[str]) -> None:
        for column in columns:
            row[column] = "_"

    return blank


def one_line(text: str) -> str:
    return " ".join(text.split())


# The notes themselves


def test_notes_on_the_parts_of_a_treebank(tmp_path: Path) -> None:
    path = tmp_path / "train.conllu"
    text = "# c\n# d\n1-2\tab" + "\t_" * 8 + "\n"
    text += "1\ta\tx\tX\tt\tA=b\t2\t_\t_\t_\n1.1\te" + "\t_" * 8 + "\n"
    text += "2\tb\tx\tX\tt\t_\t0\troot\t_\t_\n3\tc\tx\tX\tt\t_\t2\t_\t_\t_\n\n"
    path.write_text(text, encoding="utf-8")
    (train,) = load_treebank(path)
    assert [word_line(train, word) for word in (1, 2, 3)] == [4, 6, 7]
    dev = Sentence.from_columns(
        forms=["a", "b", "c", "d"], upos=["X"] * 4, heads=[2, 0, 2, 2],
        deprels=["new", "root", "new", "odd\u200b"],
    )  # fmt: skip
    notes = list(part_notes({"train": [train], "dev": [dev]}, {"train": path, "dev": "dev.conllu"}))
    assert notes == [
        f"{path}:4: DEPREL is '_' on 2 words, which is learnt as if it were a label; annotate "
        "them, or leave their sentences out",
        r"dev.conllu: 2 labels that training lacks, new, 'odd\u200b', on 3 of 4 words: no parser "
        "will give them, so these words count as wrong in LAS",
        "dev.conllu: no word has LEMMA, XPOS or FEATS, which the model has learnt to read: its "
        "trees will be worse; run a tagger first",
    ]
    assert (
        list(part_notes({"train": [train], "dev": [train]}, {"train": path, "dev": path}))
        == (notes[:1])
    )
    assert no_label_note([dev], "dev.conllu") is None


def test_notes_name_few_labels() -> None:
    deprels = [f"l{i}" for i in range(9)]
    sentence = Sentence.from_columns(
        forms=deprels, heads=[0, *range(1, 9)], deprels=deprels, upos=["X"] * 9
    )
    (note,) = scored_notes([sentence], "x", labels={"l0"}, columns=["UPOS"])
    assert note.startswith("x: 8 labels that training lacks, l1, l2, l3, l4, l5 and 3 more, on 8")
    assert [show_label(label) for label in ("a:b", "a b", "a\xa0b")] == ["a:b", "a b", r"'a\xa0b'"]


def test_filled_columns_over_a_stream() -> None:
    empty = Sentence.from_columns(forms=["a"])
    some = Sentence.from_columns(forms=["a", "b"], upos=["_", "X"])
    filled = FilledColumns([empty])
    assert filled.missing(("UPOS", "FEATS")) == ["UPOS", "FEATS"]
    filled.add(some)
    filled.add(empty)
    assert filled.missing(("UPOS", "FEATS")) == ["FEATS"]
    assert "UPOS" in filled


def test_schema_knows_what_it_reads() -> None:
    def fitted(**columns: list[str]) -> Schema:
        n = 100
        given = {name: value * n for name, value in columns.items()}
        sentence = Sentence.from_columns(
            forms=["a"] * n, heads=[0] + [1] * (n - 1), deprels=["x"] * n, **given
        )
        return Schema.fit([sentence])

    assert fitted().columns == fitted().filled == ()
    assert fitted(upos=["X"]).columns == ("UPOS",)
    both = fitted(upos=["X"], xpos=["Y"], lemmas=["l"], feats=["A=b"])
    assert both.filled == ("LEMMA", "UPOS", "XPOS", "FEATS")
    assert both.columns == ("UPOS", "XPOS", "FEATS")  # no property is made of LEMMA


# Commands that write trees


@pytest.mark.parametrize("command", ["parse", "rerank", "kbest"])
def test_cli_notes_missing_columns_of_an_input(tmp_path: Path, command: str) -> None:
    model = parser_training()[0]
    bare = changed(treebank()["test"], tmp_path / "bare.conllu", without(2, 4, 5))
    result = invoke(command, model, bare, "-o", tmp_path / "out.conllu")
    assert result.exit_code == 0, result.output
    note = one_line(result.stderr)
    assert note.count("which the model has learnt to read") == 1
    assert f"{bare}: no word has LEMMA" in note
    assert "FEATS, which" in note
    quiet = invoke(command, model, bare, "-o", tmp_path / "out.conllu", "--quiet")
    assert "learnt to read" not in quiet.stderr
    shown = invoke(command, model, bare, "-o", tmp_path / "out.conllu", "--json")
    document = json.loads(shown.stdout)
    assert "FEATS" in document["notes"][0]
    # A file that has them gets no note.
    good = invoke(command, model, treebank()["test"], "-o", tmp_path / "out.conllu", "--json")
    assert json.loads(good.stdout)["notes"] == []


def test_cli_notes_missing_columns_once_for_many_files(tmp_path: Path) -> None:
    model = sampling_training()[0]
    (tmp_path / "in").mkdir()
    for name in "abc":
        changed(treebank()["test"], tmp_path / "in" / f"{name}.conllu", without(5))
    result = invoke(
        "parse", model, tmp_path / "in", "-o", tmp_path / "out", "-j", 2, "--threads", 1
    )
    note = one_line(result.stderr)
    assert note.count("learnt to read") == 1
    assert "a.conllu and 2 more: no word has FEATS, which" in note


def test_cli_rerank_notes_missing_columns_of_ready_lists(tmp_path: Path) -> None:
    bare = changed(list_files()["test"], tmp_path / "bare.conllu", without(3))
    result = invoke("rerank", lists_training()[0], bare, "-o", tmp_path / "out.conllu")
    assert f"{bare}: no word has UPOS" in one_line(result.stderr)


# Training


def test_cli_train_parser_notes(tmp_path: Path) -> None:
    seen = []

    def unlabelled(row: list[str]) -> None:
        if row[7] == "nsubj":
            row[7] = "_"
            seen.append(row[0])

    def renamed(row: list[str]) -> None:
        row[5] = "_"
        row[7] = "made-up" if row[7] == "obj" else row[7]

    train = changed(treebank()["train"], tmp_path / "train.conllu", unlabelled)
    dev = changed(treebank()["dev"], tmp_path / "dev.conllu", renamed)
    result = invoke(
        "train-parser", train, "--dev", dev, "-o", tmp_path / "parser", "--epochs", 1, "--bits", 12,
        "--order", 1, "--threads", 1, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    notes = json.loads(result.stdout)["notes"]
    assert any(f"DEPREL is '_' on {len(seen)} words" in note for note in notes)
    assert any(note.startswith(f"{dev}: ") and "made-up" in note for note in notes)
    assert any(f"{dev}: no word has FEATS" in note for note in notes)
    assert "made-up" in one_line(result.stderr)


def test_cli_train_notes(tmp_path: Path) -> None:
    def renamed(row: list[str]) -> None:
        row[5] = "_"
        row[7] = "made-up" if row[7] == "obj" else row[7]

    dev = changed(treebank()["dev"], tmp_path / "dev.conllu", renamed)
    files = list_files()
    result = invoke(
        "train", treebank()["train"], "--dev", dev, "-o", tmp_path / "model",
        "--candidates", files["train"], "--dev-candidates", files["dev"], "--iterations", 1,
        "--bits", 12, "--threads", 1,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    note = one_line(result.stderr)
    assert f"{dev}: no word has FEATS, which" in note
    assert "made-up" in note
    report = json.loads((tmp_path / "model" / "report.json").read_text(encoding="utf-8"))
    assert any("made-up" in text for text in report["notes"])


def test_cli_add_kernel_compress_and_benchmark_note(tmp_path: Path) -> None:
    parser = sampling_training()[0]
    bare = changed(treebank()["dev"], tmp_path / "bare.conllu", without(5))
    result = invoke(
        "add-kernel",
        parser,
        parser,
        "--dev",
        bare,
        "-o",
        tmp_path / "new",
        "--arcs-only",
        "--threads",
        1,
    )
    assert result.exit_code == 0, result.output
    assert f"{bare}: no word has FEATS, which" in one_line(result.stderr)
    lists = lists_training()[0]
    bare_lists = changed(list_files()["dev"], tmp_path / "lists.conllu", without(3, 5))
    result = invoke(
        "benchmark", "--model", lists, "--candidates", bare_lists, "--repeat", 1, "--threads", 1
    )
    assert result.exit_code in (0, 1), result.output
    assert f"{bare_lists}: no word has UPOS" in one_line(result.stderr)
    bare = changed(treebank()["dev"], tmp_path / "bare.conllu", without(3, 5))
    result = invoke(
        "compress", lists, "--curve", list_files()["dev"], "--dev", bare,
        "--repeat", 1, "--threads", 1,
    )  # fmt: skip
    assert f"{bare}: no word has UPOS" in one_line(result.stderr), result.output


# Evaluation


def test_cli_evaluate_notes_words_without_head_or_label(tmp_path: Path) -> None:
    gold = tmp_path / "gold.conllu"
    gold.write_text(PLAIN, encoding="utf-8")
    system = tmp_path / "system.conllu"
    system.write_text(
        PLAIN.replace("\t2\tnsubj", "\t2\t_").replace("\t2\tpunct", "\t_\t_"), encoding="utf-8"
    )
    result = invoke("evaluate", gold, system)
    assert result.exit_code == 0, result.output
    assert (
        f"{system}: HEAD is '_' on 1 and DEPREL is '_' on 2 of 3 words, which count as wrong"
        in one_line(result.stderr)
    )
    document = json.loads(invoke("evaluate", gold, system, "--json").stdout)
    assert document["notes"][0].startswith(str(system))
    assert document["systems"][0]["uas"] == pytest.approx(100 * 2 / 3)
    assert json.loads(invoke("evaluate", gold, gold, "--json").stdout)["notes"] == []
    result = invoke("evaluate", system.rename(tmp_path / "x"), gold)
    assert result.exit_code == 1  # a gold word needs its HEAD
    gold.write_text(PLAIN.replace("nsubj", "_"), encoding="utf-8")
    document = json.loads(invoke("evaluate", gold, gold, gold, "--json").stdout)
    assert document["notes"] == [
        f"{gold}: DEPREL is '_' on 1 of 3 words, which is compared as if it were a label",
        f"{gold}: DEPREL is '_' on 1 of 3 words, which count as wrong",
    ]


# Files that are refused, by every command alike


BAD = {
    "FEATS": (
        PLAIN.replace("Number=Plur", "Plur"),
        ":2: FEATS of word 1 (Owls) is 'Plur', no list of Name=Value joined by '|'; correct it",
    ),
    "byte-order mark": (
        PLAIN + "\ufeff" + PLAIN,
        ":6: U+FEFF (a byte-order mark) at the start of the line",
    ),
    "line separator": (
        PLAIN.replace("\n\n", "\n\u2028\n", 1) + PLAIN,
        ":5: a line of nothing but U+2028 (line separator); make it an empty line",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_cli_every_command_refuses_alike(tmp_path: Path, kind: str) -> None:
    text, message = BAD[kind]
    bad = tmp_path / "bad.conllu"
    bad.write_text(text, encoding="utf-8")
    bad_lists = tmp_path / "bad.kbest.conllu"
    good_lists = list_files()["dev"].read_text(encoding="utf-8")
    bad_lists.write_text(good_lists + text.removeprefix(PLAIN), encoding="utf-8")
    of_lists = message.partition(" ")[2]  # on another line
    plain = tmp_path / "plain.conllu"
    plain.write_text(PLAIN + PLAIN, encoding="utf-8")
    good = treebank()
    lists, parser = lists_training()[0], sampling_training()[0]
    out = tmp_path / "out"
    calls: list[tuple[object, ...]] = [
        ("train", bad, "--dev", good["dev"], "-o", out),
        ("train", good["train"], "--dev", bad, "-o", out),
        ("train-parser", bad, "--dev", good["dev"], "-o", out),
        ("train-parser", good["train"], "--dev", bad, "-o", out),
        ("parse", parser, bad, "-o", out),
        ("rerank", parser_training()[0], bad, "-o", out),
        ("kbest", parser, bad, "-o", out),
        ("evaluate", bad, plain),
        ("evaluate", plain, bad),
        ("add-kernel", parser, parser, "--dev", bad, "-o", out),
        ("compress", lists, "--curve", list_files()["dev"], "--dev", bad),
        ("benchmark", bad),
        ("benchmark", "--model", lists, "--candidates", bad_lists),
    ]
    for call in calls:
        result = invoke(*call)
        assert result.exit_code == 1, (call, result.output)
        expected = of_lists if bad_lists in call else f"{bad}{message}"
        assert expected in one_line(result.stderr), (call, result.stderr)
        assert "Traceback" not in result.output
        assert not out.exists(), call


@pytest.mark.parametrize("separator", ["\t", " \t ", "\t\t", "\t\r"])
def test_blank_lines_with_tabs_are_read_and_kept(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "in.conllu"
    text = PLAIN.replace("\n\n", f"\n{separator}\n") + PLAIN + separator + "\n"
    path.write_bytes(text.encode())
    sentences = load_treebank(path)
    assert [len(s) for s in sentences] == [3, 3]
    assert "".join(s.to_conllu() for s in sentences) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN.replace("2\tsleep", "2\u200b\tsleep"), r"ID is '2\\u200b', which holds U\+200B"),
        (PLAIN.replace("\t0\troot", "\t\xa00\troot"), r"HEAD of word 2 is .* U\+00A0 \(no-br"),
        (PLAIN.replace("2\tsleep", "\ufeff2\tsleep"), r"U\+FEFF \(a byte-order mark\); remove it"),
        (PLAIN + "\x1a", r":6: a line of nothing but U\+001A \(an end-of-file mark\)"),
        (PLAIN + "\u2029\u2028\n", r"nothing but U\+2029 \(paragraph separator\), U\+2028 \(line"),
        (PLAIN + "\xa0\n", r"nothing but U\+00A0 \(no-break space\)"),
        (PLAIN.replace("2\tsleep", "x\u2028y\n2\tsleep"), r"1 column .*holds U\+2028 \(line"),
        (PLAIN.replace("1\tOwls", "# a\n\ufeff# b\n1\tOwls"), r"1 column .*holds U\+FEFF \(a"),
        ("\ufeff\ufeff" + PLAIN, r":1: U\+FEFF \(a byte-order mark\) at the start of the line"),
    ],
)  # fmt: skip
def test_invisible_characters_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "in.conllu"
    path.write_bytes(text.encode())
    with pytest.raises(ValueError, match=message):
        load_treebank(path)


def test_invisible_characters_inside_values_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "in.conllu"
    text = PLAIN.replace("Owls\towl", "Ow\u2028ls\u200b\tow\ufeffl\xa0").replace("# s", "# \u2028s")
    path.write_bytes(text.encode())
    (sentence,) = read_conllu(path)
    assert sentence.forms[0] == "Ow\u2028ls\u200b"
    assert sentence.to_conllu() == text
    assert sentence.heads.dtype == np.int32
