"""The speeds of a reranker, by name; see `cascade`.  Light, as components and commands read it."""

from __future__ import annotations

from typing import Literal, get_args

Speed = Literal["exact", "balanced", "fast"]
SPEEDS: tuple[Speed, ...] = get_args(Speed)
EXACT: Speed = "exact"
"""All parsers and the reranker look at each sentence."""
