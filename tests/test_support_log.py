"""Scoring against a support that grows."""

from __future__ import annotations

import numpy as np
import pytest
from scoring_problems import TOLERANCE, random_parts

from tk_spacy.features.part_types import part_type
from tk_spacy.kernels import support_log
from tk_spacy.kernels.compiled.blocks import SIZE
from tk_spacy.kernels.support_log import FEW, SupportLog
from tk_spacy.kernels.template_kernel import kernel_matrix, slot_layout


@pytest.mark.parametrize("name", ["arc", "grandparent"])
def test_growing_log_scores_what_came_since_a_mark(name):
    rng = np.random.default_rng(14)
    kind = part_type(name)
    kinds = slot_layout(kind)
    skips = np.array(kind.skips(), dtype=np.int32)
    log = SupportLog((name,), 6, groups=[[0, 1, 2], [4]])
    nodes = rng.integers(0, 3, (12, 6)).astype(np.int32)
    query = random_parts(rng, kind, 25, 12)
    marks, history = [log.mark()], []
    for update in range(2200):
        words = rng.integers(0, 3, (9, 6)).astype(np.int32)
        rows = random_parts(rng, kind, int(rng.integers(1, 8)), 9)
        signs = rng.choice([-1, 1], len(rows)).astype(np.int32)
        log.append(words, (rows,), (signs,), weight=0.5, averaged=0.1, origin=(0, update))
        matrix = kernel_matrix(kind, nodes, query, words, rows, skips=skips, n_threads=1)
        history.append((matrix @ (0.5 * signs), matrix.sum(axis=1) * 0.5))
        if update % 150 == 149:
            marks.append(log.mark())
            for back in (1, 2, 5, len(marks)):
                mark = marks[-back] if back <= len(marks) else marks[0]
                out = np.zeros(len(query))
                log.add_scores([nodes], [[query]], [[out]], since=mark, n_threads=2)
                scores = sum((h[0] for h in history[mark.updates :]), np.zeros(len(query)))
                scale = sum((h[1] for h in history[mark.updates :]), np.zeros(len(query)))
                assert (np.abs(out - scores) <= TOLERANCE * scale).all()
    assert log.mark().parts[0] > 2 * SIZE > 8 * FEW
    assert len(kinds) in (3, 5)
    # What came before a mark can be forgotten, and only that.
    log.forget(marks[-3])
    out = np.zeros(len(query))
    log.add_scores([nodes], [[query]], [[out]], since=marks[-3], n_threads=1)
    assert out == pytest.approx(sum(h[0] for h in history[marks[-3].updates :]), rel=1e-5)
    with pytest.raises(ValueError, match="part 0 is forgotten"):
        log.add_scores([nodes], [[query]], [[out]], since=marks[0], n_threads=1)


def test_growing_log_without_parts_of_a_type(monkeypatch):
    """As when sentences are too short for any; combinations are forgotten meanwhile."""
    monkeypatch.setattr(support_log, "MOST_COMBINATIONS", 0)
    rng = np.random.default_rng(18)
    log = SupportLog(("arc", "tri-sibling"), 6)
    nodes = rng.integers(0, 3, (9, 6)).astype(np.int32)
    arcs = random_parts(rng, part_type("arc"), FEW, 9)
    none = random_parts(rng, part_type("tri-sibling"), 0, 9)
    query = random_parts(rng, part_type("tri-sibling"), 5, 9)
    mark = log.mark()
    signs = (np.ones(FEW, dtype=np.int32), np.zeros(0, dtype=np.int32))
    log.append(nodes, (arcs, none), signs, weight=1.0, averaged=1.0, origin=(0, 0))
    expected = kernel_matrix(part_type("arc"), nodes, arcs, nodes, arcs).sum(axis=1)
    for _ in range(2):
        out = [np.zeros(FEW), np.zeros(5)]
        log.add_scores([nodes], [[arcs, query]], [out], since=mark, n_threads=1)
        assert out[0] == pytest.approx(expected)
        assert not out[1].any()
