"""What the folder of a treebank says of its licence, and which one a model of it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tk_spacy.treebank.data_notes import join

MAX_LICENCE = 200
"""Characters of a licence's first paragraph that are enough to know it by."""

CREATIVE_COMMONS = re.compile(r"creativecommons\.org/licenses/([a-z]+(?:-[a-z]+)*)/(\d\.\d)")


class Licence(NamedTuple):
    """A treebank's licence in one line, and the file that states it; both empty for none."""

    text: str = ""
    file: str = ""


def find_licence(folder: Path) -> Licence:
    """The licence of the treebank in a folder.

    Its README has a line "License: ..." in Universal Dependencies; else it is the licence of
    Creative Commons that LICENSE links to, or how LICENSE begins.
    """
    for path in sorted(folder.glob("README*")):
        if found := re.search(r"^Licen[sc]e:[ \t]*(\S.*)$", _text(path), re.MULTILINE):
            return Licence(found[1].strip(), path.name)
    for path in sorted(folder.glob("LICEN[SC]E*")):
        text = _text(path).strip()
        if link := CREATIVE_COMMONS.search(text):
            return Licence(f"CC {link[1].upper()} {link[2]}", path.name)
        paragraph, *_ = re.split(r"\n\s*\n", text, maxsplit=1)
        # A word with a hyphen may be broken there.
        if first := " ".join(re.sub(r"(?<=\w-)\n\s*", "", paragraph).split()):
            short = first if len(first) <= MAX_LICENCE else first[:MAX_LICENCE].rstrip() + " ..."
            return Licence(short, path.name)
    return Licence()


def joint_licence(licences: Mapping[str, str]) -> str:
    """The licences of treebanks, one after the other; empty where one is not known."""
    return ", ".join(dict.fromkeys(licences.values())) if all(licences.values()) else ""


def licence_note(chosen: str, found: Mapping[str, Licence]) -> str:
    """Which licence a model gets, and why, in one line.

    chosen: by the user, empty for the treebanks'.  found: of each treebank, by name.
    """
    stated = [f"{x.text} in {x.file} of {name}" for name, x in found.items() if x.text]
    silent = [name for name, x in found.items() if not x.text]
    if chosen:
        return f"licence of the model: {chosen}, as was chosen{_of('; treebank: ', stated)}"
    if silent:
        return (
            f"licence of the model: none, as no README or LICENSE of {join(silent, 'or')} states "
            f"one{_of('; ', stated)}; give one by --licence"
        )
    joint = joint_licence({name: x.text for name, x in found.items()})
    return f"licence of the model: {joint} ({join(stated, 'and')})"


def _of(before: str, stated: list[str]) -> str:
    return before + join(stated, "and") if stated else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
