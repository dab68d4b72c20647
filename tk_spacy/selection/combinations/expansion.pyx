"""The strongest slot combinations of weighted parts, by branch and bound.

Source: Taub-Tabib et al. 2015, section 2, for what a combination is (see slot_space.py); the search
is that of itemset mining over projected lists (Pei et al. 2001, PrefixSpan), with the bound of
weighted patterns: a combination's weight is the sum of the weights of the parts that hold it, so
neither it nor that of anything that extends it can lie outside of the sums of the negative and of
the positive ones.  A partial combination is left where the larger of the two is below what is asked
for: that is the threshold, or the weight of the last of the `most` best ones so far.

Each task is one first feature with all that extends it, those with the largest bound first.  A
thread keeps the best that it has met in an order of all combinations (by weight, then by features)
that has no ties, so the result does not depend on the number of threads.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcpy

import numpy as np

from tk_spacy.parallel.stopping cimport Listener, Watch, await_others, is_stopped, task_done
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_starts, check_values

cdef enum:
    MAX_SLOTS = 8
    NOTHING = -1
    NO_SLOT = -1
    FIRST_ROOM = 1024

cdef double SLACK = 1.0 - 1e-9     # of bounds, for the rounding of sums


cdef struct Found:
    # A combination and its weight.
    double weight
    int32_t features[MAX_SLOTS]


cdef struct Parts:
    # Part p has in slot s the features ids[begins[p * (n_slots + 1) + s]] and on.
    const int32_t *begins
    const int32_t *ids
    const double *weights
    int32_t n_parts
    int32_t n_slots
    int32_t n_features
    int32_t last_required
    const int32_t *skips


cdef struct Level:
    # What extends a combination by one slot: features, and the parts that have each of them.
    int32_t *features
    int32_t *ends           # of each feature's parts
    int32_t *held
    Py_ssize_t room_features
    Py_ssize_t room_held


cdef struct Search:
    # Of one thread.
    const Parts *parts
    Watch *watch
    double *limits          # one of each thread; the largest holds for all
    int n_limits
    int number
    double threshold
    Py_ssize_t most         # 0: all
    double *plus            # of each feature
    double *minus
    double *total
    int32_t *counts
    Level levels[MAX_SLOTS]
    int32_t chosen[MAX_SLOTS]
    Found *found
    Py_ssize_t n
    Py_ssize_t room
    int failed


def strongest(
    starts, ids, slots, skips, weights, *, most=None, threshold=0.0, n_threads=None
):
    """The complete combinations of parts whose weights are the largest, positive or negative.

    starts, ids: int32[p + 1] and int32[_]; the features of part i are ids[starts[i]:starts[i + 1]],
    ascending.  slots: int32[f], each feature's slot, not falling.  skips: int32[s], 1 for slots
    that may be left out.  weights: float64[p].
    most: how many, at most; None for all.  threshold: a weight's least absolute value; 0 for all
    that are not 0.

    Returns (features, weights): int32[c, s], -1 where a slot is left out, and float64[c], the
    strongest first (equal ones by their features).  Weights are sums in the parts' order.
    Raises TypeError or ValueError for arrays that do not fit, MemoryError.
    """
    starts = checked("starts", starts, np.int32, None)
    ids = checked("ids", ids, np.int32, None)
    slots = checked("slots", slots, np.int32, None)
    skips = checked("skips", skips, np.int32, None)
    weights = checked("weights", weights, np.float64, len(starts) - 1)
    if most is not None and most < 1:
        raise ValueError(f"{most} combinations, expected 1 at least")
    if not 0 <= threshold < np.inf:
        raise ValueError(f"threshold is {threshold}, expected a number from 0 on")
    if not len(skips) <= MAX_SLOTS:
        raise ValueError(f"{len(skips)} slots, expected {MAX_SLOTS} at most")
    if not np.isfinite(weights).all():
        raise ValueError("weights are not finite")
    check_values(slots, 0, <int32_t>len(skips) - 1, "slots")
    check_values(skips, 0, 1, "skips")
    check_starts(starts, len(ids), "starts")
    check_values(ids, 0, <int32_t>len(slots) - 1, "ids")
    if (np.diff(slots) < 0).any():
        raise ValueError("slots of features fall, expected features slot by slot")
    begins = _begins(starts, slots[ids], len(skips))
    required = np.flatnonzero(skips == 0)
    cdef const int32_t[::1] of_begins = np.append(begins.ravel(), np.int32(0))
    cdef const int32_t[::1] of_ids = np.append(ids, np.int32(0))
    cdef const double[::1] of_weights = np.append(weights, 0.0)
    cdef const int32_t[::1] of_skips = np.append(skips, np.int32(0))
    cdef Parts parts
    parts.begins, parts.ids, parts.weights = &of_begins[0], &of_ids[0], &of_weights[0]
    parts.n_parts, parts.n_slots = <int32_t>len(weights), <int32_t>len(skips)
    parts.n_features, parts.skips = <int32_t>len(slots), &of_skips[0]
    parts.last_required = <int32_t>required[-1] if len(required) else NO_SLOT
    return _strongest(
        &parts, 0 if most is None else most, threshold, effective_n_threads(n_threads)
    )


def _begins(starts, slots, n_slots):
    """Where the features of each slot of each part begin: int32[p, s + 1]; slots: of all ids."""
    n = len(starts) - 1
    part = np.repeat(np.arange(n), np.diff(starts))
    counts = np.zeros((n, n_slots + 1), dtype=np.int32)
    np.add.at(counts, (part, slots + 1), 1)
    return np.ascontiguousarray(
        (np.cumsum(counts, axis=1) + starts[:-1, None]).astype(np.int32)
    )


cdef object _strongest(const Parts *parts, Py_ssize_t most, double threshold, int threads):
    cdef Search *searches = <Search *>calloc(threads, sizeof(Search))
    cdef double *limits = <double *>calloc(threads, sizeof(double))
    cdef int32_t *everything = <int32_t *>malloc((parts.n_parts + 1) * sizeof(int32_t))
    cdef Py_ssize_t n_tasks = 0, i
    cdef int failed
    cdef Listener listener
    cdef int64_t[::1] tasks
    cdef int32_t[::1] task_slots
    try:
        if searches == NULL or limits == NULL or everything == NULL:
            raise MemoryError("no memory to search combinations in")
        for i in range(parts.n_parts):
            everything[i] = <int32_t>i
        for i in range(threads):
            limits[i] = threshold
            searches[i].parts, searches[i].limits, searches[i].n_limits = parts, limits, threads
            searches[i].number, searches[i].most = <int>i, most
            searches[i].threshold = threshold
            if make_search(&searches[i]):
                raise MemoryError("no memory to search combinations in")
        if parts.last_required == NO_SLOT:
            whole_sum(&searches[0], everything)
        first = _first_features(&searches[0], everything)
        order = np.argsort(-first["bound"], kind="stable")
        tasks = first["feature"][order]
        task_slots = first["slot"][order]
        n_tasks = len(order)
        listener = Listener(n_tasks)
        for i in range(threads):
            searches[i].watch = &listener.watch
        for i in prange(
            n_tasks + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
        ):
            if i < n_tasks:
                if not is_stopped(&listener.watch):
                    run_task(&searches[threadid()], task_slots[i], <int32_t>tasks[i])
                task_done(&listener.watch)
            else:
                await_others(&listener.watch)
        listener.check()
        failed = 0
        for i in range(threads):
            failed |= searches[i].failed
        if failed:
            raise MemoryError("no memory for so many combinations")
        return _joined(searches, threads, most, parts.n_slots)
    finally:
        if searches != NULL:
            for i in range(threads):
                free_search(&searches[i])
        free(searches)
        free(limits)
        free(everything)


cdef object _first_features(Search *search, const int32_t *everything):
    """The features that combinations may begin with, and their bounds."""
    cdef const Parts *parts = search.parts
    cdef int32_t slot, f
    cdef Py_ssize_t i, n
    features, slots, bounds = [], [], []
    for slot in range(parts.n_slots):
        with nogil:
            n = tally(search, everything, parts.n_parts, slot)
        if n < 0:
            raise MemoryError("no memory to search combinations in")
        for i in range(n):
            f = search.levels[slot].features[i]
            features.append(f)
            slots.append(slot)
            bounds.append(max(search.plus[f], search.minus[f]))
            search.counts[f] = 0
        if not parts.skips[slot]:
            break
    return {
        "feature": np.array(features, dtype=np.int64),
        "slot": np.array(slots, dtype=np.int32),
        "bound": np.array(bounds, dtype=np.float64),
    }


cdef object _joined(Search *searches, int threads, Py_ssize_t most, int n_slots):
    cdef Py_ssize_t n = 0, i, j, done = 0
    cdef int t
    for t in range(threads):
        n += searches[t].n
    cdef Found *all_found = <Found *>malloc((n + 1) * sizeof(Found))
    if all_found == NULL:
        raise MemoryError("no memory for so many combinations")
    for t in range(threads):
        if searches[t].n:
            memcpy(all_found + done, searches[t].found, searches[t].n * sizeof(Found))
        done += searches[t].n
    with nogil:
        if most and n > most:
            select_best(all_found, n, most)
            n = most
        qsort(all_found, n, sizeof(Found), compare)
    features = np.empty((n, n_slots), dtype=np.int32)
    weights = np.empty(n)
    cdef int32_t[:, ::1] out = features
    cdef double[::1] out_weights = weights
    for i in range(n):
        out_weights[i] = all_found[i].weight
        for j in range(n_slots):
            out[i, j] = all_found[i].features[j]
    free(all_found)
    return features, weights


cdef int make_search(Search *search) noexcept nogil:
    cdef Py_ssize_t n = search.parts.n_features + 1
    cdef int i
    search.plus = <double *>malloc(n * sizeof(double))
    search.minus = <double *>malloc(n * sizeof(double))
    search.total = <double *>malloc(n * sizeof(double))
    search.counts = <int32_t *>calloc(n, sizeof(int32_t))
    for i in range(MAX_SLOTS):
        search.chosen[i] = NOTHING
    return (
        search.plus == NULL or search.minus == NULL or search.total == NULL
        or search.counts == NULL
    )


cdef void free_search(Search *search) noexcept nogil:
    cdef int i
    free(search.plus)
    free(search.minus)
    free(search.total)
    free(search.counts)
    free(search.found)
    for i in range(MAX_SLOTS):
        free(search.levels[i].features)
        free(search.levels[i].ends)
        free(search.levels[i].held)


cdef void whole_sum(Search *search, const int32_t *everything) noexcept nogil:
    """The combination that leaves out every slot, where that is one."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(search.parts.n_parts):
        total += search.parts.weights[i]
    note(search, total)


