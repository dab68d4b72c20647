"""A training whose input is read, and every check of it that can be made before it begins.

A training may take an hour; a mistake must show in the first seconds, and nothing be written then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.errors import TreebankError, UserError
from tk_spacy.features.schema import distrusts_xpos, morph_note
from tk_spacy.features.word_properties import check_extras
from tk_spacy.kbest.candidates import CandidateList, LabelInventory, check_alternatives
from tk_spacy.kbest.matching import matched_lists
from tk_spacy.parsers.base import ParserSpec
from tk_spacy.parsers.external import ExternalParser
from tk_spacy.parsers.names import FILE
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.tagging.base import TaggerSpec
from tk_spacy.tagging.kinds import make_tagger
from tk_spacy.tokenizing.spec import UdpipeTokenizerSpec, make_tokenizer
from tk_spacy.tokenizing.training_text import multiword_tokens
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS, XPOS_NOTE, part_notes
from tk_spacy.treebank.licences import Licence, find_licence, licence_note
from tk_spacy.utils.workdir import (
    check_different,
    check_output,
    check_outside,
    check_work_directory,
)
from tk_spacy.workflows.train.options import DEFAULT_FOLDS, TrainOptions
from tk_spacy.workflows.train.parts import Part, ReadParts, read_parts
from tk_spacy.workflows.train.places import at_its_place
from tk_spacy.workflows.train.students import check_text, make_students
from tk_spacy.workflows.train.treebanks import TrainingSet, Treebank, find_training_set

HELD_OUT = "held-out"
"""The part that a fold of a cross-validation parses."""
OVERLAP_WORTH_A_WARNING = 0.5
MULTIWORD_KEPT = 100
"""Multiword tokens that a model remembers, so as to say where they are not split."""
MULTIWORD_LEAST = 2
"""Times that such a one occurs."""
FEW_WORDS = 1000
"""A score on fewer words is known to no better than one or two points."""
STUDENT_SEED, SEEDS = 1000, 2**32
"""What is added to the seed for parsers that are distilled, and what all seeds are below."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A training whose input is read and found good.

    options: with `cross_validation` decided.
    parts: "train", "dev" and perhaps "test"; "train" alone for cross-validation.
    inventory: shared by all lists, ready or to come.
    parsers: the parsers, given or to be trained; none where all lists are ready and no pipeline is
        given.
    notes: warnings.  tagger: to be trained, None where the files' tags are learnt from.
    tokenizer: to be trained, None for none.
    students: specs of the parsers that the final system is distilled into, none for no such.
    multiword: the words of multiword tokens of train, in lower case, by the tokens' forms; the most
        frequent ones.
    treebanks: that the parts come from.  told: what was made of them, in a line each.
    folds: of the jackknife, or of cross-validation.
    """

    options: TrainOptions
    parts: dict[str, Part]
    inventory: LabelInventory
    parsers: tuple[ParserSpec, ...]
    notes: tuple[str, ...]
    tagger: TaggerSpec | None = None
    tokenizer: UdpipeTokenizerSpec | None = None
    multiword: Mapping[str, str] = field(default_factory=dict)
    treebanks: tuple[Treebank, ...] = ()
    told: tuple[str, ...] = ()
    title: str = ""
    folds: int = DEFAULT_FOLDS
    students: tuple[Any, ...] = ()

    @property
    def licences(self) -> dict[str, Licence]:
        """What the treebanks' folders say of their licences; a single one has the user's title."""
        if len(self.treebanks) == 1:
            return {self.title: find_licence(self.treebanks[0].folder)}
        learnt = [treebank for treebank in self.treebanks if "train" in treebank.files]
        return {bank.name: find_licence(bank.folder) for bank in learnt or self.treebanks}

    @property
    def dev(self) -> list[Sentence]:
        """The sentences of dev, none in cross-validation."""
        return self.parts["dev"].sentences if "dev" in self.parts else []

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


def _check_files_of_parsers(options: TrainOptions, found: TrainingSet) -> None:
    """Raises UserError for trees in files of parts that are several files."""
    joined = [name for name, paths in found.files.items() if len(paths) > 1]
    if options.parser_files and joined:
        raise UserError(
            f"{joined[0]} is {len(found.files[joined[0]])} files, but the trees of "
            f"{', '.join(options.parser_files)} are in one; join the files of {joined[0]} into one"
        )


def check_places(options: TrainOptions) -> None:
    """Raises UserError where the model or the work cannot be written; reads no input."""
    check_output(options.output, overwrite=options.overwrite)
    check_work_directory(options.work_directory)
    check_outside(options.output, options.kept_paths)


def make_plan(options: TrainOptions) -> Plan:
    """Read all input and check everything that can be checked.  Raises UserError."""
    check_places(options)
    found = find_training_set(options)
    of_lists = [name for name in options.places if name.startswith(("lists.", "parsers.files."))]
    with at_its_place(options, *of_lists):
        options.check_parts(found.files.keys())
    options = found.decided(options)
    check_different(found.files)
    check_outside(options.output, [path for paths in found.files.values() for path in paths])
    _check_files_of_parsers(options, found)
    read = read_parts(found, options)
    train = read.parts["train"]
    notes = list(_notes_of(found, read))
    for setting, names in options.word_properties.items():
        with at_its_place(options, setting):
            check_extras(names, train.sentences, where=train.label)
    # All at once, so that their order does not depend on which parser is asked first.
    inventory = LabelInventory(sorted({label for s in train.sentences for label in s.deprels}))
    parts = _with_ready_lists(read.parts, options, inventory)
    parsers = _parsers(options, parts)
    for parser in parsers:
        notes += parser.notes() if isinstance(parser, ExternalParser) else ()
    _check_scores(parsers, parts)
    if options.spacy_pipeline is not None and parts["train"].lists is None:
        notes.append(
            f"training lists come from {options.spacy_pipeline} itself: right only if it was not "
            f"trained on {train.facts().file} (jackknifing needs a spaCy parser trained here)"
        )
    plan = Plan(
        options,
        parts,
        inventory,
        parsers,
        tuple(notes),
        treebanks=found.treebanks,
        told=read.told,
        title=options.title or found.title,
        folds=read.folds,
    )
    if plan.trains_parsers:
        _check_for_spacy(plan)
    if options.tags == "own":
        plan = _with_tagger(plan)
    plan = _with_tokenizer(plan)
    if options.distill:
        plan = _with_students(plan)
    if any(parser.kind != FILE for parser in plan.parsers):
        note = licence_note(options.licence, plan.licences)
        plan = replace(plan, told=(*plan.told, note))
    if options.cross_validation:
        _check_cross_validation(plan)
    elif plan.jackknifes and len(train.sentences) < 2 * plan.folds:
        with at_its_place(options, "lists.folds"):
            raise _too_few(plan, f"{plan.folds} folds", 2 * plan.folds)
    return plan


def _notes_of(found: TrainingSet, read: ReadParts) -> Iterator[str]:
    """Warnings about the treebank's own files."""
    sentences = {name: part.sentences for name, part in read.parts.items()}
    yield from overlap_notes(sentences)
    if found.splits_train and (words := read.parts["dev"].words) < FEW_WORDS:
        cure = "" if "test" in sentences else ", or have all parsed in turn (cross_validation)"
        yield (
            f"dev, a tenth of train, has only {words} words: scores on it are rough; give a dev "
            f"file{cure}"
        )
    columns = set(COLUMNS)
    if distrusts_xpos(sentences["train"], sentences.get("dev", [])):
        yield XPOS_NOTE
        columns.discard("XPOS")
    if (note := morph_note(sentences["train"])) is not None:
        yield note
    labels = {name: part.label for name, part in read.parts.items()}
    yield from part_notes(sentences, labels, columns=columns, train_files=read.train_files)


