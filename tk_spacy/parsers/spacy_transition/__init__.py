"""spaCy's transition-based parser: its training, its k best trees, scores of given trees."""
