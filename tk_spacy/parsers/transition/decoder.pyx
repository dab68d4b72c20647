"""Batches of sentences parsed in parallel: the best tree, lists of the best, scores of given trees.

Every sentence is one thread's work and depends on nothing else, so nothing depends on the number of
threads.  Arrays of a batch are flat: the rows of its sentences stand one after the other, n + 2 for
one of n words (see `words.Corpus`).
"""

from cython.parallel cimport prange, threadid
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

import numpy as np

from tk_spacy.features.hashing cimport mix
from tk_spacy.parallel.stopping cimport Listener, Watch, await_others, is_stopped, task_done
from tk_spacy.parsers.transition.oracle cimport OracleScratch, derive, release_oracle
from tk_spacy.parsers.transition.scores cimport (
    Model, Scores, begin_scores, release_scores, score_labels, score_moves,
)
from tk_spacy.parsers.transition.search cimport (
    NO_GOLD, Search, added, advance, begin_search, release_search,
)
from tk_spacy.parsers.transition.states cimport (
    LEFT, MOVES, State, begin_state, make_move, place_state, state_size,
)
from tk_spacy.parsers.transition.templates cimport FIRST_FEAT, MOST_FEATS, Words
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.utils.array_checks import checked, checked_range

cdef enum:
    NO_MEMORY = -1
    STOPPED = -4


cdef class Scorer:
    """Weights by which sentences are parsed.

    moves: float32[2 ** bits].  labels: float32[2 ** bits + n_labels].
    places: uint8[n_labels], whether each label may stand under the root (1), elsewhere (2), or both
        (3); any may in trees that are given.
    Raises TypeError or ValueError for other arrays.
    """

    cdef Model model
    cdef object _arrays

    def __init__(self, moves, labels, places):
        at = checked("places", places, np.uint8, None)
        of_moves = checked("moves", moves, np.float32, None)
        size = len(of_moves)
        if size < 8 or size & (size - 1):
            raise ValueError(f"moves hold {size} hashed weights, expected a power of two from 8 on")
        of_labels = checked("labels", labels, np.float32, size + len(at))
        for bit, name in ((1, "under the root"), (2, "elsewhere")):
            if not (at & bit).any():
                raise ValueError(f"places allow no label {name}")
        cdef const float[::1] m = of_moves
        cdef const float[::1] t = of_labels
        cdef const uint8_t[::1] p = at
        self._arrays = (of_moves, of_labels, at)
        self.model.moves, self.model.labels, self.model.places = &m[0], &t[0], &p[0]
        self.model.move_mask = size // MOVES - 1
        self.model.label_mask = size - 1
        self.model.n_labels = len(at)


cdef struct Tree:
    # A tree of a list: that of a state of the beam, one label of which may be changed.
    double score
    int32_t state
    int32_t mod          # whose label is changed, 0 for none
    int32_t label


cdef struct Workspace:
    Search search
    Scores scores
    OracleScratch oracle
    int32_t *numbers     # moves of a tree, and the same of a path with its labels
    size_t room
    void *state_memory
    size_t state_room
    Tree *trees
    size_t tree_room
    Watch *watch


