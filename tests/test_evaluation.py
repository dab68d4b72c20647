"""Scores against hand counts, score.py and udeval; the bootstrap against a plain loop."""

import importlib.util
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tk_spacy.errors import UserError
from tk_spacy.evaluation import (
    METRICS,
    SentenceCounts,
    bootstrap_counts,
    count_sentences,
    evaluate,
    paired_bootstrap,
    scores_from_counts,
)
from tk_spacy.treebank import Sentence, load_treebank, write_conllu


def sentence(text: str, sent_id: str | None = None, single_root: bool = True) -> Sentence:
    """A sentence from "form/UPOS/HEAD/DEPREL ..."."""
    forms, upos, heads, deprels = zip(*(word.split("/") for word in text.split()), strict=True)
    return Sentence.from_columns(
        forms=forms,
        upos=upos,
        heads=list(map(int, heads)),
        deprels=deprels,
        sent_id=sent_id,
        single_root=single_root,
    )


GOLD = [
    sentence("The/DET/2/det owl/NOUN/3/nsubj:pass sleeps/VERB/0/root ./PUNCT/3/punct", "g1"),
    sentence("Go/VERB/0/root now/ADV/1/advmod", "g2"),
]
SYSTEM = [
    sentence("The/DET/2/amod owl/NOUN/3/nsubj sleeps/VERB/0/root ./PUNCT/2/punct"),
    sentence("Go/VERB/0/root now/ADV/1/advmod"),
]


def corrupted(gold: Sequence[Sentence], rate: float, seed: int) -> Iterator[Sentence]:
    """Gold trees with words attached elsewhere, roots moved and labels changed; still trees."""
    rng = random.Random(seed)
    labels = sorted({deprel for s in gold for deprel in s.deprels if deprel != "root"})
    for s in gold:
        heads = [0, *s.heads.tolist()]
        deprels = list(s.deprels)
        for word in range(1, len(heads)):
            if rng.random() < rate and heads[word]:
                head = rng.choice([h for h in range(1, len(heads)) if not _above(heads, word, h)])
                heads[word] = head
            if rng.random() < rate and heads[word]:
                deprels[word - 1] = rng.choice(labels)
        if rng.random() < rate and len(s) > 1:
            old, new = heads.index(0, 1), rng.randint(1, len(s))
            if old != new:
                heads[old], heads[new] = new, 0
                deprels[old - 1], deprels[new - 1] = rng.choice(labels), "root"
        yield s.with_tree(heads[1:], deprels)


def _above(heads: Sequence[int], word: int, other: int) -> bool:
    """Is word the other one or above it?"""
    while other and other != word:
        other = heads[other]
    return other == word


@pytest.fixture
def made_up() -> list[Sentence]:
    """Forty random trees with the labels that the metrics treat apart."""
    rng = random.Random(5)
    labels = ["nsubj", "nsubj:pass", "aux", "aux:pass", "punct", "det", "obl", "obl:agent", "conj"]
    result = []
    for number in range(40):
        n = rng.randint(1, 9)
        order = rng.sample(range(1, n + 1), n)
        heads = [0] * (n + 1)
        for above, word in pairwise(order):
            heads[word] = rng.choice([above, order[0]])
        deprels = [rng.choice(labels) if heads[word] else "root" for word in range(1, n + 1)]
        result.append(
            Sentence.from_columns(
                forms=[f"w{word}" for word in range(n)],
                upos=[rng.choice(["NOUN", "VERB", "PUNCT"]) for _ in range(n)],
                heads=heads[1:],
                deprels=deprels,
                sent_id=f"m{number}",
            )
        )
    return result


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


# --- significance


