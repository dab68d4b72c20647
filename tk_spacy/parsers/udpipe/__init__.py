"""UDPipe 1's parser, trained on gold tags: a transition parser with a small neural network.

The package ufal.udpipe is imported when a parser is trained or asked for trees, not before.  Import
the modules directly.
"""
