"""What the neural tagger decides about a word: several tasks, and the tags that fit them best.

The tasks are UPOS, XPOS where it says more, each FEATS attribute, UPOS with FEATS as one value, and
the rule of the lemma.  A word gets of all tags that occur in the treebank those whose parts are
most probable together, so its UPOS, XPOS and FEATS always fit one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.biaffine.softmax import log_softmax_parts
from tk_spacy.tagging.bilstm.lemmas import EditRule, find_rule, frequent_rules, has_lemma
from tk_spacy.tagging.bilstm.tag_choice import choose_tags
from tk_spacy.treebank.conllu import Sentence, parse_feats
from tk_spacy.utils.array_types import Int32

Scores = NDArray[np.float32]

UNKNOWN = -1
"""Of a task's value from which nothing is learnt."""
MOST_XPOS = 1000
"""Values of XPOS, the most frequent ones, and those most frequent with each UPOS and FEATS; others
are never predicted.  Some treebanks write whole analyses there."""


class Tag(NamedTuple):
    """The tags of a word as CoNLL-U has them."""

    upos: str
    xpos: str
    feats: str


class Labels:
    """The tasks of a treebank's tagger.

    tags: all that it may give.  rules: of lemmas, none where the treebank has no lemmas.
    sizes: values of each task, which stand side by side in the network's scores, those of the rules
        last.
    """

    def __init__(self, tags: Sequence[Tag], rules: Sequence[EditRule]) -> None:
        self.tags, self.rules = tuple(tags), tuple(rules)
        pairs = sorted({(tag.upos, tag.feats) for tag in self.tags})
        columns: list[Sequence[Hashable]] = [[upos for upos, _ in pairs], pairs]
        attributes = [_attributes(feats) for _, feats in pairs]
        self._names = sorted({name for own in attributes for name in own})
        columns += [[own.get(name, "") for own in attributes] for name in self._names]
        self._ids = [_number(column) for column in columns]
        self._pairs = np.array(
            [[ids[v] for v in column] for ids, column in zip(self._ids, columns, strict=True)]
        )
        place = {pair: i for i, pair in enumerate(pairs)}
        self._pair_of_tag = np.array([place[tag.upos, tag.feats] for tag in self.tags])
        self._has_xpos = any(tag.xpos not in ("_", tag.upos) for tag in self.tags)
        if self._has_xpos:
            self._ids.append(_number([tag.xpos for tag in self.tags]))
            self._xpos_of_tag = np.array([self._ids[-1][tag.xpos] for tag in self.tags])
        if self.rules:
            self._ids.append(_number(self.rules))
        self.sizes = tuple(map(len, self._ids))
        self._known: dict[tuple[str, ...], list[int]] = {}

    @classmethod
    def fit(cls, sentences: Sequence[Sentence]) -> Labels:
        """Those of a treebank."""
        counts = Counter(
            Tag(*word)
            for s in sentences
            for word in zip(s.upos, s.xpos, s.feats, strict=True)
            if word[0] != "_"
        )
        xpos: Counter[str] = Counter()
        for tag, n in counts.items():
            xpos[tag.xpos] += n
        often = {x for x, _ in sorted(xpos.items(), key=_by_count)[:MOST_XPOS]}
        first: dict[tuple[str, str], Tag] = {}
        for tag, _ in sorted(counts.items(), key=_by_count):
            first.setdefault((tag.upos, tag.feats), tag)
        kept = {tag for tag in counts if tag.xpos in often} | set(first.values())
        return cls(sorted(kept), frequent_rules(sentences))

    def targets(self, sentence: Sentence) -> Int32:
        """The right values of each word: int32[n, tasks], UNKNOWN where there is none."""
        words = zip(
            sentence.forms,
            sentence.lemmas,
            sentence.upos,
            sentence.xpos,
            sentence.feats,
            strict=True,
        )
        return np.array([self._targets(*word) for word in words], dtype=np.int32)

    def _targets(self, form: str, lemma: str, upos: str, xpos: str, feats: str) -> list[int]:
        if len(self._known) > 1 << 16:
            self._known.clear()
        key = (form, lemma, upos, xpos, feats)
        found = self._known.get(key)
        if found is None:
            values: list[Any]
            if upos == "_":
                values = [None] * (2 + len(self._names) + self._has_xpos)
            else:
                own = _attributes(feats)
                values = [upos, (upos, feats), *(own.get(name, "") for name in self._names)]
                values += [xpos] * self._has_xpos
            if self.rules:
                values.append(find_rule(form, lemma) if has_lemma(form, lemma) else None)
            pairs = zip(self._ids, values, strict=True)
            found = self._known[key] = [ids.get(value, UNKNOWN) for ids, value in pairs]
        return found

    def split(self, scores: Scores) -> list[Scores]:
        """The scores of each task, views of float32[words, values of all tasks]."""
        return np.split(scores, np.cumsum(self.sizes)[:-1], axis=1)

    def best_tags(self, scores: Scores) -> list[Tag]:
        """The most probable tags of each word, whose scores are float32[words, values]."""
        # All tasks but that of the lemma's rule, the last one.
        n_tasks = self._parts_of_tags.shape[1]
        logs = log_softmax_parts(np.ascontiguousarray(scores), self.sizes[:n_tasks])
        return [self.tags[i] for i in choose_tags(logs, self._parts_of_tags).tolist()]

    @cached_property
    def _parts_of_tags(self) -> NDArray[np.int64]:
        """The columns of each tag's values in the scores: int64[tags, tasks]."""
        parts = self._pairs[:, self._pair_of_tag]
        if self._has_xpos:
            parts = np.concatenate([parts, self._xpos_of_tag[None]])
        starts = np.cumsum([0, *self.sizes[: len(parts) - 1]])
        return np.ascontiguousarray((parts + starts[:, None]).T)

    def rules_of(self, forms: Sequence[str], scores: Scores) -> list[str | None]:
        """The lemma of each form by the best rule that fits it; None where none does.

        scores: of the forms, float32[words, values].
        """
        if not self.rules:
            return [None] * len(forms)
        own = scores[:, -len(self.rules) :]
        found = [
            self.rules[i].apply(form)
            for form, i in zip(forms, own.argmax(axis=1).tolist(), strict=True)
        ]
        for place, lemma in enumerate(found):
            if not lemma:
                ordered = np.argsort(-own[place], kind="stable").tolist()
                fitting = (self.rules[i].apply(forms[place]) for i in ordered)
                found[place] = next(filter(None, fitting), None)
        return found


def _attributes(feats: str) -> Mapping[str, str]:
    return {} if feats == "_" else parse_feats(feats)


def _by_count(item: tuple[Any, int]) -> tuple[int, Any]:
    """The key that puts what is most frequent first."""
    return -item[1], item[0]


def _number(values: Sequence[Hashable]) -> dict[Any, int]:
    return {value: i for i, value in enumerate(dict.fromkeys(values))}
