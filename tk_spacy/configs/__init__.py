"""Complete spaCy configs that ship with the package; `configs/` of the repository links to them."""
