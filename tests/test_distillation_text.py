"""What `train --distill --text` refuses before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tk_spacy.errors import UserError
from tk_spacy.workflows.train.students import check_text


@pytest.mark.parametrize(
    ("name", "told"), [("folder", "is a directory"), ("none.txt", "there is no such file")]
)
def test_what_is_no_file_is_told(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=f"{name}: {told}; give"):
        check_text(tmp_path / name, has_tokenizer=True)
