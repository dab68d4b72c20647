"""Writes docs/commands.md from the program: `python docs/make_commands.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).with_name("commands.md")


def commands_page() -> str:
    """The page's text, as typer's own command makes it."""
    command = [sys.executable, "-m", "typer", "tk_spacy.cli.app", "utils", "docs"]
    options = ["--name", "tk-spacy", "--title", "Commands"]
    made = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    return made.stdout.strip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(commands_page(), encoding="utf-8")
