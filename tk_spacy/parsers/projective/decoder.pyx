"""Batches of sentences parsed in parallel: lists of the best trees, and scores of given trees.

Every sentence is one thread's work and depends on nothing else, so nothing depends on the number of
threads.  Arrays of a batch are flat: the rows of its sentences stand one after the other, n + 2 for
one of n words (see sampling.search.words.Corpus).
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc, free

import numpy as np

from tk_spacy.features.templates cimport Words, words_of
from tk_spacy.parallel.stopping cimport Listener, await_others, look, task_done
from tk_spacy.parsers.projective.arcs cimport (
    arrange, nearer_siblings, release_arcs,
)
from tk_spacy.parsers.projective.chart cimport Parts, fill, release_chart
from tk_spacy.parsers.projective.lists cimport begin_lists, next_tree, release_lists
from tk_spacy.parsers.projective.pruning cimport prune, release_pruning
from tk_spacy.parsers.projective.scores cimport (
    release_scores, room_for_ids, score_in_list, score_of_tree, score_parts,
)
from tk_spacy.parsers.sampling.search.lattice cimport ensure
from tk_spacy.utils.index_checks cimport check_power

from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.parsers.projective.checks import (
    check_gold_heads, check_k, check_kept_arcs, check_owned_trees, check_sentences,
)
from tk_spacy.parsers.sampling.search.checks import check_corpus, check_morph_end
from tk_spacy.utils.array_checks import checked

cdef enum:
    NO_MEMORY = -1


cdef class Scorer:
    """Weights by which sentences are parsed.

    weights, pruner: float32, as many as a power of two each.
    max_heads: heads a word keeps at most, beside those of the pruner's best tree.
    least: how likely a head kept must be, as a share of the word's likeliest one.
    morph_end: columns of the field arrays up to the last FEATS attribute.
    Raises TypeError or ValueError for other arrays and numbers.
    """

    def __init__(self, weights, pruner, *, int max_heads, double least, int morph_end):
        of_parts = checked("weights", weights, np.float32, None)
        of_arcs = checked("pruner", pruner, np.float32, None)
        check_power(len(of_parts), "weights")
        check_power(len(of_arcs), "pruner")
        if max_heads < 1 or not 0 <= least <= 1:
            raise ValueError(
                f"max_heads is {max_heads} and least {least}, expected at least 1, and 0 to 1"
            )
        check_morph_end(morph_end)
        cdef const float[::1] w = of_parts
        cdef const float[::1] p = of_arcs
        self._arrays = (of_parts, of_arcs)
        self.model.weights, self.model.mask = &w[0], w.shape[0] - 1
        self.model.pruner, self.model.pruner_mask = &p[0], p.shape[0] - 1
        self.model.max_heads, self.model.least = max_heads, least
        self.model.morph_end = morph_end

    @property
    def max_heads(self):
        """Heads a word keeps at most, beside those of the pruner's best tree."""
        return self.model.max_heads

    @property
    def morph_end(self):
        """Columns of the field arrays up to the last FEATS attribute."""
        return self.model.morph_end


cdef void release_space(Workspace *space) noexcept nogil:
    release_arcs(&space.arcs)
    release_scores(&space.scores)
    release_chart(&space.chart)
    release_lists(&space.lists)
    release_pruning(&space.pruning)
    free(space.tree_memory.data)


cdef Workspace *new_spaces(int count) except NULL:
    cdef Workspace *spaces = <Workspace *>calloc(count, sizeof(Workspace))
    if spaces == NULL:
        raise MemoryError("no memory for parsing")
    return spaces


cdef void free_spaces(Workspace *spaces, int count) noexcept:
    cdef int i
    for i in range(count):
        release_space(&spaces[i])
    free(spaces)


def _check_status(status):
    if (status == NO_MEMORY).any():
        raise MemoryError("no memory for parsing")


# Pruning


