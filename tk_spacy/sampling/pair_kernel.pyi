# C functions only: see pair_kernel.pxd.
