"""Writing k-best files: candidate lists as CoNLL-U that any UD tool still reads.

Compact form, which we write: HEAD and DEPREL hold the first candidate, and each candidate is one
comment line, a score per source and then HEAD:DEPREL of each word:

    # tk_candidate_1 = sampling:12.3,spacy:-0.4 2:nsubj 0:root
    # tk_base = 2                                (where the main parser's own tree is not the first)
    # tk_base_spacy = 1                          (the own tree of a further parser)

Expanded form, which other parsers can write: consecutive sentence blocks with one `# sent_id`,
each with `# rank = R` and `# score = S`.  It holds one source.

All else of a sentence is kept as it was read; the lines named above are replaced when writing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NoReturn

from tk_spacy.errors import CandidateError
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.enhanced import DepsColumn

Form = Literal["compact", "expanded"]
Pair = tuple[Sentence, CandidateList]

OWN_COMMENTS = re.compile(r"#\s*(?:tk_candidate_\d+|tk_base(?:_[^\s:,=]+)?|rank|score)\s*=")
"""The lines of a sentence that its list is in."""

NEXT_ARC = re.compile(r" (?=\d+:)")
"""Between the arcs of a tree whose labels hold spaces."""

_SOURCE_NAME = re.compile(r"[^\s:,=]+")


def write_kbest(
    path: str | os.PathLike[str],
    pairs: Iterable[Pair],
    *,
    form: Form = "compact",
    deps: DepsColumn | None = None,
) -> int:
    """Write lists with their sentences as they come, atomically; returns the sentences written.

    deps: what becomes of the column DEPS, and counts that; None keeps it.
    The expanded form keeps the main source's scores only, and needs a sent_id in every sentence.
    """
    written = 0

    def counted() -> Iterator[Pair]:
        nonlocal written
        for pair in pairs:
            written += 1
            yield pair

    write_conllu(path, kbest_sentences(counted(), form=form, deps=deps))
    return written


def kbest_sentences(
    pairs: Iterable[Pair], *, form: Form = "compact", deps: DepsColumn | None = None
) -> Iterator[Sentence]:
    """The sentences of a k-best file with the lists; see `write_kbest`."""
    if form not in ("compact", "expanded"):
        raise ValueError(f"form must be compact or expanded, got {form!r}")
    return _sentences(pairs, form, DepsColumn("keep") if deps is None else deps)


def _sentences(pairs: Iterable[Pair], form: Form, column: DepsColumn) -> Iterator[Sentence]:
    for sentence, trees in pairs:
        if len(sentence) != trees.n_words:
            raise ValueError(f"sentence has {len(sentence)} words, its candidates {trees.n_words}")
        if form == "compact":
            yield column(_compact(sentence, trees), sentence)
        else:
            for j, block in enumerate(_expanded(sentence, trees)):
                yield column(block, sentence, counts=j == 0)


def _compact(sentence: Sentence, trees: CandidateList) -> Sentence:
    for name in trees.sources:
        if not _SOURCE_NAME.fullmatch(name):
            raise ValueError(
                f"source name {name!r} must have no space, colon, comma or equals sign"
            )
    lines = [line for line in sentence.comments if not OWN_COMMENTS.match(line)]
    names = trees.inventory.names
    rows = zip(trees.heads.tolist(), trees.labels.tolist(), trees.scores.tolist(), strict=True)
    for number, (heads, labels, scores) in enumerate(rows, start=1):
        given = ",".join(
            f"{name}:{score!r}" for name, score in zip(trees.sources, scores, strict=True)
        )
        for label in set(labels):
            if NEXT_ARC.search(names[label]):
                reason = "a k-best file cannot tell its space and number from the next arc"
                fail(sentence, 0, f"label {names[label]!r}: {reason}; rename it")
        tree = " ".join(
            [f"{head}:{names[label]}" for head, label in zip(heads, labels, strict=True)]
        )
        lines.append(f"# tk_candidate_{number} = {given} {tree}")
    if trees.base:
        lines.append(f"# tk_base = {trees.base + 1}")
    lines += [f"# tk_base_{name} = {row + 1}" for name, row in trees.bases.items()]
    return sentence.with_comments(lines).with_tree(trees.heads[0], trees.deprels(0))


def _expanded(sentence: Sentence, trees: CandidateList) -> Iterator[Sentence]:
    if sentence.sent_id is None:
        raise CandidateError("the expanded k-best form needs a sent_id in every sentence")
    kept = [line for line in sentence.comments if not OWN_COMMENTS.match(line)]
    for j in range(len(trees)):
        rank = [f"# rank = {j + 1}", f"# score = {float(trees.scores[j, 0])!r}"]
        yield sentence.with_comments([*kept, *rank]).with_tree(trees.heads[j], trees.deprels(j))


def fail(sentence: Sentence, offset: int, reason: str) -> NoReturn:
    """Raise CandidateError for a line of a sentence, counted from its first."""
    name = f"sentence {sentence.sent_id}: " if sentence.sent_id else ""
    raise CandidateError(f"{sentence.path}:{sentence.line + offset}: {name}{reason}")
