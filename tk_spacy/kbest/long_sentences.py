"""Sentences too long to be searched whole: cut into pieces, whose trees are joined.

A search for the best tree takes time and memory that grow with the square of a sentence's length
and faster.  A sentence of more than WHOLE_WORDS words is mostly a text whose sentence bounds nobody
has set.  So it is cut into pieces of at most PIECE_WORDS words, after the ends of sentences where
there are some, and each piece is parsed, listed, scored and reranked as a sentence of its own:
time and memory grow with the number of words, and shorter sentences are not concerned at all.

In the joined tree the root of the first piece is the root of all, and those of the others depend on
it, as UD attaches clauses that stand side by side (parataxis).

The rule looks at word forms and counts alone, so that all parsers cut a sentence alike, at any time
and on any number of threads.
"""

from __future__ import annotations

import heapq
import unicodedata
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int32

Tree = tuple[Int32, tuple[str, ...]]

WHOLE_WORDS = 250
"""Sentences of so many words are searched whole.  Treebanks hardly have longer ones (of six, one
sentence of 201 words), and one that is a little too long for a piece would lose more by a cut than
it costs."""

PIECE_WORDS = 200
"""Words of a piece, at most: in so many the searches are still quick, and few arcs cross a cut."""

LEAST_WORDS = 20
"""Words of a piece, at least, an average sentence: what ends after fewer may be an abbreviation."""

LINKS = ("parataxis", "conj", "list", "dep")
"""Relations of a later piece's root to the first one's: the first that the parser knows."""

ROOT = "root"

_ENDS = frozenset(
    ".!?\N{HORIZONTAL ELLIPSIS}\N{IDEOGRAPHIC FULL STOP}\N{HALFWIDTH IDEOGRAPHIC FULL STOP}"
    "\N{FULLWIDTH EXCLAMATION MARK}\N{FULLWIDTH QUESTION MARK}\N{DEVANAGARI DANDA}"
    "\N{DEVANAGARI DOUBLE DANDA}\N{ARABIC QUESTION MARK}\N{ARABIC FULL STOP}"
    "\N{ARMENIAN FULL STOP}\N{ETHIOPIC FULL STOP}\N{INTERROBANG}"
)
"""The marks that a sentence ends with; a Greek one ends with ; too, but others go on there."""

T = TypeVar("T")


class Cut(NamedTuple):
    """A sentence and its pieces; a short sentence is its own only piece.

    ranges: of the words, from 0, of each piece.
    """

    sentence: Sentence
    ranges: tuple[range, ...]
    pieces: tuple[Sentence, ...]


def piece_ranges(forms: Sequence[str]) -> tuple[range, ...]:
    """The words of each piece, from 0, by the word forms of a sentence; one range for a short one.

    A piece ends after the first mark that ends a sentence.  Where there is none among PIECE_WORDS,
    it ends as late as may be, after other punctuation, or else anywhere.
    """
    n = len(forms)
    ranges = []
    start = 0
    while n > WHOLE_WORDS:
        # What is left must not be too short for a piece.
        ends = range(start + LEAST_WORDS, min(start + PIECE_WORDS, n - LEAST_WORDS) + 1)
        stop = next((end for end in ends if _rank(forms, end) == 2), None)
        if stop is None and n - start > PIECE_WORDS:
            stop = max(ends, key=lambda end: (_rank(forms, end), end))
        if stop is None:
            break
        ranges.append(range(start, stop))
        start = stop
    return (*ranges, range(start, n))


def _rank(forms: Sequence[str], end: int) -> int:
    """How good a place before word `end` is for a cut: 2 after a sentence, 1 after punctuation."""
    if _is_closing(forms[end]):
        return 0
    before = end
    while before > 1 and _is_closing(forms[before - 1]):
        before -= 1
    if all(character in _ENDS for character in forms[before - 1]):
        return 2
    return int(unicodedata.category(forms[end - 1][0]) in ("Pd", "Pe", "Pf", "Po"))


def _is_closing(form: str) -> bool:
    """Whether a word is a closing bracket or quotation mark, which belongs to what it closes."""
    return form in ("'", '"') or unicodedata.category(form[0]) in ("Pe", "Pf")


def is_long(sentence: Sentence) -> bool:
    """Whether a sentence is cut."""
    return len(sentence) > WHOLE_WORDS


