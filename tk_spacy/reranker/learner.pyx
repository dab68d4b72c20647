"""Algorithm 1: passive-aggressive learning of manual weights and kernel weights together.

Source: Taub-Tabib et al. 2015, Algorithm 1 and footnote 5, after Crammer et al. (2006).  Ours
differs in three points: w and alpha are averaged by one rule, as they stand after each step; a zero
denominator skips the update; the competitor may be chosen with its loss added, as the
default Settings ask.  The features of a candidate within its list, where there are any, are further
columns of the manual features' vector, dense and not hashed.

One step reads one list: score the candidates, take the best, and move both weight vectors so that
the oracle candidate wins by the loss.  Only parts that one of the two trees has alone count.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint32_t

import numpy as np

from tk_spacy.kernels.budget import Budget
from tk_spacy.features.templates import add_feature_counts, add_sentence_scores, type_code
from tk_spacy.kernels.template_kernel import signed_kernel, slot_layout
from tk_spacy.features.candidate_scores import add_candidate_scores, add_list_scores
from tk_spacy.features.parts import exclusive_members
from tk_spacy.features.part_types import part_type
from tk_spacy.kernels.support_log import SupportLog


cdef class Learner:
    """The state of Algorithm 1: w, its average, the support log, the step number.

    kernel_parts: part types of the kernel, empty to turn it off.  manual_parts: part types with
    manual features, empty to turn them off.  n_properties: width of node rows.  bits: width of a
    feature id.  C: aggressiveness, positive, possibly infinite.  skip: node slots that may be
    skipped.  kernel_scale: factor on the kernel, positive.  add_loss: choose the competitor by
    score plus loss instead of by score.  list_width: number of features of a candidate within its
    list, 0 for none.  groups: columns of node rows whose combinations are few, see SupportScorer.
    budget: of support parts, None for no bound (see budget).
    perceptron: every update adds the difference of the two trees' features once, whatever the loss.
    """

    cdef readonly tuple kernel_parts, manual_parts
    cdef readonly object support
    cdef readonly int64_t steps, updates
    cdef double C, kernel_scale
    cdef bint add_loss, perceptron
    cdef int64_t total_steps
    cdef readonly int list_width
    cdef list _layouts, _manual_kinds
    cdef object _budget
    cdef double[::1] weights, stepped, difference, list_weights, list_stepped

    def __init__(
        self, *, kernel_parts, manual_parts, n_properties, total_steps, bits=22, C=INFINITY,
        skip=(), kernel_scale=1.0, add_loss=False, list_width=0, groups=None, budget=None,
        perceptron=False,
    ):
        if not kernel_parts and not manual_parts:
            raise ValueError("kernel_parts and manual_parts are both empty, expected some")
        if not C > 0:
            raise ValueError(f"C is {C}, expected a positive number or infinity")
        if not 0 < kernel_scale < INFINITY:
            raise ValueError(f"kernel_scale is {kernel_scale}, expected a positive number")
        if not 8 <= bits <= 30:
            raise ValueError(f"bits is {bits}, expected 8 to 30")
        self.kernel_parts = tuple(kernel_parts)
        self.manual_parts = tuple(manual_parts)
        self.support = SupportLog(
            self.kernel_parts, n_properties, skip=tuple(skip), groups=groups
        )
        self.total_steps = total_steps
        self.C = C
        self.kernel_scale = kernel_scale
        self.add_loss = add_loss
        self.perceptron = perceptron
        self.steps = 0
        self.updates = 0
        types = [part_type(name) for name in self.kernel_parts]
        self._layouts = [
            (slot_layout(kind), np.array(kind.skips(skip), dtype=np.int32)) for kind in types
        ]
        self._budget = None
        if budget is not None and self.kernel_parts:
            self._budget = Budget(self.support, budget, self._layouts)
        self._manual_kinds = [type_code(name) for name in self.manual_parts]
        size = (1 << bits) if self.manual_parts else 1
        self.weights = np.zeros(size)
        self.stepped = np.zeros(size)
        self.difference = np.zeros(size)
        self.list_width = list_width
        self.list_weights = np.zeros(list_width)
        self.list_stepped = np.zeros(list_width)

    def averaged_weights(self):
        """The mean of w over all steps so far, each as it stood after the step."""
        return self._average(self.weights, self.stepped)

    def averaged_list_weights(self):
        """The same of the features within a list: float64[list_width]."""
        return self._average(self.list_weights, self.list_stepped)

    cdef object _average(self, weights, stepped):
        # A move of size d at step t stands in the steps t..T: it weighs (T - t + 1) / T.
        T = self.total_steps
        return ((T + 1) * np.asarray(weights) - np.asarray(stepped)) / T

    def step(self, item):
        """One step of Algorithm 1 on one TrainingList.  Returns whether it moved the weights.

        Runs on one thread: a step is too short to share.

        Raises ValueError after the last of the steps announced.
        """
        _check_item(item)
        if self.steps >= self.total_steps:
            raise ValueError(f"step {self.steps + 1} of {self.total_steps}")
        self.steps += 1
        scores = self._scores(item)
        cdef int best = _argmax(scores, item.loss if self.add_loss else np.zeros(len(scores)))
        if best == item.oracle:
            return False
        return self._update(item, best, scores[best] - scores[item.oracle] + item.loss[best])

    def refresh(self, items, *, n_threads=None):
        """Brings the kernel scores of several lists up to the support as it is now.

        The bulk of the kernel's work: large enough for threads, which single steps are not.  Only
        what was added since a list's mark is scored.
        """
        if not self.kernel_parts:
            return
        now = self.support.mark()
        behind = {}
        for item in items:
            if item.mark.updates < now.updates:
                behind.setdefault(item.mark, []).append(item)
        for mark, group in behind.items():
            self.support.add_scores(
                [item.encoded.sentence.nodes for item in group],
                [[parts.slots for parts in item.encoded.kernel] for item in group],
                [item.kernel_scores for item in group],
                since=mark,
                n_threads=n_threads,
            )
            for item in group:
                item.mark = now

    cdef object _scores(self, item):
        encoded = item.encoded
        scores = np.zeros(encoded.n_candidates)
        if self.kernel_parts:
            # What came since the last refresh is little and scored anew at the next one.
            recent = [part_scores.copy() for part_scores in item.kernel_scores]
            self.support.add_scores(
                [encoded.sentence.nodes],
                [[parts.slots for parts in encoded.kernel]],
                [recent],
                since=item.mark,
                n_threads=1,
            )
            for parts, part_scores in zip(encoded.kernel, recent):
                add_candidate_scores(part_scores, parts.starts, parts.members, scores)
        for kind, parts in zip(self._manual_kinds, encoded.manual):
            part_scores = np.zeros(len(parts.rows))
            add_sentence_scores(
                encoded.sentence.fields, parts.rows, kind, self.weights, part_scores
            )
            add_candidate_scores(part_scores, parts.starts, parts.members, scores)
        if self.list_width:
            add_list_scores(encoded.listed, self.list_weights, scores)
        return scores

    cdef bint _update(self, item, int best, double violation) except -1:
        encoded = item.encoded
        nodes = encoded.sentence.nodes
        cdef double norm = 0.0, kernel_norm = 0.0, squared
        slots, signs = [], []
        for (kinds, skips), parts in zip(self._layouts, encoded.kernel):
            which, sign = exclusive_members(
                parts.starts, parts.members, item.oracle, best, len(parts.rows)
            )
            rows = parts.slots[which]
            squared = signed_kernel(nodes, rows, sign, kinds, skips)
            kernel_norm += squared
            norm += self.kernel_scale * squared
            slots.append(rows)
            signs.append(sign)
        touched = [np.zeros(0, dtype=np.uint32)]
        for kind, parts in zip(self._manual_kinds, encoded.manual):
            which, sign = exclusive_members(
                parts.starts, parts.members, item.oracle, best, len(parts.rows)
            )
            touched.append(
                add_feature_counts(
                    encoded.sentence.fields, parts.rows, which, sign, kind, self.difference
                )
            )
        ids, counts = self._take_difference(np.concatenate(touched))
        norm += float(counts @ counts)
        listed = np.zeros(0)
        if self.list_width:
            listed = encoded.listed[item.oracle] - encoded.listed[best]
            norm += _square(listed)
        cdef double tau = 0.0
        if norm > 0 and violation > 0:
            tau = 1.0 if self.perceptron else min(self.C, violation / norm)
        if tau == 0:
            return False
        _move(self.weights, self.stepped, ids, counts, tau, tau * self.steps)
        _move(
            self.list_weights, self.list_stepped, np.arange(len(listed), dtype=np.uint32), listed,
            tau, tau * self.steps,
        )
        self.updates += 1
        if self.kernel_parts:
            self._add_parts(item, nodes, tuple(slots), tuple(signs), tau, kernel_norm)
        return True

    cdef object _add_parts(self, item, nodes, slots, signs, double tau, double norm):
        weight = tau * self.kernel_scale
        averaged = weight * (self.total_steps - self.steps + 1) / self.total_steps
        origin = (item.index, self.updates - 1)
        if self._budget is None:
            self.support.append(
                nodes, slots, signs, weight=weight, averaged=averaged, origin=origin
            )
        else:
            self._budget.append(
                nodes, slots, signs, weight=weight, averaged=averaged, norm=norm, origin=origin
            )

    cdef object _take_difference(self, const uint32_t[::1] touched):
        """The features whose counts do not cancel and their counts; `difference` is zero again."""
        cdef Py_ssize_t i, n = 0
        ids = np.empty(touched.shape[0], dtype=np.uint32)
        counts = np.empty(touched.shape[0])
        cdef uint32_t[::1] out_ids = ids
        cdef double[::1] out_counts = counts
        for i in range(touched.shape[0]):
            # Only the first of several mentions finds a count.
            if self.difference[touched[i]] != 0.0:
                out_ids[n] = touched[i]
                out_counts[n] = self.difference[touched[i]]
                self.difference[touched[i]] = 0.0
                n += 1
        return ids[:n], counts[:n]


cdef int _check_item(item) except -1:
    """Raises ValueError for a list whose oracle or losses do not go with its candidates."""
    k = item.encoded.n_candidates
    if not 0 <= item.oracle < k:
        raise ValueError(f"oracle is {item.oracle}, expected a candidate from 0 to {k - 1}")
    if len(item.loss) != k:
        raise ValueError(f"{len(item.loss)} losses, expected one for each of {k} candidates")
    return 0


cdef void _move(
    double[::1] weights,            # IN, OUT
    double[::1] stepped,            # IN, OUT
    const uint32_t[::1] ids,        # IN, distinct
    const double[::1] counts,       # IN
    double tau, double tau_stepped,
) noexcept:
    cdef Py_ssize_t i
    for i in range(ids.shape[0]):
        weights[ids[i]] += tau * counts[i]
        stepped[ids[i]] += tau_stepped * counts[i]


cdef double _square(const double[::1] values) noexcept:
    cdef Py_ssize_t i
    cdef double total = 0.0
    for i in range(values.shape[0]):
        total += values[i] * values[i]
    return total


cdef int _argmax(const double[::1] scores, const double[::1] extra) noexcept:
    """The first of the best: ties go to the higher-ranked candidate."""
    cdef int j, best = 0
    for j in range(1, <int>scores.shape[0]):
        if scores[j] + extra[j] > scores[best] + extra[best]:
            best = j
    return best
