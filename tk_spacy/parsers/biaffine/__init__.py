"""The biaffine parser: neural, scores all arcs; a thinc model with any encoder of spaCy's."""