def cut(sentence: Sentence) -> Cut:
    """A sentence and its pieces, which have no trees."""
    if not is_long(sentence):
        return Cut(sentence, (range(len(sentence)),), (sentence,))
    ranges = piece_ranges(sentence.forms)
    pieces = tuple(
        Sentence.from_columns(
            forms=sentence.forms[own.start : own.stop],
            lemmas=sentence.lemmas[own.start : own.stop],
            upos=sentence.upos[own.start : own.stop],
            xpos=sentence.xpos[own.start : own.stop],
            feats=sentence.feats[own.start : own.stop],
            misc=sentence.misc[own.start : own.stop],
        )
        for own in ranges
    )
    return Cut(sentence, ranges, pieces)


def link_label(known: Iterable[str]) -> str:
    """The relation of a later piece's root, of those that a parser knows."""
    names = list(known)
    others = [name for name in names if name.partition(":")[0] != ROOT]
    return next((name for name in LINKS if name in names), others[0] if others else LINKS[0])


def join_trees(trees: Sequence[Tree], *, link: str) -> Tree:
    """One tree from those of the pieces.

    trees: heads int32[n] and labels of each, in order.  link: label of the later pieces' roots.
    """
    if len(trees) == 1:
        return trees[0]
    heads, labels = [], list[str]()
    top = int(np.argmin(trees[0][0])) + 1
    start = 0
    for own, names in trees:
        roots = own == 0
        heads.append(np.where(roots, top if start else 0, own + start))
        labels += (
            [link if root else name for root, name in zip(roots.tolist(), names, strict=True)]
            if start
            else names
        )
        start += len(own)
    return np.concatenate(heads).astype(np.int32), tuple(labels)


def join_lists(lists: Sequence[CandidateList], *, k: int) -> CandidateList:
    """The k best trees over a sentence that the lists of its pieces make; scores are sums.

    lists: of the pieces, in order, with one inventory and the same sources.  The parsers' own trees
    are made of their own trees of the pieces.
    """
    if len(lists) == 1:
        return lists[0]
    first = lists[0]
    own = {name: [trees.bases.get(name, -1) for trees in lists] for name in first.bases}
    own = {name: rows for name, rows in own.items() if min(rows) >= 0}
    chosen = [[trees.base for trees in lists], *own.values(), *_best_choices(lists, k)]
    choices = np.array(chosen)
    link = first.inventory.add(link_label(first.inventory.names))
    heads, labels = [], []
    scores = np.zeros((len(choices), len(first.sources)))
    start, tops = 0, np.zeros(len(choices), dtype=np.int32)
    for rows, trees in zip(choices.T, lists, strict=True):
        above, names = trees.heads[rows], trees.labels[rows]
        roots = above == 0
        heads.append(np.where(roots, tops[:, None], above + start))
        labels.append(np.where(roots, link, names) if start else names)
        if not start:
            tops = (roots.argmax(axis=1) + 1).astype(np.int32)
        scores += trees.scores[rows]
        start += trees.n_words
    return CandidateList.from_arrays(
        np.concatenate(heads, axis=1),
        np.concatenate(labels, axis=1),
        scores,
        inventory=first.inventory,
        sources=first.sources,
        k=k,
        bases={name: 1 + i for i, name in enumerate(own)},
    )


def _best_choices(lists: Sequence[CandidateList], k: int) -> list[list[int]]:
    """The k best choices of a row of each list by the sums of main scores, best first.

    From a heap: a choice is followed by those that take the next row in one of its lists, from the
    last one on that is not at its best row, so that each comes once.
    """
    columns = [np.where(np.isnan(s), -np.inf, s).tolist() for s in (t.scores[:, 0] for t in lists)]
    heap: list[tuple[float, tuple[int, ...], int]]
    heap = [(-sum(column[0] for column in columns), (0,) * len(lists), 0)]
    found: list[list[int]] = []
    while heap and len(found) < k:
        value, choice, last = heapq.heappop(heap)
        found.append(list(choice))
        for i in range(last, len(choice)):
            row = choice[i]
            if row + 1 < len(columns[i]) and columns[i][row + 1] > -np.inf:
                worse = value + columns[i][row] - columns[i][row + 1]
                heapq.heappush(heap, (worse, (*choice[:i], row + 1, *choice[i + 1 :]), i))
    return found


def project(heads: Int32, words: range) -> Int32:
    """Trees over a sentence as trees over a piece, heads int32[k, n] to int32[k, m].

    The first word whose head lies outside is the root there, and any others depend on it.
    """
    own = heads[:, words.start : words.stop]
    inside = (own > words.start) & (own <= words.stop)
    tops = (~inside).argmax(axis=1) + 1
    local = np.where(inside, own - words.start, tops[:, None])
    local[np.arange(len(own)), tops - 1] = 0
    return local.astype(np.int32)


