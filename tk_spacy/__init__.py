"""tk-spacy: k-best dependency parse reranking with template kernels."""

from tk_spacy.about import __version__

__all__ = ["__version__"]
