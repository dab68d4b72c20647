"""spaCy's taggers to be trained, by the package's config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.parsers.base import StepReport
from tk_spacy.tagging.base import check_upos
from tk_spacy.tagging.spacy_tagger.config import config_text, default_steps
from tk_spacy.tagging.spacy_tagger.kind import KIND
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.validation import Limits, check_names_of, check_values

SECONDS = 0.15
"""Of a step."""


def make(name: str, settings: Mapping[str, Any], seed: int) -> SpacyTaggerSpec:
    """A spec from settings by name; raises UserError for bad ones."""
    own = SpacyTaggerSettings(**{"seed": seed, **check_names_of(SpacyTaggerSettings, settings)})
    return SpacyTaggerSpec(name=name, seed=own.seed, max_steps=own.max_steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpacyTaggerSettings:
    """What a user chooses; see `SpacyTaggerSpec`."""

    max_steps: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_values(self, LIMITS)


LIMITS: Limits = {"max_steps": (1, 10_000_000), "seed": (0, 2**32 - 1)}
"""Lowest and highest value of each setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpacyTaggerSpec:
    """spaCy's taggers by the package's config: a `TaggerSpec`.

    max_steps: of the training, None for the config's.
    """

    kind: ClassVar[str] = KIND.name
    given: ClassVar[bool] = False
    format: ClassVar[int] = 1

    name: str = KIND.name
    seed: int = 0
    max_steps: int | None = None

    def about(self) -> dict[str, Any]:
        """The settings."""
        return {"max_steps": self.max_steps, "seed": self.seed}

    def training_key(self) -> list[Any]:
        """All that a trained tagger depends on beside its sentences."""
        from spacy.about import __version__  # noqa: PLC0415

        return [self.format, __version__, config_text(), self.seed, self.max_steps]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Raises UserError for columns that spaCy cannot take, or where no word has a tag."""
        from tk_spacy.spacy_io.conversion import check_sentences  # noqa: PLC0415

        check_sentences(sentences)
        check_upos(sentences)

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core: its steps count, not the treebank."""
        return (self.max_steps or default_steps()) * SECONDS

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        """Train the taggers and write their pipeline."""
        from tk_spacy.tagging.spacy_tagger.training import train_spacy_tagger  # noqa: PLC0415

        nlp = train_spacy_tagger(
            train, dev, seed=self.seed, max_steps=self.max_steps, report=report
        )
        nlp.to_disk(directory)

    def open(self, directory: Path) -> Any:
        """The tagger that `train` wrote."""
        from tk_spacy.parsers.spacy_transition.loading import load_pipeline  # noqa: PLC0415
        from tk_spacy.tagging.spacy_tagger.tagger import PipelineTagger  # noqa: PLC0415

        return PipelineTagger(load_pipeline(directory))
