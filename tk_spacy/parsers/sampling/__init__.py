"""The sampling parser: a third-order parser of its own, and what it proposes."""