def kept_heads(
    Scorer scorer not None, fields, starts, lengths, *, gold_heads=None, n_threads=None
):
    """The heads that the pruner keeps for each word, in ascending order.

    fields: int32[rows, F], flat.  starts, lengths: int32[S], the rows of each sentence.
    gold_heads: int32[rows], heads that are kept as well.
    Returns (kept, kept_first): the heads of the word in flat row r are
    kept[kept_first[r]:kept_first[r + 1]] (int32; int32[rows + 1]).
    Raises TypeError or ValueError for arrays that do not fit each other.
    """
    fields, starts, lengths = check_corpus(fields, starts, lengths, scorer.model.morph_end)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    has_gold = gold_heads is not None
    nothing = np.zeros(1, dtype=np.int32)
    cdef const int32_t[::1] gold = (
        check_gold_heads(gold_heads, starts, lengths, len(fields)) if has_gold else nothing
    )
    cdef bint with_gold = has_gold
    cdef Py_ssize_t width = min(scorer.model.max_heads, int(lengths.max(initial=0))) + 2
    table = np.full((len(fields), width), -1, dtype=np.int32)
    cdef int32_t[:, ::1] out = table
    status_array = np.zeros(len(starts), dtype=np.int32)
    cdef int32_t[::1] status = status_array
    cdef int threads = effective_n_threads(n_threads), i, n = <int>first.shape[0]
    cdef Workspace *spaces = new_spaces(threads)
    cdef Listener listener = Listener(n)
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        if not look(&listener.watch):
            status[i] = heads_at(
                &spaces[threadid()], &scorer.model, words_of(
                    &words[first[i], 0], words.shape[1], rows[i], scorer.model.morph_end
                ), &gold[first[i]] if with_gold else NULL, &out[first[i], 0], width,
            )
        task_done(&listener.watch)
    free_spaces(spaces, threads)
    listener.check()
    _check_status(status_array)
    there = table >= 0
    kept_first = np.zeros(len(fields) + 1, dtype=np.int32)
    np.cumsum(there.sum(axis=1), out=kept_first[1:])
    return table[there], kept_first


cdef int heads_at(
    Workspace *space, const Model *model, Words x, const int32_t *gold, int32_t *out,
    Py_ssize_t width,
) noexcept nogil:
    cdef int m, a
    if prune(&space.pruning, &space.arcs, &x, model, gold) < 0:
        return NO_MEMORY
    for m in range(1, x.n + 1):
        for a in range(space.arcs.first[m], space.arcs.first[m + 1]):
            out[m * width + a - space.arcs.first[m]] = space.arcs.head[a]
    return 0


# Lists


def decode(
    Scorer scorer not None, fields, starts, lengths, sentences=None, *, int k=1, kept=None,
    gold_heads=None, double cost=0.0, n_threads=None,
):
    """The k best trees of sentences.

    fields: int32[rows, F], flat.  starts, lengths: int32[S], the rows of each sentence.
    sentences: int[P], which to parse; None for all.
    kept: (kept, kept_first) of `kept_heads`; None to prune now.
    gold_heads: int32[rows]; every arc that is not gold gains `cost` in the search.

    Returns (heads, scores, counts): int32[r, k], flat, of the sentences asked for; float64[P, k],
    costs counted, -inf where there is no tree; int32[P], the trees found.  Best first.
    Raises TypeError or ValueError for arrays that do not fit each other.
    """
    check_k(k)
    fields, starts, lengths = check_corpus(fields, starts, lengths, scorer.model.morph_end)
    chosen_array = check_sentences(sentences, len(starts))
    nothing = np.zeros(1, dtype=np.int32)
    cdef bint has_kept = kept is not None, has_gold = gold_heads is not None
    if has_kept:
        check_kept_arcs(kept, starts, lengths, len(fields))
    of_words, of_rows = kept if has_kept else (nothing, nothing)
    of_gold = checked("gold_heads", gold_heads, np.int32, len(fields)) if has_gold else nothing
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    cdef const int32_t[::1] chosen = chosen_array
    cdef const int32_t[::1] heads_kept = of_words
    cdef const int32_t[::1] kept_first = of_rows
    cdef const int32_t[::1] gold = of_gold
    sizes = lengths[chosen_array]
    at_array = (np.cumsum(sizes) - sizes).astype(np.int32)
    cdef const int32_t[::1] at = at_array
    heads_array = np.zeros((int(sizes.sum()) + 1, k), dtype=np.int32)
    scores_array = np.full((len(chosen_array), k), -np.inf)
    counts_array = np.zeros(len(chosen_array), dtype=np.int32)
    status_array = np.zeros(len(chosen_array), dtype=np.int32)
    cdef int32_t[:, ::1] heads = heads_array
    cdef double[:, ::1] scores = scores_array
    cdef int32_t[::1] counts = counts_array
    cdef int32_t[::1] status = status_array
    cdef int threads = effective_n_threads(n_threads), i, n = <int>chosen.shape[0]
    cdef Workspace *spaces = new_spaces(threads)
    cdef Listener listener = Listener(n)
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        if not look(&listener.watch):
            status[i] = list_at(
                &spaces[threadid()], &scorer.model,
                words_of(&words[first[chosen[i]], 0], words.shape[1], rows[chosen[i]],
                         scorer.model.morph_end),
                &heads_kept[0] if has_kept else NULL,
                &kept_first[first[chosen[i]]] if has_kept else NULL,
                &gold[first[chosen[i]]] if has_gold else NULL, cost, k,
                &heads[at[i], 0], &scores[i, 0], &counts[i],
            )
        task_done(&listener.watch)
    free_spaces(spaces, threads)
    listener.check()
    _check_status(status_array)
    return heads_array[: len(heads_array) - 1], scores_array, counts_array


