# Columns of a part row (see part_types.ROLES and DEPENDENTS).

cdef enum:
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
