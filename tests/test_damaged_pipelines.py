"""Pipelines whose description is damaged: the file and line are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import spacy

from tk_spacy.errors import UserError
from tk_spacy.parsers.spacy_transition.loading import load_pipeline


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", ":1: is damaged: Expecting value"),
        (b'{\n"lang": "en",\n"name', ":3: is damaged: Unterminated string"),
        (b"[]", ":1: is damaged: no object"),
        (b'{"lang": "\xff"}', ": is damaged: no UTF-8"),
    ],
)
def test_a_damaged_description_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    spacy.blank("en").to_disk(tmp_path)
    assert load_pipeline(tmp_path).lang == "en"
    (tmp_path / "meta.json").write_bytes(content)
    with pytest.raises(UserError, match="^" + re.escape(f"{tmp_path / 'meta.json'}{told}")):
        load_pipeline(tmp_path)