cdef void run_task(Search *search, int32_t slot, int32_t feature) noexcept nogil:
    """One first feature and all that extends it."""
    cdef const Parts *parts = search.parts
    cdef Py_ssize_t n = 0
    cdef int32_t p, j
    cdef double plus = 0.0, minus = 0.0, total = 0.0, weight
    cdef int32_t *list
    if search.failed:
        return
    refresh(search)
    list = <int32_t *>malloc((parts.n_parts + 1) * sizeof(int32_t))
    if list == NULL:
        search.failed = 1
        return
    for p in range(parts.n_parts):
        for j in range(
            parts.begins[p * <Py_ssize_t>(parts.n_slots + 1) + slot],
            parts.begins[p * <Py_ssize_t>(parts.n_slots + 1) + slot + 1],
        ):
            if parts.ids[j] == feature:
                list[n] = p
                n += 1
                weight = parts.weights[p]
                total += weight
                if weight > 0:
                    plus += weight
                else:
                    minus -= weight
                break
    if within(search, plus, minus):
        search.chosen[slot] = feature
        if slot >= parts.last_required:
            note(search, total)
        extend(search, list, n, slot + 1)
        search.chosen[slot] = NOTHING
    free(list)


cdef inline bint within(const Search *search, double plus, double minus) noexcept nogil:
    """Whether what has these sums may be asked for."""
    cdef double bound = plus if plus > minus else minus
    return bound > 0.0 and bound >= search.threshold * SLACK


