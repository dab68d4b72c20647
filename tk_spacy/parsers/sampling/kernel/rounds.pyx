"""Searches in rounds, for a kernel that also scores siblings and grandparents.

A round is a search of every sentence, then a stop in which the pairs of the trees found that the
kernel has not scored yet are handed out, for all sentences together, and their scores taken in.  A
sentence is done when its list is made of scored pairs alone.  Its lattice, all that was scored and
its pool of trees stay in memory from round to round, so a later round only climbs on from the best
tree of the pool.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

from tk_spacy.features.columns cimport WIDTH
from tk_spacy.features.templates cimport Words, words_of
from tk_spacy.parallel.stopping cimport Listener, await_others, task_done
from tk_spacy.parsers.sampling.search.decoder cimport (
    LEAST_ROOM, ROOM, Scorer, Workspace, choose, free_spaces, watch_spaces, write_list,
)
from tk_spacy.parsers.sampling.search.larger_parts cimport (
    GRANDPARENT, SIBLING, grandparent_place, pair_part, sibling_place,
)
from tk_spacy.parsers.sampling.search.lattice cimport arrange, begin, ensure, take
from tk_spacy.parsers.sampling.search.pair_kernel cimport begin_kernel, revise
from tk_spacy.parsers.sampling.search.pool cimport offer
from tk_spacy.parsers.sampling.search.search cimport rescore, search, search_again
from tk_spacy.parsers.sampling.search.structs cimport NONE, Buffer, Lattice, Model, Search
from tk_spacy.parsers.sampling.search.tree cimport exact_score, set_tree

from tk_spacy.utils.array_checks import checked
from tk_spacy.parsers.sampling.search.checks import check_corpus, check_lattice, check_sentences
from tk_spacy.parsers.sampling.search.decoder import check
from tk_spacy.parallel.threads import effective_n_threads


cdef struct Pair:
    # A pair whose score was asked for.
    int32_t kind
    int32_t outer
    int32_t arc
    int64_t at


cdef struct Asked:
    # The pairs that a sentence waits for.
    int n
    Pair *pairs
    Buffer memory


cdef class Searches:
    """The searches of some sentences.

    fields, starts, lengths: as those of search_space.kept_heads.  sentences: int32[B], which ones.
    arcs: what search_space.lattice_arcs returned for these sentences, and a kernel's scores of arcs
    added.
    siblings, grandparents: whether the kernel scores them.
    k, exact, restarts, patience, temperature, label_share, seeds: as those of decoder.decode.
    The parser must be of order 2 at least, for others have no pairs.
    """

    cdef Scorer scorer
    cdef const int32_t[:, ::1] fields
    cdef const int32_t[::1] starts, lengths, sentences, out_at
    cdef const int64_t[::1] arc_first
    cdef const int32_t[::1] arc_heads, arc_labels
    cdef const double[::1] arc_scores
    cdef const uint64_t[::1] seeds
    cdef bint siblings, grandparents
    cdef int k, exact, restarts, patience, threads, n_rows
    cdef double temperature, label_share
    cdef Workspace *spaces
    cdef Asked *asked
    cdef int32_t[::1] active, n_rounds
    cdef int64_t[::1] n_scored

    def __cinit__(self):
        self.spaces = NULL
        self.asked = NULL

    def __init__(
        self, Scorer scorer not None, fields, starts, lengths, sentences, arcs, *, siblings,
        grandparents, int k, int exact, int restarts, int patience, double temperature,
        double label_share, seeds, n_threads=None,
    ):
        if scorer.model.order < 2:
            raise ValueError("a parser of order 1, expected 2 or 3: it has no pairs to score")
        if self.spaces != NULL:
            raise ValueError("these searches have begun; make new ones")
        if k < 1:
            raise ValueError(f"k is {k}, expected at least 1")
        fields, starts, lengths = check_corpus(fields, starts, lengths, scorer.model.morph_end)
        sentences = check_sentences(sentences, len(starts))
        seeds = checked("seeds", seeds, np.uint64, len(starts))
        check_lattice(arcs, lengths[sentences], scorer.model.n_cells)
        nothing = np.zeros(1, dtype=np.int32)
        self.scorer = scorer
        self.fields, self.starts, self.lengths, self.seeds = fields, starts, lengths, seeds
        self.sentences = np.ascontiguousarray(sentences, dtype=np.int32)
        sizes = np.asarray(lengths)[np.asarray(sentences)]
        self.out_at = (np.cumsum(sizes) - sizes).astype(np.int32)
        self.n_rows = int(sizes.sum())
        self.arc_first = arcs[0]
        some = len(arcs[1]) > 0
        self.arc_heads, self.arc_labels = arcs[1] if some else nothing, arcs[2] if some else nothing
        self.arc_scores = arcs[3] if some else np.zeros(1)
        self.siblings, self.grandparents = siblings, grandparents
        self.k, self.exact, self.restarts, self.patience = k, exact, restarts, patience
        self.temperature, self.label_share = temperature, label_share
        self.threads = effective_n_threads(n_threads)
        self.active = np.arange(len(sizes), dtype=np.int32)
        self.n_rounds = np.zeros(len(sizes), dtype=np.int32)
        self.n_scored = np.zeros(len(sizes), dtype=np.int64)
        self.spaces = <Workspace *>calloc(len(sizes) + 1, sizeof(Workspace))
        self.asked = <Asked *>calloc(len(sizes) + 1, sizeof(Asked))
        if self.spaces == NULL or self.asked == NULL:
            raise MemoryError("no memory for searches")

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.asked != NULL:
            for i in range(self.sentences.shape[0]):
                free(self.asked[i].memory.data)
            free(self.asked)
        if self.spaces != NULL:
            free_spaces(self.spaces, <int>self.sentences.shape[0])

    @property
    def rounds(self):
        """Rounds of each sentence so far: int32[B]."""
        return np.array(self.n_rounds)

    @property
    def scored(self):
        """Pairs that each sentence asked for and got scores of: int64[B]."""
        return np.array(self.n_scored)

    def search(self):
        """A round of the sentences that are not done; how many they are afterwards."""
        cdef int i, j, n = <int>self.active.shape[0]
        status_array = np.zeros(self.sentences.shape[0], dtype=np.int32)
        cdef int32_t[::1] status = status_array
        cdef Listener listener = Listener(n)
        watch_spaces(self.spaces, <int>self.sentences.shape[0], &listener.watch)
        for j in prange(
            n + self.threads, nogil=True, schedule="dynamic", chunksize=1,
            num_threads=self.threads,
        ):
            if j >= n:
                await_others(&listener.watch)
                continue
            i = self.active[j]
            status[i] = self.search_one(i)
            task_done(&listener.watch)
        watch_spaces(self.spaces, <int>self.sentences.shape[0], NULL)
        listener.check()
        check(status_array)
        waiting = [i for i in np.asarray(self.active).tolist() if self.asked[i].n]
        self.active = np.array(waiting, dtype=np.int32)
        return len(waiting)

    cdef int search_one(self, int i) noexcept nogil:
        cdef Workspace *space = &self.spaces[i]
        cdef Lattice *g = &space.lattice
        cdef Model *model = &self.scorer.model
        cdef int s = self.sentences[i], state
        cdef Words x
        if self.n_rounds[i] == 0:
            x = words_of(
                &self.fields[self.starts[s], 0], self.fields.shape[1], self.lengths[s],
                model.morph_end,
            )
            state = begin(g, &x, model)
            if state == 0:
                state = take(
                    g, &self.arc_first[self.out_at[i]], &self.arc_heads[0], &self.arc_labels[0],
                    &self.arc_scores[0],
                )
            if state == 0:
                state = arrange(g, model)
            if state == 0:
                state = begin_kernel(g)
            if state == 0:
                state = search(
                    g, model, &space.search, max(ROOM * self.k, LEAST_ROOM), self.exact,
                    self.restarts, self.patience, self.temperature, self.seeds[s],
                )
        else:
            state = search_again(g, model, &space.search)
        self.n_rounds[i] += 1
        if state == 0:
            state = choose(space, model, self.k, self.label_share)
        return self.ask(i) if state == 0 else state

    cdef int ask(self, int i) noexcept nogil:
        """Ask for the pairs of the pool where one of the list is not scored.  -1 without memory."""
        cdef Workspace *space = &self.spaces[i]
        cdef Search *s = &space.search
        cdef Asked *asked = &self.asked[i]
        cdef int j, width = s.n + 1
        # No more than there are, and than the trees have.
        cdef int64_t most = min(
            self.spaces[i].lattice.n_pairs, 2 * <int64_t>s.pool.size * width
        )
        asked.n = 0
        asked.pairs = <Pair *>ensure(&asked.memory, most * sizeof(Pair) + 1)
        if asked.pairs == NULL:
            return -1
        for j in range(s.pool.size):
            if space.use[j]:
                self.ask_tree(i, s.pool.arcs + space.order[j] * width)
        if asked.n:
            # The others nearly as good: they are what the next round would find.
            for j in range(s.pool.size):
                self.ask_tree(i, s.pool.arcs + j * width)
        return 0

    cdef void ask_tree(self, int i, const int32_t *arcs) noexcept nogil:
        cdef Lattice *g = &self.spaces[i].lattice
        cdef Search *s = &self.spaces[i].search
        cdef int m, a
        set_tree(g, s, arcs)
        for m in range(1, g.n + 1):
            a = s.arc[m]
            if self.siblings:
                self.ask_pair(i, SIBLING, s.arc[s.prev[m]], a)
            if self.grandparents and g.head[a] > 0:
                self.ask_pair(i, GRANDPARENT, s.arc[g.head[a]], a)

    cdef inline void ask_pair(self, int i, int kind, int outer, int arc) noexcept nogil:
        cdef Lattice *g = &self.spaces[i].lattice
        cdef Asked *asked = &self.asked[i]
        cdef Pair *pair
        cdef int64_t at = (
            grandparent_place(g, outer, arc) if kind == GRANDPARENT
            else sibling_place(g, outer, arc)
        )
        if g.kernel_pairs[at] == g.kernel_pairs[at]:
            return
        g.kernel_pairs[at] = 0.0  # so that it is asked for once; `learn` has the score
        pair = &asked.pairs[asked.n]
        pair.kind = kind
        pair.outer = outer
        pair.arc = arc
        pair.at = at
        asked.n += 1

    def unscored(self):
        """The pairs that the sentences wait for: (owners, kinds, rows).

        owners: int32[p], ascending, which of the sentences.  kinds: int32[p], 1 for a sibling and 2
        for a grandparent.  rows: int32[p, 9], as parts.extract_parts has them.
        """
        cdef Py_ssize_t j, total = 0, at = 0
        cdef int i, p
        cdef Pair *pair
        for j in range(self.active.shape[0]):
            total += self.asked[self.active[j]].n
        owners_array = np.empty(total, dtype=np.int32)
        kinds_array = np.empty(total, dtype=np.int32)
        rows_array = np.empty((total, WIDTH), dtype=np.int32)
        cdef int32_t[::1] owners = owners_array
        cdef int32_t[::1] kinds = kinds_array
        cdef int32_t[:, ::1] rows = rows_array
        with nogil:
            for j in range(self.active.shape[0]):
                i = self.active[j]
                for p in range(self.asked[i].n):
                    pair = &self.asked[i].pairs[p]
                    owners[at] = i
                    kinds[at] = pair.kind
                    pair_part(
                        &self.spaces[i].lattice, pair.kind, pair.outer, pair.arc, &rows[at, 0]
                    )
                    at += 1
        return owners_array, kinds_array, rows_array

    def learn(self, scores):
        """Take in the scores of the pairs that were `unscored`: float32[p], in the same order."""
        cdef const float[::1] given = checked("scores", scores, np.float32, None)
        counts = [self.asked[i].n for i in np.asarray(self.active).tolist()]
        if len(scores) != sum(counts):
            raise ValueError(f"{len(scores)} scores, expected {sum(counts)}")
        cdef const int64_t[::1] first = np.cumsum([0, *counts], dtype=np.int64)
        cdef int i, j, p, n = <int>self.active.shape[0]
        cdef Listener listener = Listener(n)
        watch_spaces(self.spaces, <int>self.sentences.shape[0], &listener.watch)
        for j in prange(
            n + self.threads, nogil=True, schedule="dynamic", chunksize=1,
            num_threads=self.threads,
        ):
            if j >= n:
                await_others(&listener.watch)
                continue
            i = self.active[j]
            for p in range(self.asked[i].n):
                self.spaces[i].lattice.kernel_pairs[self.asked[i].pairs[p].at] = given[first[j] + p]
            self.n_scored[i] += self.asked[i].n
            self.asked[i].n = 0
            self.settle(i)
            task_done(&listener.watch)
        watch_spaces(self.spaces, <int>self.sentences.shape[0], NULL)
        listener.check()

    cdef void settle(self, int i) noexcept nogil:
        """Bring lattice and pool up to scores that are known now for all trees of the pool.

        The best such tree of all rounds is kept: others, with pairs that had no scores yet, may
        have pushed it out.
        """
        cdef Lattice *g = &self.spaces[i].lattice
        cdef Search *s = &self.spaces[i].search
        cdef Model *model = &self.scorer.model
        cdef int j, best = 0
        cdef double score
        revise(g)
        rescore(g, model, s)
        if self.n_rounds[i] > 1:
            score = exact_score(g, model, s, s.best)
            if score > s.pool.least:
                offer(g, s, 0, NONE, score)
        for j in range(1, s.pool.size):
            if s.pool.scores[j] > s.pool.scores[best]:
                best = j
        memcpy(s.best, s.pool.arcs + best * (s.n + 1), (s.n + 1) * sizeof(int32_t))

    def results(self):
        """The trees as they are known to be by now: what decoder.decode returns."""
        cdef int n_sentences = <int>self.sentences.shape[0], i
        heads_array = np.zeros((self.n_rows, self.k), dtype=np.int32)
        labels_array = np.zeros((self.n_rows, self.k), dtype=np.int32)
        scores_array = np.full((n_sentences, self.k), -np.inf)
        counts_array = np.zeros(n_sentences, dtype=np.int32)
        status_array = np.zeros(n_sentences, dtype=np.int32)
        cdef int32_t[:, ::1] heads = heads_array
        cdef int32_t[:, ::1] labels = labels_array
        cdef double[:, ::1] scores = scores_array
        cdef int32_t[::1] counts = counts_array
        cdef int32_t[::1] status = status_array
        cdef Listener listener = Listener()
        watch_spaces(self.spaces, n_sentences, &listener.watch)
        with nogil:
            for i in range(n_sentences):
                status[i] = choose(
                    &self.spaces[i], &self.scorer.model, self.k, self.label_share
                )
                if status[i] == 0:
                    counts[i] = write_list(
                        &self.spaces[i], self.k, &heads[self.out_at[i], 0],
                        &labels[self.out_at[i], 0], &scores[i, 0],
                    )
        watch_spaces(self.spaces, n_sentences, NULL)
        listener.check()
        check(status_array)
        return heads_array, labels_array, scores_array, counts_array
