"""A training whose input is read, and every check of it that can be made before it begins.

A training may take an hour; a mistake must show in the first seconds, and nothing be written then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.errors import UserError
from tk_spacy.features.schema import distrusts_xpos, morph_note
from tk_spacy.features.word_properties import check_extras
from tk_spacy.kbest.candidates import CandidateList, LabelInventory, check_alternatives
from tk_spacy.kbest.matching import matched_lists
from tk_spacy.parsers.base import ParserSpec
from tk_spacy.parsers.external import ExternalParser
from tk_spacy.parsers.names import FILE
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.reranker.provenance import PartFacts
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.treebank.data_notes import COLUMNS, XPOS_NOTE, part_notes
from tk_spacy.utils.workdir import (
    check_different,
    check_output,
    check_outside,
    check_work_directory,
    fingerprint,
)
from tk_spacy.workflows.train.options import TrainOptions

OVERLAP_WORTH_A_WARNING = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of the treebank: its gold sentences, and its lists where they are ready."""

    name: str
    path: Path
    sentences: list[Sentence]
    lists: list[CandidateList] | None = None

    @property
    def words(self) -> int:
        """Number of words."""
        return sum(map(len, self.sentences))

    def facts(self) -> PartFacts:
        """File name, sizes and fingerprint."""
        return PartFacts(
            file=self.path.name,
            sentences=len(self.sentences),
            words=self.words,
            sha256=fingerprint(self.path),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A training whose input is read and found good.

    parts: "train", "dev" and perhaps "test".  inventory: shared by all lists, ready or to come.
    parsers: the parsers, given or to be trained; none where all lists are ready and no pipeline is
        given.
    notes: warnings.
    """

    options: TrainOptions
    parts: dict[str, Part]
    inventory: LabelInventory
    parsers: tuple[ParserSpec, ...]
    notes: tuple[str, ...]

    @property
    def needs_lists(self) -> bool:
        """Whether any part's lists are still to be made."""
        return any(part.lists is None for part in self.parts.values())

    @property
    def trains_parsers(self) -> bool:
        """Whether a parser is to be trained here."""
        return self.needs_lists and not all(parser.given for parser in self.parsers)

    @property
    def jackknifes(self) -> bool:
        """Whether the training lists come from folds."""
        return self.trains_parsers and self.parts["train"].lists is None


def check_places(options: TrainOptions) -> None:
    """Raises UserError where the model or the work cannot be written; reads no input."""
    check_output(options.output, overwrite=options.overwrite)
    check_work_directory(options.work_directory)
    check_outside(options.output, options.kept_paths)


def make_plan(options: TrainOptions) -> Plan:
    """Read all input and check everything that can be checked.  Raises UserError."""
    check_places(options)
    paths = {"train": options.train, "dev": options.dev}
    if options.test is not None:
        paths["test"] = options.test
    check_different(paths)
    notes: list[str] = []
    sentences = {name: load_treebank(path) for name, path in paths.items()}
    notes += overlap_notes(sentences)
    if distrusts_xpos(sentences["train"], sentences["dev"]):
        notes.append(XPOS_NOTE)
    if (note := morph_note(sentences["train"])) is not None:
        notes.append(note)
    read = set(COLUMNS)
    if distrusts_xpos(sentences["train"], sentences["dev"]):
        read.discard("XPOS")
    notes += part_notes(sentences, paths, columns=read)
    for names in (options.settings.properties, *options.parser_extras):
        check_extras(names, sentences["train"], where=str(options.train))
    # All at once, so that their order does not depend on which parser is asked first.
    inventory = LabelInventory(sorted({label for s in sentences["train"] for label in s.deprels}))
    ready = {
        "train": options.candidates,
        "dev": options.dev_candidates,
        "test": options.test_candidates,
    }
    parts = {}
    for name, path in paths.items():
        file = ready[name]
        lists = (
            None
            if file is None
            else read_lists(file, sentences[name], inventory, options.list_length)
        )
        parts[name] = Part(name, path, sentences[name], lists)
    parsers = _parsers(options, parts)
    for parser in parsers:
        notes += parser.notes() if isinstance(parser, ExternalParser) else ()
    sources = [name for parser in parsers for name in parser.sources]
    known = [*sources, COMBINER]
    if twice := sorted({name for name in known if known.count(name) > 1}):
        raise UserError(
            f"two scores would be called {', '.join(twice)}: give the parser in files another name"
        )
    check_sources(parts, sources)
    if options.spacy_pipeline is not None and parts["train"].lists is None:
        notes.append(
            f"training lists come from {options.spacy_pipeline} itself: right only if it was not "
            f"trained on {options.train.name} (jackknifing needs a spaCy parser trained here)"
        )
    plan = Plan(options, parts, inventory, parsers, tuple(notes))
    if plan.jackknifes and len(sentences["train"]) < 2 * options.folds:
        raise UserError(
            f"{options.train}: {len(sentences['train'])} sentences are too few for "
            f"{options.folds} folds; give at least {2 * options.folds}, or fewer folds"
        )
    return plan


def _parsers(options: TrainOptions, parts: Mapping[str, Part]) -> tuple[ParserSpec, ...]:
    """The parsers that are needed, their settings checked and all sentences readable by them."""
    missing = [part for part in parts.values() if part.lists is None]
    if options.spacy_pipeline is None and not missing:
        return ()
    parsers = make_parsers(
        options.parsers,
        seed=options.seed,
        settings=options.parser_settings,
        files={
            source: {part: (parts[part].path, path) for part, path in files.items()}
            for source, files in options.parser_files.items()
        },
        spacy_pipeline=options.spacy_pipeline,
        config=options.config,
        max_steps=options.max_steps,
        backward=options.backward,
        search=options.search,
        xpos=not distrusts_xpos(parts["train"].sentences, parts["dev"].sentences),
    )
    if own := [parser.kind for parser in parsers if parser.kind != FILE]:
        from tk_spacy.pipeline.assembly import (  # noqa: PLC0415  (imports spaCy)
            check_factories,
            check_one_pipeline,
        )

        check_factories(own)
        check_one_pipeline(parsers)
    for parser in parsers:
        for part in (parts["train"], *missing):
            parser.check(part.sentences)
    if len(parsers) == 1 and isinstance(parsers[0], ExternalParser) and not parsers[0].scored:
        raise UserError(
            f"the parser {parsers[0].name} has one tree a sentence, which leaves no choice; name a "
            "parser beside it, or give k-best files"
        )
    return parsers


def overlap_notes(sentences: dict[str, list[Sentence]]) -> Iterator[str]:
    """Warnings about parts whose sentences stand in train too."""
    known = {sentence.forms for sentence in sentences["train"]}
    for name, part in sentences.items():
        if name == "train":
            continue
        share = sum(sentence.forms in known for sentence in part) / len(part)
        if share > OVERLAP_WORTH_A_WARNING:
            yield f"{share:.0%} of the sentences of {name} stand in train too: its scores flatter"


def read_lists(
    path: Path, sentences: Sequence[Sentence], inventory: LabelInventory, k: int
) -> list[CandidateList]:
    """Ready lists for all sentences.  Raises CandidateError where they do not fit."""
    lists = list(matched_lists(path, sentences, inventory=inventory, k=k))
    check_alternatives(lists, where=str(path))
    return lists


def check_sources(parts: Mapping[str, Part], sources: Sequence[str]) -> None:
    """Raises UserError where lists of different parsers would be mixed.

    sources: of the parsers that make the missing lists, or that the model will hold.
    """
    names = {"the model's parsers": set(sources)} if sources else {}
    for part in parts.values():
        if part.lists is not None:
            found = {name for trees in part.lists for name in trees.sources}
            names[f"the candidates of {part.name}"] = found
    if not names:
        return
    (first, expected), *rest = names.items()
    for where, found in rest:
        if found != expected:
            raise UserError(
                f"{first} have the scores {_and(expected)}, {where} {_and(found)}: a reranker is "
                "trained and used with the same parsers; give lists of the same ones"
            )


def _and(names: set[str]) -> str:
    return " and ".join(repr(name) for name in sorted(names)) or "of no parser"
