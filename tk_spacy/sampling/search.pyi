# C functions only: see search.pxd.
