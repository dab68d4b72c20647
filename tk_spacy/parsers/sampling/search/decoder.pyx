"""Batches of sentences decoded in parallel: pruning, lattices, search, the lists of the best.

Every sentence is decoded by one thread with a random sequence of its own, so nothing depends on the
number of threads or on the other sentences of the batch.

Arrays of a batch are *flat*: the rows of its sentences stand one after the other, n + 2 of them for
a sentence of n words (root, words, boundary), as in properties.EncodedSentence.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

from tk_spacy.features.hashing cimport mix
from tk_spacy.features.templates cimport Words, words_of
from tk_spacy.parallel.stopping cimport Listener, Watch, await_others, is_stopped, task_done
from tk_spacy.parsers.sampling.search.structs cimport STOPPED
from tk_spacy.parsers.sampling.search.lattice cimport arrange, begin, build, ensure, release, take
from tk_spacy.parsers.sampling.search.pruning cimport keep_heads, score_heads
from tk_spacy.parsers.sampling.search.search cimport release_search, search
from tk_spacy.parsers.sampling.search.tree cimport exact_score
from tk_spacy.trees.spanning cimport max_tree
from tk_spacy.utils.array_checks import checked
from tk_spacy.parsers.sampling.search.checks import (
    check_corpus, check_gold, check_kept, check_lattice, check_morph_end, check_sentences,
)
from tk_spacy.parallel.threads import effective_n_threads

cdef enum:
    MAX_LABELS = 8       # of one arc


cdef class Scorer:
    """Weights and settings by which sentences are decoded.

    weights: float32[2 ** bits + n_cells], hashed.  pruner: float32[2 ** pruner_bits].
    places: uint8[n_cells], for each label id whether it may stand under the root (1), elsewhere
        (2), or both (3).
    order: of the largest parts, 1 to 3.  max_heads, prune_margin: what the pruner keeps.
    max_labels, label_margin: which labels of an arc are kept.  arc_margin: which arcs of a word.
    morph_end: columns of the field array up to the last FEATS attribute.  crossing: whether
    crossing arcs score, where order is more than 1.
    """

    def __init__(
        self, weights, pruner, places, *, int order, int max_heads, double prune_margin,
        int max_labels, double label_margin, double arc_margin, bint single_root, int morph_end,
        bint crossing=True,
    ):
        n_cells = len(places)
        size, pruner_size = len(weights) - n_cells, len(pruner)
        for name, value in (("weights", size), ("pruner", pruner_size)):
            if value < 2 or value & (value - 1):
                raise ValueError(f"{name} holds {value} hashed weights, expected a power of two")
        if not 1 <= order <= 3:
            raise ValueError(f"order is {order}, expected 1, 2 or 3")
        if not 1 <= max_labels <= MAX_LABELS or max_heads < 1:
            raise ValueError(
                f"max_heads is {max_heads} and max_labels {max_labels}, expected at least 1 and at "
                f"most {MAX_LABELS} labels"
            )
        check_morph_end(morph_end)
        self.weights = checked("weights", weights, np.float32, None)
        self.pruner = checked("pruner", pruner, np.float32, None)
        self.places = checked("places", places, np.uint8, None)
        for bit, name in ((1, "under the root"), (2, "elsewhere")):
            if not (self.places & bit).any():
                raise ValueError(f"places allow no label {name}")
        cdef const float[::1] w = self.weights
        cdef const float[::1] p = self.pruner
        cdef const uint8_t[::1] at = self.places
        self.model.weights = &w[0]
        self.model.mask = size - 1
        self.model.n_cells = n_cells
        self.model.order = order
        self.model.crossing = crossing and order > 1
        self.model.pruner = &p[0]
        self.model.pruner_mask = pruner_size - 1
        self.model.places = &at[0]
        self.model.max_heads = max_heads
        self.model.prune_margin = prune_margin
        self.model.max_labels = max_labels
        self.model.label_margin = label_margin
        self.model.arc_margin = arc_margin
        self.model.single_root = single_root
        self.model.morph_end = morph_end

    @property
    def morph_end(self):
        """Columns of the field array up to the last FEATS attribute."""
        return self.model.morph_end


cdef int prune(Workspace *space, const Model *model, const Words *x) noexcept nogil:
    """The heads to keep for each word, those of the pruner's best tree among them."""
    cdef int state
    cdef int32_t *tree
    if begin(&space.lattice, x, model) < 0:
        return -1
    tree = <int32_t *>ensure(&space.order_memory, (x.n + 2) * sizeof(int32_t))
    if tree == NULL:
        return -1
    state = score_heads(&space.lattice, model)
    if state != 0:
        return state
    state = max_tree(
        space.lattice.first_order, x.n, model.single_root, tree, &space.search.spanning
    )
    return state if state != 0 else keep_heads(&space.lattice, model, tree)


