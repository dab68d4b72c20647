"""What a search of trees looks at, sentence by sentence: the heads kept, and the arcs with labels.

Batches in parallel, in flat arrays as those of the decoder; for training, which prunes once and
searches often, and for a kernel that scores the same arcs (search_kernel).
"""

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from tk_spacy.features.templates cimport Words, words_of
from tk_spacy.parallel.stopping cimport Listener, await_others, task_done
from tk_spacy.parsers.sampling.search.decoder cimport (
    Scorer, Workspace, free_spaces, keep, prune, watch_spaces,
)
from tk_spacy.parsers.sampling.search.lattice cimport build
from tk_spacy.parsers.sampling.search.search cimport has_tree
from tk_spacy.parsers.sampling.search.structs cimport Lattice, Model

from tk_spacy.parsers.sampling.search.checks import (
    check_corpus, check_gold, check_kept, check_sentences,
)
from tk_spacy.parsers.sampling.search.decoder import check
from tk_spacy.parallel.threads import effective_n_threads


cdef struct Found:
    # The arcs of one sentence, copied out of its lattice.
    int n
    double *score
    int32_t *head
    int32_t *label
    int32_t *first          # [n + 2]


def kept_heads(Scorer scorer not None, fields, starts, lengths, *, n_threads=None):
    """The heads that the pruner keeps for each word.

    fields: int32[rows, F], flat.  starts, lengths: int32[S], the rows of each sentence.
    Returns (kept, kept_first): the heads of the word in flat row r are
    kept[kept_first[r]:kept_first[r + 1]] (int32; int64[rows + 1]), best first.
    """
    fields, starts, lengths = check_corpus(fields, starts, lengths, scorer.model.morph_end)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    cdef int threads = effective_n_threads(n_threads), i
    cdef Py_ssize_t width = scorer.model.max_heads + 1
    heads_array = np.full((len(fields), width), -1, dtype=np.int32)
    cdef int32_t[:, ::1] heads = heads_array
    status_array = np.zeros(len(starts), dtype=np.int32)
    cdef int32_t[::1] status = status_array
    cdef Workspace *spaces = <Workspace *>calloc(threads, sizeof(Workspace))
    if spaces == NULL:
        raise MemoryError("no memory for decoding")
    cdef int n = <int>first.shape[0]
    cdef Listener listener = Listener(n)
    watch_spaces(spaces, threads, &listener.watch)
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        status[i] = kept_of_sentence(
            &spaces[threadid()], &scorer.model,
            words_of(&words[first[i], 0], words.shape[1], rows[i], scorer.model.morph_end),
            &heads[first[i], 0], width,
        )
        task_done(&listener.watch)
    free_spaces(spaces, threads)
    listener.check()
    check(status_array)
    there = heads_array >= 0
    kept_first = np.zeros(len(fields) + 1, dtype=np.int64)
    np.cumsum(there.sum(axis=1), out=kept_first[1:])
    return heads_array[there], kept_first


cdef int kept_of_sentence(
    Workspace *space, const Model *model, Words x, int32_t *out, Py_ssize_t width
) noexcept nogil:
    cdef Lattice *g = &space.lattice
    cdef int m, i, state = prune(space, model, &x)
    if state != 0:
        return state
    for m in range(1, x.n + 1):
        for i in range(g.kept_first[m], g.kept_first[m + 1]):
            out[m * width + i - g.kept_first[m]] = g.kept[i]
    return 0


