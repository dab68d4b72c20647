"""A training with tags of its own: what the model knows, and what it does with words alone."""

from __future__ import annotations

import functools
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from test_cli import invoke
from tiny_spacy import listening_config
from trainings import (
    Recorder,
    folder,
    options,
    parser_options,
    sampling_options,
    sampling_training,
    treebank,
)
from udpipe_parsers import needs_udpipe

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.evaluation.tags import score_tags
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.tagging.spacy_tagger.tagger import PipelineTagger, tagging_components
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.workflows.files.batch import parse_files, rerank_files
from tk_spacy.workflows.info import info
from tk_spacy.workflows.kbest import kbest
from tk_spacy.workflows.model import learnt_own_tags, open_tagger
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.pipeline import train_pipeline

pytestmark = needs_udpipe
QUICK = "udpipe:iterations=2"


@functools.cache
def own_tags_training(tagger: str) -> tuple[Path, TrainReport]:
    path = folder() / f"own-tags-{tagger.partition(':')[0]}"
    made = sampling_options(path, tags="own", tokenizer="none", tagger=tagger)
    return path, train_pipeline(made, progress=Recorder())


@functools.cache
def words_alone() -> Path:
    """The test part with FORM alone."""
    path = folder() / "words-alone.conllu"
    blank = []
    for sentence in load_treebank(treebank()["test"]):
        none = ("_",) * len(sentence)
        blank.append(
            replace(
                sentence, lemmas=none, upos=none, xpos=none, feats=none, deprels=none,
                heads=np.full(len(sentence), -1, np.int32),
            )
        )  # fmt: skip
    write_conllu(path, blank)
    return path


def reranked(model: Path, source: Path, target: Path, **more: Any) -> list[Any]:
    (result,) = rerank_files(model, [source], target, n_threads=1, **more)
    found = load_treebank(target)
    return [result, found]


@pytest.mark.parametrize("tagger", [QUICK, "spacy:max_steps=20", "bilstm:epochs=1:steps=50"])
def test_words_alone_are_parsed_as_was_measured(tmp_path: Path, tagger: str) -> None:
    model, report = own_tags_training(tagger)
    gold = load_treebank(treebank()["test"])
    result, found = reranked(model, words_alone(), tmp_path / "a.conllu")
    assert result.missing == ()
    assert result.tags.endswith("by the model's own tagger")
    scores = evaluate(gold, found)
    final = report.parts["test"].scores["final system"]
    assert (scores.uas, scores.las) == pytest.approx((final.uas, final.las))
    said = report.tags["test"]
    tags = score_tags(gold, found)
    assert (said.upos, said.ufeats, said.lemmas) == (tags.upos, tags.ufeats, tags.lemmas)
    # The file's own tags are put aside where that is asked for, and nothing else.
    result, own = reranked(model, treebank()["test"], tmp_path / "b.conllu", tags="own")
    for mine, other, given in zip(own, found, gold, strict=True):
        assert (mine.upos, mine.feats, mine.lemmas) == (other.upos, other.feats, other.lemmas)
        assert mine.heads.tolist() == other.heads.tolist()
        assert (mine.deprels, mine.misc) == (other.deprels, given.misc)
    result, theirs = reranked(model, treebank()["test"], tmp_path / "c.conllu")
    assert [s.upos for s in theirs] == [s.upos for s in gold]
    assert result.tags.startswith("tags are the file's")


