"""The sampling parser's compiled search: arcs of a sentence, part scores, climbing, updates."""
