"""The spaCy components, tokenizer, readers and callbacks, and what they share.

Import the modules directly; this package stays empty so that `import tk_spacy` never imports spaCy.
"""