cdef void refresh(Search *search) noexcept nogil:
    """What another thread has found raises the threshold here too."""
    cdef int i
    for i in range(search.n_limits):
        if search.limits[i] > search.threshold:
            search.threshold = search.limits[i]


cdef Py_ssize_t tally(
    Search *search, const int32_t *list, Py_ssize_t n, int32_t slot
) noexcept nogil:
    """Sums over parts, for each feature of a slot; their number, -1 where there is no memory.

    The features stand in the slot's level, and their counts must be put back to 0.
    """
    cdef const Parts *parts = search.parts
    cdef Level *level = &search.levels[slot]
    cdef Py_ssize_t i, found = 0, at
    cdef int32_t j, f
    cdef double weight
    for i in range(n):
        at = list[i] * <Py_ssize_t>(parts.n_slots + 1) + slot
        weight = parts.weights[list[i]]
        if found + parts.begins[at + 1] - parts.begins[at] > level.room_features:
            if more_features(level, found + parts.begins[at + 1] - parts.begins[at]):
                return -1
        for j in range(parts.begins[at], parts.begins[at + 1]):
            f = parts.ids[j]
            if search.counts[f] == 0:
                level.features[found] = f
                found += 1
                search.plus[f] = search.minus[f] = search.total[f] = 0.0
            search.counts[f] += 1
            search.total[f] += weight
            if weight > 0:
                search.plus[f] += weight
            else:
                search.minus[f] -= weight
    return found


