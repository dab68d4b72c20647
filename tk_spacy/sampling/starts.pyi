# C functions only: see starts.pxd.
