"""A neural tagger, morphological analyser and lemmatizer on the biaffine parser's encoder."""
