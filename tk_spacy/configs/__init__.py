"""Configs that ship with the package; `configs/` of the repository links to them.

Complete ones for `spacy train`, and paper.cfg for `tk-spacy train`.
"""
