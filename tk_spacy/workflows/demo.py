"""The whole path on a made-up treebank."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.parsers.names import BIAFFINE, DEFAULT_PARSERS, SPACY
from tk_spacy.parsers.specs import kinds, parse_specs
from tk_spacy.reranker.settings import LEFT_OPEN, Settings
from tk_spacy.treebank.synthetic import write_treebank
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

BIAFFINE_EPOCHS = 10
"""A third of what it takes by default: a demonstration is not to be waited for."""

SYNTHETIC = (
    "THE DATA ARE SYNTHETIC: sentences of an invented language, made up by a program. The scores "
    "show that the path works, and say nothing about any real language."
)


def demo(
    directory: Path,
    *,
    sentences: int = 600,
    seed: int = 0,
    parsers: tuple[str, ...] = DEFAULT_PARSERS,
    epochs: int | None = None,
    max_steps: int | None = None,
    threads: int | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> TrainReport:
    """Write a synthetic treebank into a directory and train on it, with small parsers.

    The directory then holds the treebank's three files and `model`.  The same arguments give the
    same scores.  Raises UserError where there is a model already.
    """
    model = directory / "model"
    parse_specs(parsers)
    if model.exists():
        raise UserError(f"{model}: exists already; choose another directory")
    files = write_treebank(
        directory,
        train=sentences,
        dev=max(20, sentences // 4),
        test=max(20, sentences // 2),
        seed=seed,
    )
    with resources.as_file(resources.files("tk_spacy.configs") / "small.cfg") as config:
        of_spacy = {"config": config, "backward": False} if SPACY in kinds(parsers) else {}
        options = TrainOptions(
            train=files["train"],
            dev=files["dev"],
            test=files["test"],
            output=model,
            parsers=parsers,
            parser_settings={
                **({} if epochs is None else {"sampling": {"epochs": epochs}}),
                **({BIAFFINE: {"epochs": BIAFFINE_EPOCHS}} if BIAFFINE in kinds(parsers) else {}),
            },
            **of_spacy,  # type: ignore[arg-type]
            max_steps=max_steps,
            folds=3,
            settings=Settings(iterations=5),
            left_open=LEFT_OPEN,
            title="the synthetic treebank",
            seed=seed,
            threads=threads,
            processes=processes,
        )
        return train_pipeline(options, progress=progress)
