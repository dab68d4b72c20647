"""Proposals put into a copy of a treebank: nothing but HEAD and DEPREL of chosen words changes.

The column DEPS, where it is filled, is left as it is: enhanced graphs are another annotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tk_spacy.audit.tables import Row
from tk_spacy.audit.words import name_of
from tk_spacy.errors import UserError
from tk_spacy.treebank.conllu import Sentence, check_tree

ROOT = "root"
_RELATION = re.compile(r"[^\s|]+")


def apply_rows(
    sentences: Iterable[Sentence], rows: Sequence[Row], *, table: Path
) -> Iterator[Sentence]:
    """The sentences, with what rows propose; those are the same objects that nothing changes.

    rows: with new_head and new_deprel.  table: where they stand, for messages.
    Raises UserError, naming the row, where a row fits no word, or two the same one, or a relation
    is none; where the word is annotated otherwise than the row says; where a sentence's changes
    together leave no tree with a single root (unless it had several), or a HEAD of 0 without the
    relation root, or the other way round.
    """
    waiting: dict[str, list[Row]] = {}
    for row in rows:
        waiting.setdefault(row.sent_id, []).append(row)
    for sentence in sentences:
        name = name_of(sentence)
        chosen = waiting.pop(name, None)
        yield sentence if chosen is None else _changed(sentence, chosen, table)
    for left in waiting.values():
        raise UserError(
            f"{table}:{left[0].line}: no sentence is {left[0].sent_id}; give the treebank that was "
            "audited"
        )


def _changed(sentence: Sentence, rows: Sequence[Row], table: Path) -> Sentence:
    heads, labels = np.array(sentence.heads), list(sentence.deprels)
    several = int((heads == 0).sum()) > 1
    lines: dict[int, int] = {}
    for row in rows:
        place = f"{table}:{row.line}"
        if row.token_id in lines:
            raise UserError(
                f"{place}: word {row.token_id} of {row.sent_id} has a row in line "
                f"{lines[row.token_id]} already; keep one of them"
            )
        lines[row.token_id] = row.line
        if not 1 <= row.token_id <= len(sentence):
            raise UserError(
                f"{place}: sentence {row.sent_id} has no word {row.token_id}; give the treebank "
                "that was audited"
            )
        word = row.token_id - 1
        there = int(sentence.heads[word]), sentence.deprels[word]
        told = row.head, row.deprel
        if any(old is not None and old != now for old, now in zip(told, there, strict=True)):
            raise UserError(
                f"{place}: word {row.token_id} of {row.sent_id} is {there[1]} of {there[0]} in "
                f"{sentence.path}:{sentence.line}, but {row.deprel} of {row.head} in the table; "
                "audit the treebank as it is now"
            )
        assert row.new_head is not None  # `read_table` saw to it
        assert row.new_deprel is not None
        if not _RELATION.fullmatch(row.new_deprel):
            raise UserError(
                f"{place}: new_deprel is {row.new_deprel!r}; give a relation, such as nsubj:pass"
            )
        heads[word], labels[word] = row.new_head, row.new_deprel
    where = f"{table}:{rows[-1].line}: sentence {rows[0].sent_id}"
    reason = check_tree(heads, single_root=not several)
    if reason is not None:
        raise UserError(f"{where} would be no tree: {reason}; leave rows of it out")
    for row in rows:
        word = row.token_id - 1
        if (heads[word] == 0) != (labels[word].partition(":")[0] == ROOT):
            raise UserError(
                f"{table}:{row.line}: word {row.token_id} of {row.sent_id} would be "
                f"{labels[word]} of {heads[word]}; HEAD 0 and the relation root belong together"
            )
    if labels == list(sentence.deprels) and (heads == sentence.heads).all():
        return sentence
    return sentence.with_tree(heads, labels, single_root=not several)