cdef int keep(
    Workspace *space, const Model *model, const Words *x, const int32_t *kept_head,
    const int64_t *kept_first,
) noexcept nogil:
    """Take up a sentence with the heads given, or those that the pruner keeps."""
    cdef Lattice *g = &space.lattice
    cdef int m, i
    if kept_head == NULL:
        return prune(space, model, x)
    if begin(g, x, model) < 0:
        return -1
    for m in range(1, x.n + 2):
        g.kept_first[m] = <int32_t>(kept_first[m] - kept_first[1])
    for i in range(g.kept_first[x.n + 1]):
        g.kept[i] = kept_head[kept_first[1] + i]
    return 0


def decode(
    Scorer scorer not None, fields, starts, lengths, sentences, *, int k=1, int exact=1,
    int restarts, int patience, double temperature, double label_share, seeds, kept=None, gold=None,
    costs=(0.0, 0.0), arcs=None, n_threads=None,
):
    """The best trees of sentences.

    fields: int32[rows, F], flat.  starts, lengths: int32[S], the rows of each sentence.
    sentences: int32[B], which ones.
    k: trees a sentence.  exact, restarts, patience, temperature: of the search, whose starts are
    `restarts` at most (search.search).
    label_share: the share of a list that may differ from its better trees in labels alone.
    seeds: uint64[S].  kept: what search_space.kept_heads returned, or None to prune here.
    gold: (heads, labels), flat int32[rows] each; then costs = (of a wrong head, of a wrong label
    under the right head) is added to wrong arcs, and gold arcs are never pruned.
    arcs: what search_space.lattice_arcs returned for these sentences, with other scores; then kept,
    gold and costs are not looked at.

    Returns (heads, labels, scores, counts): int32[rows of these sentences, k] twice, flat; float64
    [B, k] and int32[B], the trees found; best first.
    Raises TypeError or ValueError for arrays that do not fit each other.
    """
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    fields, starts, lengths = check_corpus(fields, starts, lengths, scorer.model.morph_end)
    sentences = check_sentences(sentences, len(starts))
    seeds = checked("seeds", seeds, np.uint64, len(starts))
    if arcs is not None:
        check_lattice(arcs, lengths[sentences], scorer.model.n_cells)
    if kept is not None:
        check_kept(kept, starts, lengths, len(fields))
    if gold is not None:
        check_gold(gold, starts, lengths, len(fields), scorer.model.n_cells)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    cdef const int32_t[::1] chosen = np.ascontiguousarray(sentences, dtype=np.int32)
    sizes = np.asarray(lengths)[np.asarray(sentences)]
    cdef const int32_t[::1] out_at = (np.cumsum(sizes) - sizes).astype(np.int32)
    nothing = np.zeros(1, dtype=np.int32)
    cdef const int32_t[::1] kept_head = nothing if kept is None else kept[0]
    cdef const int64_t[::1] kept_first = nothing.astype(np.int64) if kept is None else kept[1]
    cdef const int32_t[::1] gold_heads = nothing if gold is None else gold[0]
    cdef const int32_t[::1] gold_labels = nothing if gold is None else gold[1]
    cdef bint with_gold = gold is not None, with_kept = kept is not None
    cdef bint with_arcs = arcs is not None
    empty = (np.zeros(1, dtype=np.int64), nothing, nothing, np.zeros(1))
    cdef const int64_t[::1] arc_first
    cdef const int32_t[::1] arc_heads, arc_labels
    cdef const double[::1] arc_scores
    arc_first, arc_heads, arc_labels, arc_scores = arcs if with_arcs and len(arcs[1]) else empty
    cdef const uint64_t[::1] seed = seeds
    cdef double head_cost = costs[0], label_cost = costs[1]
    total = int(sizes.sum())
    heads_array = np.zeros((total, k), dtype=np.int32)
    labels_array = np.zeros((total, k), dtype=np.int32)
    scores_array = np.full((len(sizes), k), -np.inf)
    counts_array = np.zeros(len(sizes), dtype=np.int32)
    status_array = np.zeros(len(sizes), dtype=np.int32)
    cdef int32_t[:, ::1] heads = heads_array
    cdef int32_t[:, ::1] labels = labels_array
    cdef double[:, ::1] scores = scores_array
    cdef int32_t[::1] counts = counts_array
    cdef int32_t[::1] status = status_array
    cdef int threads = effective_n_threads(n_threads), i, s
    cdef Workspace *spaces = <Workspace *>calloc(threads, sizeof(Workspace))
    if spaces == NULL:
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
        status[i] = decode_sentence(
            &spaces[threadid()], &scorer.model,
            words_of(&words[first[s], 0], words.shape[1], rows[s], scorer.model.morph_end),
            &kept_head[0] if with_kept else NULL, &kept_first[first[s]] if with_kept else NULL,
            &gold_heads[first[s]] if with_gold else NULL,
            &gold_labels[first[s]] if with_gold else NULL,
            head_cost, label_cost,
            &arc_first[out_at[i]] if with_arcs else NULL, &arc_heads[0], &arc_labels[0],
            &arc_scores[0],
            k, exact, restarts, patience, temperature, label_share, seed[s],
            &heads[out_at[i], 0], &labels[out_at[i], 0], &scores[i, 0], &counts[i],
        )
        task_done(&listener.watch)
    free_spaces(spaces, threads)
    listener.check()
    check(status_array)
    return heads_array, labels_array, scores_array, counts_array


