# C functions only: see contraction.pxd.
