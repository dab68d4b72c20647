"""Trees of other parsers in files, beside the input of a model that learnt from such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.tree_files import TreeFile, TreeFileSource
from tk_spacy.utils.atomic_files import STDOUT
from tk_spacy.workflows.files.worker import Job


@dataclass(frozen=True, slots=True)
class ExternalFiles:
    """For each file parser, by its name, the trees of the input.

    paths: a file where the input is one file, else a directory with files of the inputs' names,
        below it as below the input's directory.
    inputs: files and directories, as the user named them.
    """

    paths: Mapping[str, Path] = field(default_factory=dict)
    inputs: tuple[Path, ...] = ()

    def check(self, known: Mapping[str, bool], *, model: Path) -> None:
        """Raises UserError for trees that the model has not learnt from.

        known: by name, the model's file parsers; see `Model.external_parsers`.
        """
        for name in self.paths:
            if name not in known:
                has = ", ".join(known) or "none"
                raise UserError(
                    f"{model}: was not trained with trees of {name} (of other parsers: {has}); "
                    "leave them out"
                )

    def sources(
        self, known: Mapping[str, bool], job: Job, inventory: LabelInventory, *, model: Path
    ) -> list[TreeFileSource]:
        """A source for each of the model's file parsers, for one pass over one input.

        Raises UserError where trees are not given, or of another kind than in training.
        """
        found = []
        for name, scored in known.items():
            if name not in self.paths:
                raise UserError(
                    f"{model}: was trained with trees of {name}, so give it those of the input: "
                    f"{name}=FILE (parser_files)"
                )
            path = self._path(self.paths[name], job.input)
            file = TreeFile(path, inventory=inventory, source=name)
            if file.scored != scored:
                kinds = {True: "k-best lists", False: "one tree a sentence"}
                raise UserError(
                    f"{path}: has {kinds[file.scored]}, but the model was trained with "
                    f"{kinds[scored]} of {name}; give the like"
                )
            found.append(TreeFileSource(name, file.take, scored=scored))
        return found

    def check_target(self, job: Job) -> None:
        """Raises UserError where a job's output would replace one of the files."""
        for path in self.of(job).values():
            if job.target != Path(STDOUT) and job.target.resolve() == path.resolve():
                raise UserError(f"{path}: the output would replace these trees; choose another")

    def of(self, job: Job) -> dict[str, Path]:
        """The file of each parser for one input."""
        return {name: self._path(path, job.input) for name, path in self.paths.items()}

    def _path(self, given: Path, read: Path) -> Path:
        if given.is_dir():
            return given / _below(read, self.inputs)
        if len(self.inputs) != 1 or self.inputs[0].is_dir():
            raise UserError(
                f"{given}: one file of trees for several inputs; give a directory with files of "
                "their names"
            )
        return given


def _below(file: Path, inputs: Sequence[Path]) -> Path:
    """The path of a file below the input directory that it was found in."""
    for path in inputs:
        if path.is_dir() and file.is_relative_to(path):
            return file.relative_to(path)
    return Path(file.name)
