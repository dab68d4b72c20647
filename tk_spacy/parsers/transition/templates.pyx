"""The features of a state, by which a move is chosen, and of an arc, by which its label is.

Source: Zhang and Nivre (ACL 2011), "Transition-based dependency parsing with rich non-local
features", for arc-standard: S0, S1, S2 are the words of the stack from above, N0, N1, N2 those of
the buffer, L and R a word's last modifiers by LEFT and RIGHT.  Whole tags, FEATS attributes and
suffixes are ours.
"""

from libc.stdint cimport uint32_t, uint64_t

from tk_spacy.features.hashing cimport mix
from tk_spacy.parsers.transition.states cimport State, Token

cdef extern from "prefetch.h":
    void tk_prefetch(const float *address) noexcept nogil


cdef inline void put(Sink *sink, uint64_t key) noexcept nogil:
    cdef uint64_t id = key & sink.mask
    sink.ids[sink.n] = <uint32_t>id
    sink.n += 1
    tk_prefetch(sink.weights + id * sink.step)


cdef inline uint64_t key1(uint64_t kind, uint64_t a) noexcept nogil:
    return mix(kind * <uint64_t>0xD6E8FEB86659FD93ULL, a)


cdef inline uint64_t key2(uint64_t kind, uint64_t a, uint64_t b) noexcept nogil:
    return mix(key1(kind, a), b)