def lattice_arcs(
    Scorer scorer not None, fields, starts, lengths, sentences, *, kept=None, gold=None,
    costs=(0.0, 0.0), n_threads=None,
):
    """The arcs, labels and all, among which decoder.decode would search; others may score them too.

    Arguments as those of decoder.decode.  Returns (first, heads, labels, scores): the arcs into the
    word in row r, of the flat rows of these sentences, are first[r]:first[r + 1] (int64[rows + 1]);
    int32, int32 and float64[arcs], the scores with the loss where there is gold.
    """
    fields, starts, lengths = check_corpus(fields, starts, lengths, scorer.model.morph_end)
    sentences = check_sentences(sentences, len(starts))
    if kept is not None:
        check_kept(kept, starts, lengths, len(fields))
    if gold is not None:
        check_gold(gold, starts, lengths, len(fields), scorer.model.n_cells)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] begins = starts
    cdef const int32_t[::1] rows = lengths
    cdef const int32_t[::1] chosen = np.ascontiguousarray(sentences, dtype=np.int32)
    nothing = np.zeros(1, dtype=np.int32)
    cdef const int32_t[::1] kept_head = nothing if kept is None else kept[0]
    cdef const int64_t[::1] kept_first = nothing.astype(np.int64) if kept is None else kept[1]
    cdef const int32_t[::1] gold_heads = nothing if gold is None else gold[0]
    cdef const int32_t[::1] gold_labels = nothing if gold is None else gold[1]
    cdef bint with_gold = gold is not None, with_kept = kept is not None
    cdef double head_cost = costs[0], label_cost = costs[1]
    cdef int threads = effective_n_threads(n_threads), i, s, m
    status_array = np.zeros(len(chosen), dtype=np.int32)
    cdef int32_t[::1] status = status_array
    cdef Workspace *spaces = <Workspace *>calloc(threads, sizeof(Workspace))
    cdef Found *found = <Found *>calloc(len(chosen) + 1, sizeof(Found))
    if spaces == NULL or found == NULL:
        free(spaces)
        free(found)
        raise MemoryError("no memory for decoding")
    cdef int n = <int>chosen.shape[0]
    cdef Listener listener = Listener(n)
    watch_spaces(spaces, threads, &listener.watch)
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        s = chosen[i]
        status[i] = arcs_of_sentence(
            &spaces[threadid()], &scorer.model,
            words_of(&words[begins[s], 0], words.shape[1], rows[s], scorer.model.morph_end),
            &kept_head[0] if with_kept else NULL, &kept_first[begins[s]] if with_kept else NULL,
            &gold_heads[begins[s]] if with_gold else NULL,
            &gold_labels[begins[s]] if with_gold else NULL,
            head_cost, label_cost, &found[i],
        )
        task_done(&listener.watch)
    free_spaces(spaces, threads)
    cdef Py_ssize_t total = 0, n_rows = 0, at = 0, row = 0
    for i in range(chosen.shape[0]):
        total += found[i].n
        n_rows += rows[chosen[i]]
    first_array = np.zeros(n_rows + 1, dtype=np.int64)
    heads_array = np.empty(total + 1, dtype=np.int32)
    labels_array = np.empty(total + 1, dtype=np.int32)
    scores_array = np.empty(total + 1)
    cdef int64_t[::1] first = first_array
    cdef int32_t[::1] heads = heads_array
    cdef int32_t[::1] labels = labels_array
    cdef double[::1] scores = scores_array
    for i in range(chosen.shape[0]):
        if found[i].score != NULL:
            memcpy(&heads[at], found[i].head, found[i].n * sizeof(int32_t))
            memcpy(&labels[at], found[i].label, found[i].n * sizeof(int32_t))
            memcpy(&scores[at], found[i].score, found[i].n * sizeof(double))
            for m in range(rows[chosen[i]]):
                first[row + m] = at + found[i].first[m]
            free(found[i].score)
        at += found[i].n
        row += rows[chosen[i]]
    first[n_rows] = at
    free(found)
    listener.check()
    check(status_array)
    return first_array, heads_array[:total], labels_array[:total], scores_array[:total]


cdef int arcs_of_sentence(
    Workspace *space, const Model *model, Words x,
    const int32_t *kept_head, const int64_t *kept_first,
    const int32_t *gold_heads, const int32_t *gold_labels, double head_cost, double label_cost,
    Found *out,
) noexcept nogil:
    cdef Lattice *g = &space.lattice
    cdef int state = keep(space, model, &x, kept_head, kept_first)
    cdef int m
    if state == 0:
        state = build(
            g, model, gold_heads, gold_labels, head_cost, label_cost, model.arc_margin
        )
    if state == 0:
        state = has_tree(g, model, &space.search)
        if state == 0:
            state = build(g, model, gold_heads, gold_labels, head_cost, label_cost, INFINITY)
        elif state == 1:
            state = 0
    if state != 0:
        return state
    out.score = <double *>malloc(
        g.n_arcs * (sizeof(double) + 2 * sizeof(int32_t)) + (x.n + 2) * sizeof(int32_t)
    )
    if out.score == NULL:
        return -1
    out.n = g.n_arcs
    out.head = <int32_t *>(out.score + out.n)
    out.label = out.head + out.n
    out.first = out.label + out.n
    memcpy(out.score, g.score, out.n * sizeof(double))
    memcpy(out.head, g.head, out.n * sizeof(int32_t))
    memcpy(out.label, g.label, out.n * sizeof(int32_t))
    for m in range(x.n + 2):
        out.first[m] = g.first[m]
    return 0
