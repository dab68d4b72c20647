"""The template kernel and what makes it fast: support parts, compiled scoring, hashed tables."""
