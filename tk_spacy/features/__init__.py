"""What words, parts and lists of trees are described by: properties, templates, list features."""