def project_list(trees: CandidateList, words: range) -> tuple[CandidateList, NDArray[np.intp]]:
    """The distinct trees of a list over a piece, without scores, and which one each tree has.

    The piece's root is called as the tree's is.  Where that is another word of the piece, it is
    called as roots of later pieces are, since parsers may not know a root's relation elsewhere.
    """
    heads = project(trees.heads, words)
    own = slice(words.start, words.stop)
    tops = (trees.heads == 0).argmax(axis=1)
    root = trees.labels[np.arange(len(heads)), tops][:, None]
    labels = np.where(heads == 0, root, trees.labels[:, own])
    lost = (trees.heads[:, own] == 0) & (heads > 0)
    if lost.any():
        labels[lost] = trees.inventory.add(link_label(trees.inventory.names))
    both = np.concatenate([heads, labels], axis=1)
    _, rows, places = np.unique(both, axis=0, return_index=True, return_inverse=True)
    shorter = CandidateList(
        heads=heads[rows],
        labels=np.ascontiguousarray(labels[rows], dtype=np.int32),
        inventory=trees.inventory,
        sources=(trees.sources[0],),
        scores=np.zeros((len(rows), 1)),
    )
    return shorter, places.ravel()


def parse_cut(
    sentences: Iterable[Sentence],
    parse: Callable[[Iterable[Sentence]], Generator[Tree, None, None]],
    labels: Sequence[str],
) -> Iterator[Tree]:
    """The tree of each sentence, by a function that parses pieces.

    labels: those that the parser knows.
    """
    if _all_short(sentences):
        return parse(sentences)
    link = link_label(labels)
    return (join_trees(trees, link=link) for _, trees in by_sentence(sentences, parse))


def list_cut(
    sentences: Iterable[Sentence],
    propose: Callable[[Iterable[Sentence]], Generator[CandidateList, None, None]],
    k: int,
) -> Iterator[CandidateList]:
    """The list of each sentence, by a function that lists pieces."""
    if _all_short(sentences):
        return propose(sentences)
    return (join_lists(lists, k=k) for _, lists in by_sentence(sentences, propose))


def _all_short(sentences: Iterable[Sentence]) -> bool:
    """Whether it is known beforehand that no sentence is cut."""
    return isinstance(sentences, Sequence) and not any(map(is_long, sentences))


def by_sentence(
    sentences: Iterable[Sentence],
    work: Callable[[Iterable[Sentence]], Generator[T, None, None]],
) -> Generator[tuple[Sentence, list[T]], None, None]:
    """Each sentence with what `work` gives for its pieces; streaming as `work` does."""
    cuts: deque[Cut] = deque()
    with closing(work(_noted(sentences, cuts))) as found:
        for first in found:
            one = cuts.popleft()
            yield one.sentence, [first, *(next(found) for _ in one.pieces[1:])]


def _noted(sentences: Iterable[Sentence], cuts: deque[Cut]) -> Iterator[Sentence]:
    """The pieces of sentences; the cut of each is noted before its first piece goes out."""
    for sentence in sentences:
        cuts.append(cut(sentence))
        yield from cuts[-1].pieces


def score_cut(
    sentences: Sequence[Sentence],
    lists: Sequence[CandidateList],
    score: Callable[[Sequence[Sentence], Sequence[CandidateList]], list[Float64]],
) -> list[Float64]:
    """The scores of trees, by a function that scores those of pieces; of a long tree the sum.

    Of each list float64[k] or float64[k, n], as the function gives them.
    """
    if not any(map(is_long, sentences)):
        return score(sentences, lists)
    pieces: list[Sentence] = []
    shorter: list[CandidateList] = []
    rows: list[list[NDArray[np.intp]] | None] = []
    for sentence, trees in zip(sentences, lists, strict=True):
        one = cut(sentence)
        pieces += one.pieces
        if len(one.pieces) == 1:
            shorter.append(trees)
            rows.append(None)
            continue
        projected = [project_list(trees, words) for words in one.ranges]
        shorter += [item for item, _ in projected]
        rows.append([places for _, places in projected])
    found = iter(score(pieces, shorter))
    out = []
    for of_pieces in rows:
        if of_pieces is None:
            out.append(next(found))
        else:
            out.append(np.sum([next(found)[places] for places in of_pieces], axis=0))
    return out
