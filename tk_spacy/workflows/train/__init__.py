"""From a treebank to a model."""
