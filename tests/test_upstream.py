"""spaCy as upstream: Docs and Sentences, training, and candidate lists from a trained parser."""

import itertools

import numpy as np
import pytest
import reference_search
import spacy
from spacy.pipeline._parser_internals.nonproj import projectivize
from spacy.tokens import Doc
from spacy.util import registry
from tiny_upstream import nonprojective_tree, tiny_config

from tk_spacy.candidates import CandidateList, LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.synthetic import generate
from tk_spacy.treebank import Sentence, check_tree, write_conllu
from tk_spacy.upstream import train_parser
from tk_spacy.upstream.corpus import (
    create_conllu_reader,
    doc_from_sentence,
    sentence_from_doc,
    sentences_from_doc,
    set_tree,
    to_ud_label,
)
from tk_spacy.upstream.discrepancy import PoolMaker, best_labellings
from tk_spacy.upstream.mirror import mirrored_doc, mirrored_heads, mirrored_sentence
from tk_spacy.upstream.projectivity import deprojectivize
from tk_spacy.upstream.spacy_parser import SpacySource, train_upstream
from tk_spacy.upstream.tree_scores import score_trees


@pytest.fixture(scope="module")
def sentences():
    return list(generate(60, seed=5))


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    config = tiny_config(tmp_path_factory.mktemp("upstream") / "tiny.cfg")
    return train_upstream(list(generate(120, seed=3)), config=config)


@pytest.fixture(scope="module")
def twin_nlp(tmp_path_factory):
    """A parser with its right-to-left twin."""
    config = tiny_config(tmp_path_factory.mktemp("upstream") / "tiny.cfg")
    return train_upstream(list(generate(120, seed=3)), config=config, backward=True)


def listening_config(path, *, max_steps):
    """A config of a parser that listens to a tok2vec component before it."""
    config = train_parser.load_upstream_config(tiny_config(path, training__max_steps=max_steps))
    tok2vec = config["components"]["parser"]["model"]["tok2vec"]
    tok2vec["embed"]["width"] = 24
    config["components"]["tok2vec"] = {"factory": "tok2vec", "model": tok2vec}
    config["components"]["parser"]["model"]["tok2vec"] = {
        "@architectures": "spacy.Tok2VecListener.v1",
        "width": 24,
        "upstream": "*",
    }
    config["nlp"]["pipeline"] = ["tok2vec", "parser"]
    return config


@pytest.fixture(scope="module")
def listening_nlp(tmp_path_factory):
    path = tmp_path_factory.mktemp("upstream") / "tiny.cfg"
    return train_upstream(list(generate(60, seed=3)), config=listening_config(path, max_steps=15))


def own_trees(nlp, sentences, component="parser") -> list[tuple[list[int], list[str]]]:
    """What the pipeline itself predicts."""
    trees = []
    for sentence in sentences:
        doc = doc_from_sentence(nlp.vocab, sentence)
        for name, pipe in nlp.pipeline:
            doc = pipe(doc)
            if name == component:
                break
        heads = [0 if token.head.i == token.i else token.head.i + 1 for token in doc]
        trees.append((heads, [to_ud_label(token.dep_) for token in doc]))
    return trees


def base_trees(lists: list[CandidateList]) -> list[tuple[list[int], list[str]]]:
    return [(trees.heads[trees.base].tolist(), list(trees.deprels(trees.base))) for trees in lists]


def assert_usable(lists: list[CandidateList], k: int) -> None:
    for trees in lists:
        assert 1 <= len(trees) <= k
        assert all(check_tree(heads) is None for heads in trees.heads)
        distinct = {
            (h.tobytes(), r.tobytes()) for h, r in zip(trees.heads, trees.labels, strict=True)
        }
        assert len(distinct) == len(trees)
        assert np.all(np.isfinite(trees.scores))
        assert np.all(np.diff(trees.scores[:, 0]) <= 0)
        assert np.all(trees.scores <= 1e-6)
    labels = {name for trees in lists for name in trees.inventory.names}
    assert not any("||" in name for name in labels)
    assert "ROOT" not in labels


