"""Training of spaCy's parsers and of their right-to-left twins."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.cli.train import train as spacy_train
from threadpoolctl import threadpool_info
from tiny_spacy import (
    TINY,
    listening_config,
    nonprojective_tree,
    own_trees,
    tiny_config,
    tiny_nlp,
)

from tk_spacy.errors import UserError
from tk_spacy.parsers.spacy_transition import training
from tk_spacy.parsers.spacy_transition.mirror import mirrored_sentence
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
    evaluated = [step.losses for step in steps if step.scores]
    assert all(losses.keys() == {"parser"} for losses in evaluated)
    assert evaluated[1]["parser"] > evaluated[-1]["parser"] > 0
    assert not any(step.losses for step in steps if not step.scores)
    nlp.to_disk(tmp_path / "model")
    meta = json.loads((tmp_path / "model" / "meta.json").read_text())
    assert meta["curve"] == {
        "of": "LAS on dev, %",
        "values": [round(100 * step.scores["dep_las"], 3) for step in steps[10::10]],
        "steps": 10,
    }
    assert "curve" in spacy.load(tmp_path / "model").meta


def test_train_spacy_parser_keeps_the_curve_of_the_first_direction(tmp_path):
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=4, training__eval_frequency=2)
    data, steps = list(generate(20, seed=3)), []
    both = train_spacy_parser(
        data, dev=data[:5], config=config, backward=True, progress=steps.append
    )
    forward = [step.scores["dep_las"] for step in steps[:5] if step.scores][1:]
    assert len(forward) == 2
    assert both.meta["curve"]["values"] == [round(100 * las, 3) for las in forward]
    assert "curve" not in train_spacy_parser(data, config=config).meta  # without dev


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
        (None, "not a config that spaCy can read: .*my.cfg"),
        ("not a config", "not a config that spaCy can read: .*not a config"),
        ("[paths]\ntrain = null\n", r"it needs \[nlp\] and \[training\]"),
        ("[nlp]\nlang = 'xx'\n", r"it needs \[nlp\] and \[training\]"),
        ("[training]\nmax_steps = 1\n", r"it needs \[nlp\] and \[training\]"),
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


def test_train_spacy_parser_needs_trees_of_dev_too():
    bare = Sentence.from_columns(forms=["a"], sent_id="d1")
    with pytest.raises(UserError, match="sentence 'd1': no tree"):
        train_spacy_parser([nonprojective_tree()], dev=[nonprojective_tree(), bare])


class Begun(Exception):
    """A training was about to begin."""


@pytest.fixture
def begun(monkeypatch):
    """The configs that trainings would have begun with."""
    configs = []

    def init(config):
        configs.append(config)
        raise Begun

    monkeypatch.setattr(training, "init_nlp", init)
    return configs


def began(begun, *args, **options):
    with pytest.raises(Begun):
        train_spacy_parser([nonprojective_tree()], *args, **options)
    return begun[-1]


def test_training_reads_the_sentences_by_the_package_s_reader(begun):
    dev, own = [nonprojective_tree()], training.load_spacy_config(None)
    own["training"]["train_corpus"] = own["training"]["dev_corpus"] = "corpora.mine"
    own["training"]["logger"] = {"@loggers": "spacy.ConsoleLogger.v1"}
    config = began(begun, dev=dev, config=own)
    assert config["training"]["logger"] == {"@loggers": "tk_spacy.ProgressLogger.v1"}
    assert {name: Path(block.pop("path")).name for name, block in config["corpora"].items()} == {
        "train": "train.conllu", "dev": "dev.conllu",
    }  # fmt: skip
    reader = {"@readers": "tk_spacy.ConlluCorpus.v1", "gold_tags": True, "limit": 0}
    assert config["corpora"] == {"train": reader, "dev": reader}
    assert config["training"]["train_corpus"] == "corpora.train"
    assert config["training"]["dev_corpus"] == "corpora.dev"
    default = training.load_spacy_config(None)["training"]
    for name in ("eval_frequency", "patience", "max_steps"):
        assert config["training"][name] == default[name]


def test_training_without_dev_neither_evaluates_nor_stops_early(begun):
    assert training.load_spacy_config(None)["training"]["eval_frequency"] < 5000
    config = training.load_spacy_config(None, max_steps=5000)
    config["training"]["patience"] = 7
    told = began(begun, config=config)["training"]
    assert told["max_steps"] == 5000
    assert told["eval_frequency"] > 5000
    assert told["patience"] == 0  # spaCy's word for never
    assert begun[-1]["corpora"]["dev"]["path"] is None


@pytest.mark.parametrize(
    ("reader", "told", "expected"),
    [
        ("tk_spacy.ConlluCorpus.v1", {"gold_tags": False}, False),
        ("tk_spacy.ConlluCorpus.v1", {"gold_tags": True}, True),
        ("tk_spacy.ConlluCorpus.v1", {}, True),
        ("spacy.Corpus.v1", {"gold_tags": False}, True),  # not a setting of that one
    ],
)
def test_training_reads_tags_as_the_config_says(begun, reader, told, expected):
    config = training.load_spacy_config(None)
    config["corpora"]["train"] = {"@readers": reader, "path": "x.conllu", **told}
    of_both = began(begun, config=config, dev=[nonprojective_tree()])["corpora"]
    assert [of_both[name]["gold_tags"] for name in ("train", "dev")] == [expected] * 2
    # Configs that name no corpora.
    config["corpora"] = {}
    assert began(begun, config=config)["corpora"]["train"]["gold_tags"]
    del config["corpora"]
    assert began(begun, config=config)["corpora"]["train"]["gold_tags"]


def test_steps_and_seed_replace_the_config_s(begun):
    config = training.load_spacy_config(None)
    before = config.to_str(interpolate=False)
    in_memory = began(begun, config=config, max_steps=7, seed=5)
    assert config.to_str(interpolate=False) == before
    assert in_memory["training"]["max_steps"] == 7
    assert in_memory["training"]["seed"] == 5
    from_package = began(begun, max_steps=7, seed=5)
    assert from_package["training"]["max_steps"] == 7
    assert from_package["training"]["seed"] == from_package["system"]["seed"] == 5
    kept = began(begun, config=config)
    assert kept["training"]["max_steps"] == config["training"]["max_steps"]
    with pytest.raises(ValueError, match="max_steps must be at least 1, got 0"):
        training.load_spacy_config(None, max_steps=0)
    assert training.load_spacy_config(None, max_steps=1)["training"]["max_steps"] == 1


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
    shortest = training.load_spacy_config(None, max_steps=5)["training"]["optimizer"]["learn_rate"]
    assert short["warmup_steps"] == 15
    assert shortest["warmup_steps"] == 1
    assert longer["warmup_steps"] == default["warmup_steps"] == 100


def test_configs_keep_their_variables_and_their_own_callbacks(tmp_path):
    path = tiny_config(tmp_path / "tiny.cfg")
    for of in (None, path):
        config = training.load_spacy_config(of, max_steps=77, seed=9)
        # What refers to the steps and the seed follows them.
        assert config.interpolate()["training"]["optimizer"]["learn_rate"]["total_steps"] == 77
        assert config["training"]["before_to_disk"] is None
    # A seed where the config has no [system], and one that stays where none is given.
    bare = tmp_path / "bare.cfg"
    text = "[nlp]\nlang = 'xx'\n[training]\nmax_steps = 3\nseed = 8\n"
    bare.write_text(text + 'before_to_disk = {"@callbacks":"mine.v1"}\n')
    config = training.load_spacy_config(bare, seed=4)
    assert (config["system"], config["training"]["seed"]) == ({"seed": 4}, 4)
    config = training.load_spacy_config(bare)
    assert config["training"] == {
        "max_steps": 3, "seed": 8, "before_to_disk": {"@callbacks": "mine.v1"},
    }  # fmt: skip
    assert "system" not in config


def test_only_a_schedule_with_a_warm_up_is_shortened(tmp_path):
    path = tmp_path / "my.cfg"
    start = "[nlp]\nlang = 'xx'\n[training]\nmax_steps = 300\n"
    rate = '[training.optimizer]\n[training.optimizer.learn_rate]\n@schedules = "my.v1"\n'
    of_all = "warmup_steps = ${training.max_steps}\n"
    for rest, kept in (
        ("", None),
        ("[training.optimizer]\nL2 = 0.5\n", {"L2": 0.5}),
        ("[training.optimizer]\nlearn_rate = 0.25\n", {"learn_rate": 0.25}),
        (rate, {"learn_rate": {"@schedules": "my.v1"}}),
        (
            rate + of_all,
            {"learn_rate": {"@schedules": "my.v1", "warmup_steps": "${training.max_steps}"}},
        ),
    ):
        path.write_text(start + rest)
        config = training.load_spacy_config(path, max_steps=50)
        assert config["training"]["max_steps"] == 50
        assert config["training"].get("optimizer") == kept
    path.write_text(start + rate + "warmup_steps = 20\n")
    for steps, expected in ((None, 20), (100, 10), (29, 2), (19, 1), (1, 1), (210, 20)):
        config = training.load_spacy_config(path, max_steps=steps)
        assert config["training"]["optimizer"]["learn_rate"]["warmup_steps"] == expected


def test_an_attribute_is_dropped_with_its_rows_wherever_it_is_embedded():
    config = {
        "components": {
            "first": {"embed": {"attrs": ["NORM", "TAG", "POS"], "rows": [1, 2, 3]}},
            "second": {"attrs": ["TAG", "NORM"], "rows": None, "deep": {"attrs": ["TAG"]}},
            "third": {"attrs": ["NORM"], "rows": [4]},
            "fourth": {"attrs": "TAG", "other": ["TAG"]},
        },
        "name": "TAG",
        "last": {"attrs": ["POS", "TAG"], "rows": [5, 6]},
    }
    training.drop_attribute(config, "TAG")
    assert config == {
        "components": {
            "first": {"embed": {"attrs": ["NORM", "POS"], "rows": [1, 3]}},
            "second": {"attrs": ["NORM"], "rows": None, "deep": {"attrs": []}},
            "third": {"attrs": ["NORM"], "rows": [4]},
            "fourth": {"attrs": "TAG", "other": ["TAG"]},
        },
        "name": "TAG",
        "last": {"attrs": ["POS"], "rows": [5]},
    }


def test_a_trained_pipeline_has_the_config_that_was_given(tmp_path):
    changes = {"training__max_steps": 2, "training__eval_frequency": 7, "training__patience": 9}
    config = training.load_spacy_config(tiny_config(tmp_path / "tiny.cfg", **changes))
    config["paths"] = {"train": "mine.conllu", "dev": "my_dev.conllu"}
    before = config.to_str(interpolate=False)
    data = [nonprojective_tree()]
    for dev in (None, data):
        trained = train_spacy_parser(data, dev=dev, config=config)
        assert config.to_str(interpolate=False) == before
        found = trained.config
        assert config["paths"].items() <= found["paths"].items()
        assert found["corpora"] == config["corpora"]
        for name, value in config["training"].items():
            if name not in {"optimizer", "score_weights"}:  # spaCy itself completes these
                assert found["training"][name] == value
        assert found["training"]["optimizer"]["learn_rate"]["total_steps"] == 2
    # Where the config names none of these: what spaCy prints to by itself.
    for section in ("corpora", "paths"):
        del config[section]
    del config["training"]["logger"]
    found = train_spacy_parser(data, config=config).config
    assert found["corpora"] == {}
    assert found["training"]["logger"] == {"@loggers": "spacy.ConsoleLogger.v1"}


def test_a_twin_is_what_a_training_on_turned_sentences_gives(tmp_path):
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=2, training__eval_frequency=1)
    data, dev = list(generate(8, seed=3)), list(generate(4, seed=4))
    both = train_spacy_parser(data, dev=dev, config=config, backward=True)
    assert both.component_names == ["parser", "parser_backward"]
    assert both.disabled == ["parser_backward"]
    turned_data, turned_dev = ([mirrored_sentence(s) for s in part] for part in (data, dev))
    turned = train_spacy_parser(turned_data, dev=turned_dev, config=config)
    assert turned.component_names == ["parser"]
    twin = dict(both.components)["parser_backward"]
    assert twin.model.to_bytes() == turned.get_pipe("parser").model.to_bytes()


def test_the_default_config_is_known_without_what_spacy_fills_in():
    # The text is part of what finished parsers are known by: what debugging needs is left out.
    config = training.load_spacy_config(None)
    assert set(config["nlp"]) == {"lang", "pipeline", "batch_size"}
    assert config["initialize"] == {}
    assert "before_update" not in config["training"]
    assert "dropout" in config["training"]


def parameters(model):
    """The names of a model's layers, each with its parameters."""
    return [
        (layer.name, [layer.get_param(p).tolist() for p in layer.param_names if layer.has_param(p)])
        for layer in model.walk()
    ]


def test_a_twin_of_a_listening_parser_has_the_tok2vec_that_it_was_trained_with(tmp_path):
    config = listening_config(tmp_path / "tiny.cfg", max_steps=2)
    data = list(generate(8, seed=3))
    both = train_spacy_parser(data, config=config, backward=True)
    assert both.component_names == ["tok2vec", "parser", "parser_backward"]
    turned = train_spacy_parser([mirrored_sentence(s) for s in data], config=config)
    expected = own_trees(turned, data)
    training.own_tok2vec(turned, "parser")
    turned.remove_pipe("tok2vec")
    assert own_trees(turned, data) == expected
    twin = dict(both.components)["parser_backward"]
    assert parameters(twin.model) == parameters(turned.get_pipe("parser").model)
