"""Words as rows of embedding tables: what the neural tagger reads of a form.

Two groups of columns, each with a table of its own whose rows are summed: the form, and its parts
(prefixes, suffixes, shape, and all sequences of 2 to 5 letters as in Bojanowski et al. 2017, here
without hashing: a treebank has few).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import srsly
from thinc.api import Model, deserialize_attr, serialize_attr

from tk_spacy.features.word_properties import shape
from tk_spacy.parsers.biaffine.vocabulary import FIRST, ROOT_ROWS
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32
from tk_spacy.utils.stored_rows import joined_rows, row_bytes

FORM_COLUMNS = ("form", "lower")
PART = "part"
"""The column of letter sequences; an unknown one adds nothing."""
MIN_COUNT = 2
"""Of a value that has a row."""
SHORTEST, LONGEST = 2, 5
"""Letters of a sequence."""
END = 20
"""Letters at each end of a form that are looked at: a form may be an address of any length."""
MOST_KNOWN = 200_000
"""Forms whose rows are remembered."""


@dataclass(slots=True)
class FormVocabulary:
    """The rows of both tables.

    forms, parts: the row of each column, tab and value, from FIRST on.
    A value that is not there has the row of its column alone (column and tab), which is trained by
    leaving out values.
    """

    forms: dict[str, int]
    parts: dict[str, int]
    _known: dict[str, tuple[bytes, bytes]] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def fit(cls, sentences: Sequence[Sentence]) -> FormVocabulary:
        """The values of a treebank that are frequent enough, most frequent ones first."""
        counts = Counter(form for sentence in sentences for form in sentence.forms)
        forms: Counter[str] = Counter()
        parts: Counter[str] = Counter()
        for form, n in counts.items():
            for keys, table in ((form_keys(form), forms), (part_keys(form), parts)):
                for key in set(keys):
                    table[key] += n
        return cls(_number(forms), _number(parts))

    @property
    def rows(self) -> tuple[int, int]:
        """Rows of both tables."""
        return len(self.forms) + FIRST, len(self.parts) + FIRST

    def encode_all(self, sentences: Sequence[Sentence]) -> tuple[Int32, Int32]:
        """Rows of the form table int32[rows, F] and of the other one int32[rows, P].

        A sentence of n words has n + 1 rows, the root's first; unused places hold NONE.
        """
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        found: list[tuple[bytes, bytes]] = []
        for sentence in sentences:
            found.append(ROOT_ROWS)
            found += map(self._find, sentence.forms)
        forms, parts = zip(*found, strict=True)
        return joined_rows(forms), joined_rows(parts)

    def _find(self, form: str) -> tuple[bytes, bytes]:
        rows = self._known.get(form)
        if rows is None:
            rows = self._known[form] = (
                row_bytes(_rows(self.forms, form_keys(form))),
                row_bytes(_rows(self.parts, part_keys(form))),
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values: keys in the order of their rows."""
        return {"forms": list(self.forms), "parts": list(self.parts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FormVocabulary:
        """The inverse of `to_dict`."""
        return cls(
            {key: i for i, key in enumerate(data["forms"], start=FIRST)},
            {key: i for i, key in enumerate(data["parts"], start=FIRST)},
        )


def form_keys(form: str) -> list[str]:
    """The keys of a whole form."""
    return [f"{c}\t{v}" for c, v in zip(FORM_COLUMNS, (form, form.lower()), strict=True)]


def part_keys(form: str) -> list[str]:
    """The keys of a form's parts; a suffix that is the whole form says so."""
    lower = form.lower()
    if len(lower) > 2 * END:
        lower = lower[:END] + lower[-END:]
    keys = [f"prefix {n}\t{lower[:n]}" for n in range(1, 5)]
    for n in range(1, 6):
        keys.append(f"suffix {n}\t{lower[-n:] if len(lower) >= n else f'^{lower}'}")
    keys.append(f"shape\t{shape(form)}")
    bounded = f"<{lower}>"
    for n in range(SHORTEST, LONGEST + 1):
        keys += [f"{PART}\t{bounded[i : i + n]}" for i in range(len(bounded) - n + 1)]
    return keys


def _number(counts: Counter[str]) -> dict[str, int]:
    columns = {key.partition("\t")[0] for key in counts} - {PART}
    kept = [f"{column}\t" for column in sorted(columns)]
    for key, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if n >= MIN_COUNT and key.partition("\t")[2]:
            kept.append(key)
    return {key: i for i, key in enumerate(kept, start=FIRST)}


def _rows(table: Mapping[str, int], keys: Sequence[str]) -> list[int]:
    rows = (table.get(key) or table.get(key[: key.index("\t") + 1]) for key in keys)
    return [row for row in rows if row is not None]


@serialize_attr.register(FormVocabulary)
def _serialize(_: Any, value: FormVocabulary, name: str, model: Model) -> bytes:
    packed: bytes = srsly.msgpack_dumps(value.to_dict())
    return packed


@deserialize_attr.register(FormVocabulary)
def _deserialize(_: Any, value: bytes, name: str, model: Model) -> FormVocabulary:
    return FormVocabulary.from_dict(srsly.msgpack_loads(value))