# Docs and Sentences


def test_corpus_sentence_to_doc_and_back_keeps_columns_and_tree():
    for sentence in [nonprojective_tree(), *generate(20, seed=8)]:
        doc = doc_from_sentence(spacy.blank("xx").vocab, sentence, with_tree=True)
        back = sentence_from_doc(doc)
        assert back.heads.tolist() == sentence.heads.tolist()
        for column in ("forms", "upos", "xpos", "feats", "deprels"):
            assert getattr(back, column) == getattr(sentence, column)


def test_corpus_docs_keep_spaces():
    sentence = Sentence.from_columns(
        forms=["Nein", ",", "danke"], misc=["SpaceAfter=No", "_", "Gloss=x|SpaceAfter=No"]
    )
    doc = doc_from_sentence(spacy.blank("xx").vocab, sentence)
    assert doc.text == "Nein, danke"
    assert sentence_from_doc(doc).misc == ("SpaceAfter=No", "_", "SpaceAfter=No")
    assert not sentence_from_doc(doc).has_tree


def test_corpus_sentences_of_a_longer_doc_count_from_their_own_start():
    vocab = spacy.blank("xx").vocab
    doc = Doc(
        vocab,
        words="a b c d e".split(),
        heads=[1, 1, 3, 3, 2],
        deps=["det", "ROOT", "x", "ROOT", "y"],
        sent_starts=[True, False, True, False, False],
    )
    first, second = sentences_from_doc(doc)
    assert (first.heads.tolist(), first.deprels) == ([2, 0], ("det", "root"))
    assert (second.heads.tolist(), second.deprels) == ([2, 0, 1], ("x", "root", "y"))
    with pytest.raises(ValueError, match="2 roots; take the sentences one by one"):
        sentence_from_doc(doc)


def test_corpus_white_space_tokens_become_empty_columns():
    doc = Doc(spacy.blank("xx").vocab, words=["a", "\n\n", "b"])
    assert sentence_from_doc(doc).forms == ("a", "_", "b")


def test_corpus_set_tree_writes_what_was_given():
    doc = Doc(spacy.blank("xx").vocab, words="a b c".split())
    set_tree(doc, np.array([3, 1, 0]), ["x", "y", "ROOT"])
    assert [token.head.i for token in doc] == [2, 0, 2]
    assert [token.dep_ for token in doc] == ["x", "y", "ROOT"]


def test_corpus_names_a_tag_that_spacy_does_not_know():
    sentence = Sentence.from_columns(forms=["a"], upos=["Nn"], sent_id="s7")
    with pytest.raises(UserError, match=r"s7.*'Nn' is no universal part of speech"):
        doc_from_sentence(spacy.blank("xx").vocab, sentence)


def test_corpus_reader_yields_one_sentence_a_doc(tmp_path):
    path = tmp_path / "some.conllu"
    write_conllu(path, generate(4, seed=1))
    nlp = spacy.blank("xx")
    reader = registry.readers.get("tk_spacy.ConlluCorpus.v1")
    examples = list(reader(path, gold_tags=True, limit=3)(nlp))
    assert len(examples) == 3
    for example, sentence in zip(examples, generate(3, seed=1), strict=True):
        assert [t.is_sent_start for t in example.predicted] == [True] + [False] * (
            len(sentence) - 1
        )
        assert not example.predicted.has_annotation("DEP")
        assert tuple(t.pos_ for t in example.predicted) == sentence.upos
        assert example.reference.has_annotation("DEP")
    (bare, *_) = create_conllu_reader(path, gold_tags=False)(nlp)
    assert not bare.predicted.has_annotation("TAG")
    assert list(create_conllu_reader(None)(nlp)) == []


# Non-projective trees


