"""Where trees break the constraints of well-formed trees (see `constraints`): one pass a tree.

Relations and kinds of violations are numbers below 64, sets of them are bits.  Everything is a
whole number, so nothing depends on the order of work.
"""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_table

cdef enum:
    NO_KIND = -1
    NOMINAL = 1
    NEGATING = 2
    POSSESSIVE = 4
    OUTER = 8
    PROPER = 16
    MARK = 32
    INNER = 64

FLAGS = {
    "nominal": NOMINAL, "negating": NEGATING, "possessive": POSSESSIVE, "outer": OUTER,
    "proper": PROPER, "mark": MARK,
}
"""Of a word: a nominal's tag; an adverb or particle that negates; Poss=Yes; Subject=Outer; a proper
noun; a punctuation mark."""
INNER_SUBJECT = INNER
"""Added to the number of a label's relation where it is a subject of the clause itself."""


cdef int check_place(str what, int place) except -1:
    """Raises ValueError for what is no bit."""
    if not 0 <= place < MOST:
        raise ValueError(f"{what} has the number {place}, expected 0 to {MOST - 1}")
    return 0


cdef class Rules:
    """The constraints in numbers.

    numbers: of relations, by their names, from 1 to 63; 0 is any other.  Kinds are 0 to 63.
    Raises ValueError for other numbers.
    """

    def __cinit__(self, numbers):
        cdef int i
        if not all(0 < number < MOST for number in numbers.values()):
            raise ValueError(f"relations have the numbers {numbers}, expected 1 to {MOST - 1}")
        for i in range(MOST):
            self.tables.leaf[i] = self.tables.left_headed[i] = self.tables.of_tags[i] = NO_KIND
            self.tables.allowed[i] = 0
        self.tables.advmod, self.tables.det = numbers["advmod"], numbers["det"]
        self.tables.fixed, self.tables.goeswith = numbers["fixed"], numbers["goeswith"]
        self.tables.obj, self.tables.obl = numbers["obj"], numbers["obl"]
        self.tables.punct, self.tables.root = numbers["punct"], numbers["root"]

    def add_leaf(self, int relation, int kind, uint64_t allowed):
        """A relation whose words have no dependents but those with some relations."""
        check_place("a relation", relation)
        check_place("a kind", kind)
        self.tables.leaf[relation], self.tables.allowed[relation] = kind, allowed

    def add_left_headed(self, int relation, int kind):
        """A relation whose head stands before the word."""
        check_place("a relation", relation)
        check_place("a kind", kind)
        self.tables.left_headed[relation] = kind

    def add_tags(self, int relation, int kind):
        """A relation that only some tags fit."""
        check_place("a relation", relation)
        check_place("a kind", kind)
        self.tables.of_tags[relation] = kind

    def set_kinds(
        self, int roots, int subjects, int objects, int oblique, int punct_causes, int punct_is,
        int punct_tag, int fixed_tag,
    ):
        """The kinds of violations that are no relation's own."""
        for kind in (
            roots, subjects, objects, oblique, punct_causes, punct_is, punct_tag, fixed_tag
        ):
            check_place("a kind", kind)
        self.tables.roots, self.tables.subjects, self.tables.objects = roots, subjects, objects
        self.tables.oblique, self.tables.punct_causes = oblique, punct_causes
        self.tables.punct_is, self.tables.punct_tag = punct_is, punct_tag
        self.tables.fixed_tag = fixed_tag

    def set_groups(self, uint64_t of_possessives, uint64_t nominal, uint64_t of_predicates):
        """What a possessive `det` may have; relations of nominals; what a predicate has."""
        self.tables.of_possessives, self.tables.nominal = of_possessives, nominal
        self.tables.of_predicates = of_predicates


