"""The timing of exact kernel scoring."""
