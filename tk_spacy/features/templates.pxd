# Hashed features: the vocabulary in which templates are written (see templates.pyx).

from libc.stdint cimport int32_t, uint32_t, uint64_t

from tk_spacy.features.hashing cimport mix

cdef enum:
    # Part types, in the order of part_types.PART_TYPES.
    ARC = 0
    SIBLING = 1
    GRANDPARENT = 2
    GRAND_SIBLING = 3
    TRI_SIBLING = 4
    # Behind them, see FEATURE_TYPES.
    FRAMES = 5
    SPANS = 6
    GRAND_TRI_SIBLING = 7
    MAX_BETWEEN = 24   # distinct tags between head and modifier that are looked at


cdef struct Sink:
    # Where the features of a part go: a running score, or a list of ids, or both.
    const double *weights
    double score
    uint32_t *ids
    int count
    uint64_t mask
    uint64_t label
    # Row mode: an id is where the weights of a feature begin, first that without a label, then
    # that with each label; so a feature counts once here, whatever the label.
    bint rows


cdef inline Sink id_sink(uint32_t *ids, uint64_t mask) noexcept nogil:
    """An empty sink that lists ids, which go up to `mask`."""
    cdef Sink sink
    sink.weights = NULL
    sink.score = 0.0
    sink.ids = ids
    sink.count = 0
    sink.mask = mask
    sink.label = 0
    sink.rows = False
    return sink


cdef inline double listed_score(const Sink *sink, const float *weights) noexcept nogil:
    """The sum of the weights of the features listed."""
    cdef int i
    cdef double total = 0.0
    for i in range(sink.count):
        total += weights[sink.ids[i]]
    return total


cdef inline void put(Sink *sink, uint64_t value) noexcept nogil:
    cdef uint32_t index
    value = mix(value, <uint64_t>0xD6E8FEB86659FD93ULL)
    index = <uint32_t>((value >> 7) & sink.mask)
    if sink.weights != NULL:
        sink.score += sink.weights[index]
    if sink.ids != NULL:
        sink.ids[sink.count] = index
    sink.count += 1


cdef inline void emit(Sink *sink, uint64_t value) noexcept nogil:
    """A feature, and the same with the part's label."""
    put(sink, value)
    if not sink.rows:
        put(sink, mix(value, sink.label))


cdef inline void labelled(Sink *sink, uint64_t value) noexcept nogil:
    """A feature with the part's label only."""
    put(sink, value if sink.rows else mix(value, sink.label))


cdef inline uint64_t key(int template, uint64_t a) noexcept nogil:
    return mix(mix(<uint64_t>template + 1, <uint64_t>0xA24BAED4963EE407ULL), a)


cdef inline uint64_t key2(int template, uint64_t a, uint64_t b) noexcept nogil:
    return mix(key(template, a), b)


cdef inline uint64_t key3(int template, uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    return mix(key2(template, a, b), c)


cdef inline uint64_t key4(
    int template, uint64_t a, uint64_t b, uint64_t c, uint64_t d
) noexcept nogil:
    return mix(key3(template, a, b, c), d)


cdef inline uint64_t binned(int32_t distance) noexcept nogil:
    """Direction and binned distance: 1..5 as they are, 6-10, 11 and more."""
    cdef int32_t length = distance if distance > 0 else -distance
    if length > 10:
        length = 7
    elif length > 5:
        length = 6
    return <uint64_t>(2 * length + (distance > 0))


cdef struct Words:
    # The field array of one sentence: row 0 the root, 1..n the words, n + 1 the boundary.
    const int32_t *fields
    Py_ssize_t n_fields   # columns of the array
    int morph_end         # the FEATS attributes are columns FIRST_MORPH to this one
    int n


cdef inline Words words_of(
    const int32_t *fields, Py_ssize_t n_fields, int rows, int morph_end
) noexcept nogil:
    """The sentence whose field array has its first row at `fields`."""
    cdef Words x
    x.fields = fields
    x.n_fields = n_fields
    x.morph_end = morph_end
    x.n = rows - 2
    return x


cdef inline int32_t value_at(const Words *x, int word, int field) noexcept nogil:
    """A field of a word; beyond either end of the sentence the boundary node's."""
    if word < 0 or word > x.n:
        word = x.n + 1
    return x.fields[word * x.n_fields + field]


cdef inline bint is_new(int32_t *seen, int *n_seen, int32_t tag) noexcept nogil:
    """Note a tag; whether it was not yet among the `n_seen` first, and there was room for it.

    seen: int32[MAX_BETWEEN].
    """
    cdef int i
    for i in range(n_seen[0]):
        if seen[i] == tag:
            return False
    if n_seen[0] == MAX_BETWEEN:
        return False
    seen[n_seen[0]] = tag
    n_seen[0] += 1
    return True


cdef void part_features(Sink *sink, const Words *x, int kind, const int32_t *part) noexcept nogil
cdef int most_features(Py_ssize_t n_morph) noexcept nogil