cdef void extend(Search *search, const int32_t *list, Py_ssize_t n, int32_t first) noexcept nogil:
    """All combinations that extend the chosen one, which the listed parts hold."""
    cdef const Parts *parts = search.parts
    cdef Level *level
    cdef int32_t slot, f
    cdef Py_ssize_t i, n_features, kept, held, start
    for slot in range(first, parts.n_slots):
        if search.failed or is_stopped(search.watch):
            return
        level = &search.levels[slot]
        n_features = tally(search, list, n, slot)
        if n_features < 0:
            search.failed = 1
            return
        kept = held = 0
        for i in range(n_features):
            f = level.features[i]
            if not within(search, search.plus[f], search.minus[f]):
                search.counts[f] = 0
                continue
            search.chosen[slot] = f
            if slot >= parts.last_required:
                note(search, search.total[f])
            level.features[kept] = f
            level.ends[kept] = <int32_t>held
            held += search.counts[f]
            # From here on the feature's place among those that are kept, counted down from -1.
            search.counts[f] = <int32_t>(-1 - kept)
            kept += 1
        if slot + 1 < parts.n_slots and kept:
            if held > level.room_held and more_held(level, held):
                search.failed = 1
            else:
                project(search, list, n, slot)
        for i in range(kept):
            search.counts[level.features[i]] = 0
        if slot + 1 < parts.n_slots and not search.failed:
            start = 0
            for i in range(kept):
                search.chosen[slot] = level.features[i]
                extend(search, level.held + start, level.ends[i] - start, slot + 1)
                start = level.ends[i]
        search.chosen[slot] = NOTHING
        if not parts.skips[slot]:
            return


cdef void project(Search *search, const int32_t *list, Py_ssize_t n, int32_t slot) noexcept nogil:
    """The parts of each feature that is kept; its end moves from its start to its end."""
    cdef const Parts *parts = search.parts
    cdef Level *level = &search.levels[slot]
    cdef Py_ssize_t i, at
    cdef int32_t j, place
    for i in range(n):
        at = list[i] * <Py_ssize_t>(parts.n_slots + 1) + slot
        for j in range(parts.begins[at], parts.begins[at + 1]):
            place = -1 - search.counts[parts.ids[j]]
            if place >= 0:
                level.held[level.ends[place]] = list[i]
                level.ends[place] += 1


cdef int more_features(Level *level, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t room = max(<Py_ssize_t>FIRST_ROOM, 2 * n)
    cdef int32_t *grown = <int32_t *>realloc(level.features, room * sizeof(int32_t))
    if grown == NULL:
        return 1
    level.features = grown
    grown = <int32_t *>realloc(level.ends, room * sizeof(int32_t))
    if grown == NULL:
        return 1
    level.ends = grown
    level.room_features = room
    return 0


cdef int more_held(Level *level, Py_ssize_t n) noexcept nogil:
    cdef int32_t *grown = <int32_t *>realloc(level.held, 2 * n * sizeof(int32_t))
    if grown == NULL:
        return 1
    level.held, level.room_held = grown, 2 * n
    return 0


cdef void note(Search *search, double weight) noexcept nogil:
    """Keeps the chosen combination, if it is strong enough."""
    cdef Found *grown
    cdef Py_ssize_t room
    if weight == 0.0 or fabs(weight) < search.threshold:
        return
    if search.n == search.room:
        if search.most and search.n >= 2 * search.most:
            select_best(search.found, search.n, search.most)
            search.n = search.most
            search.threshold = max(
                search.threshold, fabs(search.found[search.most - 1].weight)
            )
            search.limits[search.number] = search.threshold
            refresh(search)
            if fabs(weight) < search.threshold:
                return
        else:
            room = max(<Py_ssize_t>FIRST_ROOM, 2 * search.n)
            if search.most:
                room = min(room, 2 * search.most)
            grown = <Found *>realloc(search.found, room * sizeof(Found))
            if grown == NULL:
                search.failed = 1
                return
            search.found, search.room = grown, room
    search.found[search.n].weight = weight
    memcpy(search.found[search.n].features, search.chosen, sizeof(search.chosen))
    search.n += 1


cdef int compare(const void *a, const void *b) noexcept nogil:
    """The stronger one first; of equally strong ones by their features."""
    cdef const Found *x = <const Found *>a
    cdef const Found *y = <const Found *>b
    cdef int i
    if fabs(x.weight) != fabs(y.weight):
        return -1 if fabs(x.weight) > fabs(y.weight) else 1
    for i in range(MAX_SLOTS):
        if x.features[i] != y.features[i]:
            return -1 if x.features[i] < y.features[i] else 1
    return 0


cdef void select_best(Found *found, Py_ssize_t n, Py_ssize_t most) noexcept nogil:
    """Moves the first `most` of the order to the front, the last of them to most - 1."""
    cdef Py_ssize_t low = 0, high = n - 1, i, j
    cdef Found pivot, kept
    while low < high:
        pivot = found[low + (high - low) // 2]
        i, j = low, high
        while i <= j:
            while compare(&found[i], &pivot) < 0:
                i += 1
            while compare(&found[j], &pivot) > 0:
                j -= 1
            if i <= j:
                kept = found[i]
                found[i] = found[j]
                found[j] = kept
                i += 1
                j -= 1
        if most - 1 <= j:
            high = j
        elif most - 1 >= i:
            low = i
        else:
            return
