"""Characters that nobody sees on a screen, and their names for messages."""

from __future__ import annotations

import unicodedata

_CONTROLS = {
    "\t": "a tab",
    "\v": "a vertical tab",
    "\f": "a form feed",
    "\r": "a carriage return",
    "\x00": "a null character",
    "\x1a": "an end-of-file mark",
    "\x85": "a next-line character",
    "\ufeff": "a byte-order mark",
}
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cn"})
"""Unicode categories: controls, formats, separators, what is no character."""


def invisible(text: str) -> list[str]:
    """The different characters of a text that cannot be seen, the space aside, as they come."""
    return [
        character
        for character in dict.fromkeys(text)
        if character != " " and unicodedata.category(character) in _INVISIBLE
    ]


def name_character(character: str) -> str:
    """A character's code point and name: "U+2028 (line separator)"."""
    name = _CONTROLS.get(character) or unicodedata.name(character, "no name").lower()
    return f"U+{ord(character):04X} ({name})"


def name_invisible(text: str) -> str:
    """The names of a text's invisible characters, joined; empty where it has none."""
    return ", ".join(map(name_character, invisible(text)))
