# C functions only: see templates.pxd.
