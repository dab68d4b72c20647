"""The transition parser: linear, with hashed features, arc-standard with SWAP, beam search."""
