"""Candidate lists: in memory, in k-best files, and what proposes them."""
