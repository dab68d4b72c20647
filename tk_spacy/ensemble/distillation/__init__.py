"""One parser that learns from what several parsers and their reranker say together."""