def _with_ready_lists(
    parts: Mapping[str, Part], options: TrainOptions, inventory: LabelInventory
) -> dict[str, Part]:
    """The parts with the lists that files have for them."""
    ready = {
        "train": options.candidates,
        "dev": options.dev_candidates,
        "test": options.test_candidates,
    }
    found = dict(parts)
    for name, part in parts.items():
        if (file := ready[name]) is not None:
            lists = read_lists(file, part.sentences, inventory, options.list_length)
            found[name] = replace(part, lists=lists)
    return found


def _check_scores(parsers: Sequence[ParserSpec], parts: Mapping[str, Part]) -> None:
    """Raises UserError where two scores have one name, or lists are of other parsers."""
    sources = [name for parser in parsers for name in parser.sources]
    known = [*sources, COMBINER]
    if twice := sorted({name for name in known if known.count(name) > 1}):
        raise UserError(
            f"two scores would be called {', '.join(twice)}: give the parser in files another name"
        )
    check_sources(parts, sources)


def fold_plan(plan: Plan, train: list[Sentence], held_out: list[Sentence]) -> Plan:
    """A plan to learn from some of a plan's train alone, and have the others parsed.

    Whatever the plan took from its train, labels and columns that are worth reading, is taken from
    these sentences anew.
    """
    whole = plan.parts["train"]
    parts = {
        "train": replace(whole, sentences=train),
        HELD_OUT: replace(whole, name=HELD_OUT, sentences=held_out),
    }
    inventory = LabelInventory(sorted({label for s in train for label in s.deprels}))
    return replace(
        plan, parts=parts, inventory=inventory, parsers=_parsers(plan.options, parts), notes=()
    )


