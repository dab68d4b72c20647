"""The template kernel's own space made explicit: slot combinations, listed by weight.

Source: Taub-Tabib et al. 2015, section 2: the kernel of two parts is the number of combinations,
one property of each slot, that both have (a slot that may be skipped may also give none).  So the
score of a part is linear in its combinations:

    sum over support parts q of alpha_q * k(q, part)
        = sum over the combinations c of the part of w_c,   w_c = sum of alpha_q over q that hold c

w_c is c's *weight*.  Goldberg and Elhadad 2008 (splitSVM) write out a polynomial kernel's space for
frequent features alone, and Okanohara and Tsujii 2009 mine the combinations of an L1-regularised
model; here are both ways for the space of the template kernel:

    a trained support --- expansion ----------+
                          (branch and bound)  |      listed by weight       +-- names, for readers
                                              +----> CombinationModel ------+
    candidate lists ----- mining -------------+      (learning: new weights)+-- a trie, for speed
                          (Qian and Liu 2015)

Slots are taken nodes first, edges last: words tell parts apart better than labels and lengths, so
a search or walk that begins with them ends earlier; and parts of the same words share that walk.

slot_space: the part types' slots in this order, and the keys of properties.  slot_keys: the
keys of all that parts have.  slot_features: their numbers, and candidate lists for mining.
expansion, expanding: the strongest combinations of a support.  trie: combinations in a form that is
scored fast.  model: what is plugged into a reranker.  learning: mined combinations, new weights.
"""
