"""Which tags the words of a file are parsed with: the file's, or those of the model's tagger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from typing import Literal, get_args

from tk_spacy.errors import UserError
from tk_spacy.tagging.base import Tagger, Tags
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS, FilledColumns, join

TagChoice = Literal["auto", "gold", "own"]
TAG_CHOICES: tuple[TagChoice, ...] = get_args(TagChoice)

LOOKED_AT = 100
"""Sentences at the start of a file that say which columns it has filled."""
BATCH = 64
NO_VALUE = "_"


@dataclass(slots=True)
class FileTags:
    """Gives the sentences of one file the tags that they are parsed with.

    choice: "gold" the file's; "own" the tagger's, whatever the file has; "auto" the file's where a
        column has values in the file's first sentences, the tagger's where it has none; a word
        without UPOS among others that have it gets all that it lacks from the tagger.
    opener: opens the model's tagger, None where it has none; called when it is needed, perhaps
        often (see `of_model`).
    learnt_own: whether the model learnt from its own tagger's tags, so that the file's are worth a
        word.
    own: columns that were taken from the tagger, known once sentences have come; with single_words
        only some words', which lacked UPOS.
    """

    choice: TagChoice
    opener: Callable[[], Tagger | None]
    learnt_own: bool = False
    own: tuple[str, ...] = ()
    single_words: int = 0

    def __call__(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """The sentences with their tags, in order, read a little ahead.

        Raises UserError where the tagger's are wanted and there is no tagger.
        """
        if self.choice == "gold":
            yield from sentences
            return
        stream = iter(sentences)
        first = list(islice(stream, LOOKED_AT))
        if self.choice == "own":
            tagger = self.opener()
            if tagger is None:
                raise UserError(
                    "tags is 'own', but the model has no tagger: it was trained on gold tags; "
                    "leave it out, or train a model with a tagger"
                )
            self.own = tagger.columns
            replaced: Sequence[str] = tuple(COLUMNS)
        else:
            filled = FilledColumns(first)
            empty = [name for name in COLUMNS if name not in filled]
            tagger = self.opener() if empty else None
            replaced = self.own = (
                () if tagger is None else tuple(name for name in empty if name in tagger.columns)
            )
        yield from self._tagged(chain(first, stream), tagger, replaced)

    def _tagged(
        self, stream: Iterator[Sentence], tagger: Tagger | None, replaced: Sequence[str]
    ) -> Iterator[Sentence]:
        while batch := list(islice(stream, BATCH)):
            if replaced and tagger is not None:
                tags = list(tagger.tag(batch))
                for sentence, own in zip(batch, tags, strict=True):
                    yield self._completed(merged(Tags.of(sentence), own, replaced).put(sentence))
                continue
            for sentence in batch:
                yield self._completed(sentence)

    def _completed(self, sentence: Sentence) -> Sentence:
        """A sentence whose words without UPOS have the tagger's tags."""
        blank = [i for i, tag in enumerate(sentence.upos) if tag == NO_VALUE]
        if not blank or self.choice == "own":
            return sentence
        tagger = self.opener()
        if tagger is None:
            return sentence
        self.single_words += len(blank)
        (own,) = tagger.tag([sentence])
        given = Tags.of(sentence)
        columns = [list(column) for column in given]
        for column, mine in zip(columns, own, strict=True):
            for i in blank:
                if column[i] == NO_VALUE:
                    column[i] = mine[i]
        return Tags(*map(tuple, columns)).put(sentence)

    def note(self) -> str | None:
        """What was taken from the tagger, in one line; None where nothing was."""
        found = [join(self.own, "and")] if self.own else []
        if self.single_words:
            words = "word" if self.single_words == 1 else "words"
            found.append(f"tags of {self.single_words} {words} without UPOS")
        if found:
            return f"{join(found, 'and')} by the model's own tagger"
        if self.learnt_own and self.choice == "auto":
            return "tags are the file's, not the model's own tagger's (--tags own takes those)"
        return None


def of_model(
    choice: TagChoice, opener: Callable[[], Tagger | None], *, learnt_own: bool
) -> Callable[[], FileTags]:
    """What makes the `FileTags` of each file of a model, whose tagger is opened once."""
    return partial(FileTags, choice, cache(opener), learnt_own)


def merged(given: Tags, own: Tags, replaced: Sequence[str]) -> Tags:
    """Given tags with some columns replaced by others'."""
    columns = {field: getattr(given, field) for field in Tags._fields}
    columns |= {COLUMNS[name]: own.column(name) for name in replaced}
    return Tags(**columns)
