"""From plain text to sentences and words: UDPipe's tokenizer, learnt from a treebank's own text."""
