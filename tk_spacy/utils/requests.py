"""What a user writes for something with settings of its own: NAME, or NAME:SETTING=VALUE:..."""

from __future__ import annotations

from typing import Any

from tk_spacy.errors import UserError


def split_request(text: str, *, what: str, example: str) -> tuple[str, dict[str, Any]]:
    """The name and the settings of a request; values are numbers, truths or else texts.

    what: is asked for, such as "parser"; example: of a request with a setting, both for messages.
    Raises UserError where an item is no setting, or a setting stands twice.
    """
    name, *items = text.split(":")
    settings: dict[str, Any] = {}
    for item in items:
        setting, equals, value = item.partition("=")
        if not (setting and equals and value) or setting in settings:
            raise UserError(
                f"{what} {text!r}: {item!r} is no setting; write NAME=VALUE once for each, as in "
                f"{example}"
            )
        settings[setting] = _value(value)
    return name, settings


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)