def find_violations(heads, labels, relations, misfits, flags, Rules rules not None):
    """The kinds of violations at each word of trees, and those for which it is to blame.

    heads: int32[k, n], 0..n, -1 for none.  labels: int32[k, n], below l.
    relations: uint8[l], each label's number, and INNER_SUBJECT.
    misfits: uint64[n], the relations that a word's tag does not fit.  flags: uint8[n], of FLAGS.
    Returns two of uint64[k, n].  Raises TypeError or ValueError for other arrays.
    """
    heads = checked("heads", heads, np.int32, None, None)
    labels = checked("labels", labels, np.int32, *heads.shape)
    relations = checked("relations", relations, np.uint8, None)
    misfits = checked("misfits", misfits, np.uint64, heads.shape[1])
    flags = checked("flags", flags, np.uint8, heads.shape[1])
    check_table(heads, -1, <int32_t>heads.shape[1], "heads")
    check_table(labels, 0, <int32_t>len(relations) - 1, "labels")
    at = np.zeros(heads.shape, dtype=np.uint64)
    blamed = np.zeros(heads.shape, dtype=np.uint64)
    cdef const int32_t[:, ::1] own_heads = heads, own_labels = labels
    cdef const uint8_t[::1] own_relations = relations, own_flags = flags
    cdef const uint64_t[::1] own_misfits = misfits
    cdef uint64_t[:, ::1] at_bits = at, blamed_bits = blamed
    if own_heads.shape[0] and own_heads.shape[1] and not find_in_trees(
        &own_heads[0, 0], &own_labels[0, 0], own_heads.shape[0], own_heads.shape[1],
        &own_relations[0], &own_misfits[0], &own_flags[0], &rules.tables, &at_bits[0, 0],
        &blamed_bits[0, 0], NULL, 0, NULL,
    ):
        raise MemoryError(f"no memory for the constraints of {own_heads.shape[1]} words")
    return at, blamed


def count_bits(const uint64_t[:, ::1] bits not None, kinds):
    """How many words of each row have each of these bits: int32[k, len(kinds)]."""
    cdef Py_ssize_t j
    cdef const int32_t[::1] places = kind_places(kinds)
    out_array = np.zeros((bits.shape[0], places.shape[0]), dtype=np.int32)
    cdef int32_t[:, ::1] out = out_array
    if out.shape[0] and out.shape[1] and bits.shape[1]:
        for j in range(bits.shape[0]):
            add_bits(&bits[j, 0], bits.shape[1], &places[0], places.shape[0], &out[j, 0])
    return out_array


def count_violations(heads, labels, relations, misfits, flags, Rules rules not None, kinds):
    """How often the trees of l lists have each of these kinds of violations.

    heads, labels, relations, misfits, flags: of each list as those of `find_violations`.
    Returns of each list int32[k, len(kinds)].  Raises TypeError or ValueError for other arrays.
    """
    cdef Py_ssize_t i, k, n, n_kinds = len(kinds)
    cdef const int32_t[:, ::1] own_heads, own_labels
    cdef const uint8_t[::1] own_relations, own_flags
    cdef const uint64_t[::1] own_misfits
    cdef const int32_t[::1] places = kind_places(kinds)
    cdef int32_t[:, ::1] out
    cdef bint is_done
    found = []
    if not len(heads) == len(labels) == len(relations) == len(misfits) == len(flags):
        raise ValueError(
            f"heads of {len(heads)} lists, labels of {len(labels)}, relations of "
            f"{len(relations)}, misfits of {len(misfits)} and flags of {len(flags)}"
        )
    for i in range(len(heads)):
        own_heads = checked("heads", heads[i], np.int32, None, None)
        k, n = own_heads.shape[0], own_heads.shape[1]
        own_labels = checked("labels", labels[i], np.int32, k, n)
        own_relations = checked("relations", relations[i], np.uint8, None)
        own_misfits = checked("misfits", misfits[i], np.uint64, n)
        own_flags = checked("flags", flags[i], np.uint8, n)
        check_table(own_heads, -1, <int32_t>n, "heads")
        check_table(own_labels, 0, <int32_t>own_relations.shape[0] - 1, "labels")
        counts = np.zeros((k, n_kinds), dtype=np.int32)
        found.append(counts)
        if not (k and n and n_kinds):
            continue
        out = counts
        with nogil:
            is_done = find_in_trees(
                &own_heads[0, 0], &own_labels[0, 0], k, n, &own_relations[0], &own_misfits[0],
                &own_flags[0], &rules.tables, NULL, NULL, &places[0], n_kinds, &out[0, 0],
            )
        if not is_done:
            raise MemoryError(f"no memory for the constraints of {n} words")
    return found


cdef object kind_places(kinds):
    """The places of kinds as int32[_].  Raises ValueError for those that are no bits."""
    places = np.array(list(kinds), dtype=np.int32)
    if not all(0 <= place < MOST for place in places.tolist()):
        raise ValueError(f"kinds have the numbers {places.tolist()}, expected 0 to {MOST - 1}")
    return places