cdef int decode_sentence(
    Workspace *space, const Model *model, Words x,
    const int32_t *kept_head, const int64_t *kept_first,
    const int32_t *gold_heads, const int32_t *gold_labels, double head_cost, double label_cost,
    const int64_t *arc_first, const int32_t *arc_heads, const int32_t *arc_labels,
    const double *arc_scores,
    int k, int exact, int restarts, int patience, double temperature, double label_share,
    uint64_t seed,
    int32_t *heads, int32_t *labels, double *scores, int32_t *count,
) noexcept nogil:
    cdef Lattice *g = &space.lattice
    cdef int state, room = 0 if k == 1 else max(ROOM * k, LEAST_ROOM), turn
    if arc_first != NULL:
        state = begin(g, &x, model)
        if state == 0:
            state = take(g, arc_first, arc_heads, arc_labels, arc_scores)
        if state == 0:
            state = arrange(g, model)
        if state == 0:
            state = search(
                g, model, &space.search, room, exact, restarts, patience, temperature, seed
            )
    else:
        state = keep(space, model, &x, kept_head, kept_first)
        for turn in range(2):
            # Where the few arcs that score well make up no tree, all are taken.
            if state == turn:
                state = grow_and_search(
                    space, model, gold_heads, gold_labels, head_cost, label_cost,
                    model.arc_margin if turn == 0 else INFINITY, room, exact, restarts, patience,
                    temperature, seed,
                )
    if state != 0:
        return state
    if k == 1:
        scores[0] = exact_score(g, model, &space.search, space.search.best)
        write_tree(g, space.search.best, heads, labels, 1)
        count[0] = 1
        return 0
    if choose(space, model, k, label_share) < 0:
        return -1
    count[0] = write_list(space, k, heads, labels, scores)
    return 0


