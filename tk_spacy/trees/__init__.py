"""Dependency trees as arrays: validity, repair, spanning trees, crossing arcs, projective trees."""
