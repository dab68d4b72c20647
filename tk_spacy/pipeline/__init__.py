"""Upstream parsers: spaCy as the proposer of candidate trees.

Import the modules directly; this package stays empty so that `import tk_spacy` never imports spaCy.
"""
