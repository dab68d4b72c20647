from tk_spacy.features cimport Sink, Words

cdef enum:
    MOST_EXTRA = 64      # features of one arc beyond those of part_features, at most
    MOST_PRUNER = 64     # features of one arc for the pruner, at most
    MOST_CROSSING = 12   # features of one arc that crosses another, at most

cdef void arc_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil
cdef void crossing_templates(Sink *sink, const Words *x, int h, int m, int label) noexcept nogil
cdef void pruner_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil
