"""The reranker: its settings, its learning, its choice among the trees of a list."""
