"""Candidate trees sampled around a trained parser or searched in its scores."""
