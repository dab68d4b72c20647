"""What `tk-spacy train` says of options that make no sense, before any work."""

from __future__ import annotations

from pathlib import Path

from test_cli import invoke
from trainings import treebank


def assert_train_refuses(place: Path, arguments: tuple[object, ...], message: str) -> None:
    """The command ends with the message, and writes nothing into an empty directory."""
    files = treebank()
    result = invoke("train", files["train"], "--dev", files["dev"], "-o", place / "m", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert list(place.iterdir()) == []