cdef int grow_and_search(
    Workspace *space, const Model *model, const int32_t *gold_heads, const int32_t *gold_labels,
    double head_cost, double label_cost, double arc_margin, int room, int exact, int restarts,
    int patience, double temperature, uint64_t seed,
) noexcept nogil:
    cdef int state = build(
        &space.lattice, model, gold_heads, gold_labels, head_cost, label_cost, arc_margin
    )
    if state == 0:
        state = arrange(&space.lattice, model)
    if state != 0:
        return state
    return search(
        &space.lattice, model, &space.search, room, exact, restarts, patience, temperature, seed
    )


cdef void write_tree(
    Lattice *g, const int32_t *arcs, int32_t *heads, int32_t *labels, int step
) noexcept nogil:
    cdef int m
    for m in range(1, g.n + 1):
        heads[m * step] = g.head[arcs[m]]
        labels[m * step] = g.label[arcs[m]]


cdef int choose(Workspace *space, const Model *model, int k, double label_share) noexcept nogil:
    """Order the pool by exact scores; the k best, with few that differ in labels alone, are `use`d.

    Returns -1 without memory, STOPPED where it was asked to end.
    """
    cdef Lattice *g = &space.lattice
    cdef Search *s = &space.search
    cdef int i, j, m, width = g.n + 1, size = s.pool.size, taken = 0
    cdef int variants = <int>(label_share * k)
    cdef int32_t *order = <int32_t *>ensure(
        &space.order_memory, size * (2 * sizeof(int32_t) + sizeof(uint64_t)) + 8
    )
    cdef int32_t *use
    cdef uint64_t *shape
    cdef uint64_t value
    cdef bint new
    if order == NULL:
        return -1
    shape = <uint64_t *>order
    order = <int32_t *>(shape + size)
    use = order + size
    for i in range(size):
        if is_stopped(g.watch):
            return STOPPED
        s.pool.scores[i] = exact_score(g, model, s, s.pool.arcs + i * width)
        value = 0
        for m in range(1, width):
            value = mix(value, g.head[s.pool.arcs[i * width + m]])
        shape[i] = value
        j = i
        while j > 0 and s.pool.scores[order[j - 1]] < s.pool.scores[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    for i in range(size):
        use[i] = 0
        new = True
        for j in range(i):
            if shape[order[j]] == shape[order[i]]:
                new = False
                break
        if taken < k and (new or variants > 0):
            use[i] = 1
            taken += 1
            if not new:
                variants -= 1
    for i in range(size):
        if taken < k and use[i] == 0:
            use[i] = 1
            taken += 1
    space.order = order
    space.use = use
    return 0


cdef int write_list(
    Workspace *space, int k, int32_t *heads, int32_t *labels, double *scores
) noexcept nogil:
    """Write the trees that were chosen, best first; their number."""
    cdef Search *s = &space.search
    cdef int i, at = 0
    for i in range(s.pool.size):
        if space.use[i]:
            write_tree(
                &space.lattice, s.pool.arcs + space.order[i] * (s.n + 1), heads + at, labels + at, k
            )
            scores[at] = s.pool.scores[space.order[i]]
            at += 1
    return at


cdef void watch_spaces(Workspace *spaces, int n, Watch *watch) noexcept nogil:
    """Let the work in them be stopped; `watch` must outlive it."""
    cdef int i
    for i in range(n):
        spaces[i].lattice.watch = watch
        spaces[i].search.spanning.watch = watch


cdef void free_spaces(Workspace *spaces, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        release(&spaces[i].lattice)
        release_search(&spaces[i].search)
        free(spaces[i].order_memory.data)
    free(spaces)


def check(status):
    if (status < 0).any():
        raise MemoryError("no memory for decoding")
    if status.any():
        raise RuntimeError(f"sentence {int(np.flatnonzero(status)[0])} of the batch has no tree")
