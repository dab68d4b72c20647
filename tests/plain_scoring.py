"""Attachment scores by plain loops, sharing no code with `tk_spacy.evaluation.attachment`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tk_spacy.treebank.conllu import Sentence

Tree = tuple[Sequence[int], Sequence[str]]


def plain_scores(gold: Iterable[Sentence], trees: Iterable[Tree]) -> dict[str, float]:
    """UAS and LAS in percent, with and without words whose gold tag is PUNCT."""
    words = heads = labelled = words_np = heads_np = labelled_np = 0
    for sentence, (system_heads, system_labels) in zip(gold, trees, strict=True):
        for i in range(len(sentence.forms)):
            right = int(sentence.heads[i]) == int(system_heads[i])
            both = right and sentence.deprels[i] == system_labels[i]
            words, heads, labelled = words + 1, heads + right, labelled + both
            if sentence.upos[i] != "PUNCT":
                words_np, heads_np = words_np + 1, heads_np + right
                labelled_np += both
    return {
        "uas": 100 * heads / words,
        "las": 100 * labelled / words,
        "uas_nopunct": 100 * heads_np / words_np,
        "las_nopunct": 100 * labelled_np / words_np,
    }
