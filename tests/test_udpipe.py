"""UDPipe's parser: trained, stored, and as a voter."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import invoke
from trainings import stripped, treebank
from udpipe_parsers import NEW, QUICK, SENTENCES, needs_udpipe, parsed, parser

from tk_spacy.errors import ModelError, UserError
from tk_spacy.kbest.agreement import agreement
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.parsers.udpipe import process, training
from tk_spacy.parsers.udpipe.parser import UdpipeParser, to_deprel, to_udpipe
from tk_spacy.parsers.udpipe.settings import ORACLES, UdpipeSettings
from tk_spacy.parsers.udpipe.source import UdpipeSource
from tk_spacy.parsers.udpipe.training import train_udpipe_parser
from tk_spacy.treebank.conllu import Sentence, check_tree, load_treebank, read_conllu
from tk_spacy.treebank.synthetic import generate


def las(parser: UdpipeParser, gold: list[Sentence]) -> float:
    right = [
        pair == (head, deprel)
        for sentence, (heads, deprels) in zip(gold, parsed(parser, gold), strict=True)
        for pair, head, deprel in zip(
            zip(sentence.heads.tolist(), sentence.deprels, strict=True), heads, deprels, strict=True
        )
    ]
    return 100 * sum(right) / len(right)


# Settings


def test_udpipe_settings_are_told_in_its_own_names() -> None:
    settings = UdpipeSettings(transition_system="swap", embedding_upos=7, l2=0.25)
    options = dict(item.split("=") for item in settings.to_options().split(";"))
    assert options["transition_oracle"] == "static_lazy"
    assert options["embedding_upostag"] == "7"
    assert options["l2"] == "0.25"
    assert options["use_gold_tags"] == options["single_root"] == "1"
    assert UdpipeSettings.from_dict(settings.to_dict()) == settings
    text = " iterations = 3, l2=0.5,transition_system=link2 "
    assert UdpipeSettings.from_text(text) == {
        "iterations": 3, "l2": 0.5, "transition_system": "link2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iterations=0", "iterations is 0; it must be from 1 to 1000"),
        ("iterations=two", "iterations is 'two'; it must be a whole number"),
        ("iterations", "'iterations' is no setting; write NAME=VALUE"),
        ("depth=3", "unknown settings: depth; choose from transition_system,"),
        ("transition_system=arc", "transition system is 'arc'; choose from projective, swap"),
        ("transition_oracle=dynamic,transition_system=swap", "the swap system has static_lazy"),
        ("learning_rate=nan", "learning rate is nan; it must be a number"),
        (
            "embedding_form=0,embedding_upos=0,embedding_feats=0,embedding_deprel=0",
            "all embeddings are 0",
        ),
    ],
)
def test_udpipe_settings_refuse(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        UdpipeSettings.from_dict(UdpipeSettings.from_text(text))


# Labels


@pytest.mark.parametrize("label", ["nsubj", "root", "_root", "__root", "_", "rooted"])
def test_udpipe_labels_come_back(label: str) -> None:
    inner = to_udpipe(label, 3)
    assert inner != "root"
    assert to_deprel(inner) == label
    assert to_udpipe(label, 0) == "root"


# Training


@needs_udpipe
def test_udpipe_learns_a_synthetic_language() -> None:
    steps: list[tuple[int, int]] = []
    settings = UdpipeSettings(**{**QUICK, "iterations": 6})
    made = train_udpipe_parser(
        list(generate(150, seed=3)), NEW, settings=settings, report=lambda *s: steps.append(s)
    )
    assert steps == [(n, 6) for n in range(1, 7)]
    # The best on dev is kept, where it is scored without a beam.
    greedy = replace(made, settings=replace(settings, beam_search=1))
    best = max(row["las"] for row in made.about["epochs"])
    assert made.about["curve"]["values"] == [row["las"] for row in made.about["epochs"]]
    assert las(greedy, NEW) == pytest.approx(best, abs=0.01)
    assert las(made, NEW) > 55
    assert made.root_label == "root"
    assert {d for s in SENTENCES for d in s.deprels} <= set(made.labels) | {"none"}


@needs_udpipe
def test_udpipe_trains_the_same_bytes_again_and_others_with_a_seed() -> None:
    again = train_udpipe_parser(SENTENCES, settings=UdpipeSettings(**QUICK))
    assert again.to_bytes() == parser().to_bytes()
    seeded = train_udpipe_parser(SENTENCES, settings=UdpipeSettings(**QUICK, seed=1))
    assert seeded.model != parser().model


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel")
def test_udpipe_trains_at_the_same_addresses_in_every_run(tmp_path: Path) -> None:
    # What it learns depends on them: without this, some six of 100 trainings end in another model.
    ask = "import ctypes; print(ctypes.CDLL(None).personality(0x0040000))"
    allowed = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True
    )
    if allowed.stdout == "-1\n":
        pytest.skip("the system does not let a process fix its addresses")
    script = tmp_path / "script.py"
    script.write_text(
        "import ctypes, sys\n"
        f"sys.path.insert(0, {str(Path(process.__file__).parent)!r})\n"
        "import process\n"
        "process.fix_addresses()\n"
        "flag = ctypes.c_int.in_dll(ctypes.pythonapi, 'Py_OptimizeFlag')\n"
        "print(ctypes.addressof(flag), ctypes.addressof(ctypes.create_string_buffer(1 << 20)))\n"
        "print(sys.argv[1:])\n"
    )
    told = {
        subprocess.run(
            [sys.executable, script, "a b", "c"], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(4)
    }
    (same,) = told
    assert same.endswith("\n['a b', 'c']\n")


@needs_udpipe
@pytest.mark.parametrize("system", ORACLES)
def test_udpipe_trees_have_one_root(system: str) -> None:
    for oracle in ORACLES[system]:
        settings = UdpipeSettings(
            **{**QUICK, "iterations": 1}, transition_system=system, transition_oracle=oracle
        )
        for heads, _ in parsed(train_udpipe_parser(SENTENCES[:15], settings=settings), NEW):
            assert check_tree(heads) is None


@needs_udpipe
def test_udpipe_takes_whatever_a_treebank_holds(tmp_path: Path) -> None:
    """Multiword tokens, empty nodes, spaces, empty columns, root under another name."""
    text = (
        "# sent_id = {n}\n1-2\tdas\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "1\tde as\t_\t_\t_\t_\t2\troot\t_\t_\n2\t_\t_\tX\ta b\tA=1|B=2\t0\tmain\t_\t_\n"
        "2.1\tgone\t_\t_\t_\t_\t_\t_\t2:dep\t_\n3\t\U0001f600\t_\t\xa0\t_\t_\t2\t_\t_\t_\n\n"
    )
    source = tmp_path / "odd.conllu"
    source.write_text("".join(text.format(n=n) for n in range(12)), encoding="utf-8")
    sentences = load_treebank(source)
    settings = UdpipeSettings(
        iterations=60, hidden_layer=20, embedding_lemma=5, embedding_xpos=5, l2=0.0
    )
    made = train_udpipe_parser(sentences, settings=settings)
    assert made.root_label == "main"
    assert made.labels == ("_", "main", "root")
    assert parsed(made, sentences[:2]) == [([2, 0, 2], ("root", "main", "_"))] * 2
    without = list(read_conllu(stripped(source, tmp_path / "bare.conllu"), trees="any"))
    assert parsed(made, without[:1]) == parsed(made, sentences[:1])
    alone = Sentence.from_columns(forms=["unknown"])
    assert parsed(made, [alone]) == [([0], ("main",))]


@needs_udpipe
def test_udpipe_names_the_root_as_train_does_most_often() -> None:
    def named(sentence: Sentence, label: str) -> Sentence:
        deprels = [label if d == "root" else d for d in sentence.deprels]
        return sentence.with_tree(sentence.heads, deprels)

    names = ["main"] * 6 + ["other"] * 3 + ["head"]
    sentences = [named(s, label) for s, label in zip(SENTENCES, names, strict=False)]
    settings = UdpipeSettings(**{**QUICK, "iterations": 1})
    assert train_udpipe_parser(sentences, settings=settings).root_label == "main"
    # Of equals the last by name.
    assert train_udpipe_parser(sentences[3:9], settings=settings).root_label == "other"


@needs_udpipe
def test_udpipe_says_why_it_cannot_train() -> None:
    single = [Sentence.from_columns(forms=["a"], heads=[0], deprels=["root"])] * 3
    with pytest.raises(UserError, match=r"cannot be trained: UDPipe: .*deprel different from"):
        train_udpipe_parser(single, settings=UdpipeSettings(**QUICK))


@needs_udpipe
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "cannot be trained: no reason given"),  # no model either
        ("raise SystemExit(3)", "cannot be trained: no reason given"),
        ("print('so\\n\\n', file=sys.stderr)", "cannot be trained: so"),
        ("open(sys.argv[2], 'w').close(); raise SystemExit('late')", "cannot be trained: late"),
        (r"sys.stderr.buffer.write(b'bad \xff')", "cannot be trained: bad \ufffd"),
        # It finds the modules that this process finds, and none beside the script.
        ("import found_here; sys.exit(found_here.WORD)", "cannot be trained: here"),
        ("import beside", "No module named 'beside'"),
    ],
)
def test_udpipe_says_the_last_that_its_process_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    path = tmp_path / "process.py"
    path.write_text(f"import sys\n{script}\n", encoding="utf-8")
    (tmp_path / "beside.py").touch()
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "found_here.py").write_text("WORD = 'here'\n", encoding="utf-8")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(process, "__file__", str(path))
    with pytest.raises(UserError, match=f"{message}$"):
        train_udpipe_parser(SENTENCES[:3], settings=UdpipeSettings(**QUICK))
    assert not list((tmp_path / "here").iterdir())  # its files lie elsewhere


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel")
@needs_udpipe
def test_udpipe_training_ends_with_its_parent(tmp_path: Path) -> None:
    """Killed, the parent cannot end its child; the child must not train on for minutes."""
    code = (
        "from tk_spacy.treebank.synthetic import generate\n"
        "from tk_spacy.parsers.udpipe.training import train_udpipe_parser as train\n"
        "from tk_spacy.parsers.udpipe.settings import UdpipeSettings\n"
        "train(list(generate(50, seed=3)), settings=UdpipeSettings(iterations=1000), "
        "report=lambda *_: print('on', flush=True))\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # it cannot remove its files
    )  # fmt: skip
    assert parent.stdout is not None
    assert parent.stdout.readline() == "on\n"
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    if not children.exists():
        parent.kill()
        pytest.skip("no list of children")
    (child,) = map(int, children.read_text().split())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child outlived its parent")


def test_udpipe_missing_is_one_line_with_a_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ufal.udpipe", None)
    cure = r"UDPipe cannot be loaded .*install it: pip install ufal.udpipe"
    for work in (
        lambda: make_parsers(("sampling", "udpipe")),
        lambda: train_udpipe_parser(SENTENCES),
    ):
        with pytest.raises(UserError, match=cure):
            work()
    files = treebank()
    result = invoke(
        "train",
        files["train"],
        "--dev",
        files["dev"],
        "-o",
        tmp_path / "m",
        "--views",
        "sampling,udpipe",
    )
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("Error: UDPipe cannot be loaded")


@needs_udpipe
def test_udpipe_process_that_is_killed_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "killed.py"
    script.write_text("import os\nos.kill(os.getpid(), 9)\n")
    monkeypatch.setattr(process, "__file__", str(script))
    with pytest.raises(RuntimeError, match="killed by signal 9"):
        training.train_udpipe_parser(SENTENCES, settings=UdpipeSettings(**QUICK))


# Storage


@needs_udpipe
def test_udpipe_parser_survives_disk_bytes_and_pickle(tmp_path: Path) -> None:
    wanted = parsed(parser(), NEW)
    parser().to_disk(tmp_path / "p")
    for copy in (
        UdpipeParser.from_disk(tmp_path / "p"),
        UdpipeParser.from_bytes(parser().to_bytes()),
        pickle.loads(pickle.dumps(parser())),
    ):
        assert copy.settings == parser().settings
        assert copy.labels == parser().labels
        assert parsed(copy, NEW) == wanted


@needs_udpipe
def test_udpipe_damaged_files_are_told(tmp_path: Path) -> None:
    parser().to_disk(tmp_path / "p")
    weights = tmp_path / "p" / "parser.udpipe"
    for content in (b"", None):
        weights.write_bytes(content) if content is not None else weights.unlink()
        with pytest.raises(ModelError, match="damaged or incomplete"):
            UdpipeParser.from_disk(tmp_path / "p")
    with pytest.raises(UserError, match="UDPipe cannot read this parser"):
        next(replace(parser(), model=b"nonsense").parse(NEW[:1]))


# The vote


def test_agreement_counts_words_that_differ() -> None:
    inventory = LabelInventory()
    trees = CandidateList.build(
        [([0, 1, 1], ["root", "a", "b"], 3.0), ([0, 1, 2], ["root", "b", "b"], 2.0),
         ([2, 0, 2], ["a", "root", "b"], 1.0)],
        inventory=inventory, sources=("x",),
    )  # fmt: skip
    own = np.array([0, 1, 1], np.int32)
    np.testing.assert_array_equal(agreement(trees, own, ("root", "a", "b")), [0, -2, -3])
    np.testing.assert_array_equal(agreement(trees, own, ("root", "new", "b")), [-1, -2, -3])
    with pytest.raises(ValueError, match="a list of 3 words for a tree of 2"):
        agreement(trees, own[:2], ("root", "a"))


@needs_udpipe
def test_udpipe_source_proposes_its_tree_and_votes() -> None:
    inventory = LabelInventory()
    source = UdpipeSource(parser(), inventory=inventory)
    lists = list(source.candidates(NEW, k=5))
    for trees, (heads, deprels) in zip(lists, parsed(parser(), NEW), strict=True):
        assert trees.heads.tolist() == [heads]
        assert trees.deprels(0) == deprels
        assert trees.scores.tolist() == [[0.0]]
        assert trees.sources == ("udpipe",)
    gold = [
        CandidateList.build([(s.heads, s.deprels, 1.0)], inventory=inventory, sources=("x",))
        for s in NEW
    ]
    for sentence, scores, trees in zip(NEW, source.score(NEW, gold), lists, strict=True):
        wrong = (trees.heads[0] != sentence.heads) | (
            np.array(trees.deprels(0)) != np.array(sentence.deprels)
        )
        assert scores.tolist() == [-wrong.sum()]


@needs_udpipe
def test_udpipe_source_parses_a_sentence_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = UdpipeParser.parse

    def counted(self: UdpipeParser, sentences: list[Sentence], **more: Any) -> Any:
        asked.append(len(sentences))
        return plain(self, sentences, **more)

    monkeypatch.setattr(UdpipeParser, "parse", counted)
    monkeypatch.setattr("tk_spacy.parsers.udpipe.source.REMEMBERED", 4)
    source = UdpipeSource(parser())
    lists = list(source.candidates(NEW[:4], k=2))
    assert [row.tolist() for row in source.score(NEW[:4], lists)] == [[[0.0]]] * 4
    assert sum(asked) == len({s.forms for s in NEW[:4]})
    list(source.candidates(NEW, k=2))  # more than are remembered
    assert len(source._known) == 4