cdef void *ensure(void **memory, size_t *room, size_t size) noexcept nogil:
    """Memory of at least so many bytes; NULL where there is none."""
    cdef void *more
    if room[0] < size:
        more = realloc(memory[0], size + size // 2)
        if more == NULL:
            return NULL
        memory[0], room[0] = more, size + size // 2
    return memory[0]


cdef void release_space(Workspace *space) noexcept nogil:
    release_search(&space.search)
    release_scores(&space.scores)
    release_oracle(&space.oracle)
    free(space.numbers)
    free(space.state_memory)
    free(space.trees)


cdef int score_tree(
    Workspace *space, const Model *model, const Words *x, const int32_t *heads,
    const int32_t *labels, int step, double *score,
) noexcept nogil:
    """The score of a tree, heads and labels [(n + 1) * step] from word 1 on.

    NaN where a label is unknown (under 0).
    """
    cdef int n = x.n, room = 2 * n + n * n, count, i, move, label, top, row, of_labels
    cdef int32_t *moves
    cdef int32_t *tree
    cdef float label_score
    cdef State state
    score[0] = NAN
    for i in range(1, n + 1):
        if labels[i * step] < 0:
            return 0
    moves = <int32_t *>ensure(
        <void **>&space.numbers, &space.room, (<size_t>room + n + 2) * sizeof(int32_t)
    )
    if moves == NULL:
        return NO_MEMORY
    tree = moves + room
    for i in range(1, n + 1):
        tree[i] = heads[i * step]
    count = derive(&space.oracle, tree, n, moves, room)
    if count < 0:
        return count
    if ensure(&space.state_memory, &space.state_room, state_size(n)) == NULL:
        return NO_MEMORY
    place_state(&state, <char *>space.state_memory, n)
    begin_state(&state, n)
    for i in range(count):
        move, label, label_score = moves[i], -1, 0
        row = score_moves(&space.scores, model, x, &state)
        if row < 0:
            return NO_MEMORY
        if move >= LEFT:
            top = state.n_stack - 1
            label = labels[state.stack[top - (move == LEFT)] * step]
            of_labels = score_labels(&space.scores, model, x, &state, move)
            if of_labels < 0:
                return NO_MEMORY
            label_score = space.scores.labels.rows[<size_t>of_labels * model.n_labels + label]
        state.score = added(
            state.score, space.scores.moves.rows[row * MOVES + move], label_score
        )
        make_move(&state, move, label)
    score[0] = state.score
    return 0


cdef int parse_sentence(
    Workspace *space, const Model *model, const Words *x, int width, int n_labels_tried, int k,
    double label_share, int32_t *heads, int32_t *labels, double *scores, int32_t *count,
) noexcept nogil:
    """The best tree, or the k best ones: [n + 2, k] heads and labels, [k] scores, their number."""
    cdef int state, m
    cdef const State *best
    if begin_scores(&space.scores, model.n_labels) < 0:
        return NO_MEMORY
    if begin_search(&space.search, x.n, max(width, k), n_labels_tried, 2 * x.n) < 0:
        return NO_MEMORY
    while True:
        if is_stopped(space.watch):
            return STOPPED
        state = advance(&space.search, &space.scores, model, x, NO_GOLD, -1)
        if state < 0:
            return NO_MEMORY
        if state == 0:
            break
    if k == 1:
        best = &space.search.beam[0]
        for m in range(1, x.n + 1):
            heads[m], labels[m] = best.tokens[m].head, best.tokens[m].label
        scores[0], count[0] = best.score, 1
        return 0
    return write_list(space, model, x, k, label_share, heads, labels, scores, count)


cdef void insert(Tree *trees, int *n, int most, Tree tree) noexcept nogil:
    """Keep the best trees in order; of equal ones the first stay."""
    cdef int i = n[0]
    if i == most:
        if i == 0 or not tree.score > trees[i - 1].score:
            return
        i -= 1
    else:
        n[0] += 1
    while i > 0 and tree.score > trees[i - 1].score:
        trees[i] = trees[i - 1]
        i -= 1
    trees[i] = tree


cdef uint64_t hash_of(const State *state, int n, int mod, int label) noexcept nogil:
    cdef uint64_t value = 0
    cdef int m
    for m in range(1, n + 1):
        value = mix(mix(value, state.tokens[m].head),
                    label if m == mod else state.tokens[m].label)
    return value


cdef int write_list(
    Workspace *space, const Model *model, const Words *x, int k, double label_share,
    int32_t *heads, int32_t *labels, double *scores, int32_t *count,
) noexcept nogil:
    """The distinct trees of the beam, and such with one label changed, best first."""
    cdef Search *s = &space.search
    cdef int n = x.n, i, j, m, at, state, n_own = 0, n_more = 0, n_trees, quota
    cdef size_t size = 3 * <size_t>(s.size + k) * sizeof(Tree) \
        + <size_t>(s.size + k) * sizeof(uint64_t)
    cdef Tree *own
    cdef Tree *more
    cdef Tree *sorted_trees
    cdef uint64_t *hashes
    cdef Tree tree
    cdef uint64_t value
    cdef bint is_new
    cdef const State *final
    own = <Tree *>ensure(<void **>&space.trees, &space.tree_room, size)
    if own == NULL:
        return NO_MEMORY
    more = own + s.size + k
    sorted_trees = more + s.size + k
    hashes = <uint64_t *>(sorted_trees + s.size + k)
    for i in range(s.size):
        value = hash_of(&s.beam[i], n, 0, 0)
        is_new = True
        for j in range(n_own):
            if hashes[j] == value:
                is_new = False
        if is_new:
            hashes[n_own] = value
            own[n_own].score, own[n_own].state = s.beam[i].score, i
            own[n_own].mod = own[n_own].label = 0
            n_own += 1
    quota = max(<int>(label_share * k + 0.5), k - n_own)
    for i in range(n_own):
        at = s.beam[own[i].state].node
        while at >= 0 and quota > 0:
            if s.nodes[at].second >= 0:
                tree.score = own[i].score - s.nodes[at].margin
                tree.state, tree.mod, tree.label = own[i].state, s.nodes[at].mod, s.nodes[at].second
                value = hash_of(&s.beam[tree.state], n, tree.mod, tree.label)
                is_new = True
                for j in range(n_own):
                    if hashes[j] == value:
                        is_new = False
                if is_new:
                    insert(more, &n_more, min(quota, k), tree)
            at = s.nodes[at].before
    n_trees = 0
    for i in range(n_own):
        insert(sorted_trees, &n_trees, k, own[i])
    for i in range(n_more):
        insert(sorted_trees, &n_trees, k, more[i])
    # Exact scores: another label, or other moves than those of the oracle, change what follows.
    for i in range(n_trees):
        if is_stopped(space.watch):
            return STOPPED
        tree = sorted_trees[i]
        final = &s.beam[tree.state]
        for m in range(1, n + 1):
            heads[m * k + i] = final.tokens[m].head
            labels[m * k + i] = tree.label if m == tree.mod else final.tokens[m].label
        state = score_tree(space, model, x, heads + i, labels + i, k, &scores[i])
        if state < 0:
            return state
    count[0] = n_trees
    return 0


cdef void check(status) except *:
    """Raise what a batch ended with."""
    if (status == NO_MEMORY).any():
        raise MemoryError("no memory for parsing")
    if ((status < 0) & (status != STOPPED)).any():
        raise ValueError("heads are no trees with one root each")


def check_words(fields, starts, lengths):
    """Flat words.  Raises TypeError or ValueError where the arrays do not fit each other."""
    words = checked("fields", fields, np.int32, None, None)
    first = checked("starts", starts, np.int32, None)
    rows = checked("lengths", lengths, np.int32, len(first))
    if not FIRST_FEAT <= words.shape[1] <= FIRST_FEAT + MOST_FEATS:
        raise ValueError(
            f"fields have {words.shape[1]} columns, expected {FIRST_FEAT} to "
            f"{FIRST_FEAT + MOST_FEATS}"
        )
    checked_range("lengths", rows, 3, len(words))
    checked_range("starts", first, 0, len(words))
    if len(first) and int((first.astype(np.int64) + rows).max()) > len(words):
        raise ValueError(f"a sentence ends beyond the {len(words)} rows that there are")
    return words, first, rows


def decode(
    Scorer scorer not None, fields, starts, lengths, *, int width, int n_labels_tried=1, int k=1,
    double label_share=0.0, n_threads=None,
):
    """The best trees of sentences.

    fields: int32[rows, F], flat.  starts, lengths: int32[S], the rows of each sentence.
    width: states of the beam.  n_labels_tried: labels of an arc that become states.
    k: trees a sentence; the beam has as many states at least.
    label_share: share of a list that may differ from better trees in one label alone; more may
        where there are not enough trees.

    Returns (heads, labels, scores, counts): int32[rows, k] twice, flat; float64[S, k] in no order
    for k > 1, and int32[S], the trees found.
    Raises TypeError or ValueError for arrays that do not fit each other.
    """
    if k < 1 or width < 1 or n_labels_tried not in (1, 2):
        raise ValueError(
            f"k is {k}, width {width} and n_labels_tried {n_labels_tried}, expected at least 1, "
            "and 1 or 2"
        )
    fields, starts, lengths = check_words(fields, starts, lengths)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    heads_array = np.zeros((len(fields), k), dtype=np.int32)
    labels_array = np.zeros((len(fields), k), dtype=np.int32)
    scores_array = np.full((len(starts), k), -np.inf)
    counts_array = np.zeros(len(starts), dtype=np.int32)
    status_array = np.zeros(len(starts), dtype=np.int32)
    cdef int32_t[:, ::1] heads = heads_array
    cdef int32_t[:, ::1] labels = labels_array
    cdef double[:, ::1] scores = scores_array
    cdef int32_t[::1] counts = counts_array
    cdef int32_t[::1] status = status_array
    cdef int threads = effective_n_threads(n_threads), i, n = <int>first.shape[0]
    cdef Workspace *spaces = <Workspace *>calloc(threads, sizeof(Workspace))
    if spaces == NULL:
        raise MemoryError("no memory for parsing")
    cdef Listener listener = Listener(n)
    for i in range(threads):
        spaces[i].watch = &listener.watch
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        status[i] = parse_at(
            &spaces[threadid()], &scorer.model, &words[first[i], 0], rows[i], <int>words.shape[1],
            width, n_labels_tried, k, label_share, &heads[first[i], 0], &labels[first[i], 0],
            &scores[i, 0], &counts[i],
        )
        task_done(&listener.watch)
    for i in range(threads):
        release_space(&spaces[i])
    free(spaces)
    listener.check()
    check(status_array)
    return heads_array, labels_array, scores_array, counts_array


cdef int parse_at(
    Workspace *space, const Model *model, const int32_t *fields, int rows, int n_fields, int width,
    int n_labels_tried, int k, double label_share, int32_t *heads, int32_t *labels, double *scores,
    int32_t *count,
) noexcept nogil:
    cdef Words x
    x.fields, x.n, x.n_fields = fields, rows - 2, n_fields
    return parse_sentence(
        space, model, &x, width, n_labels_tried, k, label_share, heads, labels, scores, count
    )


def score_trees(
    Scorer scorer not None, fields, starts, lengths, owners, trees, labels, *, n_threads=None
):
    """The score of each of many trees, NaN for one with an unknown label.

    fields, starts, lengths: as in `decode`.
    owners: int32[S + 1], where the trees of each sentence begin, and their number.
    trees, labels: int32[cells], HEAD and label ids (-1 where unknown) of all trees of
        all sentences, n + 1 cells for a tree of n words, of which the first is not looked at.
    Raises TypeError or ValueError for arrays that do not fit, and where heads are no tree.
    """
    fields, starts, lengths = check_words(fields, starts, lengths)
    owners = checked("owners", owners, np.int32, len(starts) + 1)
    sizes = np.asarray(lengths, dtype=np.int64) - 1
    counts = np.diff(owners).astype(np.int64)
    if owners[0] != 0 or (counts < 0).any():
        raise ValueError("owners must ascend from 0")
    total = int((sizes * counts).sum())
    trees = checked("trees", trees, np.int32, total)
    labels = checked("labels", labels, np.int32, total)
    checked_range("labels", labels, -1, scorer.model.n_labels - 1)
    limits = np.repeat(sizes - 1, sizes * counts)
    if total and ((trees < 0) | (trees > limits)).any():
        raise ValueError("heads are no trees: some are beyond the sentence")
    cell_starts = np.concatenate([[0], np.cumsum(sizes * counts)]).astype(np.int64)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    cdef const int32_t[::1] own = owners
    cdef const int64_t[::1] at = cell_starts
    padding = np.zeros(1, dtype=np.int32)
    cdef const int32_t[::1] heads = trees if total else padding
    cdef const int32_t[::1] ids = labels if total else padding
    out = np.full(int(owners[len(starts)]) + 1, np.nan)
    status_array = np.zeros(len(starts), dtype=np.int32)
    cdef double[::1] scores = out
    cdef int32_t[::1] status = status_array
    cdef int threads = effective_n_threads(n_threads), i, n = <int>first.shape[0]
    cdef Workspace *spaces = <Workspace *>calloc(threads, sizeof(Workspace))
    if spaces == NULL:
        raise MemoryError("no memory for scoring")
    cdef Listener listener = Listener(n)
    for i in range(threads):
        spaces[i].watch = &listener.watch
    for i in prange(
        n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        if i >= n:
            await_others(&listener.watch)
            continue
        status[i] = score_at(
            &spaces[threadid()], &scorer.model, &words[first[i], 0], rows[i], <int>words.shape[1],
            &heads[0] + at[i], &ids[0] + at[i], own[i + 1] - own[i], &scores[own[i]],
        )
        task_done(&listener.watch)
    for i in range(threads):
        release_space(&spaces[i])
    free(spaces)
    listener.check()
    check(status_array)
    return out[: owners[len(starts)]]


cdef int score_at(
    Workspace *space, const Model *model, const int32_t *fields, int rows, int n_fields,
    const int32_t *heads, const int32_t *labels, int count, double *scores,
) noexcept nogil:
    cdef Words x
    cdef int i, state
    x.fields, x.n, x.n_fields = fields, rows - 2, n_fields
    if begin_scores(&space.scores, model.n_labels) < 0:
        return NO_MEMORY
    for i in range(count):
        if is_stopped(space.watch):
            return STOPPED
        state = score_tree(
            space, model, &x, heads + i * (x.n + 1), labels + i * (x.n + 1), 1, &scores[i]
        )
        if state < 0:
            return state
    return 0


def scores_after(Scorer scorer not None, fields, moves, labels):
    """What the scorer gives the next moves, after given ones: for tests and for a look inside.

    fields: int32[n + 2, F], a sentence.  moves, labels: of the arcs, -1 for the other moves.
    Returns float32[4], and float32[2, n_labels], the labels of LEFT and of RIGHT, 0 where there is
    no second word on the stack.  The moves are trusted.
    """
    whole = np.array([len(fields)], dtype=np.int32)
    words, _, _ = check_words(fields, np.zeros(1, dtype=np.int32), whole)
    cdef const int32_t[:, ::1] cells = words
    cdef Words x
    cdef Workspace space
    cdef State state
    cdef int move, label, row, i, n_labels = scorer.model.n_labels
    x.fields, x.n, x.n_fields = &cells[0, 0], <int>cells.shape[0] - 2, <int>cells.shape[1]
    memset(&space, 0, sizeof(space))
    of_moves = np.zeros(MOVES, dtype=np.float32)
    of_labels = np.zeros((2, n_labels), dtype=np.float32)
    try:
        if (
            begin_scores(&space.scores, n_labels) < 0
            or ensure(&space.state_memory, &space.state_room, state_size(x.n)) == NULL
        ):
            raise MemoryError("no memory for a state")
        place_state(&state, <char *>space.state_memory, x.n)
        begin_state(&state, x.n)
        for move, label in zip(moves, labels, strict=True):
            make_move(&state, move, label)
        row = score_moves(&space.scores, &scorer.model, &x, &state)
        if row < 0:
            raise MemoryError("no memory for scores")
        for i in range(MOVES):
            of_moves[i] = space.scores.moves.rows[row * MOVES + i]
        for move in range(LEFT, MOVES):
            if state.n_stack > 1:
                row = score_labels(&space.scores, &scorer.model, &x, &state, move)
                if row < 0:
                    raise MemoryError("no memory for scores")
                for i in range(n_labels):
                    of_labels[move - LEFT, i] = space.scores.labels.rows[row * n_labels + i]
    finally:
        release_space(&space)
    return of_moves, of_labels
