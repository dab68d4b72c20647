"""The audit of treebanks: what speaks against an annotation, and how strongly.

`words` puts a treebank's words in one row, `signals` names the columns of evidence, each made by a
module of its own, `ranking` joins them to one score, `entries` makes of it what a person reads.
"""
