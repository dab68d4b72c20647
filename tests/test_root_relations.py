"""HEAD 0 and the relation `root` go together: in what parsers give and combine."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import biaffine_parsers
import numpy as np
import pytest
from samples import sentence
from test_biaffine_model import TREEBANK, component, pipeline
from test_kernel import random_tree
from tiny_spacy import TINY
from udpipe_parsers import needs_udpipe

from tk_spacy.audit.parsed import LEAST, judge
from tk_spacy.audit.words import Words
from tk_spacy.ensemble.combiner.model import ArcCombiner
from tk_spacy.ensemble.combiner.reparsing import plain_vote
from tk_spacy.errors import ModelError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.base import Shared
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.loss import log_softmax
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.biaffine.roots import root_labels_of
from tk_spacy.parsers.biaffine.source import BiaffineSource
from tk_spacy.parsers.biaffine.spec import BiaffineSpec
from tk_spacy.parsers.biaffine.training import train_biaffine_parser
from tk_spacy.parsers.projective.settings import ProjectiveSettings
from tk_spacy.parsers.projective.source import ProjectiveSource
from tk_spacy.parsers.projective.training import train_projective_parser
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.parsers.sampling.source import SamplingSource
from tk_spacy.parsers.sampling.training import train_sampling_parser
from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.parsers.spacy_transition.training import load_spacy_config, train_spacy_parser
from tk_spacy.parsers.transition.settings import TransitionSettings
from tk_spacy.parsers.transition.source import TransitionSource
from tk_spacy.parsers.transition.training import train_transition_parser
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.parsers.udpipe.source import UdpipeSource
from tk_spacy.parsers.udpipe.training import train_udpipe_parser
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import Sentence

# No sentence of a mark alone, nor any whose root is a mark.
TREES = (
    "dogs/NOUN/2/nsubj bark/VERB/0/root ./PUNCT/2/punct",
    "cats/NOUN/2/nsubj see/VERB/0/root dogs/NOUN/2/obj !/PUNCT/2/punct",
    "run/VERB/0/root !/PUNCT/1/punct",
    "old/ADJ/2/amod dogs/NOUN/3/nsubj sleep/VERB/0/root ./PUNCT/3/punct",
    "owls/NOUN/0/root ,/PUNCT/3/punct cats/NOUN/1/conj ./PUNCT/1/punct",
    "see/VERB/0/root old/ADJ/3/amod owls/NOUN/1/obj ,/PUNCT/5/punct bark/VERB/1/conj",
)
BANK = [sentence(tree) for tree in TREES] * 8
NEW = [
    sentence("./PUNCT/0/root"),
    sentence("!/PUNCT/0/root"),
    sentence("old/ADJ/0/root"),
    sentence(",/PUNCT/2/punct ./PUNCT/0/root"),
    sentence("./PUNCT/2/punct ,/PUNCT/0/root !/PUNCT/2/punct"),
    *(sentence(tree) for tree in TREES),
]
MARK = NEW[0]


@functools.cache
def biaffine() -> BiaffineParser:
    return train_biaffine_parser(BANK, settings=biaffine_parsers.QUICK)


def spacy_source(*, backward: bool) -> SpacySource:
    config = load_spacy_config(None, max_steps=10)
    for key, value in TINY.items():
        *sections, name = key.split(".")
        place: dict[str, Any] = config
        for section in sections:
            place = place[section]
        place[name] = value
    config["training"]["max_steps"] = 10
    return SpacySource(train_spacy_parser(BANK, config=config, backward=backward))


def udpipe_source(**settings: Any) -> UdpipeSource:
    chosen = UdpipeSettings(iterations=2, hidden_layer=20, embedding_form=10, **settings)
    return UdpipeSource(train_udpipe_parser(BANK, settings=chosen))


SOURCES: dict[str, Callable[[], Any]] = {
    "biaffine": lambda: BiaffineSource(biaffine()),
    "sampling": lambda: SamplingSource(
        train_sampling_parser(BANK, settings=SamplingSettings(epochs=2, bits=14, pruner_bits=12))
    ),
    "transition": lambda: TransitionSource(
        train_transition_parser(BANK, settings=TransitionSettings(epochs=2, bits=14))
    ),
    "transition-backward": lambda: TransitionSource(
        train_transition_parser(
            BANK, settings=TransitionSettings(epochs=2, bits=14, direction="backward")
        )
    ),
    "projective": lambda: ProjectiveSource(
        train_projective_parser(
            BANK, settings=ProjectiveSettings(epochs=2, bits=14, label_bits=14, pruner_bits=14)
        )
    ),
    "spacy": lambda: spacy_source(backward=False),
    "spacy with its twin": lambda: spacy_source(backward=True),
}


def assert_together(trees: CandidateList) -> None:
    """In every tree of a list `root` is the relation of HEAD 0, and of no other."""
    is_root = np.array([name.partition(":")[0] == "root" for name in trees.inventory.names])
    np.testing.assert_array_equal(is_root[trees.labels], trees.heads == 0)


@pytest.mark.parametrize("name", [*SOURCES, pytest.param("udpipe", marks=needs_udpipe)])
def test_root_relation_and_head_0_go_together_in_all_lists(name: str) -> None:
    source = udpipe_source() if name == "udpipe" else SOURCES[name]()
    for k in (1, 12):
        for new, trees in zip(NEW, source.candidates(NEW, k=k), strict=True):
            assert_together(trees)
            assert trees.n_words == len(new)


@pytest.mark.parametrize("name", [*SOURCES, pytest.param("udpipe", marks=needs_udpipe)])
def test_labels_have_ids_before_anything_is_parsed(name: str) -> None:
    # Else ids, the order of sums, and the relation between the pieces of a long sentence would
    # depend on which sentences a process was given before.
    source = udpipe_source() if name == "udpipe" else SOURCES[name]()
    before = source.inventory.names
    assert len(before) > 1
    for trees in source.candidates(NEW, k=12):
        assert trees.inventory is source.inventory
    assert source.inventory.names == before


# The biaffine parser


def test_root_labels_are_those_of_head_0_alone() -> None:
    labels = ["amod", "nsubj", "punct", "root", "root:x"]
    plain = [sentence(TREES[0]), sentence("a/X/0/root:x b/X/1/amod")]
    assert root_labels_of(plain, labels) == ("root", "root:x")
    assert root_labels_of(plain[:1], labels) == ("root",)
    assert root_labels_of([sentence("a/X/0/TOP b/X/1/amod")], ["TOP", "amod"]) == ("TOP",)
    # Other conventions restrict nothing, nor do labels all of which are roots'.
    assert root_labels_of([*plain, sentence("a/X/0/punct")], labels) == ()
    assert root_labels_of([*plain, sentence("a/X/0/root b/X/1/root")], labels) == ()
    assert root_labels_of([MARK], ["root"]) == ()
    # Of labels that a parser is given those count that it has.
    assert root_labels_of(plain, ["nsubj", "root:x"]) == ("root:x",)
    assert root_labels_of(plain, ["nsubj"]) == ()


def test_biaffine_mark_alone_is_a_root() -> None:
    parser = biaffine()
    assert parser.root_labels == ("root",)
    ((heads, labels),) = parser.parse([MARK])
    assert (heads.tolist(), labels) == ([0], ("root",))
    # Without the rule it is not.
    ((_, labels),) = replace(parser, root_labels=()).parse([MARK])
    assert labels != ("root",)


def test_biaffine_probabilities_are_shared_by_the_labels_that_may_be() -> None:
    parser = biaffine()
    root = parser.labels.index("root")
    for new in NEW:
        network = parser.model.predict(Batch([new]))
        arcs = log_softmax(network.arcs)[0]
        (trees,) = parser.kbest([new], k=6, inventory=LabelInventory())
        (scores,) = parser.score([new], [trees])
        np.testing.assert_allclose(scores, trees.scores[:, 0], atol=1e-4)
        for row, score in enumerate(scores):
            total = 0.0
            for word, (head, label) in enumerate(
                zip(trees.heads[row].tolist(), trees.deprels(row), strict=True), 1
            ):
                total += float(arcs[word, head])
                if head:  # all labels but the root's; under the root there is no choice
                    of_labels = network.label_scores(np.array([word]), np.array([head]))[0]
                    of_labels[root] = -np.inf
                    of_labels = log_softmax(of_labels[None])[0]
                    total += float(of_labels[parser.labels.index(label)])
            assert score == pytest.approx(total, abs=1e-4)


def test_biaffine_lists_change_no_label_of_a_root() -> None:
    """A sentence of one word has one tree, one of two words as many as labels can be changed."""
    inventory = LabelInventory()
    one, two = biaffine().kbest([MARK, sentence("a/X/0/root b/X/1/x")], k=20, inventory=inventory)
    assert one.labels.tolist() == [[inventory.get("root")]]
    assert one.scores.tolist() == [[pytest.approx(0.0, abs=1e-6)]]
    assert len(two) == 4  # two heads, of the other word two labels
    assert_together(two)


def test_biaffine_trees_with_another_root_have_no_score() -> None:
    inventory = LabelInventory()
    trees = CandidateList.build(
        [
            ([2, 0, 2], ["nsubj", "root", "punct"], 3.0),
            ([2, 0, 2], ["nsubj", "punct", "punct"], 2.0),
            ([2, 0, 2], ["root", "root", "punct"], 1.0),
        ],
        inventory=inventory,
        sources=("x",),
    )
    (found,) = biaffine().score(BANK[:1], [trees])
    np.testing.assert_array_equal(np.isnan(found), [False, True, True])
    (found,) = replace(biaffine(), root_labels=()).score(BANK[:1], [trees])
    assert np.isfinite(found).all()


def test_biaffine_arc_scores_of_another_root_are_infinitely_low() -> None:
    wrong = [
        MARK.with_tree(MARK.heads, ["punct"]),
        sentence("dogs/NOUN/2/root bark/VERB/0/root ./PUNCT/2/punct"),
    ]
    mark, dogs = biaffine().arc_scores(wrong)
    (right,) = biaffine().arc_scores([MARK])
    np.testing.assert_allclose(right, [[0.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(mark, [[0.0, -np.inf]], atol=1e-6)
    np.testing.assert_array_equal(np.isneginf(dogs), [[False, True], [False, False], [False] * 2])


def test_audit_is_as_surprised_by_another_root_as_can_be() -> None:
    bank = [*BANK[:6], MARK.with_tree(MARK.heads, ["punct"])]
    source = BiaffineSource(biaffine())
    lists = list(source.candidates(bank, k=4))
    found = judge(Words.of(bank), lists, [source.arc_scores(bank)])
    assert found.label_surprise[-1] == -LEAST
    assert (found.label_surprise[:-1] < -LEAST).all()
    assert np.isfinite(found.head_surprise).all()
    assert found.labels[-1] == "root"


def test_biaffine_other_conventions_are_not_restricted() -> None:
    """Where a treebank has `punct` at HEAD 0, a mark alone may be called so."""
    bank = [*BANK, *[sentence("./PUNCT/0/punct"), sentence("?/PUNCT/0/root")] * 4]
    parser = train_biaffine_parser(bank, settings=biaffine_parsers.QUICK)
    assert parser.root_labels == ()
    (trees,) = parser.kbest([MARK], k=9, inventory=LabelInventory())
    assert {trees.deprels(row) for row in range(len(trees))} >= {("punct",), ("root",)}
    assert np.isfinite(parser.score([MARK], [trees])[0]).all()


def test_biaffine_root_labels_are_stored_and_earlier_parsers_open() -> None:
    parser = biaffine()
    files = parser.to_files()
    meta = json.loads(files["meta.json"])
    assert meta["root_labels"] == ["root"]
    again = BiaffineParser.from_bytes(parser.to_bytes())
    assert again.root_labels == ("root",)
    assert again.about == parser.about
    del meta["root_labels"]
    earlier = BiaffineParser._read_files({**files, "meta.json": b""}, meta)
    assert earlier.root_labels == ()
    ((_, labels),) = earlier.parse([MARK])
    assert labels != ("root",)
    for wrong in (("strange",), parser.labels):
        with pytest.raises(ModelError, match=r"root_labels are .*, expected some of the labels"):
            BiaffineParser.from_bytes(replace(parser, root_labels=wrong).to_bytes())


def test_biaffine_parsers_kept_before_are_trained_again() -> None:
    assert BiaffineSpec.make("biaffine", {}, Shared()).training_key()[0] == 4


def test_biaffine_component_notes_root_labels_when_it_is_initialized() -> None:
    nlp = pipeline(TREEBANK)
    nlp.initialize(lambda: list(read_examples(BANK, nlp)))
    assert component(nlp)._needed().root_labels == ("root",)
    doc = nlp(doc_from_sentence(nlp.vocab, NEW[4]))
    assert [token.dep_ == "ROOT" for token in doc] == [token.head.i == token.i for token in doc]
    again = pipeline(TREEBANK).from_bytes(nlp.to_bytes())
    assert component(again)._needed().root_labels == ("root",)


# The combiner


@pytest.mark.parametrize("seed", range(5))
def test_combined_trees_of_well_rooted_ones_are_well_rooted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold, lists = [], []
    inventory = LabelInventory(["root", "a", "b"])
    for _ in range(6):
        n = int(rng.integers(1, 8))
        heads = np.stack([random_tree(rng, n) for _ in range(6)])
        labels = np.where(heads == 0, 0, rng.integers(1, 3, heads.shape))
        lists.append(
            CandidateList.from_arrays(
                heads, labels, rng.normal(size=(6, 2)), inventory=inventory, sources=("a", "b")
            )
        )
        deprels = inventory.decode(labels[0].tolist())
        gold.append(
            Sentence.from_columns(
                forms=["w"] * n, upos=["X"] * n, heads=heads[0], deprels=list(deprels)
            )
        )
    combiner = ArcCombiner.fit(gold, lists)
    for new, trees in zip(gold, lists, strict=True):
        assert_together(combiner.extended(new, trees))
        heads, labels = plain_vote(trees)
        np.testing.assert_array_equal(labels == 0, heads == 0)
