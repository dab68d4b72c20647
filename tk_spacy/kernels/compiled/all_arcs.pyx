"""Kernel scores of all n * n arcs of a sentence, unlabelled and with each label.

They are matrix products over the support parts.  An arc's kernel is head * modifier * (1 + equal
label + equal length + equal distance).  Support parts lie in runs of one distance and one label,
and the sum of weight * head * modifier over a run is a matrix product.  It counts for every arc
once, for those with the run's label once more, and for those of its length and of its distance once
more each.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint8_t

import numpy as np

from tk_spacy.kernels.compiled.blocks cimport (
    TK_RUN, TK_TILE_COLUMNS, TK_TILE_ROWS, Block, BlockView, build_row, tk_tile,
)
from tk_spacy.kernels.compiled.scoring cimport CompiledParts, check_encoded
from tk_spacy.kernels.template_kernel cimport length_bin

from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parallel.threads import effective_n_threads

cdef enum:
    FIELDS = 5   # of a run: first part, end, label, distance, length
    CELLS = TK_TILE_ROWS * TK_TILE_COLUMNS


def score_all_arcs(CompiledParts parts not None, ids, singles, *, n_threads=None):
    """The weighted kernel of every arc between the rows of a sentence, root included.

    parts: compiled support parts of the type arc.  ids, singles: of the root's row and the n words'
    rows, from parts.groups.encode.

    Returns (any, by_label, labels): any float64[n + 1, n + 1] by head and modifier, the score of an
    arc whose label no support part has; labels int32[l], the labels that some have; by_label
    float64[l, n + 1, n + 1], what an arc with that label scores above `any`.  Column 0, the root as
    a modifier, is 0.  Raises ValueError where the parts are no arcs.
    """
    if parts.kinds.tolist() != [0, 1, 0]:
        raise ValueError(f"slots are {parts.kinds.tolist()}, expected those of arcs, [0, 1, 0]")
    check_encoded(parts.groups, ids, singles)
    cdef int threads = effective_n_threads(n_threads)
    cdef Py_ssize_t n_rows = len(ids)
    named = [_labels(block) for block in parts.blocks]
    labels = np.unique(np.concatenate(named)) if named else np.zeros(0, dtype=np.int32)
    cdef Py_ssize_t n_left = (n_rows + TK_TILE_ROWS - 1) // TK_TILE_ROWS
    cdef Py_ssize_t n_right = (n_rows + TK_TILE_COLUMNS - 1) // TK_TILE_COLUMNS
    shape = (n_left * TK_TILE_ROWS, n_right * TK_TILE_COLUMNS)
    sums = np.zeros((len(labels), *shape))
    extra = np.zeros(shape)
    for block, own in zip(parts.blocks, named):
        raise_if_stopped()
        left, right = _floats(parts, block, ids, singles, n_left, n_right, threads)
        runs = _runs(block, np.searchsorted(labels, own).astype(np.int32))
        _multiply(left, right, runs, sums, extra, threads)
    extra += sums.sum(axis=0)
    extra[:, 0] = 0.0
    sums[:, :, 0] = 0.0
    # A part without a label (0) counts for arcs of any label, but as no label's own.
    known = labels > 0
    return (
        extra[:n_rows, :n_rows].copy(),
        np.ascontiguousarray(sums[known, :n_rows, :n_rows]),
        labels[known],
    )


cdef object _labels(Block block):
    names = np.empty(block.view.n_labels[0], dtype=np.int32)
    cdef int32_t[::1] out = names
    cdef Py_ssize_t i
    for i in range(out.shape[0]):
        out[i] = block.view.label_names[i]
    return names


cdef object _runs(Block block, const int32_t[::1] label_numbers):
    """Ranges of parts with one label and one distance, int32[r, FIELDS]; at most TK_RUN parts."""
    cdef const BlockView *view = &block.view
    runs = np.empty((view.n, FIELDS), dtype=np.int32)
    cdef int32_t[:, ::1] out = runs
    cdef Py_ssize_t start = 0, stop, n = 0
    while start < view.n:
        stop = start + 1
        while (
            stop < view.n and stop - start < TK_RUN and view.labels[stop] == view.labels[start]
            and view.distances[stop] == view.distances[start]
        ):
            stop += 1
        out[n, 0], out[n, 1] = <int32_t>start, <int32_t>stop
        out[n, 2] = label_numbers[view.labels[start]]
        out[n, 3] = view.distance_names[view.distances[start]]
        out[n, 4] = length_bin(out[n, 3])
        n += 1
        start = stop
    return runs[:n]


cdef object _floats(
    CompiledParts parts, Block block, const int32_t[:, ::1] ids, const int32_t[:, ::1] singles,
    Py_ssize_t n_left, Py_ssize_t n_right, int n_threads,
):
    """The rows of all words as heads, by weight, and as modifiers, in tiles, part by part."""
    cdef Py_ssize_t n = block.view.padded, n_rows = ids.shape[0], row, start, stop, tile
    cdef int slot, width = parts.keeper.width, n_singles = parts.keeper.n_singles
    # The padding: rows 4096 bytes apart would share few lines of the first-level cache.
    rows_array = np.empty((2, n_rows, n + 64), dtype=np.uint8)
    cdef uint8_t[:, :, ::1] rows = rows_array
    cdef int32_t[:, ::1] kept = np.empty((n_rows, width + 1), dtype=np.int32)
    cdef int32_t[:, ::1] rest = np.empty((n_rows, n_singles + 1), dtype=np.int32)
    for slot in range(2):
        start = 0
        while start < n_rows:
            parts.keeper.begin()
            stop = start
            while stop < n_rows and parts.keeper.want(
                ids, singles, stop, slot, &kept[stop, 0], &rest[stop, 0]
            ):
                stop += 1
            if stop == start:
                raise MemoryError(f"a word needs more than {parts.keeper.limit} kept rows")
            parts.fill([block], 1)
            for row in prange(start, stop, nogil=True, schedule="static", num_threads=n_threads):
                build_row(
                    &block.view, slot, &kept[row, 0], width, &rest[row, 0], n_singles,
                    <uint8_t>parts.skips[slot], &rows[slot, row, 0],
                )
            start = stop
    left = np.zeros((n_left, n, TK_TILE_ROWS), dtype=np.float32)
    right = np.zeros((n_right, n, TK_TILE_COLUMNS), dtype=np.float32)
    cdef float[:, :, ::1] of_left = left, of_right = right
    for tile in prange(n_left, nogil=True, schedule="static", num_threads=n_threads):
        _transpose(rows[0], tile, TK_TILE_ROWS, n, block.view.weights, &of_left[tile, 0, 0])
    for tile in prange(n_right, nogil=True, schedule="static", num_threads=n_threads):
        _transpose(rows[1], tile, TK_TILE_COLUMNS, n, NULL, &of_right[tile, 0, 0])
    return left, right


cdef void _transpose(
    const uint8_t[:, ::1] rows, Py_ssize_t tile, Py_ssize_t width, Py_ssize_t n,
    const float *weights, float *out,
) noexcept nogil:
    # Part by part: written in the order of memory, read from `width` rows at a time.
    cdef Py_ssize_t row, i, first = tile * width, last = min(first + width, rows.shape[0])
    for i in range(n):
        for row in range(first, last):
            out[i * width + row - first] = <float>rows[row, i]
        if weights != NULL:
            for row in range(last - first):
                out[i * width + row] *= weights[i]


cdef int _multiply(
    const float[:, :, ::1] left,     # IN
    const float[:, :, ::1] right,    # IN
    const int32_t[:, ::1] runs,      # IN
    double[:, :, ::1] sums,          # IN, OUT, by label
    double[:, ::1] extra,            # IN, OUT
    int n_threads,
) except -1:
    cdef Py_ssize_t tile
    for tile in prange(
        left.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads
    ):
        _multiply_tile(left, right, runs, sums, extra, tile)
    return 0


cdef void _multiply_tile(
    const float[:, :, ::1] left, const float[:, :, ::1] right, const int32_t[:, ::1] runs,
    double[:, :, ::1] sums, double[:, ::1] extra, Py_ssize_t tile,
) noexcept nogil:
    cdef float product[CELLS]
    cdef int32_t distances[CELLS]
    cdef int32_t bins[CELLS]
    cdef Py_ssize_t other, i, r, c, start
    cdef int32_t of_distance, of_bin, present
    cdef double *target
    for other in range(right.shape[0]):
        present = 0
        for r in range(TK_TILE_ROWS):
            for c in range(TK_TILE_COLUMNS):
                i = r * TK_TILE_COLUMNS + c
                distances[i] = <int32_t>(other * TK_TILE_COLUMNS + c - tile * TK_TILE_ROWS - r)
                bins[i] = length_bin(distances[i])
                present |= 1 << bins[i]
        for i in range(runs.shape[0]):
            start = runs[i, 0]
            of_distance, of_bin = runs[i, 3], runs[i, 4]
            tk_tile(
                product, &left[tile, start, 0], TK_TILE_ROWS, &right[other, start, 0],
                TK_TILE_COLUMNS, runs[i, 1] - start,
            )
            for r in range(TK_TILE_ROWS):
                target = &sums[runs[i, 2], tile * TK_TILE_ROWS + r, other * TK_TILE_COLUMNS]
                for c in range(TK_TILE_COLUMNS):
                    target[c] += product[r * TK_TILE_COLUMNS + c]
            # No distance (0) equals none, and has a bin of its own, 0.
            if of_bin == 0 or not present & (1 << of_bin):
                continue
            for r in range(TK_TILE_ROWS):
                target = &extra[tile * TK_TILE_ROWS + r, other * TK_TILE_COLUMNS]
                for c in range(TK_TILE_COLUMNS):
                    target[c] += product[r * TK_TILE_COLUMNS + c] * <float>(
                        (bins[r * TK_TILE_COLUMNS + c] == of_bin)
                        + (distances[r * TK_TILE_COLUMNS + c] == of_distance)
                    )
