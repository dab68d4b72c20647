"""Candidate lists of many sentences as flat arrays, for compiled loops."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from tk_spacy.kernels.forest import Forest
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_starts, check_values


MAX_FEATURES = 1 << 25
"""Basic features that may be numbered: a step of a pattern has so many bits for them."""


NO_TOPS = np.zeros((0, 2), dtype=np.int32)


cdef class Corpus:
    """Candidate lists, each an ArcLists or SlotLists, with features 0..n_features-1.

    slots: None, or what a pattern of parts may be (see combinations.slot_space): int32[n_features],
        each feature's slot, not falling; int32[s], the last slot before each one that may not be
        left out, -1 for none; uint8[s], 1 where a pattern that ends in a slot is complete, and so
        may have a weight.  A pattern then has at most one feature of each slot.

    trees: whether patterns of trees will be asked for; without them it takes less time to make.

    Raises ValueError for a list whose arrays do not fit together, and for more features than a
    pattern's step has room for.
    """

    def __init__(self, lists, n_features, *, trees=True, slots=None):
        if not 0 <= n_features <= MAX_FEATURES:
            raise ValueError(f"{n_features} features, expected 0 to {MAX_FEATURES}")
        self.n_lists = len(lists)
        self.n_features = n_features
        self._members = [item.members for item in lists]
        arc_starts, ids, members, children, siblings = [np.zeros(1, np.int64)], [], [], [], []
        arc_differs, marks, nodes, tops = [], [], [], []
        sizes = np.array([item.members.shape for item in lists], dtype=np.int32).reshape(-1, 2)
        self.has_trees = trees and slots is None and all(item.heads is not None for item in lists)
        n_ids = 0
        for item in lists:
            _check(item, n_features)
            arc_starts.append(item.starts[1:].astype(np.int64) + n_ids)
            n_ids += len(item.ids)
            ids.append(item.ids)
            members.append(item.members.ravel())
            arc_differs.append(_differing_arcs(item))
            if self.has_trees:
                first, following = linked(item.heads)
                children.append(first.ravel())
                siblings.append(following.ravel())
                marks.append(_marked(item.members, following))
                numbers, representatives = _differing_nodes(item)
                nodes.append(numbers.ravel())
                tops.append(representatives)
            else:
                tops.append(NO_TOPS)
        cdef const int64_t[::1] starts = np.concatenate(arc_starts)
        cdef const uint64_t[::1] bits
        cdef const int32_t[::1] k = _column(sizes[:, 0]), n = _column(sizes[:, 1])
        words = sizes[:, 0].astype(np.int64) * sizes[:, 1]
        cdef const int64_t[::1] first_arc = _before([item.n_arcs for item in lists])
        cdef const int64_t[::1] first_member = _before(words)
        cdef const int64_t[::1] first_node = _before(words + sizes[:, 0])
        cdef const int32_t[::1] all_ids = _joined(ids), all_members = _joined(members)
        cdef const int32_t[::1] first_child = _joined(children), next_sibling = _joined(siblings)
        cdef const uint8_t[::1] differs = _joined(arc_differs, np.uint8)
        cdef const uint8_t[::1] marked = _joined(marks, np.uint8)
        cdef const int64_t[::1] first_mark = _before(sizes[:, 1] + 1)
        cdef const int64_t[::1] first_top = _before([len(found) for found in tops])
        cdef const int32_t[::1] all_nodes = _joined(nodes)
        cdef const int32_t[::1] top_rows = _joined([found[:, 0] for found in tops])
        cdef const int32_t[::1] top_words = _joined([found[:, 1] for found in tops])
        bits = _bits_of_arcs(starts, all_ids)
        self._kept = (
            bits, starts, k, n, first_arc, first_member, first_node, all_ids, all_members,
            first_child, next_sibling, differs, marked, first_mark, first_top, all_nodes, top_rows,
            top_words,
        )
        self.lists.arc_differs, self.lists.marked = &differs[0], &marked[0]
        self.lists.first_mark, self.lists.first_top = &first_mark[0], &first_top[0]
        self.lists.nodes = &all_nodes[0]
        self.lists.top_rows, self.lists.top_words = &top_rows[0], &top_words[0]
        self.lists.arc_starts, self.lists.ids = &starts[0], &all_ids[0]
        self.lists.bits = &bits[0]
        self.lists.k, self.lists.n = &k[0], &n[0]
        self.lists.first_arc, self.lists.first_member = &first_arc[0], &first_member[0]
        self.lists.first_node, self.lists.members = &first_node[0], &all_members[0]
        self.lists.first_child, self.lists.next_sibling = &first_child[0], &next_sibling[0]
        self._take_slots(slots)

    cdef int _take_slots(self, slots) except -1:
        cdef const int32_t[::1] of_feature, after
        cdef const uint8_t[::1] completes
        self.lists.slots.of_feature = NULL
        if slots is None:
            return 0
        of_feature = checked("slots of features", slots[0], np.int32, self.n_features)
        after = checked("slots before", slots[1], np.int32, None)
        completes = checked("completing slots", slots[2], np.uint8, after.shape[0])
        check_values(of_feature, 0, <int32_t>after.shape[0] - 1, "slots of features")
        check_values(after, -1, <int32_t>after.shape[0] - 1, "slots before")
        if (np.diff(slots[0]) < 0).any():
            raise ValueError("slots of features fall, expected features slot by slot")
        if not self.n_features:
            of_feature = np.zeros(1, dtype=np.int32)
        if not after.shape[0]:
            after, completes = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.uint8)
        self._slots = of_feature, after, completes
        self.lists.slots.of_feature = &of_feature[0]
        self.lists.slots.after, self.lists.slots.completes = &after[0], &completes[0]
        return 0

    def __len__(self):
        return self.n_lists

    @property
    def lengths(self):
        """The number of candidates of each list: int32[lists]."""
        return np.array([self.lists.k[i] for i in range(self.n_lists)], dtype=np.int32)

    def same_trees(self, rows):
        """Of each list, which candidates have the arcs of the given one: bool[k].

        rows: a candidate of each list.  Raises ValueError for one that there is not.
        """
        if len(rows) != self.n_lists:
            raise ValueError(f"{len(rows)} candidates for {self.n_lists} lists")
        found = []
        for members, row in zip(self._members, rows):
            if not 0 <= row < len(members):
                raise ValueError(f"there is no candidate {row} of {len(members)}")
            found.append((members == members[row]).all(axis=1))
        return found


def _bits_of_arcs(const int64_t[::1] starts, const int32_t[::1] ids):
    """Of each arc the bits of its features: a look at one tells most of what it does not have."""
    cdef Py_ssize_t n = starts.shape[0] - 1, arc, i
    found = np.zeros((n + 1) * ARC_WORDS, dtype=np.uint64)
    cdef uint64_t[::1] bits = found
    for arc in range(n):
        for i in range(starts[arc], starts[arc + 1]):
            bits[ARC_WORDS * arc + (ids[i] >> 6 & (ARC_WORDS - 1))] |= <uint64_t>1 << (ids[i] & 63)
    return found


def linked(heads):
    """Of trees the leftmost child of each word and its next sibling to the right, 0 for none.

    heads: int32[k, n].  Returns two int32[k, n + 1]; column 0 is the root.
    """
    cdef const int32_t[:, ::1] rows = heads
    cdef Py_ssize_t k = rows.shape[0], n = rows.shape[1], j, m
    first_child = np.zeros((k, n + 1), dtype=np.int32)
    next_sibling = np.zeros((k, n + 1), dtype=np.int32)
    cdef int32_t[:, ::1] first = first_child, following = next_sibling
    for j in range(k):
        for m in range(n, 0, -1):
            following[j, m] = first[j, rows[j, m - 1]]
            first[j, rows[j, m - 1]] = <int32_t>m
    return first_child, next_sibling


def _differing_arcs(item):
    """Of each distinct arc whether some tree lacks it."""
    members = item.members[item.members >= 0]
    return np.bincount(members, minlength=item.n_arcs) < len(item.members)


def _marked(members, next_sibling):
    """Of the root and each word whether some trees have another arc or left sibling."""
    k, n = members.shape
    left = np.zeros((k, n + 1), dtype=np.int32)
    rows, words = np.nonzero(next_sibling)
    left[rows, next_sibling[rows, words]] = words
    found = (left != left[0]).any(axis=0)
    found[1:] |= (members != members[0]).any(axis=0)
    return found


def _differing_nodes(item):
    """The nodes of a list's forest that not all trees have as often: int32[k, n + 1], int32[_, 2].

    Each word's node, -1 for others and where nothing hangs below; and where each node is found.
    """
    forest = Forest.make(item.heads, item.members)
    k, n_nodes = len(item.heads), forest.n_nodes
    rows = np.arange(k)[:, None]
    times = np.bincount((rows * n_nodes + forest.trees).ravel(), minlength=k * n_nodes)
    times = times.reshape(k, n_nodes)
    differ = (times != times[0]).any(axis=0) & (np.diff(forest.starts) > 0)
    new = np.where(differ, np.cumsum(differ) - 1, -1).astype(np.int32)
    nodes = new[forest.trees]
    found, where = np.unique(nodes, return_index=True)
    where = where[found >= 0]
    return nodes, np.stack(np.divmod(where, nodes.shape[1]), axis=1).astype(np.int32)


def _check(item, n_features):
    check_starts(item.starts, len(item.ids), "starts")
    check_values(item.ids, 0, <int32_t>(n_features - 1), "ids")
    # In trees each word has an arc; of other parts there may be none.
    fewest = -1 if item.heads is None else 0
    check_values(item.members.ravel(), fewest, <int32_t>(item.n_arcs - 1), "members")
    if item.heads is not None:
        check_values(item.heads.ravel(), 0, <int32_t>item.heads.shape[1], "heads")
    shape = item.members.shape if item.heads is None else item.heads.shape
    ends = item.starts[0], item.starts[item.n_arcs]
    if item.members.shape != shape or ends != (0, len(item.ids)):
        raise ValueError("a list's members, heads, starts and ids do not fit together")


# One more than there are, so that there is an address where there is none.


def _column(values):
    return np.append(values, 0).astype(np.int32)


def _joined(arrays, dtype=np.int32):
    return np.concatenate([*arrays, np.zeros(1, dtype=dtype)]).astype(dtype, copy=False)


cdef void spread_marks(
    const Tree *tree, const uint8_t *marked, int32_t *head, int32_t *below, int32_t most
) noexcept nogil:
    cdef int32_t word, above, steps
    for word in range(tree.n + 1):
        below[word] = most + 1
    for above in range(tree.n + 1):
        word = tree.first_child[above]
        while word:
            head[word] = above
            word = tree.next_sibling[word]
    for word in range(1, tree.n + 1):
        if not marked[word]:
            continue
        above, steps = head[word], 1
        while steps < below[above]:
            below[above] = steps
            if above == 0:
                break
            above, steps = head[above], steps + 1


def _before(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
