from tk_spacy.features.templates cimport Sink, Words

cdef enum:
    MOST_NAMED = 16      # further properties that a user names, at most
    # Features of one arc beyond those of part_features, at most: 14 of each such property.
    MOST_EXTRA = 64 + 14 * 16
    MOST_PRUNER = 64     # features of one arc for the pruner, at most
    MOST_CROSSING = 12   # features of one arc that crosses another, at most

cdef void arc_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil
cdef void crossing_templates(Sink *sink, const Words *x, int h, int m, int label) noexcept nogil
cdef void pruner_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil
