"""The parts of a treebank, read: files joined, and a tenth of train as dev where there is none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.reranker.provenance import PartFacts
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.utils.workdir import fingerprint
from tk_spacy.workflows.train.arrangement import dealt, folds_for, split
from tk_spacy.workflows.train.options import DEFAULT_FOLDS, TrainOptions
from tk_spacy.workflows.train.treebanks import TrainingSet


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of the treebank: its sentences with gold trees, and lists where they are ready.

    gold: the sentences as the file has them, where others' tags have taken the place of theirs.
    more: further files whose sentences are joined to those of path.  share: which of the files'
        sentences they are, where they are not all.
    """

    name: str
    path: Path
    sentences: list[Sentence]
    lists: list[CandidateList] | None = None
    gold: list[Sentence] | None = None
    more: tuple[Path, ...] = ()
    share: str = ""

    @property
    def words(self) -> int:
        """Number of words."""
        return sum(map(len, self.sentences))

    @property
    def label(self) -> str:
        """The files, as messages name them."""
        names = " + ".join(str(path) for path in (self.path, *self.more))
        return f"{names} ({self.share})" if self.share else names

    def facts(self) -> PartFacts:
        """File names, sizes and fingerprint."""
        files = (self.path, *self.more)
        names = " + ".join(path.name for path in files)
        return PartFacts(
            file=f"{names} ({self.share})" if self.share else names,
            sentences=len(self.sentences),
            words=self.words,
            sha256=files_digest(files),
        )


def files_digest(files: Sequence[Path]) -> str:
    """SHA-256 of a file, or of those of several files."""
    digests = [fingerprint(path) for path in files]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReadParts:
    """What a training set's files hold.

    parts: by name.  train_files: those of train, with all their sentences, held out or not.
    told: what was done with them.  folds: of the jackknife, or of cross-validation.
    """

    parts: dict[str, Part]
    train_files: list[tuple[Path, list[Sentence]]]
    told: tuple[str, ...]
    folds: int


def read_parts(found: TrainingSet, options: TrainOptions) -> ReadParts:
    """The parts of a training set.

    Raises TreebankError for a bad file, UserError where there is no sentence to hold out.
    """
    read = {
        name: [(path, load_treebank(path)) for path in paths] for name, paths in found.files.items()
    }
    told = list(found.notes)
    learnt = [sentences for _, sentences in read["train"]]
    held_out: list[Sentence] = []
    if found.splits_train:
        halves = []
        for path, sentences in read["train"]:
            if len(sentences) < 2:
                raise UserError(
                    f"{path}: a single sentence, of which none can be held out; give a dev file"
                )
            halves.append(split(sentences, seed=options.seed))
        learnt = [rest for rest, _ in halves]
        held_out = [sentence for _, out in halves for sentence in out]
        told.append(
            f"no dev file: {len(held_out)} of {sum(map(len, learnt)) + len(held_out)} sentences "
            "of train, in blocks by the seed, are dev and not learnt from"
        )
    folds = options.folds
    if folds is None and not found.cross_validation:
        folds = folds_for(sum(len(sentence) for sentences in learnt for sentence in sentences))
    folds = folds or DEFAULT_FOLDS
    # Ready lists may be matched to sentences by their order.
    if options.candidates is not None:
        joined = [sentence for sentences in learnt for sentence in sentences]
    else:
        joined = dealt(learnt, folds=folds)
    parts = {
        "train": _part("train", found.files["train"], joined, "nine tenths" * bool(held_out)),
    }
    if held_out:
        parts["dev"] = _part("dev", found.files["train"], held_out, "a tenth")
    for name in ("dev", "test"):
        if name in read:
            sentences = [sentence for _, part in read[name] for sentence in part]
            parts[name] = _part(name, found.files[name], sentences)
    if found.cross_validation:
        told.append(
            f"cross-validation: {folds + 1} trainings, {folds} of them on all "
            f"folds but one, to parse the {len(joined)} sentences for the scores; the model that "
            "is saved is trained on all"
        )
    return ReadParts(parts=parts, train_files=read["train"], told=tuple(told), folds=folds)


def _part(name: str, files: Sequence[Path], sentences: list[Sentence], share: str = "") -> Part:
    return Part(name, files[0], sentences, more=tuple(files[1:]), share=share)
