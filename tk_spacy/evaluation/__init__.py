"""Scores of parses, where the errors are, significance, and the report of a training."""
