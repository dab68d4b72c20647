"""Threads, processes and work done ahead."""
