"""tk-spacy: k-best dependency parse reranking with template kernels."""

__version__ = "0.1.0"
