"""The specs of spaCy's transition parsers, trained here or given by the user."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from spacy.about import __version__ as spacy_version
from spacy.util import load_config_from_str

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.base import Shared, StepReport
from tk_spacy.parsers.kinds import factories
from tk_spacy.parsers.names import TK_RERANKER as RERANKER
from tk_spacy.parsers.spacy_transition.kind import KIND
from tk_spacy.parsers.spacy_transition.loading import (
    check_config,
    find_parser,
    has_twin,
    load_pipeline,
)
from tk_spacy.parsers.spacy_transition.settings import SpacySettings
from tk_spacy.parsers.spacy_transition.source import Search, SpacySource, source_names
from tk_spacy.parsers.spacy_transition.training import (
    TrainingStep,
    drop_attribute,
    load_spacy_config,
    train_spacy_parser,
)
from tk_spacy.parsers.trainable import GivenParser
from tk_spacy.spacy_io.conversion import check_sentences
from tk_spacy.treebank.conllu import Sentence

SECONDS = 0.27
"""Of a step, of 500 words as the default config has it, its share of the evaluations included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpacySpec:
    """A spaCy parser trained by its config, perhaps with a twin that reads from right to left.

    config: text of the training config, complete (see `from_config`); component: its parser.
    backward: train the twin too (see `train_spacy_parser`): better lists, in twice the time.
    search, runs, beam_width: see `SpacySource`.
    label: what the config and its changes are called in the model's description.
    name: of the parser and its scores; that of the kind, unless there are several of it.
    """

    kind: ClassVar[str] = KIND.name
    given: ClassVar[bool] = False

    config: str
    name: str = KIND.name
    component: str = "parser"
    backward: bool = False
    search: Search = "discrepancy"
    runs: int = 4
    beam_width: int | None = None
    label: tuple[tuple[str, Any], ...] = ()

    @staticmethod
    def make(name: str, settings: Mapping[str, Any], shared: Shared) -> SpacySpec | GivenSpacySpec:
        """One for a training: of a pipeline where the settings name one, else trained here.

        settings: pipeline, or any of `SpacySettings`.
        Raises UserError where the pipeline, the config or another setting does not fit.
        """
        search: Any = shared.search
        changes = dict(settings)
        pipeline = changes.pop("pipeline", None)
        if pipeline is not None:
            if name != KIND.name:
                raise UserError(
                    f"the pipeline {pipeline} is given as the spaCy parser, so none is trained by "
                    "settings; leave out the settings, or the pipeline"
                )
            return GivenSpacySpec.from_pipeline(pipeline, search=search)
        if isinstance(config := changes.get("config"), os.PathLike):
            changes["config"] = os.fspath(config)
        own = SpacySettings.from_dict({"seed": shared.seed, "xpos": shared.xpos, **changes})
        made = SpacySpec.from_config(
            own.config,
            max_steps=own.max_steps,
            seed=own.seed,
            xpos=own.xpos,
            backward=own.backward,
            search=search,
            name=name,
        )
        told = {"seed": (own.seed, shared.seed), "xpos": (own.xpos, shared.xpos)}
        differs = [(key, value) for key, (value, usual) in told.items() if value != usual]
        return replace(made, label=(*made.label, *differs))

    @classmethod
    def from_config(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        max_steps: int | None = None,
        seed: int | None = None,
        component: str | None = None,
        xpos: bool = True,
        **settings: Any,
    ) -> SpacySpec:
        """A parser by a config file, None for the package's own, with changed steps and seed.

        component: of the config's parsers, None for its only one, which is built to see that the
            config is sound.
        xpos: whether the parser may read the XPOS column (TAG), if the config says so.
        settings: the rest.
        Raises UserError where the file is no config that spaCy can build.
        """
        config = load_spacy_config(path, max_steps=max_steps, seed=seed)
        if component is None:
            component = check_config(path, max_steps=max_steps, seed=seed)
        elif component not in config["nlp"]["pipeline"]:
            where = "the default config" if path is None else os.fspath(path)
            raise UserError(
                f"{where}: no component {component!r} in its pipeline {config['nlp']['pipeline']}"
            )
        if not xpos:
            drop_attribute(config, "TAG")
        name = "default" if path is None else Path(path).name
        label = (("config", name), ("max_steps", max_steps))
        return cls(config=config.to_str(), component=component, label=label, **settings)

    @property
    def settings(self) -> SpacySpec:
        """All that makes the parser what it is: without what it and its config are called."""
        return replace(self, name=KIND.name, label=())

    @property
    def sources(self) -> tuple[str, ...]:
        """What its scores are called."""
        return source_names(backward=self.backward, name=self.name)

    def about(self) -> dict[str, Any]:
        """The settings for the model's own description."""
        return {**dict(self.label), "backward": self.backward, "search": self.search}

    def training_key(self) -> list[Any]:
        """All that a trained parser depends on."""
        return [spacy_version, self.config, self.component, self.backward]

    def search_key(self) -> list[Any]:
        """All that its lists depend on."""
        return [self.search, self.runs, self.beam_width]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Raises UserError for columns that spaCy cannot take."""
        check_sentences(sentences)

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core: its steps count, not the treebank."""
        config = load_config_from_str(self.config, interpolate=False)
        return float(config["training"]["max_steps"] * SECONDS * (1 + self.backward))

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        """Train by spaCy's own loop, on one thread: the best state on dev, else the last."""

        def on_step(step: TrainingStep) -> None:
            report(step.step, step.of)

        train_spacy_parser(
            train,
            dev=dev,
            config=load_config_from_str(self.config, interpolate=False),
            backward=self.backward,
            progress=on_step,
        ).to_disk(directory)

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> SpacySource:
        """The parser that `train` wrote."""
        return SpacySource(
            load_pipeline(directory),
            component=self.component,
            backward=self.backward,
            search=self.search,
            runs=self.runs,
            beam_width=self.beam_width,
            inventory=inventory,
            name=self.name,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSpacySpec(GivenParser):
    """A pipeline that somebody else trained; see `from_pipeline`."""

    kind: ClassVar[str] = KIND.name
    name: ClassVar[str] = KIND.name

    pipeline: str
    component: str
    backward: bool
    search: Search = "discrepancy"

    @classmethod
    def from_pipeline(cls, pipeline: str, *, search: Search = "discrepancy") -> GivenSpacySpec:
        """A parser by a pipeline's directory or package.

        Raises UserError where it has no parser, or what the model is to add to it already.
        """
        nlp = load_pipeline(pipeline)
        parser = find_parser(nlp, where=pipeline)
        for name in (RERANKER, *factories()):
            if name in nlp.component_names:
                raise UserError(
                    f"{pipeline}: has a component {name!r} already; give a pipeline without it "
                    f"(nlp.remove_pipe({name!r}), then nlp.to_disk)"
                )
        return cls(
            pipeline=pipeline, component=parser, backward=has_twin(nlp, parser), search=search
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """What its scores are called."""
        return source_names(backward=self.backward)

    def about(self) -> dict[str, Any]:
        """The settings for the model's own description."""
        return {"pipeline": self.pipeline, "backward": self.backward, "search": self.search}

    def training_key(self) -> list[Any]:
        """Which pipeline it is."""
        return [spacy_version, self.pipeline, self.component, self.backward]

    def search_key(self) -> list[Any]:
        """All that its lists depend on."""
        return [self.search]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Raises UserError for columns that spaCy cannot take."""
        check_sentences(sentences)

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> SpacySource:
        """The pipeline, wherever the directory is."""
        return SpacySource(
            load_pipeline(self.pipeline),
            component=self.component,
            backward=self.backward,
            search=self.search,
            inventory=inventory,
        )