cdef void add_bits(
    const uint64_t *bits, Py_ssize_t n, const int32_t *places, Py_ssize_t n_places, int32_t *counts
) noexcept nogil:
    cdef Py_ssize_t i, m
    for i in range(n_places):
        for m in range(n):
            counts[i] += bits[m] >> places[i] & 1


cdef bint find_in_trees(
    const int32_t *heads,                # IN: [k, n]
    const int32_t *labels,               # IN: [k, n]
    Py_ssize_t k, Py_ssize_t n,          # 1 at least
    const uint8_t *relations,            # IN
    const uint64_t *misfits,             # IN: [n]
    const uint8_t *flags,                # IN: [n]
    const Tables *rules,                 # IN
    uint64_t *at,                        # IN, OUT: [k, n], zeros; or NULL, as the next
    uint64_t *blamed,                    # IN, OUT: [k, n], zeros
    const int32_t *places,               # IN: [n_places], kinds that are counted
    Py_ssize_t n_places,
    int32_t *counts,                     # IN, OUT: [k, n_places], zeros
) noexcept nogil:
    """The violations of trees over a sentence; False where memory is short."""
    cdef Py_ssize_t j, m
    # Of each word from 1 on: its head, relation, whether an inner subject, what its children are.
    cdef int32_t *head = <int32_t *>malloc(5 * (n + 1) * sizeof(int32_t))
    cdef uint64_t *children = <uint64_t *>malloc(3 * (n + 1) * sizeof(uint64_t))
    if head == NULL or children == NULL:
        free(head)
        free(children)
        return False
    cdef int32_t *relation = head + n + 1
    cdef uint64_t *own_at = children + n + 1
    cdef uint64_t *own_blamed = own_at + n + 1
    for j in range(k):
        for m in range(n):
            head[m + 1] = heads[j * n + m]
            relation[m + 1] = relations[labels[j * n + m]]
        if at != NULL:
            own_at, own_blamed = at + j * n, blamed + j * n
        else:
            memset(own_at, 0, n * sizeof(uint64_t))
            memset(own_blamed, 0, n * sizeof(uint64_t))
        find_in_tree(
            head, relation, head + 2 * (n + 1), head + 3 * (n + 1), children, <int>n, misfits,
            flags, rules, own_at, own_blamed,
        )
        add_bits(own_at, n, places, n_places, counts + j * n_places)
    free(head)
    free(children)
    return True


cdef inline uint64_t bit(int place) noexcept nogil:
    return <uint64_t>1 << place


cdef inline bint _is_inner(const int32_t *relation, const uint8_t *flags, int w) noexcept nogil:
    """Whether a word is a subject of the clause itself."""
    return (relation[w] & INNER) != 0 and (flags[w - 1] & OUTER) == 0


cdef void find_in_tree(
    int32_t *head, int32_t *relation, int32_t *subjects, int32_t *objects, uint64_t *children,
    int n, const uint64_t *misfits, const uint8_t *flags, const Tables *rules, uint64_t *at,
    uint64_t *blamed,
) noexcept nogil:
    """The violations of one tree.

    head, relation: [n + 1], from word 1 on, the head -1 for none.  subjects, objects, children:
    room, [n + 1].  misfits, flags, at, blamed: [n], from word 1 on.
    """
    cdef int w, h, r, kind, n_roots = 0
    cdef uint64_t set_of_r
    cdef bint is_attached, marks = False
    for w in range(n + 1):
        subjects[w] = objects[w] = 0
        children[w] = 0
    for w in range(1, n + 1):
        h, r = head[w], relation[w] & (INNER - 1)
        if h == 0:
            n_roots += 1
            if n_roots > 1:
                at[w - 1] |= bit(rules.roots)
                blamed[w - 1] |= bit(rules.roots)
        elif h > 0:
            children[h] |= bit(r)
            objects[h] += r == rules.obj
            subjects[h] += _is_inner(relation, flags, w)
        marks = marks or r == rules.punct
    for w in range(1, n + 1):
        h, r = head[w], relation[w] & (INNER - 1)
        set_of_r = bit(r)
        is_attached = h > 0
        if subjects[w] > 1:
            at[w - 1] |= bit(rules.subjects)
        if objects[w] > 1:
            at[w - 1] |= bit(rules.objects)
        if is_attached:
            if subjects[h] > 1 and _is_inner(relation, flags, w):
                blamed[w - 1] |= bit(rules.subjects)
            if objects[h] > 1 and r == rules.obj:
                blamed[w - 1] |= bit(rules.objects)
            kind = rules.leaf[relation[h] & (INNER - 1)]
            if kind != NO_KIND and _hangs_wrongly(head, relation, n, flags, rules, w):
                at[w - 1] |= bit(kind)
                blamed[w - 1] |= bit(kind)
                blamed[h - 1] |= bit(kind)
            if r == rules.obl and _is_nominal(relation, children, flags, rules, h):
                at[w - 1] |= bit(rules.oblique)
                blamed[w - 1] |= bit(rules.oblique)
                blamed[h - 1] |= bit(rules.oblique)
        kind = rules.left_headed[r]
        if kind != NO_KIND and h > w:
            at[w - 1] |= bit(kind)
            blamed[w - 1] |= bit(kind)
        kind = rules.of_tags[r]
        if kind != NO_KIND and (misfits[w - 1] & set_of_r) != 0 and not (
            r == rules.advmod and (children[w] & bit(rules.goeswith)) != 0
        ):
            at[w - 1] |= bit(kind)
            blamed[w - 1] |= bit(kind)
        if flags[w - 1] & PROPER and ((set_of_r | children[w]) & bit(rules.fixed)) != 0:
            at[w - 1] |= bit(rules.fixed_tag)
            blamed[w - 1] |= bit(rules.fixed_tag)
        if flags[w - 1] & MARK and r != rules.punct and r != rules.root:
            at[w - 1] |= bit(rules.punct_tag)
            blamed[w - 1] |= bit(rules.punct_tag)
    if marks:
        _find_crossing_marks(head, relation, n, rules, at, blamed)


