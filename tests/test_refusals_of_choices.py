"""Choices of a training that cannot be, or would be silently ignored, are refused at once."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from tiny_spacy import listening_config
from trainings import parser_options

from tk_spacy.cli.old_options import parsed
from tk_spacy.errors import UserError
from tk_spacy.parsers.kinds import all_kinds
from tk_spacy.parsers.specs import parse_specs
from tk_spacy.pipeline.assembly import check_factories
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.inputs import make_plan

PATHS = {"paths.train": "train.conllu", "paths.dev": "dev.conllu", "paths.output": "model"}
LISTS = {"lists.train": "train.kbest", "lists.dev": "dev.kbest"}


@pytest.mark.parametrize("text", ["file", "file:"])
def test_a_parser_in_files_has_a_name(text):
    with pytest.raises(UserError, match="write file:NAME"):
        parse_specs(["sampling", text])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parsers.names": ["file:x"], "lists.folds": 3}, "folds would have no effect"),
        ({"parsers.names": ["file:x"], "machine.processes": 2}, "processes would have no effect"),
        ({"parsers.names": ["file:x"], "model.name": "n"}, "name would have no effect"),
        ({**LISTS, "model.version": "3.0"}, "version would have no effect"),
        ({"parsers.sampling.order": 3}, r"sampling\.order concerns the sampling parser only"),
        ({"parsers.spacy.search": "discrepancy"}, "search concerns the spacy parser only"),
        ({"parsers.spacy.backward": True}, "backward concerns the spacy parser only"),
    ],
)
def test_settings_without_effect_are_refused(changes, message):
    files = {"parsers.files.x": {"train": "t", "dev": "d"}} if "parsers.names" in changes else {}
    with pytest.raises(UserError, match=message):
        train_options(changes={**PATHS, **files, **changes})


def test_texts_that_look_like_numbers_stay_as_they_are():
    changes = parsed(["model.version=0.10", "training.title=1.50", "parsers.biaffine.epochs=2"])
    assert changes["model.version"] == "0.10"
    assert parsed(["paths.train=1.50"])["paths.train"] == "1.50"
    assert changes["training.title"] == "1.50"
    assert changes["parsers.biaffine.epochs"] == 2
    assert train_options(changes={**PATHS, **changes}).version == "0.10"


def test_sections_may_stand_in_any_order(tmp_path: Path):
    config = tmp_path / "a.cfg"
    config.write_text(
        '[parsers.sampling]\norder = 2\n\n[parsers]\nnames = ["sampling"]\n', encoding="utf-8"
    )
    options = train_options(config, changes=PATHS)
    assert options.parsers == ("sampling",)
    assert options.parser_settings["sampling"]["order"] == 2


def test_components_of_settings_with_fractions_have_names_without_dots():
    kind = all_kinds()["sampling"]
    (spec,) = parse_specs(["sampling:arc_margin=2.5"])
    assert "." not in kind.component_name(spec.name)


def test_a_component_that_spacy_does_not_know_is_told_before_the_training(monkeypatch):
    check_factories(name for name, kind in all_kinds().items() if kind.factory is not None)
    kind = replace(all_kinds()["sampling"], factory="tk_nowhere")
    monkeypatch.setattr("tk_spacy.pipeline.assembly.get_kind", lambda name: kind)
    with pytest.raises(UserError, match=r"no component 'tk_nowhere', in which the sampling parser"):
        check_factories(["sampling"])


@pytest.mark.parametrize("given", [True, False])
def test_a_spacy_pipeline_leaves_the_tagger_the_names_of_its_components(
    tmp_path: Path, given: bool
) -> None:
    config = listening_config(tmp_path / "parser.cfg", max_steps=4)
    config["nlp"]["pipeline"] = ["tok2vec", "tagging_tok2vec", "parser"]
    config["components"]["tagging_tok2vec"] = config["components"]["tok2vec"]
    config.to_disk(tmp_path / "parser.cfg", interpolate=False)
    changes: dict[str, Any] = {"config": tmp_path / "parser.cfg", "max_steps": 4, "backward": False}
    where = "the config of the spacy parser"
    if given:
        nlp = spacy.blank("xx")
        nlp.add_pipe("tok2vec", name="tagging_tok2vec")
        nlp.add_pipe("parser").add_label("dep")
        nlp.initialize()
        nlp.to_disk(tmp_path / "nlp")
        where = str(tmp_path / "nlp")
        changes = {"spacy_pipeline": where, "max_steps": None, "parsers": ("spacy", "sampling")}
    made = parser_options(tmp_path / "model", tags="own", tagger="spacy", folds=2, **changes)
    with pytest.raises(UserError, match=re.escape(where) + ": has a component 'tagging_tok2vec'"):
        make_plan(made)