cdef int list_at(
    Workspace *space, const Model *model, Words x, const int32_t *kept, const int32_t *kept_first,
    const int32_t *gold, double cost, int k, int32_t *heads, double *scores, int32_t *count,
) noexcept nogil:
    cdef int state
    if kept == NULL:
        state = prune(&space.pruning, &space.arcs, &x, model, NULL)
    else:
        state = arrange(&space.arcs, x.n, kept_first, kept)
    if state < 0 or score_parts(&space.scores, &space.arcs, &x, model, gold, cost) < 0:
        return NO_MEMORY
    if fill(&space.chart, &space.arcs, &space.scores.parts) < 0:
        return NO_MEMORY
    return write_list(space, k, heads, scores, count)


cdef int write_list(
    Workspace *space, int k, int32_t *heads, double *scores, int32_t *count
) noexcept nogil:
    """The trees of a chart: [n + 2, k] heads, [k] scores, their number."""
    cdef int n = space.arcs.n, j, m, state
    cdef int32_t *tree = <int32_t *>ensure(
        &space.tree_memory, 3 * <size_t>(n + 2) * sizeof(int32_t)
    )
    cdef int32_t *nearer = tree + n + 2
    cdef Parts *parts = &space.scores.parts
    if tree == NULL or begin_lists(&space.lists, &space.arcs, &space.chart, parts) < 0:
        return NO_MEMORY
    count[0] = 0
    for j in range(k):
        state = next_tree(&space.lists, j, tree)
        if state < 0:
            return NO_MEMORY
        if state == 0:
            break
        nearer_siblings(n, tree, nearer + n + 2, nearer)
        scores[j] = score_in_list(&space.arcs, parts, tree, nearer)
        for m in range(1, n + 1):
            heads[m * k + j] = tree[m]
        count[0] += 1
    return 0


# Given trees


def score_trees(
    Scorer scorer not None, fields, starts, lengths, owners, trees, *, n_threads=None
):
    """The score of each of many trees, projective or not: float64[trees].

    fields, starts, lengths: as in `decode`.
    owners: int32[S + 1], where the trees of each sentence begin, and their number.
    trees: int32[cells], the heads of all trees of all sentences, n + 1 cells for a tree of n words,
        of which the first is not looked at.
    Raises TypeError or ValueError for arrays that do not fit; that heads form trees is trusted.
    """
    fields, starts, lengths = check_corpus(fields, starts, lengths, scorer.model.morph_end)
    owners, trees, cells = check_owned_trees(lengths, owners, trees)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    cdef const int32_t[::1] own = owners
    cdef const int64_t[::1] at = cells
    cdef const int32_t[::1] heads = trees
    out = np.zeros(int(owners[len(starts)]) + 1)
    status_array = np.zeros(len(starts), dtype=np.int32)
    cdef double[::1] scores = out
    cdef int32_t[::1] status = status_array
    cdef int threads = effective_n_threads(n_threads), i, n = <int>first.shape[0]
    cdef Workspace *spaces = new_spaces(threads)
    cdef Listener listener = Listener(n)
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        if not look(&listener.watch):
            status[i] = scores_at(
                &spaces[threadid()], &scorer.model, words_of(
                    &words[first[i], 0], words.shape[1], rows[i], scorer.model.morph_end
                ), &heads[0] + at[i], own[i + 1] - own[i], &scores[own[i]],
            )
        task_done(&listener.watch)
    free_spaces(spaces, threads)
    listener.check()
    _check_status(status_array)
    return out[: owners[len(starts)]]


cdef int scores_at(
    Workspace *space, const Model *model, Words x, const int32_t *heads, int count, double *scores
) noexcept nogil:
    cdef int i
    cdef uint32_t *ids = room_for_ids(&space.scores.id_memory, model.morph_end)
    cdef int32_t *nearer = <int32_t *>ensure(
        &space.tree_memory, 3 * <size_t>(x.n + 2) * sizeof(int32_t)
    )
    if ids == NULL or nearer == NULL:
        return NO_MEMORY
    for i in range(count):
        nearer_siblings(x.n, heads + i * (x.n + 1), nearer + x.n + 2, nearer)
        scores[i] = score_of_tree(&x, model, ids, heads + i * (x.n + 1), nearer)
    return 0
