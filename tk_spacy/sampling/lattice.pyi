# C functions only: see lattice.pxd.
