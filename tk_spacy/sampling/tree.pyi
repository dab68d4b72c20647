# C functions only: see tree.pxd.
