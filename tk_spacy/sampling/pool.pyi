# C functions only: see pool.pxd.
