"""Scores of the parts of any trees, also of arcs that the pruner would not keep."""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc

import numpy as np

from tk_spacy.features.columns cimport FIRST_MORPH, H, LABEL_M, M, WIDTH
from tk_spacy.features.templates cimport (
    Sink, Words, id_sink, listed_score, most_features, part_features, words_of,
)
from tk_spacy.parallel.stopping cimport Listener, await_others, is_stopped, task_done
from tk_spacy.parsers.sampling.search.crossing cimport crosses, crossing_score
from tk_spacy.parsers.sampling.search.decoder cimport Scorer
from tk_spacy.parsers.sampling.search.structs cimport CROSSING_UNIT, Model
from tk_spacy.parsers.sampling.search.templates cimport MOST_CROSSING, MOST_EXTRA, arc_templates
from tk_spacy.utils.index_checks cimport check_values
from tk_spacy.utils.array_checks import checked, checked_range
from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.parsers.sampling.search.checks import check_corpus
from tk_spacy.parallel.threads import effective_n_threads

cdef enum:
    ARC = 0
    PARTS_AT_A_TIME = 32


def part_scores(
    Scorer scorer not None, fields, starts, lengths, owners, rows, int kind, *, n_threads=None
):
    """The score of each part: float64[p].

    fields, starts, lengths: flat sentences, see words.Corpus.  owners: int32[p], the sentence of
    each part.  rows: int32[p, 9], as parts.extract_parts finds them.  kind: index of the part type
    in part_types.PART_TYPES.  The values are those of the search, to the last bit.
    """
    fields, starts, lengths = check_corpus(fields, starts, lengths, scorer.model.morph_end)
    rows = checked("rows", rows, np.int32, None, WIDTH)
    owners = checked("owners", owners, np.int32, len(rows))
    checked_range("owners", owners, 0, len(starts) - 1)
    if not 0 <= kind < len(PART_TYPES):
        raise ValueError(f"kind is {kind}, expected 0 to {len(PART_TYPES) - 1}")
    places = rows[:, : M + 1]
    wrong = (places < -1) | (places >= lengths[owners][:, None])
    if wrong.any():
        raise ValueError(f"rows name word {int(places[wrong][0])}, which the sentence has not")
    checked_range("labels in rows", rows[:, M + 1 :], 0, scorer.model.n_cells - 1)
    out = np.zeros(len(rows))
    if len(out):
        _part_scores(scorer, fields, starts, lengths, owners, rows, kind, out, n_threads)
    return out


cdef int _part_scores(
    Scorer scorer, const int32_t[:, ::1] fields, const int32_t[::1] starts,
    const int32_t[::1] lengths, const int32_t[::1] owners, const int32_t[:, ::1] rows, int kind,
    out, n_threads,
) except -1:
    cdef double[::1] scores = out
    cdef int threads = effective_n_threads(n_threads)
    cdef size_t room = most_features(scorer.model.morph_end - FIRST_MORPH) + MOST_EXTRA
    cdef uint32_t *ids = <uint32_t *>malloc(threads * room * sizeof(uint32_t))
    if ids == NULL:
        raise MemoryError("no memory for features")
    cdef Py_ssize_t i, n = (rows.shape[0] + PARTS_AT_A_TIME - 1) // PARTS_AT_A_TIME
    cdef Listener listener = Listener(<int>n)
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        if not is_stopped(&listener.watch):
            score_some(
                &scorer.model, fields, starts, lengths, owners, rows, i * PARTS_AT_A_TIME, kind,
                ids + threadid() * room, scores,
            )
        task_done(&listener.watch)
    free(ids)
    listener.check()
    return 0


def crossing_scores(
    Scorer scorer not None, const int32_t[:, ::1] fields not None,
    const int32_t[:, ::1] heads not None, const int32_t[:, ::1] labels not None,
    double[::1] out not None,
):
    """Adds to out[j] what the crossing arcs of candidate j score.

    fields: int32[n + 2, F], of one sentence.  heads, labels: int32[k, n].  out: float64[k].
    """
    cdef int n = <int>heads.shape[1], j, m, other, number
    cdef Py_ssize_t k = heads.shape[0]
    if labels.shape[0] != k or labels.shape[1] != n or out.shape[0] != k:
        raise ValueError(
            f"heads have shape {(k, n)}, labels {(labels.shape[0], labels.shape[1])} and out "
            f"{out.shape[0]} scores, expected as many"
        )
    if fields.shape[0] != n + 2 or fields.shape[1] < scorer.model.morph_end:
        raise ValueError(
            f"fields have shape {(fields.shape[0], fields.shape[1])}, expected {n + 2} rows and "
            f"{scorer.model.morph_end} columns at least"
        )
    for j in range(k):
        check_values(heads[j], 0, n, "heads")
        check_values(labels[j], 0, <int32_t>scorer.model.n_cells - 1, "labels")
    cdef int64_t total
    cdef Words x = words_of(&fields[0, 0], fields.shape[1], n + 2, scorer.model.morph_end)
    cdef uint32_t ids[MOST_CROSSING]
    cdef Listener listener = Listener()
    with nogil:
        for j in range(heads.shape[0]):
            total = 0
            for m in range(1, n + 1):
                if is_stopped(&listener.watch):
                    break
                number = 0
                for other in range(1, n + 1):
                    number += crosses(
                        min(heads[j, other - 1], other), max(heads[j, other - 1], other),
                        min(heads[j, m - 1], m), max(heads[j, m - 1], m),
                    )
                if number:
                    total += <int64_t>number * crossing_score(
                        &scorer.model, &x, heads[j, m - 1], m, labels[j, m - 1], ids
                    )
            out[j] += <double>total / CROSSING_UNIT
    listener.check()


cdef void score_some(
    const Model *model, const int32_t[:, ::1] fields, const int32_t[::1] starts,
    const int32_t[::1] lengths, const int32_t[::1] owners, const int32_t[:, ::1] rows,
    Py_ssize_t first, int kind, uint32_t *ids, double[::1] scores,
) noexcept nogil:
    """Score PARTS_AT_A_TIME parts, or as many as there are from the first on."""
    cdef Py_ssize_t i
    for i in range(first, min(first + PARTS_AT_A_TIME, rows.shape[0])):
        scores[i] = part_score(
            model, &fields[starts[owners[i]], 0], fields.shape[1], lengths[owners[i]], &rows[i, 0],
            kind, ids,
        )


cdef double part_score(
    const Model *model, const int32_t *fields, Py_ssize_t n_fields, int n_rows, const int32_t *row,
    int kind, uint32_t *ids,
) noexcept nogil:
    cdef Words x = words_of(fields, n_fields, n_rows, model.morph_end)
    cdef Sink sink = id_sink(ids, model.mask)
    cdef int i
    # An arc's score is summed in single precision, as in the lattice.
    cdef float bare = 0.0, with_label = 0.0
    if kind == ARC:
        sink.rows = True
        arc_templates(&sink, &x, row[H], row[M])
        for i in range(sink.count):
            bare += model.weights[ids[i]]
            with_label += model.weights[ids[i] + row[LABEL_M]]
        return <double>bare + <double>with_label
    part_features(&sink, &x, kind, row)
    return <double><float>listed_score(&sink, model.weights)
