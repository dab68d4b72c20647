"""One sentence with its tree before and after: what changed, and what gold says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.cells import cell_len, set_cell_size

from tk_spacy.treebank.conllu import Sentence

MAX_WORDS = 16
"""Words of a sentence that is shown, at most, where there is such a one."""
WIDTH = 80
LEAST_FORM = 8

Verdict = Literal["right", "mended", "spoilt", "wrong"]
"""right before and after; wrong before alone; wrong after alone; wrong both times."""

Arc = tuple[int, str]
"""HEAD (0 for the root) and DEPREL."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its three arcs."""

    form: str
    upos: str
    before: Arc
    after: Arc
    gold: Arc

    @property
    def verdict(self) -> Verdict:
        """An arc is right with head and label."""
        if self.after == self.gold:
            return "right" if self.before == self.gold else "mended"
        return "spoilt" if self.before == self.gold else "wrong"


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """A sentence's words with their arcs in two trees and in gold.

    sent_id: of the sentence, None where it has none.
    """

    sent_id: str | None
    words: tuple[Word, ...]

    @classmethod
    def compare(cls, gold: Sentence, before: Sentence, after: Sentence) -> BeforeAfter:
        """From three trees of one sentence.  Raises ValueError where they differ in their words."""
        if not gold.forms == before.forms == after.forms:
            raise ValueError(
                f"trees of {len(gold)}, {len(before)} and {len(after)} words, expected three of "
                "the same words"
            )
        rows = zip(gold.forms, gold.upos, _arcs(before), _arcs(after), _arcs(gold), strict=True)
        return cls(gold.sent_id, tuple(Word(*row) for row in rows))

    def count(self, verdict: Verdict) -> int:
        """The words with that verdict."""
        return sum(word.verdict == verdict for word in self.words)

    @property
    def gain(self) -> int:
        """Arcs that are right after beyond those that were before; below 0 for a worse tree."""
        return self.count("mended") - self.count("spoilt")

    def lines(self, *, width: int = WIDTH) -> list[str]:
        """A heading and one line a word, of at most `width` columns if that is 72 or more.

        Only marks of ASCII are added to forms and relations.  Long forms are cut.
        """
        heading = ("", "form", "UPOS", "head", "relation", "")
        rows = [heading, *(_row(number, word) for number, word in enumerate(self.words, 1))]
        widths = [max(cell_len(row[i]) for row in rows) for i in range(len(heading))]
        room = width - sum(widths) + widths[1] - 2 * (len(widths) - 1)
        widths[1] = max(min(widths[1], room), min(widths[1], LEAST_FORM))
        return [_line(row, widths) for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        words = [
            {**asdict(word), "id": number, "verdict": word.verdict}
            for number, word in enumerate(self.words, 1)
        ]
        for word in words:
            for name in ("before", "after", "gold"):
                head, deprel = word[name]
                word[name] = {"head": head, "deprel": deprel}
        return {
            "sent_id": self.sent_id,
            "mended": self.count("mended"),
            "spoilt": self.count("spoilt"),
            "words": words,
        }


def most_mended(
    gold: Sequence[Sentence],
    before: Sequence[Sentence],
    after: Sequence[Sentence],
    *,
    max_words: int = MAX_WORDS,
) -> BeforeAfter | None:
    """The first of the sentences that gained most arcs; None where none gained any.

    Sentences of more than max_words words count only where no shorter one has gained.
    """
    all_ = [BeforeAfter.compare(*trees) for trees in zip(gold, before, after, strict=True)]
    short = _best(item for item in all_ if len(item.words) <= max_words)
    return short if short is not None else _best(all_)


def _best(items: Iterable[BeforeAfter]) -> BeforeAfter | None:
    best = max(items, key=lambda item: item.gain, default=None)  # the first of equal ones
    return best if best is not None and best.gain > 0 else None


def _arcs(sentence: Sentence) -> Iterator[Arc]:
    return zip(sentence.heads.tolist(), sentence.deprels, strict=True)


def _row(number: int, word: Word) -> tuple[str, ...]:
    verdict = word.verdict
    mark: str = "" if verdict == "right" else verdict
    if verdict in ("spoilt", "wrong"):
        mark += f", gold: {word.gold[0]} {word.gold[1]}"
    heads, relations = zip(word.before, word.after, strict=True)
    return (str(number), word.form, word.upos, _change(*heads), _change(*relations), mark)


def _change(before: object, after: object) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    number, *cells = row
    shown = [number.rjust(widths[0])]
    shown += [set_cell_size(cell, width) for cell, width in zip(cells, widths[1:], strict=True)]
    return "  ".join(shown).rstrip()
