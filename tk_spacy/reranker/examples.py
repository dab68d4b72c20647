"""The training sentences that support parts came from, kept for explanations.

A support knows of each part the number of the sentence and the words; what these sentences say is
kept beside it, in a file of its own, which a model may do without (`train --no-examples`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.support import Support
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.array_types import Int32


@dataclass(frozen=True, slots=True)
class Example:
    """A training sentence: its sent_id, None for none, and its words."""

    sent_id: str | None
    forms: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Training sentences by their numbers, those alone that a support names."""

    sentences: Mapping[int, Example]

    def __len__(self) -> int:
        return len(self.sentences)

    @classmethod
    def of(cls, support: Support, sentences: Sequence[Sentence]) -> Examples:
        """The sentences that a support's parts came from.

        sentences: all that it was trained on, in the order of the training.
        """
        return cls(
            {
                number: Example(sentences[number].sent_id, sentences[number].forms)
                for number in _named(support)
            }
        )

    def kept(self, support: Support) -> Examples | None:
        """Those that a smaller support still names; None where it names none."""
        named = [number for number in _named(support) if number in self.sentences]
        return Examples({number: self.sentences[number] for number in named}) if named else None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for an .npz file: numbers int32[e], and the text as UTF-8, uint8[b].

        A line a sentence: its sent_id and its words, each after a tab.
        """
        lines = ["\t".join((item.sent_id or "", *item.forms)) for item in self.sentences.values()]
        text = "\n".join(lines).encode("utf-8")
        return {
            "numbers": np.array(list(self.sentences), dtype=np.int32),
            "text": np.frombuffer(text, dtype=np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Examples:
        """The inverse of `to_arrays`.

        Raises KeyError where an array is missing, ValueError where they do not fit together.
        """
        numbers, text = arrays["numbers"], arrays["text"]
        if numbers.dtype != np.int32 or numbers.ndim != 1 or (np.diff(numbers) <= 0).any():
            raise ValueError("numbers of examples are no int32[e] that ascend")
        if len(numbers) and numbers[0] < 0:
            raise ValueError(f"a number of examples is {numbers[0]}, expected 0 or more")
        if text.dtype != np.uint8 or text.ndim != 1:
            raise ValueError("text of examples is no uint8[b]")
        try:
            lines = text.tobytes().decode("utf-8").split("\n") if len(numbers) else []
        except UnicodeDecodeError as error:
            raise ValueError("text of examples is no UTF-8") from error
        if len(lines) != len(numbers):
            raise ValueError(f"{len(lines)} examples for {len(numbers)} numbers")
        sentences = {}
        for number, line in zip(numbers.tolist(), lines, strict=True):
            sent_id, *forms = line.split("\t")
            sentences[number] = Example(sent_id or None, tuple(forms))
        return cls(sentences)

    def check(self, support: Support) -> None:
        """Raises ValueError where a support names words that a sentence does not have."""
        for name, parts in support.types.items():
            if parts.origin_words is None or not len(parts.origins):
                continue
            named, where = np.unique(parts.origins[:, 1], return_inverse=True)
            lengths = np.array(
                [
                    len(self.sentences[n].forms) + 1  # with the sibling that is not there
                    if n in self.sentences
                    else np.iinfo(np.int32).max
                    for n in named.tolist()
                ]
            )
            if (parts.origin_words.max(axis=1) > lengths[where]).any():
                raise ValueError(f"{name}.origin_words are beyond the words of an example")


def _named(support: Support) -> list[int]:
    """The numbers of the training sentences that parts came from, ascending."""
    numbers: list[Int32] = [parts.origins[:, 1] for parts in support.types.values()]
    return [] if not numbers else np.unique(np.concatenate(numbers)).tolist()
