from tk_spacy.features cimport Sink, Words

cdef enum:
    MOST_EXTRA = 64      # features of one arc beyond those of part_features, at most
    TAG = 0              # columns beyond the FEATS attributes, see words.py
    N_EXTRA = 1

cdef void arc_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil
cdef void pruner_templates(Sink *sink, const Words *x, int h, int m) noexcept nogil
