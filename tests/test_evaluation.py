"""Scores against hand counts, score.py and udeval; the bootstrap against a plain loop."""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from samples import corrupted, random_trees, sentence

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import (
    METRICS,
    SentenceCounts,
    count_sentences,
    evaluate,
    scores_from_counts,
)
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu

GOLD = [
    sentence("The/DET/2/det owl/NOUN/3/nsubj:pass sleeps/VERB/0/root ./PUNCT/3/punct", "g1"),
    sentence("Go/VERB/0/root now/ADV/1/advmod", "g2"),
]
SYSTEM = [
    sentence("The/DET/2/amod owl/NOUN/3/nsubj sleeps/VERB/0/root ./PUNCT/2/punct"),
    sentence("Go/VERB/0/root now/ADV/1/advmod"),
]


@pytest.fixture
def made_up() -> list[Sentence]:
    return random_trees()


# --- scores


def test_evaluation_by_hand() -> None:
    scores = evaluate(GOLD, SYSTEM)
    assert (scores.sentences, scores.words, scores.words_nopunct) == (2, 6, 5)
    assert scores.uas == pytest.approx(100 * 5 / 6)
    assert scores.las == pytest.approx(100 * 3 / 6)
    assert scores.las_universal == pytest.approx(100 * 4 / 6)
    assert scores.uas_nopunct == 100
    assert scores.las_nopunct == pytest.approx(100 * 3 / 5)
    # Content: owl, sleeps, Go, now in gold; also The (amod) in the system; all four right.
    assert scores.clas == pytest.approx(100 * 2 * 4 / (4 + 5))
    assert scores.exact_match == 50
    assert scores.single_root == 100


def test_evaluation_of_gold_itself() -> None:
    scores = evaluate(GOLD, iter(GOLD))
    assert {getattr(scores, metric) for metric in METRICS} == {100.0}


def test_evaluation_nothing_but_punctuation() -> None:
    only = [sentence("!/PUNCT/0/root")]
    scores = evaluate(only, only)
    assert (scores.uas, scores.uas_nopunct, scores.words_nopunct) == (100, 0, 0)


def test_evaluation_odd_system_trees_count_as_wrong() -> None:
    forms, upos = GOLD[1].forms, GOLD[1].upos
    none = Sentence.from_columns(forms=forms, upos=upos)
    two_roots = sentence("Go/VERB/0/root now/ADV/0/root", single_root=False)
    assert evaluate(GOLD[1:], [none]).uas == 0
    scores = evaluate(GOLD[1:], [two_roots])
    assert (scores.uas, scores.single_root) == (50, 0)


def test_evaluation_gold_punctuation_decides() -> None:
    other = [sentence(" ".join(_words(GOLD[0], "NOUN"))), GOLD[1]]
    assert evaluate(GOLD, other).words_nopunct == 5


def _words(s: Sentence, upos: str) -> list[str]:
    rows = zip(s.forms, s.heads.tolist(), s.deprels, strict=True)
    return [f"{form}/{upos}/{head}/{deprel}" for form, head, deprel in rows]


def test_evaluation_mismatches_are_named() -> None:
    with pytest.raises(UserError, match=r"^sentence 2 \(sent_id g2\): the system side ends before"):
        evaluate(GOLD, SYSTEM[:1])
    with pytest.raises(UserError, match=r"^sentence 2 \(no sent_id\): the gold side ends before"):
        evaluate(GOLD[:1], SYSTEM)
    with pytest.raises(UserError, match=r"^sentence 1 \(sent_id g1\): 4 words in gold, 2 in sys"):
        evaluate(GOLD, GOLD[1:])
    other = sentence("Go/VERB/0/root then/ADV/1/advmod")
    with pytest.raises(UserError, match=r"^sentence 2 .*g2\): word 2 is 'now' in gold, 'then' in"):
        evaluate(GOLD, [SYSTEM[0], other])
    bare = Sentence.from_columns(forms=["Go"], sent_id="b")
    with pytest.raises(UserError, match=r"\(sent_id b\): the gold side has words without HEAD"):
        evaluate([bare], [bare])
    with pytest.raises(UserError, match="no sentence to score"):
        evaluate([], [])


def test_evaluation_ignores_spaces_in_forms() -> None:
    one, other = ([Sentence.from_columns(forms=[form], heads=[0])] for form in ("1 000", "1000"))
    assert evaluate(one, other).uas == 100


def test_evaluation_counts_of_sentences_add_up(made_up: list[Sentence]) -> None:
    system = list(corrupted(made_up, 0.3, 1))
    counts = count_sentences(made_up, system)
    assert counts.shape == (40, len(SentenceCounts._fields))
    assert scores_from_counts(counts) == evaluate(made_up, system)
    halves = [count_sentences(made_up[i], system[i]) for i in (slice(25), slice(25, 40))]
    assert np.array_equal(np.concatenate(halves), counts)
    with pytest.raises(ValueError, match=r"counts must be integers \[sentences, 13\], got int64"):
        scores_from_counts(counts[0])
    for wrong, shown in (
        (counts.astype(float), r"float64 \(40, 13\)"),
        (counts[:, 1:], r"int64 \(40, 12\)"),
    ):
        with pytest.raises(ValueError, match=rf"integers \[sentences, 13\], got {shown}"):
            scores_from_counts(wrong)


# --- udeval and score.py


def assert_equals_udeval(gold: Path, system: Path, *, uas: float, las: float, clas: float) -> None:
    udeval = pytest.importorskip("udtools.udeval", reason="udtools is not installed")
    read = []
    for path in (gold, system):
        with path.open(encoding="utf-8") as file:
            read.append(udeval.load_conllu(file, str(path), {}))
    found = udeval.evaluate(*read)
    expected = [100 * found[metric].f1 for metric in ("UAS", "LAS", "CLAS")]
    assert [uas, las, clas] == pytest.approx(expected, abs=1e-9)


def test_evaluation_equals_udeval(made_up: list[Sentence], tmp_path: Path) -> None:
    gold, system = tmp_path / "gold.conllu", tmp_path / "system.conllu"
    write_conllu(gold, made_up)
    for seed, rate in enumerate((0.0, 0.1, 0.5)):
        write_conllu(system, corrupted(made_up, rate, seed))
        scores = evaluate(made_up, load_treebank(system))
        assert_equals_udeval(
            gold, system, uas=scores.uas, las=scores.las_universal, clas=scores.clas
        )


def test_evaluation_equals_udeval_command(made_up: list[Sentence], tmp_path: Path) -> None:
    command = shutil.which("udeval")
    if command is None:
        pytest.skip("no udeval command (PyPI: udtools)")
    gold, system = tmp_path / "gold.conllu", tmp_path / "system.conllu"
    write_conllu(gold, made_up)
    write_conllu(system, corrupted(made_up, 0.2, 9))
    run = [command, "--verbose", str(gold), str(system)]
    table = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    found = {row[0].strip(): row[3].strip() for row in map(_cells, table.splitlines()) if row[3:]}
    scores = evaluate(made_up, load_treebank(system))
    ours = {"UAS": scores.uas, "LAS": scores.las_universal, "CLAS": scores.clas}
    assert {metric: found[metric] for metric in ours} == {m: f"{v:.2f}" for m, v in ours.items()}


def _cells(line: str) -> list[str]:
    return line.split("|")


LEAVES_FILES_OPEN = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # score.py
SCORE_NAMES = {
    "sentences": "sents",
    "words": "tokens",
    "words_nopunct": "nopunct",
    "uas": "UAS",
    "las": "LAS",
    "las_universal": "LASuniv",
    "uas_nopunct": "UASnp",
    "las_nopunct": "LASnp",
    "clas": "CLAS",
    "exact_match": "UEM",
    "single_root": "single_root",
}


def load_score_script(folder: Path) -> ModuleType:
    path = folder / "score.py"
    if not path.is_file():
        pytest.skip(f"no {path}")
    spec = importlib.util.spec_from_file_location("score", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.shared
@LEAVES_FILES_OPEN
def test_evaluation_equals_score_script_on_made_up_trees(
    shared_dir: Path, made_up: list[Sentence], tmp_path: Path
) -> None:
    script = load_score_script(shared_dir)
    gold, system = tmp_path / "gold.conllu", tmp_path / "system.conllu"
    write_conllu(gold, made_up)
    odd = list(corrupted(made_up, 0.3, 3))
    odd[0] = odd[0].with_tree([0] * len(odd[0]), ["root"] * len(odd[0]), single_root=False)
    odd[1] = Sentence.from_columns(forms=odd[1].forms)
    write_conllu(system, odd)
    theirs = script.score(script.read(gold), script.read(system))
    ours = evaluate(made_up, load_treebank(system, trees="optional", single_root=False))
    assert {name: getattr(ours, name) for name in SCORE_NAMES} == pytest.approx(
        {name: theirs[key] for name, key in SCORE_NAMES.items()}, abs=1e-9
    )


@pytest.mark.shared
@LEAVES_FILES_OPEN
@pytest.mark.parametrize(
    "language", ["Afrikaans", "French", "Greek", "Portuguese", "Tamil", "Turkish"]
)
def test_evaluation_equals_both_on_real_treebanks(
    shared_dir: Path, tmp_path: Path, language: str
) -> None:
    script = load_score_script(shared_dir)
    (gold,) = shared_dir.glob(f"treebanks/UD_{language}-*/*-test.conllu")
    sentences = load_treebank(gold)
    system = tmp_path / "system.conllu"
    write_conllu(system, corrupted(sentences, 0.15, 4))
    ours = evaluate(sentences, load_treebank(system))
    theirs = script.score(script.read(gold), script.read(system))
    assert {name: getattr(ours, name) for name in SCORE_NAMES} == pytest.approx(
        {name: theirs[key] for name, key in SCORE_NAMES.items()}, abs=1e-9
    )
    assert 50 < ours.las < ours.las_universal < ours.uas < 95
    assert_equals_udeval(gold, system, uas=ours.uas, las=ours.las_universal, clas=ours.clas)
