"""UDPipe 1's parser, trained on gold tags: a transition parser with a small neural network.

Needs the extra `udpipe` (the package ufal.udpipe), which is imported when a parser is trained or
asked for trees, not before.  Import the modules directly.
"""
