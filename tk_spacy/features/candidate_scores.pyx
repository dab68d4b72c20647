"""Scores of the candidates of a list, from those of their parts and of their list features."""

from libc.stdint cimport int32_t

from tk_spacy.utils.index_checks cimport check_starts, check_values


def add_candidate_scores(
    const double[::1] part_scores not None, const int32_t[::1] starts not None,
    const int32_t[::1] members not None, double[::1] out not None,
):
    """Adds to out[j] the sum of the scores of the parts of candidate j.

    part_scores: float64[p].  starts: int32[k + 1].  members: int32[_].  out: float64[k].
    """
    cdef Py_ssize_t j, i
    cdef double total
    if starts.shape[0] != out.shape[0] + 1:
        raise ValueError(f"{starts.shape[0]} starts for {out.shape[0]} candidates")
    check_starts(starts, members.shape[0], "starts")
    check_values(members, 0, <int32_t>part_scores.shape[0] - 1, "members")
    for j in range(out.shape[0]):
        total = 0.0
        for i in range(starts[j], starts[j + 1]):
            total += part_scores[members[i]]
        out[j] += total


def add_list_scores(
    const double[:, ::1] features not None, const double[::1] weights not None,
    double[::1] out not None,
):
    """Adds to out[j] the dot product of the features of candidate j and the weights.

    features: float64[k, d].  weights: float64[d].  out: float64[k].
    """
    cdef Py_ssize_t j, i
    cdef double total
    if features.shape[0] != out.shape[0] or features.shape[1] != weights.shape[0]:
        raise ValueError(
            f"features have shape {(features.shape[0], features.shape[1])}, expected "
            f"{(out.shape[0], weights.shape[0])}"
        )
    for j in range(out.shape[0]):
        total = 0.0
        for i in range(weights.shape[0]):
            total += features[j, i] * weights[i]
        out[j] += total
