"""CoNLL-U files and sentences."""
