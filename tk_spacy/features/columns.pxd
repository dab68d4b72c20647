# Columns of the arrays that describe words and parts.

cdef enum:
    # Of the field array of a sentence (see schema.py).
    FORM = 0
    LEMMA = 1
    POS = 2
    CPOS = 3
    FIRST_MORPH = 4
    # Of a part row (see part_types.ROLES and DEPENDENTS).
    WIDTH = 9
    G = 0
    H = 1
    T = 2
    S = 3
    M = 4
    LABEL_H = 5
    LABEL_T = 6
    LABEL_S = 7
    LABEL_M = 8
