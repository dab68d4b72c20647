"""From all signals to one number a word: how likely its annotation is a mistake.

A weighted sum of surprises, in nats, and of whether a rule of UD is broken, under a logistic
function.  The weights were set by hand; those learnt on the corrections of two treebanks did worse
on the third (docs/audit.md).  Scale
and bias were fitted to corrections that maintainers of three treebanks made (Irish-IDT,
Armenian-ArmTDP, Afrikaans-AfriBooms), so a score means: how likely a maintainer would correct this
word between two releases.  That is less than how likely it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tk_spacy.audit.backoff import Expected
from tk_spacy.audit.parsed import Parsed
from tk_spacy.audit.rarity import rarities
from tk_spacy.audit.rules import Broken, broken_rules
from tk_spacy.audit.variation_ngrams import Variation, variation
from tk_spacy.audit.words import Words, ids
from tk_spacy.utils.array_types import Float32, Float64

LEVELS = ("forms", "lemmas", "tags")
WEIGHTS: Mapping[str, float] = {
    "label given tags": 0.1,
    "label given lemmas": 0.2,
    "label given markers": 0.2,
    "attachment": 0.1,
    "rules": 3.5,
    "combined parsers": 0.2,
    "head to parsers": 0.3,
    "label to parsers": 0.8,
}
"""Of each signal, mostly a surprise; those without one serve proposals and reasons alone."""
SCALE, BIAS = 0.689, -5.121
"""Of the logistic function, fitted to all corrections of the three treebanks."""
PARSED_SCALE, PARSED_BIAS = 0.287, -5.176
"""The same where parsers were asked."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All that is known of n words.

    labels: the relations, by their numbers in what is `expected`.
    expected: by the names of `rarity.rarities`.  variations: by level.  broken: rules of UD.
    parsed: what parsers say, None where none was asked.
    """

    labels: tuple[str, ...]
    expected: Mapping[str, Expected]
    variations: Mapping[str, Variation]
    broken: Broken
    parsed: Parsed | None = None

    def columns(self) -> Iterator[tuple[str, Float32]]:
        """All signals: name and float32[n], the more suspicious the higher."""
        for name, found in self.expected.items():
            yield name, found.surprise
        for level, varied in self.variations.items():
            yield f"variation of {level}", varied.margin
        yield "rules", self.broken.column
        if self.parsed is not None:
            yield "combined parsers", self.parsed.surprise
            yield "head to parsers", self.parsed.head_surprise
            yield "label to parsers", self.parsed.label_surprise


def gather(words: Words, parsed: Parsed | None = None) -> Evidence:
    """The signals of all words.  parsed: what parsers say of them."""
    labels = tuple(dict.fromkeys(words.deprels))
    return Evidence(
        labels=labels,
        expected=dict(rarities(words, ids(words.deprels), n_labels=len(labels))),
        variations={level: variation(words, level) for level in LEVELS},
        broken=broken_rules(words),
        parsed=parsed,
    )


def suspicion(evidence: Evidence) -> Float64:
    """How likely each word's annotation is a mistake, float64[n] in 0..1."""
    score: Float64 | float = 0.0
    for name, column in evidence.columns():
        if name in WEIGHTS:
            score = score + WEIGHTS[name] * column.astype(np.float64)
    scale, bias = (SCALE, BIAS) if evidence.parsed is None else (PARSED_SCALE, PARSED_BIAS)
    return np.asarray(1 / (1 + np.exp(-(scale * score + bias))))
