"""The arc combiner: what several parsers say of each arc, weighed by what they were right in.

Import the modules directly.
"""
