"""Which tags the words of a file are parsed with: the file's, or those of the model's tagger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice, repeat, tee
from typing import Any, Literal, get_args

from tk_spacy.errors import UserError
from tk_spacy.tagging.base import Tagger, Tags
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS, join

TagChoice = Literal["auto", "gold", "own"]
TAG_CHOICES: tuple[TagChoice, ...] = get_args(TagChoice)

LEAST_RUN = 100
"""Words that follow each other without XPOS, or FEATS, so that these are taken to be missing."""
MOST_AHEAD = 10 * LEAST_RUN
"""Words that are read ahead to find that many with UPOS among others without."""
BATCH = 64
NO_VALUE = "_"

Gaps = Mapping[str, Sequence[int]]
"""The places of words that lack a column, by its name."""


@dataclass(slots=True)
class FileTags:
    """Gives the sentences of one file the tags that they are parsed with.

    choice: "gold" the file's; "own" the tagger's, whatever the file has; "auto" the file's where
        they are filled, the tagger's where they are "_" (see `find_gaps`), word by word.
    opener: opens the model's tagger, None where it has none; called when it is needed, perhaps
        often (see `of_model`).
    learnt_own: whether the model learnt from its own tagger's tags, so that the file's are worth a
        word.
    words: how many have passed.  taken: of how many words a column was taken from the tagger, by
        the column's name.  untagged: how many words without UPOS got tags.
    """

    choice: TagChoice
    opener: Callable[[], Tagger | None]
    learnt_own: bool = False
    words: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    untagged: int = 0

    def __call__(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """The sentences with their tags, in order, read a little ahead.

        Raises UserError where the tagger's are wanted and there is no tagger.
        """
        if self.choice == "gold":
            yield from sentences
            return
        stream = self.looked_into(sentences)
        while batch := list(islice(stream, BATCH)):
            yield from self.tagged(batch)

    def looked_into(self, sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, Gaps]]:
        """Each sentence with what it lacks, where that matters; read a little ahead."""
        if self.choice == "auto":
            return find_gaps(sentences)
        return ((sentence, {}) for sentence in sentences)

    def tagged(self, batch: Sequence[tuple[Sentence, Gaps]]) -> list[Sentence]:
        """Some of the sentences that `looked_into` gives with their tags.

        The tagger is asked of those at once that need it.
        Raises UserError where the tagger's are wanted and there is no tagger.
        """
        if self.choice == "gold":
            return [sentence for sentence, _ in batch]
        if self.choice == "own":
            return list(self._replaced([sentence for sentence, _ in batch]))
        return list(self._completed(batch))

    def fresh(self) -> FileTags:
        """The same for other sentences of the file, with nothing counted yet."""
        return FileTags(self.choice, self.opener, self.learnt_own)

    def __reduce__(self) -> tuple[Callable[..., FileTags], tuple[Any, ...]]:
        """What was counted travels between processes, the tagger does not."""
        counted = self.words, self.taken, self.untagged
        return FileTags, (self.choice, _no_tagger, self.learnt_own, *counted)

    def add(self, other: FileTags) -> None:
        """Count what was counted elsewhere, too."""
        self.words += other.words
        self.taken.update(other.taken)
        self.untagged += other.untagged

    def _replaced(self, batch: Sequence[Sentence]) -> Iterator[Sentence]:
        """Sentences with the tagger's tags in place of their own."""
        tagger = self.opener()
        if tagger is None:
            raise UserError(
                "tags is 'own', but the model has no tagger: it was trained on gold tags; "
                "leave it out, or train a model with a tagger"
            )
        for sentence, own in zip(batch, tagger.tag(batch), strict=True):
            self.words += len(sentence)
            for name in tagger.columns:
                self.taken[name] += len(sentence)
            yield own.put(sentence)

    def _completed(self, batch: Sequence[tuple[Sentence, Gaps]]) -> Iterator[Sentence]:
        """Sentences whose gaps are filled by the tagger; it sees no others."""
        tagger = self.opener() if any(gaps for _, gaps in batch) else None
        given = () if tagger is None else tagger.columns
        wanted = [{name: at for name, at in gaps.items() if name in given} for _, gaps in batch]
        incomplete = [sentence for (sentence, _), gaps in zip(batch, wanted, strict=True) if gaps]
        own = iter(() if tagger is None else tagger.tag(incomplete))
        for (sentence, _), gaps in zip(batch, wanted, strict=True):
            self.words += len(sentence)
            yield self._filled(sentence, next(own), gaps) if gaps else sentence

    def _filled(self, sentence: Sentence, own: Tags, gaps: Gaps) -> Sentence:
        """A sentence with the tagger's tags in its gaps."""
        untagged = [i for i, tag in enumerate(sentence.upos) if tag == NO_VALUE]
        if any(at in places for at in untagged for places in gaps.values()):
            self.untagged += len(untagged)
        columns = Tags.of(sentence)._asdict()
        for name, places in gaps.items():
            column, mine = list(columns[COLUMNS[name]]), own.column(name)
            for i in places:
                column[i] = mine[i]
            columns[COLUMNS[name]] = tuple(column)
            self.taken[name] += len(places)
        return Tags(**columns).put(sentence)

    def note(self) -> str | None:
        """What was taken from the tagger, and what from the file, in one line.

        None where that goes without saying.
        """
        whole = [name for name in COLUMNS if 0 < self.taken[name] == self.words]
        found = [join(whole, "and")] if whole else []
        in_part = [name for name in COLUMNS if 0 < self.taken[name] < self.words]
        if self.untagged and "UPOS" not in whole:
            found.append(f"tags of {_words(self.untagged, self.words)} without UPOS")
            in_part = [name for name in in_part if self.taken[name] > self.untagged]
        found += [f"{name} of {_words(self.taken[name], self.words)}" for name in in_part]
        if found:
            mixed = len(found) > len(whole[:1])
            rest = "; all other tags are the file's" if mixed else ""
            return f"{join(found, 'and')} by the model's own tagger{rest}"
        if self.learnt_own and self.choice == "auto":
            return "tags are the file's, not the model's own tagger's (--tags own takes those)"
        return None