cdef inline bint _hangs_wrongly(
    const int32_t *head, const int32_t *relation, int n, const uint8_t *flags,
    const Tables *rules, int w,
) noexcept nogil:
    """Whether a word with a head that is a leaf may not hang there."""
    cdef int h = head[w], r = relation[w] & (INNER - 1), leaf = relation[h] & (INNER - 1)
    if rules.allowed[leaf] & bit(r):
        return False
    if leaf != rules.punct and r == rules.advmod and flags[w - 1] & NEGATING:
        return False
    if leaf == rules.det and flags[h - 1] & POSSESSIVE and (rules.of_possessives & bit(r)) != 0:
        return False
    return not (
        leaf == rules.goeswith and r == rules.punct and head[h] > 0 and _has_gap(head, n, h)
    )


cdef inline bint _is_nominal(
    const int32_t *relation, const uint64_t *children, const uint8_t *flags, const Tables *rules,
    int w,
) noexcept nogil:
    return (
        (flags[w - 1] & NOMINAL) != 0
        and (rules.nominal & bit(relation[w] & (INNER - 1))) != 0
        and (children[w] & rules.of_predicates) == 0
    )


cdef inline bint _is_below(const int32_t *head, int n, int w, int top) noexcept nogil:
    """Whether a word is below another one, or the root (0), in at most n steps."""
    cdef int _
    if top == 0:
        return True
    for _ in range(n):
        w = head[w]
        if w == top:
            return True
        if w <= 0:
            return False
    return False


cdef inline bint _has_gap(const int32_t *head, int n, int w) noexcept nogil:
    """Whether a word between this one and its head, which there is, is not below the head."""
    cdef int h = head[w], between
    for between in range(min(w, h) + 1, max(w, h)):
        if not _is_below(head, n, between, h):
            return True
    return False


cdef void _find_crossing_marks(
    const int32_t *head, const int32_t *relation, int n, const Tables *rules, uint64_t *at,
    uint64_t *blamed,
) noexcept nogil:
    """Punctuation that hangs over words which are not below its head, or lies so under arcs."""
    cdef int mark, w, h, low, high, other
    for mark in range(1, n + 1):
        if relation[mark] & (INNER - 1) != rules.punct:
            continue
        h = max(head[mark], 0)
        if h > 0 and _has_gap(head, n, mark):
            at[mark - 1] |= bit(rules.punct_is)
            blamed[mark - 1] |= bit(rules.punct_is)
        for w in range(1, n + 1):
            other = head[w]
            low, high = min(other, w), max(other, w)
            if (
                1 <= low < mark < high
                and (low > h if h < mark else high < h)
                and not _is_below(head, n, mark, other)
            ):
                at[mark - 1] |= bit(rules.punct_causes)
                blamed[mark - 1] |= bit(rules.punct_causes)
                break
