"""Values of a config that are no JSON: single quotes, broken lists."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from test_cli import invoke
from test_config import PATHS

from tk_spacy.errors import UserError
from tk_spacy.workflows.train.config import train_options


def refused(path: Path, text: str, **changes: object) -> str:
    """The message about a config, without the file's name before it."""
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError) as error:
            train_options(path, {**PATHS, **changes})
    message = str(error.value)
    assert "\n" not in message
    return message.removeprefix(f"{path}:")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("title = 'a b'", "training.title is 'a b', which is no JSON; write \"a b\""),
        ("seed = '3'", "training.seed is '3', which is no JSON; write 3"),
        ("preset = 'quick'", "training.preset is 'quick', which is no JSON; write \"quick\""),
        ('title = "a', 'training.title is "a, which is no JSON; write texts in double quotes'),
        ("seed = [1", "training.seed is [1, which is no JSON; write texts in double quotes, lists"),
    ],
)
def test_single_quotes_are_told_once_with_the_cure(tmp_path: Path, value: str, said: str) -> None:
    assert refused(tmp_path / "a.cfg", f"[training]\n{value}\n").startswith(f"2: {said}")
    result = invoke("train", "--config", tmp_path / "a.cfg", "-o", tmp_path / "m")
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (1, "")
    assert line.startswith(f"Error: {tmp_path / 'a.cfg'}:2: {said}")


def test_lists_of_names_in_single_quotes(tmp_path: Path) -> None:
    text = "[parsers]\nnames = [\n  'sampling',\n  'spacy'\n  ]\n"
    assert refused(tmp_path / "a.cfg", text) == (
        "2: parsers.names is [ 'sampling', 'spacy' ], which is no JSON; write texts in double "
        'quotes, lists as in ["one", "two"]'
    )


def test_values_that_are_json_may_be_written_in_any_way(tmp_path: Path) -> None:
    """Over lines, with comments between, set in, with single quotes in a text."""
    path = tmp_path / "a.cfg"
    path.write_text(
        '[parsers]\nnames = [\n  "sampling:order=2",\n  # an \'own\' one\n  "sampling"\n  ]\n\n'
        "[training]\n  title = \"it's ['so']\"\n  seed = 3\n  preset = quick\n",
        encoding="utf-8",
    )
    made = train_options(path, {**PATHS, "training.title": "else"})
    assert made.parsers == ("sampling:order=2", "sampling")
    assert (made.title, made.seed, made.preset) == ("else", 3, "quick")
    assert train_options(path, PATHS).title == "it's ['so']"
    more = train_options(path, {**PATHS, "training.tuning_folds": 2})
    assert (more.tuning_folds, more.seed, more.preset) == (2, 3, "quick")