def _no_tagger() -> None:
    return None


def of_model(
    choice: TagChoice, opener: Callable[[], Tagger | None], *, learnt_own: bool
) -> Callable[[], FileTags]:
    """What makes the `FileTags` of each file of a model, whose tagger is opened once."""
    return partial(FileTags, choice, cache(opener), learnt_own)


def find_gaps(sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, Gaps]]:
    """Each sentence with the words that lack a column, empty where none does.

    A word without UPOS lacks whatever else is "_", too.  One with UPOS lacks LEMMA where that is
    "_" and its FORM is not.  XPOS and FEATS may be empty by nature, so words with UPOS lack them
    only in a run of sentences without any that has LEAST_RUN words or is all that the file has.
    """
    stream, for_xpos, for_feats = tee(sentences, 3)
    xpos, feats = _in_empty_run(for_xpos, "xpos"), _in_empty_run(for_feats, "feats")
    for sentence, no_xpos, no_feats in zip(stream, xpos, feats, strict=True):
        yield sentence, _gaps(sentence, {"XPOS": no_xpos, "FEATS": no_feats})


def _gaps(sentence: Sentence, empty: Mapping[str, bool]) -> Gaps:
    gaps = {}
    for name, column in COLUMNS.items():
        values = getattr(sentence, column)
        if NO_VALUE not in values:
            continue
        places = [
            i
            for i, value in enumerate(values)
            if value == NO_VALUE
            and (
                sentence.upos[i] == NO_VALUE
                or empty.get(name, name == "LEMMA" and sentence.forms[i] != NO_VALUE)
            )
        ]
        if places:
            gaps[name] = places
    return gaps


def _in_empty_run(sentences: Iterable[Sentence], column: str) -> Iterator[bool]:
    """Whether each sentence stands in a run of sentences that lack a column; see `find_gaps`.

    Words without UPOS tell nothing: sentences of such alone neither end a run nor make it longer,
    unless MOST_AHEAD words pass before it is long enough.
    """
    waiting = ahead = words = 0
    seen = False
    for sentence in sentences:
        tagged = len(sentence) - sentence.upos.count(NO_VALUE)
        if _is_filled(sentence, column):
            yield from repeat(False, waiting)
            yield False
            seen, waiting, ahead, words = True, 0, 0, 0
            continue
        waiting += 1
        ahead += len(sentence)
        words += tagged
        is_long = words >= LEAST_RUN
        if is_long or not words or ahead >= MOST_AHEAD:
            yield from repeat(is_long or not seen, waiting)
            waiting, ahead, words = 0, 0, words if is_long else 0
    yield from repeat(not seen, waiting)


def _is_filled(sentence: Sentence, column: str) -> bool:
    """Whether a word with UPOS has a column, too."""
    pairs = zip(sentence.upos, getattr(sentence, column), strict=True)
    return any(value != NO_VALUE != upos for upos, value in pairs)


def _words(count: int, of: int) -> str:
    return f"{count:,} of {of:,} words"
