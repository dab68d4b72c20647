"""Training of spaCy's parsers and of their right-to-left twins."""

from pathlib import Path

import pytest
import spacy
from spacy.cli.train import train as spacy_train
from threadpoolctl import threadpool_info
from tiny_spacy import (
    TINY,
    nonprojective_tree,
    own_trees,
    tiny_config,
    tiny_nlp,
)

from tk_spacy.errors import UserError
from tk_spacy.parsers.spacy_transition import training
from tk_spacy.parsers.spacy_transition.source import SpacySource, train_spacy_parser
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.synthetic import generate


@pytest.fixture(scope="module")
def nlp():
    return tiny_nlp()


def test_train_spacy_parser_learns_and_reports_steps(tmp_path):
    data = [nonprojective_tree() for _ in range(40)]
    steps = []
    nlp = train_spacy_parser(
        data, dev=data[:5], config=tiny_config(tmp_path / "tiny.cfg"), progress=steps.append
    )
    (trees,) = SpacySource(nlp).candidates([nonprojective_tree()], k=3)
    assert trees.heads[trees.base].tolist() == nonprojective_tree().heads.tolist()
    assert trees.deprels(trees.base) == nonprojective_tree().deprels
    assert [step.step for step in steps] == list(range(41))
    assert {step.of for step in steps} == {40}
    assert [step.step for step in steps if step.scores] == [0, 10, 20, 30, 40]
    assert steps[-1].scores["dep_las"] == 1.0


def test_train_spacy_parser_is_deterministic_and_heeds_the_seed(tmp_path):
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=3)
    data = list(generate(20, seed=3))
    first, second, other = (
        train_spacy_parser(data, config=config, seed=seed).get_pipe("parser").model.to_bytes()
        for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_train_spacy_parser_evaluates_a_short_training_at_its_end(tmp_path):
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=8, training__eval_frequency=200)
    data, steps = list(generate(20, seed=3)), []
    trained = train_spacy_parser(data, dev=data[:5], config=config, seed=1, progress=steps.append)
    assert [step.step for step in steps if step.scores] == [0, 8]
    # The best state is the last one here, not that of before the first step.
    assert steps[-1].scores["dep_las"] > steps[0].scores["dep_las"]
    scores = trained.evaluate(list(read_examples(data[:5], trained)))
    assert scores["dep_las"] == pytest.approx(steps[-1].scores["dep_las"])


def test_train_spacy_parser_uses_one_blas_thread_and_gives_the_others_back(tmp_path):
    def blas_threads():
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    before, during = blas_threads(), []
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=1)
    train_spacy_parser(
        [nonprojective_tree()], config=config, progress=lambda _: during.extend(blas_threads())
    )
    assert set(during) <= {1}
    assert blas_threads() == before


def test_train_spacy_parser_leaves_no_trace_of_temporary_files(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    text = (tmp_path / "model" / "config.cfg").read_text()
    assert "train.conllu" not in text
    assert "ProgressLogger" not in text
    again = spacy.load(tmp_path / "model")
    sentence = nonprojective_tree()
    assert own_trees(again, [sentence]) == own_trees(nlp, [sentence])


def test_train_spacy_parser_keeps_rare_relations(tmp_path):
    data = [*generate(10, seed=3), nonprojective_tree()]
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=1)
    names = train_spacy_parser(data, config=config).get_pipe("parser").move_names
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
def test_train_spacy_parser_names_a_config_that_is_none(tmp_path, text, reason):
    path = tmp_path / "my.cfg"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=rf"my.cfg: .*{reason}") as caught:
        train_spacy_parser([nonprojective_tree()], config=path)
    assert "\n" not in str(caught.value)


def test_train_spacy_parser_needs_trees():
    with pytest.raises(UserError, match="no sentence"):
        train_spacy_parser([])
    with pytest.raises(UserError, match="sentence 's1': no tree"):
        train_spacy_parser([Sentence.from_columns(forms=["a"], sent_id="s1")])


def test_parser_config_trains_with_spacys_own_command(tmp_path, capsys):
    path = Path(__file__).parents[1] / "configs" / "parser.cfg"
    assert path.read_text(encoding="utf-8") == training.default_config_text()
    for name, seed in (("train", 1), ("dev", 2)):
        write_conllu(tmp_path / f"{name}.conllu", generate(10, seed=seed))
    spacy_train(
        path,
        tmp_path / "model",
        overrides={
            **TINY,
            "paths.train": str(tmp_path / "train.conllu"),
            "paths.dev": str(tmp_path / "dev.conllu"),
            "training.max_steps": 3,
        },
    )
    capsys.readouterr()
    (trees,) = SpacySource(spacy.load(tmp_path / "model" / "model-last")).candidates(
        [nonprojective_tree()], k=4
    )
    assert len(trees) == 4


def test_backward_training_counts_the_steps_of_both(tmp_path):
    steps = []
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=3)
    data = list(generate(10, seed=3))
    train_spacy_parser(data, config=config, backward=True, progress=steps.append)
    assert [step.step for step in steps] == list(range(8))
    assert {step.of for step in steps} == {7}


def test_spacy_parser_short_trainings_warm_up_shortly():
    default = training.load_spacy_config(None)["training"]["optimizer"]["learn_rate"]
    short = training.load_spacy_config(None, max_steps=150)["training"]["optimizer"]["learn_rate"]
    longer = training.load_spacy_config(None, max_steps=5000)["training"]["optimizer"]["learn_rate"]
    assert short["warmup_steps"] == 15
    assert longer["warmup_steps"] == default["warmup_steps"] == 100
