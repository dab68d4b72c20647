"""Pruning: a first-order model keeps few heads for each word.

Source: Martins, Almeida and Smith (ACL 2013, "Turning on the Turbo").
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t

from tk_spacy.features.templates cimport Sink, id_sink, listed_score
from tk_spacy.parallel.stopping cimport is_stopped
from tk_spacy.parsers.sampling.search.structs cimport STOPPED, Lattice, Model
from tk_spacy.parsers.sampling.search.templates cimport pruner_templates


cdef int score_heads(Lattice *g, const Model *model) noexcept nogil:
    """The pruner's score of every arc h -> m into first_order[h * (n + 1) + m]; 0, or STOPPED."""
    cdef int h, m, n = g.n
    cdef Sink sink = id_sink(g.ids, model.pruner_mask)
    for m in range(1, n + 1):
        if is_stopped(g.watch):
            return STOPPED
        g.first_order[m] = 0.0
        for h in range(n + 1):
            if h == m:
                g.first_order[h * (n + 1) + m] = -INFINITY
                continue
            sink.count = 0
            pruner_templates(&sink, &g.words, h, m)
            g.first_order[h * (n + 1) + m] = listed_score(&sink, model.pruner)
    for h in range(n + 1):
        g.first_order[h * (n + 1)] = -INFINITY
    return 0


cdef int keep_heads(Lattice *g, const Model *model, const int32_t *tree) noexcept nogil:
    """The best heads of each word by first_order, and those of a tree, so that one can be found.

    tree: int32[n + 1], the head of each word, or NULL.
    """
    cdef int h, m, i, j, count, at = 0, n = g.n
    cdef double value, best
    cdef int32_t *kept
    for m in range(1, n + 1):
        g.kept_first[m] = at
        kept = g.kept + at
        count = 0
        best = -INFINITY
        for h in range(n + 1):
            if h != m and g.first_order[h * (n + 1) + m] > best:
                best = g.first_order[h * (n + 1) + m]
        for h in range(n + 1):
            value = g.first_order[h * (n + 1) + m]
            if h == m or not value >= best - model.prune_margin:
                continue
            # Insertion into the best max_heads; earlier heads win among equals.
            i = count if count < model.max_heads else model.max_heads - 1
            if count == model.max_heads and not (
                value > g.first_order[kept[i] * (n + 1) + m]
            ):
                continue
            while i > 0 and value > g.first_order[kept[i - 1] * (n + 1) + m]:
                kept[i] = kept[i - 1]
                i -= 1
            kept[i] = h
            if count < model.max_heads:
                count += 1
        if tree != NULL:
            for j in range(count):
                if kept[j] == tree[m]:
                    break
            else:
                kept[count] = tree[m]
                count += 1
        at += count
    g.kept_first[n + 1] = at
    return 0