@pytest.mark.parametrize("metric", list(METRICS))
def test_bootstrap_equals_plain_loop(made_up: list[Sentence], metric: str) -> None:
    """The same drawn sentences, put together as lists and scored by ``evaluate``."""
    a, b = list(corrupted(made_up, 0.4, 1)), list(corrupted(made_up, 0.3, 2))
    result = paired_bootstrap(made_up, a, b, metric=metric, samples=50, seed=7)
    drawn = np.random.default_rng(7).integers(0, 40, size=(50, 40))
    differences = []
    for row in drawn.tolist():
        gold = [made_up[i] for i in row]
        scores = [evaluate(gold, [system[i] for i in row]) for system in (a, b)]
        differences.append(getattr(scores[1], metric) - getattr(scores[0], metric))
    found = np.round(differences, 9)
    worse, better = (1 + (found <= 0).sum()) / 51, (1 + (found >= 0).sum()) / 51
    assert result.p_one_sided == pytest.approx(worse)
    assert result.p_two_sided == pytest.approx(min(1, 2 * min(worse, better)))
    assert [result.low, result.high] == pytest.approx(np.percentile(differences, [2.5, 97.5]))
    assert result.score_a == pytest.approx(getattr(evaluate(made_up, a), metric))
    assert result.score_b == pytest.approx(getattr(evaluate(made_up, b), metric))
    assert result.difference == pytest.approx(result.score_b - result.score_a)


def test_bootstrap_extremes(made_up: list[Sentence]) -> None:
    bad = list(corrupted(made_up, 0.5, 1))
    good = paired_bootstrap(made_up, bad, made_up, samples=999)
    assert good.p_one_sided == 0.001
    assert good.p_two_sided == 0.002
    assert good.low > 0
    worse = paired_bootstrap(made_up, made_up, bad, samples=999)
    assert worse.p_one_sided == 1
    assert worse.p_two_sided == 0.002
    same = paired_bootstrap(made_up, bad, bad, samples=99)
    assert (same.difference, same.p_one_sided, same.p_two_sided) == (0, 1, 1)


def test_bootstrap_depends_on_the_seed_only(made_up: list[Sentence]) -> None:
    a, b = list(corrupted(made_up, 0.3, 1)), list(corrupted(made_up, 0.3, 2))
    results = [paired_bootstrap(made_up, a, b, samples=500, seed=seed) for seed in (1, 1, 2)]
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_bootstrap_pools_treebanks(made_up: list[Sentence]) -> None:
    a, b = list(corrupted(made_up, 0.3, 1)), list(corrupted(made_up, 0.2, 2))
    pairs = [
        (count_sentences(made_up[part], a[part]), count_sentences(made_up[part], b[part]))
        for part in (slice(10), slice(10, 40))
    ]
    pooled = bootstrap_counts(pairs, metric="las", samples=300)
    assert pooled.sentences == 40
    assert pooled.score_b == pytest.approx(evaluate(made_up, b).las)
    # A treebank of one sentence has no spread: drawn within treebanks, it is drawn once each time.
    single = bootstrap_counts([(pairs[0][0][:1], pairs[0][1][:1])] * 3, samples=20)
    assert single.low == single.high == pytest.approx(single.difference)


def test_bootstrap_p_values_are_calibrated() -> None:
    """Two systems that are equally good by construction: p < 0.1 in about a tenth of the trials."""
    rng = np.random.default_rng(0)
    low = 0
    for trial in range(200):
        tables = []
        for _ in range(2):
            table = np.zeros((150, len(SentenceCounts._fields)), np.int64)
            table[:, 0], table[:, 1] = 1, 10
            table[:, 3] = rng.binomial(10, 0.8, size=150)
            tables.append(table)
        result = bootstrap_counts([(tables[0], tables[1])], samples=400, seed=trial)
        low += result.p_two_sided < 0.1
    assert 8 <= low <= 34


def test_bootstrap_mistakes(made_up: list[Sentence]) -> None:
    counts = count_sentences(made_up, made_up)
    with pytest.raises(ValueError, match=r"metric must be one of uas, las, .*, got 'UAS'"):
        bootstrap_counts([(counts, counts)], metric="UAS")
    with pytest.raises(ValueError, match="samples must be at least 1, got 0"):
        bootstrap_counts([(counts, counts)], samples=0)
    with pytest.raises(ValueError, match="at least one treebank"):
        bootstrap_counts([])
    with pytest.raises(ValueError, match=r"a \(40 sentences\) and b \(39\) must be of the same"):
        bootstrap_counts([(counts, counts[1:])])
