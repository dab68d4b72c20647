# C functions only: see larger_parts.pxd.
