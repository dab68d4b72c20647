"""The biaffine parser: a small neural graph-based parser, trained on the CPU in numpy alone."""
