"""The template kernel within the sampling parser's search."""
