"""Training an upstream parser from sentences, through spaCy's own config and training loop."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import spacy
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_loop
from spacy.util import load_config, load_config_from_str, registry

from tk_spacy.errors import UserError
from tk_spacy.treebank import Sentence, write_conllu
from tk_spacy.upstream.corpus import place_of

if TYPE_CHECKING:
    from spacy.language import Language
    from thinc.api import Config

READER = "tk_spacy.ConlluCorpus.v1"
LOGGER = "tk_spacy.ProgressLogger.v1"


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """Where a training stands: reported after every step.

    losses: the component losses since the last evaluation, empty between evaluations.
    scores: spaCy's scores of the development set (0 to 1), empty between evaluations.
    """

    step: int
    of: int
    losses: dict[str, float]
    scores: dict[str, float]


Progress = Callable[[TrainingStep], None]


def default_config_text() -> str:
    """The config that upstream parsers are trained with where none is given."""
    return resources.files("tk_spacy.configs").joinpath("parser.cfg").read_text(encoding="utf-8")


def load_upstream_config(
    path: str | os.PathLike[str] | None,
    *,
    max_steps: int | None = None,
    seed: int | None = None,
) -> Config:
    """A training config, the default one where path is None, with overridden steps and seed.

    Raises UserError where the file is missing or no spaCy training config.
    """
    try:
        if path is None:
            config = load_config_from_str(default_config_text(), interpolate=False)
        else:
            config = load_config(Path(path), interpolate=False)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise UserError(f"{path}: not a config that spaCy can read: {reason}") from error
    if "training" not in config or "nlp" not in config:
        raise UserError(f"{path}: no spaCy training config: it needs [nlp] and [training]")
    if max_steps is not None:
        if max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {max_steps}")
        config["training"]["max_steps"] = max_steps
    if not config["training"].get("max_steps"):
        raise UserError(f"{path}: [training] max_steps must be set, so that training ends")
    if seed is not None:
        config.setdefault("system", {})["seed"] = seed
        config["training"]["seed"] = seed
    return config


def train_upstream(
    train: Sequence[Sentence],
    *,
    dev: Sequence[Sentence] | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    max_steps: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Language:
    """A spaCy pipeline trained on sentences with trees.

    train, dev: sentences.  With dev it is evaluated every [training] eval_frequency steps and the
        best state is returned; without, the state after the last step.
    config: a spaCy training config or its path; its corpora are replaced by the sentences.  None
        takes the package's own (`configs/parser.cfg`), whose parser component is "parser".
    max_steps, seed: replace the config's.
    progress: called after each step.

    The same input gives the same parser on the same machine.  Raises UserError where there are no
    sentences, a sentence has no tree, or the config is not usable.
    """
    if not train:
        raise UserError("no sentence to train a parser on")
    for sentence in (*train, *(dev or ())):
        if not sentence.has_tree:
            raise UserError(f"{place_of(sentence)}: no tree to train a parser on: HEAD is '_'")
    if config is None or isinstance(config, str | os.PathLike):
        config = load_upstream_config(config, max_steps=max_steps, seed=seed)
    else:
        config = config.copy()
        for key, value in (("max_steps", max_steps), ("seed", seed)):
            if value is not None:
                config["training"][key] = value
    with tempfile.TemporaryDirectory(prefix="tk_spacy_upstream_") as folder:
        data = Path(folder)
        corpora = {"train": _write(data / "train.conllu", train), "dev": None}
        if dev:
            corpora["dev"] = _write(data / "dev.conllu", dev)
        original = config.copy()
        _set_corpora(config, corpora)
        nlp = init_nlp(config)
        train_loop(nlp, data, stdout=_ProgressStream(progress), stderr=io.StringIO())
        nlp = spacy.load(data / ("model-best" if dev else "model-last"))
    # The model must not remember files that are gone, nor this function's logger.
    nlp.config["corpora"] = original.get("corpora", {})
    nlp.config["paths"].update(original.get("paths", {}))
    nlp.config["training"].update(
        {"logger": {"@loggers": "spacy.ConsoleLogger.v1"}, **original["training"]}
    )
    return nlp


def _write(path: Path, sentences: Sequence[Sentence]) -> str:
    write_conllu(path, sentences)
    return str(path)


def _set_corpora(config: Config, paths: dict[str, str | None]) -> None:
    old = config.get("corpora", {}).get("train", {})
    gold_tags = old.get("gold_tags", True) if old.get("@readers") == READER else True
    config["corpora"] = {
        name: {"@readers": READER, "path": path, "gold_tags": gold_tags, "limit": 0}
        for name, path in paths.items()
    }
    training = config["training"]
    training["train_corpus"] = "corpora.train"
    training["dev_corpus"] = "corpora.dev"
    training["logger"] = {"@loggers": LOGGER}
    if paths["dev"] is None:
        # spaCy evaluates at step 0 in any case: there on no sentence at all.
        training["eval_frequency"] = training["max_steps"] + 1
        training["patience"] = 0


class _ProgressStream(io.StringIO):
    """Swallows what spaCy prints, and carries the callback to the logger, which gets it."""

    def __init__(self, progress: Progress | None) -> None:
        super().__init__()
        self.progress = progress

    def write(self, text: str) -> int:
        return len(text)


@registry.loggers(LOGGER)
def create_progress_logger() -> Callable[..., Any]:
    """Logger that reports to the callback of `train_upstream` instead of printing."""

    def set_up(
        nlp: Language, stdout: IO[str], stderr: IO[str]
    ) -> tuple[Callable[[dict[str, Any] | None], None], Callable[[], None]]:
        progress = getattr(stdout, "progress", None)
        of = nlp.config["training"]["max_steps"]
        step = -1

        def log_step(info: dict[str, Any] | None) -> None:
            nonlocal step
            step += 1
            if progress is None:
                return
            scores = (info or {}).get("other_scores") or {}
            progress(
                TrainingStep(
                    step=step,
                    of=of,
                    losses={k: float(v) for k, v in (info or {}).get("losses", {}).items()},
                    scores={k: v for k, v in scores.items() if isinstance(v, float)},
                )
            )

        return log_step, lambda: None

    return set_up
