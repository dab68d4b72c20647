"""The search behind the lists, against spaCy's own states."""

import itertools

import numpy as np
import pytest
import reference_search
from tiny_spacy import nonprojective_tree, tiny_nlp

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.spacy_transition.context_scores import ContextScores
from tk_spacy.parsers.spacy_transition.discrepancy_search import DiscrepancySearch
from tk_spacy.parsers.spacy_transition.tree_pool import PoolMaker, best_labellings
from tk_spacy.parsers.spacy_transition.tree_scores import score_trees
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.synthetic import generate


@pytest.fixture(scope="module")
def sentences():
    return list(generate(60, seed=5))


@pytest.fixture(scope="module")
def nlp():
    return tiny_nlp()


def test_search_agrees_with_spacys_own_states(nlp, sentences):
    parser = nlp.get_pipe("parser")
    maker = PoolMaker(parser, inventory=LabelInventory())
    names = [name[2:] for name in parser.move_names]
    compared = 0
    for sentence in [s for s in sentences if len(s) <= 8][:8]:
        doc = doc_from_sentence(nlp.vocab, sentence)
        expected = reference_search.search(parser, doc, max_runs=25)
        maker.begin(doc, maker.vectors([doc]), first=0)
        heads, labels, _, _, logps, _ = maker.search.search(
            max_runs=25, max_trees=25, max_margin=np.inf
        )
        found = {
            (tuple(h), tuple("ROOT" if action < 0 else names[action] for action in row)): logp
            for h, row, logp in zip(heads.tolist(), labels.tolist(), logps.tolist(), strict=True)
        }
        assert found == pytest.approx(expected, abs=1e-3)
        compared += len(found)
    assert compared > 50


def test_search_scores_no_tree_above_certainty(nlp):
    """The probabilities of different trees of a sentence sum to 1 at most."""
    maker = PoolMaker(nlp.get_pipe("parser"), inventory=LabelInventory())
    sentence = next(s for s in generate(400, seed=2) if len(s) == 3)
    maker.model.begin(maker.vectors([doc_from_sentence(nlp.vocab, sentence)]), first=0, n_words=3)
    heads, actions, *_ = maker.search.search(max_runs=500, max_trees=500, max_margin=np.inf)
    logps = score_trees(maker.model, heads=heads, actions=actions)
    assert 0.05 < np.exp(logps).sum() <= 1.0 + 1e-5


def test_search_knows_no_second_label_where_a_direction_has_one():
    random = np.random.default_rng(3)
    shift, reduce, left, right = range(4)
    hidden, pieces, features, n_words = 6, 2, 8, 9
    seen: set[int] = set()
    for _ in range(5):
        move_types = np.array([shift, reduce, left, right, right], dtype=np.int32)
        model = ContextScores(
            move_types=move_types,
            lower_b=random.normal(size=(hidden, pieces)),
            upper_w=random.normal(size=(5, hidden)),
            upper_b=random.normal(size=5),
        )
        cached = random.normal(size=(1 + n_words, features * hidden * pieces)).astype(np.float32)
        model.begin(cached, first=0, n_words=n_words)
        _, actions, seconds, margins, *_ = DiscrepancySearch(model).search(
            max_runs=40, max_trees=40, max_margin=np.inf
        )
        seen |= set(actions.ravel().tolist())
        # The other of two labels, and none beside the only one or of a root.
        assert (seconds == np.where(actions >= 3, 7 - actions, -1)).all()
        assert (np.isinf(margins) == (seconds < 0)).all()
        assert (margins >= 0).all()
    assert seen == {-1, left, 3, 4}


def test_search_refuses_what_does_not_fit(nlp):
    maker = PoolMaker(nlp.get_pipe("parser"), inventory=LabelInventory())
    with pytest.raises(ValueError, match="call its begin"):
        maker.search.search(max_runs=1, max_trees=1, max_margin=1.0)
    cached = maker.vectors([doc_from_sentence(nlp.vocab, nonprojective_tree())])
    with pytest.raises(ValueError, match="words 3 to 9 are not in a batch of 6"):
        maker.model.begin(cached, first=3, n_words=6)
    with pytest.raises(ValueError, match="are not in a batch"):
        maker.model.begin(cached, first=0, n_words=0)
    with pytest.raises(ValueError, match="columns"):
        maker.model.begin(np.ascontiguousarray(cached[:, :8]), first=0, n_words=6)
    maker.model.begin(cached, first=0, n_words=6)
    with pytest.raises(ValueError, match="must be positive"):
        maker.search.search(max_runs=0, max_trees=1, max_margin=1.0)
    with pytest.raises(ValueError, match="heads of 2 words for a sentence of 6"):
        score_trees(maker.model, heads=np.zeros((1, 2), "i4"), actions=np.zeros((1, 2), "i4"))
    with pytest.raises(ValueError, match="actions must be -1 to"):
        score_trees(maker.model, heads=np.zeros((1, 6), "i4"), actions=np.full((1, 6), 9999, "i4"))


def test_best_labellings_are_those_of_enumeration():
    random = np.random.default_rng(0)
    scores = random.normal(size=3)
    costs = random.exponential(size=(3, 5))
    costs[0, 2] = costs[2, :] = np.inf
    everything = [
        (scores[row] - sum(costs[row, list(words)]), row, words)
        for row in range(3)
        for size in range(6)
        for words in itertools.combinations(range(5), size)
    ]
    everything = sorted((x for x in everything if np.isfinite(x[0])), key=lambda x: -x[0])
    found = best_labellings(scores, costs, limit=40)
    assert [(row, tuple(sorted(words))) for row, words in found] == [
        (row, words) for _, row, words in everything[:40]
    ]
