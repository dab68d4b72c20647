r"""The projective parser: linear, exact third-order search for the k best trees, labels afterwards.

A pruner of first order keeps a few heads for each word (pruning.pyx).  Over the arcs kept, `arcs`
numbers all parts of up to four words, `scores` gives each its score, and `chart` has the best score
of every span:

    C(a, e)      a word h below the arc a = g -> h, with its modifiers on one side, up to word e
    E(a, m)      the same up to its last modifier m, whose other side is still open
    I(a, s, m)   E where the modifier before m is s, or none
    S(h, s, m)   what stands between two modifiers s and m of h, side by side

        C(a, e)         E(a, m)  I(a, s, m)            S(h, s, m)

     g ... h----m---e      g ... h  s     m         h ...  s--r r+1--m
               \___/             \__/\___/               \___/\____/
              C(h -> m, e)    I(a, t, s) S(h, s, m)     two C, with h above both

`lists` then takes the k best trees from the chart, `learner` learns from them, and `labels` gives
each arc of a tree its label.

Sources: Koo and Collins (ACL 2010), "Efficient third-order dependency parsers": the spans that know
their grandparent, and the siblings.  Their Model 2 has tri-siblings with those grand-siblings alone
that are outermost, in O(n ** 4); ours has all of both, since few arcs are kept: I(a, s, m) knows
grandparent and sibling.  Huang and Chiang (IWPT 2005), "Better k-best parsing", algorithm 3.
"""