def _check_for_spacy(plan: Plan) -> None:
    """Raises UserError, before anything is trained, for what the pipeline's Docs cannot hold."""
    from tk_spacy.spacy_io.conversion import check_sentences  # noqa: PLC0415  (it imports spaCy)

    for part in plan.parts.values():
        check_sentences(part.sentences)


def _check_cross_validation(plan: Plan) -> None:
    """Raises UserError where parsers were not trained here, or folds would be too small."""
    if given := [parser.name for parser in plan.parsers if parser.given]:
        raise UserError(
            f"cross_validation is not possible with the given parser {', '.join(given)}: it may "
            "have seen any sentence; leave it out, or give a dev file"
        )
    train = plan.parts["train"]
    n = len(train.sentences)
    least = -(-2 * plan.folds**2 // (plan.folds - 1))
    if n < least:
        with at_its_place(plan.options, "lists.folds"):
            what = f"cross-validation with {plan.folds} folds, each of whose systems has as many"
            raise _too_few(plan, f"{what} folds again", least)


def _too_few(plan: Plan, folds: str, least: int) -> UserError:
    """What to raise where train has fewer than `least` sentences, which its folds need."""
    train = plan.parts["train"]
    n = len(train.sentences)
    found = f"{n} sentences are" if n != 1 else "1 sentence is"
    fewer = ", or fewer folds" if plan.folds > 2 else ""  # there are no fewer
    return UserError(f"{train.label}: {found} too few for {folds}; give at least {least}{fewer}")


def _with_tagger(plan: Plan) -> Plan:
    """The same with the tagger that is to be trained.  Raises UserError where none can be."""
    ready = [part for part in plan.parts.values() if part.lists is not None]
    if ready or not plan.trains_parsers:
        if "tags" in plan.options.asked or "tagger" in plan.options.asked:
            reason = "lists are given" if ready else "no parser is trained"
            raise UserError(
                f"tags cannot be 'own': {reason}, so the tags are the files'; leave it out"
            )
        return plan
    tagger = make_tagger(plan.options.tagger, seed=plan.options.seed)
    with at_its_place(plan.options, "tags.tagger"):
        try:
            tagger.check(plan.parts["train"].sentences)
        except TreebankError:
            raise  # it names the line
        except UserError as error:
            raise UserError(f"{plan.parts['train'].label}: {error}") from error
    if tagger.kind == "spacy":
        from tk_spacy.pipeline.assembly import check_shared_name  # noqa: PLC0415  (imports spaCy)

        check_shared_name(plan.parsers)
    return replace(plan, tagger=tagger)


def _with_tokenizer(plan: Plan) -> Plan:
    """The same with the tokenizer that is to be trained, or a note on why there is none.

    Raises UserError where one is asked for and cannot be trained.
    """
    options, train = plan.options, plan.parts["train"].sentences
    spec = make_tokenizer(options.tokenizer)
    note = None
    if plan.tagger is None:
        if "tokenizer" in options.asked:
            raise UserError(
                "tokenizer would have no effect: no tagger is trained, and text has no tags; "
                "leave it out"
            )
        spec = None
    elif spec is not None:
        try:
            spec.check(train)
        except UserError as error:
            if "tokenizer" in options.asked:
                raise UserError(f"{plan.parts['train'].label}: {error}; leave it out") from error
            spec = None
            note = f"{plan.parts['train'].label}: {error}; the model reads words, not text"
    # Kept in any case: the model's components may come into a pipeline with another tokenizer.
    multiword = _multiword(train)
    if spec is not None:
        return replace(plan, tokenizer=spec, multiword=multiword)
    notes = [*plan.notes, *([note] if note else []), *multiword_notes(train, multiword)]
    return replace(plan, notes=tuple(notes), multiword=multiword)


def _with_students(plan: Plan) -> Plan:
    """The same with the parsers to distill into.  Raises UserError where nothing can be."""
    options = plan.options
    xpos = not distrusts_xpos(plan.parts["train"].sentences, plan.dev)
    with at_its_place(options, "distillation.students"):
        students = make_students(
            options.students,
            # Of other weights to start from than the parsers that teach it, which it may join.
            seed=(options.seed + STUDENT_SEED) % SEEDS,
            xpos=xpos,
            settings=options.parser_settings,
        )
    from tk_spacy.pipeline.assembly import check_factories  # noqa: PLC0415  (imports spaCy)

    check_factories(spec.kind for spec in students)
    if options.text is not None:
        with at_its_place(options, "distillation.text"):
            check_text(options.text, has_tokenizer=plan.tokenizer is not None)
    return replace(plan, students=students)


def _multiword(train: Sequence[Sentence]) -> dict[str, str]:
    """The most frequent multiword tokens that are never a word, and their words."""
    known = {form.lower() for sentence in train for form in sentence.forms}
    found: dict[str, str] = {}
    for token, count in multiword_tokens(train).most_common():
        if len(found) == MULTIWORD_KEPT or count < MULTIWORD_LEAST:
            break
        if token.form not in known:
            found.setdefault(token.form, " ".join(token.words))
    return found


def multiword_notes(train: Sequence[Sentence], examples: Mapping[str, str]) -> Iterator[str]:
    """A note where words of text would not be the treebank's, since no tokenizer splits them."""
    number = multiword_tokens(train).total()
    if number:
        example = next((f", as {form} = {words}" for form, words in examples.items()), "")
        yield (
            f"train has {number} multiword tokens{example}: spaCy's tokenizer, which the model "
            "has, does not split them; give it the treebank's words, or train with own tags and a "
            "tokenizer"
        )


def _parsers(options: TrainOptions, parts: Mapping[str, Part]) -> tuple[ParserSpec, ...]:
    """The parsers that are needed, their settings checked and all sentences readable by them."""
    missing = [part for part in parts.values() if part.lists is None]
    if options.spacy_pipeline is None and not missing:
        return ()
    with at_its_place(options, "parsers.names"):
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
            xpos=not distrusts_xpos(
                parts["train"].sentences, parts["dev"].sentences if "dev" in parts else ()
            ),
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
