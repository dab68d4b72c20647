# C functions only: see climbing.pxd.
