"""Any other parser, whose trees the user gives in files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.matching import Index, matched
from tk_spacy.kbest.tree_files import TreeFile, TreeFileSource
from tk_spacy.kbest.writer import Pair
from tk_spacy.parsers.base import Shared
from tk_spacy.parsers.kinds import parser_names
from tk_spacy.parsers.names import FILE, FILE_PREFIX
from tk_spacy.parsers.trainable import GivenParser
from tk_spacy.treebank.conllu import Sentence, read_conllu
from tk_spacy.utils.workdir import check_regular, fingerprint

# Part of every fingerprint: raise it when the same files give other lists than before.
FORMAT = 2
SUSPICIOUS_LEAD = 4.0
"""Points of UAS by which a parser may be better on train than on dev."""

_SOURCE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def check_source_name(name: str) -> None:
    """Raises UserError for what cannot be the name of a file parser's scores."""
    if not _SOURCE_NAME.fullmatch(name) or name in parser_names():
        raise UserError(
            f"{FILE_PREFIX}{name}: {name!r} cannot name a parser; take letters, digits, - and _, "
            f"a letter first, and none of {', '.join(parser_names())}"
        )


def check_files(
    files: Mapping[str, Mapping[str, Path]], *, parsers: Sequence[str], parts: Sequence[str]
) -> None:
    """Raises UserError where a file parser lacks the trees of a part, or others are given.

    files: by the name of a file parser and a part.  parts: those that need lists.
    """
    for source, given in files.items():
        if f"{FILE_PREFIX}{source}" not in parsers:
            raise UserError(
                f"trees of {source} are given, but the parsers are {','.join(parsers)}; add "
                f"{FILE_PREFIX}{source} to the parsers"
            )
        for part in given:
            if part not in parts:
                raise UserError(f"the trees {source}.{part} would have no effect; leave them out")
    for parser in parsers:
        if not parser.startswith(FILE_PREFIX):
            continue
        source = parser.removeprefix(FILE_PREFIX)
        check_source_name(source)
        for part in parts:
            if part not in files.get(source, {}):
                raise UserError(
                    f"the parser {parser} needs its trees of {part}: give them as "
                    f"parsers.files.{source}.{part}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalParser(GivenParser):
    """Trees from files; see `read`.

    source: what its scores are called.
    parts: of each part of the treebank its name, its file, and the file of its trees.
    scored: whether these are k-best files.
    train_digest: SHA-256 of the trees of train, empty where they are not needed.
    uas: of the first trees, by part.
    """

    kind: ClassVar[str] = FILE

    source: str
    parts: tuple[tuple[str, str, str], ...]
    scored: bool
    train_digest: str
    uas: tuple[tuple[str, float], ...]

    @classmethod
    def make(
        cls, name: str, settings: Mapping[str, tuple[Path, Path]], shared: Shared
    ) -> ExternalParser:
        """A parser of that name, FILE_PREFIX and all; settings: its files, see `read`."""
        return cls.read(name.removeprefix(FILE_PREFIX), settings)

    @classmethod
    def read(cls, source: str, parts: Mapping[str, tuple[Path, Path]]) -> ExternalParser:
        """A parser from files that are all read once, to see that they fit.

        parts: by the name of a part ("train", "dev", "test"), its treebank file and the file with
            its trees, CoNLL-U or k-best (see `tree_files`).
        Raises UserError where a file does not fit its part, or is of another kind than the others.
        """
        check_source_name(source)
        for _, path in parts.values():
            check_regular(path)  # read again, wherever a fold or a part is parsed
        files = {
            name: TreeFile(trees, inventory=LabelInventory(), source=source)
            for name, (_, trees) in parts.items()
        }
        kinds = {name: file.scored for name, file in files.items()}
        if len(set(kinds.values())) > 1:
            said = ", ".join(f"{n} {'k-best' if kind else 'single'}" for n, kind in kinds.items())
            raise UserError(
                f"{FILE_PREFIX}{source}: its files must all be k-best lists or all hold one tree a "
                f"sentence, but they are: {said}"
            )
        uas = []
        for name, (gold, _) in parts.items():
            right = words = 0
            for sentence, trees in matched(files[name], read_conllu(gold)):
                right += int((trees.heads[trees.base] == sentence.heads).sum())
                words += len(sentence)
            uas.append((name, 100 * right / words))
        return cls(
            source=source,
            parts=tuple((name, str(gold), str(trees)) for name, (gold, trees) in parts.items()),
            scored=any(kinds.values()),
            train_digest=fingerprint(parts["train"][1]) if "train" in parts else "",
            uas=tuple(uas),
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """What its scores are called."""
        return (self.source,)

    @property
    def name(self) -> str:
        """As a user names it among the parsers."""
        return f"{FILE_PREFIX}{self.source}"

    def notes(self) -> Iterator[str]:
        """A warning where the trees of train seem to be by a parser that was trained on them."""
        uas = dict(self.uas)
        if uas.get("train", 0.0) > uas.get("dev", 100.0) + SUSPICIOUS_LEAD:
            yield (
                f"{self.name} has {uas['train']:.1f} UAS on train, but {uas['dev']:.1f} on dev: "
                "its parser seems to know train's trees; parse each part of train by a parser "
                "trained on the others, or the reranker learns to trust it too much"
            )

    def about(self) -> dict[str, Any]:
        """What the model's own description tells; a model is used with trees of the same kind."""
        return {
            "files": {name: Path(trees).name for name, _, trees in self.parts},
            "scored": self.scored,
        }

    def training_key(self) -> list[Any]:
        """Nothing is trained."""
        return [FORMAT]

    def search_key(self) -> list[Any]:
        """All that the lists of the folds depend on."""
        return [FORMAT, self.train_digest, self.scored]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Nothing to check: `read` did."""

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> TreeFileSource:
        """The trees, wherever the directory is, of any sentence of the parts."""
        # A fold has some of train's sentences; lists keep the sent_id and words of the treebank's.
        lists = Index(
            (_lists(self.source, gold, trees, inventory) for _, gold, trees in self.parts),
            where=", ".join(trees for _, _, trees in self.parts),
            what=f"trees of {self.name}",
        )
        return TreeFileSource(self.source, lists.find, scored=self.scored)


def _lists(
    source: str, gold: str | Path, trees: str | Path, inventory: LabelInventory
) -> Iterator[Pair]:
    """The sentences of a part with their lists."""
    return matched(TreeFile(trees, inventory=inventory, source=source), read_conllu(gold))
