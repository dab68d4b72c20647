"""Random support parts and parts to score, with the slow twin's scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tk_spacy.features.part_types import part_type
from tk_spacy.kernels.plain_scoring import length_bins
from tk_spacy.kernels.scorer import SupportScorer
from tk_spacy.kernels.support import Support, SupportParts
from tk_spacy.kernels.template_kernel import kernel_matrix, slot_layout

TOLERANCE = 1e-6
"""Of the sum of |weight| * k: what single precision may cost."""


@dataclass
class Problem:
    """Support parts and parts to score, in slot form, over one table of nodes each."""

    name: str
    skip: tuple[str, ...]
    nodes: np.ndarray
    support_nodes: np.ndarray
    parts: np.ndarray
    support_parts: np.ndarray
    weights: np.ndarray
    groups: list[list[int]] | None = None

    @property
    def kind(self):
        return part_type(self.name)

    @property
    def skips(self):
        return np.array(self.kind.skips(self.skip), dtype=np.int32)

    def expected(self):
        """The scores by the slow twin, and the sums of |weight| * k."""
        matrix = kernel_matrix(
            self.kind, self.nodes, self.parts, self.support_nodes, self.support_parts,
            skips=self.skips, n_threads=1,
        )  # fmt: skip
        return matrix @ self.weights, matrix @ np.abs(self.weights)

    def support(self):
        columns = []
        column = 0
        for kind in slot_layout(self.kind):
            columns.append(self.support_parts[:, column])
            column += 1
            if kind:
                distances = np.ascontiguousarray(self.support_parts[:, column])
                columns += [distances, length_bins(distances)]
                column += 1
        q = len(self.weights)
        origins = np.zeros((0, 3), dtype=np.int32)
        parts = SupportParts(
            np.array(columns, dtype=np.int32).reshape(len(columns), q),
            self.weights,
            origins,
            np.zeros(0),
        )
        return Support(self.support_nodes, {self.name: parts}, {self.name: self.skips})

    def scores(self, *, n_threads=1, **options):
        scorer = SupportScorer(self.support(), self.groups, **options)
        out = np.zeros(len(self.parts))
        scorer.add_scores([self.nodes], [[self.parts]], [[out]], n_threads=n_threads)
        return out

    def check(self, **options):
        scores, scale = self.expected()
        for n_threads in (1, 2, 3):
            found = self.scores(n_threads=n_threads, **options)
            assert (np.abs(found - scores) <= TOLERANCE * scale).all()


def random_parts(rng, kind, n, n_nodes, *, n_labels=5, longest=12):
    """Parts in slot form; labels and distances are sometimes missing (0)."""
    columns = []
    for slot in slot_layout(kind):
        if slot:
            columns += [rng.integers(0, n_labels, n), rng.integers(-longest, longest + 1, n)]
        else:
            columns.append(rng.integers(0, n_nodes, n))
    return np.array(columns, dtype=np.int32).T.copy()


def random_problem(
    seed, *, name="arc", skip=(), n_properties=9, n_values=3, n_support=300, n_parts=40,
    groups=None, n_nodes=30, **options,
):  # fmt: skip
    rng = np.random.default_rng(seed)
    kind = part_type(name)
    return Problem(
        name=name,
        skip=skip,
        nodes=rng.integers(0, n_values, (n_nodes, n_properties)).astype(np.int32),
        support_nodes=rng.integers(0, n_values, (2 * n_nodes, n_properties)).astype(np.int32),
        parts=random_parts(rng, kind, n_parts, n_nodes, **options),
        support_parts=random_parts(rng, kind, n_support, 2 * n_nodes, **options),
        weights=rng.normal(size=n_support) * 10.0 ** rng.integers(-6, 3, n_support),
        groups=groups,
    )
