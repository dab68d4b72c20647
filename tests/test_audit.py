"""`tk-spacy audit`: entries and patterns, tables that users cut, proposals put into a copy."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import ODD, PLAIN, sentence
from test_cli import invoke

from tk_spacy.audit.applying import apply_rows
from tk_spacy.audit.entries import Pattern, in_two_lists, make_entries, pattern_of
from tk_spacy.audit.parsed import Parsed
from tk_spacy.audit.proposals import Proposal, Proposer
from tk_spacy.audit.ranking import WEIGHTS, gather, suspicion
from tk_spacy.audit.tables import COLUMNS, Row, read_table, write_table
from tk_spacy.audit.words import Words
from tk_spacy.errors import UserError
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.workflows import audit as workflow
from tk_spacy.workflows.audit import apply, audit
from tk_spacy.workflows.audit_parsing import place_of_work

ANIMALS = ("owls", "bats", "cats", "dogs", "mice", "rats", "hens", "cows")
VERBS = ("see", "hear", "hunt", "like")


def block(number: int, subject: str, verb: str, thing: str, label: str = "obj") -> str:
    words = [
        ("old", "ADJ", 2, "amod"), (subject, "NOUN", 3, "nsubj"), (verb, "VERB", 0, "root"),
        (thing, "NOUN", 3, label), (".", "PUNCT", 3, "punct"),
    ]  # fmt: skip
    lines = [
        f"{i}\t{form}\t{form}\t{tag}\t_\t_\t{head}\t{deprel}\t_\t_\n"
        for i, (form, tag, head, deprel) in enumerate(words, 1)
    ]
    return f"# sent_id = s{number}\n{''.join(lines)}\n"


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    """32 sentences, in the last of which the object is called nsubj."""
    blocks = []
    for number in range(32):
        subject, verb = ANIMALS[number % 8], VERBS[number // 8]
        label = "nsubj" if number == 31 else "obj"
        blocks.append(block(number, subject, verb, ANIMALS[(number + 3) % 8], label))
    file = tmp_path / "animals.conllu"
    file.write_text("".join(blocks), encoding="utf-8")
    return file


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_audit_finds_the_mistake_and_mends_it(treebank: Path, tmp_path: Path) -> None:
    out, chosen, mended = (tmp_path / name for name in ("a.tsv", "chosen.tsv", "new.conllu"))
    result = invoke("audit", treebank, "-o", out, "-q")
    assert result.exit_code == 0, result.output
    rows = rows_of(out)
    assert len(rows) == 32 * 5
    first = rows[0]
    assert (first["sent_id"], first["token_id"]) == ("s31", "4")
    assert (first["head"], first["deprel"]) == ("3", "nsubj")
    assert (first["new_head"], first["new_deprel"]) == ("3", "obj")
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)
    chosen.write_text("".join(out.read_text().splitlines(keepends=True)[:2]))
    result = invoke("audit", treebank, "--apply", chosen, "-o", mended)
    assert result.exit_code == 0, result.output
    right = treebank.read_bytes().replace(b"\t3\tnsubj\t_\t_\n5", b"\t3\tobj\t_\t_\n5")
    assert mended.read_bytes() == right != treebank.read_bytes()
    # Applied again, the rows no longer fit.
    result = invoke("audit", mended, "--apply", chosen, "-o", tmp_path / "again.conllu")
    assert result.exit_code == 1
    assert "chosen.tsv:2: word 4 of s31 is obj of 3" in " ".join(result.output.split())
    assert not (tmp_path / "again.conllu").exists()


def test_audit_ignores_what_is_right(treebank: Path, tmp_path: Path) -> None:
    out, right = tmp_path / "a.tsv", tmp_path / "right.tsv"
    audit([treebank], output=out)
    right.write_text("".join(out.read_text().splitlines(keepends=True)[:2]))
    found = audit([treebank], ignore=right)
    assert 31 * 5 + 3 not in {row for entry in found.scattered for row in entry.rows}
    # Annotated anew since, it is told of again.
    right.write_text("sent_id\ttoken_id\thead\tdeprel\ns31\t4\t3\tiobj\n")
    found = audit([treebank], ignore=right)
    assert found.scattered[0].rows[0] == 31 * 5 + 3
    right.write_text("sent_id\ttoken_id\thead\tdeprel\ns31\t4\t3\tiobj\ns99\t4\t3\tobj\n")
    told = invoke("audit", treebank, "--ignore", right)
    assert told.exit_code == 0, told.output
    assert f"Warning: {right}: 2 of 2 words are not in the treebank, or annotated" in told.stderr


def test_audit_writes_json_with_reasons(treebank: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    result = invoke("audit", treebank, "-o", out, "--json", "-q")
    assert result.exit_code == 0, result.output
    told = json.loads(out.read_text(encoding="utf-8"))
    assert told == json.loads(result.stdout)
    first = told["scattered"][0]
    assert first["sent_id"] == "s31"
    assert first["text"].endswith(".")
    reasons = first["proposal"]["reasons"]
    # 31 other objects; the 32 subjects stand on the other side.
    assert reasons[0] == (
        "A NOUN after the VERB that it hangs on is obj 31 times elsewhere, and nsubj 0 times."
    )
    assert any("s2" in reason or "s7" in reason for reason in reasons)
    nearest = next(reason for reason in reasons if "template kernel" in reason)
    assert nearest.startswith("Of the 10 arcs most like it by the template kernel 10 are obj and 0")
    assert len(first["proposal"]["like"]) == 3
    assert all(item["token_id"] == 4 for item in first["proposal"]["like"])
    # Those with the same verb ("like", from 24 on), or the same object (every eighth).
    near = [int(item["sent_id"][1:]) for item in first["proposal"]["like"]]
    assert all(24 <= number < 31 or number % 8 == 7 for number in near)


def test_audit_writes_a_page_with_trees_and_reasons(treebank: Path, tmp_path: Path) -> None:
    text = treebank.read_text(encoding="utf-8").replace("\towls\towls\t", "\t<b>&owls\towls\t")
    treebank.write_text(text, encoding="utf-8")
    out, again = tmp_path / "a.html", tmp_path / "b.html"
    result = invoke("audit", treebank, "-o", out, "-q")
    assert result.exit_code == 0, result.output
    audit([treebank], output=again)
    page = out.read_text(encoding="utf-8")
    assert page == again.read_text(encoding="utf-8")
    first = page[page.index("<details") : page.index("</details>")]
    assert "s31, word 4: like -nsubj-&gt; " in first
    assert "→ obj</summary>" in first
    assert "Breaks rules of UD: too-many-subjects." in first
    assert "A NOUN after the VERB that it hangs on is obj 31 times elsewhere" in first
    assert first.count("<svg") == 2  # as proposed, and as annotated
    assert "? nsubj of <bdi>3 like</bdi>" in first
    assert "✗" not in page
    asked = re.findall(r'<mark class="asked">([^<]+)<span class="unseen"> \(word in', first)
    assert asked == [ANIMALS[34 % 8]]
    assert first.count('<rect class="tk-asked"') == 2
    assert str(treebank.parent) not in page  # nobody's folders
    assert f"{treebank.name}: " in page
    assert "Parsers: none." in page
    assert "&lt;b&gt;&amp;owls" in page
    assert "<b>" not in page


def test_audit_page_of_a_word_without_a_proposal(tmp_path: Path) -> None:
    file = tmp_path / "two.conllu"
    two = [sentence("owls/NOUN/2/nsubj sleep/VERB/0/root", sent_id=f"s{i}") for i in range(2)]
    write_conllu(file, two)
    audit([file], output=tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("no proposal") == page.count("<details") > 0
    assert "Arcs that differ" not in page


def test_audit_writes_several_outputs_of_one_run(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [tmp_path / "new" / f"a.{form}" for form in ("tsv", "json", "html")]
    readings = []

    def load(path: Path, **options: Any) -> list[Sentence]:
        readings.append(path)
        return load_treebank(path, **options)

    monkeypatch.setattr(workflow, "load_treebank", load)
    options = [word for name in names for word in ("-o", name)]
    result = invoke("audit", treebank, *options, "-q")
    assert result.exit_code == 0, result.output
    assert readings == [treebank]
    assert result.stdout.splitlines()[-1] == f"Written: {', '.join(map(str, names))}"
    for name in names:
        alone = tmp_path / f"alone{name.suffix}"
        audit([treebank], output=alone)
        assert name.read_bytes() == alone.read_bytes()
    assert len(list((tmp_path / "new").iterdir())) == 3


def test_audit_keeps_the_work_of_several_outputs_beside_the_first(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    monkeypatch.setattr(workflow, "gather", stop)
    outputs = [tmp_path / "b.json", tmp_path / "a.tsv"]
    places = []

    @contextmanager
    def place(output: Path | None, workdir: Path | None) -> Iterator[Path]:
        with place_of_work(output, workdir) as work:
            places.append(work)
            yield work

    monkeypatch.setattr(workflow, "place_of_work", place)
    monkeypatch.setattr(workflow, "jackknifed", lambda *_, **__: None)
    with pytest.raises(Stop):
        audit([treebank], output=outputs, parsers=["transition"])
    # What fails after the trainings leaves them there.
    assert places == [tmp_path / "b.json.work"]
    assert places[0].is_dir()


def test_cli_stopped_audit_says_how_to_resume(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "jackknifed", stop)
    told = invoke("audit", treebank, "--parsers", "transition", "-o", tmp_path / "a.tsv", "-q")
    assert told.exit_code == 130
    how = "interrupted; run the same command again to resume the work in"
    assert told.stderr == f"Error: {how} {tmp_path / 'a.tsv.work'}\n"
    work = tmp_path / "work"
    told = invoke("audit", treebank, "--parsers", "transition", "--workdir", work, "-q")
    assert told.stderr == f"Error: {how} {work}\n"
    told = invoke("audit", treebank, "--parsers", "transition", "-q")
    assert told.stderr == "Error: interrupted\n"


def test_audit_that_cannot_write_one_output_writes_none(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(workflow, "page", fail)
    old = tmp_path / "a.tsv"
    old.write_text("of an earlier run", "utf-8")
    with pytest.raises(UserError, match=r"a\.html.*cannot write it: No space left on device"):
        audit([treebank], output=[old, tmp_path / "a.html"])
    assert old.read_text("utf-8") == "of an earlier run"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv", treebank.name]


def test_audit_refuses_before_it_reads(treebank: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.conllu"
    bad.write_text("no treebank", "utf-8")
    (tmp_path / "dir.html").mkdir()
    with pytest.raises(UserError, match=r"dir\.html: cannot be written: it is a directory"):
        audit([bad], output=[tmp_path / "a.tsv", tmp_path / "dir.html"])
    (tmp_path / "link.tsv").symlink_to("a.tsv")
    with pytest.raises(UserError, match=r"link\.tsv: is the same output as .*a\.tsv; name each"):
        audit([bad], output=[tmp_path / "a.tsv", tmp_path / "link.tsv"])


def test_cli_audit_applies_to_standard_output(treebank: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "all.tsv", tmp_path / "new.conllu"
    audit([treebank], output=table)
    table.write_text("".join(table.read_text("utf-8").splitlines(keepends=True)[:2]), "utf-8")
    assert invoke("audit", treebank, "--apply", table, "-o", out).exit_code == 0
    done = invoke("audit", treebank, "--apply", table, "-o", "-")
    assert done.exit_code == 0, done.output
    assert done.stdout == out.read_text("utf-8")
    assert "1 words changed: -" in done.stderr


def test_audit_of_several_files_judges_them_together(treebank: Path, tmp_path: Path) -> None:
    text = treebank.read_text(encoding="utf-8")
    cut = text.index("# sent_id = s31")
    one, two = tmp_path / "one.conllu", tmp_path / "two.conllu"
    one.write_text(text[:cut], encoding="utf-8")
    two.write_text(text[cut:], encoding="utf-8")
    together, apart = audit([treebank]), audit([one, two])
    np.testing.assert_array_equal(together.scores, apart.scores)
    assert apart.to_dict()["scattered"][0]["file"] == str(two)


def test_audit_weights_name_signals() -> None:
    words = Words.of([sentence("owls/NOUN/2/nsubj sleep/VERB/0/root")])
    assert suspicion(gather(words)).shape == (2,)
    surprise = np.array([2.0, 1.0], np.float32)
    parsed = Parsed(np.exp(-surprise), np.array([1, -1], np.int32), ["nsubj", "root"],
                    np.ones(2, np.float32), surprise, surprise)  # fmt: skip
    evidence = gather(words, parsed)
    assert set(WEIGHTS) <= {name for name, _ in evidence.columns()}
    first, second = suspicion(evidence)
    assert first > second  # seen alone, both are as rare


def test_audit_of_what_breaks_a_rule_comes_first(treebank: Path) -> None:
    found = audit([treebank])
    first = found.to_dict()["scattered"][0]
    assert (first["sent_id"], first["token_id"]) == ("s31", 4)
    assert first["breaks"] == ["too-many-subjects"]


# Entries and patterns


SLEEP = "old/ADJ/2/amod owls/NOUN/3/nsubj sleep/VERB/0/root"


def test_audit_entries_join_a_word_and_its_head() -> None:
    words = Words.of([sentence(SLEEP), sentence(SLEEP)])
    scores = np.array([0.9, 0.8, 0.1, 0.7, 0.2, 0.6])
    found = make_entries(words, scores, lambda row: None, most=4)
    # Of the second sentence the words are not neighbours in the tree.
    assert [entry.rows for entry in found] == [(0, 1), (3,), (5,)]
    assert [entry.confidence for entry in found] == [0.9, 0.7, 0.6]
    found = make_entries(words, scores, lambda row: None, most=4, ignored=lambda row: row == 0)
    # The word left out makes room for one that joins the other two.
    assert [entry.rows for entry in found] == [(1,), (3, 5, 4)]


def test_audit_patterns_that_recur_are_systematic() -> None:
    words = Words.of([sentence(SLEEP) for _ in range(6)])
    scores = np.zeros(18)
    scores[0::3] = 0.9
    scores[1] = 0.5
    found = make_entries(words, scores, lambda row: Proposal(2, "det", ()), most=7)
    scattered, clusters = in_two_lists(words, found)
    assert scattered == []
    assert len(clusters) == 1
    assert len(clusters[0].entries) == 6
    assert (clusters[0].annotated, clusters[0].otherwise) == (6, 0)
    query = clusters[0].pattern.query()
    assert query == "pattern { H [upos=NOUN]; D [upos=ADJ]; H -[amod]-> D; D << H }"
    scattered, clusters = in_two_lists(words, found, least=7)
    assert (len(scattered), clusters) == (6, [])


def test_audit_another_head_is_no_pattern() -> None:
    words = Words.of([sentence(SLEEP)])
    found = make_entries(
        words, np.array([0.9, 0, 0]), lambda row: Proposal(3, "advmod", ()), most=1
    )
    assert pattern_of(words, found[0]) is None


def test_audit_query_of_the_root() -> None:
    query = Pattern("NOUN", "root", "<edge>", "0", "root").query()
    assert query == 'pattern { H [form="__0__"]; D [upos=NOUN]; H -[root]-> D }'


def test_audit_proposes_nothing_that_breaks_another_rule() -> None:
    # Owls are subjects everywhere, but here another word is the subject already.
    plain = [sentence("owls/NOUN/2/nsubj sleep/VERB/0/root", f"s{i}") for i in range(9)]
    odd = sentence("owls/NOUN/3/obl bats/NOUN/3/nsubj sleep/VERB/0/root", "odd")
    words = Words.of([*plain, odd])
    evidence = gather(words)
    surprise = np.zeros(len(words), np.float32)
    own, heads = np.full(len(words), 1e-4, np.float32), words.heads.copy()
    for label, head, expected in (
        ("nsubj", 20, None),  # two subjects
        ("root", -1, None),  # two roots
        ("advmod", 20, None),  # a noun
        ("vocative", 20, (3, "vocative")),
    ):
        heads[18] = head
        labels = list(words.deprels)
        labels[18] = label
        parsed = Parsed(own, heads, labels, np.ones(len(words), np.float32), surprise, surprise)
        found = Proposer(words, replace(evidence, parsed=parsed)).of(18)
        assert (found and (found.head, found.label)) == expected
    assert found is not None
    assert found.reasons[0] == (
        "Parsers that never saw this sentence make it vocative of word 3 with 100 %, and what "
        "stands there not at all."
    )


def test_audit_proposes_no_other_rule_in_the_place_of_a_broken_one() -> None:
    plain = "owls/NOUN/2/nsubj see/VERB/0/root mice/NOUN/2/obj"
    odd = "owls/NOUN/2/nsubj see/VERB/0/root cats/NOUN/2/nsubj mice/NOUN/2/obj"
    words = Words.of([*(sentence(plain, f"s{i}") for i in range(9)), sentence(odd, "odd")])
    found = Proposer(words, gather(words)).of(29)  # cats: a second object is no cure
    assert found is None or found.label != "obj"
    one = "owls/NOUN/2/nsubj see/VERB/0/root mice/NOUN/2/nsubj"
    words = Words.of([*(sentence(plain, f"s{i}") for i in range(9)), sentence(one, "odd")])
    found = Proposer(words, gather(words)).of(29)
    assert found is not None
    assert (found.head, found.label) == (2, "obj")


def test_audit_proposes_the_arc_of_the_same_words() -> None:
    flat = "old/ADJ/3/amod owls/NOUN/3/nsubj sleep/VERB/0/root"
    words = Words.of([*(sentence(SLEEP, f"s{i}") for i in range(4)), sentence(flat, "odd")])
    proposal = Proposer(words, gather(words)).of(12)
    assert proposal is not None
    assert (proposal.head, proposal.label) == (2, "amod")
    assert (
        "s3 (word 1), where it is amod of word 2; here that would be word 2"
        in (proposal.reasons[0])
    )


# Tables


@pytest.mark.parametrize("name", ["a\tb.conllu", "a\nb.conllu"])
def test_audit_refuses_names_that_would_break_its_table(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(PLAIN, encoding="utf-8")
    with pytest.raises(UserError, match="no table can hold; rename the file") as caught:
        audit([file], output=[tmp_path / "a.tsv"])
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "a.tsv").exists()


def test_audit_table_there_and_back(tmp_path: Path) -> None:
    file = tmp_path / "t.tsv"
    cells = [("a b", 3, 0.5, 1, "obj", None, None, "x.conllu")]
    file.write_text("".join(write_table(cells)), encoding="utf-8")
    assert read_table(file) == [
        Row(line=2, sent_id="a b", token_id=3, head=1, deprel="obj", file="x.conllu")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("s1\t3\n", "1: has no column sent_id, token_id"),
        ("sent_id\ttoken_id\thead\thead\ns1\t3\t1\t2\n", "1: has the column head twice"),
        ("sent_id\ttoken_id\ns1\n", "2: has 1 cells, but the header 2 columns"),
        ("sent_id\ttoken_id\ns1\tx\n", "2: token_id is 'x'"),
        ("sent_id\ttoken_id\n\ns1\t_\n", "3: has no token_id"),
    ],
)
def test_audit_table_refusals(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "t.tsv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"t\.tsv") as error:
        read_table(file)
    assert message in str(error.value)


def test_audit_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read it"):
        read_table(tmp_path / "none.tsv")


# Applying


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    file = tmp_path / "plain.conllu"
    file.write_bytes((ODD + PLAIN).encode())
    return file


def change(**changes: object) -> Row:
    return replace(Row(2, "plain-1", 1, 2, "nsubj", 2, "obj"), **changes)  # type: ignore[arg-type]


def test_audit_applies_byte_for_byte_elsewhere(plain: Path) -> None:
    rows = [change(), change(sent_id="odd-1", token_id=6, head=1, deprel="obl:tmod",
                             new_head=4, new_deprel="nmod")]  # fmt: skip
    found = apply_rows(load_treebank(plain), rows, table=Path("t"))
    expected = (ODD + PLAIN).replace("\t2\tnsubj", "\t2\tobj")
    expected = expected.replace("\t1\tobl:tmod\t", "\t4\tnmod\t")
    assert "".join(s.to_conllu() for s in found) == expected


def test_audit_applies_a_swap_whose_halves_are_no_trees(plain: Path) -> None:
    rows = [
        change(new_head=0, new_deprel="root"),
        change(token_id=2, head=0, deprel="root", new_head=1, new_deprel="nsubj"),
    ]
    *_, last = apply_rows(load_treebank(plain), rows, table=Path("t"))
    assert last.heads.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sent_id": "x"}, "t:2: no sentence is x"),
        ({"token_id": 9}, "t:2: sentence plain-1 has no word 9"),
        ({"deprel": "obj"}, "word 1 of plain-1 is nsubj of 2"),
        ({"new_head": 3, "token_id": 2, "head": 0, "deprel": "root"}, "would be no tree"),
        ({"new_head": 1}, "would be no tree: word 1 is its own HEAD"),
        ({"new_deprel": "root"}, "would be root of 2; HEAD 0 and the relation root"),
        ({"new_head": 0}, "would be no tree"),
    ],
)
def test_audit_refuses_to_apply(plain: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as error:
        list(apply_rows(load_treebank(plain), [change(**changes)], table=Path("t")))
    assert message in str(error.value)


def test_audit_apply_never_replaces_the_treebank(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is the treebank itself"):
        apply(plain, tmp_path / "none.tsv", plain)


# The command's refusals


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-o", "a.xml"], 2, "output is a.xml; give a name that ends in .tsv, .json or .html"),
        (["-o", "a.tsv", "-o", "a"], 2, "output is a; give a name that ends in .tsv"),
        (["-o", "a.tsv", "-o", "./a.tsv"], 2, "a.tsv: is the same output as a.tsv; name each once"),
        (["-o", "a.tsv", "-o", "."], 2, "output is .; give a name that ends in"),
        (["--apply", "a.tsv", "-o", "b", "-o", "c"], 2, "--apply writes one copy, not 2"),
        (["--apply", "a.tsv"], 2, "name it by --output"),
        (["--apply", "a.tsv", "-o", "b", "--ignore", "c"], 2, "leave it out"),
        (["--ignore", "none.tsv"], 1, "none.tsv: cannot read it"),
    ],
)
def test_cli_audit_refusals(
    treebank: Path, arguments: list[str], code: int, message: str, monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("audit", treebank, *arguments, "-q")
    assert result.exit_code == code
    assert message in " ".join(result.output.split())


def test_cli_audit_needs_different_sentences(treebank: Path) -> None:
    result = invoke("audit", treebank, treebank, "-q")
    assert result.exit_code == 1
    assert "sent_id s0 is that of" in " ".join(result.output.split())


def test_cli_audit_shows_both_lists(treebank: Path) -> None:
    result = invoke("audit", treebank, "-q", "--shown", 3)
    assert result.exit_code == 0
    assert "Scattered mistakes" in result.stdout
    assert "nsubj" in result.stdout
    assert COLUMNS[:3] == ("sent_id", "token_id", "score")


def test_audit_with_parsers_resumes_and_removes_its_work(treebank: Path, tmp_path: Path) -> None:
    out, work = tmp_path / "a.tsv", tmp_path / "work"
    options = ("--parsers", "transition", "-q")
    result = invoke("audit", treebank, *options, "-o", out)
    assert result.exit_code == 0, result.output
    rows = rows_of(out)
    assert (rows[0]["sent_id"], rows[0]["token_id"]) == ("s31", "4")
    assert (rows[0]["new_head"], rows[0]["new_deprel"]) == ("3", "obj")
    assert not list(tmp_path.glob("*.work"))
    kept = tmp_path / "b.tsv"
    result = invoke("audit", treebank, *options, "-o", kept, "--workdir", work)
    assert result.exit_code == 0, result.output
    assert kept.read_bytes() == out.read_bytes()
    result = invoke("audit", treebank, "--parsers", "transition", "-o", kept, "--workdir", work)
    assert "lists of fold 1, 2, 3, 4, 5" in " ".join(result.stderr.split())
    told = result.stderr.splitlines()
    assert any(
        re.fullmatch(r"the parsers take about 10 seconds on \d+ cores?, .*", line) for line in told
    )
    assert kept.read_bytes() == out.read_bytes()
    # The parsers count: without them the scores are others.
    invoke("audit", treebank, "-q", "-o", kept)
    assert kept.read_bytes() != out.read_bytes()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--parsers", "nothing"), "nothing"),
        (("--parsers", "file:x"), "an audit trains its parsers itself"),
        (("--workdir", "w"), "a work directory is for parsers; name parsers"),
        (("--apply", "c.tsv", "-o", "x.conllu", "--parsers", "transition"), "--parsers does"),
    ],
)
def test_audit_refuses_parsers_it_cannot_train(
    treebank: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("audit", treebank, *options)
    assert result.exit_code in (1, 2)
    assert text in " ".join(result.output.split())
    assert len(list(tmp_path.iterdir())) == 1


def test_audit_of_few_sentences_refuses_parsers(treebank: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.conllu"
    text = treebank.read_text(encoding="utf-8")
    few.write_text(text[: text.index("# sent_id = s9\n")], encoding="utf-8")
    result = invoke("audit", few, "--parsers", "transition")
    assert result.exit_code == 1
    assert "9 sentences are too few" in " ".join(result.output.split())


# What must not be written over, and tables of others


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("TREEBANK", "-o", "animals.tsv"), "animals.tsv: is a treebank that is audited itself"),
        (("TREEBANK", "-o", "LINK"), "is a treebank that is audited itself"),
        (("TREEBANK", "--ignore", "rows.tsv", "-o", "rows.tsv"), "rows.tsv: is the table of what"),
        (("TREEBANK", "--apply", "rows.tsv", "-o", "rows.tsv"), "rows.tsv: is the table of chosen"),
        (("TREEBANK", "-o", "no/such/a.tsv"), "no/such/a.tsv: cannot be written: "),
        (("TREEBANK", "-o", "a.json", "-o", "LINK"), "is a treebank that is audited itself"),
        (
            ("TREEBANK", "--ignore", "rows.tsv", "-o", "a.json", "-o", "rows.tsv"),
            "rows.tsv: is the table of what",
        ),
        (("TREEBANK", "-o", "a.json", "-o", "no/such/a.tsv"), "no/such/a.tsv: cannot be written: "),
    ],
)
def test_cli_audit_writes_over_nothing_that_it_reads(
    treebank: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    treebank.rename("animals.tsv")
    Path("link.json").symlink_to("animals.tsv")
    audit(["animals.tsv"], output="all.tsv")
    head = Path("all.tsv").read_text("utf-8").splitlines(keepends=True)[:2]
    Path("rows.tsv").write_text("".join(head), "utf-8")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    names = {"TREEBANK": "animals.tsv", "LINK": "link.json"}
    if message.startswith("no/such"):
        Path("no").write_text("a file, so that no folder can be made", "utf-8")
        before[tmp_path / "no"] = Path("no").read_bytes()
    result = invoke("audit", *(names.get(word, word) for word in arguments), "-q")
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"new_head": "99999999999999999999"}, "new_head is '99999999999999999999'; expected the"),
        ({"new_head": "4000000000"}, "new_head is '4000000000'; expected the number"),
        ({"token_id": "9" * 5000}, "token_id is '99999999999999999999...'; expected the number"),
        ({"new_deprel": "n mod"}, "new_deprel is 'n mod'; give a relation"),
        ({"new_deprel": "n|mod"}, "new_deprel is 'n|mod'; give a relation"),
    ],
)
def test_audit_tables_with_wrong_values(
    treebank: Path, tmp_path: Path, cells: dict[str, str], message: str
) -> None:
    table = tmp_path / "all.tsv"
    audit([treebank], output=table)
    row = rows_of(table)[0] | cells
    table.write_text("\t".join(row) + "\n" + "\t".join(row.values()) + "\n", "utf-8")
    result = invoke("audit", treebank, "--apply", table, "-o", tmp_path / "new.conllu")
    assert result.exit_code == 1, result.output
    assert f"{table}:2: {message}" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "new.conllu").exists()


def test_audit_applies_what_changes_something_and_one_row_a_word(
    treebank: Path, tmp_path: Path
) -> None:
    table, out = tmp_path / "all.tsv", tmp_path / "new.conllu"
    audit([treebank], output=table)
    first, second = rows_of(table)[:2]
    second |= {"new_head": second["head"], "new_deprel": second["deprel"]}

    def written(*rows: dict[str, str], start: str = "", end: str = "\n") -> None:
        lines = ["\t".join(first), *("\t".join(row.values()) for row in rows)]
        table.write_bytes((start + end.join(lines) + end).encode())

    # A spreadsheet's mark of its encoding, and its line ends.
    written(first, second, start="\ufeff", end="\r\n")
    done = invoke("audit", treebank, "--apply", table, "-o", out)
    assert done.exit_code == 0, done.output
    assert "1 words changed" in done.stdout
    written(first, first | {"new_deprel": "dep"})
    twice = invoke("audit", treebank, "--apply", table, "-o", out)
    assert twice.exit_code == 1
    assert f"{table}:3: word 4 of s31 has a row in line 2 already; keep one" in twice.stderr
    idle = invoke("audit", treebank, "--apply", table, "-o", out, "--most", 3)
    assert idle.exit_code == 2
    assert "--apply judges nothing, so --most does nothing; leave it out" in idle.stderr


@pytest.mark.parametrize("name", ["a\u2028b", "a\x0bb", "a\tb", "_"])
def test_audit_reads_its_own_tables(treebank: Path, tmp_path: Path, name: str) -> None:
    text = treebank.read_text("utf-8").replace("# sent_id = s31\n", f"# sent_id = {name}\n")
    treebank.write_text(text, "utf-8")
    table, out = tmp_path / "all.tsv", tmp_path / "new.conllu"
    audit([treebank], output=table)
    rows = table.read_text("utf-8").split("\n")[:2]
    table.write_text("\n".join(rows) + "\n", "utf-8")
    done = invoke("audit", treebank, "--apply", table, "-o", out)
    assert done.exit_code == 0, done.output
    assert load_treebank(out)[31].deprels[3] == "obj"
    assert audit([treebank], ignore=table).to_dict()["scattered"] != []


def test_audit_names_the_tree_that_no_parser_learns_from(treebank: Path, tmp_path: Path) -> None:
    text = treebank.read_text("utf-8")
    two = text.replace("5\t.\t.\tPUNCT\t_\t_\t3\tpunct", "5\t.\t.\tPUNCT\t_\t_\t0\troot", 1)
    treebank.write_text(two, "utf-8")
    work = tmp_path / "work"
    result = invoke("audit", treebank, "--parsers", "transition:epochs=1", "--workdir", work, "-q")
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {treebank}:1: words 3 and 5 have HEAD 0, and no parser learns from such a tree; "
        "leave the sentence out, or the parsers\n"
    )
    assert invoke("audit", treebank, "-q").exit_code == 0


def test_pages_are_the_same_for_any_hash_seed(treebank: Path, tmp_path: Path) -> None:
    pages = []
    for seed in ("1", "2", "3"):
        out = tmp_path / f"{seed}.html"
        code = "import sys; from tk_spacy.workflows.audit import audit; "
        code += "audit([sys.argv[1]], output=sys.argv[2])"
        command = [sys.executable, "-c", code, str(treebank), str(out)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        pages.append(out.read_bytes())
    assert len(set(pages)) == 1
