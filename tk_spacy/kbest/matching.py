"""Which list belongs to which sentence: the one matcher of files with trees to other data.

The file and the data come from different programs: one may hold more sentences than the other, in
another order, or without names.  What can be told apart is told apart here, and what cannot is
refused with the file, the line and the cure.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Literal

from tk_spacy.errors import CandidateError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import DEFAULT_SOURCE, TreesFile
from tk_spacy.kbest.writer import Pair
from tk_spacy.treebank.conllu import Sentence

By = Literal["names", "words"]


class Matcher:
    """Hands out the lists of one file to sentence after sentence, in one pass over both.

    pairs: the file's sentences with their lists, read as far as is needed.
    where: the file, as messages name it.  what: the lists, as messages call them.
    by: what tells sentences apart:

    - "names": the sent_id.  Where the first sentence of the file or of the data has none, the
      order: then no sentence may be left over on either side (see `check_end`).  The words must
      be as many, and at least half of them alike whatever their case: parsers may change some,
      such as brackets.
    - "words": the words alone, for data without sent_ids in any order (Docs); of sentences with the
      same words, the first one takes the first list.

    White space in words does not matter.  Lists that are passed over wait in memory, so a file in
    the order of the data takes none.  Sentences of the file that nobody asks for do not matter,
    unless only the order tells sentences apart.
    """

    def __init__(
        self, pairs: Iterable[Pair], *, where: str, what: str = "trees", by: By = "names"
    ) -> None:
        self.where, self.what, self.by = where, what, by
        self._pairs = iter(pairs)
        self._waiting: dict[str | tuple[str, ...], list[Pair]] = {}
        self._in_order: bool | None = None
        self._number = 0

    def take(self, sentence: Sentence) -> CandidateList:
        """The list of the next sentence of the data.

        Raises CandidateError where the file has none, or one that cannot be the sentence's.
        """
        return self.take_pair(sentence)[1]

    def take_pair(self, sentence: Sentence) -> Pair:
        """The same beside the sentence as the file has it, with the tags that its parsers saw."""
        self._number += 1
        if self.by == "words":
            return self._by_words(sentence)
        own, trees = self._by_name(sentence)
        self._check_words(own, sentence)
        return own, trees

    def check_end(self) -> None:
        """Raises CandidateError where lists are left that were matched by their order alone."""
        if self._in_order and (more := next(self._pairs, None)) is not None:
            raise CandidateError(
                f"{self.where}:{more[0].line}: more sentences than the data's {self._number}, and "
                "only their order tells which is which; give those of the data alone, or every "
                "sentence a sent_id, in both"
            )

    def _by_name(self, sentence: Sentence) -> Pair:
        wanted = sentence.sent_id
        if wanted is not None and wanted in self._waiting:
            return self._pop(wanted, sentence)
        for pair in self._pairs:
            own = pair[0].sent_id
            if self._in_order is None:
                self._in_order = own is None or wanted is None
            if self._in_order or own == wanted:
                return pair
            if own is None or wanted is None:
                raise CandidateError(
                    f"{self.where}:{pair[0].line}: sentence {self._number}: its sent_id is "
                    f"{own or 'missing'} here, but {wanted or 'missing'} in {_place(sentence)}; "
                    "give every sentence a sent_id, or none"
                )
            before = self._waiting.setdefault(own, [])
            for other, _ in before:
                if same_words(pair[0], other):
                    raise self._twice(own, pair[0], other)
            before.append(pair)
        raise self._missing(sentence, sentence.sent_id or str(self._number))

    def _pop(self, name: str, sentence: Sentence) -> Pair:
        """The list of a sent_id; where it stands for several sentences, that of the same words."""
        found = self._waiting[name]
        place = 0
        if len(found) > 1:
            fitting = [i for i, (own, _) in enumerate(found) if same_words(own, sentence)]
            if not fitting:
                raise self._twice(name, found[1][0], found[0][0])
            place = fitting[0]
        return self._taken(name, place)

    def _by_words(self, sentence: Sentence) -> Pair:
        wanted = None
        if self._waiting:
            wanted = plain_words(sentence.forms)
            if wanted in self._waiting:
                return self._taken(wanted, 0)
        for pair in self._pairs:
            own = pair[0].forms
            if own == sentence.forms:  # the usual case: a file in the data's order
                return pair
            if wanted is None:
                wanted = plain_words(sentence.forms)
            words = plain_words(own)
            if words == wanted:
                return pair
            self._waiting.setdefault(words, []).append(pair)
        raise self._missing(sentence, f"training sentence {self._number}: {_shown(sentence)}")

    def _taken(self, key: str | tuple[str, ...], place: int) -> Pair:
        """One of the lists that wait, which does so no more."""
        found = self._waiting[key]
        pair = found.pop(place)
        if not found:
            del self._waiting[key]
        return pair

    def _check_words(self, own: Sentence, sentence: Sentence) -> None:
        if own.forms == sentence.forms:
            return
        where = f"{self.where}:{own.line}: sentence {sentence.sent_id or self._number}"
        there = _place(sentence)
        if len(own) != len(sentence):
            raise CandidateError(
                f"{where} has {len(own)} words here, but {len(sentence)} in {there}; "
                f"give {self.what} of the same words"
            )
        pairs = zip(plain_words(own.forms), plain_words(sentence.forms), strict=True)
        alike = [a.casefold() == b.casefold() for a, b in pairs]
        if 2 * sum(alike) >= len(alike):
            return
        place = alike.index(False)
        one, other = repr(own.forms[place]), repr(sentence.forms[place])
        differ = f"begins with {one} here, but with {other}"
        if place:
            differ = f"has {one} as word {place + 1} here, but {other}"
        shared = f"only {sum(alike)} of {len(alike)} words" if any(alike) else "no word"
        raise CandidateError(
            f"{where} {differ} in {there}, and shares {shared}: the file has other sentences, or "
            f"another order; give {self.what} of the same sentences"
        )

    def _missing(self, sentence: Sentence, name: str) -> CandidateError:
        cure = self._spaces(sentence) or f"give a file with the {self.what} of every sentence"
        if self.by == "words":
            return CandidateError(f"{self.where}: no {self.what} for {name}; {cure}")
        place = f" ({_place(sentence)})" if sentence.path else ""
        return CandidateError(f"{self.where}: no {self.what} for sentence {name}{place}; {cure}")

    def _twice(self, name: str, sentence: Sentence, other: Sentence) -> CandidateError:
        return CandidateError(
            f"{self.where}:{sentence.line}: sent_id {name} stands for two sentences (the other: "
            f"line {other.line}); give each its own"
        )

    def _spaces(self, sentence: Sentence) -> str | None:
        """What to do where the file has the sentence, but with words of white space only.

        Docs may have such tokens, but the sentences that are read from them leave them out.
        """
        if self.by != "words":
            return None
        for found in self._waiting.values():
            own = found[0][0]
            left = tuple(form for form in own.forms if form.strip())
            if len(left) < len(own) and plain_words(left) == plain_words(sentence.forms):
                return (
                    f"line {own.line} has its words and others of white space only, which trees of "
                    "Docs leave out; remove those"
                )
        return None


class Index:
    """The lists of several files, for sentences in any order that may be asked for again.

    files: of each its sentences with their lists.  A file is read whole, when those before it have
        not the sentence that is asked for.
    where, what: the files and the lists, as messages name them.

    Sentences are told apart by sent_id and words, white space aside.  Where both are the same, the
    first one's list counts: a fold of a treebank may hold only the second.
    """

    def __init__(self, files: Iterable[Iterable[Pair]], *, where: str, what: str = "trees") -> None:
        self.where, self.what = where, what
        self._unread = iter(files)
        self._lists: dict[tuple[str | None, tuple[str, ...]], CandidateList] = {}

    def find(self, sentence: Sentence) -> CandidateList:
        """The list of a sentence.  Raises CandidateError where no file has it."""
        wanted = (sentence.sent_id, plain_words(sentence.forms))
        while wanted not in self._lists:
            pairs = next(self._unread, None)
            if pairs is None:
                raise CandidateError(
                    f"{_place(sentence)}: no {self.what} for this sentence ({_shown(sentence)}) in "
                    f"{self.where}; give files with those of every sentence"
                )
            for own, trees in pairs:
                self._lists.setdefault((own.sent_id, plain_words(own.forms)), trees)
        return self._lists[wanted]


def plain_words(forms: tuple[str, ...]) -> tuple[str, ...]:
    """Forms with single spaces for any white space in them, as those of Docs have."""
    together = "".join(forms)
    # The usual case, and quick to see: no white space, and no form without a character.
    if together.split(None, 1) == [together] and "" not in forms:
        return forms
    return tuple([" ".join(form.split()) or "_" for form in forms])


def same_words(a: Sentence, b: Sentence) -> bool:
    """Whether two sentences have the same words but for white space."""
    return a.forms == b.forms or (len(a) == len(b) and plain_words(a.forms) == plain_words(b.forms))


def matched(matcher: Matcher, sentences: Iterable[Sentence]) -> Iterator[Pair]:
    """Each sentence with its list from a file that is for these sentences and no others."""
    for sentence in sentences:
        yield sentence, matcher.take(sentence)
    matcher.check_end()


def matched_lists(
    path: str | os.PathLike[str],
    sentences: Iterable[Sentence],
    *,
    inventory: LabelInventory,
    source: str = DEFAULT_SOURCE,
    k: int | None = None,
) -> Iterator[CandidateList]:
    """One list of at most k trees from a k-best file for each sentence, in one pass.

    Raises CandidateError where a sentence has none; see `Matcher` and `read_kbest`.
    """
    file = TreesFile(path)
    lists = file.lists(inventory=inventory, source=source, k=k)
    for _, trees in matched(Matcher(lists, where=file.name, what="candidates"), sentences):
        yield trees


def matched_pairs(
    path: str | os.PathLike[str],
    sentences: Iterable[Sentence],
    *,
    inventory: LabelInventory,
    source: str = DEFAULT_SOURCE,
    k: int | None = None,
) -> Iterator[Pair]:
    """As `matched_lists`, beside each list the sentence as the k-best file has it.

    So tags are those that the parsers saw, which may be predicted; trees are the data's matter.
    """
    file = TreesFile(path)
    lists = file.lists(inventory=inventory, source=source, k=k)
    matcher = Matcher(lists, where=file.name, what="candidates")
    for sentence in sentences:
        yield matcher.take_pair(sentence)
    matcher.check_end()


def _shown(sentence: Sentence) -> str:
    return " ".join(sentence.forms[:8]) + (" ..." if len(sentence) > 8 else "")


def _place(sentence: Sentence) -> str:
    return f"{sentence.path}:{sentence.line}" if sentence.path else "the data"