def test_words_alone_in_spacy_get_the_same_trees(tmp_path: Path) -> None:
    model, _ = own_tags_training(QUICK)
    _, found = reranked(model, words_alone(), tmp_path / "a.conllu")
    nlp = spacy.load(model)
    assert nlp.pipe_names == ["tk_udpipe_tagger", "tk_parser", "tk_reranker"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sentence in found:
            doc = nlp(Doc(nlp.vocab, words=list(sentence.forms)))
            assert [t.pos_ or "_" for t in doc] == list(sentence.upos)
            assert [str(t.morph) or "_" for t in doc] == list(sentence.feats)
            assert [t.lemma_ for t in doc] == list(sentence.lemmas)
            heads = [0 if t.head.i == t.i else t.head.i + 1 for t in doc]
            assert heads == sentence.heads.tolist()
    again = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    doc = again(Doc(again.vocab, words=list(found[0].forms)))
    assert [t.pos_ for t in doc] == list(found[0].upos)


def test_parsers_learn_from_predicted_tags(tmp_path: Path) -> None:
    """Other gold tags in train, the same for the tagger: nothing of them reaches the parsers."""
    model, _ = own_tags_training(QUICK)
    train = load_treebank(model.parent / "UD_Synthetic" / treebank()["train"].name)
    kept = folder() / "own-tags-kept"
    made = sampling_options(
        kept, tags="own", tokenizer="none", tagger=QUICK, workdir=tmp_path / "work"
    )
    train_pipeline(made, progress=Recorder())
    lists = load_treebank(tmp_path / "work" / "train.kbest.conllu")
    assert score_tags(train, lists).upos < 100
    assert [s.heads.tolist() for s in load_treebank(tmp_path / "work" / "train.kbest.conllu")]
    # Two folds: what each half is tagged with is what a tagger of the other half says.
    for fold, half in (("fold-01", slice(45)), ("fold-02", slice(45, None))):
        from tk_spacy.tagging.udpipe.tagger import UdpipeTagger

        name = "udpipe-iterations2"
        tagger = UdpipeTagger.from_disk(tmp_path / "work" / "tags" / fold / name)
        expected = [tags.upos for tags in tagger.tag(train[half])]
        assert [s.upos for s in lists[half]] == expected


def test_meta_has_the_scores_of_tags_and_trees(tmp_path: Path) -> None:
    model, report = own_tags_training(QUICK)
    nlp = spacy.load(model)
    gold = load_treebank(treebank()["dev"])
    found = nlp.evaluate(list(read_examples(gold, nlp, gold_tags=False)))
    said = nlp.meta["performance"]
    assert 100 * said["pos_acc"] == pytest.approx(report.tags["dev"].upos)
    for name in ("pos_acc", "morph_acc", "lemma_acc", "tag_acc", "dep_uas", "dep_las"):
        assert said[name] == pytest.approx(found[name]), name
    assert "It predicts tags, features and lemmas" in nlp.meta["description"]


def test_model_says_whose_tags_it_learnt_from() -> None:
    model, report = own_tags_training(QUICK)
    tables, facts = info(model)
    assert facts["about"]["tagger"] == {
        "kind": "udpipe", "models": 1, "iterations": 2, "guesser_suffix_rules": 8,
        "udpipe": facts["about"]["tagger"]["udpipe"],
    }  # fmt: skip
    rows = dict(tables[0].rows)
    assert rows["tagger"] == "UDPipe, 1 model, 2 iterations"
    titles = [table.title for table in report.tables()]
    assert titles[0].endswith("dev, predicted tags")
    assert "Tags" in titles
    saved = json.loads((model / "report.json").read_text(encoding="utf-8"))
    assert TrainReport.from_dict(saved).tags == report.tags
    assert set(report.tags) == {"train", "dev", "test"}


def test_whether_a_model_has_own_tags_is_asked_without_its_weights(tmp_path: Path) -> None:
    model, _ = own_tags_training(QUICK)
    (tmp_path / "m" / "tk_reranker").mkdir(parents=True)
    for name in ("config.cfg", "meta.json", "tk_reranker/meta.json"):
        (tmp_path / "m" / name).write_bytes((model / name).read_bytes())
    assert learnt_own_tags(tmp_path / "m")
    assert not learnt_own_tags(sampling_training()[0])
    assert not learnt_own_tags(tmp_path)
    (tmp_path / "m" / "tk_reranker" / "meta.json").write_text("{", encoding="utf-8")
    assert not learnt_own_tags(tmp_path / "m")


def test_parse_and_kbest_of_words_alone(tmp_path: Path) -> None:
    model, _ = own_tags_training(QUICK)
    tagger = open_tagger(model)
    assert tagger is not None
    expected = [tags.upos for tags in tagger.tag(load_treebank(treebank()["test"]))]
    (result,) = parse_files(model, [words_alone()], tmp_path / "p.conllu", n_threads=1)
    assert [s.upos for s in load_treebank(tmp_path / "p.conllu")] == expected
    assert result.tags is not None
    counted = kbest(str(model), words_alone(), tmp_path / "k.conllu")
    assert counted["tags"] == result.tags
    assert [s.upos for s in load_treebank(tmp_path / "k.conllu")] == expected


@pytest.mark.parametrize("command", ["parse", "rerank", "kbest"])
def test_a_file_with_upos_alone_gets_the_rest_and_is_told_so_once(
    tmp_path: Path, command: str
) -> None:
    model, _ = own_tags_training(QUICK)
    gold = load_treebank(treebank()["test"])
    none = [("_",) * len(s) for s in gold]
    upos = [replace(s, lemmas=n, xpos=n, feats=n) for s, n in zip(gold, none, strict=True)]
    write_conllu(tmp_path / "upos.conllu", upos)
    done = invoke(command, model, tmp_path / "upos.conllu", "-o", tmp_path / "out.conllu")
    assert done.exit_code == 0
    assert done.stderr.count("tagger") == 1
    assert "LEMMA, XPOS and FEATS by the model's own tagger" in " ".join(done.stderr.split())
    assert "no word has" not in done.stderr
    found = load_treebank(tmp_path / "out.conllu")
    assert [s.upos for s in found] == [s.upos for s in gold]
    tagger = open_tagger(model)
    assert tagger is not None
    for sentence, tags in zip(found, tagger.tag(upos), strict=True):
        assert (sentence.lemmas, sentence.xpos, sentence.feats) == (tags[0], tags[2], tags[3])


def test_commands_take_a_choice_of_tags(tmp_path: Path) -> None:
    model, _ = own_tags_training(QUICK)
    done = invoke("rerank", model, words_alone(), "-o", tmp_path / "a.conllu")
    assert done.exit_code == 0
    assert "by the model's own tagger" in done.stderr
    done = invoke("rerank", model, words_alone(), "-o", tmp_path / "b.conllu", "--tags", "mine")
    assert done.exit_code == 2
    assert "--tags mine: choose from auto, gold, own" in done.stderr
    done = invoke(
        "parse", sampling_training()[0], words_alone(), "-o", tmp_path / "c.conllu", "--tags", "own"
    )
    assert done.exit_code == 1
    assert "tags is 'own', but the model has no tagger" in done.stderr
    assert not (tmp_path / "c.conllu").exists()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tags": "silver"}, "tags is 'silver'; choose from own, gold"),
        ({"tagger": "brill"}, "unknown tagger 'brill'"),
        ({"tags": "gold", "tagger": "spacy"}, "tagger would have no effect: tags is 'gold'"),
    ],
)
def test_choices_of_tags_that_cannot_be(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as error:
        sampling_options(Path("m"), **changes)
    assert says in str(error.value)


def test_ready_lists_keep_their_tags(tmp_path: Path) -> None:
    assert make_plan(options(tmp_path / "m", tags="own")).tagger is None
    with pytest.raises(UserError, match="tags cannot be 'own': lists are given"):
        make_plan(options(tmp_path / "m", tags="own", asked=frozenset({"tags"})))


def test_a_treebank_without_upos_trains_no_tagger(tmp_path: Path) -> None:
    paths = {}
    for name, path in treebank().items():
        sentences = [replace(s, upos=("_",) * len(s)) for s in load_treebank(path)]
        paths[name] = tmp_path / f"{name}.conllu"
        write_conllu(paths[name], sentences)
    with pytest.raises(UserError, match=r"train\.conllu: no word has UPOS"):
        make_plan(sampling_options(tmp_path / "m", tags="own", **paths))


@pytest.mark.parametrize(
    ("tagger", "components"),
    [
        ("bilstm:epochs=1:steps=50", ["tk_bilstm_tagger"]),
        (
            "spacy:max_steps=4",
            ["tagging_tok2vec", "tagger", "morphologizer", "trainable_lemmatizer"],
        ),
    ],
)
def test_own_tags_are_not_those_of_a_tagger_in_the_config_of_spacys_parser(
    tmp_path: Path, tagger: str, components: list[str]
) -> None:
    config = listening_config(tmp_path / "parser.cfg", max_steps=4)
    listener = config["components"]["parser"]["model"]["tok2vec"]
    for name in ("tagger", "morphologizer"):
        model = {"@architectures": "spacy.Tagger.v2", "nO": None, "tok2vec": listener}
        config["components"][name] = {"factory": name, "model": model}
    config["nlp"]["pipeline"] = ["tok2vec", "tagger", "morphologizer", "parser"]
    config.to_disk(tmp_path / "parser.cfg", interpolate=False)
    output = tmp_path / "model"
    report = train_pipeline(
        parser_options(
            output, tags="own", tokenizer="none", tagger=tagger, parsers=("spacy",),
            config=tmp_path / "parser.cfg", max_steps=4, backward=False, folds=2,
        )
    )  # fmt: skip
    nlp = spacy.load(output)
    assert nlp.pipe_names == [*components, "tok2vec", "parser", "tk_reranker"]
    gold = load_treebank(treebank()["dev"])
    docs = [nlp(Doc(nlp.vocab, words=list(sentence.forms))) for sentence in gold]
    right = sum(
        token.pos_ == upos
        for doc, sentence in zip(docs, gold, strict=True)
        for token, upos in zip(doc, sentence.upos, strict=True)
    )
    assert 100 * right / sum(map(len, gold)) == pytest.approx(report.tags["dev"].upos)


def test_the_tagger_of_any_pipeline_is_found(tmp_path: Path) -> None:
    """Other people's components: what sets tags is asked, parsers and the rest are not."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    ruler: Any = nlp.add_pipe("attribute_ruler")
    ruler.add([[{"TEXT": "owl"}]], {"POS": "NOUN", "MORPH": "Number=Sing"})
    nlp.to_disk(tmp_path / "nlp")
    assert tagging_components(nlp) == ["attribute_ruler"]
    (tags,) = PipelineTagger(nlp).tag([load_treebank(treebank()["dev"])[0]])
    assert set(tags.upos) == {"_"}
    (tags,) = PipelineTagger(nlp).tag([Sentence.from_columns(forms=["owl", "owls"])])
    assert tags.upos == ("NOUN", "_")
    assert tags.feats == ("Number=Sing", "_")
    assert open_tagger(tmp_path / "nlp") is None  # it declares no column that it sets
