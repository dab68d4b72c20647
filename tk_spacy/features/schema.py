"""Node properties: from the columns of a word to rows of integers that are compared slot by slot.

Source: Taub-Tabib, Goldberg and Globerson (NAACL 2015), Table 1, on UD columns.  Ours differs
where UD does: ``pos`` is XPOS only where a treebank fills it usefully, ``morph_i`` is one property
per FEATS attribute.

A *field* is an atomic value of one word (form, lemma, pos, cpos, each FEATS attribute, each extra,
see word_properties.py); a *property* is one field, or two fields together, at a word or beside it.
The id of a pair is computed from the ids of its two fields, so no table of pairs is kept: two pairs
are equal just when both their fields are.

Id 0 is "no value": missing, or never seen in training.  It equals nothing, itself included.

Beside and beyond the words:

- The root has no neighbours: its properties of the word to its left and right, and pairs with one
  of these, are "no value".  It has form, pos, cpos and their pair pos|form (all ROOT), and nothing
  else.
- The first word's left neighbour and the last word's right one are the boundary node, whose form,
  pos and cpos have the value BOUNDARY; so such words share "stands at the edge" with others.  The
  root is nobody's neighbour.
- The sibling that a first modifier lacks is the boundary node too: two parts without a sibling
  share its form, pos, cpos and their pair pos|form (all BOUNDARY), but nothing of its neighbours,
  lemma or FEATS, which it has not, and nothing with a sibling that is a word.  Of the arc into it
  they share the label (BOUNDARY), but neither distance nor length, which it has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np

from tk_spacy.features.node_ids import node_ids
from tk_spacy.features.word_properties import Extra, read_tables, tables_from_lists, tables_to_lists
from tk_spacy.treebank.conllu import Sentence, parse_feats
from tk_spacy.utils.array_types import Int32
from tk_spacy.utils.serialization import read_msgpack, reading

MISSING = 0
BOUNDARY = 1
"""Id of form, pos and cpos beyond the sentence, and of the sibling that a first modifier lacks."""
ROOT = 2
"""Id of form, pos and cpos of the artificial root."""
FIRST_ID = 3

FORM, LEMMA, POS, CPOS, FIRST_MORPH = 0, 1, 2, 3, 4
"""Columns of the field arrays; FEATS attributes follow from FIRST_MORPH on."""

MAX_MORPH = 200
"""FEATS attributes that are properties; UD treebanks have some 60 at most.

