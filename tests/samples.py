"""Sentences, CoNLL-U texts and system outputs that several test modules use."""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tk_spacy.treebank.conllu import Sentence

# Everything that conllu's own round trip loses or changes: an equal comment key twice, a comment
# without "=", repeated FEATS, odd MISC, spaces in forms and at the end, an empty node, a token
# over two words, a line separator in the text.
ODD = """\
# sent_id = odd-1
# note = one
# note = two
#no equals sign
# text = Vamos\u2028al \x85 mar 10 000 veces
1\tVamos\tir\tVERB\tV\tMood=Ind|Mood=Sub\t0\troot\t0:root\tref=8||x=|y
2-3\tal\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\ta\ta\tADP\t_\t_\t4\tcase\t4:case\t_
3\tel\tel\tDET\t_\tDefinite=Def\t4\tdet\t4:det\t_
4\tmar\u2028\tmar\tNOUN\t_\t_\t1\tobl\t1:obl:a\tGloss=sea \x20
4.1\tquizá\tquizá\tADV\t_\t_\t_\t_\t1:advmod\tCopyOf=-1
4.2\tno\tno\tADV\t_\t_\t_\t_\t1:advmod\t_
5\t10 000\t10 000\tNUM\t_\t_\t6\tnummod\t6:nummod\t_
6\tveces\tvez\tNOUN\t_\t_\t1\tobl:tmod\t1:obl\t_

"""
PLAIN = """\
# sent_id = plain-1
1\tOwls\towl\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""
NO_TREE = PLAIN.replace("\t2\tnsubj", "\t_\t_").replace("\t0\troot", "\t_\t_")
NO_TREE = NO_TREE.replace("\t2\tpunct", "\t_\t_")


def sentence(text: str, sent_id: str | None = None, single_root: bool = True) -> Sentence:
    """A sentence from "form/UPOS/HEAD/DEPREL ..."."""
    forms, upos, heads, deprels = zip(*(word.split("/") for word in text.split()), strict=True)
    return Sentence.from_columns(
        forms=forms,
        upos=upos,
        heads=list(map(int, heads)),
        deprels=deprels,
        sent_id=sent_id,
        single_root=single_root,
    )


def corrupted(gold: Sequence[Sentence], rate: float, seed: int) -> Iterator[Sentence]:
    """Gold trees with words attached elsewhere, roots moved and labels changed; still trees."""
    rng = random.Random(seed)
    labels = sorted({deprel for s in gold for deprel in s.deprels if deprel != "root"})
    for s in gold:
        heads = [0, *s.heads.tolist()]
        deprels = list(s.deprels)
        for word in range(1, len(heads)):
            if rng.random() < rate and heads[word]:
                head = rng.choice([h for h in range(1, len(heads)) if not _above(heads, word, h)])
                heads[word] = head
            if rng.random() < rate and heads[word]:
                deprels[word - 1] = rng.choice(labels)
        if rng.random() < rate and len(s) > 1:
            old, new = heads.index(0, 1), rng.randint(1, len(s))
            if old != new:
                heads[old], heads[new] = new, 0
                deprels[old - 1], deprels[new - 1] = rng.choice(labels), "root"
        yield s.with_tree(heads[1:], deprels)


def _above(heads: Sequence[int], word: int, other: int) -> bool:
    """Is word the other one or above it?"""
    while other and other != word:
        other = heads[other]
    return other == word


def random_trees() -> list[Sentence]:
    """Forty random trees with the labels that the metrics treat apart."""
    rng = random.Random(5)
    labels = ["nsubj", "nsubj:pass", "aux", "aux:pass", "punct", "det", "obl", "obl:agent", "conj"]
    result = []
    for number in range(40):
        n = rng.randint(1, 9)
        order = rng.sample(range(1, n + 1), n)
        heads = [0] * (n + 1)
        for above, word in pairwise(order):
            heads[word] = rng.choice([above, order[0]])
        deprels = [rng.choice(labels) if heads[word] else "root" for word in range(1, n + 1)]
        result.append(
            Sentence.from_columns(
                forms=[f"w{word}" for word in range(n)],
                upos=[rng.choice(["NOUN", "VERB", "PUNCT"]) for _ in range(n)],
                heads=heads[1:],
                deprels=deprels,
                sent_id=f"m{number}",
            )
        )
    return result