def spacys_deprojectivize(heads, labels) -> tuple[list[int], list[str]]:
    from spacy.pipeline._parser_internals.nonproj import deprojectivize as spacys

    doc = Doc(spacy.blank("xx").vocab, words=["x"] * len(heads), heads=heads, deps=labels)
    doc = spacys(doc)
    return [token.head.i for token in doc], [token.dep_ for token in doc]


@pytest.mark.parametrize("seed", range(200))
def test_deprojectivize_does_as_spacy_does(seed):
    """Random trees, projectivized, with labels from so few that searches meet the wrong word."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 12))
    order = random.permutation(n)
    heads = [0] * n
    for position, word in enumerate(order):
        heads[word] = int(order[random.integers(position)]) if position else int(word)
    labels = ["ROOT" if heads[i] == i else "ab"[random.integers(2)] for i in range(n)]
    projective, decorated = projectivize(heads, labels)
    expected = spacys_deprojectivize(projective, decorated)
    own = [-1 if head == i else head for i, head in enumerate(projective)]
    deprojectivize(own, decorated)
    assert [i if head < 0 else head for i, head in enumerate(own)] == expected[0]
    assert decorated == expected[1]


def test_deprojectivize_leaves_a_label_whose_head_is_not_found():
    heads, labels = [1, -1], ["x||nowhere", "ROOT"]
    deprojectivize(heads, labels)
    assert (heads, labels) == ([1, -1], ["x", "ROOT"])


# Training


def test_train_upstream_learns_and_reports_steps(tmp_path):
    data = [nonprojective_tree() for _ in range(40)]
    steps = []
    nlp = train_upstream(
        data, dev=data[:5], config=tiny_config(tmp_path / "tiny.cfg"), progress=steps.append
    )
    (trees,) = SpacySource(nlp).candidates([nonprojective_tree()], k=3)
    assert trees.heads[trees.base].tolist() == nonprojective_tree().heads.tolist()
    assert trees.deprels(trees.base) == nonprojective_tree().deprels
    assert [step.step for step in steps] == list(range(41))
    assert {step.of for step in steps} == {40}
    assert [step.step for step in steps if step.scores] == [0, 10, 20, 30, 40]
    assert steps[-1].scores["dep_las"] == 1.0


def test_train_upstream_is_deterministic_and_heeds_the_seed(tmp_path):
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=3)
    data = list(generate(20, seed=3))
    first, second, other = (
        train_upstream(data, config=config, seed=seed).get_pipe("parser").model.to_bytes()
        for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_train_upstream_leaves_no_trace_of_temporary_files(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    text = (tmp_path / "model" / "config.cfg").read_text()
    assert "train.conllu" not in text
    assert "ProgressLogger" not in text
    again = spacy.load(tmp_path / "model")
    sentence = nonprojective_tree()
    assert own_trees(again, [sentence]) == own_trees(nlp, [sentence])


def test_train_upstream_keeps_rare_relations(tmp_path):
    data = [*generate(10, seed=3), nonprojective_tree()]
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=1)
    names = train_upstream(data, config=config).get_pipe("parser").move_names
    assert "R-nmod||nsubj" in names or "R-nmod" in names
    assert "R-advmod" in names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "not a config that spaCy can read"),
        ("not a config", "not a config that spaCy can read"),
        ("[paths]\ntrain = null\n", r"it needs \[nlp\] and \[training\]"),
        ("[nlp]\nlang = 'xx'\n[training]\nseed = 1\n", "max_steps must be set"),
    ],
)
def test_train_upstream_names_a_config_that_is_none(tmp_path, text, reason):
    path = tmp_path / "my.cfg"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=rf"my.cfg: .*{reason}") as caught:
        train_upstream([nonprojective_tree()], config=path)
    assert "\n" not in str(caught.value)


def test_train_upstream_needs_trees():
    with pytest.raises(UserError, match="no sentence"):
        train_upstream([])
    with pytest.raises(UserError, match="sentence 's1': no tree"):
        train_upstream([Sentence.from_columns(forms=["a"], sent_id="s1")])


# Candidate lists


@pytest.mark.parametrize("search", ["discrepancy", "beam", "both"])
def test_spacy_source_lists_are_trees_with_the_parsers_own_marked(nlp, sentences, search):
    lists = list(SpacySource(nlp, search=search).candidates(sentences, k=10))
    assert_usable(lists, 10)
    assert base_trees(lists) == own_trees(nlp, sentences)


def test_spacy_source_discrepancies_come_close_to_the_gold_tree(nlp, sentences):
    lists = list(SpacySource(nlp).candidates(sentences, k=10))
    right = {
        row: sum(
            int((trees.heads[pick] == s.heads).sum())
            for trees, s in zip(lists, sentences, strict=True)
            for pick in [trees.base if row == "base" else trees.oracle(s)]
        )
        for row in ("base", "oracle")
    }
    assert right["oracle"] > 1.1 * right["base"]
    assert sum(map(len, lists)) > 9 * len(lists)


def test_spacy_source_k_1_is_the_parser_itself(nlp, sentences):
    lists = list(SpacySource(nlp).candidates(sentences[:20], k=1))
    assert [len(trees) for trees in lists] == [1] * 20
    assert base_trees(lists) == own_trees(nlp, sentences[:20])


def test_spacy_source_batches_change_nothing(nlp, sentences):
    large = SpacySource(nlp).candidates(sentences, k=5)
    small = SpacySource(nlp, batch_words=1).candidates(sentences, k=5)
    for a, b in zip(large, small, strict=True):
        assert base_trees([a]) == base_trees([b])
        np.testing.assert_allclose(a.scores[0], b.scores[0], atol=1e-3)


def test_spacy_source_serves_a_parser_that_listens(listening_nlp, sentences):
    for search in ("discrepancy", "beam"):
        lists = list(SpacySource(listening_nlp, search=search).candidates(sentences, k=5))
        assert_usable(lists, 5)
        assert base_trees(lists) == own_trees(listening_nlp, sentences)


def test_spacy_source_serves_a_beam_parser(tmp_path, sentences):
    config = train_parser.load_upstream_config(
        tiny_config(tmp_path / "tiny.cfg", training__max_steps=10)
    )
    config["components"]["parser"].update(
        {"factory": "beam_parser", "beam_width": 4, "beam_update_prob": 0.5}
    )
    beam_nlp = train_upstream(list(generate(40, seed=3)), config=config)
    lists = list(SpacySource(beam_nlp).candidates(sentences[:20], k=8))
    assert_usable(lists, 8)
    assert base_trees(lists) == own_trees(beam_nlp, sentences[:20])


def test_spacy_source_docs_may_have_stray_sentence_starts(nlp, sentences):
    (expected,) = SpacySource(nlp).candidates(sentences[:1], k=5)
    doc = doc_from_sentence(nlp.vocab, sentences[0])
    doc[2].is_sent_start = True
    (found,) = SpacySource(nlp).candidates_from_docs([doc], k=5)
    np.testing.assert_array_equal(found.heads, expected.heads)


def test_spacy_source_single_words_have_one_tree(nlp):
    (trees,) = SpacySource(nlp, search="both").candidates(
        [Sentence.from_columns(forms=["Halt"])], k=9
    )
    assert trees.heads.tolist() == [[0]]
    assert trees.deprels(0) == ("root",)


def test_spacy_source_names_what_the_pipeline_has(nlp):
    with pytest.raises(UserError, match="no component 'ner'; it has: parser"):
        SpacySource(nlp, component="ner")
    other = spacy.blank("xx")
    other.add_pipe("sentencizer")
    with pytest.raises(UserError, match="'sentencizer' is a Sentencizer"):
        SpacySource(other, component="sentencizer")


def test_spacy_source_scores_trees_of_any_origin(nlp, sentences):
    source = SpacySource(nlp)
    for sentence, trees in zip(sentences[:20], source.candidates(sentences[:20], k=6), strict=True):
        scores = source.scores(sentence, trees)
        # A listed tree has at least the score of the oracle's derivation.
        assert np.all(scores <= trees.scores[:, 0] + 1e-6)
        assert np.all(np.isfinite(scores))
    unknown = CandidateList.build(
        [(nonprojective_tree().heads, ["no-such-label"] * 6, 0.0)],
        inventory=LabelInventory(),
        sources=("file",),
    )
    assert source.scores(nonprojective_tree(), unknown).tolist() == [-np.inf]


# The right-to-left twin


def test_mirrored_sentences_and_docs_are_their_own_mirror_images():
    for sentence in [nonprojective_tree(), *generate(10, seed=8)]:
        turned = mirrored_sentence(sentence)
        assert check_tree(turned.heads) is None
        assert turned.forms == sentence.forms[::-1]
        again = mirrored_sentence(turned)
        assert again.heads.tolist() == sentence.heads.tolist()
        assert (again.deprels, again.feats) == (sentence.deprels, sentence.feats)
        vocab = spacy.blank("xx").vocab
        by_doc = mirrored_doc(doc_from_sentence(vocab, sentence))
        by_sentence = doc_from_sentence(vocab, turned)
        for attribute in ("text", "norm", "tag_", "pos_", "morph", "lemma_", "is_sent_start"):
            assert [getattr(t, attribute) for t in by_doc] == [
                getattr(t, attribute) for t in by_sentence
            ]


def test_backward_twin_is_kept_with_the_pipeline_and_does_not_run_in_it(twin_nlp, nlp, tmp_path):
    twin_nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert again.pipe_names == ["parser"]
    assert again.disabled == ["parser_backward"]
    sentences = list(generate(10, seed=6))
    assert own_trees(again, sentences) == own_trees(nlp, sentences)
    (expected, found) = (
        list(SpacySource(pipeline).candidates(sentences, k=5)) for pipeline in (twin_nlp, again)
    )
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a.heads, b.heads)
        np.testing.assert_array_equal(a.scores, b.scores)


def test_backward_twin_adds_its_score_and_its_trees(twin_nlp, sentences):
    both = SpacySource(twin_nlp)
    lists = list(both.candidates(sentences, k=10))
    assert_usable(lists, 10)
    assert base_trees(lists) == own_trees(twin_nlp, sentences)
    forward = SpacySource(twin_nlp, backward=False, inventory=both.inventory)
    twin = SpacySource(
        twin_nlp, component="parser_backward", backward=False, inventory=both.inventory
    )
    better = 0
    for sentence, trees, alone in zip(
        sentences, lists, forward.candidates(sentences, k=10), strict=True
    ):
        turned = CandidateList.from_arrays(
            mirrored_heads(trees.heads),
            trees.labels[:, ::-1],
            trees.scores,
            inventory=both.inventory,
            sources=("spacy",),
        )
        total = forward.scores(sentence, trees) + twin.scores(mirrored_sentence(sentence), turned)
        np.testing.assert_allclose(both.scores(sentence, trees), total, atol=1e-3)
        assert np.all(trees.scores[:, 0] >= total - 1e-3)
        better += int((trees.heads[0] == sentence.heads).sum())
        better -= int((alone.heads[0] == sentence.heads).sum())
    assert better > 0


def test_backward_training_counts_the_steps_of_both(tmp_path):
    steps = []
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=3)
    data = list(generate(10, seed=3))
    train_upstream(data, config=config, backward=True, progress=steps.append)
    assert [step.step for step in steps] == list(range(8))
    assert {step.of for step in steps} == {7}


def test_backward_twin_of_a_listening_parser_stands_alone(tmp_path):
    config = listening_config(tmp_path / "tiny.cfg", max_steps=3)
    listening = train_upstream(list(generate(30, seed=3)), config=config, backward=True)
    listening.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    sentences = list(generate(5, seed=6))
    lists = list(SpacySource(again).candidates(sentences, k=5))
    assert_usable(lists, 5)
    assert base_trees(lists) == own_trees(listening, sentences)


# The search behind it


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
