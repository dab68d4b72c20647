"""Kernel scores of all n * n arcs of a sentence, unlabelled and with each label.

They are matrix products over the support parts.  An arc's kernel is head * modifier * (1 + equal
label + equal length + equal distance).  Support parts lie in runs of one distance and one label,
and the sum of weight * head * modifier over a run is a matrix product.  It counts for every arc
once, for those with the run's label once more, and for those of its length and of its distance once
more each.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from tk_spacy.kernels.compiled.blocks cimport (
    BLOCK_SIZE, TK_RUN, TK_TILE_COLUMNS, TK_TILE_ROWS, Block, BlockView, build_row, tk_left_tile,
    tk_right_tile, tk_tile,
)
from tk_spacy.kernels.compiled.scoring cimport CompiledParts, check_encoded, views_of
from tk_spacy.kernels.template_kernel cimport length_bin

from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parallel.threads import effective_n_threads

cdef enum:
    FIELDS = 5   # of a run: first part, end, label, distance, length
    CELLS = TK_TILE_ROWS * TK_TILE_COLUMNS
    WAVE_BYTES = 16 << 20   # rows in tiles, of the blocks that are taken at a time


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
    most = WAVE_BYTES // (4 * BLOCK_SIZE * max(1, sum(shape)))
    at_a_time = max(1, min(most, len(parts.blocks)))
    # Used again for the next blocks: fresh memory would have to be cleared each time.  The padding:
    # rows 4096 bytes apart would share few lines of the first-level cache.
    rows = np.empty((at_a_time, 2, n_rows, BLOCK_SIZE + 64), dtype=np.uint8)
    left = np.empty((at_a_time, n_left, BLOCK_SIZE, TK_TILE_ROWS), dtype=np.float32)
    right = np.empty((at_a_time, n_right, BLOCK_SIZE, TK_TILE_COLUMNS), dtype=np.float32)
    for start in range(0, len(parts.blocks), at_a_time):
        raise_if_stopped()
        blocks = parts.blocks[start : start + at_a_time]
        runs = [
            _runs(block, np.searchsorted(labels, own).astype(np.int32))
            for block, own in zip(blocks, named[start : start + at_a_time])
        ]
        bounds = np.cumsum([0, *map(len, runs)], dtype=np.int64)
        _build_rows(parts, blocks, ids, singles, rows, threads)
        _interleave(blocks, rows, left, right, threads)
        _multiply(left, right, np.concatenate(runs), bounds, sums, extra, threads)
    extra += sums.sum(axis=0)
    extra[:, :1] = 0.0
    sums[:, :, :1] = 0.0
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


cdef int _build_rows(
    CompiledParts parts, list blocks, const int32_t[:, ::1] ids, const int32_t[:, ::1] singles,
    uint8_t[:, :, :, ::1] rows, int n_threads,
) except -1:
    """The rows of all words as heads and as modifiers, of each block."""
    cdef Py_ssize_t n_rows = ids.shape[0], n_items = 2 * n_rows, start = 0, stop, n, task
    cdef int width = parts.keeper.width, n_singles = parts.keeper.n_singles
    cdef size_t[::1] views = views_of(blocks)
    # A word as a head, and below all these as a modifier.
    cdef int32_t[:, ::1] kept = np.empty((n_items, width + 1), dtype=np.int32)
    cdef int32_t[:, ::1] rest = np.empty((n_items, n_singles + 1), dtype=np.int32)
    while start < n_items:
        parts.keeper.begin()
        stop = start
        while stop < n_items and parts.keeper.want(
            ids, singles, stop % n_rows, <int>(stop // n_rows), &kept[stop, 0], &rest[stop, 0]
        ):
            stop += 1
        if stop == start:
            raise MemoryError(f"a word needs more than {parts.keeper.limit} kept rows")
        parts.fill(blocks, n_threads)
        n = stop - start
        for task in prange(
            views.shape[0] * n, nogil=True, schedule="dynamic", chunksize=8, num_threads=n_threads
        ):
            _build(
                <const BlockView *>views[task // n], parts, start + task % n, n_rows, kept, rest,
                rows, task // n,
            )
        start = stop
    return 0


cdef void _build(
    const BlockView *block, CompiledParts parts, Py_ssize_t item, Py_ssize_t n_rows,
    const int32_t[:, ::1] kept, const int32_t[:, ::1] rest, uint8_t[:, :, :, ::1] rows,
    Py_ssize_t b,
) noexcept nogil:
    cdef int slot = <int>(item // n_rows)
    build_row(
        block, slot, &kept[item, 0], <int>kept.shape[1] - 1, &rest[item, 0],
        <int>rest.shape[1] - 1, <uint8_t>parts.skips[slot], &rows[b, slot, item % n_rows, 0],
    )


cdef int _interleave(
    list blocks,
    const uint8_t[:, :, :, ::1] rows,   # IN
    float[:, :, :, ::1] left,           # OUT, heads by weight
    float[:, :, :, ::1] right,          # OUT, modifiers
    int n_threads,
) except -1:
    """The rows in tiles, part by part; where a tile has no word, 0."""
    cdef Py_ssize_t n_left = left.shape[1], n_tiles = n_left + right.shape[1], task
    cdef size_t[::1] views = views_of(blocks)
    for task in prange(
        views.shape[0] * n_tiles, nogil=True, schedule="dynamic", chunksize=1,
        num_threads=n_threads,
    ):
        _interleave_tile(
            <const BlockView *>views[task // n_tiles], rows, left, right, task // n_tiles,
            task % n_tiles,
        )
    return 0


cdef void _interleave_tile(
    const BlockView *block, const uint8_t[:, :, :, ::1] rows, float[:, :, :, ::1] left,
    float[:, :, :, ::1] right, Py_ssize_t b, Py_ssize_t tile,
) noexcept nogil:
    cdef Py_ssize_t n = rows.shape[2], first
    if tile < left.shape[1]:
        first = tile * TK_TILE_ROWS
        tk_left_tile(
            &left[b, tile, 0, 0], &rows[b, 0, first, 0], rows.shape[3],
            <int>min(<Py_ssize_t>TK_TILE_ROWS, n - first), block.weights, block.padded,
        )
    else:
        tile = tile - left.shape[1]
        first = tile * TK_TILE_COLUMNS
        tk_right_tile(
            &right[b, tile, 0, 0], &rows[b, 1, first, 0], rows.shape[3],
            <int>min(<Py_ssize_t>TK_TILE_COLUMNS, n - first), block.padded,
        )


cdef int _multiply(
    const float[:, :, :, ::1] left,     # IN, of some blocks
    const float[:, :, :, ::1] right,    # IN
    const int32_t[:, ::1] runs,         # IN, of all these blocks
    const int64_t[::1] bounds,          # IN, where each block's runs begin
    double[:, :, ::1] sums,             # IN, OUT, by label
    double[:, ::1] extra,               # IN, OUT
    int n_threads,
) except -1:
    cdef Py_ssize_t n_right = right.shape[1], task
    for task in prange(
        left.shape[1] * n_right, nogil=True, schedule="dynamic", chunksize=1,
        num_threads=n_threads,
    ):
        _multiply_tile(left, right, runs, bounds, sums, extra, task // n_right, task % n_right)
    return 0


cdef void _multiply_tile(
    const float[:, :, :, ::1] left, const float[:, :, :, ::1] right, const int32_t[:, ::1] runs,
    const int64_t[::1] bounds, double[:, :, ::1] sums, double[:, ::1] extra, Py_ssize_t tile,
    Py_ssize_t other,
) noexcept nogil:
    cdef float product[CELLS]
    cdef int32_t distances[CELLS]
    cdef int32_t bins[CELLS]
    cdef Py_ssize_t b, i, r, c, start
    cdef int32_t of_distance, of_bin, present = 0
    cdef double *target
    for r in range(TK_TILE_ROWS):
        for c in range(TK_TILE_COLUMNS):
            i = r * TK_TILE_COLUMNS + c
            distances[i] = <int32_t>(other * TK_TILE_COLUMNS + c - tile * TK_TILE_ROWS - r)
            bins[i] = length_bin(distances[i])
            present |= 1 << bins[i]
    for b in range(bounds.shape[0] - 1):
        for i in range(bounds[b], bounds[b + 1]):
            start = runs[i, 0]
            of_distance, of_bin = runs[i, 3], runs[i, 4]
            tk_tile(
                product, &left[b, tile, start, 0], TK_TILE_ROWS, &right[b, other, start, 0],
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