cdef inline uint64_t key3(uint64_t kind, uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    return mix(key2(kind, a, b), c)


cdef inline uint64_t key4(
    uint64_t kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d
) noexcept nogil:
    return mix(key3(kind, a, b, c), d)


cdef inline uint64_t value(const Words *x, int word, int column) noexcept nogil:
    return x.fields[word * x.n_fields + column]


cdef inline uint64_t binned(int distance) noexcept nogil:
    """A distance with its sign, in bins."""
    cdef int size = distance if distance > 0 else -distance
    if size > 10:
        size = 7
    elif size > 5:
        size = 6
    return 2 * size + (distance > 0)


cdef inline int fewer(int count, int most) noexcept nogil:
    return count if count < most else most


cdef inline int or_none(int word, int none) noexcept nogil:
    return word if word else none


cdef void move_templates(Sink *sink, const Words *x, const State *state) noexcept nogil:
    """The features of a state."""
    cdef int none = x.n + 1, n = state.n_stack, i, front, seen
    cdef int s0 = state.stack[n - 1]
    cdef int s1 = state.stack[n - 2] if n > 1 else none
    cdef int s2 = state.stack[n - 3] if n > 2 else none
    cdef int b[3]
    front = state.next
    seen = state.n_back
    for i in range(3):
        if seen:
            seen -= 1
            b[i] = state.back[seen]
        elif front <= x.n:
            b[i] = front
            front += 1
        else:
            b[i] = none
    cdef const Token *t0 = &state.tokens[s0]
    cdef const Token *t1 = &state.tokens[s1]
    cdef int l0 = or_none(t0.left1, none), r0 = or_none(t0.right1, none)
    cdef int l1 = or_none(t1.left1, none), r1 = or_none(t1.right1, none)
    cdef int ll0 = or_none(t0.left2, none), rr0 = or_none(t0.right2, none)
    cdef int ll1 = or_none(t1.left2, none), rr1 = or_none(t1.right2, none)
    cdef uint64_t p0 = value(x, s0, POS), p1 = value(x, s1, POS), p2 = value(x, s2, POS)
    cdef uint64_t w0 = value(x, s0, FORM), w1 = value(x, s1, FORM)
    cdef uint64_t m0 = value(x, s0, LEMMA), m1 = value(x, s1, LEMMA)
    cdef uint64_t g0 = value(x, s0, TAG), g1 = value(x, s1, TAG)
    cdef uint64_t c0 = value(x, s0, CPOS), c1 = value(x, s1, CPOS)
    cdef uint64_t q0 = value(x, b[0], POS), q1 = value(x, b[1], POS), q2 = value(x, b[2], POS)
    cdef uint64_t v0 = value(x, b[0], FORM), gb = value(x, b[0], TAG)
    cdef uint64_t mb = value(x, b[0], LEMMA)
    cdef uint64_t lp0 = value(x, l0, POS), rp0 = value(x, r0, POS)
    cdef uint64_t lp1 = value(x, l1, POS), rp1 = value(x, r1, POS)
    cdef uint64_t ld0 = state.tokens[l0].label, rd0 = state.tokens[r0].label
    cdef uint64_t ld1 = state.tokens[l1].label, rd1 = state.tokens[r1].label
    cdef uint64_t d = binned(s0 - s1), db = binned(b[0] - s0)
    cdef uint64_t a, e, z
    # Single words.
    put(sink, key2(1, w0, p0))
    put(sink, key1(2, p0))
    put(sink, key1(3, m0))
    put(sink, key1(4, g0))
    put(sink, key2(5, w1, p1))
    put(sink, key1(6, p1))
    put(sink, key1(7, m1))
    put(sink, key1(8, g1))
    put(sink, key2(9, v0, q0))
    put(sink, key1(10, q0))
    put(sink, key1(11, mb))
    put(sink, key1(12, gb))
    put(sink, key2(13, value(x, b[1], FORM), q1))
    put(sink, key1(14, value(x, b[1], TAG)))
    put(sink, key1(15, value(x, b[2], TAG)))
    put(sink, key2(16, value(x, s2, LEMMA), p2))
    put(sink, key1(17, value(x, s2, TAG)))
    # Pairs.
    put(sink, key4(18, w1, p1, w0, p0))
    put(sink, key3(19, m1, p1, p0))
    put(sink, key3(20, p1, m0, p0))
    put(sink, key2(21, p1, p0))
    put(sink, key2(22, m1, m0))
    put(sink, key2(23, g1, g0))
    put(sink, key2(24, g1, p0))
    put(sink, key2(25, p1, g0))
    put(sink, key3(26, m0, p0, q0))
    put(sink, key3(27, p0, mb, q0))
    put(sink, key2(28, p0, q0))
    put(sink, key2(29, m0, mb))
    put(sink, key2(30, g0, gb))
    put(sink, key2(31, p1, q0))
    put(sink, key2(32, m1, q0))
    put(sink, key2(33, q0, q1))
    put(sink, key2(34, g1, gb))
    put(sink, key2(35, p2, p0))
    # Three words and more.
    put(sink, key3(36, p1, p0, q0))
    put(sink, key3(37, p2, p1, p0))
    put(sink, key3(38, p0, q0, q1))
    put(sink, key3(39, q0, q1, q2))
    put(sink, key4(40, p1, p0, q0, q1))
    put(sink, key4(41, p2, p1, p0, q0))
    put(sink, key3(42, g1, g0, q0))
    put(sink, key3(43, m1, p0, q0))
    put(sink, key3(44, p1, m0, q0))
    put(sink, key3(45, p1, p0, mb))
    # Modifiers.
    put(sink, key3(46, p1, p0, lp0))
    put(sink, key3(47, p1, p0, rp0))
    put(sink, key3(48, p1, p0, lp1))
    put(sink, key3(49, p1, p0, rp1))
    put(sink, key3(50, p1, p0, ld0))
    put(sink, key3(51, p1, p0, rd0))
    put(sink, key3(52, p1, p0, ld1))
    put(sink, key3(53, p1, p0, rd1))
    put(sink, key3(54, p0, rp0, q0))
    put(sink, key3(55, p0, lp0, q0))
    put(sink, key4(56, p1, m0, rd1, ld0))
    put(sink, key3(57, m0, lp0, ld0))
    put(sink, key3(58, m0, rp0, rd0))
    put(sink, key3(59, m1, lp1, ld1))
    put(sink, key3(60, m1, rp1, rd1))
    put(sink, key2(61, p0, value(x, l0, LEMMA)))
    put(sink, key2(62, p0, value(x, r0, LEMMA)))
    put(sink, key2(63, p1, value(x, l1, LEMMA)))
    put(sink, key2(64, p1, value(x, r1, LEMMA)))
    put(sink, key4(65, p0, lp0, value(x, ll0, POS), p1))
    put(sink, key4(66, p0, rp0, value(x, rr0, POS), p1))
    put(sink, key4(67, p1, lp1, value(x, ll1, POS), p0))
    put(sink, key4(68, p1, rp1, value(x, rr1, POS), p0))
    put(sink, key4(69, p1, ld1, state.tokens[ll1].label, p0))
    put(sink, key4(70, p1, rd1, state.tokens[rr1].label, p0))
    put(sink, key4(71, p0, ld0, state.tokens[ll0].label, p1))
    put(sink, key4(72, p0, rd0, state.tokens[rr0].label, p1))
    put(sink, key3(73, p1, rp1, q0))
    put(sink, key4(74, p0, ld0, rd0, q0))
    put(sink, key4(75, p1, ld1, rd1, q0))
    # Distances.
    put(sink, key2(76, p0, d))
    put(sink, key2(77, p1, d))
    put(sink, key2(78, m0, d))
    put(sink, key2(79, m1, d))
    put(sink, key3(80, p1, p0, d))
    put(sink, key3(81, p0, q0, db))
    put(sink, key4(82, p1, p0, q0, d))
    # Numbers of modifiers, and sets of their labels.
    put(sink, key2(83, p0, fewer(t0.n_left, 4)))
    put(sink, key2(84, p0, fewer(t0.n_right, 4)))
    put(sink, key2(85, p1, fewer(t1.n_left, 4)))
    put(sink, key2(86, p1, fewer(t1.n_right, 4)))
    put(sink, key2(87, m0, fewer(t0.n_left, 4)))
    put(sink, key2(88, m1, fewer(t1.n_right, 4)))
    put(sink, key3(89, p0, p1, t0.left_labels))
    put(sink, key3(90, p0, p1, t0.right_labels))
    put(sink, key3(91, p1, p0, t1.left_labels))
    put(sink, key3(92, p1, p0, t1.right_labels))
    put(sink, key3(93, m0, t0.left_labels, t0.right_labels))
    put(sink, key3(94, m1, t1.left_labels, t1.right_labels))
    put(sink, key4(95, p0, t0.left_labels, t0.right_labels, q0))
    put(sink, key4(96, p1, t1.left_labels, t1.right_labels, p0))
    put(sink, key3(97, value(x, s0, SUFFIX), p1, p0))
    put(sink, key3(98, value(x, s1, SUFFIX), p1, p0))
    # Where the sentence ends, what has been put back, and how deep the stack is.
    put(sink, key4(99, p1, p0, n == 2, 2 * (b[0] == none) + (b[1] == none)))
    put(sink, key4(100, p1, p0, s1 < s0, state.n_back > 0))
    put(sink, key3(101, p0, q0, state.n_back > 0))
    # Neighbours in the sentence of words on the stack.
    put(sink, key4(102, p1, p0, value(x, s0 - 1 if s0 > 0 else 0, POS), 1))
    put(sink, key4(103, p1, p0, value(x, s1 + 1 if s1 < none else none, POS), 1))
    # FEATS attributes.
    for i in range(FIRST_FEAT, x.n_fields):
        a, e, z = value(x, s1, i), value(x, s0, i), value(x, b[0], i)
        if a and e:
            put(sink, mix(key4(110 + 4 * i, a, e, c1, c0), 0))
        if a or e:
            put(sink, key4(111 + 4 * i, a == e, a, c1, p0))
        if e or z:
            put(sink, key4(112 + 4 * i, e, z, c0, q0))


cdef void label_templates(
    Sink *sink, const Words *x, const State *state, int head, int mod, bint to_left
) noexcept nogil:
    """The features of an arc, made now; a label's own are those of `to_left` moves or others."""
    cdef int none = x.n + 1, i
    cdef const Token *h = &state.tokens[head]
    cdef const Token *m = &state.tokens[mod]
    cdef int ml = or_none(m.left1, none), mr = or_none(m.right1, none)
    cdef uint64_t side = to_left
    cdef uint64_t hp = value(x, head, POS), mp = value(x, mod, POS)
    cdef uint64_t hm = value(x, head, LEMMA), mm = value(x, mod, LEMMA)
    cdef uint64_t mw = value(x, mod, FORM)
    cdef uint64_t hg = value(x, head, TAG), mg = value(x, mod, TAG)
    cdef uint64_t hc = value(x, head, CPOS), mc = value(x, mod, CPOS)
    cdef uint64_t d = binned(mod - head), a, e
    cdef uint64_t before = value(x, mod - 1, POS), after = value(x, mod + 1, POS)
    # What the head has on the side of the arc, and on the other one.
    cdef uint64_t near = h.left_labels if to_left else h.right_labels
    cdef uint64_t far = h.right_labels if to_left else h.left_labels
    cdef int last = or_none(h.left1 if to_left else h.right1, none)
    cdef uint64_t lastd = state.tokens[last].label
    cdef uint64_t mld = state.tokens[ml].label, mrd = state.tokens[mr].label
    side += 500
    put(sink, key2(side, 1, mp))
    put(sink, key3(side, 2, hp, mp))
    put(sink, key3(side, 3, mm, mp))
    put(sink, key4(side, 4, mw, mp, hp))
    put(sink, key4(side, 5, mm, hp, mp))
    put(sink, key4(side, 6, mp, hm, hp))
    put(sink, key3(side, 7, hm, mm))
    put(sink, key2(side, 8, mg))
    put(sink, key3(side, 9, mg, hp))
    put(sink, key3(side, 10, mg, hg))
    put(sink, key3(side, 11, mg, hm))
    put(sink, key3(side, 12, mp, hg))
    put(sink, key3(side, 13, hc, mc))
    put(sink, key4(side, 14, hp, mp, d))
    put(sink, key3(side, 15, mp, d))
    put(sink, key4(side, 16, mp, before, after))
    put(sink, key4(side, 17, hp, mp, before))
    put(sink, key4(side, 18, hp, mp, after))
    put(sink, key4(side, 19, hp, mp, near))
    put(sink, key4(side, 20, hp, mp, far))
    put(sink, key4(side, 21, hm, mp, near))
    put(sink, key4(side, 22, hp, mp, lastd))
    put(sink, key4(side, 23, hp, mp, value(x, last, POS)))
    put(sink, key4(side, 24, mp, mld, mrd))
    put(sink, key4(side, 25, mp, m.left_labels, m.right_labels))
    put(sink, mix(key4(side, 26, hp, mp, m.left_labels), m.right_labels))
    put(sink, key4(side, 27, hp, mp, value(x, ml, LEMMA)))
    put(sink, key4(side, 28, hp, mp, value(x, mr, LEMMA)))
    put(sink, key4(side, 29, hm, mg, value(x, ml, LEMMA)))
    put(sink, key4(side, 30, hp, mg, value(x, ml, LEMMA)))
    put(sink, key4(side, 31, value(x, mod, SUFFIX), hp, mp))
    put(sink, key4(side, 32, hp, value(x, ml, POS), mp))
    put(sink, key4(side, 33, hp, value(x, mr, POS), mp))
    put(sink, key4(side, 34, mg, lastd, hp))
    for i in range(FIRST_FEAT, x.n_fields):
        a, e = value(x, head, i), value(x, mod, i)
        if e:
            put(sink, mix(key4(side, 40 + 2 * i, e, mc, hp), a == e))
            put(sink, key4(side, 41 + 2 * i, e, mc, hm))
