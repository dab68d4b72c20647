"""The audit of treebanks: what speaks against an annotation, and how strongly.

`words` puts a treebank's words in one row.  Signals are columns beside it: `rarity` (what is
expected of a word, see `backoff.Expected`), `variation_ngrams` (what equal strings have elsewhere),
`rules` (what UD's validator would report) and `parsed` (what parsers say that never saw the
sentence).  `neighbours` finds the arcs that are most like one, which argue for a proposal.
`ranking` joins the signals to one score, `proposals` and `entries` make of it what a person reads,
`tables` and `applying` take back what that person decides.
"""
