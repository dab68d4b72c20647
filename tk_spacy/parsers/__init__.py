"""Parsers: the kinds of parser that propose and score trees, alone or several in one list.

Import the modules directly; this package stays empty so that `import tk_spacy` never imports spaCy.
"""
