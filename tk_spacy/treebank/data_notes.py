"""Notes on data that a parser cannot make full use of: what would be lost without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath

from tk_spacy.treebank.characters import invisible
from tk_spacy.treebank.conllu import Sentence

COLUMNS: Mapping[str, str] = {"LEMMA": "lemmas", "UPOS": "upos", "XPOS": "xpos", "FEATS": "feats"}
"""Columns that parsers read beside FORM, and their names in a `Sentence`."""

XPOS_NOTE = (
    "XPOS is neither read nor predicted, only UPOS: it is missing on more than 1% of the words of "
    "train or dev, or has over 1,000 values, as where whole analyses stand in it"
)
NO_VALUE = "_"
SHOWN = 5
"""Labels that a note names."""

Path = str | PathLike[str]


class FilledColumns:
    """Which columns hold a value on any word, over a stream of sentences."""

    def __init__(self, sentences: Iterable[Sentence] = ()) -> None:
        self._empty = dict(COLUMNS)
        for sentence in sentences:
            self.add(sentence)

    def add(self, sentence: Sentence) -> None:
        """Look at one more sentence."""
        for name, field in list(self._empty.items()):
            column = getattr(sentence, field)
            if column.count(NO_VALUE) < len(column):
                del self._empty[name]

    def __contains__(self, name: str) -> bool:
        return name not in self._empty

    def add_all(self, others: FilledColumns) -> None:
        """Take in what is known of other sentences of the stream."""
        for name in [name for name in self._empty if name in others]:
            del self._empty[name]

    def found(self) -> list[str]:
        """The columns that hold a value."""
        return [name for name in COLUMNS if name in self]

    @classmethod
    def of(cls, found: Iterable[str]) -> FilledColumns:
        """The same from the names of columns.  Raises KeyError for others."""
        filled = cls()
        for name in found:
            del filled._empty[name]
        return filled

    def missing(self, wanted: Collection[str]) -> list[str]:
        """Those of the wanted columns that are empty so far."""
        return [name for name in self._empty if name in wanted]


def missing_note(missing: Sequence[str], where: Path, reader: str = "the model") -> str:
    """That columns are empty which a model reads."""
    return (
        f"{fspath(where)}: no word has {join(missing, 'or')}, which {reader} has learnt to read: "
        "its trees will be worse; run a tagger first"
    )


def part_notes(
    parts: Mapping[str, Sequence[Sentence]],
    paths: Mapping[str, Path],
    *,
    columns: Collection[str] = tuple(COLUMNS),
    train_files: Sequence[tuple[Path, Sequence[Sentence]]] = (),
) -> Iterator[str]:
    """Notes on the parts of a treebank that something is trained on.

    parts: "train", and others that are scored.  columns: those that are read.
    train_files: where train is several files, each of them and its sentences, to name their lines.
    """
    train = parts["train"]
    for path, sentences in train_files or [(paths["train"], train)]:
        if (note := no_label_note(sentences, path)) is not None:
            yield note
    known = {deprel for sentence in train for deprel in sentence.deprels}
    filled = FilledColumns(train)
    read = [name for name in columns if name in filled]
    for name, sentences in parts.items():
        if name != "train":
            yield from scored_notes(sentences, paths[name], labels=known, columns=read)


def scored_notes(
    sentences: Sequence[Sentence],
    path: Path,
    *,
    labels: Collection[str],
    columns: Collection[str],
    reader: str = "the model",
) -> Iterator[str]:
    """Notes on gold sentences that a model is scored on.

    labels: that it can give.  columns: that it reads.
    """
    counts = Counter(deprel for s in sentences for deprel in s.deprels if deprel not in labels)
    if counts:
        shown = [show_label(label) for label, _ in counts.most_common(SHOWN)]
        more = f" and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
        labels_are = "label" if len(counts) == 1 else "labels"
        yield (
            f"{fspath(path)}: {len(counts)} {labels_are} that training lacks, "
            f"{', '.join(shown)}{more}, on {counts.total()} of {sum(map(len, sentences))} words: "
            "no parser will give them, so these words count as wrong in LAS"
        )
    if missing := FilledColumns(sentences).missing(columns):
        yield missing_note(missing, path, reader)


class Blanks:
    """Counts words without HEAD or DEPREL while pairs of a gold and a system's sentence pass."""

    def __init__(self) -> None:
        self._words = 0
        self._heads = self._labels = self._gold_labels = 0

    def watch(
        self, pairs: Iterable[tuple[Sentence, Sentence]]
    ) -> Iterator[tuple[Sentence, Sentence]]:
        """Pass pairs on."""
        for gold, system in pairs:
            self._words += len(system)
            self._heads += int((system.heads < 0).sum())
            self._labels += system.deprels.count(NO_VALUE)
            self._gold_labels += gold.deprels.count(NO_VALUE)
            yield gold, system

    def notes(self, gold: Path, system: Path) -> Iterator[str]:
        """What is missing in either file, if anything."""
        if self._gold_labels:
            yield (
                f"{fspath(gold)}: DEPREL is '_' on {self._gold_labels} of {self._words} words, "
                "which is compared as if it were a label"
            )
        missing = {"HEAD": self._heads, "DEPREL": self._labels}
        found = [f"{name} is '_' on {count}" for name, count in missing.items() if count]
        if found:
            yield (
                f"{fspath(system)}: {join(found, 'and')} of {self._words} words, which count as "
                "wrong"
            )


def no_label_note(sentences: Iterable[Sentence], path: Path) -> str | None:
    """A note where words to learn from have no DEPREL."""
    count, first = 0, 0
    for sentence in sentences:
        here = sentence.deprels.count(NO_VALUE)
        if here and not count:
            first = word_line(sentence, sentence.deprels.index(NO_VALUE) + 1)
        count += here
    if not count:
        return None
    at = f"{fspath(path)}:{first}" if first else fspath(path)
    return (
        f"{at}: DEPREL is '_' on {count} word{'s' * (count > 1)}, which is learnt as if it were a "
        "label; annotate them, or leave their sentences out"
    )


def word_line(sentence: Sentence, word: int) -> int:
    """The line of a word (1..n) in its file; 0 where the sentence comes from none."""
    if not sentence.line:
        return 0
    others = sum(words < word for words, _ in sentence.layout.extras)
    return sentence.line + len(sentence.comments) + others + word - 1


def show_label(label: str) -> str:
    """A label for a message, with what cannot be seen in it as escapes."""
    return repr(label) if invisible(label) or not label.isprintable() else label


def join(items: Sequence[str], word: str) -> str:
    """Items as a list in a sentence."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}"
