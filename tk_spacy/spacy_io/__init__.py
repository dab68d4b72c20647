"""CoNLL-U sentences as spaCy Docs, and back."""
