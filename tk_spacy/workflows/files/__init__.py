"""Batches of CoNLL-U files: parsed, reranked, resumed."""
