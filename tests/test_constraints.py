"""Constraints of well-formed trees: as UD's validator counts them, by kind."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from reference_constraints import PlainTrees
from udtools.incident import IncidentType
from udtools.validator import Validator

from tk_spacy.evaluation.well_formed import count_violations, violations_table, word_facts
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.trees.constraints import (
    KINDS,
    OF_TAGS,
    ROOTS,
    STRUCTURE,
    SUBJECTS,
    WordFacts,
    violations,
)

RELATIONS = (
    "nsubj nsubj:pass nsubj:outer csubj csubj:outer obj ccomp obl nmod acl appos advmod case mark "
    "aux cop det clf cc fixed goeswith punct conj flat expl nummod orphan reparandum compound"
).split()
TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
FEATS = ("_", "_", "Polarity=Neg", "Poss=Yes", "ExtPos=ADP", "ExtPos=PROPN", "ExtPos=PUNCT")


def random_sentence(generator: random.Random, number: int, relations: list[str]) -> str:
    n = generator.randint(1, 9)
    order = generator.sample(range(1, n + 1), n)  # each word's head comes before it
    heads = {order[0]: 0, **{w: generator.choice(order[:i]) for i, w in enumerate(order) if i}}
    lines = [f"# sent_id = s{number}", "# text = " + " ".join("a" for _ in range(n))]
    for word in range(1, n + 1):
        label = generator.choice(relations) if heads[word] else "root"
        misc = generator.choice(["_"] * 6 + ["Subject=Outer"])
        tag, feats = generator.choice(TAGS), generator.choice(FEATS)
        lines.append(f"{word}\ta\ta\t{tag}\t_\t{feats}\t{heads[word]}\t{label}\t_\t{misc}")
    return "\n".join(lines) + "\n\n"


def theirs(path: Path) -> dict[str, int]:
    """What the validator counts, of our kinds."""
    state = Validator(lang="ud", level=3, output=None).validate_files([str(path)])
    errors = [e for e in state.error_tracker if e.get_type() == IncidentType.ERROR]
    return {k: c for k, c in Counter(e.testid for e in errors).items() if k in KINDS}


@pytest.mark.parametrize(
    "relations",
    [
        RELATIONS,
        ["nsubj", "obj", "obl", "cop"],
        ["punct", "punct", "goeswith", "conj"],
        ["det", "appos", "advmod", "acl", "fixed"],
    ],
)
def test_constraints_are_counted_as_the_validator_does(
    tmp_path: Path, relations: list[str]
) -> None:
    generator = random.Random(3)
    path = tmp_path / "random.conllu"
    path.write_text("".join(random_sentence(generator, i, relations) for i in range(250)))
    found = count_violations(load_treebank(path))
    assert found == theirs(path)
    assert sum(found.values()) > 100


def tree(text: str) -> Sentence:
    """From words such as `NOUN:0:root`."""
    columns = [word.split(":", 2) for word in text.split()]
    return Sentence.from_columns(
        forms=["w"] * len(columns),
        upos=[c[0] for c in columns],
        heads=[int(c[1]) for c in columns],
        deprels=[c[2] for c in columns],
        single_root=False,
    )


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("NOUN:2:nsubj VERB:0:root NOUN:2:obj PUNCT:2:punct", {}),
        # One error a head, however many subjects; an outer one is no more.
        ("NOUN:4:nsubj NOUN:4:nsubj:pass NOUN:4:csubj VERB:0:root", {"too-many-subjects": 1}),
        ("NOUN:3:nsubj:outer NOUN:3:nsubj VERB:0:root", {}),
        ("VERB:0:root NOUN:1:obj NOUN:1:obj NOUN:1:iobj", {"too-many-objects": 1}),
        # One error a dependent of the leaf; coordination is fine.
        ("NOUN:0:root ADP:1:case ADJ:2:amod ADV:2:advmod ADP:2:conj", {"leaf-mark-case": 1}),
        ("NOUN:0:root AUX:1:cop ADV:2:advmod", {"leaf-aux-cop": 1}),
        ("NOUN:2:conj NOUN:0:root", {"right-to-left-conj": 1}),
        ("NOUN:0:root NOUN:0:root NOUN:0:root", {ROOTS: 2}),
        ("PUNCT:2:punct VERB:0:root PUNCT:2:nsubj", {"upos-rel-punct": 1}),
        # Word 4 hangs on word 2 over word 3, which hangs on word 1; so it may not be punctuation.
        ("VERB:0:root NOUN:1:obj NOUN:1:iobj PUNCT:2:punct", {"punct-is-nonproj": 1}),
        # Word 3 stands between word 2 and its dependent, but is not below it.
        ("VERB:0:root NOUN:1:obj PUNCT:1:punct ADJ:2:amod", {"punct-causes-nonproj": 1}),
    ],
)
def test_constraints_by_example(text: str, kinds: dict[str, int]) -> None:
    assert count_violations([tree(text)]) == kinds


def random_heads(generator: np.random.Generator, n: int, k: int, least: int) -> np.ndarray:
    """Trees of n words, each with a root or several; least: -1 for words without heads, too."""
    trees = np.zeros((k, n), np.int32)
    for heads in trees:
        order = generator.permutation(n)
        for i in range(1, n):
            heads[order[i]] = order[generator.integers(i)] + 1
        loose = generator.random(n) < 0.1
        heads[loose] = generator.integers(least, 1, size=int(loose.sum()))
    return trees


@pytest.mark.parametrize("least", [0, -1])
@pytest.mark.parametrize(
    "relations",
    [
        [*RELATIONS, "root"],
        ["nsubj", "csubj:outer", "nsubj:pass", "obj", "obl", "cop", "root"],
        ["punct", "punct", "goeswith", "conj", "root"],
        ["det", "appos", "advmod", "acl", "fixed", "goeswith", "strange"],
    ],
)
def test_constraints_of_many_trees_are_those_of_the_plain_twin(
    relations: list[str], least: int
) -> None:
    generator = np.random.default_rng(5)
    for n in (1, 2, 3, 7, 12):
        heads = random_heads(generator, n, 60, least)
        labels = generator.integers(len(relations), size=heads.shape).astype(np.int32)
        upos, feats = (
            [values[i] for i in generator.integers(len(values), size=n)] for values in (TAGS, FEATS)
        )
        misc = [
            ("_", "Subject=Outer", "NotSubject=Outer")[i] for i in generator.integers(3, size=n)
        ]
        words = WordFacts.of_columns(upos, feats, misc)
        found = violations(heads, labels, relations, words)
        plain = PlainTrees(heads, labels, relations, upos, feats, misc)
        for given, expected in ((found.at, plain.at), (found.blamed, plain.blamed)):
            assert given.keys() == expected.keys()
            assert all((given[kind] == expected[kind]).all() for kind in given)
        zero = np.zeros(heads.shape, np.bool_)
        assert found.counts().T.tolist() == [
            plain.at.get(kind, zero).sum(axis=1).tolist() for kind in KINDS
        ]
        assert (found.suspects == np.any([zero, *plain.blamed.values()], axis=0)).all()
        assert found.counts([SUBJECTS]).shape == (60, 1)
        assert found.counts([]).shape == (60, 0)


@pytest.mark.parametrize(
    ("heads", "labels", "message"),
    [
        ([[3, 0]], [[0, 0]], r"heads\[0, 0\] is 3, expected -1 to 2"),
        ([[-2, 0]], [[0, 0]], r"heads\[0, 0\] is -2, expected -1 to 2"),
        ([[2, 0]], [[0, 1]], r"labels\[0, 1\] is 1, expected 0 to 0"),
    ],
)
def test_constraints_refuse_other_heads_and_labels(
    heads: list[list[int]], labels: list[list[int]], message: str
) -> None:
    words = word_facts(tree("VERB:0:root NOUN:1:obj"))
    with pytest.raises(ValueError, match=message):
        violations(np.array(heads, np.int32), np.array(labels, np.int32), ["root"], words)


def test_constraints_want_arrays_that_fit() -> None:
    words = word_facts(tree("VERB:0:root NOUN:1:obj"))
    heads = np.zeros((3, 3), np.int32)
    with pytest.raises(ValueError, match=r"heads \(3, 3\) and labels \(3, 3\) of 2 words"):
        violations(heads, heads, ["root"], words)


def test_constraints_table_has_what_occurs_and_sums() -> None:
    table = violations_table("t", {"gold": {}, "a": {STRUCTURE[1]: 2, OF_TAGS[0]: 1}})
    assert table.rows == ((STRUCTURE[1], 0, 2), (OF_TAGS[0], 0, 1), ("all", 0, 3))