A node has two properties for each: where they are legion (a file whose FEATS hold something else,
a word's number, say), the most frequent ones are taken, and memory stays within bounds.
"""
MAX_FEATS = 10_000
"""Different FEATS whose ids are remembered before all are forgotten; treebanks have hundreds."""
MAX_XPOS = 1000
MIN_XPOS_FILLED = 0.99


@dataclass(frozen=True, slots=True)
class Property:
    """One or two fields, each of the word itself (0), its left (-1) or right (+1) neighbour."""

    name: str
    first: int
    first_offset: int = 0
    second: int = -1
    second_offset: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSentence:
    """A sentence as integers.

    nodes: int32[n + 2, P], property ids; row 0 the root, rows 1..n the words, row n + 1 the
        boundary node that stands for an absent sibling.  What these two rows hold stands in the
        module's docstring.
    fields: int32[n + 2, F], field ids of the same rows (columns FORM, LEMMA, POS, CPOS, FEATS).
    """

    nodes: Int32
    fields: Int32

    def __len__(self) -> int:
        return len(self.fields) - 2


@dataclass(slots=True)
class Schema:
    """Which properties a node has, and the ids of their values.  Frozen once fitted.

    pos_column: "XPOS" or "UPOS", the column behind the property pos.
    use_cpos: whether UPOS is a property of its own (it is not where it always equals pos).
    use_lemma: whether LEMMA is an extra unigram.
    morph: the FEATS attributes, sorted.
    values: for each field, its values and their ids (from FIRST_ID on).
    labels: DEPREL values and their ids (from FIRST_ID on).
    extras: further unigrams; their fields follow those of morph.
    tables: what the extras of that kind look up.
    """

    pos_column: str
    use_cpos: bool
    use_lemma: bool
    morph: tuple[str, ...]
    values: tuple[dict[str, int], ...]
    labels: dict[str, int]
    extras: tuple[Extra, ...] = ()
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    properties: tuple[Property, ...] = field(init=False)
    _feats_rows: dict[str, Int32] = field(init=False, repr=False, default_factory=dict)
    _columns: Int32 = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.properties = tuple(
            _declare(self.morph, self.use_cpos, self.use_lemma, [e.name for e in self.extras])
        )
        sizes = [len(table) + FIRST_ID for table in self.values]
        for p in self.properties:
            if p.second >= 0 and sizes[p.first] * sizes[p.second] >= 2**31:
                raise ValueError(f"property {p.name} has too many values")
        columns = [
            (
                p.first,
                p.first_offset,
                p.second,
                p.second_offset,
                sizes[p.second] if p.second >= 0 else 0,
            )
            for p in self.properties
        ]
        self._columns = np.array(columns, dtype=np.int32).reshape(-1, 5)

    @property
    def filled(self) -> tuple[str, ...]:
        """The columns LEMMA, UPOS, XPOS and FEATS as far as training had values in them.

        XPOS only where it is read at all: see `choose_pos_column`.
        """
        there = {
            "LEMMA": bool(self.values[LEMMA]),
            "UPOS": bool(self.values[CPOS]),
            "XPOS": self.pos_column == "XPOS",
            "FEATS": bool(self.morph),
        }
        return tuple(name for name, known in there.items() if known)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of `filled` that properties are made of."""
        lemma = self.use_lemma or any(extra.kind == "lemma" for extra in self.extras)
        unread = set() if lemma else {"LEMMA"}
        if self.pos_column == "XPOS" and not self.use_cpos:
            unread.add("UPOS")
        return tuple(name for name in self.filled if name not in unread)

    @property
    def n_columns(self) -> int:
        """Number of fields without those of the extras."""
        return FIRST_MORPH + len(self.morph)

    @property
    def n_fields(self) -> int:
        """Number of fields."""
        return self.n_columns + len(self.extras)

    @classmethod
    def fit(
        cls,
        train: Sequence[Sentence],
        dev: Sequence[Sentence] = (),
        *,
        labels: Iterable[str] = (),
        use_lemma: bool = False,
        extras: Sequence[str] = (),
    ) -> Schema:
        """Collect the values of a training treebank.

        train: whose values get ids.  dev: read only to decide whether XPOS is usable.
        labels: further DEPREL values, e.g. those that occur in candidates only.
        extras: names of further properties (see word_properties.Extra).

        Of more than MAX_MORPH attributes in FEATS those on the most words are kept (`morph_note`
        says so to a user).
        Raises UserError where an extra is unknown, or its table cannot be read.
        """
        pos_column = choose_pos_column(train, dev)
        attributes: dict[str, set[str]] = {}
        columns: list[set[str]] = [set(), set(), set(), set()]
        deprels = set(labels)
        feats_seen: set[str] = set()
        for sentence in train:
            columns[FORM].update(sentence.forms)
            columns[LEMMA].update(sentence.lemmas)
            columns[POS].update(sentence.xpos if pos_column == "XPOS" else sentence.upos)
            columns[CPOS].update(sentence.upos)
            feats_seen.update(sentence.feats)
            deprels.update(sentence.deprels)
        for column in feats_seen:
            for name, value in parse_feats(column).items():
                attributes.setdefault(name, set()).add(value)
        if len(attributes) > MAX_MORPH:
            attributes = {name: attributes[name] for name in by_frequency(train)[:MAX_MORPH]}
        for known in columns:
            known.discard("_")
        morph = tuple(sorted(attributes))
        further = tuple(Extra.parse(name) for name in extras)
        looked_up = read_tables(further)
        of_extras = [
            {value for s in train for value in extra.values(s, looked_up) if value is not None}
            for extra in further
        ]
        tables = [*columns, *(attributes[name] for name in morph), *of_extras]
        same = pos_column == "UPOS" or all(s.xpos == s.upos for s in train)
        return cls(
            pos_column=pos_column,
            use_cpos=not same,
            use_lemma=use_lemma,
            morph=morph,
            values=tuple(_number(table) for table in tables),
            labels=_number(deprels),
            extras=further,
            tables=looked_up,
        )

    def encode(self, sentence: Sentence) -> EncodedSentence:
        """The ids of a sentence's fields and properties.

        Manual features read the fields, and know nothing of extras: these are left out there.
        """
        return self.encode_all([sentence])[0]

    def encode_all(self, sentences: Sequence[Sentence]) -> list[EncodedSentence]:
        """As `encode`, of several sentences in one go."""
        return self.encoded_apart(*self.encode_together(sentences), sentences)

    def encode_together(self, sentences: Sequence[Sentence]) -> tuple[Int32, Int32]:
        """The arrays of EncodedSentence of several sentences, one sentence after the other."""
        fields = self._fields_together(sentences)
        lengths = np.array([len(sentence) + 2 for sentence in sentences], dtype=np.int32)
        nodes = node_ids(fields, lengths, self._columns)
        if self.extras:
            fields = np.ascontiguousarray(fields[:, : self.n_columns])
        return nodes, fields

    @staticmethod
    def encoded_apart(
        nodes: Int32, fields: Int32, sentences: Sequence[Sentence]
    ) -> list[EncodedSentence]:
        """Each sentence's part of what `encode_together` made."""
        found = []
        start = 0
        for sentence in sentences:
            stop = start + len(sentence) + 2
            found.append(EncodedSentence(nodes=nodes[start:stop], fields=fields[start:stop]))
            start = stop
        return found

    def encode_fields(self, sentence: Sentence) -> Int32:
        """The ids of all fields, extras too: int32[n + 2, n_columns + E], see EncodedSentence."""
        return self._fields_together([sentence])

    def _fields_together(self, sentences: Sequence[Sentence]) -> Int32:
        """As `encode_fields`, the rows of several sentences, one sentence after the other."""
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.intp)
        ends = (lengths + 2).cumsum()
        fields = np.zeros((int(lengths.sum()) + 2 * len(sentences), self.n_fields), dtype=np.int32)
        # The rows of words: all but the first and the last of each sentence.
        is_word = np.ones(len(fields), dtype=np.bool_)
        is_word[ends - lengths - 2] = is_word[ends - 1] = False
        words = np.flatnonzero(is_word)
        of_words = np.zeros((len(words), self.n_fields), dtype=np.int32)
        pos = [s.xpos if self.pos_column == "XPOS" else s.upos for s in sentences]
        columns = [s.forms for s in sentences], [s.lemmas for s in sentences], pos
        for j, column in enumerate((*columns, [s.upos for s in sentences])):
            ids = map(self.values[j].get, chain.from_iterable(column), repeat(MISSING))
            of_words[:, j] = np.fromiter(ids, dtype=np.int32, count=len(words))
        if self.morph:
            # Each FEATS once, then the row of each word.
            numbers: dict[str, int] = {}
            row = [numbers.setdefault(f, len(numbers)) for s in sentences for f in s.feats]
            if row:
                known = np.stack([self._morph_row(feats) for feats in numbers])
                of_words[:, FIRST_MORPH : self.n_columns] = known[row]
        for j, extra in enumerate(self.extras, start=self.n_columns):
            get = self.values[j].get
            of_words[:, j] = [
                MISSING if value is None else get(value, MISSING)
                for sentence in sentences
                for value in extra.values(sentence, self.tables)
            ]
        fields[words] = of_words
        for named in (FORM, POS, CPOS):
            fields[ends - lengths - 2, named] = ROOT
            fields[ends - 1, named] = BOUNDARY
        return fields

    def label_id(self, deprel: str) -> int:
        """The id of a DEPREL, 0 where training never saw it."""
        return self.labels.get(deprel, MISSING)

    def _morph_row(self, feats: str) -> Int32:
        row = self._feats_rows.get(feats)
        if row is None:
            given = parse_feats(feats)
            row = np.array(
                [
                    self.values[FIRST_MORPH + i].get(given.get(name, ""), MISSING)
                    for i, name in enumerate(self.morph)
                ],
                dtype=np.int32,
            )
            if len(self._feats_rows) >= MAX_FEATS:
                self._feats_rows.clear()
            self._feats_rows[feats] = row
        return row

    def property_groups(self) -> list[list[int]]:
        """Columns of node rows in groups whose combinations of values are few.

        The word's own tags and FEATS, its left neighbour's and its right neighbour's tags.  What
        has a word form or a lemma in it is in none, nor is an extra: where it has few values each
        of them is frequent and has a row of its own (see kernels.scorer), which is faster than
        more combinations.
        """
        groups: dict[int, list[int]] = {0: [], -1: [], 1: []}
        for i, p in enumerate(self.properties):
            if not {p.first, p.second} & {FORM, LEMMA} and p.first < self.n_columns:
                groups[p.first_offset or p.second_offset].append(i)
        return list(groups.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and strings, for msgpack or JSON; ids are positions."""
        data = {
            "pos_column": self.pos_column,
            "use_cpos": self.use_cpos,
            "use_lemma": self.use_lemma,
            "morph": list(self.morph),
            "values": [list(table) for table in self.values],
            "labels": list(self.labels),
        }
        if self.extras:  # else as it was before there were any
            data["extras"] = [extra.name for extra in self.extras]
            data["tables"] = tables_to_lists(self.tables)
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Schema:
        """The inverse of `to_dict`.  Raises ValueError where it does not hold together."""
        if data["pos_column"] not in ("XPOS", "UPOS"):
            raise ValueError(f"pos_column is {data['pos_column']!r}, expected XPOS or UPOS")
        tables = [data["morph"], data["labels"], *data["values"]]
        for table in tables:
            if not isinstance(table, list) or not all(isinstance(name, str) for name in table):
                raise ValueError("a table of values is no list of strings")
            if len(set(table)) != len(table):
                raise ValueError("a table of values has one of them twice")
        for name in ("use_cpos", "use_lemma"):
            if not isinstance(data[name], bool):
                raise ValueError(f"{name} is {data[name]!r}, expected true or false")
        for label in data["labels"]:
            if not label or any(character in label for character in "\t\n\r"):
                raise ValueError(f"label {label!r} is empty or holds a tab or line break")
        extras = tuple(Extra.parse(name) for name in data.get("extras", ()))
        n_fields = FIRST_MORPH + len(data["morph"]) + len(extras)
        if len(data["values"]) != n_fields:
            raise ValueError(f"{len(data['values'])} tables of values, expected {n_fields}")
        return cls(
            pos_column=data["pos_column"],
            use_cpos=data["use_cpos"],
            use_lemma=data["use_lemma"],
            morph=tuple(data["morph"]),
            values=tuple(_in_order(table) for table in data["values"]),
            labels=_in_order(data["labels"]),
            extras=extras,
            tables=tables_from_lists(data.get("tables", {}), extras),
        )


def read_schema(files: Mapping[str, bytes], file: str) -> Schema:
    """The schema in a file of a stored model.  Raises ValueError that names the file."""
    stored = read_msgpack(files, file)
    with reading(file):
        return Schema.from_dict(stored)


def choose_pos_column(train: Sequence[Sentence], dev: Sequence[Sentence] = ()) -> str:
    """XPOS where it is filled and a tagset, else UPOS.

    XPOS must be there on at least 99% of the words of train and of dev, with at most 1,000 values:
    some treebanks keep whole analyses in it, gold syntax included, or fill it in train alone.
    """
    tags: set[str] = set()
    for part in (train, dev):
        words = sum(len(sentence) for sentence in part)
        filled = sum(len(s) - s.xpos.count("_") for s in part)
        if words and filled < MIN_XPOS_FILLED * words:
            return "UPOS"
    for sentence in train:
        tags.update(sentence.xpos)
    tags.discard("_")
    return "XPOS" if 0 < len(tags) <= MAX_XPOS else "UPOS"


def distrusts_xpos(train: Sequence[Sentence], dev: Sequence[Sentence] = ()) -> bool:
    """Whether train has XPOS values that no parser should learn from (see `choose_pos_column`)."""
    has_some = any(tag != "_" for sentence in train for tag in sentence.xpos)
    return has_some and choose_pos_column(train, dev) == "UPOS"


def by_frequency(train: Iterable[Sentence]) -> list[str]:
    """The FEATS attributes of a treebank, those on the most words first, equal ones by name."""
    words: Counter[str] = Counter()
    for column, count in Counter(feats for s in train for feats in s.feats).items():
        for name in parse_feats(column):
            words[name] += count
    return sorted(words, key=lambda name: (-words[name], name))


def morph_note(train: Iterable[Sentence]) -> str | None:
    """A warning where a treebank has more FEATS attributes than a schema keeps."""
    names = by_frequency(train)
    if len(names) <= MAX_MORPH:
        return None
    return (
        f"FEATS have {len(names)} different attributes ({names[MAX_MORPH]!r}, ...): the "
        f"{MAX_MORPH} most frequent ones are used, the others are not"
    )


def _declare(
    morph: Sequence[str], use_cpos: bool, use_lemma: bool, extras: Sequence[str]
) -> Iterable[Property]:
    unigrams = [("form", FORM), ("pos", POS)] + ([("cpos", CPOS)] if use_cpos else [])
    for name, column in unigrams:
        for offset, mark in ((0, ""), (-1, "-1"), (1, "+1")):
            yield Property(name + mark, column, offset)
    if use_lemma:
        yield Property("lemma", LEMMA)
    for i, name in enumerate(morph):
        yield Property(name, FIRST_MORPH + i)
    yield Property("pos-1|pos", POS, -1, POS, 0)
    yield Property("pos|pos+1", POS, 0, POS, 1)
    yield Property("pos|form", POS, 0, FORM, 0)
    for i, name in enumerate(morph):
        yield Property(f"pos|{name}", POS, 0, FIRST_MORPH + i, 0)
    for i, name in enumerate(extras, start=FIRST_MORPH + len(morph)):
        yield Property(name, i)


def _number(values: Iterable[str]) -> dict[str, int]:
    return _in_order(sorted(values))


def _in_order(values: Iterable[str]) -> dict[str, int]:
    return {value: i for i, value in enumerate(values, start=FIRST_ID)}
