"""spaCy's tagger, morphologizer and trainable lemmatizer, and any pipeline's."""
