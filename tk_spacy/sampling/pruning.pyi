# C functions only: see pruning.pxd.
