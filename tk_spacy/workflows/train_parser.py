"""A sampling parser trained alone, without a reranker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tk_spacy.about import __version__
from tk_spacy.features.schema import morph_note
from tk_spacy.features.word_properties import check_extras
from tk_spacy.parsers.sampling.settings import DEFAULT, SamplingSettings
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.timing import Meter
from tk_spacy.utils.workdir import check_different, check_output, check_outside, fingerprint

if TYPE_CHECKING:
    from tk_spacy.parsers.sampling.training import EpochProgress


def train_parser(
    train: Path,
    dev: Path | None,
    output: Path,
    *,
    settings: SamplingSettings | None = None,
    overwrite: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train a sampling parser and write it as a directory; returns what there is to tell.

    dev: the epoch that does best there is kept; None for the last one.
    Raises UserError, before anything is trained or written, for files and places that do not fit.
    """
    from tk_spacy.parsers.sampling.training import train_sampling_parser  # noqa: PLC0415  (heavy)

    settings = settings or DEFAULT
    check_output(output, overwrite=overwrite)
    files = {"train": train} | ({} if dev is None else {"dev": dev})
    check_outside(output, files.values())
    check_different(files)
    parts = {
        name: load_treebank(path, single_root=settings.single_root) for name, path in files.items()
    }
    check_extras(settings.extra, parts["train"], where=str(train))
    progress = progress or Progress()
    if (note := morph_note(parts["train"])) is not None:
        progress.warn(note)
    watch = _Watch(progress)
    with Meter() as meter:
        parser = train_sampling_parser(
            parts["train"],
            parts.get("dev", []),
            settings=settings,
            n_threads=n_threads,
            progress=watch,
        )
        watch.finish()
    about = {
        "tk_spacy": __version__,
        "treebank": {name: _about(files[name], parts[name]) for name in files},
        "epochs": watch.epochs,
    }
    parser = replace(parser, about={**parser.about, **about})
    parser.to_disk(output)
    return {
        "model": str(output),
        **parser.about,
        "settings": settings.to_dict(),
        "labels": len(parser.labels),
        "support_parts": None if parser.kernel is None else len(parser.kernel.support),
        "seconds": meter.total_seconds,
        "peak_bytes": meter.sample(),
    }


def _about(path: Path, sentences: list[Sentence]) -> dict[str, Any]:
    return {
        "file": path.name,
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "sha256": fingerprint(path),
    }


class _Watch:
    """Shows each epoch as a stage, and remembers the scores on dev."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage: str | None = None
        self.epochs: list[dict[str, float]] = []

    def __call__(self, state: EpochProgress) -> None:
        stage = f"{state.stage}, epoch {state.epoch} of {state.epochs}"
        if stage != self._stage:
            self.finish()
            self._stage = stage
            self._progress.begin(stage)
        self._progress.update(stage, state.done, state.total)
        if state.uas is not None and state.las is not None:
            self.epochs.append({"epoch": state.epoch, "uas": state.uas, "las": state.las})
            self._progress.note(
                f"epoch {state.epoch}: UAS {state.uas:.2f}, LAS {state.las:.2f} on dev"
            )

    def finish(self) -> None:
        """End the stage that is open."""
        if self._stage is not None:
            self._progress.end(self._stage)
            self._stage = None
