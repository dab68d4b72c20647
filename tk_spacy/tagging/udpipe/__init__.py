"""UDPipe 1's tagger, morphological analyser and lemmatizer (MorphoDiTa)."""
