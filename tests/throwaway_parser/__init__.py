"""A parser as another package would bring it: all of it stands in this folder."""
