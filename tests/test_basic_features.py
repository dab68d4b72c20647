"""The basic features of arcs against the paper's table, written out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from test_kernel import random_sentence, random_tree

from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.selection.arc_keys import arc_keys
from tk_spacy.selection.basic import BasicFeatures
from tk_spacy.selection.key_table import KeyTable
from tk_spacy.selection.templates import FeatureNames, unpack

TABLE_1 = (
    "hw mw", "hp mp", "hw mp", "hp mw", "hp-1 mp", "hp-1 mw", "hp mp-1", "hw mp-1", "hp+1 mp",
    "hp+1 mw", "hp mp+1", "hw mp+1", "hp-1 hp mp", "hp hp+1 mp", "hp mp-1 mp", "hp mp mp+1",
)  # fmt: skip
LENGTHS = {1: "1", 2: "2", 3: "3", 4: "4", 5: "5-6", 6: "5-6", 7: "7-10"}


def value(sentence, word, column):
    n = len(sentence.forms)
    name = {"w": "FORM", "p": "POS"}[column]
    if word == 0:
        return name, "ROOT"
    if not 1 <= word <= n:
        return name, "BOUNDARY"
    return name, (sentence.forms if column == "w" else sentence.xpos)[word - 1]


def expected_names(sentence, head, word, label=None):
    names = []
    side = "left" if head < word else "right"
    place = f" & length={LENGTHS[abs(head - word)]} & head={side}"
    for number, template in enumerate(TABLE_1):
        parts = []
        for part in template.split():
            role, column, offset = part[0], part[1], int(part[2:] or 0)
            position = head if role == "h" else word
            if offset and position == 0:
                break
            # The word left of the first one is the boundary, not the root.
            at = position + offset if not offset or position + offset != 0 else -1
            name, found = value(sentence, at, column)
            parts.append(f"{role}{part[2:]}-{name}={found}")
        else:
            text = " & ".join(parts)
            names += [text, text + place]
            if label and number < 4:
                names.append(f"{text} & DEPREL={label}")
    between = {sentence.xpos[b - 1] for b in range(min(head, word) + 1, max(head, word))}
    ends = value(sentence, head, "p")[1], value(sentence, word, "p")[1]
    names += [f"h-POS={ends[0]} & b-POS={tag} & m-POS={ends[1]}" for tag in between]
    return Counter(names)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_every_arc_has_the_features_of_table_1(seed, labelled):
    rng = np.random.default_rng(seed)
    sentence = random_sentence(rng, n=int(rng.integers(1, 8)))
    schema = Schema.fit([sentence, random_sentence(rng), random_sentence(rng)])
    n = len(sentence)
    inventory = LabelInventory()
    trees = [(random_tree(rng, n), rng.choice(["x", "y"], n).tolist(), 0.0) for _ in range(3)]
    for _, labels, _ in trees:
        labels[:] = [sentence.deprels[0]] * n
    candidates = CandidateList.build(trees, inventory=inventory, sources=["a"])
    basic = BasicFeatures.fit(schema, [sentence], [candidates], labelled=labelled)
    encoded = basic.encode(sentence, candidates)
    names = np.array(basic.names(), dtype=object)
    for row, arcs in zip(candidates.heads, encoded.members, strict=True):
        for word, (head, arc) in enumerate(zip(row.tolist(), arcs.tolist(), strict=True), 1):
            ids = encoded.ids[encoded.starts[arc] : encoded.starts[arc + 1]]
            assert (np.diff(ids) > 0).all()
            label = sentence.deprels[0] if labelled else None
            assert Counter(names[ids]) == expected_names(sentence, head, word, label)


def test_features_that_training_never_saw_are_left_out():
    rng = np.random.default_rng(5)
    seen, new = random_sentence(rng, n=5, alphabet="ab"), random_sentence(rng, n=5, alphabet="z")
    schema = Schema.fit([seen])
    starts, keys = arc_keys(schema.encode(new).fields, [2], [1], [0])
    assert starts.tolist() == [0, len(keys)]
    assert not any("FORM" in FeatureNames(schema).name(key) for key in keys.tolist())


def test_numbers_rise_with_frequency():
    rng = np.random.default_rng(6)
    sentences = [random_sentence(rng, n=6) for _ in range(30)]
    inventory = LabelInventory()
    lists = [
        CandidateList.build(
            [(random_tree(rng, 6), s.deprels, 0.0) for _ in range(3)],
            inventory=inventory, sources=["a"],
        )
        for s in sentences
    ]  # fmt: skip
    basic = BasicFeatures.fit(Schema.fit(sentences), sentences, lists)
    counts = np.bincount(
        np.concatenate([encoded.ids for encoded in basic.encode_all(sentences, lists)])
    )
    assert (np.diff(counts) >= 0).all()
    some = BasicFeatures.fit(Schema.fit(sentences), sentences, lists, min_count=4)
    assert len(some) == (counts >= 4).sum()


def test_keys_can_be_read_again():
    assert unpack((5 << 22 | 9 << 36 | 13 << 50) | 13) == (12, 0, 0, (5, 9, 13))
    assert unpack((7 << 22 | 1 << 43) | 3 << 10 | 17 << 5 | 1) == (0, 17, 3, (7, 1))


def test_a_table_numbers_keys_in_their_order():
    rng = np.random.default_rng(0)
    keys = rng.integers(1, 1 << 63, size=5000, dtype=np.uint64)
    table = KeyTable()
    assert table.add_all(keys).tolist() == list(range(5000))
    assert table.add_all(keys[::-1].copy()).tolist() == list(range(4999, -1, -1))
    assert table.find_all(np.array([keys[7], 12345, 0], dtype=np.uint64)).tolist() == [7, -1, -1]
    starts, numbers = table.known(
        [0, 3, 5], np.array([keys[9], 12345, keys[2], 99, keys[0]], np.uint64)
    )
    assert (starts.tolist(), numbers.tolist()) == ([0, 2, 3], [2, 9, 0])
    with pytest.raises(ValueError, match="a key is 0"):
        table.add_all(np.zeros(1, dtype=np.uint64))
