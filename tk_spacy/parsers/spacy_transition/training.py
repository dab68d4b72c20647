"""Training a spaCy parser from sentences, through spaCy's own config and training loop."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import spacy
from spacy.pipeline import DependencyParser
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_loop
from spacy.util import load_config, load_config_from_str, registry
from thinc.api import NumpyOps, get_current_ops, use_ops

from tk_spacy.errors import UserError
from tk_spacy.parallel.blas import one_thread
from tk_spacy.parsers.names import backward_name
from tk_spacy.parsers.spacy_transition.mirror import mirrored_sentence
from tk_spacy.spacy_io.conversion import place_of
from tk_spacy.spacy_io.saved_config import RESOLVE, resolve_optimizer
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.utils.leftovers import temporary_directory

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


TrainingStepReport = Callable[[TrainingStep], None]


def default_config_text() -> str:
    """The config that spaCy's parsers are trained with where none is given."""
    return resources.files("tk_spacy.configs").joinpath("parser.cfg").read_text(encoding="utf-8")


def load_spacy_config(
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
            _leave_out_filled(config)
        else:
            config = load_config(Path(path), interpolate=False)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise UserError(f"{path}: not a config that spaCy can read: {reason}") from error
    if "training" not in config or "nlp" not in config:
        raise UserError(f"{path}: no spaCy training config: it needs [nlp] and [training]")
    if config["training"].get("before_to_disk") == {"@callbacks": RESOLVE}:
        config["training"]["before_to_disk"] = None  # done here in any case
    if config.get("initialize", {}).get("before_init") == {"@callbacks": RESOLVE}:
        config["initialize"]["before_init"] = None
    if max_steps is not None:
        if max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {max_steps}")
        config["training"]["max_steps"] = max_steps
        shorten_warm_up(config, max_steps)
    if not config["training"].get("max_steps"):
        raise UserError(f"{path}: [training] max_steps must be set, so that training ends")
    if seed is not None:
        config.setdefault("system", {})["seed"] = seed
        config["training"]["seed"] = seed
    return config


# What the default config spells out for `spacy debug config`, though spaCy fills it in.  The text
# of a config is part of what finished parsers in work directories are known by, and these parsers
# were kept before it was spelt out.
FILLED: dict[str, tuple[str, ...]] = {
    "nlp": (
        "disabled",
        "before_creation",
        "after_creation",
        "after_pipeline_creation",
        "tokenizer",
        "vectors",
    ),
    "training": ("before_update",),
    "initialize": (
        "vectors",
        "init_tok2vec",
        "vocab_data",
        "lookups",
        "tokenizer",
        "before_init",
        "after_init",
        "components",
    ),
}


def _leave_out_filled(config: Config) -> None:
    for section, keys in FILLED.items():
        for key in keys:
            config[section].pop(key, None)


def drop_attribute(config: dict[str, Any], name: str) -> None:
    """Take an attribute of tokens, such as TAG, out of all that a config embeds."""
    for block in config.values():
        if not isinstance(block, dict):
            continue
        attributes = block.get("attrs")
        if isinstance(attributes, list) and name in attributes:
            place = attributes.index(name)
            block["attrs"] = attributes[:place] + attributes[place + 1 :]
            if isinstance(rows := block.get("rows"), list):
                block["rows"] = rows[:place] + rows[place + 1 :]
        drop_attribute(block, name)


def shorten_warm_up(config: Config, max_steps: int) -> None:
    """Keep steps that are fewer than the config was written for from being spent on warming up."""
    rate = config["training"].get("optimizer", {}).get("learn_rate")
    if isinstance(rate, dict) and isinstance(rate.get("warmup_steps"), int):
        rate["warmup_steps"] = min(rate["warmup_steps"], max(1, max_steps // 10))


def train_spacy_parser(
    train: Sequence[Sentence],
    *,
    dev: Sequence[Sentence] | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    max_steps: int | None = None,
    seed: int | None = None,
    backward: bool = False,
    progress: TrainingStepReport | None = None,
) -> Language:
    """A spaCy pipeline trained on sentences with trees.

    train, dev: sentences.  With dev it is evaluated every [training] eval_frequency steps and the
        best state is returned; without, the state after the last step.
    config: a spaCy training config or its path; its corpora are replaced by the sentences.  None
        takes the package's own (`configs/parser.cfg`), whose parser component is "parser".
    max_steps, seed: replace the config's.
    backward: also train a twin of each parser that reads from right to left.  It is in the pipeline
        under `backward_name`, disabled: `SpacySource` uses it, `nlp(text)` does not.
    progress: called after each step; with `backward`, steps are those of both.

    The same input gives the same parser on the same machine.  Raises UserError where there are no
    sentences, a sentence has no tree, or the config is not usable.
    """
    if not train:
        raise UserError("no sentence to train a parser on")
    for sentence in (*train, *(dev or ())):
        if not sentence.has_tree:
            raise UserError(f"{place_of(sentence)}: no tree to train a parser on: HEAD is '_'")
    if config is None or isinstance(config, str | os.PathLike):
        config = load_spacy_config(config, max_steps=max_steps, seed=seed)
    else:
        config = config.copy()
        for key, value in (("max_steps", max_steps), ("seed", seed)):
            if value is not None:
                config["training"][key] = value
    steps = _Steps(config["training"]["max_steps"], 2 if backward else 1, progress)
    nlp = _train(train, dev, config, steps)
    steps.keep_curve(nlp, "dep_las", "LAS on dev, %")
    if backward:
        steps.trained = 1
        turned = [mirrored_sentence(s) for s in train]
        turned_dev = [mirrored_sentence(s) for s in dev] if dev else None
        _add_twins(nlp, _train(turned, turned_dev, config, steps))
    return nlp


def train_by_config(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    config: Config,
    *,
    score: str = "",
    score_told: str = "",
    progress: TrainingStepReport | None = None,
) -> Language:
    """A pipeline of whatever components a config names, trained on sentences with trees.

    dev: its best state is returned; the one after the last step without it.
    score: of spaCy's scores of dev that which is kept as the curve of the training, in meta.json;
    score_told: what it is.
    """
    steps = _Steps(config["training"]["max_steps"], 1, progress)
    nlp = _train(train, dev, config, steps)
    steps.keep_curve(nlp, score, score_told)
    return nlp


def _train(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    config: Config,
    steps: _Steps,
) -> Language:
    config = config.copy()
    with temporary_directory("parser") as data:
        corpora = {"train": _write(data / "train.conllu", train), "dev": None}
        if dev:
            corpora["dev"] = _write(data / "dev.conllu", dev)
        original = config.copy()
        _set_corpora(config, corpora)
        with _fast_products():
            nlp = init_nlp(config)
            train_loop(nlp, data, stdout=_ProgressStream(steps), stderr=io.StringIO())
        nlp = spacy.load(data / ("model-best" if dev else "model-last"))
    # The model must not remember files that are gone, nor this function's logger.
    nlp.config["corpora"] = original.get("corpora", {})
    nlp.config["training"].update(
        {"logger": {"@loggers": "spacy.ConsoleLogger.v1"}, **original["training"]}
    )
    resolve_optimizer(nlp)
    return nlp


@contextmanager
def _fast_products() -> Iterator[None]:
    """Matrix products by numpy's BLAS where thinc would take BLIS: 1.7 times as fast on AVX-512.

    On one thread: these matrices are small, several trainings may run at once, and the result must
    not depend on the number of threads.
    """
    if type(get_current_ops()) is NumpyOps:
        with one_thread(), use_ops("numpy", use_blis=False):
            yield
    else:  # a GPU, or a platform's own operations
        yield


def _add_twins(nlp: Language, twin: Language) -> None:
    for name, pipe in twin.pipeline:
        if not isinstance(pipe, DependencyParser):
            continue
        own_tok2vec(twin, name)
        nlp.add_pipe(name, source=twin, name=backward_name(name))
        nlp.disable_pipe(backward_name(name))


def own_tok2vec(nlp: Language, parser: str) -> None:
    """Give a parser that listens to a tok2vec of its pipeline a copy of its own."""
    for name, listened in nlp.pipeline:
        if parser in getattr(listened, "listening_components", []):
            nlp.replace_listeners(name, parser, ["model.tok2vec"])


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
    else:
        # Else a short training is evaluated before its first step alone, and that state kept.
        training["eval_frequency"] = min(training["eval_frequency"], training["max_steps"])


@dataclass(slots=True)
class _Steps:
    """Counts the steps of several trainings as one.

    scores: those of dev in the first training, by step.
    """

    max_steps: int
    trainings: int
    progress: TrainingStepReport | None
    trained: int = 0
    scores: dict[int, dict[str, float]] = field(default_factory=dict)

    def report(self, step: int, info: dict[str, Any] | None) -> None:
        info = info or {}
        scores = {k: v for k, v in (info.get("other_scores") or {}).items() if isinstance(v, float)}
        if scores and not self.trained:
            self.scores[step] = scores
        if self.progress is None:
            return
        self.progress(
            TrainingStep(
                # spaCy counts steps from 0 and takes one more than max_steps.
                step=self.trained * (self.max_steps + 1) + step,
                of=self.trainings * (self.max_steps + 1) - 1,
                losses={k: float(v) for k, v in info.get("losses", {}).items()},
                scores=scores,
            )
        )

    def keep_curve(self, nlp: Language, score: str, told: str) -> None:
        """Put what dev got into a pipeline's meta.json, as the curves of other parsers are kept.

        What it got before the first step is left out.
        """
        found = {step: own[score] for step, own in self.scores.items() if step and score in own}
        if found:
            values = [round(100 * value, 3) for value in found.values()]
            nlp.meta["curve"] = {"of": told, "values": values, "steps": min(found)}


class _ProgressStream(io.StringIO):
    """Swallows what spaCy prints, and carries the counter to the logger, which gets it."""

    def __init__(self, steps: _Steps) -> None:
        super().__init__()
        self.steps = steps

    def write(self, text: str) -> int:
        return len(text)


@registry.loggers(LOGGER)
def create_progress_logger() -> Callable[..., Any]:
    """Logger that reports to `train_spacy_parser` instead of printing."""

    def set_up(
        nlp: Language, stdout: IO[str], stderr: IO[str]
    ) -> tuple[Callable[[dict[str, Any] | None], None], Callable[[], None]]:
        steps: _Steps | None = getattr(stdout, "steps", None)
        step = -1

        def log_step(info: dict[str, Any] | None) -> None:
            nonlocal step
            step += 1
            if steps is not None:
                steps.report(step, info)

        return log_step, lambda: None

    return set_up
