"""Exact scoring of parts against weighted support parts, compiled: weight * kernel, summed.

The kernel of two parts is the product over their slots of the number of properties that agree.  The
straightforward way compares every part with every support part, property by property.  This package
gives the same sums, without comparing words again and again:

    support parts        s1  s2  s3  s4 ...     a block of them (blocks), 8 bits a number
                        +---+---+---+---+--
    tags and FEATS      | 3 | 0 | 1 | 2 |       a *row* for each combination of values that words
    previous tags       | 1 | 1 | 0 | 0 |       have (node_groups), kept (row_cache): how many
    next tags           | 0 | 2 | 1 | 0 |       of them the head of each support part shares
    word form           |   | 1 |   |   |       from an inverted index: few support parts have it
                        +---+---+---+---+--
    row of the word     | 4 | 4 | 2 | 2 |       their sum: one for each word and each node slot
     as head h          +---+---+---+---+--
    the same as         | 0 | 5 | 1 | 3 |
     modifier m         +---+---+---+---+--
    edge: 1 + label,    | 2 | 1 | 1 | 4 |       looked up by the label and the distance of the arc
     length, distance   +---+---+---+---+--
                          |   |   |   |
    weight *            s1*0 + s2*20 + ...      one pass over the rows of a part's words: its score

Words share combinations of tags and features, so a treebank has some thousand rows.  A block is so
small that the rows read together stay in a core's cache, and each thread sums parts of its own,
block by block in order: the result is the same to the last bit, whatever the number of threads.

Words of a batch that are the same have one row.  Arcs that differ in the label alone are one pair
of words: it is multiplied once, and summed once over all stretches of the block without such
labels; where no part has the distance or the length, or all have, nothing is compared.  Neither
changes a bit of a score.

blocks: support parts in this form.  node_groups: numbers for combinations of properties.
row_cache: the rows that are kept.  scoring: the sums of parts.  all_arcs: every pair of words of a
sentence with every label.
"""
